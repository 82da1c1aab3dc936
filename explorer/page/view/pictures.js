// Images as tiles, those of one tile above each other. The pointer, or the focus, shows a tile large
// with what is said of it. Where tiles can be pressed each is a button; else arrows go through them.
const LARGE = 196; // px a side, of an image shown large
const paintImage = (canvas, pixels, k, [, h, w, c]) => {
  canvas.width = w; canvas.height = h;
  const context = canvas.getContext("2d"), image = context.createImageData(w, h), at = k * h * w * c;
  for (let i = 0; i < h * w; i++) {
    for (let j = 0; j < 3; j++) image.data[4 * i + j] = pixels[at + i * c + (c > 1 ? j : 0)];
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
};
const bytesOf = (given) => (given?.buffer ? new Uint8Array(given.buffer, given.byteOffset, given.byteLength) : new Uint8Array());

function render({ model, el }) {
  el.classList.add("mx-pictures");
  const grid = make("div", "mx-pictures-grid"), card = make("div", "mx-popup mx-pictures-card", { popover: "manual" });
  let tiles = [], pixels = new Uint8Array(), at = -1, all = false;
  const more = makeButton("mx-flat", "", undefined, () => { all = !all; fold(); });
  el.replaceChildren(grid, more, card);
  const rows = () => model.get("shape")[0];
  const hide = () => { at = -1; if (card.matches(":popover-open")) card.hidePopover(); };
  const show = (i) => {
    const given = model.get("tiles")[i];
    if (!given) return;
    at = i;
    const names = model.get("captions"), pair = make("div", "mx-pictures-pair");
    for (let r = 0; r < rows(); r++) {
      const canvas = make("canvas", "", { style: `width:${LARGE}px` });
      paintImage(canvas, pixels, i * rows() + r, model.get("shape"));
      pair.append(make("figure", "", {}, canvas, make("figcaption", "", { textContent: names[r] || "" })));
    }
    card.replaceChildren(pair, make("div", "mx-pictures-words", { textContent: given.words || "" }));
    card.showPopover();
    // Beside all of them: it covers none.
    const ends = tiles.filter((tile) => !tile.hidden).map((tile) => tile.getBoundingClientRect());
    if (!standBeside(card, { right: Math.max(...ends.map((r) => r.right)), top: ends[0].top, bottom: ends.at(-1).bottom })) standAt(card, tiles[i]);
  };
  const move = (e, i) => {
    const wide = Math.max(1, tiles.filter((tile) => !tile.hidden && tile.offsetTop === tiles[0].offsetTop).length);
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: wide, ArrowUp: -wide }[e.key];
    if (e.key === "Escape") hide();
    if (!step || !tiles[i + step] || tiles[i + step].hidden) return;
    e.preventDefault();
    tiles.forEach((tile, k) => { tile.tabIndex = k === i + step ? 0 : -1; });
    tiles[i + step].focus();
  };
  // The first few are large; the rest, and all at their size, come by a press.
  const fold = () => {
    const few = model.get("few") || tiles.length, folded = few < tiles.length && !all;
    tiles.forEach((tile, i) => put(tile, "hidden", folded && i >= few));
    grid.classList.toggle("mx-few", folded);
    put(more, "hidden", few >= tiles.length);
    put(more, "textContent", folded ? `All ${tiles.length}` : `The best ${few} alone`);
    attribute(more, "aria-expanded", String(!folded));
  };
  const tileOf = (i) => {
    const more = { tabIndex: i ? -1 : 0, on: {
      pointerenter: (e) => { if (e.pointerType === "mouse") show(i); },
      pointerleave: hide, blur: hide, keydown: (e) => move(e, i),
      focus: (e) => { if (e.target.matches(":focus-visible")) show(i); },
      click: () => { if (model.get("pressable")) model.send({ kind: "press", tile: i }); else show(i); },
    } };
    return model.get("pressable") ? make("button", "mx-tile", { type: "button", ...more }) : make("div", "mx-tile", { role: "img", ...more });
  };
  const draw = () => {
    const given = model.get("tiles"), tag = model.get("pressable") ? "BUTTON" : "DIV";
    pixels = bytesOf(model.get("pixels"));
    const [, h, w, c] = model.get("shape");
    if (pixels.length !== given.length * rows() * h * w * c) return; // the rest is on its way
    if (tiles.length !== given.length || tiles[0]?.tagName !== tag) {
      tiles = given.map((_, i) => tileOf(i));
      grid.replaceChildren(...tiles);
    }
    given.forEach((one, i) => {
      const tile = tiles[i], names = model.get("captions");
      while (tile.children.length > rows()) tile.lastChild.remove();
      while (tile.children.length < rows()) tile.append(make("canvas"));
      for (let r = 0; r < rows(); r++) paintImage(tile.children[r], pixels, i * rows() + r, model.get("shape"));
      tile.dataset.mark = one.mark || "";
      attribute(tile, "aria-label", `${i + 1} of ${given.length}. ${names.join(", ")}. ${one.words || ""}`);
      if (tag === "BUTTON") { attribute(tile, "aria-pressed", !!one.on); put(tile, "title", one.words || ""); }
    });
    fold();
    if (at >= 0) show(at);
  };
  draw();
  const ends = ["tiles", "pixels", "shape", "captions", "pressable", "few"].map((name) => heed(model, `change:${name}`, draw));
  return () => ends.forEach((end) => end());
}
export default { render };
