// The plane on a page with a kernel: the newest frame on a canvas, with pad, legend and lights.
const PARTING = 1200; // ms in which the halves of a point go apart; arbitrary
const USUAL = 560; // px a side, of a plane whose marks have the usual size
function render({ model, el }) {
  const memory = {}, lit = { line: null, ink: 0, pulls: [], point: -1, term: "" };
  let frame = null, start = null; // a start that a hand holds: drawn before the kernel tells of it
  const behind = keepBackdrop(), calm = matchMedia("(prefers-reduced-motion: reduce)");
  let apart = "", parted = 0; // the two places of a point that is shown as two, and when they were told
  const now = () => {
    const share = calm.matches ? 1 : Math.min(1, (performance.now() - parted) / PARTING);
    if (frame.apart && share < 1) { shown.redraw(); return atApart(frame, share * share * (3 - 2 * share)); }
    return start && frame.starts ? atStart(frame, start) : frame;
  };
  const paint = (context, size, paints, ...from) => {
    const scale = model.get("present") ? Math.min(1.4, Math.max(1, size.width / USUAL)) : 1; // marks grow as the plane does
    if (frame) paintPlane(context, { ...(shown.canvas.mxPainted = now()), scale, lit }, size, paints, ...from);
  };
  const shown = surface(el, (...given) => paint(...given, behind), true);
  const pad = attachPad(model, el);
  const unsave = offerPictures(model, el, el, paint, () => "plane");
  const legend = attachLegend(el), surfaceOf = el.querySelector(".mx-pad-surface");
  surfaceOf.addEventListener("pointermove", (e) => {
    put(surfaceOf, "title", (frame && sentenceUnder(frame, surfaceOf, e)) || model.get("tip"));
    look(placeIn(surfaceOf, e), surfaceOf.getBoundingClientRect());
  });
  // Where the pointer or the cursor of the keys is: other pictures light what is there.
  const look = (at, { width, height }) => {
    const [u, v] = [(2 * at[0]) / width - 1, 1 - (2 * at[1]) / height];
    let point = -1, least = 11;
    eachRow(frame?.points, ([x, y], i) => {
      const away = Math.hypot(((x - u) * width) / 2, ((y - v) * height) / 2);
      if (away < least) { least = away; point = i; }
    });
    tellLight(el, { place: { u, v, width, height }, point });
  };
  const leave = () => tellLight(el, { place: null, point: -1 });
  surfaceOf.addEventListener("pointerleave", leave);
  surfaceOf.addEventListener("blur", leave);
  surfaceOf.addEventListener("mx-cursor", (e) => { const r = rectOf(surfaceOf); look([e.detail[0] * r.width, (1 - e.detail[1]) * r.height], r); });
  const unlight = onLight(el, (what) => {
    if (what.start !== undefined) start = what.start;
    const { line, ink, pulls, point, term } = { ...lit, ...what };
    Object.assign(lit, { line, ink, pulls, point, term });
    shown.canvas.mxLit = lit; // for tests
    shown.redraw();
  });
  const take = (newest) => {
    frame = remember(memory, newest);
    if (String(frame.apart) !== apart) { apart = String(frame.apart); parted = performance.now(); }
    legend.take(frame.legend);
    shown.canvas.mxFrame = frame; // for tests and for those who look: the numbers on screen
    pad.answer();
  };
  const unfollow = follow(model, shown.redraw, take, el);
  const ends = [unfollow, unlight, unsave, legend.close, pad.close, shown.close, heed(model, "change:present", shown.redraw)];
  return () => ends.forEach((end) => end());
}
