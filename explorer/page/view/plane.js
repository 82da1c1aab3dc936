// The plane: one frame of it, painted by a pure function. It needs no kernel, so that a recording
// can be played by the same function.
//
// PLANE_FIELDS: what a frame holds. Every field but `view` may be missing. All places are shares of
// the plane's half width and half height: (-1, -1) is bottom left, (1, 1) top right, so that float32
// holds data of any scale. An array is {data, shape}, rows one after the other (see `unpack`).
//
//   view        [cx, cy, hx, hy]: centre and half sizes, in units of the data, for the ticks
//   flat        true on a line: the height is Phi over the margin, and there are no level lines
//   scale       factor of point sizes, 1 unless given; 1.25 to present
//   map         (s, s): Phi over the margin, first row on top, first and last samples on the edges;
//               or (C, s, s): each class's lead over the best rival, classes 1, -1, 3, 4.
//               Float32, or Uint8 b for (b - 128) / 50, so that a recording is small
//   energy      (h, w) bytes: an energy in place of `map`, first row on top; 255 is the lowest, 1 the
//               highest, 0 none. energyBox [left, bottom, right, top]: where it lies
//   margins     true: thin lines where the map is +1 and -1, beside the strong one where it is 0
//   neurons     (k, 5): ends x, y, x, y within the plane, and strength 0 to 1
//   breakpoints (k, 2): x, strength; ticks at the axis of a line
//   graph       (g, 2): the graph of Phi over a line, clipped at the frame
//   points      (n, 6): x, y, class, share of the largest multiplier (-1: plain), 1 if it leaves no
//               trace in the weights, 1 if it holds the margin (0: not; -1: the size says the share).
//               A class is 1, -1, 3 or 4
//   hollow      true while the points are the truth of an attack
//   candidates  (m, 5): x, y, class, share of the largest multiplier, opacity from 0 (unused) to 1
//   starts      (m, 6): where each candidate stands at truth, unseen and noise: a start is their mix
//   trail       step of the run: `remember` joins the candidates of successive steps to trails
//   trails      [(m, 5)]: earlier places of the candidates, oldest first (made by `remember`)
//   claims      (c, 3): x, y, a number of MARKS; certain [text]: to how many per cent, or ""
//   marks       (c, 3): likewise, beside claims
//   legend      [[key of GLYPHS, name, sentence]]: what the glyphs of this frame mean
//   links       (l, 4): from a claim x, y to the point x, y that it found
//   other       (o, 3): x, y, class of another set that explains the weights
//   area        (k, 2): a pale polygon          spans    (k, 2): upright bands, low and high
//   lines       (k, 2): thin paths, NaN between  strong  (k, 2): thick paths, likewise
//   curve       (k, 2): corners of the curve on which an attacker knows the points to lie;
//               corners: true while it is drawn, with a dot at each
//   dots, rings, likely, diamonds, hands (k, 2): upright crosses, squares, dashed rings,
//               triangles that point down, four corners
//   places      (p, 5): x, y, half width, half height, class: each must hold a point, or is likely to;
//               placesAre: which, a key of GLYPHS
//   disc        (1, 4): x, y, half width, half height: no point may be there
//   texts       [[x, y, text]]
//   apart       [x, y, u, v, w, z]: a point is shown as two: where it was, where both stand. They go
//               there before one's eyes (`atApart`); the first two texts are theirs

const TRAIL = 24; // places of a candidate that are remembered
const FADED = 0.15; // opacity of a candidate that is no claim
const PALE = 0.35; // of a candidate of a start, as in scene.py
const MANY = 20; // thin paths: where there are more, each is paler
const paintOf = (label, paints) =>
  ({ 1: paints.pos, "-1": paints.neg, 3: paints.third, 4: paints.fourth })[label] || paints.ink2;
const isDark = (paints) => { const [r, g, b] = rgb(paints.card); return r + g + b < 384; };

// A frame with the trails of its candidates. `memory` is {} at first, and changes.
const remember = (memory, frame) => {
  const now = frame.candidates, view = String(frame.view);
  const same = memory.view === view && memory.count === now?.shape[0];
  if (frame.trail === undefined || !now || !same || frame.trail < memory.step) memory.places = [];
  if (frame.trail === undefined || !now) return frame;
  if (memory.step !== frame.trail || !memory.places.length) memory.places.push(now);
  memory.places = memory.places.slice(-TRAIL);
  Object.assign(memory, { step: frame.trail, count: now.shape[0], view });
  return { ...frame, trails: memory.places };
};

// The frame with its candidates at a start, the mix of `starts` with these three weights.
const atStart = (frame, weights) => {
  const { data, shape: [m] } = frame.starts, candidates = new Float32Array(5 * m), lines = new Float32Array(6 * m);
  for (let i = 0; i < m; i++) {
    const ends = data.subarray(6 * i, 6 * i + 6), [label, share] = frame.candidates.data.subarray(5 * i + 2, 5 * i + 4);
    const [x, y] = [0, 1].map((c) => weights.reduce((sum, w, k) => sum + w * ends[2 * k + c], 0));
    candidates.set([x, y, label, share, PALE], 5 * i);
    lines.set([ends[0], ends[1], x, y, NaN, NaN], 6 * i);
  }
  return { ...frame, trails: null, candidates: { data: candidates, shape: [m, 5] }, lines: { data: lines, shape: [3 * m, 2] } };
};

// The frame with both halves of a point at a share of their way; what stands where they do goes with them.
const atApart = (frame, share) => {
  const [x, y, ...ends] = frame.apart, gone = [0, 2].map((k) => [(share - 1) * (ends[k] - x), (share - 1) * (ends[k + 1] - y)]);
  const moved = (given) => {
    if (!given) return given;
    const data = given.data.slice(), wide = given.shape[1];
    for (let i = 0; i < data.length; i += wide) {
      const k = [0, 2].findIndex((k) => Math.hypot(data[i] - ends[k], data[i + 1] - ends[k + 1]) < 1e-4);
      if (k >= 0) { data[i] += gone[k][0]; data[i + 1] += gone[k][1]; }
    }
    return { ...given, data };
  };
  const texts = frame.texts.map(([u, v, words], k) => (k < 2 ? [u + gone[k][0], v + gone[k][1], words] : [u, v, words]));
  return { ...frame, texts, ...Object.fromEntries(["candidates", "marks", "hands", "lines"].map((name) => [name, moved(frame[name])])) };
};

