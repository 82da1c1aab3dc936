// After the opening: tell the kernel what the visitor wished for; when a visitor draws for the first
// time two marks, one after the other. Once read they are never shown again; Escape or a click elsewhere ends them.
const KEY = "mx-marks-seen";
const seen = () => attempt(() => localStorage.getItem(KEY) !== null, true); // likewise without storage
const GAP = 12; // px

const STYLE = `position:fixed;inset:auto;margin:0;border:0;width:max-content;padding:8px 8px 8px 14px;border-radius:12px;font-size:14px;line-height:1.4;align-items:center;gap:12px;
  background:var(--mx-ink);color:var(--mx-card);box-shadow:0 8px 24px #00000040`;
const BUTTON = `flex:none;border:0;border-radius:8px;padding:4px 12px;font:inherit;font-weight:600;cursor:pointer;
  background:var(--mx-card);color:var(--mx-ink)`;

// Where it covers no headline: under a part of the head, or to the left of another.
const placeAt = (box, part) => {
  const r = part.getBoundingClientRect(), zoom = box.currentCSSZoom || 1;
  box.style.maxWidth = `${Math.min(420, innerWidth - 2 * GAP) / zoom}px`;
  const b = box.getBoundingClientRect();
  const fits = r.left > b.width + 2 * GAP && !part.closest(".mx-head");
  const edge = (selector, side) => part.closest(".mx-app").querySelector(selector)?.getBoundingClientRect()[side] || innerWidth;
  const title = edge(".mx-title", "left"), plane = Math.min(edge(".mx-stage", "right"), r.left);
  const left = fits ? plane - GAP - b.width : Math.min(r.left, (title > b.width ? title : innerWidth) - b.width - GAP);
  const top = fits ? r.top : r.bottom + GAP;
  box.style.left = `${Math.max(GAP, left) / zoom}px`;
  box.style.top = `${Math.min(Math.max(GAP, top), innerHeight - b.height - GAP) / zoom}px`;
};

// Show the marks; returned is what takes them away. A hand that closes them has read them.
const showMarks = (app, marks, onClose) => {
  let at = -1, box = null, part = null;
  const place = () => { if (box && part) placeAt(box, part); };
  const close = () => {
    box?.remove();
    box = null;
    ends.forEach((end) => end());
  };
  const read = () => {
    attempt(() => localStorage.setItem(KEY, "1"));
    close();
  };
  const key = (e) => { // another key than Tab goes on to where it was meant for
    if (e.key === "Tab" || (e.key !== "Escape" && box?.contains(e.target))) return;
    if (e.key === "Escape") e.stopPropagation();
    read();
  };
  const outside = (e) => { if (!box?.contains(e.target)) read(); };
  const next = () => {
    box?.remove();
    do at += 1; while (at < marks.length && !(part = visible(app, marks[at][0])));
    if (at >= marks.length) return void read();
    const button = makeButton("", at + 1 < marks.length ? "Next" : "Done", undefined, next, { style: BUTTON });
    box = make("div", "mx-mark-box", { role: "status", style: STYLE, popover: "manual" }, // over all, and cut by no cell of a notebook
      make("div", "", { textContent: marks[at][1], style: "flex:1 1 auto;text-wrap:balance" }), make("small", "", { textContent: `${at + 1} of ${marks.length}`, style: "flex:none" }), button);
    app.append(box);
    box.showPopover();
    box.style.display = "flex";
    place();
  };
  const ends = [listen(document, "keydown", key, true), listen(document, "pointerdown", outside, true), listen(window, "resize", place)];
  onClose(close);
  next();
  return close;
};
// At once where one draws already, else when one turns to it, outside a lesson and while nobody presents;
// they leave with the stage, and come again until they are read.
const whenDrawing = (app, show, onClose) => {
  let hide = null;
  const look = () => {
    // Beside a trained network they would stand in the way of what is asked of it.
    const draws = app.querySelector(".mx-tab")?.classList.contains("now") && !app.querySelector(".mx-tab.done") && !visible(app, ".mx-lesson") && !app.classList.contains("mx-present");
    if (draws && !hide && !seen()) hide = show();
    if (!draws && hide) { hide(); hide = null; }
    if (seen()) watch.disconnect();
  };
  const watch = new MutationObserver(look), tabs = app.querySelector(".mx-tabs");
  if (tabs) watch.observe(tabs, { subtree: true, attributes: true, attributeFilter: ["class"] });
  watch.observe(app, { attributes: true, attributeFilter: ["class"] });
  onClose(() => watch.disconnect());
  look();
};
const visible = (app, selector) => {
  const part = app.querySelector(selector);
  return part && part.getBoundingClientRect().width > 0 ? part : null;
};

const build = (el, send, onClose) => {
  el.style.display = "none";
  let gone = false, marks = [];
  onClose(() => { gone = true; });
  // A link stands behind "#" in the address; one pasted there later does not load the page again.
  // At first the page is left to draw itself: a card that goes while it is made is an error in the host.
  const follow = () => { if (/^#mx[a-z]?\d/.test(location.hash)) send("link", location.hash.slice(1)); };
  if (document.body.dataset.voila !== undefined) {
    onClose(listen(window, "hashchange", follow));
    onClose(listen(document, "mx-drawn", follow, { once: true }));
  }
  const grant = (wish) => { // what was pressed in the opening
    if (wish === "own") send("own");
    if (/^tab\d$/.test(wish)) el.closest(".mx-app")?.querySelectorAll(".mx-tab")[Number(wish[3])]?.click();
  };
  const begin = (wish) => {
    if (gone) return;
    grant(wish);
    // An address that ends in ?lesson=3 opens that lesson, once.
    const asked = new URLSearchParams(location.search).get("lesson");
    if (asked && /^\d+$/.test(asked) && !window.mxLesson) {
      window.mxLesson = true;
      return void send("lesson", Number(asked));
    }
    const app = el.closest(".mx-app");
    if (app && !seen()) whenDrawing(app, () => showMarks(app, marks, onClose), onClose);
  };
  // The opening played again ends in a wish, too.
  onClose(listen(document, "mx-replayed", (e) => grant(e.detail)));
  // In a notebook there is no opening: the marks come when the plane has been drawn.
  const drawn = () => new Promise((done) => document.addEventListener("mx-drawn", () => done(""), { once: true }));
  (window.mxOpening ? window.mxOpening.ended : drawn()).then(begin);
  return (state) => { marks = state.marks; };
};
