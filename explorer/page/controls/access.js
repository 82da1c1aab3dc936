// What the hosts of a page leave out: its height and its letters, landmarks, keys, the theme of a page
// without a switch, the words that are explained in notes, and what pictures show.
// How high a page may be that has two columns, as page.css has it.
const mostHigh = (wide) => (wide >= 900 ? 1000 : wide >= 700 ? wide / 0.9 - 1 : wide - 1);
const render = ({ model, el }) => {
  el.style.cssText = "position:absolute;visibility:hidden";
  const letter = make("div", "", { style: "width:1rem;height:1px" }); // as large as the visitor's text
  el.append(letter);
  const mend = () => {
    const app = el.closest(".mx-app");
    if (!app) return;
    // Lessons that are done, in the index: the browser keeps which (head.js).
    for (const k of attempt(() => JSON.parse(localStorage.getItem("mx-lessons") || "[]"), [])) app.querySelector(`.mx-index > :nth-child(${Number(k) + 1})`)?.classList.add("done");
    // Notes that the kernel wrote as plain text.
    for (const e of app.querySelectorAll(".mx-note > .widget-html-content, .mx-starts-head b"))
      if (!e.children.length && e.textContent !== e.mxText) explain(e, e.textContent);
    // A picture is what the words of its card say of it.
    for (const picture of app.querySelectorAll("img.widget-image"))
      picture.alt = (picture.closest(".mx-card")?.querySelector(".mx-note") || picture).textContent.trim();
  };
  // The explorer is as high as what scrolls around it: the window under Voila, the notebook in Lab.
  // A visitor's larger text is a zoom of the whole page, and so is a screen larger than most.
  let grown = 0;
  const fit = () => {
    const app = el.closest(".mx-app");
    if (!app) return;
    let around = app.parentElement;
    while (around && !/auto|scroll/.test(getComputedStyle(around).overflowY)) around = around.parentElement;
    const alone = !around || around === document.body || around === document.documentElement || around.clientHeight >= window.innerHeight;
    const [wide, high] = alone ? [window.innerWidth, window.innerHeight] : [around.clientWidth, around.clientHeight];
    const letters = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
    const zoom = Math.max(letters, growth(wide, high));
    app.style.setProperty("--mx-zoom", zoom);
    const height = Math.max(high - (alone ? 0 : 8), 320) / zoom;
    app.classList.toggle("mx-cell", !alone);
    app.style.setProperty("--mx-ungrown", `${height}px`);
    app.style.setProperty("--mx-height", `${height + (alone ? 0 : grown)}px`);
    return alone ? null : around;
  };
  // In a cell of a notebook it grows until no part of it scrolls in itself, as long as that helps and it
  // stays in two columns where it is narrow; it shrinks with another stage alone, so that little jumps.
  let stage = "";
  const grow = () => {
    const app = el.closest(".mx-explorer"), now = app?.querySelector(".mx-tab.now")?.textContent;
    if (now !== stage) { stage = now; grown = 0; }
    if (!app || !fit()) return;
    const parts = () => [...app.querySelectorAll(".mx-cards, .mx-starts-box, .mx-lesson-body")];
    for (const e of parts().flatMap((e) => [e, ...e.children])) if (!noted.has(e)) { noted.add(e); inner.observe(e); }
    const hidden = () => Math.ceil(Math.max(0, ...parts().map((e) => e.scrollHeight - e.clientHeight)));
    for (let over = hidden(), rest; over > 1; over = rest) {
      const more = Math.min(over, mostHigh(app.clientWidth) - app.clientHeight);
      if (more <= 0) return;
      grown += more;
      fit();
      rest = hidden();
      if (rest < over) continue;
      grown -= more;
      return void fit();
    }
  };
  const resized = () => { grown = 0; fit(); grow(); };
  // F presents, again F or Escape ends it; not while one types. A button does it too.
  const turn = (on) => { model.set("present", on); model.save_changes(); };
  const pressed = (e) => { if (el.closest(".mx-explorer")?.contains(e.target)) turn(!model.get("present")); };
  const key = (e) => {
    const app = el.closest(".mx-explorer");
    if (!app || e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
    if (e.target.closest?.("input, select, textarea, [contenteditable=true], .cm-editor")) return;
    if (e.key === "Escape" ? !model.get("present") : e.key.toLowerCase() !== "f") return;
    if (!app.contains(e.target) && e.target !== document.body && document.body.dataset.voila === undefined) return;
    if (e.key === "Escape") e.preventDefault(); // it closes this alone
    turn(e.key !== "Escape" && !model.get("present"));
  };
  const dress = () => { // a page without a switch of its own
    const app = el.closest(".mx-app:not(.mx-explorer)");
    if (!app) return;
    app.dataset.theme = theme();
    if (!labTheme()) document.documentElement.dataset.theme = app.dataset.theme;
  };
  const present = () => {
    const app = el.closest(".mx-explorer"), held = document.activeElement?.matches(".mx-presents");
    app?.classList.toggle("mx-present", model.get("present"));
    if (held) [...app.querySelectorAll(".mx-presents")].find((b) => b.checkVisibility())?.focus({ preventScroll: true });
  };
  // A lesson in another tab waits for what is done here; without storage nobody hears.
  const task = () => attempt(() => localStorage.setItem("mx-task", `${model.get("task")} ${Date.now()}`));
  const ends = [
    listen(systemTheme, "change", dress), listen(document, "keydown", key), listen(document, "mx-presents", pressed),
    listen(window, "resize", resized), listen(window, "storage", mend), heed(model, "change:present", present), heed(model, "change:task", task),
  ];
  const sized = new ResizeObserver(resized);
  let timer = null;
  const soon = () => { timer = timer || setTimeout(() => { timer = null; mend(); grow(); }, 500); };
  const watch = new MutationObserver(soon);
  // A headline of one line more, or what is shown late, changes heights and no children.
  const inner = new ResizeObserver(soon), noted = new WeakSet();
  const begin = () => {
    const app = el.closest(".mx-app");
    if (!app) return void setTimeout(begin, 200);
    // Landmarks: a page of its own is the main thing; in a notebook it is one part of many.
    app.setAttribute("role", document.body.dataset.voila === undefined ? "region" : "main");
    app.setAttribute("aria-label", document.title);
    watch.observe(app, { childList: true, subtree: true });
    dress();
    const around = fit();
    if (around) sized.observe(around);
    sized.observe(letter);
    present();
    mend();
  };
  begin();
  return () => {
    watch.disconnect(); sized.disconnect(); inner.disconnect(); clearTimeout(timer);
    ends.forEach((end) => end());
  };
};
export default { render };
