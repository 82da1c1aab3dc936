// Ready-made sets as small pictures; below, how many points, how noisy, which seed.
const build = (el, send) => {
  const grid = make("div", "mx-thumbs", { role: "group", "aria-label": "Start from a set" });
  const field = (name, type, more, title) => {
    const input = make("input", "", { type, title, "aria-label": name, ...more });
    const shown = make("b", "");
    const box = make("label", "mx-field", {}, make("span", "", {}, name, type === "range" ? shown : ""), input);
    return { box, input, shown };
  };
  const n = field("points", "range", { min: 1, max: 200, step: 1 }, "Number of points of the set");
  const noise = field("noise", "range", { min: 0, max: 1, step: 0.01 }, "Noise, in units of the plane");
  const seed = field("seed", "number", { min: 0, max: 2147483647, step: 1 }, "Seed of the set, the first weights and the attack: the same seed, the same run");
  const again = makeButton("mx-flat", "↻ another", "Draw the set with the next seed", () => send("another"));
  const axis = makeButton("mx-thumbs-axis", "", undefined, () => send("axis"));
  el.append(make("div", "mx-thumbs-head", {}, make("div", "mx-card-title", { textContent: "Start from a set" }), axis), grid,
    make("div", "mx-fields", {}, seed.box, n.box, noise.box, again));
  const redraw = () => send("redraw", { n: Number(n.input.value), noise: Number(noise.input.value) });
  for (const f of [n, noise]) {
    f.input.addEventListener("input", () => { f.shown.textContent = f.input.value; });
    f.input.addEventListener("change", redraw);
  }
  seed.input.addEventListener("change", () => send("seed", Number(seed.input.value)));
  const tiles = new Map();
  return (state) => {
    if (!state.sets) return;
    for (const { key, title, tip, points } of state.sets) if (!tiles.has(key)) {
      const tile = makeButton("mx-thumb", undefined, tip, () => send("preset", key));
      tile.innerHTML = dotsOf(points);
      tile.append(make("span", "", { textContent: title }));
      tiles.set(key, tile);
      grid.append(tile);
    }
    for (const [key, tile] of tiles) attribute(tile, "aria-pressed", String(key === state.chosen));
    n.input.min = state.low; n.input.max = state.high;
    for (const [f, value] of [[n, state.n], [noise, state.noise], [seed, state.seed]])
      if (document.activeElement !== f.input || f.input.type === "range") { put(f.input, "value", String(value)); f.shown.textContent = state.chosen ? value : ""; }
    for (const one of [n.input, noise.input, again]) put(one, "disabled", !state.chosen); // they are of a ready-made set
    put(axis, "textContent", state.axis[0]);
    put(axis, "title", state.axis[1]);
  };
};
