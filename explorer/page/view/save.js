// Pictures that one saves: PNG of a canvas drawn anew at `scale`, SVG by a context that writes.
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
