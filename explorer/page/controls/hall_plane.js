// The plane of a round of the hall, on phones and on the projector: what `plane.js` paints of it, and the
// taps. Places are shares of the plane: (-1, -1) is bottom left.
// A canvas as sharp as the screen, of the size that its box has: [context, size].
const hallCanvas = (canvas) => {
  const { width, height } = canvas.getBoundingClientRect(), sharp = Math.min(devicePixelRatio || 1, 2);
  const [w, h] = [width, height].map((v) => Math.max(1, Math.round(sharp * v)));
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const context = canvas.getContext("2d");
  context.setTransform(sharp, 0, 0, sharp, 0, 0);
  context.clearRect(0, 0, width, height);
  return [context, { width, height }];
};
const EDGED = 200; // taps up to which each has an edge: of thousands it costs a frame; arbitrary
const isProof = (round) => Boolean(round.places && !round.truth);
const HALL_MARKS = { "+": "ink", "●": "pos", "▲": "neg", "▢": "good", "○": "pos", "△": "neg" };
// Words whose marks have their colours.
const marked = (words) => [...words].map((letter) => (HALL_MARKS[letter] ? make("b", "", { textContent: letter, style: `color:var(--mx-${HALL_MARKS[letter]})` }) : letter));
// What the marks on the plane mean: of `hand`, and of all that a round shows.
const hallKey = (round, hand) => [
  `+ ${hand}`,
  ...(round.claims ? ["● ▲ the machine's claims"] : []),
  ...(round.places?.length ? ["▢ a point must be inside"] : []),
  ...(round.truth ? ["○ △ the points"] : []), // a disc around each says what counts
].map((words) => make("span", "", {}, ...marked(words)));
// A round as a frame of the plane. Its map is the same object each time, as its picture is kept.
const tableOf = (rows, more = []) => rows && { data: Float32Array.from(rows.flatMap((row) => [...row, ...more])), shape: [rows.length, 5] };
const hallFrame = (canvas, round) => {
  if (canvas.mxMap?.seal !== round.seal) {
    const data = Uint8Array.from(atob(round.map), (c) => c.charCodeAt(0));
    canvas.mxMap = { seal: round.seal, data, shape: [round.size, round.size] };
  }
  return {
    map: canvas.mxMap, neurons: isProof(round) ? undefined : tableOf(round.truth ? round.lines.map(([x, y, a, b]) => [x, y, a, b, 0]) : round.lines), places: tableOf(round.places), placesAre: "place",
    points: tableOf(round.truth, [-1, 0]), hollow: true,
  };
};
// Paint the plane. `cloud`: [[x, y, age in seconds]] of everybody; `mine`: [[x, y]], and `hits` the bits of those that met
// a point; `aim`: a place or null.
const paintHall = (canvas, round, { cloud = [], mine = [], hits = 0, aim = null } = {}) => {
  const [context, size] = hallCanvas(canvas), paints = colours(canvas), frame = hallFrame(canvas, round);
  const X = (x) => ((x + 1) / 2) * size.width, Y = (y) => ((1 - y) / 2) * size.height;
  const unit = Math.min(size.width, size.height) / 400, places = { X, Y, unit };
  paintBackdrop(context, frame, size, paints, places, { across: [], up: [] }); // phones have no ticks
  if (isProof(round)) { context.globalAlpha = 0.75; context.fillStyle = paints.card; context.fillRect(0, 0, size.width, size.height); } // the proof stands out
  const marks = (rows, inks) => paintCandidates(context, { candidates: tableOf(rows, [0.8, 1]) }, inks, places);
  const plus = (x, y, r, width, colour = paints.ink) => edged(context, colour, width, paints, unit, () => {
    context.moveTo(X(x) - r, Y(y)); context.lineTo(X(x) + r, Y(y)); context.moveTo(X(x), Y(y) - r); context.lineTo(X(x), Y(y) + r);
  });
  const few = Math.min(1, Math.sqrt(100 / Math.max(1, cloud.length))); // of many taps each is paler: they add up
  const [[wide, high] = [0, 0]] = round.reach || [], met = new Set((round.met || []).map(String));
  context.globalAlpha = round.truth ? 0.4 : 1;
  paintPlaces(context, frame, paints, places, size);
  for (const [x, y] of round.truth || []) { // what lies in the disc of a point counts
    context.beginPath(); context.ellipse(X(x), Y(y), (wide * size.width) / 2, (high * size.height) / 2, 0, 0, 2 * Math.PI);
    context.globalAlpha = 0.6; context.fillStyle = paints.card; context.fill();
    context.globalAlpha = 1; context.strokeStyle = paints.ink2; context.lineWidth = 1.5 * unit; context.stroke();
  }
  for (const [x, y, age] of round.truth || isProof(round) ? [] : cloud) { // a tap falls in as a ring that closes, and stays as a cross of the hand
    context.globalAlpha = (round.claims ? 0.4 : 0.9) * few;
    if (cloud.length <= EDGED) plus(x, y, 6 * unit, 2);
    else for (const [w, h] of [[6, 1], [1, 6]]) { context.fillStyle = paints.ink; context.fillRect(X(x) - w * unit, Y(y) - h * unit, 2 * w * unit, 2 * h * unit); }
    if (age >= 0.7) continue;
    context.globalAlpha = 1 - age / 0.7;
    context.strokeStyle = paints.ink;
    context.beginPath(); circle(context, X(x), Y(y), (6 + 24 * (1 - age / 0.7)) * unit); context.stroke();
  }
  context.globalAlpha = 1;
  paintPoints(context, frame, paints, places);
  marks(round.claims, paints);
  const guess = (x, y, hit) => (hit ? plus(x, y, 8 * unit, 4, paints.good) : plus(x, y, (round.claims ? 6.5 : 9) * unit, round.truth ? 1.2 : 2.6)); // of people
  for (const row of cloud.length && !isProof(round) ? round.guess || [] : []) guess(row[0], row[1], met.has(String(row)));
  mine.forEach(([x, y], k) => guess(x, y, round.truth && (hits >> k) & 1));
  if (aim) { plus(...aim, 9, 2 / unit, paints.accent); edged(context, paints.accent, 2 / unit, paints, unit, () => circle(context, X(aim[0]), Y(aim[1]), 12)); }
};
// The weights as needles, one a neuron, in the order of their direction: up is up.
const paintNeedleRow = (canvas, round) => {
  const [context, { width, height }] = hallCanvas(canvas), rows = round.needles || [], step = (width - 24) / Math.max(1, rows.length);
  const reach = height / 2 - 3, y = height / 2, paints = colours(canvas);
  context.lineCap = "round";
  context.lineWidth = Math.min(2.2, Math.max(0.8, step / 4));
  rows.forEach(([dx, dy, label], i) => {
    const x = 12 + (i + 0.5) * step;
    context.strokeStyle = paintOf(label, paints);
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x + reach * dx, y - reach * dy);
    context.stroke();
  });
};
