// Put an open box under an element, or over it where there is no room below; what `around` holds stays
// in sight.
const standAt = (box, at, around = at) => {
  const b = at.getBoundingClientRect(), { top, bottom } = around.getBoundingClientRect(), r = box.getBoundingClientRect(), zoom = box.currentCSSZoom || 1;
  const left = Math.max(8, Math.min(b.left + (b.width - r.width) / 2, innerWidth - r.width - 8));
  const below = bottom + 6 + r.height < innerHeight - 8;
  box.style.left = `${left / zoom}px`;
  box.style.top = `${(below ? bottom + 6 : Math.max(8, top - r.height - 6)) / zoom}px`;
};
// Put an open box to the right of a place, level with its foot, a higher one with its head; return whether
// there is room.
const standBeside = (box, { right, top, bottom }) => {
  const r = box.getBoundingClientRect(), zoom = box.currentCSSZoom || 1;
  if (right + 10 + r.width > innerWidth - 8) return false;
  box.style.left = `${(right + 10) / zoom}px`;
  box.style.top = `${Math.max(8, Math.min(Math.max(bottom - r.height, top), innerHeight - 8 - r.height)) / zoom}px`;
  return true;
};
// A box that opens over everything at its button, however the boxes around it clip and scroll. A
// press elsewhere, Escape and a second press close it.
const popup = (button, box) => {
  box.popover = "auto";
  button.popoverTargetElement = box;
  box.addEventListener("toggle", (e) => { if (e.newState === "open") standAt(box, button); });
};

// --- words that are explained where they stand: see words/glossary.py ----------------------------
const NAMED = GLOSSARY.map(([pattern]) => new RegExp(`(?<![\\p{L}\\p{N}/])(?:${pattern})(?![\\p{L}\\p{N}])`, "u"));
// One card for all words of a page: it opens under the pointer, by keys, and by a touch.
const cardOf = (app) => {
  const found = app.querySelector(":scope > .mx-term-card"), card = found || make("div", "mx-popup mx-term-card", { role: "tooltip", popover: "auto" });
  if (!found) app.append(card);
  return card;
};
// Where the pointer was when it last moved; one for all scripts of a page.
const pointer = (window.mxPointer ??= {});
if (!("x" in pointer)) {
  pointer.x = null;
  document.addEventListener("pointermove", (e) => Object.assign(pointer, { x: e.screenX, y: e.screenY }), true);
}
const explained = (word, sentence, term) => {
  const made = makeButton("mx-term", word, undefined, (e) => { e.preventDefault(); e.stopPropagation(); show(); }, { ariaDescription: sentence });
  let card = null;
  // Plane, band and charts light what it names: see `onLight`.
  const light = (on) => { if (term) made.dispatchEvent(new CustomEvent("mx-light", { bubbles: true, detail: { term: on ? term : "" } })); };
  const show = () => {
    light(true);
    card = cardOf(made.closest(".mx-app"));
    card.textContent = sentence;
    card.showPopover();
    standAt(card, made, made.closest(".mx-headline") ?? made);
  };
  const hide = () => { light(false); if (card?.matches(":popover-open")) card.hidePopover(); card = null; };
  // Not where the page moved under a pointer that rests: then it enters where it was before.
  made.addEventListener("pointerenter", (e) => { if (e.pointerType === "mouse" && (pointer.x !== e.screenX || pointer.y !== e.screenY)) show(); });
  made.addEventListener("pointermove", (e) => { if (e.pointerType === "mouse" && !card && (e.movementX || e.movementY)) show(); });
  made.addEventListener("pointerleave", (e) => { if (e.pointerType === "mouse") hide(); });
  made.addEventListener("focus", () => { if (made.matches(":focus-visible")) show(); });
  made.addEventListener("blur", hide);
  return made;
};
// Put `text` into `el`, each known word at its first place as a button; the same text is left alone.
const explain = (el, text) => {
  if (el.mxText === text) return;
  el.mxText = text;
  let parts = [text || ""];
  GLOSSARY.forEach(([, sentence, term], k) => {
    const i = parts.findIndex((part) => typeof part === "string" && NAMED[k].test(part));
    if (i < 0) return;
    const found = NAMED[k].exec(parts[i]), end = found.index + found[0].length;
    parts.splice(i, 1, parts[i].slice(0, found.index), explained(found[0], sentence, term), parts[i].slice(end));
  });
  for (let k = 1; k < parts.length; k += 2) { // words stand at odd places; marks stay on their line
    const open = /[“(]*$/.exec(parts[k - 1])[0], close = /^[.,:;!?)”]*/.exec(parts[k + 1])[0];
    parts[k - 1] = parts[k - 1].slice(0, parts[k - 1].length - open.length);
    parts[k + 1] = parts[k + 1].slice(close.length);
    if (open || close) parts[k] = make("span", "mx-together", {}, open, parts[k], close);
  }
  if (parts.length > 1) el.replaceChildren(...parts.filter((part) => part !== ""));
  else write(el, parts[0]);
};
