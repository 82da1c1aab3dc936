// Icons, menus that close, files that are chosen, addresses: what controls are made with.
const ICONS = {
  pencil: "M4 16l1-4 8-8 3 3-8 8z",
  move: "M10 3v14M3 10h14M10 3l-2 2M10 3l2 2M10 17l-2-2M10 17l2-2M3 10l2-2M3 10l2 2M17 10l-2-2M17 10l-2 2",
  eraser: "M8 16l-5-5 7-7 6 6-6 6zM8 16h9",
  undo: "M8 5L4 9l4 4M4 9h8a4 4 0 0 1 0 8H9",
  redo: "M12 5l4 4-4 4M16 9H8a4 4 0 0 0 0 8h3",
  bin: "M4 6h12M8 6V4h4v2M6 6l1 11h6l1-11M9 9v5M11 9v5",
  start: "M5 4v5h5M5 9a6 6 0 1 1 1.2 5.2",
  step: "M6 4l7 6-7 6zM15 4v12",
  play: "M6 3.5l11 6.5-11 6.5z",
  pause: "M6 4h3v12H6zM11 4h3v12h-3z",
  branch: "M6 3v14M6 12c0-4 8-2 8-7M12 6l2-2 2 2",
  more: "M5 8l5 5 5-5",
  upload: "M10 13V4M6 8l4-4 4 4M4 13v3h12v-3",
  close: "M5 5l10 10M15 5L5 15",
  present: "M3 4h14v9H3zM10 13v4M6 17h8",
  theme: "M10 3a7 7 0 1 0 0 14zM10 3a7 7 0 0 1 0 14",
};
const icon = (name, filled = false) =>
  `<svg viewBox="0 0 20 20" aria-hidden="true" class="mx-icon${filled ? " filled" : ""}"><path d="${ICONS[name]}"/></svg>`;
const LOGO = `<svg width="24" height="24" viewBox="0 0 24 24" aria-hidden="true"><rect width="24" height="24" rx="6" fill="var(--mx-pos)" opacity=".18"/><path d="M0 24 24 0V18a6 6 0 0 1-6 6Z" fill="var(--mx-neg)" opacity=".3"/><path d="M3 21 21 3" stroke="var(--mx-ink)" stroke-width="2"/><circle cx="8" cy="9" r="2.4" fill="var(--mx-pos)"/><circle cx="16" cy="15.5" r="2.4" fill="var(--mx-neg)"/></svg>`;
const brandOf = (tag = "div") => make(tag, "mx-brand", { innerHTML: `${LOGO}<span>Margin Explorer</span>` });
// Keep an open box within the window, and within the page that would cut it: to its side, and by scrolling in itself.
const fitIn = (box, button) => {
  const app = box.closest(".mx-app").getBoundingClientRect(), zoom = box.currentCSSZoom || 1, air = 8;
  box.style.translate = box.style.maxHeight = "";
  const r = box.getBoundingClientRect(), b = button.getBoundingClientRect();
  const low = Math.max(0, app.left) + air, high = Math.min(innerWidth, app.right) - air;
  box.style.translate = `${(Math.max(low - r.left, 0) || Math.min(high - r.right, 0)) / zoom}px`;
  const below = r.top >= b.top;
  const room = below ? Math.min(innerHeight, box.closest(".mx-explorer") ? app.bottom : innerHeight) - r.top : r.bottom - Math.max(0, app.top);
  box.style.maxHeight = `${Math.max(room - air, 80) / zoom}px`;
};
// A button that opens a box below it; a click elsewhere, Escape and a choice close it; arrows go from row to row.
// `opened` is called whenever it opens.
const menu = (className, label, title, content, opened = () => {}) => {
  const box = make("div", "mx-menu-box", { hidden: true, "aria-label": title, role: "group" }, ...content);
  const button = makeButton("mx-ghost", undefined, title, () => set(box.hidden), { "aria-expanded": "false" });
  button.append(label);
  if (typeof label === "string" && label.length > 1) button.insertAdjacentHTML("beforeend", ` ${icon("more")}`);
  const root = make("div", `mx-menu ${className}`, {}, button, box);
  const set = (open) => {
    box.hidden = !open;
    if (box.popover) box.togglePopover(open);
    button.setAttribute("aria-expanded", String(open));
    if (open) { opened(); place(box, button); }
  };
  const place = (...both) => (box.popover ? standAt : fitIn)(...both); // a popover stands over boxes that scroll
  const fit = () => { if (!box.hidden) place(box, button); };
  const outside = (e) => { if (!box.hidden && !e.composedPath().includes(root)) set(false); };
  const ends = [listen(window, "resize", fit), listen(window, "scroll", fit, true), listen(document, "pointerdown", outside)];
  root.addEventListener("focusout", (e) => { if (e.relatedTarget && !root.contains(e.relatedTarget)) set(false); });
  root.addEventListener("keydown", (e) => {
    const rows = [...box.querySelectorAll("button, a[href]")], at = rows.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at < 0 ? rows.length - 1 : at - 1, Home: 0, End: rows.length - 1 }[e.key];
    if (to !== undefined && !e.target.matches("input, select, textarea")) {
      e.preventDefault();
      set(true);
      rows.at(to % rows.length)?.focus();
    }
    if (e.key !== "Escape" || box.hidden) return;
    e.stopPropagation();
    set(false);
    button.focus();
  });
  const close = () => ends.forEach((end) => end());
  return { root, button, box, set, close };
};
// The way to present stands in the head, and while one presents, as no head is there, in the bar at the foot.
const presentOf = (className, pressed) => {
  const button = makeButton(`${className} mx-presents`, undefined, "Present: plane and pictures large, no settings (F)",
    () => button.dispatchEvent(new Event("mx-presents", { bubbles: true })), { "aria-label": "Present", "aria-pressed": String(pressed) }); // access.js listens
  button.innerHTML = `${icon("present")}<span class="mx-roomy"> Present</span>`;
  return button;
};
// Pages lie beside one another under voila/render; the first one also at the root.
const address = (page) => {
  const at = window.location, theme = new URLSearchParams(at.search).get("theme"), search = theme ? `?theme=${theme}` : "";
  const rendered = at.pathname.match(/^(.*\/voila\/render\/)(.*\/)?[^/]*$/);
  const lab = at.pathname.match(/^(.*\/)(?:lab|notebooks|doc)(?:\/|$)/);
  if (lab) return `${lab[1]}lab/tree/notebooks/${page}`;
  return (rendered ? rendered[1] + (rendered[2] || "") : `${at.pathname.replace(/[^/]*$/, "")}voila/render/`) + page + search;
};
// A file that is chosen behind a button; `take` gets it. The same file may be chosen again.
const fileField = (accept, take, more = {}) => {
  const field = make("input", "", { type: "file", accept, hidden: true, tabIndex: -1, ...more, on: { change: async () => {
    if (field.files.length) await take(field.files[0]);
    field.value = "";
  } } });
  return field;
};
