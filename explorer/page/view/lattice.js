// What the map of all starts reads while a hand passes over it, before the kernel tells: a lattice of
// energies (side, side), row noise and column truth, as `engine/energy/landscape.py` reads it, and its
// number as `number` and `percents` of `page/stages/landscape` print it.
const NEAR_PLACE = 1e-9; // of a step of the lattice, and of a weight: rounding
// The corners of the small triangle around a place, each as [its share, its value].
const cornersAround = ({ data, shape: [side] }, [truth, , noise]) => {
  const last = side - 1, at = (k, i) => data[Math.min(k, last) * side + Math.min(i, last)], clipped = (v, most) => Math.min(most, Math.max(0, v));
  const [a, b] = [noise, truth].map((w) => clipped(Math.floor(w * last + NEAR_PLACE), last));
  const [u, v] = [clipped(noise * last - a, 1), clipped(truth * last - b, 1)];
  return u + v > 1 + NEAR_PLACE && a + b + 2 <= last
    ? [[u + v - 1, at(a + 1, b + 1)], [1 - v, at(a + 1, b)], [1 - u, at(a, b + 1)]]
    : [[1 - u - v, at(a, b)], [u, at(a + 1, b)], [v, at(a, b + 1)]];
};
// The energy at a place; NaN where a corner is not known.
const readLattice = (map, place) => cornersAround(map, place).reduce((sum, [share, value]) => sum + (Math.abs(share) < NEAR_PLACE ? 0 : share * value), 0);

const unexplainedText = (e) => {
  if (!Number.isFinite(e)) return "–";
  const per = 100 * Math.sqrt(Math.max(e, 0));
  return per < 0.01 ? "less than 0.01%" : (per < 0.1 ? per.toPrecision(1) : per.toFixed(1)) + "%"; // as energy_words.py has it
};
const percentsOf = (place) => {
  const exact = place.map((w) => 100 * w), whole = exact.map(Math.floor);
  const order = [...whole.keys()].sort((i, j) => whole[i] - exact[i] - (whole[j] - exact[j]));
  for (const i of order.slice(0, 100 - whole.reduce((a, b) => a + b))) whole[i] += 1;
  return whole;
};
// The words of a place, by the names that the kernel's forms have for them; its `place` and its `value`.
const readingOf = (map, place) => {
  const value = readLattice(map, place), [truth, unseen, noise] = percentsOf(place);
  return { place, value, left: unexplainedText(value), truth, unseen, noise };
};

// --- the strip ----------------------------------------------------------------------------------
// How far round the triangle a place of an edge is, 0 to 1; null within.
const roundOf = ([truth, unseen, noise]) => {
  if (Math.min(truth, unseen, noise) > NEAR_PLACE) return null;
  return (noise <= NEAR_PLACE ? 1 - truth : truth <= NEAR_PLACE ? 1 + noise : 2 + truth) / 3;
};
// Energies along a path that bends at the handle, `share` of the way along: rows of place and energy.
const readPath = (map, from, bend, to, share) => {
  const along = [...Array(81).keys()].map((i) => i / 80).concat(share).sort((a, b) => a - b);
  const mixed = (a, b, t) => a.map((w, c) => w + t * (b[c] - w));
  const rows = along.flatMap((s) => [s, readLattice(map, s < share ? mixed(from, bend, s / share) : mixed(bend, to, share < 1 ? (s - share) / (1 - share) : 0))]);
  return { data: Float32Array.from(rows), shape: [along.length, 2] };
};
// The frame of the strip with its handle, its curves and its axis where a hand holds the start.
const stripAt = (frame, { place, value }) => {
  const { map, reached, path: [from, to] = [] } = frame, made = { ...frame, fall: [], handle: null };
  let share = roundOf(place);
  if (from) {
    const [before, behind] = [from, to].map((end) => Math.hypot(...place.map((w, c) => w - end[c])));
    share = before / Math.max(before + behind, 1e-12);
    made.start = readPath(map, from, place, to, share);
    if (reached && frame.end) made.end = readPath(reached, from, place, to, share);
  }
  if (share !== null) made.handle = [share, value];
  const heights = [made.start, made.end].flatMap((rows) => (rows ? [...rows.data].filter((e, i) => i % 2 && e === e) : []));
  return { ...made, top: Math.max(value, ...heights) };
};
