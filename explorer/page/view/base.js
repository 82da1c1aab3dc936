// What all canvas views share: colours from the page's CSS, a sharp canvas that follows its size,
// frames from messages, and pictures of the very frame as PNG and SVG.

// Names of CSS variables (--mx-pos ...): the page sets them, light and dark; here are the light ones.
const COLOURS = {
  bg: "#f7f8fa", card: "#ffffff", line: "#e3e6ea", ink: "#16191d", ink2: "#5b6570", ink3: "#707a84",
  accent: "#2f5bea", soft: "#eef1f5", good: "#0a7d55", warn: "#9a6700", bad: "#b3261e",
  pos: "#0072B2", neg: "#D55E00", third: "#009E73", fourth: "#CC79A7",
};
const colours = (el) => {
  const style = getComputedStyle(el);
  const read = (name) => style.getPropertyValue(`--mx-${name}`).trim() || COLOURS[name];
  return Object.fromEntries(Object.keys(COLOURS).map((name) => [name, read(name)]));
};
// What one picture of a page lights in the others: {line, ink, pulls}, a line of the plane [a, b, c] in
// shares and how strongly each point pulls at it; {point}, an index; {place}, where a pointer is on the plane;
// {term}, a key of the glossary whose word is looked at. Each is null, -1 or "" where that is over.
const tellLight = (el, what) => el.dispatchEvent(new CustomEvent("mx-light", { bubbles: true, detail: what }));
const onLight = (el, call) => listen(document, "mx-light", (e) => {
  const app = el.closest(".mx-app");
  if (app && app === e.target.closest?.(".mx-app") && e.target !== el) call(e.detail);
});
const FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";

// Colour "#rrggbb" with an opacity of 0 to 1.
const faded = (colour, opacity) =>
  colour + Math.round(255 * Math.min(1, Math.max(0, opacity))).toString(16).padStart(2, "0");

const rgb = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
// Viridis in 256 shades from dark to bright, of energies: bright is low, in both themes.
const VIRIDIS = (() => {
  const stops = ["#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#fde725"].map(rgb);
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (stops.length - 1), k = Math.min(Math.floor(at), stops.length - 2);
    return stops[k].map((v, c) => Math.round(v + (at - k) * (stops[k + 1][c] - v)));
  });
})();
// A path through rows of x, y; a NaN breaks it.
const polyline = (context, { data }, X, Y) => {
  let open = false;
  context.beginPath();
  for (let i = 0; i < data.length; i += 2) {
    const gap = Number.isNaN(data[i]) || Number.isNaN(data[i + 1]);
    if (!gap && open) context.lineTo(X(data[i]), Y(data[i + 1]));
    else if (!gap) context.moveTo(X(data[i]), Y(data[i + 1]));
    open = !gap;
  }
};

// {name: {data, shape}} and plain values of one message. An array of kind "=" is that of the frame
// before; a browser that has none gets the whole frame soon.
const unpack = (message, buffers, before) => {
  const kinds = { f: Float32Array, u: Uint8Array, i: Int32Array };
  let i = 0;
  const frame = { ...message.values, number: message.frame, sent: message.sent };
  message.arrays.forEach(([name, kind, shape]) => {
    if (kind === "=") { if (before?.[name]) frame[name] = before[name]; return; }
    const b = buffers[i++], bytes = b.buffer.slice(b.byteOffset, b.byteOffset + b.byteLength);
    frame[name] = { data: new kinds[kind](bytes), shape };
  });
  return frame;
};

// Where an element stands on the screen, with its size in its own pixels, and how many pixels of the
// screen are one of those: more where the page is zoomed for a visitor's larger text.
const rectOf = (el) => {
  const r = el.getBoundingClientRect(), zoom = el.currentCSSZoom || 1;
  return { left: r.left, top: r.top, width: r.width / zoom, height: r.height / zoom, zoom };
};
// The place of a pointer event in an element, in the element's own pixels.
const placeIn = (el, event) => {
  const { left, top, zoom } = rectOf(el);
  return [(event.clientX - left) / zoom, (event.clientY - top) / zoom];
};

