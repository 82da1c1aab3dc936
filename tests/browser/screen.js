// What is wrong with the screen of the explorer, as words; empty lists where nothing is.
const nameOf = (e) =>
  `${e.tagName} ${e.className?.baseVal ?? e.className} ${(e.ariaLabel || e.innerText || "").slice(0, 30)}`;
const scrolls = (e) => /auto|scroll/.test(getComputedStyle(e).overflow);

// The part of an element's box that the scrolling boxes around it let see.
const seenBox = (e, app) => {
  const r = e.getBoundingClientRect(), box = { l: r.left, t: r.top, r: r.right, b: r.bottom };
  for (let up = e.parentElement; up && up !== app; up = up.parentElement) {
    if (!scrolls(up)) continue;
    const u = up.getBoundingClientRect();
    box.l = Math.max(box.l, u.left); box.t = Math.max(box.t, u.top);
    box.r = Math.min(box.r, u.right); box.b = Math.min(box.b, u.bottom);
  }
  return box;
};

// Out of the viewport, on top of one another, missing; or a page that scrolls.
const misplaced = () => {
  const wrong = new Set(), app = document.querySelector(".mx-explorer");
  for (let e = app.parentElement; e; e = e.parentElement)
    if (scrolls(e) && (e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1))
      wrong.add(`scrolls: ${nameOf(e)} ${e.scrollWidth} x ${e.scrollHeight}`);
  for (const e of app.querySelectorAll("*"))
    if (/auto|scroll/.test(getComputedStyle(e).overflowX) && e.scrollWidth > e.clientWidth + 1 && !e.matches(".mx-fold-row, .mx-table")) // a wide table scrolls in its own box
      wrong.add(`scrolls sideways: ${nameOf(e)}`);
  const kinds = "button, input, select, textarea, summary, a, [role=slider], h1, .mx-words, .mx-stage, .mx-where, canvas, .mx-card";
  const parts = [...app.querySelectorAll(kinds)]
    .filter((e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
    .map((e) => [e, seenBox(e, app)])
    .filter(([, b]) => b.r - b.l > 1 && b.b - b.t > 1);
  for (const [e, b] of parts)
    if (b.l < -1 || b.t < -1 || b.r > innerWidth + 1 || b.b > innerHeight + 1)
      wrong.add(`outside: ${nameOf(e)} ${[b.l, b.t, b.r, b.b].map(Math.round)}`);
  const controls = parts.filter(([e]) => e.matches("button, input, select, textarea, a, summary"));
  controls.forEach(([e, a], i) => controls.slice(i + 1).forEach(([f, b]) => {
    const wide = Math.min(a.r, b.r) - Math.max(a.l, b.l), high = Math.min(a.b, b.b) - Math.max(a.t, b.t);
    if (wide > 2 && high > 2 && !e.contains(f) && !f.contains(e)) wrong.add(`overlap: ${nameOf(e)} | ${nameOf(f)}`);
  }));
  const plane = app.querySelector(".mx-stage").getBoundingClientRect();
  if (Math.abs(plane.width - plane.height) > 2) wrong.add(`no square: ${plane.width} x ${plane.height}`);
  for (const must of [".mx-tabs", ".mx-palette", ".mx-transport:not(.mx-idle)", ".mx-title"])
    if (app.querySelector(must)?.checkVisibility() === false) wrong.add(`not in sight: ${must}`);
  return [...wrong];
};

const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
// A ground that belongs to the other theme.
const patches = () => {
  const wrong = new Set(), dark = document.querySelector(".mx-explorer").dataset.theme === "dark";
  const filled = ".mx-action, .mx-play, .mx-mark, .mod-primary, .progress-bar, .noUi-connect";
  for (const e of [document.body, ...document.querySelectorAll(".mx-explorer, .mx-explorer *")]) {
    if (!e.checkVisibility({ visibilityProperty: true }) || e.matches(filled)) continue;
    const { width, height } = e.getBoundingClientRect();
    const [r, g, b, opacity = 1] = channels(getComputedStyle(e).backgroundColor);
    if (opacity > 0.5 && width * height > 400 && (dark ? r + g + b > 300 : r + g + b < 500)) wrong.add(nameOf(e));
  }
  return [...wrong];
};

// Text that a box cuts, or that no scrolling brings back: with a visitor's larger text.
const cut = () => {
  const wrong = new Set(), app = document.querySelector(".mx-explorer"), hides = (v) => /hidden|clip/.test(v);
  for (const e of app.querySelectorAll("*")) {
    if (!e.checkVisibility({ visibilityProperty: true }) || e.closest("svg, canvas, .mx-said, .mx-unseen, select, [popover]")) continue;
    const { overflowX, overflowY } = getComputedStyle(e);
    if (hides(overflowX) && e.scrollWidth > e.clientWidth + 1) wrong.add(`cut at its side: ${nameOf(e)} ${e.scrollWidth} of ${e.clientWidth}`);
    if (hides(overflowY) && e.scrollHeight > e.clientHeight + 1) wrong.add(`cut below: ${nameOf(e)} ${e.scrollHeight} of ${e.clientHeight}`);
    if (e.matches(".mx-card") && e.scrollWidth > e.clientWidth + 1) wrong.add(`wider than its card: ${nameOf(e)}`);
    const { left, right } = e.getBoundingClientRect();
    if (!e.closest(".mx-table") && (left < -1 || right > innerWidth + 1)) wrong.add(`outside: ${nameOf(e)} ${[left, right].map(Math.round)}`);
  }
  return [...wrong];
};
