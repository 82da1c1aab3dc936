// The landscape of starts without Python: energies that were computed, and runs that roll. triangle.js and
// player.js stand before it.
const ROLL_S = 6, ROLL_RATE = 30; // all runs at Play, as on the page

// A view of the page without a kernel behind it: what it would send goes to `hear`.
const localModel = (values, hear = () => {}) => {
  const calls = new Map(), kinds = { Float32Array: "f", Uint8Array: "u", Int32Array: "i" };
  let last = {};
  const tell = (name, ...given) => { for (const call of calls.get(name) || []) call(...given); };
  return {
    alone: true,
    get: (name) => values[name],
    on: (name, call) => { if (!calls.has(name)) calls.set(name, new Set()); calls.get(name).add(call); },
    off: (name, call) => calls.get(name)?.delete(call),
    send: (content) => hear(content),
    set: (more) => { Object.assign(values, more); for (const name of Object.keys(more)) tell(`change:${name}`); },
    // A frame: {name: {data, shape}}, and plain values. What is the array of the frame before stays as it is.
    show: (arrays, given) => {
      const fresh = Object.values(arrays).filter(({ data }, i) => last[Object.keys(arrays)[i]] !== data);
      const rows = Object.entries(arrays).map(([name, { data, shape }]) => [name, last[name] === data ? "=" : kinds[data.constructor.name], shape]);
      last = Object.fromEntries(Object.entries(arrays).map(([name, { data }]) => [name, data]));
      tell("msg:custom", { kind: "frame", frame: 1, values: given, arrays: rows }, fresh.map(({ data }) => data));
    },
  };
};

// The landscape of starts: the handle stands at the places whose energy was computed, Play rolls all
// runs, and an end that is pressed shows its run. `show(frames, i, rate)` shows frames on the plane.
const landscapeOf = (starts, show) => {
  const el = make("div", "mx-card"), view = make("div", "mx-played-triangle"), steps = ROLL_S * ROLL_RATE;
  const counts = make("p", "mx-note-text", {}, ...starts.counts.flatMap(([mark, colour, name, count]) => {
    const sign = make("span", "mx-end", { textContent: mark });
    sign.style.color = colour;
    return [sign, ` ${name} ${count}  `];
  }));
  el.append(make("div", "mx-chart-head", {}, make("b", "", { textContent: starts.title }), make("span", "", { textContent: starts.unit })), view, counts);
  let run = -1, number = 0;
  const away = (a, b) => a.reduce((sum, v, k) => sum + (v - b[k]) ** 2, 0);
  const nearest = (rows, to) => rows.reduce((best, at, i) => (away(at, to) < away(rows[best], to) ? i : best), 0);
  const model = localModel({ handle: starts.at, enabled: true, small: false, taken: 0, say: "", rows: [], label: starts.label }, (content) => {
    if (content.kind === "handle") { number = content.number; place(nearest(starts.nodes, content.weights)); }
    if (content.kind === "ball" && starts.shown.includes(content.index)) roll(starts.shown.indexOf(content.index), steps);
  });
  TRIANGLE.render({ model, el: view });
  // The runs up to a share of their trails, and the colours, which never change.
  const rolled = (share) => {
    const cut = starts.trails.map((places) => places.slice(0, 1 + Math.round(share * (places.length - 1))));
    const longest = Math.max(1, ...cut.map((places) => places.length));
    const trails = Float32Array.from(cut.flatMap((places) => Array.from({ length: longest }, (_, i) => places[Math.min(i, places.length - 1)]).flat()));
    const ends = { data: Uint8Array.from(starts.ends, (end) => (share < 1 ? 3 : end)), shape: [starts.ends.length] };
    return { ends, ...(cut.length && { trails: { data: trails, shape: [cut.length, longest, 3] } }) };
  };
  const side = Math.sqrt(starts.fill.length), fill = side && { fill: { data: Uint8Array.from(starts.fill), shape: [side, side] } };
  const whole = rolled(1);
  let drawn = null;
  const draw = (share) => {
    const arrays = share < 1 ? rolled(share) : whole;
    if (arrays !== drawn) model.show({ ...arrays, ...fill }, {});
    drawn = arrays;
  };
  const place = (i) => {
    run = -1;
    const picture = starts.frames[1 + i];
    model.set({ handle: starts.nodes[i], taken: number, say: `${picture.title}. ${picture.fold.map((row) => row.join(" ")).join(", ")}` });
    show([picture], 0, 1);
  };
  // The frames of all runs rolling, the chosen one on the plane.
  const roll = (chosen, from) => {
    run = chosen;
    const { at, first, count } = starts.runs[chosen];
    model.set({ handle: at, taken: number });
    const frames = Array.from({ length: steps + 1 }, (_, i) => ({ ...starts.frames[first + Math.min(count - 1, Math.floor((i / steps) * (count - 1) + 1e-9))], share: i / steps }));
    show(frames, from, ROLL_RATE);
  };
  return {
    el, draw: (picture) => draw(picture.share ?? 1), open: () => { run = -1; model.set({ handle: starts.at }); show([starts.frames[0]], 0, 1); },
    play: () => (run >= 0 ? false : starts.runs.length && (roll(nearest(starts.runs.map(({ at }) => at), model.get("handle")), 0), true)),
  };
};
