// The profile of an energy along a path of the triangle. `paintStrip(context, frame, size, colours)`
// is pure. A frame holds: `start` and `end` (k, 2), places along the path (0 to 1) with energies,
// broken where a value is nan; `marks` [[place, name]]; `handle` [place, energy], or null where the
// path does not pass it; `fall` [energies] of the run from the handle; `top`, the highest energy that
// is drawn. While a hand holds the start it is drawn from the lattices behind the two curves, `map` and
// `reached`, along the `path` [from, to] by the handle, none along the edges: see lattice.js.
// Heights are the unexplained share, the root of an energy. The axis ends at 100%, and beyond for an
// attack with an energy of its own that goes further.
const TICKS_UP = 2; // pieces of the axis
const HANDLE = 8; // px: from the middle of the handle to its edge; no word stands so near
const paintStrip = (context, frame, size, colours) => {
  const most = Math.max(1, Math.ceil(Math.sqrt(frame.top)));
  const ticks = [...Array(TICKS_UP + 1).keys()].map((i) => (i / TICKS_UP) * most);
  const words = ticks.map((v) => `${100 * v}%`);
  context.font = `12px ${FONT}`;
  const left = HANDLE + 10 + Math.max(26, ...words.map((word) => context.measureText(word).width)), right = 14, above = 8, below = 16 + HANDLE;
  const X = (s) => left + s * (size.width - left - right);
  const Y = (e) => size.height - below - (Math.sqrt(Math.max(e, 0)) / most) * (size.height - above - below);
  context.lineCap = context.lineJoin = "round";
  context.strokeStyle = colours.line; context.lineWidth = 1;
  context.beginPath(); context.moveTo(X(0), Y(0)); context.lineTo(X(1), Y(0)); context.stroke();
  context.fillStyle = colours.ink2;
  context.textAlign = "right"; context.textBaseline = "middle";
  for (let i = 0; i <= TICKS_UP; i++) {
    const y = Y(ticks[i] ** 2);
    context.fillText(words[i], X(0) - HANDLE - 2, y);
    context.beginPath(); context.moveTo(X(0) - 3, y); context.lineTo(i ? X(1) : X(0), y); context.stroke();
  }
  context.textBaseline = "top";
  for (const [s, name] of frame.marks || []) {
    context.textAlign = s < 0.02 ? "left" : s > 0.98 ? "right" : "center";
    context.fillText(name, X(s), Y(0) + HANDLE + 1);
    if (s > 0.02 && s < 0.98) { context.beginPath(); context.moveTo(X(s), Y(0)); context.lineTo(X(s), above); context.stroke(); }
  }
  const line = (rows) => { polyline(context, rows, X, Y); context.stroke(); };
  if (frame.start) { context.strokeStyle = colours.ink2; context.lineWidth = 1.6; context.setLineDash([6, 5]); line(frame.start); context.setLineDash([]); }
  if (frame.end) { context.strokeStyle = colours.ink; context.lineWidth = 2.4; line(frame.end); }
  if (!frame.handle) return;
  const [s, e] = frame.handle;
  if (frame.fall && frame.fall.length > 1) {
    const last = frame.fall[frame.fall.length - 1];
    context.strokeStyle = colours.ink; context.lineWidth = 2.4;
    context.beginPath(); context.moveTo(X(s), Y(frame.fall[0])); context.lineTo(X(s), Y(last)); context.stroke();
    context.fillStyle = colours.ink;
    context.beginPath(); context.arc(X(s), Y(last), 4.5, 0, 2 * Math.PI); context.fill();
  }
  context.beginPath(); context.arc(X(s), Y(frame.fall && frame.fall.length ? frame.fall[0] : e), HANDLE - 2, 0, 2 * Math.PI);
  context.fillStyle = colours.card; context.fill();
  context.strokeStyle = colours.accent; context.lineWidth = 3; context.stroke();
};

// What a screen reader finds behind the picture: both profiles at eleven places of the path.
const PLACES_SAID = 11;
const rowsSaid = (frame) => {
  const near = (rows, place) => {
    let best = null;
    for (let i = 0; rows && i < rows.shape[0]; i++) {
      const [s, e] = [rows.data[2 * i], rows.data[2 * i + 1]], away = Math.abs(s - place);
      if (!Number.isNaN(e) && (!best || away < best.away)) best = { away, e };
    }
    return best && best.away < 0.05 ? unexplainedText(best.e) : "–";
  };
  const places = [...Array(PLACES_SAID).keys()].map((i) => i / (PLACES_SAID - 1));
  const named = (place) => (frame.marks || []).find(([s]) => Math.abs(s - place) < 0.05)?.[1] || `${Math.round(100 * place)}% of the way`;
  return [["place", "unexplained at the start", "after the attack"], ...places.map((p) => [named(p), near(frame.start, p), near(frame.end, p)])];
};
function render({ model, el }) {
  el.classList.add("mx-strip-view");
  const table = make("table"), box = make("div", "mx-said", {}, table);
  let frame = null, saying = null, reading = null;
  const drawn = (context, size, paints) => {
    if (frame) paintStrip(context, (canvas.mxPainted = reading && frame.map ? stripAt(frame, reading) : frame), size, paints);
  };
  const { canvas, redraw, close } = surface(el, drawn);
  const unsave = offerPictures(model, el, el, drawn, () => "profile");
  canvas.setAttribute("role", "img");
  const text = () => canvas.setAttribute("aria-label", model.get("label"));
  el.append(box);
  const say = () => { saying = null; fillRows(table, model.get("label"), rowsSaid(frame)); };
  const unfollow = follow(model, redraw, (newest) => { frame = newest; saying ??= setTimeout(say, 400); }, el, false);
  const unlight = onLight(el, (what) => { if (what.reading !== undefined) { reading = what.reading; redraw(); } });
  const ends = [unfollow, unlight, unsave, close, heed(model, "change:label", text)];
  text();
  return () => { ends.forEach((end) => end()); clearTimeout(saying); };
}
export default { render };
