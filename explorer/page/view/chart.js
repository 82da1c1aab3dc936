// A small chart: lines, bands, dots, bars and stems on one pair of axes, named at their ends.
// `frame`: title, note, foot, label; x, y (axes); series, rules, handle, now, tips, lit; arrays
// `data` (rows of x, y, z, id) and `ends` (where each series ends in it). See chart.py.
const SMALL = `12px ${FONT}`;
const SIZES = { dot: 4, gap: 8, handle: 6 };

// --- numbers and ticks --------------------------------------------------------------------------
const superscript = (n) => String(n).replace(/./g, (c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[+c]));
const worded = (v, axis = {}) => {
  if (!Number.isFinite(v)) return "–";
  if (axis.percent) return v === 0 ? "0%" : `${worded(100 * v)}%`;
  const size = Math.abs(v);
  if (v === 0) return "0";
  if (axis.whole && size < 1e6) return Math.round(v).toLocaleString("en-US");
  if (size >= 1e6 && axis.whole) return `${+(v / 1e6).toPrecision(3)}M`;
  if (size >= 1e5 || size < 1e-3) {
    const power = Math.floor(Math.log10(size) + 1e-9), lead = +(v / 10 ** power).toPrecision(2);
    return lead === 1 ? `10${superscript(power)}` : `${lead}·10${superscript(power)}`;
  }
  return String(+v.toPrecision(3)).replace("-", "−");
};
// At most `most` ticks inside an axis: [[value, words]].
const ticksOf = (axis, most) => {
  if (axis.ticks) return axis.ticks.map((t) => (Array.isArray(t) ? t : [t, worded(t, axis)]));
  const { low, high } = axis, made = [];
  if (axis.log) {
    const from = Math.ceil(Math.log10(low) - 1e-6), to = Math.floor(Math.log10(high) + 1e-6);
    const apart = Math.max(1, Math.ceil((to - from + 1) / Math.max(2, most)));
    for (let p = from; p <= to; p += apart) made.push(10 ** p);
    if (made.length < 2) for (const f of [2, 5]) for (let p = from - 1; p <= to; p++) {
      const v = f * 10 ** p;
      if (v >= low && v <= high) made.push(v);
    }
  } else {
    const raw = (high - low) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(raw));
    let step = [1, 2, 5, 10].find((f) => f * power >= raw * (1 - 1e-9)) * power;
    if (axis.whole) step = Math.max(1, Math.round(step));
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) made.push(k * step);
  }
  return made.sort((a, b) => a - b).map((v) => [v, worded(v, axis)]);
};

// --- where things stand -------------------------------------------------------------------------
const scaleOf = (axis, from, to) => {
  const f = axis.log ? (v) => Math.log(Math.max(v, 1e-300)) : (v) => v;
  const low = f(axis.low), span = f(axis.high) - low || 1;
  const at = (v) => from + ((f(v) - low) / span) * (to - from);
  at.back = (p) => {
    const v = low + ((p - from) / (to - from)) * span;
    return Math.min(axis.high, Math.max(axis.low, axis.log ? Math.exp(v) : v));
  };
  return at;
};
const rowsOf = (frame, k) => {
  const from = k ? frame.ends.data[k - 1] : 0, rows = [], d = frame.data.data;
  for (let i = from; i < frame.ends.data[k]; i++)
    rows.push({ x: d[4 * i], y: d[4 * i + 1], z: d[4 * i + 2], id: d[4 * i + 3] });
  return rows;
};
const NARROW = 400; // px: below, names stand without their values, and one alone is its value: the title names it
const endName = (s, size, series) => {
  if (!s.end || !s.value) return s.end ? s.name : "";
  if (size.width >= NARROW) return `${s.name} ${s.value}`.trim();
  return series.length === 1 ? s.value : s.name;
};
const markName = (s) => (s.kind === "mark" ? `${s.name} ${s.value}`.trim() : "");
const LOW = 90; // px: below, the room of the level axis' name goes to the lines; the card's title says it, too
const named = (frame, size) => frame.x.name && size.height >= LOW;
const layOut = (context, frame, size) => {
  context.font = SMALL;
  const width = (text) => context.measureText(text).width;
  const { x, y } = frame;
  const yTicks = y.hidden ? [] : ticksOf(y, Math.max(2, Math.floor(size.height / 32)));
  const left = y.hidden ? 8 : 10 + Math.max(8, ...yTicks.map(([, words]) => width(words)));
  const names = frame.series.map((s) => endName(s, size, frame.series) || markName(s)).filter(Boolean);
  const right = size.width - (names.length ? Math.min(12 + Math.max(...names.map(width)), 0.5 * size.width) : 12);
  const dots = frame.series.filter((s) => s.kind === "dots" && !y.hidden).map((s) => (s.size || SIZES.dot) + 2);
  const bare = Math.max(6, ...dots); // a dot at 0 stands whole above the edge
  const bottom = size.height - (x.hidden ? bare : named(frame, size) ? 34 : 20), top = 8;
  return { left, right, top, bottom, yTicks, width, wide: size.width, named: named(frame, size), X: scaleOf(x, left, right), Y: scaleOf(y, bottom, top) };
};