// --- the map ----------------------------------------------------------------------------------
const valuesOf = (map) => {
  if (map.data instanceof Float32Array) return map.data;
  if (!map.values) map.values = Float32Array.from(map.data, (b) => (b - 128) / 50);
  return map.values;
};
const SHADES = 127; // of one class, from 0 to 2 margins
const shadesOf = (colour, card, most) => {
  const table = new Uint32Array(SHADES + 1), [from, to] = [rgb(card), rgb(colour)];
  for (let i = 0; i <= SHADES; i++) {
    const t = most * Math.tanh((2.2 * i) / SHADES);
    const [r, g, b] = from.map((v, e) => Math.round(v * (1 - t) + to[e] * t));
    table[i] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  return table;
};
// The newest map as a picture of one pixel a sample, and four times as large by a cubic curve through
// these. Enlarged further by straight lines that looks as a cubic curve for every pixel of the screen
// does, at a third of its cost. A frame is painted again when only points move.
const newestMap = { map: null, key: "", tables: [], small: make("canvas"), large: make("canvas") };
const FINER = 4;
const mapPicture = (map, paints) => {
  const key = paints.card + paints.pos, { small, large } = newestMap;
  if (newestMap.map === map && newestMap.key === key) return large;
  const s = map.shape[map.shape.length - 1], f = valuesOf(map), classes = map.shape.length > 2 ? map.shape[0] : 0;
  small.width = small.height = s;
  const context = small.getContext("2d"), image = context.createImageData(s, s);
  const pixels = new Uint32Array(image.data.buffer), most = isDark(paints) ? 0.42 : 0.36;
  if (newestMap.key !== key) newestMap.tables = [1, -1, 3, 4].map((label) => shadesOf(paintOf(label, paints), paints.card, most));
  const { tables } = newestMap;
  const shade = (v) => Math.min(SHADES, Math.round(Math.abs(v) * (SHADES / 2)));
  for (let i = 0; i < s * s; i++) {
    let best = f[i] > 0 ? 0 : 1, lead = f[i];
    for (let c = classes ? 0 : 9; c < classes; c++) {
      const v = f[c * s * s + i];
      if (!c || v > lead) { best = c; lead = v; }
    }
    pixels[i] = tables[best][shade(lead)];
  }
  context.putImageData(image, 0, 0);
  large.width = large.height = FINER * s;
  const fine = large.getContext("2d");
  fine.imageSmoothingQuality = "high";
  fine.drawImage(small, 0, 0, large.width, large.height);
  Object.assign(newestMap, { map, key });
  return large;
};

const drawings = new WeakMap(); // of energies
const energyPicture = (energy) => {
  const kept = drawings.get(energy);
  if (kept) return kept.picture;
  const [h, w] = energy.shape, picture = make("canvas", "", { width: w, height: h });
  const context = picture.getContext("2d"), image = context.createImageData(w, h);
  energy.data.forEach((shade, i) => {
    if (shade) image.data.set([...VIRIDIS[shade], 255], 4 * i);
  });
  context.putImageData(image, 0, 0);
  drawings.set(energy, { picture });
  return picture;
};

// Where a grid (s, s) of a map is `level`: marching squares, each piece x, y, x, y of its own, in
// steps of the grid. Kept with the map, which is painted many times while only points move.
// Where more lines meet than the samples tell apart, as in the middle of a star, pieces would close to
// a ring that is not there: none is drawn.
const CROWD = 2, MOST_CUT = 15; // samples on each side of a cell, and how many of those 25 cells lines may cut: two lines cut some 10; arbitrary
const cutsOf = (map, start, s, level) => {
  const kept = (map.cuts ||= {}), key = `${start} ${level}`;
  if (kept[key]) return kept[key];
  const f = valuesOf(map), cut = new Uint8Array(s * s), pieces = [];
  for (let row = 0; row < s - 1; row++) {
    for (let k = 0, at = start + row * s; k < s - 1; k++, at++) {
      const a = f[at] - level, b = f[at + 1] - level, d = f[at + s] - level, e = f[at + s + 1] - level;
      const top = a > 0 !== b > 0, right = b > 0 !== e > 0, low = d > 0 !== e > 0, left = a > 0 !== d > 0;
      if (!(top || right || low || left)) continue;
      const ends = [];
      if (top) ends.push(k + a / (a - b), row);
      if (right) ends.push(k + 1, row + b / (b - e));
      if (low) ends.push(k + d / (d - e), row + 1);
      if (left) ends.push(k, row + a / (a - d));
      cut[row * s + k] = 1;
      pieces.push([row, k, ends]);
    }
  }
  const crowded = (row, k) => {
    let count = 0;
    for (let i = Math.max(0, row - CROWD); i <= Math.min(s - 1, row + CROWD); i++)
      for (let j = Math.max(0, k - CROWD); j <= Math.min(s - 1, k + CROWD); j++) count += cut[i * s + j];
    return count > MOST_CUT;
  };
  return (kept[key] = pieces.flatMap(([row, k, ends]) => (crowded(row, k) ? [] : ends)));
};
const paintLevels = (context, frame, size, paints) => {
  const map = frame.map, s = map.shape[map.shape.length - 1];
  const dx = size.width / (s - 1), dy = size.height / (s - 1);
  const classes = map.shape.length > 2 ? map.shape[0] : 1;
  const line = (colour, width, opacity, starts, level) => {
    context.strokeStyle = colour; context.lineWidth = width; context.globalAlpha = opacity;
    context.beginPath();
    for (const start of starts) {
      const cuts = cutsOf(map, start, s, level);
      for (let i = 0; i < cuts.length; i += 4) {
        context.moveTo(cuts[i] * dx, cuts[i + 1] * dy);
        context.lineTo(cuts[i + 2] * dx, cuts[i + 3] * dy);
      }
    }
    context.stroke();
  };
  context.save();
  context.lineCap = "round";
  const starts = [...Array(classes).keys()].map((c) => c * s * s);
  if (frame.margins && classes === 1)
    for (const sign of [1, -1]) line(paintOf(sign, paints), 1.4, 0.8, starts, sign);
  else if (frame.margins)
    starts.forEach((start, c) => line(paintOf([1, -1, 3, 4][c], paints), 1.4, 0.8, [start], 1));
  line(paints.ink, 2, 0.8, starts, 0);
  context.restore();
};

// --- marks ------------------------------------------------------------------------------------
const shape = (context, x, y, label, r) => {
  context.beginPath();
  if (label === -1) {
    const h = 1.25 * r;
    context.moveTo(x, y - h); context.lineTo(x + 0.95 * h, y + 0.75 * h); context.lineTo(x - 0.95 * h, y + 0.75 * h);
    context.closePath();
  } else if (label === 3) context.rect(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r);
  else if (label === 4) {
    const h = 1.3 * r;
    context.moveTo(x, y - h); context.lineTo(x + h, y); context.lineTo(x, y + h); context.lineTo(x - h, y);
    context.closePath();
  } else context.arc(x, y, r, 0, 2 * Math.PI);
};
// Rows of an array (k, w), one after the other.
const eachRow = (array, call) => {
  if (!array) return;
  const [k, w] = array.shape;
  for (let i = 0; i < k; i++) call(array.data.subarray(i * w, (i + 1) * w), i);
};

const PLAIN = 6.5, HELD = 9; // radius of a point, and of one that holds the margin
const paintPoints = (context, frame, paints, { X, Y, unit }) => {
  const many = Math.min(1, Math.max(0.65, Math.sqrt(60 / (frame.points?.shape[0] || 1))));
  eachRow(frame.points, ([x, y, label, share, traceless, held = -1]) => {
    const colour = traceless ? paints.ink3 : paintOf(label, paints), plain = frame.hollow ? 8 : PLAIN;
    const r = unit * (held >= 0 ? (held ? HELD : PLAIN) * many : share < 0 ? plain * many : 3.4 + 5 * Math.sqrt(share));
    paintPoint(context, X(x), Y(y), label, r, colour, frame.hollow, paints, unit);
  });
};
const paintPoint = (context, x, y, label, r, colour, hollow, paints, unit) => {
  shape(context, x, y, label, r);
  context.globalAlpha = hollow ? 0.65 : 1;
  context.fillStyle = hollow ? paints.card : colour; context.fill();
  context.globalAlpha = 1;
  context.strokeStyle = hollow ? colour : paints.card; context.lineWidth = unit * (hollow ? 2 : 1.5);
  context.stroke();
};
const paintCandidate = (context, x, y, label, r, used, paints, unit) => {
  shape(context, x, y, label, r);
  context.globalAlpha = FADED + (1 - FADED) * used; // 0 to 1
  context.fillStyle = paintOf(label, paints); context.fill();
  context.strokeStyle = paints.card; context.lineWidth = 1.2 * unit; context.stroke();
  context.globalAlpha = 1;
};
const paintCandidates = (context, frame, paints, { X, Y, unit }) => {
  const past = frame.trails || [];
  context.lineWidth = 1.6;
  for (let t = 1; t < past.length; t++) {
    const shown = (0.35 * (t + TRAIL - past.length)) / TRAIL;
    eachRow(past[t], ([x, y, label], i) => {
      const [a, b] = past[t - 1].data.subarray(5 * i, 5 * i + 2);
      if (Math.hypot(a - x, b - y) < 1e-4) return;
      context.globalAlpha = shown * (frame.candidates.data[5 * i + 4] ? 1 : FADED);
      context.strokeStyle = paintOf(label, paints);
      context.beginPath(); context.moveTo(X(a), Y(b)); context.lineTo(X(x), Y(y)); context.stroke();
    });
  }
  eachRow(frame.candidates, ([x, y, label, share, used]) => {
    paintCandidate(context, X(x), Y(y), label, unit * (2.2 + 3.6 * Math.sqrt(Math.max(0, share))), used, paints, unit);
  });
};
// From shares to px, and the px of a unit of marks.
const placesOf = (frame, size) => ({
  X: (u) => ((u + 1) / 2) * size.width, Y: (v) => ((1 - v) / 2) * size.height,
  unit: (frame.scale || 1) * Math.min(1.8, Math.max(0.75, Math.min(size.width, size.height) / 576)),
});
// The px of a share, with so much room to the edges of the plane.
const within = (v, at, room) => {
  const [low, high] = [at(-1), at(1)].sort((a, b) => a - b);
  return Math.min(Math.max(at(v), low + room), high - room);
};
// A star of another set; one beyond the plane stands whole within its edge, with an arrow.
const paintOther = (context, [x, y, label], paints, { X, Y, unit }) => {
  const [dx, dy] = [x, y].map((v) => Math.sign(v) * (Math.abs(v) > 1)), room = (out) => (out ? 16 : 11) * unit;
  const edge = [within(x, X, room(dx)), within(y, Y, room(dy))], [px, py] = dx || dy ? clearOf(...edge, X, Y) : edge;
  GLYPHS.other(context, px, py, paints, unit, paintOf(label, paints));
  if (dx || dy) pointOut(context, px, py, dx, -dy, paints, unit);
};
// A place in px, clear of the buttons on the plane: along its foot, and the pencil at its upper left.
const FOOT = 54, PENCIL = 70, BARE = 300, FADE = 24; // px; a plane of a smaller side has no buttons
const clearOf = (x, y, X, Y) => {
  const foot = Y(-1) - FOOT;
  if (X(1) < BARE || Y(-1) < BARE) return [x, y];
  if (y > foot) return [x, foot];
  if (x >= PENCIL || y >= PENCIL) return [x, y];
  return x > y ? [PENCIL, y] : [x, PENCIL];
};
// Where claim i has its mark in px, and which way its arrow points: one beyond the plane, and one that
// reaches no point and would lie under a button, stand aside.
const claimAt = (frame, [x, y, kind], i, { X, Y, unit }) => {
  const whole = (v, at) => (Math.abs(v) > 1.001 ? at(v) : within(v, at, 8 * unit)); // a mark at the very edge
  const place = [whole(x, X), whole(y, Y)], beyond = frame.beyond?.includes(i);
  if (!beyond && !["wrong", "unknown"].includes(MARKS[kind])) return [...place, 0, 0];
  const clear = clearOf(...place, X, Y), out = (v) => (beyond && Math.abs(Math.abs(v) - BRIM) < 1e-4 ? Math.sign(v) : 0);
  const inner = [clear[0] - 11 * unit * out(x), clear[1] + 11 * unit * out(y)]; // clear of the ticks' words
  return [...inner, out(x) || Math.sign(place[0] - clear[0]), -out(y) || Math.sign(place[1] - clear[1])];
};
const paintResults = (context, frame, paints, places) => {
  const { X, Y, unit } = places;
  context.strokeStyle = paints.good; context.lineWidth = 1.6 * unit;
  eachRow(frame.links, ([x, y, a, b]) => {
    context.beginPath(); context.moveTo(X(x), Y(y)); context.lineTo(X(a), Y(b)); context.stroke();
  });
  eachRow(frame.hands, ([x, y]) => GLYPHS.hand(context, X(x), Y(y), paints, unit)); // below a sign, which is read
  eachRow(frame.marks, (row) => GLYPHS[MARKS[row[2]]](context, ...markAt(row, places), paints, unit));
  const off = {}; // claims beyond the plane by side and kind: one mark for all, and how many
  eachRow(frame.claims, (row, i) => {
    const [px, py, dx, dy] = claimAt(frame, row, i, places);
    if (frame.beyond?.includes(i)) (off[[dx, dy, row[2]]] ||= []).push([px, py, dx, dy, row[2]]);
    else paintClaim(context, [px, py, dx, dy, row[2]], paints, unit);
  });
  for (const side of Object.values(off)) {
    const mean = side[0].map((_, k) => side.reduce((sum, row) => sum + row[k], 0) / side.length);
    paintClaim(context, mean, paints, unit);
    if (side.length > 1) paintCount(context, mean, side.length, paints, unit);
  }
};
const paintClaim = (context, [px, py, dx, dy, kind], paints, unit) => {
  GLYPHS[MARKS[kind]](context, px, py, paints, unit);
  if (dx || dy) pointOut(context, px, py, dx, dy, paints, unit); // to where its claim lies
};
const paintCount = (context, [px, py, dx, dy], many, paints, unit) => {
  const [x, y] = [px - (dx || !dy) * 17 * unit, py - (dx ? 0 : dy * 17 * unit)];
  Object.assign(context, { font: `600 ${13 * unit}px ${FONT}`, textAlign: "center", textBaseline: "middle", lineWidth: 3 * unit, strokeStyle: paints.card, fillStyle: paints.ink });
  context.strokeText(many, x, y);
  context.fillText(many, x, y);
};
const BRIM = 0.94; // of the plane's half width: there a claim beyond it has its mark, see marks.py
const pointOut = (context, x, y, dx, dy, paints, unit) => {
  const long = Math.hypot(dx, dy) || 1, [a, b] = [dx / long, dy / long].map((v) => v * unit);
  edged(context, paints.ink, 2, paints, unit, () => {
    for (const side of [-1, 1]) { context.moveTo(x + 8 * a - side * 5 * b, y + 8 * b + side * 5 * a); context.lineTo(x + 12 * a, y + 12 * b); }
  });
};
// One glyph, one meaning: `page/plane/marks.py` says which is where, `page/plane/words.py` what each
// means, and the legend draws its rows with these same functions.
const MARKS = ["wrong", "found", "certified", "likely", "beside", "unknown", "fixed", "splits", "hit"];
// Where a mark has its middle in px: a sign stands beside its point, whose class stays in sight.
const markAt = ([x, y, kind], { X, Y, unit }) => {
  const aside = ["fixed", "splits"].includes(MARKS[kind]) ? 12 * unit : 0;
  return [within(x, X, 8 * unit) + aside, within(y, Y, 8 * unit) + aside];
};
const badge = (context, x, y, paints, unit) => {
  context.beginPath(); circle(context, x, y, 8 * unit);
  context.fillStyle = paints.card; context.fill();
  context.strokeStyle = paints.ink; context.lineWidth = 1.6 * unit; context.stroke();
};
// A path in a colour, over a wider one in the colour of the card, so that it is seen on any map.
const edged = (context, colour, width, paints, unit, path, dash = []) => {
  for (const [ink, wide] of [[paints.card, width + 2.3], [colour, width]]) {
    context.strokeStyle = ink; context.lineWidth = wide * unit;
    context.setLineDash(dash.map((d) => d * unit));
    context.beginPath(); path(); context.stroke();
  }
  context.setLineDash([]);
};
const KNOWN_DASH = [9, 4], JOINS = [4, 3]; // of the curve that an attacker knows, and of lines that join
const circle = (context, x, y, r) => { context.moveTo(x + r, y); context.arc(x, y, r, 0, 2 * Math.PI); };
const tick = (c, x, y, paints, unit) => {
  const r = 6.5 * unit;
  c.beginPath(); circle(c, x, y, r);
  c.fillStyle = paints.good; c.fill();
  c.strokeStyle = paints.card; c.lineWidth = 1.4 * unit; c.stroke();
  c.beginPath();
  c.moveTo(x - 0.5 * r, y + 0.05 * r); c.lineTo(x - 0.1 * r, y + 0.45 * r); c.lineTo(x + 0.55 * r, y - 0.4 * r);
  c.lineWidth = 1.8 * unit; c.stroke();
};
// In the legend: a point of each class, smaller and larger where sizes differ; a path; an area.
const pair = (c, x, y, paints, unit, r, q, hollow) => {
  paintPoint(c, x - 8 * unit, y, 1, r * unit, paints.pos, hollow, paints, unit);
  paintPoint(c, x + 8 * unit, y, -1, q * unit, paints.neg, hollow, paints, unit);
};
const stroke = (c, x, y, unit, colour, width, rise = 4) => {
  c.strokeStyle = colour; c.lineWidth = width;
  c.beginPath(); c.moveTo(x - 13 * unit, y + rise * unit); c.lineTo(x + 13 * unit, y - rise * unit); c.stroke();
};
const patch = (c, x, y, unit, colours) => colours.forEach((colour, i) => {
  c.fillStyle = colour; c.fillRect(x + ((26 * i) / colours.length - 13) * unit, y - 9 * unit, (26 / colours.length) * unit, 18 * unit);
});
const GLYPHS = {
  point: (c, x, y, paints, unit) => pair(c, x, y, paints, unit, 6, 6, false),
  weighted: (c, x, y, paints, unit) => pair(c, x, y, paints, unit, 4, 8, false),
  held: (c, x, y, paints, unit) => pair(c, x, y, paints, unit, PLAIN, HELD, false),
  truth: (c, x, y, paints, unit) => pair(c, x, y, paints, unit, 6, 6, true),
  traceless: (c, x, y, paints, unit) => paintPoint(c, x, y, 1, 8 * unit, paints.ink3, true, paints, unit),
  candidate: (c, x, y, paints, unit) => { for (const [dx, label, r] of [[-6, 1, 2.5], [6, -1, 5]]) paintCandidate(c, x + dx * unit, y, label, r * unit, true, paints, unit); },
  unused: (c, x, y, paints, unit) => paintCandidate(c, x, y, 1, 4.5 * unit, false, paints, unit),
  wrong: (c, x, y, paints, unit) => {
    const r = 6 * unit;
    edged(c, paints.ink, 2.2, paints, unit, () => { c.moveTo(x - r, y - r); c.lineTo(x + r, y + r); c.moveTo(x - r, y + r); c.lineTo(x + r, y - r); });
  },
  found: (c, x, y, paints, unit) => edged(c, paints.good, 1.8, paints, unit, () => circle(c, x, y, 12 * unit)),
  hit: (c, x, y, paints, unit) => edged(c, paints.ink2, 1.8, paints, unit, () => circle(c, x, y, 12 * unit), [3, 3]),
  likely: (c, x, y, paints, unit) => edged(c, paints.good, 2.2, paints, unit, () => circle(c, x, y, 12 * unit), [3, 3]),
  certified: (c, x, y, paints, unit) => {
    edged(c, paints.good, 3, paints, unit, () => circle(c, x, y, 12 * unit));
    tick(c, x + 9 * unit, y - 9 * unit, paints, unit);
  },
  beside: (c, x, y, paints, unit) => edged(c, paints.good, 1.8, paints, unit, () => circle(c, x, y, 3 * unit)),
  unknown: (c, x, y, paints, unit) => {
    c.beginPath(); circle(c, x, y, 8 * unit);
    c.fillStyle = paints.card; c.fill();
    c.strokeStyle = c.fillStyle = paints.ink2; c.lineWidth = 1.6 * unit; c.stroke();
    c.font = `700 ${11 * unit}px ${FONT}`; c.textAlign = "center"; c.textBaseline = "middle";
    c.fillText("?", x, y + 0.5 * unit);
  },
  fixed: (c, x, y, paints, unit) => {
    badge(c, x, y, paints, unit);
    c.beginPath(); c.moveTo(x - 4.5 * unit, y); c.lineTo(x + 4.5 * unit, y); c.stroke();
  },
  splits: (c, x, y, paints, unit) => {
    badge(c, x, y, paints, unit);
    c.beginPath(); circle(c, x, y, 4 * unit);
    c.fillStyle = paints.ink; c.fill();
  },
  other: (c, x, y, paints, unit, colour = paints.pos) => edged(c, colour, 2, paints, unit, () => { // a star
    for (let i = 0; i <= 10; i++) { const r = (i % 2 ? 4.5 : 10) * unit, t = (i * Math.PI) / 5; c[i ? "lineTo" : "moveTo"](x + r * Math.sin(t), y - r * Math.cos(t)); }
  }),
  cross: (c, x, y, paints, unit) => {
    const r = 2.5 * unit;
    c.strokeStyle = paints.ink2; c.lineWidth = 1.2 * unit;
    c.beginPath(); c.moveTo(x - r, y); c.lineTo(x + r, y); c.moveTo(x, y - r); c.lineTo(x, y + r); c.stroke();
  },
  ring: (c, x, y, paints, unit) => edged(c, paints.good, 2.4, paints, unit, () => c.rect(x - 14 * unit, y - 14 * unit, 28 * unit, 28 * unit)),
  diamond: (c, x, y, paints, unit) => {
    const h = 12 * unit;
    edged(c, paints.good, 2, paints, unit, () => { c.moveTo(x - h, y - 0.7 * h); c.lineTo(x + h, y - 0.7 * h); c.lineTo(x, y + 0.95 * h); c.closePath(); });
  },
  disc: (c, x, y, paints, unit) => {
    c.beginPath(); circle(c, x, y, 10 * unit); c.fillStyle = faded(paints.warn, 0.14); c.fill();
    c.strokeStyle = paints.warn; c.lineWidth = 1.6 * unit; c.setLineDash([4 * unit, 3 * unit]); c.stroke(); c.setLineDash([]);
  },
  hand: (c, x, y, paints, unit) => edged(c, paints.ink, 2, paints, unit, () => { // four corners
    const r = 11 * unit, s = 5 * unit;
    for (const [a, b] of [[-1, -1], [1, -1], [1, 1], [-1, 1]]) { c.moveTo(x + a * (r - s), y + b * r); c.lineTo(x + a * r, y + b * r); c.lineTo(x + a * r, y + b * (r - s)); }
  }),
  // Of paths and areas: in the legend alone.
  links: (c, x, y, paints, unit) => stroke(c, x, y, unit, paints.good, 1.6),
  lines: (c, x, y, paints, unit) => { c.setLineDash(JOINS.map((d) => d * unit)); stroke(c, x, y, unit, paints.ink2, 1.2); c.setLineDash([]); },
  strong: (c, x, y, paints, unit) => stroke(c, x, y, unit, paints.ink, 2.5),
  curve: (c, x, y, paints, unit) => edged(c, paints.accent, 2.4, paints, unit, () => { c.moveTo(x - 13 * unit, y + 5 * unit); c.quadraticCurveTo(x, y - 11 * unit, x + 13 * unit, y + 3 * unit); }, KNOWN_DASH),
  neurons: (c, x, y, paints, unit) => stroke(c, x, y, unit, faded(paints.ink2, 0.45), 1.2),
  trail: (c, x, y, paints, unit) => stroke(c, x, y, unit, faded(paints.pos, 0.35), 1.6),
  graph: (c, x, y, paints, unit) => stroke(c, x, y, unit, paints.ink, 2.5, 8),
  boundary: (c, x, y, paints, unit) => stroke(c, x, y, unit, paints.ink, 2),
  margins: (c, x, y, paints, unit) => { stroke(c, x, y - 4 * unit, unit, paints.pos, 1.4, 0); stroke(c, x, y + 4 * unit, unit, paints.neg, 1.4, 0); },
  breakpoints: (c, x, y, paints, unit) => { c.fillStyle = paints.ink2; c.fillRect(x - 0.8, y - 8 * unit, 1.6, 16 * unit); },
  place: (c, x, y, paints, unit) => edged(c, paints.good, 2, paints, unit, () => c.roundRect(x - 10 * unit, y - 9 * unit, 20 * unit, 18 * unit, 4 * unit)),
  area: (c, x, y, paints, unit) => { patch(c, x, y, unit, [faded(paints.ink2, 0.16)]); c.strokeStyle = paints.ink2; c.lineWidth = 1.5; c.strokeRect(x - 13 * unit, y - 9 * unit, 26 * unit, 18 * unit); },
  spans: (c, x, y, paints, unit) => patch(c, x, y, unit, [faded(paints.good, 0.12), faded(paints.good, 0.22)]),
  map: (c, x, y, paints, unit) => patch(c, x, y, unit, [faded(paints.neg, 0.36), faded(paints.pos, 0.36)]),
};
// What an attack or an explanation draws: under the points, and over them.
const paintUnder = (context, frame, paints, { X, Y, unit }, size) => {
  eachRow(frame.spans, ([low, high], i) => {
    context.fillStyle = faded(paints.good, i % 2 ? 0.22 : 0.12); // neighbours differ
    context.fillRect(X(low), 0, X(high) - X(low), size.height);
  });
  if (frame.area) {
    polyline(context, frame.area, X, Y);
    context.fillStyle = faded(paints.ink2, 0.16); context.fill();
    context.strokeStyle = paints.ink2; context.lineWidth = 1.5; context.stroke();
  }
  let paths = 1;
  eachRow(frame.lines, ([x]) => { paths += Number.isNaN(x); });
  const pale = Math.min(0.8, MANY / paths); // a hundred of them would hide what they join
  for (const [path, colour, width] of [[frame.lines, faded(paints.ink2, pale), 1], [frame.strong, paints.ink, frame.flat ? 6 : 2.5]]) {
    if (!path) continue;
    polyline(context, path, X, Y);
    context.setLineDash(path === frame.lines ? JOINS.map((d) => d * unit) : []); // no kink
    context.strokeStyle = colour; context.lineWidth = width; context.stroke();
  }
  context.setLineDash([]);
  if (frame.curve) {
    edged(context, paints.accent, 2.4, paints, unit, () => eachRow(frame.curve, ([x, y], i) => context[i ? "lineTo" : "moveTo"](X(x), Y(y))), KNOWN_DASH);
    if (frame.corners) eachRow(frame.curve, ([x, y]) => { context.fillStyle = paints.accent; context.beginPath(); circle(context, X(x), Y(y), 4 * unit); context.fill(); });
  }
  eachRow(frame.dots, ([x, y]) => GLYPHS.cross(context, X(x), Y(y), paints, unit));
};
const WIDE_PLACE = 6; // of the plane, one part in so many that is half a wide place; arbitrary
// A place that must hold a point, or is likely to: a square as wide as the place.
const paintPlaces = (context, frame, paints, { X, Y, unit }, size) => {
  const rows = [];
  eachRow(frame.places, (row) => rows.push([...row]));
  rows.sort((a, b) => b[2] - a[2]); // a small one lies over a large one
  const boxes = rows.map(([x, y, w, h, label]) => {
    const [rx, ry] = [(w * size.width) / 2, (h * size.height) / 2].map((r) => Math.max(r, 10 * unit)), [px, py] = [X(x), Y(y)];
    const box = () => context.roundRect(px - rx, py - ry, 2 * rx, 2 * ry, Math.min(rx, ry) * 0.5);
    const wide = Math.min(rx, ry) > size.width / WIDE_PLACE; // only its edge is drawn: wide ones overlap
    return { px, py, rx, ry, box, wide, ink: paintOf(label, paints) };
  });
  boxes.forEach(({ px, py, rx, ry, box, wide, ink }, i) => {
    if (wide) return;
    context.save();
    for (const one of boxes.slice(i + 1)) { // a part of two places has one colour
      if (Math.abs(one.px - px) > one.rx + rx || Math.abs(one.py - py) > one.ry + ry) continue;
      context.beginPath(); context.rect(0, 0, size.width, size.height); one.box(); context.clip("evenodd");
    }
    context.beginPath(); box();
    context.fillStyle = faded(ink, Math.min(0.55, 0.22 + (4 * unit) / Math.min(rx, ry))); context.fill();
    context.restore();
  });
  const dash = frame.placesAre === "likely" ? [3, 3] : [];
  for (const { box, wide, ink } of boxes) edged(context, wide ? ink : paints.good, wide || !dash.length ? 3 : 2.2, paints, unit, box, dash);
};
const paintDisc = (context, frame, paints, { X, Y, unit }, size) => {
  eachRow(frame.disc, ([x, y, w, h]) => {
    context.beginPath();
    if (frame.flat) context.rect(X(x - w), 0, (w * size.width), size.height);
    else context.ellipse(X(x), Y(y), (w * size.width) / 2, (h * size.height) / 2, 0, 0, 2 * Math.PI);
    context.fillStyle = faded(paints.warn, 0.14); context.fill();
    context.strokeStyle = paints.warn; context.lineWidth = 2 * unit; context.setLineDash([7 * unit, 4 * unit]);
    context.stroke(); context.setLineDash([]);
  });
};
const LEAST_SPAN = 24; // px of an interval in sight that has its words; arbitrary
// The left edge of the chip of text i, whole on the plane, clear of the pencil, and within interval i,
// where there is one for each text; null where hardly any of that is in sight.
const chipAt = (frame, i, y, wide, X, Y) => {
  const [x] = frame.texts[i];
  let [low, high] = [X(-1), X(1)];
  const [from, to] = frame.spans?.shape[0] === frame.texts.length ? frame.spans.data.subarray(2 * i, 2 * i + 2) : [];
  if (from <= x && x <= to) [low, high] = [Math.max(low, X(from)), Math.min(high, X(to))];
  if (high - low < LEAST_SPAN) return null;
  if (y < PENCIL && X(1) >= BARE && Y(-1) >= BARE) low = Math.max(low, PENCIL);
  const left = high - low < wide + 8 ? (low + high - wide) / 2 : Math.min(Math.max(X(x) - 5, low + 4), high - wide - 4);
  return Math.min(Math.max(left, y < PENCIL && low === PENCIL ? PENCIL : X(-1) + 4), X(1) - wide - 4);
};
const paintOver = (context, frame, paints, { X, Y, unit }) => {
  eachRow(frame.other, (row) => paintOther(context, row, paints, { X, Y, unit }));
  for (const [rows, key] of [[frame.rings, "ring"], [frame.likely, "likely"], [frame.diamonds, "diamond"]])
    eachRow(rows, ([x, y]) => GLYPHS[key](context, X(x), Y(y), paints, unit));
  context.font = `12px ${FONT}`; context.textAlign = "left"; context.textBaseline = "middle";
  for (const [i, [, y, words]] of (frame.texts || []).entries()) { // a chip: kinks and points run under it
    const wide = context.measureText(words).width, left = chipAt(frame, i, Y(y), wide + 10, X, Y);
    if (left === null) continue;
    context.beginPath(); context.roundRect(left, Y(y) - 9, wide + 10, 18, 9);
    context.fillStyle = faded(paints.card, 0.9); context.fill();
    context.fillStyle = paints.ink; context.fillText(words, left + 5, Y(y));
  }
};

// --- what a glyph means -----------------------------------------------------------------------
const ICON = 30, WIDE = 160, SAID = "Point at a row, or at a mark on the plane."; // px
// The chip of the legend: a button, and a list with a row of each glyph that is on the plane.
const attachLegend = (el) => {
  const rowsOf = make("ul", ""), said = make("p", ""), list = make("div", "mx-legend", { popover: "auto" }, said, rowsOf); // above them: it grows upward, and no row moves
  const say = (e) => put(said, "textContent", e.target.closest("li")?.title || SAID); // what the title says, by keys as well
  for (const kind of ["pointerover", "focusin"]) rowsOf.addEventListener(kind, say);
  const chip = makeButton("mx-legend-chip", "Legend", "What the marks on the plane mean", undefined, { popoverTargetElement: list }); // a press elsewhere and Escape close it: it covers what it stands on
  el.append(chip, list);
  const isOpen = () => list.matches(":popover-open");
  // Over the foot of the plane, above the chip: it hides nothing that it does not explain.
  const place = () => {
    if (!isOpen()) return;
    const plane = el.getBoundingClientRect(), foot = chip.getBoundingClientRect().top - 6, zoom = list.currentCSSZoom || 1;
    const px = { left: plane.left + 8, bottom: innerHeight - foot, maxHeight: foot - plane.top - 8, width: Math.min(plane.width - 16, WIDE * zoom * rows.length) };
    for (const [name, value] of Object.entries(px)) list.style[name] = `${value / zoom}px`;
  };
  let rows = [], shown = "";
  const fill = () => {
    const paints = colours(el), key = JSON.stringify(rows) + paints.card;
    if (!isOpen() || key === shown) return;
    shown = key;
    put(said, "textContent", SAID);
    rowsOf.replaceChildren(...rows.map(([name, words, sentence]) => {
      const k = window.devicePixelRatio || 1, icon = make("canvas", "", { width: ICON * k, height: ICON * k });
      const context = icon.getContext("2d");
      context.scale(k, k);
      GLYPHS[name](context, ICON / 2 - 1, ICON / 2 + 1, paints, 0.8);
      return make("li", "", { title: sentence, tabIndex: 0, data: { glyph: name } }, icon, words);
    }));
    place();
  };
  list.addEventListener("toggle", () => { fill(); place(); });
  const take = (legend) => { rows = legend || []; chip.hidden = !rows.length; if (chip.hidden && isOpen()) list.hidePopover(); fill(); };
  const ends = [listen(window, "resize", place), listen(window, "scroll", place, true)];
  return { take, fill, close: () => ends.forEach((end) => end()) };
};
// The sentence of the glyph at a place of the plane (shares): the uppermost within its radius; "".
const sentenceAt = (frame, u, v, size) => {
  const told = Object.fromEntries((frame.legend || []).map(([key, , sentence]) => [key, sentence]));
  const places = placesOf(frame, size), { X, Y } = places;
  const near = (rows, keyOf, reach, at = (row) => [X(row[0]), Y(row[1])]) => {
    let best = "", least = reach;
    eachRow(rows, (row, i) => {
      const [x, y] = at(row, i), away = Math.hypot(x - X(u), y - Y(v));
      if (away < least) { least = away; best = keyOf(row, i); }
    });
    return best;
  };
  const aside = (row, i) => claimAt(frame, row, i, places);
  // Within a square, at least so many px from its middle.
  const around = (rows) => {
    const inside = (a, b, half) => Math.abs(a - b) <= Math.max(half, 14);
    let met = "";
    eachRow(rows, ([x, y, wide, high]) => {
      if (inside(X(u), X(x), X(wide) - X(0)) && inside(Y(v), Y(y), Y(0) - Y(high))) met = `${told[frame.placesAre]} It is ${upTo(2 * wide * frame.view[2])} wide.`;
    });
    return met;
  };
  const mark = (row) => told[MARKS[row[2]]] || "";
  const certain = (row, i) => mark(row) + (frame.certain?.[i] ? ` Without it ${frame.certain[i]} or more are left.` : "") + (aside(row, i).slice(2).some(Boolean) ? " It lies farther out, where the arrow points." : "");
  return near(frame.claims, certain, 13, aside) || near(frame.marks, mark, 13, (row) => markAt(row, places)) || around(frame.places) || near(frame.likely, () => told.likely, 13)
    || near(frame.other, () => told.other, 10)
    || near(frame.candidates, (row) => told[row[4] ? "candidate" : "unused"], 9)
    || near(frame.points, (row, i) => `Point ${i + 1}. ${told[row[4] ? "traceless" : frame.hollow ? "truth" : "point"]}`, 11)
    || near(frame.rings, () => told.ring, 12) || near(frame.dots, () => told.cross, 6) || near(frame.diamonds, () => told.diamond, 14);
};

// Two digits, rounded up.
const upTo = (value) => {
  const digit = 10 ** (Math.floor(Math.log10(value)) - 1);
  return +(Math.ceil(value / digit - 1e-6) * digit).toPrecision(2);
};

// The same for a pointer event over the plane `el`.
const sentenceUnder = (frame, el, e) => {
  const r = el.getBoundingClientRect();
  return sentenceAt(frame, (2 * (e.clientX - r.left)) / r.width - 1, 1 - (2 * (e.clientY - r.top)) / r.height, r);
};

// --- axes -------------------------------------------------------------------------------------
// Nice numbers within centre +- half, about `most` of them, and how they are written.
const niceTicks = (centre, half, most) => {
  const rough = (2 * half) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((m) => m * power >= rough * (1 - 1e-9)) || 10);
  const first = Math.ceil((centre - half) / step), last = Math.floor((centre + half) / step);
  const largest = Math.max(Math.abs(first), Math.abs(last)) * step;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const short = largest < 1e5 && digits <= 4;
  const significant = Math.max(0, Math.ceil(Math.log10(largest / step) - 1e-9));
  const words = (v) => v === 0 ? "0" : short ? v.toFixed(digits) : v.toExponential(significant).replace("e+", "e");
  const ticks = [];
  for (let i = first; i <= last; i++) ticks.push([i * step, words(i * step).replace("-", "−")]);
  return ticks;
};
const TICK = 40; // px at the right edge for the words of a tick: the levels of a graph end there
const LARGE = 300; // px of a side that has room for five ticks; arbitrary
const EDGE = 22; // px of a side in which no tick stands: its words would leave the plane
const ticksOf = (frame, size) => {
  const [cx, cy, hx, hy] = frame.view;
  const inside = (ticks, centre, half, length, turned) =>
    ticks.map(([v, words]) => [((((v - centre) / half) * (turned ? -1 : 1) + 1) / 2) * length, words])
      .filter(([at]) => at > EDGE && at < length - EDGE);
  return {
    across: inside(niceTicks(cx, hx, size.width > LARGE ? 5 : 3), cx, hx, size.width, false),
    up: inside(niceTicks(cy, hy, size.height > LARGE ? 5 : 3), cy, hy, size.height, true),
  };
};
const paintGrid = (context, { across, up }, size, paints) => {
  context.strokeStyle = paints.line; context.lineWidth = 1;
  context.beginPath();
  for (const [x] of across) { context.moveTo(x, 0); context.lineTo(x, size.height); }
  for (const [y] of up) { context.moveTo(0, y); context.lineTo(size.width, y); }
  context.stroke();
};
const paintTicks = (context, { across, up }, size, paints) => {
  context.font = `12px ${FONT}`; context.lineJoin = "round";
  const write = (words, x, y, align, baseline) => {
    context.textAlign = align; context.textBaseline = baseline;
    context.strokeStyle = faded(paints.card, 0.7); context.lineWidth = 3; context.strokeText(words, x, y);
    context.fillStyle = paints.ink2; context.fillText(words, x, y);
  };
  // On top: the page has its layers at the bottom.
  for (const [x, words] of across) write(words, x, 6, "center", "top");
  for (const [y, words] of up) write(words, size.width - 7, y, "right", "middle");
};

