// The triangle of starts. `paintTriangle(context, frame, size, colours)` is pure; see canvases.py
// for the arrays of a frame. Beside these it has `handle`, `small`, `focused` and `enabled`.
const SET_NAMES = ["truth", "unseen", "noise"];
// The marks on the map are the same in both themes, as it is.
const ON_MAP = { halo: "#10131a", path: "#ffffff", ends: ["#5ee08a", "#c9d1da", "#7de3f4", "#ffffff", "#10131a"] };
// px to a corner or an edge within which a place is on it: more on a large triangle, for a hand at a projector
const snapOf = (side) => Math.min(14, Math.max(7, 0.04 * side));
const TILTED = 0.85, TURNED = -0.45, TILT_MS = 350, ROLL_MS = 3000; // of the relief that a click makes; arbitrary
const REST_MS = 150; // of a pointer that stays: the drag has come to rest; arbitrary
const TILT_TIP = "Tilt into a relief, as high as the energy; drag to tilt and turn (with Shift anywhere), or arrow keys. Flat again by a click.";

const AGES_TIP = "The same starts on weights of other steps of training; between two of them the heights are mixed";

// In a wide box the names stand beside the corners, and the triangle has the whole height but for the handle.
const SMALL = [10, 24], NARROW = [28, 30], WIDE = [80, 16]; // px aside, and above and below: names stand clear of the handle
const sideOf = ({ width, height }, [aside, above]) => Math.max(10, Math.min(width - 2 * aside, ((height - 2 * above) * 2) / Math.sqrt(3)));
const isWide = (size, small) => !small && sideOf(size, WIDE) >= sideOf(size, NARROW);
// Corners of truth, unseen and noise in a box of this size.
const cornersOf = (size, small) => {
  const room = small ? SMALL : isWide(size, small) ? WIDE : NARROW, side = sideOf(size, room);
  const high = (side * Math.sqrt(3)) / 2, x = size.width / 2, y = (size.height - high) / 2;
  return [[x, y], [x - side / 2, y + high], [x + side / 2, y + high]];
};
const placeOf = (w, corners) => [0, 1].map((c) => w[0] * corners[0][c] + w[1] * corners[1][c] + w[2] * corners[2][c]);
const weightsOf = ([x, y], [a, b, c]) => {
  const det = (b[1] - c[1]) * (a[0] - c[0]) + (c[0] - b[0]) * (a[1] - c[1]);
  const t = ((b[1] - c[1]) * (x - c[0]) + (c[0] - b[0]) * (y - c[1])) / det;
  const u = ((c[1] - a[1]) * (x - c[0]) + (a[0] - c[0]) * (y - c[1])) / det;
  return [t, u, 1 - t - u];
};
// The place of the triangle nearest to (x, y), on its edge where that is outside, and on corners
// and edges where it is nearly so.
const nearestWeights = (at, corners) => {
  const snap = snapOf(corners[2][0] - corners[1][0]);
  for (let k = 0; k < 3; k++)
    if (Math.hypot(at[0] - corners[k][0], at[1] - corners[k][1]) < snap) return [0, 1, 2].map((i) => +(i === k));
  const side = corners[2][0] - corners[1][0], high = corners[1][1] - corners[0][1];
  let w = weightsOf(at, corners);
  const close = w.map((v) => v * high < snap);
  if (!close.some(Boolean)) return w;
  let best = null;
  for (let k = 0; k < 3; k++) {
    if (!close[k]) continue;
    const [a, b] = [0, 1, 2].filter((i) => i !== k), [p, q] = [corners[a], corners[b]];
    const along = ((at[0] - p[0]) * (q[0] - p[0]) + (at[1] - p[1]) * (q[1] - p[1])) / (side * side);
    const t = Math.min(1, Math.max(0, along)), x = p[0] + t * (q[0] - p[0]), y = p[1] + t * (q[1] - p[1]);
    const far = Math.hypot(at[0] - x, at[1] - y);
    if (best && best.far <= far) continue;
    const found = [0, 0, 0];
    found[a] = 1 - t; found[b] = t;
    best = { far, found };
  }
  return best.found;
};

