// What every head has: the tabs of its stages, and the switch of the theme.
const tabsOf = (send) => {
  const list = make("div", "mx-tabs", { role: "tablist", "aria-label": "Stages" });
  const buttons = new Map();
  list.addEventListener("keydown", (e) => {
    const all = [...list.children], at = all.indexOf(document.activeElement);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1 }[e.key];
    if (to === undefined || at < 0) return;
    e.preventDefault();
    all[(to + all.length) % all.length].focus();
  });
  const update = (stages, now) => {
    for (const { key, title, tip, state } of stages) {
      if (!buttons.has(key)) {
        const [number, ...words] = title.split(" ");
        const made = makeButton("mx-tab", undefined, undefined, () => send("stage", key), { role: "tab" });
        const name = make("span", "mx-tab-name", { textContent: words.join(" ") });
        name.dataset.name = name.textContent;
        made.append(make("span", "mx-tab-number", { textContent: number }), " ", name);
        buttons.set(key, made);
        list.append(made);
      }
      const b = buttons.get(key), on = key === now;
      attribute(b, "aria-selected", String(on));
      if (on) attribute(b, "aria-current", "step"); else b.removeAttribute("aria-current");
      put(b, "title", tip);
      put(b, "className", `mx-tab ${on ? "now" : state}`);
    }
  };
  return { list, update };
};

const themeOf = (el) => {
  const names = { auto: "as the system", light: "light", dark: "dark" };
  const button = makeButton("mx-ghost mx-theme", undefined, undefined, () => {
    const other = theme() === "dark" ? "light" : "dark", next = theme("auto") === other ? "auto" : other; // each press is seen
    attempt(() => localStorage.setItem("mx-theme", next)); // without storage the choice is not kept
    apply();
  });
  const apply = () => {
    const now = theme(), chosen = chosenTheme(), words = `Theme: ${names[chosen]}`;
    for (const e of [el.closest(".mx-app"), document.documentElement]) if (e && e.dataset.theme !== now) e.dataset.theme = now;
    button.innerHTML = icon("theme");
    button.title = words;
    button.setAttribute("aria-label", words);
    button.dataset.choice = chosen;
  };
  const watch = new MutationObserver(apply);
  watch.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  const unlisten = listen(systemTheme, "change", apply);
  apply();
  setTimeout(apply, 0); // once more when the page is around it
  return { button, close: () => { watch.disconnect(); unlisten(); } };
};