// --- a line: the graph of Phi -----------------------------------------------------------------
const paintGraph = (context, frame, paints, { X, Y }, size) => {
  const levels = [[0, paints.ink3, 1.2, []]];
  const margin = 1 / frame.view[3];
  if (frame.graph) levels.push([margin, paints.pos, 1.4, [6, 4]], [-margin, paints.neg, 1.4, [6, 4]]);
  for (const [level, colour, width, dash] of levels) {
    context.strokeStyle = colour; context.lineWidth = width; context.setLineDash(dash);
    context.beginPath(); context.moveTo(0, Y(level)); context.lineTo(size.width - TICK, Y(level)); context.stroke();
  }
  context.setLineDash([]);
  context.strokeStyle = paints.ink2;
  eachRow(frame.breakpoints, ([x, strength]) => {
    const r = 4 + 8 * strength;
    context.globalAlpha = 0.35 + 0.5 * strength; context.lineWidth = 1 + 1.2 * strength;
    context.beginPath(); context.moveTo(X(x), Y(0) - r); context.lineTo(X(x), Y(0) + r); context.stroke();
  });
  context.globalAlpha = 1;
  if (!frame.graph) return;
  // It fades out above the buttons at the foot.
  const bare = size.height < BARE, end = bare ? size.height : size.height - FOOT - FADE;
  const bands = bare ? [] : [0.75, 0.5, 0.25].map((shown, k) => [end + (k * FADE) / 3, FADE / 3, shown]);
  for (const [top, high, shown] of [[0, end, 1], ...bands]) {
    context.save();
    context.beginPath(); context.rect(0, top, size.width, high); context.clip();
    polyline(context, frame.graph, X, Y);
    context.globalAlpha = shown;
    context.strokeStyle = paints.ink; context.lineWidth = 2.5; context.lineJoin = "round"; context.stroke();
    context.restore();
  }
};