const pictures = new WeakMap(); // of a lattice: drawn once
// The shade of a lattice at a place, linear between those known; 0 where none is.
const shadeAt = (fill, place) => {
  const sum = place[0] + place[1] + place[2];
  let total = 0, value = 0;
  for (const [weight, shade] of cornersAround(fill, place.map((w) => w / sum))) if (shade && weight > 0) { total += weight; value += weight * shade; }
  return total && value / total;
};
const fillPicture = (fill) => {
  if (pictures.has(fill.data)) return pictures.get(fill.data);
  const w = 288, h = Math.round((w * Math.sqrt(3)) / 2);
  const canvas = make("canvas", "", { width: w, height: h });
  const context = canvas.getContext("2d"), image = context.createImageData(w, h);
  const corners = [[w / 2, 0], [0, h], [w, h]];
  for (let y = 0; y < h; y++)
    for (let x = 0; x < w; x++) {
      const place = weightsOf([x + 0.5, y + 0.5], corners);
      if (Math.min(...place) < -0.03) continue; // a rim, for the clip of the edge
      const shade = shadeAt(fill, place.map((v) => Math.max(0, v)));
      if (shade) image.data.set([...VIRIDIS[Math.round(shade)], 255], 4 * (y * w + x));
    }
  context.putImageData(image, 0, 0);
  pictures.set(fill.data, canvas);
  return canvas;
};

// The colours of basins: the rest in grey, that of the truth, then the largest.
const BASINS = ["#8b93a1", "#5ee08a", "#e69f00", "#56b4e9", "#cc79a7", "#f0e442", "#7a6ff0", "#c2703d", "#2bb5a0", "#e4576e"];
// Each place in the colour of the start nearest to it.
const basinPicture = ({ starts, basins }) => {
  if (pictures.has(basins.data)) return pictures.get(basins.data);
  const w = 288, h = Math.round((w * Math.sqrt(3)) / 2), corners = [[w / 2, 0], [0, h], [w, h]];
  const canvas = make("canvas", "", { width: w, height: h }), paints = BASINS.map(rgb);
  const context = canvas.getContext("2d"), image = context.createImageData(w, h);
  const places = [...basins.data.keys()].map((i) => placeOf(starts.data.subarray(3 * i, 3 * i + 3), corners));
  for (let y = 0; y < h; y++)
    for (let x = 0; x < w; x++) {
      let near = Infinity, best = 0;
      for (let i = 0; i < places.length; i++) {
        const a = places[i][0] - x, b = places[i][1] - y, far = a * a + b * b;
        if (far < near) { near = far; best = i; }
      }
      const k = basins.data[best];
      image.data.set([...paints[k], k ? 205 : 70], 4 * (y * w + x));
    }
  context.putImageData(image, 0, 0);
  pictures.set(basins.data, canvas);
  return canvas;
};

// Of an end, with a shape that no class of points has; a circle while it runs.
const ballPath = (context, x, y, set, r) => {
  context.beginPath();
  if (set === 2) context.rect(x - 1.3 * r, y - 0.5 * r, 2.6 * r, r);
  else if (set > 2) context.arc(x, y, r, 0, 2 * Math.PI);
  else for (let i = 0, n = set ? 6 : 10; i < n; i++) { // a hexagon, or a star
    const a = (2 * Math.PI * i) / n - Math.PI / 2, far = set ? 1.1 * r : (i % 2 ? 0.65 : 1.45) * r;
    context[i ? "lineTo" : "moveTo"](x + far * Math.cos(a), y + far * Math.sin(a));
  }
  context.closePath();
};
const trailPlaces = (frame, where) => {
  if (!frame.trails) return [];
  const [k, t] = frame.trails.shape;
  return Array.from({ length: k }, (_, run) =>
    Array.from({ length: t }, (_, i) => {
      const o = 3 * (run * t + i);
      return where(frame.trails.data.subarray(o, o + 3));
    }));
};

