// One of several: the first few side by side, the others behind "others"; a sentence on the chosen.
const build = (el, send, onClose) => {
  const row = make("div", "mx-segments", { role: "group" });
  const list = make("div", "");
  const further = menu("mx-further", "others", "Further attacks", [list]);
  further.box.popover = "manual"; // its card scrolls, and would cut it
  const words = make("p", "mx-note-text mx-chosen");
  const again = makeButton("mx-flat", undefined, undefined, () => send("again"));
  const title = make("div", "mx-card-title");
  el.append(title, row, words, again);
  onClose(further.close);
  let shown = "";
  return (state) => {
    if (!state.options) return;
    put(title, "textContent", state.title);
    attribute(row, "aria-label", state.title);
    explain(words, state.words);
    again.hidden = !state.again;
    put(again, "textContent", state.again || "");
    put(again, "title", state.againTip || "");
    const now = JSON.stringify([state.options, state.value]);
    if (now === shown) return;
    const focused = row.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    shown = now;
    const one = ({ key, name, tip, fits }, className, text) => makeButton(`${className}${fits ? "" : " unfit"}`, text, tip,
      () => { further.set(false); send("choose", key); }, { "aria-pressed": String(key === state.value), "aria-label": name });
    const first = state.options.slice(0, state.first), rest = state.options.slice(state.first);
    const chosen = rest.find((o) => o.key === state.value);
    row.replaceChildren(...first.map((o) => one(o, "mx-segment", o.short)), further.root);
    further.button.innerHTML = `${chosen ? chosen.short : "others"} ${icon("more")}`;
    further.button.className = `mx-segment${chosen ? " on" : ""}`;
    list.replaceChildren(...rest.map((o) => one(o, "mx-menu-row", o.name)));
    [...row.querySelectorAll("button")].forEach((b, i) => { b.dataset.key = i; });
    if (focused !== null) row.querySelector(`[data-key="${focused}"]`)?.focus();
  };
};