// A canvas that fills `el`, as sharp as the screen. `draw(context, {width, height}, colours)`.
// An opaque one is the colour of a card where nothing is drawn: it is laid on the screen as it is,
// where others are mixed with what lies below. Returns {canvas, redraw, close}; redraw() draws at the next animation frame, many calls once; an event
// "mx-paint" of the document at once, for paper.
const surface = (el, draw, opaque = false) => {
  const canvas = make("canvas", "", { style: "position:absolute;inset:0;width:100%;height:100%;display:block" });
  if (getComputedStyle(el).position === "static") el.style.position = "relative";
  el.append(canvas);
  let waiting = 0;
  const paint = () => {
    waiting = 0;
    const r = rectOf(el), k = (window.devicePixelRatio || 1) * r.zoom;
    if (!r.width || !r.height) return;
    const [w, h] = [Math.round(r.width * k), Math.round(r.height * k)];
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
    const context = canvas.getContext("2d", { alpha: !opaque }), paints = colours(el);
    context.setTransform(k, 0, 0, k, 0, 0);
    if (opaque) { context.fillStyle = paints.card; context.fillRect(0, 0, r.width, r.height); }
    else context.clearRect(0, 0, r.width, r.height);
    draw(context, { width: r.width, height: r.height }, paints);
  };
  const redraw = () => { if (!waiting) waiting = requestAnimationFrame(paint); };
  // The theme is a class or attribute of an ancestor, or the system's. There are none before `el` is
  // in the page, which its first size tells.
  const theme = new MutationObserver(redraw);
  let top = null;
  const watcher = new ResizeObserver(() => {
    if (top !== el.getRootNode()) {
      top = el.getRootNode();
      theme.disconnect();
      for (let up = el; up; up = up.parentElement)
        theme.observe(up, { attributes: true, attributeFilter: ["class", "data-jp-theme-light", "data-theme"] });
    }
    redraw();
  });
  watcher.observe(el);
  const ends = [listen(systemTheme, "change", redraw), listen(document, "mx-paint", paint)];
  const close = () => { watcher.disconnect(); theme.disconnect(); ends.forEach((end) => end()); };
  return { canvas, redraw, close };
};

// Take frames of a view's model: `take(frame)` keeps the newest, `redraw` paints it. When it is on
// screen the kernel gets its number, if it sets its pace by it, and `el` tells by an event "mx-drawn".
const follow = (model, redraw, take, el, answers = true) => {
  let newest = null, waiting = 0;
  const answer = () => {
    waiting = 0;
    if (answers) attempt(() => model.send({ kind: "drawn", frame: newest.number })); // the page may be leaving
    el.dispatchEvent(new CustomEvent("mx-drawn", { bubbles: true, detail: { frame: newest.number, sent: newest.sent } }));
  };
  const onMessage = (message, buffers) => {
    if (message.kind !== "frame") return;
    newest = unpack(message, buffers, newest);
    take(newest);
    redraw(); // before the answer, in the same animation frame
    if (!waiting) waiting = requestAnimationFrame(answer);
  };
  const ask = () => attempt(() => model.send({ kind: "ready" })); // the kernel may be gone
  const ends = [heed(model, "msg:custom", onMessage), listen(document, "mx-again", ask)]; // after a line that broke
  ask();
  return () => ends.forEach((end) => end());
};
// Calls `call` at most every `ms`, always with what was given last; at once where that is asked for.
const paced = (ms, call) => {
  let last = -1e9, waiting = null;
  const run = (given) => { waiting = null; last = performance.now(); call(given); };
  const ask = (given, now) => {
    clearTimeout(waiting);
    const rest = last + ms - performance.now();
    if (now || rest <= 0) run(given); else waiting = setTimeout(run, rest, given);
  };
  return { ask, end: () => clearTimeout(waiting) };
};