// --- how runs end, at the places where they began ------------------------------------------------
const LARGE = 7, SMALL_MARK = 4, MANY = 30, ROLLS = 3; // px: radius of a mark, and of one among so many; kind of a run under way
const INWARD = 24, CLEAR = 16; // px by which a mark makes room for the handle, where that is so near
const boxAt = ({ at: [x, y], r }) => [x - 1.5 * r, y - 1.5 * r, x + 1.5 * r, y + 1.5 * r];
const covers = (box, [x, y]) => x >= box[0] && x <= box[2] && y >= box[1] && y <= box[3];
// A mark for each start `spots` (k) whose runs have ended: {spot, at, kind, runs, r}. `kinds`: 0 truth, 1 as good, 2 stuck, of
// several runs the best. Where marks have room one makes room for the handle, aside towards the `middle` of the triangle.
const endMarks = (spots, kinds, handle, middle) => {
  const made = new Map();
  spots.forEach((spot, run) => {
    if (kinds[run] >= ROLLS) return;
    const key = spot.map(Math.round).join(), mark = made.get(key) || { spot, at: spot, kind: kinds[run], runs: [] };
    mark.kind = Math.min(mark.kind, kinds[run]); mark.runs.push(run); made.set(key, mark);
  });
  const marks = [...made.values()], many = marks.length >= MANY;
  for (const mark of marks) {
    mark.r = many ? SMALL_MARK : LARGE;
    const [x, y] = mark.spot;
    if (!many && handle && Math.hypot(x - handle[0], y - handle[1]) < CLEAR) {
      const aside = middle[0] - x;
      mark.at = Math.abs(aside) < 1 ? [x, y + (y < middle[1] - 1 ? INWARD : -INWARD)] : [x + Math.sign(aside) * INWARD, y];
    }
  }
  return marks;
};
const paintMarks = (context, marks) => {
  for (const { at: [x, y], kind, r } of marks) {
    ballPath(context, x, y, kind, r);
    context.fillStyle = ON_MAP.ends[kind]; context.fill(); context.strokeStyle = ON_MAP.halo; context.lineWidth = 1.2; context.stroke();
  }
};
// Where the runs that are drawn are: fewer places of a trail, no two of them near each other but its ends.
const STRIDE = 0.05, FEW = 3, UNDER = 14; // of a side between two; runs that are all drawn strong; px around the handle; arbitrary
const thinned = (path, least) => {
  const kept = path.slice(0, 1);
  for (const place of path.slice(1, -1)) if (Math.hypot(...[0, 1].map((c) => place[c] - kept[kept.length - 1][c])) >= least) kept.push(place);
  return path.length > 1 ? [...kept, path[path.length - 1]] : kept;
};
// The paths of runs: strong, or faint while they roll; those that have ended are not drawn.
const strokePaths = (context, paths, strong, faint) => {
  const few = paths.length <= FEW;
  const layers = [[faded(ON_MAP.halo, 0.35), 2, false], [faded(ON_MAP.path, 0.45), 0.9, false], [faded(ON_MAP.halo, 0.7), 4, true], [ON_MAP.path, 1.8, true]];
  for (const [colour, width, lit] of layers)
    paths.forEach((path, run) => {
      const shown = few || strong(run);
      if (shown !== lit || (!shown && !faint(run))) return;
      context.beginPath();
      path.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
      context.strokeStyle = colour; context.lineWidth = width; context.stroke();
    });
};
const rolls = (frame, run) => !frame.ends || frame.ends.data[run] >= ROLLS;

const MIDDLE = [1 / 3, 1 / 3, 1 / 3];
const marksOf = (frame, paths, where) => {
  const kinds = frame.ends ? [...frame.ends.data] : [];
  return endMarks(paths.map(([begun]) => begun), kinds, frame.handle && where(frame.handle), where(MIDDLE));
};
// Which runs are drawn strong: those under the pointer, and those that began under the handle.
const strongOf = (frame, paths, where) => {
  const at = frame.handle && where(frame.handle);
  return (run) => frame.over?.includes(run) || !!at && Math.hypot(paths[run][0][0] - at[0], paths[run][0][1] - at[1]) < UNDER;
};