// --- painting -----------------------------------------------------------------------------------
const SHAPES = {
  circle: (c, x, y, r) => c.arc(x, y, r, 0, 2 * Math.PI),
  triangle: (c, x, y, r) => { c.moveTo(x, y - 1.15 * r); c.lineTo(x + r, y + 0.75 * r); c.lineTo(x - r, y + 0.75 * r); c.closePath(); },
  square: (c, x, y, r) => c.rect(x - 0.85 * r, y - 0.85 * r, 1.7 * r, 1.7 * r),
  diamond: (c, x, y, r) => { c.moveTo(x, y - 1.2 * r); c.lineTo(x + 1.2 * r, y); c.lineTo(x, y + 1.2 * r); c.lineTo(x - 1.2 * r, y); c.closePath(); },
  tick: (c, x, y, r) => { c.moveTo(x - 0.5 * r, y + 0.05 * r); c.lineTo(x - 0.1 * r, y + 0.45 * r); c.lineTo(x + 0.55 * r, y - 0.4 * r); },
  bar: (c, x, y, r) => { c.moveTo(x - 0.6 * r, y); c.lineTo(x + 0.6 * r, y); },
  cross: (c, x, y, r) => { const k = 0.5 * r; c.moveTo(x - k, y - k); c.lineTo(x + k, y + k); c.moveTo(x + k, y - k); c.lineTo(x - k, y + k); },
};
const OPEN = new Set(["tick", "bar", "cross"]); // strokes
const straight = (c, points, dash = []) => {
  c.setLineDash(dash);
  c.beginPath();
  points.forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
  c.stroke();
  c.setLineDash([]);
};
const paintAxes = (c, frame, at, paints) => {
  c.font = SMALL;
  c.fillStyle = paints.ink3;
  c.strokeStyle = paints.line;
  c.lineWidth = 1;
  c.textBaseline = "middle";
  c.textAlign = "right";
  const ends = [at.yTicks[0], at.yTicks.at(-1)];
  let last = -1e9; // of the ticks between the ends those that have room
  for (const [v, words] of at.yTicks) {
    const y = Math.round(at.Y(v)) + 0.5, between = v !== ends[0][0] && v !== ends[1][0];
    if (between && Math.min(Math.abs(y - last), Math.abs(y - at.Y(ends[1][0]))) < 15) continue;
    last = y;
    if (y < at.top - 6 || y > at.bottom + 1) continue;
    straight(c, [[at.left, y], [at.right, y]], y > at.bottom - 2 ? [] : [2, 4]);
    c.fillText(words, at.left - 6, y);
  }
  if (frame.x.hidden) return;
  if (!frame.y.hidden) straight(c, [[at.left, at.bottom + 0.5], [at.right, at.bottom + 0.5]]);
  c.textBaseline = "alphabetic";
  let free = -1e9;
  const ticks = ticksOf(frame.x, Math.max(2, Math.floor((at.right - at.left) / 80)));
  const held = frame.handle ? at.X(frame.handle.at) : -1e9; // its knob stands there, and its words say the value
  for (const [i, [v, number]] of ticks.entries()) {
    const words = i || at.named || !frame.x.short ? number : `${frame.x.short} ${number}`; // what the axis is, where its name has no room
    const half = at.width(words) / 2, x = Math.min(Math.max(at.X(v), half + 1), at.wide - half - 1);
    if (Math.abs(at.X(v) - held) < half + SIZES.handle) continue;
    if (at.X(v) < at.left - 1 || at.X(v) > at.right + 1 || x - half < free) continue;
    c.textAlign = "center";
    c.fillText(words, x, at.bottom + 15);
    free = x + half + 8;
  }
  if (at.named) {
    c.textAlign = "center";
    c.fillText(frame.x.name, (at.left + at.right) / 2, at.bottom + 30);
  }
};
// Dots where a line was measured; between them it is drawn straight. Dots that would touch are left out.
const paintMeasured = (c, points, width) => {
  const size = 1 + width;
  let last = -1e9;
  for (const [x, y] of points) {
    if (x - last < 3 * size) continue;
    last = x;
    c.beginPath(); c.arc(x, y, size, 0, 2 * Math.PI); c.fill();
  }
};
const paintSeries = (c, s, rows, at, paints, lit) => {
  const ink = paints[s.colour] || paints.ink;
  const known = rows.filter((r) => Number.isFinite(r.x) && Number.isFinite(r.y));
  c.strokeStyle = c.fillStyle = ink;
  c.lineWidth = s.width || 2;
  c.lineJoin = "round";
  c.lineCap = s.width > 6 ? "butt" : "round"; // a bar ends at its value
  c.globalAlpha = s.opacity ?? 1;
  const points = known.map((r) => [at.X(r.x), at.Y(r.y)]);
  if (s.kind === "line") {
    let run = [];
    const draw = () => {
      if (run.length > 1) straight(c, run, s.dashed ? [5, 4] : []);
      else if (run.length) { c.beginPath(); c.arc(run[0][0], run[0][1], 2.5, 0, 7); c.fill(); }
      run = [];
    };
    let before = null;
    for (const r of rows) {
      if (!Number.isFinite(r.x) || !Number.isFinite(r.y)) { draw(); before = null; continue; }
      const p = [at.X(r.x), at.Y(r.y)];
      if (s.steps && before) run.push([p[0], before[1]]);
      run.push(p);
      before = p;
    }
    draw();
    if (s.measured) paintMeasured(c, points, s.width);
  } else if (s.kind === "band" && points.length) {
    c.globalAlpha = s.opacity ?? 0.18;
    c.beginPath();
    points.forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
    [...known].reverse().forEach((r) => c.lineTo(at.X(r.x), at.Y(r.z)));
    c.closePath();
    c.fill();
  } else if (s.kind === "stems") {
    c.lineWidth = s.width || 3;
    known.forEach((r, i) => {
      c.globalAlpha = r.id === lit ? 1 : s.opacity ?? 1;
      if (r.id >= 0 && r.id === lit) { c.lineWidth = (s.width || 3) + 3; } else c.lineWidth = s.width || 3;
      straight(c, [[points[i][0], at.Y(Number.isFinite(r.z) ? r.z : 0)], points[i]]);
    });
  } else if (s.kind === "dots") {
    const size = s.size || SIZES.dot;
    known.forEach((r, i) => {
      const [x, y] = points[i], on = r.id >= 0 && r.id === lit;
      c.lineWidth = 1.5;
      c.setLineDash([]);
      if (on) {
        c.strokeStyle = paints.ink;
        c.beginPath(); c.arc(x, y, size + 4, 0, 2 * Math.PI); c.stroke();
      }
      c.fillStyle = c.strokeStyle = ink;
      c.beginPath();
      (SHAPES[s.shape] || SHAPES.circle)(c, x, y, size);
      if (s.hollow || OPEN.has(s.shape)) c.stroke(); else c.fill();
      if (s.core) { c.beginPath(); c.arc(x, y, 0.45 * size, 0, 2 * Math.PI); c.fill(); }
    });
  }
  c.globalAlpha = 1;
};
// Names at the right of the lines' ends, pushed apart where they would meet.
const paintNames = (c, frame, rows, at, paints, size) => {
  const names = [];
  frame.series.forEach((s, k) => {
    const text = endName(s, size, frame.series), last = rows[k].filter((r) => Number.isFinite(r.x) && Number.isFinite(r.y)).pop();
    if (text && last) names.push({ k, text, y: at.Y(last.y), x: at.X(last.x), colour: paints[s.colour] || paints.ink });
  });
  names.sort((a, b) => a.y - b.y || b.k - a.k);
  const apart = 15, least = at.top + 4, most = at.bottom - 4;
  names.forEach((n, i) => { n.at = Math.max(i ? names[i - 1].at + apart : least, Math.min(n.y, most)); });
  for (let i = names.length - 1; i >= 0; i--)
    names[i].at = Math.min(names[i].at, i < names.length - 1 ? names[i + 1].at - apart : most);
  c.font = SMALL;
  c.textAlign = "left";
  c.textBaseline = "middle";
  // Names that an upright line would cross stand past it.
  const lines = [frame.handle, ...(frame.rules || []).filter((r) => r.axis === "x")].filter(Boolean).map((r) => at.X(r.at));
  return names.map((n) => {
    const from = Math.min(n.x, at.right) + 6, wide = at.width(n.text);
    const left = lines.reduce((l, line) => (line > l - 7 && line < l + wide + 2 ? line + 10 : l), from);
    c.fillStyle = n.colour;
    c.fillText(n.text, left, n.at);
    return { left, right: left + wide, y: n.at };
  });
};
// Marks on a level bar, each with its name at its foot: above the bar, or in two rows below it, where
// the name of a mark further left stands in the lower row if it would touch.
const paintMarks = (c, frame, rows, at, paints) => {
  const marks = frame.series.flatMap((s, k) => (s.kind === "mark" && rows[k].length ? [{ s, x: Math.round(at.X(rows[k][0].x)), y: at.Y(rows[k][0].y) }] : []));
  let free = 1e9; // px: left of the name that was placed last
  for (const { s, x, y } of marks.sort((a, b) => b.x - a.x)) {
    const text = markName(s), low = x + 5 + at.width(text) > free - 8, down = s.above ? -19 : low ? 35 : 19;
    if (!s.above) free = x;
    c.strokeStyle = c.fillStyle = paints[s.colour] || paints.ink;
    c.lineWidth = 2;
    straight(c, [[x, y - Math.sign(down) * 9], [x, y + down + Math.sign(down) * 6]]);
    Object.assign(c, { font: SMALL, textAlign: "left", textBaseline: "middle" });
    c.fillText(text, x + 5, y + down);
  }
};
// What a word lights in a chart: lines, dots and rules whose names, or whose chart's title, say it.
const NAMED_BY = { margin: /margin/i, unseen: /unseen/i, claim: /training points|found|claim/i, candidate: /candidate/i, lambda: /λ|multiplier/i, left: /unexplained/i, kink: /kink/i };
const isNamed = (frame, name) => Boolean(frame.term && NAMED_BY[frame.term]?.test(name || ""));
// What a rule is called: by its own name, or by the tick at which it stands.
const ruleName = (frame, { name, at, axis }) => name || (frame[axis || "y"].ticks || []).find((t) => t[0] === at)?.[1];
const isAside = (frame, name) => !isNamed(frame, name) && frame.series.some((s) => isNamed(frame, s.name));
// The px that paths (of [x, y]) run within a box.
const pxWithin = (paths, { left, right, top, bottom }) => {
  let px = 0;
  for (const path of paths) for (let i = 1; i < path.length; i++) {
    const [[x, y], [u, v]] = [path[i - 1], path[i]], cuts = [[x - left, x - u], [right - x, u - x], [y - top, y - v], [bottom - y, v - y]];
    let [from, to] = [0, 1]; // of the segment: its share within each edge
    for (const [room, way] of cuts) {
      if (way > 0) to = Math.min(to, room / way);
      else if (way < 0) from = Math.max(from, room / way);
      else if (room < 0) to = -1;
    }
    if (to > from) px += (to - from) * Math.hypot(u - x, v - y);
  }
  return px;
};
const pathsOf = (frame, rows, at) => frame.series.flatMap((s, k) => {
  if (s.kind !== "line") return [];
  const path = rows[k].filter((r) => Number.isFinite(r.x) && Number.isFinite(r.y)).map((r) => [at.X(r.x), at.Y(r.y)]);
  return [s.steps ? path.flatMap((p, i) => (i ? [[p[0], path[i - 1][1]], p] : [p])) : path];
});
const paintRules = (c, frame, rows, at, paints) => {
  const boxes = [], lines = pathsOf(frame, rows, at); // boxes: of their names, as of `paintNames`
  if (frame.handle) lines.push([[at.X(frame.handle.at), at.top], [at.X(frame.handle.at), at.bottom]]);
  const end = at.right - (frame.series.some((s) => s.end) ? 10 : 0); // a dash close before a value would be a minus
  c.font = SMALL;
  for (const rule of frame.rules || []) {
    const named = isNamed(frame, ruleName(frame, rule));
    c.strokeStyle = c.fillStyle = named ? paints.accent : paints[rule.colour] || paints.ink2;
    c.lineWidth = named ? 3 : 1;
    const upright = rule.axis === "x", p = Math.round(upright ? at.X(rule.at) : at.Y(rule.at)) + 0.5;
    straight(c, upright ? [[p, at.top], [p, at.bottom]] : [[at.left, p], [end, p]], [4, 3]);
    if (!rule.name) continue;
    const wide = at.width(rule.name), past = upright && p + 8 + wide > at.right;
    const boxFrom = (left, y) => ({ left, right: left + wide, y });
    const ends = upright ? [boxFrom(past ? p - 5 - wide : p + 5, at.top + 7)] : [boxFrom(end - 2 - wide, p - 9), boxFrom(at.left + 4, p - 9)];
    const met = ends.map(({ y, ...box }) => pxWithin(lines, { ...box, top: y - 8, bottom: y + 7 })), box = ends[met.indexOf(Math.min(...met))];
    c.textAlign = "left";
    c.textBaseline = upright ? "top" : "bottom";
    if (upright) while (boxes.some((one) => one.y === box.y && one.left < box.right + 8 && box.left < one.right + 8)) box.y += 16; // below another name
    c.fillText(rule.name, box.left, upright ? box.y - 7 : p - 3);
    boxes.push(box);
  }
  return boxes;
};
// Where the words of the handle stand: the place beside it that is on no name and on no line.
const HEIGHTS = [0.4, 0.15, 0.7, 0.05, 0.25, 0.55, 0.85, 0.95];
const placeWords = (frame, rows, names, at, x, wide) => {
  const lines = pathsOf(frame, rows, at);
  for (const { at: v, axis } of frame.rules || []) if (axis !== "x") lines.push([[at.left, at.Y(v)], [at.right, at.Y(v)]]);
  const clash = ([left, y]) => {
    const met = names.filter((n) => left < n.right + 4 && left + wide > n.left - 4 && Math.abs(y - n.y) < 15).length;
    return 1000 * met + pxWithin(lines, { left: left - 4, right: left + wide + 4, top: y - 10, bottom: y + 10 });
  };
  const sides = [x + 7, x - 7 - wide].filter((left) => left >= at.left && left + wide <= at.right);
  if (!sides.length) sides.push(Math.max(0, x - 7 - wide));
  const places = HEIGHTS.flatMap((f) => sides.map((left) => [left, at.top + f * (at.bottom - at.top)]));
  const worth = places.map(clash);
  return places[worth.indexOf(Math.min(...worth))];
};
const paintHandle = (c, frame, rows, names, at, paints) => {
  const { handle } = frame, x = at.X(handle.at);
  c.strokeStyle = paints.accent;
  c.lineWidth = 2;
  straight(c, [[x, at.top], [x, at.bottom]], [3, 4]);
  c.fillStyle = paints.card;
  c.beginPath();
  c.arc(x, at.bottom, SIZES.handle, 0, 2 * Math.PI);
  c.fill();
  c.stroke();
  c.font = SMALL;
  const words = handle.name ? `${handle.name} ${worded(handle.at, frame.x)}` : worded(handle.at, frame.x);
  const wide = at.width(words), [from, y] = placeWords(frame, rows, names, at, x, wide);
  c.globalAlpha = 0.85;
  c.fillRect(from - 2, y - 8, wide + 4, 16);
  c.globalAlpha = 1;
  c.fillStyle = paints.ink2;
  c.textAlign = "left";
  c.textBaseline = "middle";
  c.fillText(words, from, y);
};
// What the pointer is over: {at: [x, y], lines: words} of the nearest dots or of all lines there.
const nearest = (frame, rows, at, px, py) => {
  let best = null;
  frame.series.forEach((s, k) => {
    if (s.kind !== "dots" && s.kind !== "stems") return;
    for (const r of rows[k]) {
      const x = at.X(r.x), y = at.Y(r.y);
      const away = s.kind === "stems" ? Math.abs(x - px) : Math.hypot(x - px, y - py);
      if (away < (best ? best.away : Math.max(14, 2 * (s.size || 0)))) best = { away, s, r, at: [x, y] };
    }
  });
  if (best) {
    const tip = frame.tips?.[best.r.id];
    const plain = `${best.s.name ? `${best.s.name}: ` : ""}${worded(best.r.y, frame.y)} at ${worded(best.r.x, frame.x)}`;
    return { at: best.at, lines: [tip || plain], id: best.r.id };
  }
  const lines = [];
  let x = null, y = null;
  frame.series.forEach((s, k) => {
    if (s.kind !== "line" || !s.name) return;
    let near = null;
    for (const r of rows[k]) {
      if (!Number.isFinite(r.y)) continue;
      const away = Math.abs(at.X(r.x) - px);
      if (!near || away < near.away) near = { away, r };
    }
    if (!near || near.away > 60) return;
    if (x === null) [x, y] = [near.r.x, near.r.y];
    lines.push(`${s.name} ${worded(near.r.y, frame.y)}`);
  });
  if (!lines.length) return null;
  return { at: [at.X(x), at.Y(y)], lines: [`${frame.x.short || frame.x.name || "x"} ${worded(x, frame.x)}`, ...lines], id: -1, upright: true };
};
const paintTip = (c, tip, size, at, paints) => {
  c.font = SMALL;
  const wide = Math.max(...tip.lines.map(at.width)) + 16, tall = 16 * tip.lines.length + 8;
  let [x, y] = tip.at;
  if (tip.upright) {
    c.strokeStyle = paints.ink3;
    c.lineWidth = 1;
    straight(c, [[x, at.top], [x, at.bottom]]);
  }
  x = Math.max(2, x + 10 + wide > size.width ? x - wide - 10 : x + 10);
  y = Math.min(Math.max(2, y - tall - 6), size.height - tall - 2);
  c.fillStyle = paints.card;
  c.strokeStyle = paints.line;
  c.beginPath();
  c.rect(x, y, wide, tall);
  c.fill();
  c.stroke();
  c.fillStyle = paints.ink;
  c.textAlign = "left";
  c.textBaseline = "middle";
  tip.lines.forEach((words, i) => c.fillText(words, x + 8, y + 12 + 16 * i));
};