// What lies behind all points: the map or an energy, the lines of neurons, the levels.
const paintBackdrop = (context, frame, size, paints, { X, Y }, ticks) => {
  context.fillStyle = paints.card; context.fillRect(0, 0, size.width, size.height);
  if (frame.energy) {
    const [left, bottom, right, top] = frame.energyBox;
    context.imageSmoothingEnabled = true;
    context.drawImage(energyPicture(frame.energy), X(left), Y(top), X(right) - X(left), Y(bottom) - Y(top));
  } else if (frame.map) {
    const s = frame.map.shape[frame.map.shape.length - 1], [dx, dy] = [size.width / (s - 1), size.height / (s - 1)];
    context.imageSmoothingEnabled = true; context.imageSmoothingQuality = "low";
    context.drawImage(mapPicture(frame.map, paints), -dx / 2, -dy / 2, size.width + dx, size.height + dy);
  } else paintGrid(context, ticks, size, paints);
  context.strokeStyle = paints.ink2;
  eachRow(frame.neurons, ([x, y, a, b, strength]) => {
    context.globalAlpha = 0.08 + 0.5 * strength; context.lineWidth = 0.8 + 1.2 * strength;
    context.beginPath(); context.moveTo(X(x), Y(y)); context.lineTo(X(a), Y(b)); context.stroke();
  });
  context.globalAlpha = 1;
  if (frame.map && !frame.energy) paintLevels(context, frame, size, paints);
};
// The same, from a picture while nothing of it changes: a frame in which only points move costs little.
// A frame of a training, which changes all of it, is painted at once.
const keepBackdrop = () => {
  const picture = make("canvas");
  let key = [], times = 0;
  return (context, frame, size, paints, ...more) => {
    const { canvas } = context, { a, d } = context.getTransform();
    const own = [frame.map, frame.energy, frame.neurons, frame.flat, `${frame.energyBox} ${frame.view} ${frame.margins}`, a, d, canvas.width, canvas.height, JSON.stringify(paints)];
    times = own.every((part, i) => part === key[i]) ? times + 1 : 0;
    key = own;
    if (!times) { paintBackdrop(context, frame, size, paints, ...more); return; }
    if (times === 1) {
      Object.assign(picture, { width: canvas.width, height: canvas.height });
      const behind = picture.getContext("2d", { alpha: false });
      behind.setTransform(a, 0, 0, d, 0, 0);
      paintBackdrop(behind, frame, size, paints, ...more);
    }
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(picture, 0, 0);
    context.restore();
  };
};