// --- pictures: PNG of a canvas drawn anew at `scale`, SVG by a context that writes -------------
const number = (v) => (Math.round(v * 100) / 100).toString();
class SvgContext {
  constructor(width, height) {
    Object.assign(this, {
      width, height, out: [], defs: [], d: "", stack: [], matrix: [1, 0, 0, 1, 0, 0], clips: [],
      fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, font: "12px sans-serif",
      textAlign: "start", textBaseline: "alphabetic", lineCap: "butt", lineJoin: "miter", dash: [],
      imageSmoothingEnabled: true,
    });
    this.measure = make("canvas").getContext("2d");
  }
  at(x, y) {
    const [a, b, c, d, e, f] = this.matrix;
    return `${number(a * x + c * y + e)} ${number(b * x + d * y + f)}`;
  }
  save() {
    const { fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, textBaseline, lineCap, lineJoin } = this;
    this.stack.push({
      fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, textBaseline, lineCap, lineJoin,
      dash: this.dash, matrix: [...this.matrix], depth: this.clips.length,
    });
  }
  restore() {
    const kept = this.stack.pop();
    if (!kept) return;
    while (this.clips.length > kept.depth) { this.clips.pop(); this.out.push("</g>"); }
    delete kept.depth;
    Object.assign(this, kept);
  }
  translate(x, y) { const m = this.matrix; m[4] += m[0] * x + m[2] * y; m[5] += m[1] * x + m[3] * y; }
  scale(x, y) { const m = this.matrix; m[0] *= x; m[1] *= x; m[2] *= y; m[3] *= y; }
  rotate(angle) {
    const [a, b, c, d] = this.matrix, k = Math.cos(angle), s = Math.sin(angle);
    this.matrix.splice(0, 4, a * k + c * s, b * k + d * s, c * k - a * s, d * k - b * s);
  }
  setLineDash(dash) { this.dash = dash; }
  beginPath() { this.d = ""; }
  moveTo(x, y) { this.d += `M${this.at(x, y)}`; }
  lineTo(x, y) { this.d += `${this.d ? "L" : "M"}${this.at(x, y)}`; }
  closePath() { this.d += "Z"; }
  rect(x, y, w, h) { this.moveTo(x, y); this.lineTo(x + w, y); this.lineTo(x + w, y + h); this.lineTo(x, y + h); this.closePath(); }
  arc(x, y, r, from, to) {
    const steps = Math.abs(to - from) >= 2 * Math.PI ? 2 : 1, turn = Math.min(to - from, 2 * Math.PI) / steps;
    const k = Math.hypot(this.matrix[0], this.matrix[1]);
    this.lineTo(x + r * Math.cos(from), y + r * Math.sin(from));
    for (let i = 1; i <= steps; i++) {
      const t = from + i * turn;
      this.d += `A${number(r * k)} ${number(r * k)} 0 ${Math.abs(turn) > Math.PI ? 1 : 0} ${turn > 0 ? 1 : 0} ${this.at(x + r * Math.cos(t), y + r * Math.sin(t))}`;
    }
  }
  quadraticCurveTo(a, b, x, y) { this.d += `Q${this.at(a, b)} ${this.at(x, y)}`; }
  bezierCurveTo(a, b, c, d, x, y) { this.d += `C${this.at(a, b)} ${this.at(c, d)} ${this.at(x, y)}`; }
  paintPath(fill) {
    if (!this.d) return;
    const paint = fill
      ? `fill="${this.fillStyle}" stroke="none"`
      : `fill="none" stroke="${this.strokeStyle}" stroke-width="${number(this.lineWidth)}" stroke-linecap="${this.lineCap}" stroke-linejoin="${this.lineJoin}"` +
        (this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "");
    const alpha = this.globalAlpha < 1 ? ` opacity="${number(this.globalAlpha)}"` : "";
    this.out.push(`<path d="${this.d}" ${paint}${alpha}/>`);
  }
  fill() { this.paintPath(true); }
  stroke() { this.paintPath(false); }
  clip() {
    const name = `clip${this.defs.length}`;
    this.defs.push(`<clipPath id="${name}"><path d="${this.d}"/></clipPath>`);
    this.out.push(`<g clip-path="url(#${name})">`);
    this.clips.push(name);
  }
  fillRect(x, y, w, h) { const kept = this.d; this.d = ""; this.rect(x, y, w, h); this.fill(); this.d = kept; }
  strokeRect(x, y, w, h) { const kept = this.d; this.d = ""; this.rect(x, y, w, h); this.stroke(); this.d = kept; }
  clearRect() {}
  measureText(text) { this.measure.font = this.font; return this.measure.measureText(text); }
  strokeText() {}
  fillText(text, x, y) {
    const anchor = { center: "middle", right: "end", end: "end" }[this.textAlign] || "start";
    const base = { middle: "central", top: "hanging", bottom: "text-after-edge" }[this.textBaseline] || "alphabetic";
    const clean = String(text).replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
    const [px, py] = this.at(x, y).split(" "), size = /(\d+(?:\.\d+)?)px/.exec(this.font)?.[1] || "12";
    const angle = (Math.atan2(this.matrix[1], this.matrix[0]) * 180) / Math.PI;
    const turned = angle ? ` transform="rotate(${number(angle)} ${px} ${py})"` : "";
    const weight = /\b(bold|[5-9]00)\b/.exec(this.font)?.[1];
    this.out.push(`<text x="${px}" y="${py}" fill="${this.fillStyle}" font-size="${size}" font-family="${FONT.replace(/"/g, "'")}"` +
      `${weight ? ` font-weight="${weight}"` : ""} text-anchor="${anchor}" dominant-baseline="${base}"${turned}>${clean}</text>`);
  }
  drawImage(image, x, y, w, h) {
    const [px, py] = this.at(x, y).split(" ");
    const smooth = this.imageSmoothingEnabled ? "" : ' style="image-rendering:pixelated"';
    this.out.push(`<image x="${px}" y="${py}" width="${number(w * this.matrix[0])}" height="${number(h * this.matrix[3])}" preserveAspectRatio="none"${smooth} href="${image.toDataURL()}"/>`);
  }
  toString() {
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${this.width} ${this.height}" width="${this.width}" height="${this.height}">` +
      `<defs>${this.defs.join("")}</defs>${this.out.join("")}${"</g>".repeat(this.clips.length)}</svg>`;
  }
}
// Put a caption and rows of words into a table, the first of them its head, for a screen reader:
// into the cells that are there.
const fillRows = (table, caption, rows) => {
  table.caption ??= make("caption");
  write(table.caption, caption);
  while (table.rows.length > rows.length) table.deleteRow(-1);
  rows.forEach((texts, i) => {
    const row = table.rows[i] || table.insertRow();
    texts.forEach((text, k) => write(row.cells[k] || row.appendChild(make(i ? "td" : "th")), text));
  });
};
// Words as the name of a file.
const slug = (words) => (words.toLowerCase().match(/[\p{L}\p{N}]+/gu) || ["chart"]).join("-").slice(0, 60);
// A small button on the picture that `draw` draws in `el`, which opens the ways to save it: PNG and
// SVG of what is on screen, made here; for paper and as numbers, made by the kernel, unless the page
// plays without one (`model.alone`).
const offerPictures = (model, root, el, draw, name) => {
  const button = makeButton("mx-save", "", "Save this picture", undefined, { ariaLabel: "Save this picture" }), view = Math.random();
  button.innerHTML = `<svg viewBox="0 0 20 20" aria-hidden="true" class="mx-icon"><path d="M10 3v9M6 9l4 4 4-4M4 16h12"/></svg>`;
  const box = make("div", "mx-popup mx-save-box"), note = make("p", "", { role: "status" });
  for (const [kind, title, here] of [
    ["png", "As on screen, at twice its size", true], ["svg", "As on screen, to edit", true],
    ["pdf", "For print, a column wide", false], ["csv", "Its numbers, as a table", false], ["npz", "Its numbers, as arrays for NumPy", false],
  ])
    if (here || !model.alone) box.append(makeButton("mx-flat", kind.toUpperCase(), title, () => {
      box.hidePopover();
      if (here) savePicture(el, draw, kind, name()); else model.send({ kind: "save", as: kind, view });
    }));
  box.append(note);
  const take = (message, buffers) => {
    if (message.view !== view) return;
    if (message.kind === "file") saveFile(message.name, message.type, buffers[0]);
    if (message.kind === "unsaved") { note.textContent = message.words; box.showPopover({ source: button }); }
  };
  popup(button, box);
  box.addEventListener("toggle", (e) => { if (e.newState === "closed") note.textContent = ""; });
  root.classList.add("mx-picture");
  root.append(button, box);
  return heed(model, "msg:custom", take);
};
// Save what `draw` draws in `el`, as "png" (twice the size on screen) or "svg".
const savePicture = (el, draw, kind, name) => {
  const r = rectOf(el), size = { width: r.width, height: r.height }, paints = colours(el);
  if (!r.width || !r.height) return; // out of sight
  const drawOn = (context) => {
    context.fillStyle = paints.card;
    context.fillRect(0, 0, size.width, size.height);
    draw(context, size, paints);
  };
  if (kind === "svg") {
    const context = new SvgContext(size.width, size.height);
    drawOn(context);
    return saveFile(`${name}.svg`, "image/svg+xml", context.toString());
  }
  const canvas = make("canvas", "", { width: 2 * size.width, height: 2 * size.height });
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  drawOn(context);
  canvas.toBlob((blob) => saveFile(`${name}.png`, blob.type, blob));
};