// Draw a frame. It depends on nothing else: a recording can be drawn by it without a kernel.
const paintChart = (context, frame, size, paints) => {
  if (!frame || !frame.series || size.width < 40 || size.height < 20) return;
  const at = layOut(context, frame, size), rows = frame.series.map((_, k) => rowsOf(frame, k));
  const tip = frame.pointer ? nearest(frame, rows, at, ...frame.pointer) : null;
  const lit = tip && tip.id >= 0 ? tip.id : frame.lit ?? -1;
  paintAxes(context, frame, at, paints);
  const ruled = paintRules(context, frame, rows, at, paints);
  context.save();
  context.beginPath();
  context.rect(at.left - 12, 0, at.right - at.left + 24, at.bottom + 12);
  context.clip();
  frame.series.forEach((s, k) => {
    const opacity = isAside(frame, s.name) ? 0.25 * (s.opacity ?? 1) : s.opacity, wide = s.kind === "line" && isNamed(frame, s.name) ? 4 : s.width;
    paintSeries(context, { ...s, opacity, width: wide }, rows[k], at, paints, lit);
  });
  context.restore();
  const names = [...ruled, ...paintNames(context, frame, rows, at, paints, size)];
  paintMarks(context, frame, rows, at, paints);
  if (frame.handle) paintHandle(context, frame, rows, names, at, paints);
  if (tip) paintTip(context, tip, size, at, paints);
};

