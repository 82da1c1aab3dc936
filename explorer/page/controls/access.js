// What ipywidgets leaves out for hands and ears: keyboard focus for the heads of accordions,
// tooltips on dropdowns and checkboxes, names for controls that have a tooltip only.
const render = ({ model, el }) => {
  el.style.cssText = "position:absolute;visibility:hidden";
  const letter = document.createElement("div"); // as large as the visitor's text
  letter.style.cssText = "width:1rem;height:1px";
  el.append(letter);
  const plain = (e) => e.textContent.replaceAll("\u200b", "").trim();
  const mend = () => {
    const app = el.closest(".mx-app");
    if (!app) return;
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
    // Names of settings and notes that the kernel wrote as plain text.
    for (const e of app.querySelectorAll(".widget-label, .mx-note > .widget-html-content, .mx-starts-head .widget-html-content, .mx-starts-head b"))
      if (!e.children.length && e.textContent !== e.mxText) explain(e, e.textContent);
    // A picture is what the words of its card say of it.
    for (const picture of app.querySelectorAll("img.widget-image"))
      picture.alt = plain(picture.closest(".mx-card")?.querySelector(".mx-note") || picture);
  };
  // The explorer is as high as what scrolls around it: the window under Voila, the notebook in Lab.
  // A visitor's larger text is a zoom of the whole page: nothing on it is tied to another size.
  const fit = () => {
    const zoom = Math.max(1, parseFloat(getComputedStyle(document.documentElement).fontSize) / 16);
    el.closest(".mx-app")?.style.setProperty("--mx-zoom", zoom);
    const app = el.closest(".mx-explorer");
    if (!app) return;
    let around = app.parentElement;
    while (around && !/auto|scroll/.test(getComputedStyle(around).overflowY)) around = around.parentElement;
    const rest = around && around !== document.body && around !== document.documentElement ? around.clientHeight : window.innerHeight;
    app.style.setProperty("--mx-height", `${Math.max(rest - (rest < window.innerHeight ? 8 : 0), 320) / zoom}px`);
    return around;
  };
  // F presents, again F or Escape ends it; not while one types. A button does it too.
  const turn = (on) => { model.set("present", on); model.save_changes(); };
  const pressed = (e) => { if (el.closest(".mx-explorer")?.contains(e.target)) turn(!model.get("present")); };
  const key = (e) => {
    const app = el.closest(".mx-explorer");
    if (!app || e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
    if (e.target.closest?.("input, select, textarea, [contenteditable=true], .cm-editor")) return;
    if (e.key === "Escape" ? !model.get("present") : e.key.toLowerCase() !== "f") return;
    if (!app.contains(e.target) && e.target !== document.body && document.body.dataset.voila === undefined) return;
    turn(e.key !== "Escape" && !model.get("present"));
  };
  // The theme of a page without a switch of its own: that of the visitor, the address, the system.
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dress = () => {
    const app = el.closest(".mx-app:not(.mx-explorer)");
    if (!app) return;
    let chosen = "auto";
    try { chosen = localStorage.getItem("mx-theme") || "auto"; } catch { /* no storage, no choice */ }
    const asked = new URLSearchParams(location.search).get("theme");
    const lab = document.body.dataset.voila ? null : document.body.dataset.jpThemeLight;
    const told = chosen !== "auto" ? chosen : lab ? (lab === "true" ? "light" : "dark") : asked;
    app.dataset.theme = /^(light|dark)$/.test(told) ? told : system.matches ? "dark" : "light";
    if (!lab) document.documentElement.dataset.theme = app.dataset.theme;
  };
  system.addEventListener("change", dress);
  const present = () => {
    const app = el.closest(".mx-explorer"), on = model.get("present");
    app?.classList.toggle("mx-present", on);
    app?.querySelector(".mx-presents")?.setAttribute("aria-pressed", String(on));
  };
  document.addEventListener("keydown", key);
  document.addEventListener("mx-presents", pressed);
  window.addEventListener("resize", fit);
  model.on("change:present", present);
  // A lesson in another tab waits for what is done here.
  const task = () => { try { localStorage.setItem("mx-task", `${model.get("task")} ${Date.now()}`); } catch { /* without storage nobody hears */ } };
  model.on("change:task", task);
  const sized = new ResizeObserver(fit);
  let timer = null;
  // A button that takes a file counts the files it holds, which are none once they are read.
  const uncount = (button) => {
    const text = [...button.childNodes].find((node) => node.nodeType === 3 && / \(\d+\)$/.test(node.data));
    if (text) text.data = text.data.replace(/ \(\d+\)$/, "");
  };
  const soon = () => { el.closest(".mx-app")?.querySelectorAll(".widget-upload").forEach(uncount); timer = timer || setTimeout(() => { timer = null; mend(); }, 500); };
  const watch = new MutationObserver(soon);
  model.on("change:tips", soon); // they may arrive after the controls that they are of
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
    watch.disconnect(); sized.disconnect(); clearTimeout(timer);
    document.removeEventListener("keydown", key);
    document.removeEventListener("mx-presents", pressed);
    window.removeEventListener("resize", fit);
    system.removeEventListener("change", dress);
    model.off("change:present", present);
    model.off("change:task", task);
    model.off("change:tips", soon);
  };
};
export default { render };
