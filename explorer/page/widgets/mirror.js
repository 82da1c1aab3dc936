// Boxes and views in one element, where a notebook shows anywidgets alone: `parts` of the model is
// [classes, style, held], held a list of such parts, {model} of a view, or HTML.
const BOXES = `.widget-box {display: flex; box-sizing: border-box; margin: 0; overflow: auto;} .widget-vbox {flex-direction: column;}
  .jupyter-widgets {box-sizing: border-box; margin: 2px;}`;
const DARK = '[data-jp-theme-light="false"], .vscode-dark, [theme="dark"], .dark';
const isDark = (el) => {
  for (let up = el; up; up = up.parentNode || up.host) if (up.matches?.(DARK)) return true;
  return false;
};

const render = ({ model, el, host, signal }) => {
  if (!host) { el.textContent = "To show this here needs anywidget 0.11 or newer."; return; }
  const views = new Map(); // the element of each view that was made; it is moved, not made again
  const viewOf = (name) => {
    if (!views.has(name)) {
      const made = document.createElement("div");
      views.set(name, made);
      host.getWidget(name).then((view) => view.render({ el: made, signal }));
    }
    return views.get(name);
  };
  const elementOf = ([classes, style, held]) => {
    const made = held.model ? viewOf(held.model) : document.createElement("div");
    made.classList.add("jupyter-widgets", ...classes);
    Object.assign(made.style, style);
    if (typeof held === "string") made.innerHTML = held;
    else if (!held.model) made.append(...held.map(elementOf));
    return made;
  };
  const boxes = document.createElement("style"), whole = document.createElement("div");
  boxes.textContent = BOXES;
  whole.style.display = "contents";
  el.append(boxes, whole);
  const dress = () => { for (const app of whole.querySelectorAll(":scope > .mx-alone")) app.dataset.theme = isDark(el) ? "dark" : "light"; };
  const show = () => { whole.replaceChildren(elementOf(model.get("parts"))); dress(); };
  const theme = new MutationObserver(dress);
  for (const top of [document.documentElement, document.body]) theme.observe(top, { attributes: true });
  model.on("change:parts", show);
  show();
  return () => { theme.disconnect(); model.off("change:parts", show); };
};
export default { render };