const paintTriangle = (context, frame, size, colours) => {
  const corners = cornersOf(size, frame.small), [top, left, right] = corners;
  const outline = () => { context.beginPath(); context.moveTo(...top); context.lineTo(...left); context.lineTo(...right); context.closePath(); };
  const fill = frame.basins ? basinPicture(frame) : frame.fill && fillPicture(frame.fill);
  if (fill) {
    context.save(); outline(); context.clip();
    context.drawImage(fill, left[0], top[1], right[0] - left[0], left[1] - top[1]);
    context.restore();
  } else { outline(); context.fillStyle = colours.soft; context.fill(); }
  outline(); context.strokeStyle = colours.ink2; context.lineWidth = 1.5; context.lineJoin = "round"; context.stroke();
  const paths = trailPlaces(frame, (w) => placeOf(w, corners));
  context.lineCap = context.lineJoin = "round";
  const strong = strongOf(frame, paths, (w) => placeOf(w, corners));
  strokePaths(context, paths.map((path) => thinned(path, STRIDE * (right[0] - left[0]))), strong, (run) => rolls(frame, run));
  paths.forEach((path, run) => {
    const [x, y] = path[path.length - 1], set = frame.ends ? frame.ends.data[run] : ROLLS;
    if (!frame.sizes && set < ROLLS && !strong(run)) return;
    const size = frame.sizes ? frame.sizes.data[run] * (frame.small ? 0.7 : 1) : paths.length > 60 ? 3 : 4.5;
    if (frame.tints && frame.chosen === run) {
      ballPath(context, x, y, 3, size + 5);
      context.strokeStyle = colours.card; context.lineWidth = 6; context.stroke();
      context.strokeStyle = colours.accent; context.lineWidth = 3; context.stroke();
    }
    ballPath(context, x, y, set, size);
    context.fillStyle = frame.tints ? BASINS[frame.tints.data[run]] : ON_MAP.ends[set]; context.fill();
    context.strokeStyle = ON_MAP.halo; context.lineWidth = frame.tints ? 0.8 : 1.2; context.stroke();
  });
  const held = frame.handle && placeOf(frame.handle, corners);
  const marks = frame.sizes ? [] : marksOf(frame, paths, (w) => placeOf(w, corners));
  paintMarks(context, marks);
  // Over runs and their ends, so that they can be read.
  context.font = `${frame.small ? 12 : 14}px ${FONT}`; context.textAlign = "center";
  const r = frame.small ? 7 : 9, clear = r + 4; // of the handle
  const name = (words, at, y, side, align = "center") => {
    const half = context.measureText(words).width / 2 + 2, x = align === "center" ? Math.max(half, Math.min(at, size.width - half)) : at;
    context.textBaseline = side; context.textAlign = align; context.strokeStyle = colours.card; context.lineWidth = 4; context.strokeText(words, x, y);
    context.fillStyle = colours.ink; context.fillText(words, x, y);
  };
  if (frame.wide)
    corners.forEach((corner, k) => { // clear of the handle and of the mark at this corner
      const side = k === 1 ? -1 : 1, there = marks.filter(({ at }) => Math.hypot(at[0] - corner[0], at[1] - corner[1]) < 1);
      const edges = there.map((mark) => Math.abs(boxAt(mark)[k === 1 ? 0 : 2] - corner[0]) + 6);
      name(SET_NAMES[k], corner[0] + side * Math.max(clear + 3, ...edges), corner[1], "middle", k === 1 ? "right" : "left");
    });
  else {
    name(SET_NAMES[0], top[0], top[1] - clear, "bottom");
    name(SET_NAMES[1], left[0], left[1] + clear, "top");
    name(SET_NAMES[2], right[0], right[1] + clear, "top");
  }
  if (!frame.handle) return;
  const [x, y] = held;
  if (frame.focused) { context.beginPath(); context.arc(x, y, r + 6, 0, 2 * Math.PI); context.strokeStyle = colours.accent; context.lineWidth = 2; context.stroke(); }
  context.beginPath(); context.arc(x, y, r + 2.5, 0, 2 * Math.PI); context.fillStyle = faded(ON_MAP.halo, 0.35); context.fill();
  context.beginPath(); context.arc(x, y, r, 0, 2 * Math.PI);
  context.fillStyle = colours.card; context.fill();
  context.strokeStyle = frame.enabled === false ? colours.ink3 : colours.accent; context.lineWidth = 4; context.stroke();
};

