// The triangle of starts as a relief, whose height is the energy that the colours show, from a ground a
// little below its lowest place up to the end of the scale. Loaded when it is first tilted, see `render` of triangle.js,
// whose functions it is given. Plain canvas: faces from the farthest to the nearest.
const STEEP = 1.08, HIGH = 0.4, ASIDE = 30, ABOVE = 26; // radians at a whole tilt; height in sides; px around; arbitrary
const MOST = 26; // places a side of the faces: with more, every other one
const LIGHT = [-0.62, -0.3, 0.72], DARKEST = 0.62, BRIGHTEST = 1.3; // from the left
const MOST_GROUND = 0.6, ALONG = 48; // height of the ground at most; pieces of a trail; arbitrary
const FINE = 60, NEARER = 0.02; // places a side where the handle may be put; px of a px in front; arbitrary

// From weights and a height to [x, y, depth] on the screen, in a box of this size; flat, as the triangle is,
// at tilt 0. Straight up is straight up on the screen, and what is nearer is lower on it.
export const projection = (corners, { tilt, turn }, size) => {
  const middle = [0, 1].map((c) => (corners[0][c] + corners[1][c] + corners[2][c]) / 3), side = corners[2][0] - corners[1][0];
  const up = Math.sin(tilt * STEEP) * HIGH * side, flat = Math.cos(tilt * STEEP), [p, q] = [Math.sin(turn * tilt), Math.cos(turn * tilt)];
  const turned = (w) => {
    const [x, y] = middle.map((m, c) => w[0] * corners[0][c] + w[1] * corners[1][c] + w[2] * corners[2][c] - m);
    return [q * x - p * y, p * x + q * y];
  };
  // As large as the box allows, and in its middle.
  const ends = [[1, 0, 0], [0, 1, 0], [0, 0, 1]].map(turned), [xs, ys] = [0, 1].map((c) => ends.map((end) => end[c]));
  const [left, right, top, low] = [Math.min(...xs), Math.max(...xs), flat * Math.min(...ys) - up, flat * Math.max(...ys)];
  const k = 1 + tilt * (Math.min((size.width - 2 * ASIDE) / (right - left), (size.height - 2 * ABOVE) / (low - top)) - 1);
  const shift = [size.width / 2 - (k * (left + right)) / 2, size.height / 2 - (k * (top + low)) / 2].map((v, c) => middle[c] + tilt * (v - middle[c]));
  return (w, height) => {
    const [x, depth] = turned(w);
    return [shift[0] + k * x, shift[1] + k * (flat * depth - height * up), depth];
  };
};
const mixed = (a, b, share) => a.map((v, c) => v + share * (b[c] - v));
const css = (colour) => `rgb(${colour.map((v) => Math.round(Math.min(255, v))).join(",")})`;
const known = new WeakMap(); // of lattices: the height of their ground, below all that stands on it
const groundOf = ({ fill, ages }) => {
  const { data } = ages || fill;
  if (!known.has(data)) known.set(data, Math.max(0, Math.min(MOST_GROUND, (255 - data.reduce((a, b) => Math.max(a, b), 1)) / 254 - 0.1)));
  return known.get(data);
};
// Of a byte of the colours, above the ground.
const heightOf = (frame, shade) => ((255 - (shade || 255)) / 254 - groundOf(frame)) / (1 - groundOf(frame));

