// A square of 28 by 28 pixels that a hand draws on: a white line on black, as in MNIST. By keys arrows
// move the pen, and Space puts it down or lifts it.
const PIXELS = 28, PEN = 2.4; // the line's width, in pixels
function render({ model, el }) {
  el.classList.add("mx-digit-pad");
  const canvas = make("canvas", "", { width: PIXELS, height: PIXELS, tabIndex: 0, role: "application",
    "aria-label": "Draw a digit. Arrows move the pen, Space puts it down or lifts it.", title: "Draw a digit here" });
  el.replaceChildren(canvas);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  let pen = [PIXELS / 2, PIXELS / 2], down = false;
  const wipe = () => { context.fillStyle = "#000"; context.fillRect(0, 0, PIXELS, PIXELS); };
  const tell = () => {
    const { data } = context.getImageData(0, 0, PIXELS, PIXELS);
    model.send({ kind: "drawn" }, undefined, [Uint8Array.from({ length: PIXELS ** 2 }, (_, i) => data[4 * i]).buffer]);
  };
  const line = (to) => {
    Object.assign(context, { strokeStyle: "#fff", lineWidth: PEN, lineCap: "round", lineJoin: "round" });
    context.beginPath(); context.moveTo(...pen); context.lineTo(to[0] + 0.01, to[1]); context.stroke();
    pen = to;
  };
  const place = (e) => {
    const r = canvas.getBoundingClientRect();
    return [((e.clientX - r.left) / r.width) * PIXELS, ((e.clientY - r.top) / r.height) * PIXELS];
  };
  canvas.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    e.preventDefault(); canvas.focus({ preventScroll: true }); canvas.setPointerCapture(e.pointerId);
    down = true; pen = place(e); line(pen);
  });
  canvas.addEventListener("pointermove", (e) => { if (down && e.pointerId !== undefined && canvas.hasPointerCapture(e.pointerId)) line(place(e)); });
  const up = () => { if (down) { down = false; tell(); } };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("keydown", (e) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
    if (!step && e.key !== " ") return;
    e.preventDefault();
    if (e.key === " ") { if (down) up(); else { down = true; line(pen); } return; }
    const to = pen.map((v, i) => Math.min(PIXELS - 3, Math.max(3, v + step[i])));
    if (down) line(to); else pen = to;
  });
  wipe();
  return heed(model, "change:blank", wipe);
}
export default { render };