function render({ model, el }) {
  el.classList.add("mx-triangle-view");
  const table = make("table"), behind = make("div", "mx-said", {}, table);
  const said = make("div", "mx-said", { "aria-live": "polite" }), pad = make("div", "", {
    style: "position:absolute;inset:0;touch-action:none;outline:none", tabIndex: 0, role: "application",
    "aria-roledescription": "triangle of starts",
  });
  let frame = {}, local = null, focused = false, over = [];
  const small = ({ width }) => model.get("small") || width < 300; // labels then leave room for the triangle
  const drawn = (context, size, paints) => {
    const whole = { ...frame, handle: local || model.get("handle"), small: small(size), wide: isWide(size, small(size)), enabled: model.get("enabled"), focused, over };
    if (raised()) relief.paint(context, aged(whole), cornersOf(size, whole.small), size, paints, view);
    else paintTriangle(context, whole, size, paints);
  };
  const { redraw, close } = surface(el, drawn);
  el.append(pad, said, behind);
  const unsave = offerPictures(model, el, el, drawn, () => "starts");

  // The relief: its code comes with the first tilt. `view.roll`: how far runs are along their trails.
  const view = { tilt: 0, turn: 0, roll: 1 }, calm = matchMedia("(prefers-reduced-motion: reduce)");
  const raised = () => relief && view.tilt > 0 && frame.fill && !frame.basins;
  let relief = null, wanted = null, gliding = 0;
  const look = (tilt, turn) => {
    Object.assign(view, { tilt: Math.min(1, Math.max(0, tilt)), turn });
    if (!view.tilt) view.turn = 0;
    if (button.getAttribute("aria-pressed") !== String(view.tilt > 0)) model.send({ kind: "tilt", on: view.tilt > 0 });
    attribute(button, "aria-pressed", view.tilt > 0); age(); redraw();
  };
  const glide = (ms, step, then = () => {}) => {
    cancelAnimationFrame(gliding);
    const begun = performance.now(), turn = () => {
      const share = calm.matches ? 1 : Math.min(1, (performance.now() - begun) / ms);
      step(share); redraw();
      if (share < 1) gliding = requestAnimationFrame(turn); else then();
    };
    turn();
  };
  const roll = () => { if (frame.trails) glide(ROLL_MS, (share) => { view.roll = share; }); };
  const load = (then) => { if (relief) then(); else { wanted = then; model.send({ kind: "relief" }); } };
  const tiltTo = (tilt, turn) => load(() => {
    const [a, b] = [view.tilt, view.turn];
    glide(TILT_MS, (share) => look(a + share * (tilt - a), b + share * (turn - b)), tilt && !a ? roll : undefined);
  });
  const onRelief = async ({ kind, source }) => {
    if (kind !== "relief" || relief) return;
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    relief = (await import(address)).build({ VIRIDIS, ON_MAP, FONT, SET_NAMES, faded, shadeAt, ballPath, trailPlaces, STRIDE, thinned, strokePaths, strongOf, rolls, marksOf, paintMarks });
    URL.revokeObjectURL(address);
    wanted?.();
  };
  const button = makeButton("mx-tilt", "", TILT_TIP, () => tiltTo(view.tilt ? 0 : TILTED, view.tilt ? 0 : TURNED), { ariaLabel: "Tilt into a relief", ariaPressed: "false" });
  button.innerHTML = `<svg viewBox="0 0 20 20" aria-hidden="true" class="mx-icon"><path d="M2 16l5-9 4 6 2-3 5 6z"/></svg>`;
  // The relief at other steps of training: between two of them the bytes of both are mixed. What ran on the weights on screen
  // is drawn on these alone.
  const steps = make("input", "", { type: "range", min: 0, step: 0.05, ariaLabel: "Steps of training", title: AGES_TIP });
  const older = make("label", "mx-ages", { hidden: true }, steps, make("span"));
  const aged = (whole) => {
    if (older.hidden || !whole.ages || +steps.value === whole.present) return whole;
    const { data, shape: [, side] } = whole.ages, at = +steps.value, below = Math.floor(at), share = at - below, size = side * side;
    const byte = (k, i) => data[Math.min(k, steps.max) * size + i];
    const mixed = Uint8Array.from({ length: size }, (_, i) => Math.round((1 - share) * byte(below, i) + share * byte(below + 1, i)));
    return { ...whole, fill: { data: mixed, shape: [side, side] }, trails: null, ends: null, handle: null };
  };
  let told = [];
  const age = () => {
    const names = frame.names || [], stops = frame.ages ? frame.ages.shape[0] : 0, was = told[+steps.value];
    older.hidden = !raised() || !names.length; steps.hidden = stops < 2;
    put(steps, "max", Math.max(0, stops - 1));
    if (older.hidden || names.length !== told.length) steps.value = names.includes(was) ? names.indexOf(was) : frame.present || 0;
    told = names;
    const at = +steps.value, low = Math.floor(at), here = at === frame.present ? ", on screen" : "";
    write(older.lastChild, low === at ? (names[at] || "") + here : `${names[low]} – ${names[low + 1]}`);
    attribute(steps, "aria-valuetext", older.lastChild.textContent);
  };
  steps.addEventListener("input", () => { age(); redraw(); });
  el.append(older);

  // A drag tilts and turns: of the button, or anywhere with Shift.
  const lean = (e, on) => {
    const [x, y, tilt, turn] = [e.clientX, e.clientY, view.tilt, view.turn];
    let far = false;
    on.setPointerCapture(e.pointerId);
    const ends = [listen(on, "pointermove", (now) => {
      far ||= Math.hypot(now.clientX - x, now.clientY - y) > 4;
      if (far) load(() => look(tilt + (y - now.clientY) / 130, turn + (now.clientX - x) / 110));
    }), ...["pointerup", "pointercancel"].map((kind) => listen(on, kind, () => {
      ends.forEach((end) => end());
      if (far && on === button) listen(button, "click", (click) => click.stopImmediatePropagation(), { once: true, capture: true });
      if (far && !tilt && view.tilt) roll();
    }))];
  };
  button.addEventListener("pointerdown", (e) => { if (!e.button) lean(e, button); });
  button.addEventListener("keydown", (e) => {
    const step = arrows[e.key];
    if (!step) return;
    e.preventDefault(); e.stopPropagation();
    load(() => look(view.tilt - 0.1 * step[1], view.turn + 0.15 * step[0]));
  });
  el.append(button);

  // One place at a time is on its way: the newest waits until the last one was taken over.
  let number = model.get("taken"), waiting = null, sentAt = 0;
  const send = (weights) => {
    waiting = null; number += 1; sentAt = performance.now();
    model.send({ kind: "handle", weights, number, dragged });
  };
  // The plane follows at once; so do number, shares and strip where a drag passes, as the map reads them.
  const hold = (weights) => {
    local = weights;
    tellLight(el, { start: weights, reading: weights && dragged && frame.map ? readingOf(frame.map, weights) : null });
    redraw();
  };
  const move = (weights) => {
    hold(weights);
    if (number <= model.get("taken") || performance.now() - sentAt > 2000) send(weights);
    else waiting = weights;
  };
  const taken = () => {
    if (waiting) send(waiting);
    else if (!down) hold(null);
    else tellLight(el, { reading: null }); // the kernel has read this place
  };

  // A drag comes to rest where the pointer is let go, or stays: what was read in passing is made exact.
  let down = false, dragged = false, resting = 0;
  const rest = () => {
    clearTimeout(resting);
    if (waiting) resting = setTimeout(rest, REST_MS);
    else if (dragged) { dragged = false; model.send({ kind: "rest" }); }
  };
  const at = (e) => placeIn(pad, e);
  const corners = () => cornersOf(rectOf(pad), small(rectOf(pad)));
  const spot = (w) => (raised() ? relief.spot(frame, corners(), rectOf(pad), view, w) : placeOf(w, corners()));
  const nearest = (place) => (raised() ? relief.nearest(frame, corners(), rectOf(pad), view, place) : nearestWeights(place, corners()));
  // The mark of ends at a place, or null: of a census a dot, of runs all that one mark stands for.
  const markAt = ([x, y]) => {
    const paths = trailPlaces(frame, spot);
    if (!frame.sizes) return marksOf({ ...frame, handle: local || model.get("handle") }, paths, spot).find((mark) => covers(boxAt(mark), [x, y])) || null;
    let best = null, near = 8;
    paths.forEach((path, run) => {
      const [px, py] = path[path.length - 1], far = Math.hypot(px - x, py - y) - frame.sizes.data[run];
      if (far < near) { near = far; best = { runs: [run] }; }
    });
    return best;
  };
  const hover = (place) => {
    const mark = place && markAt(place), now = mark ? mark.runs : [];
    if (String(now) !== String(over)) { over = now; redraw(); }
    return mark;
  };
  pad.addEventListener("pointerleave", () => hover(null));
  let pressed = -1; // the run that was asked for last: the next press on its mark asks for the next
  pad.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    e.preventDefault(); pad.focus({ preventScroll: true });
    if (e.shiftKey && !button.hidden) { lean(e, pad); return; }
    const place = at(e), [hx, hy] = spot(local || model.get("handle"));
    const held = Math.hypot(place[0] - hx, place[1] - hy) < 16, mark = held ? null : markAt(place);
    focused = false;
    if (mark) {
      pressed = mark.runs[(mark.runs.indexOf(pressed) + 1) % mark.runs.length];
      model.send({ kind: "ball", index: pressed });
      return;
    }
    if (!model.get("enabled")) return;
    pad.setPointerCapture(e.pointerId); down = true;
    if (!held) dragTo(nearest(place));
    redraw();
  });
  // A move is told at once where the browser can: "pointermove" waits for the next animation frame,
  // and repeats the last of them there.
  const dragTo = (weights) => {
    dragged = true; clearTimeout(resting);
    move(weights);
    resting = setTimeout(rest, REST_MS);
  };
  const drag = (e) => {
    if (!down) return;
    const weights = nearest(at(e));
    if (String(weights) !== String(local)) dragTo(weights);
  };
  pad.addEventListener("pointerrawupdate", drag);
  pad.addEventListener("pointermove", (e) => {
    if (down) drag(e);
    else pad.style.cursor = hover(at(e)) ? "pointer" : model.get("enabled") ? "grab" : "default";
  });
  const up = () => { if (down) { down = false; rest(); if (!waiting && number <= model.get("taken")) hold(null); else redraw(); } };
  pad.addEventListener("pointerup", up);
  pad.addEventListener("pointercancel", up);
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const named = { t: [1, 0, 0], u: [0, 1, 0], n: [0, 0, 1] };
  pad.addEventListener("keydown", (e) => {
    if (!model.get("enabled") || e.ctrlKey || e.metaKey || e.altKey) return;
    const place = arrows[e.key], corner = named[e.key.toLowerCase()];
    if (!place && !corner) return;
    e.preventDefault(); e.stopPropagation();
    focused = true;
    if (corner) { move(corner); return; }
    // In a triangle of 100 px a side: the steps do not depend on the screen.
    const c = [[50, 0], [0, 86.6], [100, 86.6]], step = e.shiftKey ? 10 : 2;
    const [x, y] = placeOf(local || model.get("handle"), c), to = [x + step * place[0], y + step * place[1]];
    let w = weightsOf(to, c).map((v) => Math.max(0, v));
    const sum = w[0] + w[1] + w[2];
    move(w.map((v) => v / sum));
  });
  pad.addEventListener("focus", () => { focused = pad.matches(":focus-visible"); redraw(); });
  pad.addEventListener("blur", () => { focused = false; redraw(); });

  const text = () => {
    button.hidden = model.alone || model.get("small") || !frame.fill;
    pad.setAttribute("aria-label", model.get("label"));
    pad.setAttribute("aria-disabled", String(!model.get("enabled")));
    said.textContent = model.get("say");
    redraw();
  };
  const rows = () => { behind.hidden = !model.get("rows").length; fillRows(table, "The distinct ends of the census", model.get("rows")); };
  const place = () => { if (!down && !waiting && number <= model.get("taken")) hold(null); else redraw(); };
  const ends = [
    () => clearTimeout(resting),
    ...["label", "say", "enabled", "small"].map((name) => heed(model, `change:${name}`, text)),
    heed(model, "change:rows", rows), heed(model, "change:handle", place), heed(model, "change:taken", taken),
    follow(model, redraw, (newest) => { frame = newest; age(); text(); }, el, false),
    heed(model, "msg:custom", onRelief), unsave, close,
  ];
  text(); rows();
  return () => ends.forEach((end) => end());
}
export default { render };