export const build = ({ VIRIDIS, ON_MAP, FONT, SET_NAMES, faded, shadeAt, ballPath, trailPlaces, STRIDE, thinned, strokePaths, strongOf, rolls, marksOf, paintMarks }) => {
  const seaOf = (frame) => (frame.sea ? Math.max(0, heightOf(frame, frame.sea)) : 0);
  const surface = (frame, w) => Math.max(seaOf(frame), heightOf(frame, shadeAt(frame.fill, w)));

  // The faces of the lattice, each with its corners, depth and colour.
  const facesOf = (frame, at, scale) => {
    const side = frame.fill.shape[0], step = side > MOST ? 2 : 1, last = (side - 1) / step, sea = seaOf(frame);
    const nodes = Array.from({ length: last + 1 }, (_, k) => Array.from({ length: last + 1 - k }, (_, i) => {
      const shade = frame.fill.data[k * step * side + i * step], w = [i / last, (last - k - i) / last, k / last];
      const z = Math.max(heightOf(frame, shade), sea), spot = at(w, z);
      return { w, shade, spot, solid: [spot[0], spot[2], z * scale] };
    }));
    const faces = [];
    const add = (...three) => {
      if (three.some(({ shade }) => !shade)) return; // not computed yet
      const [a, b, c] = three.map(({ solid }) => solid), [u, v] = [b, c].map((one) => one.map((value, k) => value - a[k]));
      const n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
      const size = Math.hypot(...n) * Math.sign(n[2] || 1), lit = n.reduce((sum, value, k) => sum + (value * LIGHT[k]) / size, 0);
      const key = VIRIDIS[Math.round(three.reduce((sum, { shade }) => sum + shade, 0) / 3)];
      const colour = key.map((value) => value * (DARKEST + (BRIGHTEST - DARKEST) * Math.max(0, lit)));
      faces.push({ spots: three.map(({ spot }) => spot), depth: three.reduce((sum, { spot }) => sum + spot[2], 0), colour: css(colour) });
    };
    for (let k = 0; k < last; k++)
      for (let i = 0; i < last - k; i++) {
        add(nodes[k][i], nodes[k + 1][i], nodes[k][i + 1]);
        if (k + i + 2 <= last) add(nodes[k + 1][i + 1], nodes[k + 1][i], nodes[k][i + 1]);
      }
    return { faces: faces.sort((a, b) => a.depth - b.depth), nodes, last };
  };
  const fillPath = (context, spots, colour) => {
    context.beginPath();
    spots.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.closePath(); context.fillStyle = context.strokeStyle = colour; context.lineWidth = 0.7; context.fill(); context.stroke();
  };
  // The walls below the edges that face the eye.
  const paintWalls = (context, at, { nodes, last }, colours) => {
    const along = [...Array(last + 1).keys()], middle = at([1 / 3, 1 / 3, 1 / 3], 0)[2];
    for (const edge of [along.map((i) => nodes[0][i]), along.map((k) => nodes[k][0]), along.map((k) => nodes[k][last - k])]) {
      const [a, b] = [edge[0], edge[last]];
      if ((a.spot[2] + b.spot[2]) / 2 <= middle + 1 || edge.some(({ shade }) => !shade)) continue;
      fillPath(context, [...edge.map(({ spot }) => spot), at(b.w, 0), at(a.w, 0)], colours.line);
    }
  };

  // Where a run stands after a share of its trail.
  const placeAfter = (trail, share) => {
    const t = share * (trail.length - 1), i = Math.min(Math.floor(t), trail.length - 2);
    return i < 0 ? trail[0] : mixed(trail[i], trail[i + 1], t - i);
  };
  // Where a place of the surface is on the screen; and the place that is drawn nearest to a spot.
  const spot = (frame, corners, size, view, w) => projection(corners, view, size)(w, surface(frame, w));
  const nearest = (frame, corners, size, view, [x, y]) => {
    const at = projection(corners, view, size);
    let best = null, least = Infinity;
    for (let k = 0; k <= FINE; k++)
      for (let i = 0; i <= FINE - k; i++) {
        const w = [i / FINE, (FINE - i - k) / FINE, k / FINE], [px, py, depth] = at(w, surface(frame, w));
        const off = Math.hypot(px - x, py - y) - NEARER * depth; // of two that cover each other, that in front
        if (off < least) { least = off; best = w; }
      }
    return best;
  };

  const paint = (context, frame, corners, size, colours, view) => {
    const at = projection(corners, view, size), on = (w) => at(w, surface(frame, w)), side = corners[2][0] - corners[1][0];
    const made = facesOf(frame, at, HIGH * side);
    context.lineJoin = context.lineCap = "round";
    for (const { spots, colour } of made.faces) fillPath(context, spots, colour);
    paintWalls(context, at, made, colours);
    const trails = trailPlaces(frame, (w) => [...w]), spots = trails.map((trail) => trail.map((w) => on(w).slice(0, 2)));
    const along = trails.map((trail) => Array.from({ length: ALONG + 1 }, (_, i) => on(placeAfter(thinned(trail, STRIDE), i / ALONG)).slice(0, 2)));
    strokePaths(context, along, strongOf(frame, spots, (w) => on(w).slice(0, 2)), (run) => view.roll < 1 || rolls(frame, run));
    const balls = trails.map((trail, run) => ({ spot: on(placeAfter(trail, view.roll)), set: frame.ends ? frame.ends.data[run] : 3 }));
    for (const { spot: [x, y], set } of balls.sort((a, b) => a.spot[2] - b.spot[2])) {
      if (view.roll === 1 && set < 3) continue; // it has come to its end
      const r = trails.length > 60 ? 3 : 5;
      context.beginPath(); context.arc(x, y, r, 0, 2 * Math.PI); context.fillStyle = faded(ON_MAP.halo, 0.4); context.fill();
      ballPath(context, x, y - r * view.tilt, set, r);
      context.fillStyle = ON_MAP.ends[set]; context.fill(); context.strokeStyle = ON_MAP.halo; context.lineWidth = 1.2; context.stroke();
    }
    if (view.roll === 1) paintMarks(context, marksOf(frame, spots, (w) => on(w).slice(0, 2)));
    context.font = `14px ${FONT}`; context.textAlign = "center";
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]].forEach((w, k) => {
      const [x, y, depth] = at(w, 0), far = depth < at([1 / 3, 1 / 3, 1 / 3], 0)[2];
      const [, top] = far ? on(w) : [0, y];
      context.textBaseline = far ? "bottom" : "top"; context.strokeStyle = colours.card; context.lineWidth = 4;
      context.strokeText(SET_NAMES[k], x, far ? top - 5 : y + 6); context.fillStyle = colours.ink; context.fillText(SET_NAMES[k], x, far ? top - 5 : y + 6);
    });
    if (!frame.handle) return;
    const [x, y] = on(frame.handle);
    if (frame.focused) { context.beginPath(); context.arc(x, y, 15, 0, 2 * Math.PI); context.strokeStyle = colours.accent; context.lineWidth = 2; context.stroke(); }
    context.beginPath(); context.arc(x, y, 9, 0, 2 * Math.PI); context.fillStyle = colours.card; context.fill();
    context.strokeStyle = frame.enabled === false ? colours.ink3 : colours.accent; context.lineWidth = 4; context.stroke();
  };
  return { paint, spot, nearest };
};
