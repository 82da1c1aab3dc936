// Elements, listeners, files and the theme: what all parts of a page are made with.
// Put `text` into an element that holds no other node. An exchange of nodes would make the browser
// ask anew which styles fit the elements around.
const write = (el, text) => {
  const node = el.firstChild;
  if (node?.nodeType !== 3 || node.nextSibling) el.textContent = text;
  else if (node.data !== text) node.data = text;
};
// An element; `more.on` are listeners, `more.data` its data, other names properties, and those with a dash
// attributes.
const make = (tag, className = "", more = {}, ...children) => {
  const e = document.createElement(tag);
  if (className) e.className = className;
  for (const [name, value] of Object.entries(more)) {
    if (value === undefined) continue;
    if (name === "on") for (const [kind, call] of Object.entries(value)) e.addEventListener(kind, call);
    else if (name === "data") Object.assign(e.dataset, value);
    else if (name.includes("-") || name === "role") e.setAttribute(name, value);
    else e[name] = value;
  }
  e.append(...children);
  return e;
};
const makeButton = (className, textContent, title, click, more = {}) =>
  make("button", className, { type: "button", textContent, title, on: { click }, ...more });
const put = (e, name, value) => {
  if (name === "textContent") write(e, value);
  else if (e[name] !== value) e[name] = value;
};
const attribute = (e, name, value) => { if (e.getAttribute(name) !== String(value)) e.setAttribute(name, value); };
// By how much the page is larger in a window of this size, in px: letters of 13 px have 17 on 1920 x 1080; arbitrary.
const growth = (wide, high) => Math.max(1, Math.min(wide / 1440, high / 810));
// Listen to an element, or to a model; each returns what ends it.
const listen = (on, kind, call, how) => { on.addEventListener(kind, call, how); return () => on.removeEventListener(kind, call, how); };
const heed = (model, name, call) => { model.on(name, call); return () => model.off(name, call); };
// What one picture of a page lights in the others: {line, ink, pulls}, a line of the plane [a, b, c] in
// shares and how strongly each point pulls at it; {point}, an index; {place}, where a pointer is on the plane;
// {term}, a key of the glossary whose word is looked at; {start}, shares of truth, unseen points and noise that
// a hand holds; {reading}, what the map reads there until the kernel has answered: see lattice.js. Each is null, -1 or "" where that is over.
const tellLight = (el, what) => el.dispatchEvent(new CustomEvent("mx-light", { bubbles: true, detail: what }));
const onLight = (el, call) => listen(document, "mx-light", (e) => {
  const app = el.closest(".mx-app");
  if (app && app === e.target.closest?.(".mx-app") && e.target !== el) call(e.detail);
});
// A sentence of the kernel with what the hand reads in it: "{left} on the map".
const filledForm = (form, reading) => form.replace(/\{(\w+)\}/g, (_, name) => reading[name]);
// What a browser may refuse, such as its storage: the result, else `otherwise`.
const attempt = (call, otherwise = null) => { try { return call(); } catch { return otherwise; } };
// Let the visitor save bytes, a text or a blob as a file.
const saveFile = (name, type, content) => {
  const link = make("a", "", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
};
// What the visitor chose as the theme, or "auto"; and which of the two that is on this page: the choice,
// else JupyterLab's, else the one that the address asks for, else the system's.
const systemTheme = matchMedia("(prefers-color-scheme: dark)");
const chosenTheme = () => attempt(() => localStorage.getItem("mx-theme")) || "auto";
const labTheme = () => (document.body.dataset.voila === undefined ? { true: "light", false: "dark" }[document.body.dataset.jpThemeLight] : undefined);
const theme = (chosen = chosenTheme()) => {
  const asked = new URLSearchParams(location.search).get("theme");
  const wanted = chosen !== "auto" ? chosen : labTheme() || asked;
  return /^(light|dark)$/.test(wanted) ? wanted : systemTheme.matches ? "dark" : "light";
};