// --- the view -----------------------------------------------------------------------------------
const ROWS_SAID = 12; // of one line in the table of a screen reader
const RESTS_MS = 400, LATEST_MS = 5000; // a table is written when its chart rests, or so long after the last
const fillTable = (table, frame) => {
  const made = [["what", frame.x.short || frame.x.name || "x", frame.y.short || frame.y.name || "y"]];
  frame.series.forEach((s, k) => {
    const rows = rowsOf(frame, k).filter((r) => Number.isFinite(r.y)), last = rows.length - 1;
    const most = s.kind === "line" || s.kind === "band" ? ROWS_SAID : 200;
    const picks = new Set(rows.length <= most ? rows.keys() : [...Array(most).keys()].map((i) => Math.round((i * last) / (most - 1))));
    for (const i of picks) {
      const r = rows[i], band = s.kind === "band" ? `${worded(r.z, frame.y)} to ` : "";
      made.push([frame.tips?.[r.id] || s.name, worded(r.x, frame.x), band + worded(r.y, frame.y)]);
    }
  });
  fillRows(table, frame.label || frame.title, made);
};
// Words below a chart, in which the glyphs of the key have the colour that they have above.
const keyed = (el, { foot: text, series }) => {
  const full = series.some((s) => s.kind === "dots" && s.colour === "good" && !s.hollow && s.shape !== "tick"), glyphs = full ? /([●✓])/ : /(✓)/;
  if (el.mxText === text && el.mxFull === full) return;
  el.mxFull = full;
  explain(el, text);
  const nodes = document.createTreeWalker(el, NodeFilter.SHOW_TEXT), found = [];
  while (nodes.nextNode()) if (glyphs.test(nodes.currentNode.data)) found.push(nodes.currentNode);
  for (const node of found) node.replaceWith(...node.data.split(glyphs).map((part, i) => (i % 2 ? make("span", "mx-good", { textContent: part }) : part)));
};
const build = (el) => {
  el.classList.add("mx-chart-view", "mx-empty"); // until there is a frame
  const title = make("b"), note = make("span"), head = make("div", "mx-chart-head", {}, title, note);
  const plot = make("div", "mx-chart-plot"), foot = make("div", "mx-chart-foot"), table = make("table");
  el.append(head, plot, foot, make("div", "mx-said", {}, table)); // in a box: a table cannot be so small
  return { head, title, note, plot, foot, table };
};
const render = ({ model, el }) => {
  const parts = build(el), { plot } = parts, view = Math.random();
  let frame = null, dragging = false, said = null, told = performance.now(), pick = -1;
  let term = "";
  const drawn = (context, size, paints) => frame && paintChart(context, { ...frame, term }, size, paints);
  const sheet = surface(plot, drawn);
  const unlight = onLight(plot, (what) => {
    if (what.term === undefined || what.term === term) return;
    term = sheet.canvas.mxTerm = what.term; // for tests
    sheet.redraw();
  });
  const unsave = offerPictures(model, el, plot, drawn, () => slug(frame.title || (frame.label || "chart").split(":")[0]));
  const describe = () => {
    const { handle } = frame, picks = frame.picks ? idsOf() : [], live = handle || picks.length;
    plot.tabIndex = live ? 0 : -1;
    plot.setAttribute("role", live ? "slider" : "img");
    plot.setAttribute("aria-label", frame.label || frame.title || "chart");
    for (const name of ["aria-valuemin", "aria-valuemax", "aria-valuenow", "aria-valuetext"]) if (!live) plot.removeAttribute(name);
    if (!live) return;
    const now = handle ? handle.at : Math.max(pick, 0), ends = handle ? [frame.x.low, frame.x.high] : [0, Math.max(...picks)];
    const text = handle ? `${handle.name || ""} ${worded(handle.at, frame.x)}` : frame.tips?.[pick] || "no point chosen";
    for (const [name, value] of [["min", ends[0]], ["max", ends[1]], ["now", now], ["text", text]]) plot.setAttribute(`aria-value${name}`, value);
  };
  const idsOf = () => {
    const found = new Set();
    for (let i = 3; i < frame.data.data.length; i += 4) if (frame.data.data[i] >= 0) found.add(frame.data.data[i]);
    return [...found].sort((a, b) => a - b);
  };
  const say = () => { told = performance.now(); fillTable(parts.table, frame); };
  const take = (newest) => {
    const { pointer, handle } = frame || {};
    frame = newest;
    if (pointer) frame.pointer = pointer;
    if (dragging && frame.handle) frame.handle.at = handle.at;
    explain(parts.title, frame.title); explain(parts.note, frame.note); keyed(parts.foot, frame);
    parts.head.style.display = frame.title || frame.note ? "" : "none";
    parts.foot.style.display = frame.foot ? "" : "none";
    el.classList.toggle("mx-empty", !frame.series.length);
    plot.style.cursor = frame.handle ? "ew-resize" : frame.picks ? "pointer" : "";
    describe();
    clearTimeout(said);
    said = setTimeout(say, Math.max(0, Math.min(RESTS_MS, told + LATEST_MS - performance.now())));
  };
  const unfollow = follow(model, () => sheet.redraw(), take, el, false); // slower than the plane, which sets the pace

  // --- the pointer: the value under it, a point of the row, the handle ---
  const layout = () => {
    const r = rectOf(plot);
    return layOut(sheet.canvas.getContext("2d"), frame, { width: r.width, height: r.height });
  };
  const telling = paced(40, (content) => model.send(content)), tell = telling.ask;
  const over = (id) => {
    if (!frame.picks || id === pick) return;
    pick = id;
    tell({ kind: "hover", id }, true);
  };
  const place = (e) => placeIn(plot, e);
  const seen = (p) => nearest(frame, frame.series.map((_, k) => rowsOf(frame, k)), layout(), ...p);
  const pull = (e, now) => {
    frame.handle.at = layout().X.back(place(e)[0]);
    tell({ kind: "handle", at: frame.handle.at }, now);
    describe();
    sheet.redraw();
  };
  plot.addEventListener("pointermove", (e) => {
    if (!frame) return;
    if (dragging) { pull(e, false); return; }
    frame.pointer = place(e);
    over(seen(frame.pointer)?.id ?? -1);
    sheet.redraw();
  });
  plot.addEventListener("pointerleave", () => {
    if (!frame) return;
    delete frame.pointer;
    over(-1);
    sheet.redraw();
  });
  plot.addEventListener("pointerdown", (e) => {
    if (!frame || e.button) return;
    const found = frame.picks ? seen(place(e)) : null;
    if (found && found.id >= 0) { model.send({ kind: "choose", id: found.id }); return; }
    if (!frame.handle) return;
    e.preventDefault();
    plot.focus({ preventScroll: true });
    plot.setPointerCapture(e.pointerId);
    dragging = true;
    delete frame.pointer;
    pull(e, true);
  });
  const drop = (e) => { if (dragging) { pull(e, true); dragging = false; } };
  plot.addEventListener("pointerup", drop);
  plot.addEventListener("pointercancel", () => { dragging = false; });
  plot.addEventListener("keydown", (e) => {
    const turn = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[e.key];
    if (!frame || (!turn && e.key !== "Enter")) return;
    if (frame.handle && turn) {
      const at = layout(), step = (e.shiftKey ? 0.1 : 0.02) * (at.right - at.left);
      frame.handle.at = at.X.back(at.X(frame.handle.at) + turn * step);
      tell({ kind: "handle", at: frame.handle.at }, true);
    } else if (frame.picks && turn) {
      const ids = idsOf(), i = ids.indexOf(pick);
      over(ids[Math.min(ids.length - 1, Math.max(0, i + turn))]);
      frame.lit = pick;
    } else if (frame.picks && pick >= 0) model.send({ kind: "choose", id: pick });
    else return;
    e.preventDefault();
    describe();
    sheet.redraw();
  });
  // Nothing is sent to a chart that is folded away or out of the stage.
  const sight = (yes) => attempt(() => model.send({ kind: "sight", seen: yes, view })); // the page may have ended
  const watcher = new IntersectionObserver((entries) => sight(entries[entries.length - 1].isIntersecting));
  watcher.observe(el);
  return () => { watcher.disconnect(); sight(false); unfollow(); unlight(); unsave(); sheet.close(); clearTimeout(said); telling.end(); };
};
export default { render };