// What another picture of the page lights: the line of a neuron with the points that pull at it, and
// a point.
const paintLit = (context, frame, size, paints, { X, Y, unit }, { line, ink, pulls, point }) => {
  const inked = ink ? paintOf(ink, paints) : paints.ink;
  if (line) {
    const [a, b, c] = line, r = a * a + b * b || 1e-300, [u, v] = [(-a * c) / r, (-b * c) / r], long = 4 / Math.sqrt(r);
    edged(context, inked, 3, paints, unit, () => {
      if (frame.flat) { context.moveTo(X(u), 0); context.lineTo(X(u), size.height); }
      else { context.moveTo(X(u - long * b), Y(v + long * a)); context.lineTo(X(u + long * b), Y(v - long * a)); }
    });
  }
  if (!pulls.length && !(point >= 0)) return;
  eachRow(frame.points, ([x, y], i) => {
    if (pulls[i] > 0.01) edged(context, inked, 2, paints, unit, () => circle(context, X(x), Y(y), (8 + 12 * pulls[i]) * unit));
    if (i === point) GLYPHS.hand(context, X(x), Y(y), paints, unit);
  });
};
// What a word names that is looked at: each key of the glossary with what it lights on the plane.
const paintTerm = (context, frame, size, paints, { X, Y, unit }, term) => {
  const halo = (x, y, r) => edged(context, paints.accent, 2, paints, unit, () => circle(context, X(x), Y(y), r * unit));
  if (term === "lambda") eachRow(frame.points, ([x, y, , share]) => { if (share > 0.001) halo(x, y, 8 + 10 * Math.sqrt(share)); });
  if (term === "candidate" || (term === "lambda" && frame.hollow)) eachRow(frame.candidates, ([x, y, , share]) => halo(x, y, 5 + 5 * Math.sqrt(Math.max(0, share))));
  if (term === "claim") eachRow(frame.claims, ([x, y]) => halo(x, y, 16));
  if (term === "certified") {
    for (const rows of [frame.claims, frame.marks]) eachRow(rows, ([x, y, kind]) => { if (MARKS[kind] === "certified") halo(x, y, 16); });
  }
  const lines = (rows) => edged(context, paints.accent, 1.6, paints, unit, () => { for (const [x, y, a, b] of rows) { context.moveTo(x, y); context.lineTo(a, b); } });
  if (term === "kink") {
    const rows = [];
    eachRow(frame.neurons, ([x, y, a, b]) => rows.push([X(x), Y(y), X(a), Y(b)]));
    eachRow(frame.breakpoints, ([x]) => rows.push([X(x), 0, X(x), size.height]));
    lines(rows);
  }
  if (term === "margin" && frame.flat) lines([1, -1].map((sign) => [0, Y(sign / frame.view[3]), size.width, Y(sign / frame.view[3])]));
  else if (term === "margin" && frame.map?.shape.length === 2) {
    const s = frame.map.shape[0], d = [size.width / (s - 1), size.height / (s - 1)];
    lines([1, -1].flatMap((level) => { const cuts = cutsOf(frame.map, 0, s, level), rows = []; for (let i = 0; i < cuts.length; i += 4) rows.push([cuts[i] * d[0], cuts[i + 1] * d[1], cuts[i + 2] * d[0], cuts[i + 3] * d[1]]); return rows; }));
  }
};
// Paint one frame on a context whose unit is a CSS pixel. Pure: the same frame, the same picture.
const paintPlane = (context, frame, size, paints, behind = paintBackdrop) => {
  const places = placesOf(frame, size), ticks = ticksOf(frame, size);
  behind(context, frame, size, paints, places, ticks);
  if (frame.flat) paintGraph(context, frame, paints, places, size);
  if (frame.lit) paintLit(context, frame, size, paints, places, frame.lit);
  paintUnder(context, frame, paints, places, size);
  paintPlaces(context, frame, paints, places, size);
  paintDisc(context, frame, paints, places, size);
  paintPoints(context, frame, paints, places);
  paintCandidates(context, frame, paints, places);
  paintResults(context, frame, paints, places);
  paintOver(context, frame, paints, places);
  if (frame.lit?.term) paintTerm(context, frame, size, paints, places, frame.lit.term);
  paintTicks(context, ticks, size, paints);
};
