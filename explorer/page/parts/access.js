// What ipywidgets leaves out for hands and ears: keyboard focus for the heads of accordions,
// tooltips on dropdowns and checkboxes, names for controls that have a tooltip only.
function render({ model, el }) {
  el.style.display = "none";
  const plain = (e) => e.textContent.replaceAll("\u200b", "").trim();
  // Pages lie beside one another under voila/render; the first one also at the root.
  const link = (a) => {
    const at = window.location, page = a.dataset.page;
    const rendered = at.pathname.match(/^(.*\/voila\/render\/)(.*\/)?[^/]*$/);
    const lab = at.pathname.match(/^(.*\/)(?:lab|notebooks|doc)(?:\/|$)/);
    if (lab) a.href = `${lab[1]}lab/tree/notebooks/${page}`;
    else a.href = (rendered ? rendered[1] + (rendered[2] || "") : `${at.pathname.replace(/[^/]*$/, "")}voila/render/`)
      + page + at.search;
  };
  const mend = () => {
    const app = el.closest(".mx-app");
    if (!app) return;
    app.querySelectorAll("a[data-page]").forEach(link);
    for (const head of app.querySelectorAll(".jupyter-widget-Collapse-header:not([tabindex])")) {
      head.tabIndex = 0;
      head.setAttribute("role", "button");
      head.addEventListener("keydown", (e) => {
        if (e.key !== "Enter" && e.key !== " ") return;
        e.preventDefault();
        head.click();
      });
    }
    const tips = model.get("tips");
    for (const box of app.querySelectorAll(".widget-inline-hbox, .widget-toggle-button, .jupyter-button")) {
      const words = [box, box.querySelector("label") || box].map(plain);
      const tip = tips[words[0]] || tips[words[1]];
      // Some carry their own words as a title, which tells nothing new.
      if (tip && (!box.title || words.includes(plain({ textContent: box.title })))) box.title = tip;
    }
    for (const control of app.querySelectorAll("select, input, textarea, .noUi-handle")) {
      const box = control.closest(".widget-inline-hbox");
      const label = box && box.querySelector("label");
      const name = (label && plain(label)) || control.title || (label && label.title);
      const labelled = control.labels?.length && plain(control.labels[0]);
      if (name && !labelled && !control.ariaLabel) {
        control.setAttribute("aria-label", name);
      }
      if (name && !control.title && box && !box.title) box.title = tips[name] || "";
    }
  };
  let timer = null;
  const soon = () => { timer = timer || setTimeout(() => { timer = null; mend(); }, 500); };
  const watch = new MutationObserver(soon);
  const begin = () => {
    const app = el.closest(".mx-app");
    if (!app) return void setTimeout(begin, 200);
    watch.observe(app, { childList: true, subtree: true });
    mend();
  };
  begin();
  return () => { watch.disconnect(); clearTimeout(timer); };
}
export default { render };
