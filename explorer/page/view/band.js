// The band: the first layer's weights as needles, and the terms of the points that add up to them.
// `paintBand(context, frame, size, colours)` is pure. A frame holds, of k needles in their order:
//
//   needles (k, 2): the weights of a neuron as an arrow, up is up; on a line weight and bias
//   out, ink (k,): size of the output weight; the class whose output it raises, 0 where layers follow
//   lines   (k, 3): where it switches, a u + b v + c = 0 in shares of the plane; on a line b is 0
//   bias, dead, neurons (k,): bias; 1 for a neuron that no point wakes; its number from 0
//   group   (k,): equal ones have one direction and class; count (k,): of a density, how many
//   ends    (k, 2): where the points' terms end; glow (k,): how much of the neuron they leave over
//   pulls   (n, k): how far the term of each point goes along the needle; labels (n,): its class
//   lit, lift: the needle and the point that are lit; -1 or none for none
//   term: "kink" lights the needles, "lambda" the pulls, "left" what is left over
const MOST_STEP = 40, FEW = 0.45; // px between two needles; of the height, where it is more; arbitrary
const HEAD = 4; // px, the largest
const PULLED = 0.34; // of the height: the row of the pulls; arbitrary
const FEW_PULLS = 3; // px of a bar from which its points are told apart
const inkOf = (label, paints) =>
  ({ 1: paints.pos, "-1": paints.neg, 3: paints.third, 4: paints.fourth })[label] || paints.ink2;
// Where the needles stand: {step, at(slot), slot(x)}, and the rows.
const slotsOf = (frame, size) => {
  const foot = frame.pulls ? Math.round(size.height * (1 - PULLED)) : size.height; // beside them is room for those that lie
  const k = frame.needles.shape[0], step = Math.min(Math.max(MOST_STEP, FEW * size.height), (size.width - foot) / Math.max(1, k));
  const left = (size.width - step * k) / 2;
  const slot = (x) => Math.min(k - 1, Math.max(0, Math.floor((x - left) / step)));
  return { k, step, at: (i) => left + (i + 0.5) * step, slot, foot };
};
const longest = ({ data }) => {
  let most = 0;
  for (let i = 0; i < data.length; i += 2) most = Math.max(most, Math.hypot(data[i], data[i + 1]));
  return most || 1;
};
const paintNeedles = (context, frame, paints, { k, step, at, foot }) => {
  const { data } = frame.needles, middle = foot / 2, reach = foot / 2 - HEAD - 1, scale = reach / longest(frame.needles);
  const most = Math.max(1e-300, ...frame.out.data), wide = Math.min(2.6, Math.max(1, step / 3));
  const line = (x, y, a, b, colour, width, opacity) => {
    context.globalAlpha = opacity; context.strokeStyle = colour; context.lineWidth = width;
    context.beginPath(); context.moveTo(x, y); context.lineTo(a, b); context.stroke();
  };
  const disc = (x, y, r, colour, opacity) => {
    context.globalAlpha = opacity; context.fillStyle = colour;
    context.beginPath(); context.arc(x, y, r, 0, 2 * Math.PI); context.fill();
  };
  const tip = (rows, i) => [at(i) + scale * rows[2 * i], middle - scale * rows[2 * i + 1]];
  const inside = ([x, y]) => [x, Math.min(foot - 1, Math.max(1, y))];
  context.lineCap = "round";
  line(at(0) - step / 2, middle, at(k - 1) + step / 2, middle, paints.line, 1, 1);
  for (let i = 0; i < k; i++) { // one bar under needles of one direction
    let last = i;
    while (frame.group && last + 1 < k && frame.group.data[last + 1] === frame.group.data[i]) last++;
    if (last > i) line(at(i), middle, at(last), middle, paints.ink3, 3, 0.6);
    i = last;
  }
  const faint = frame.lit >= 0 || frame.term === "lambda" ? 0.35 : 1, dim = frame.term === "left" ? 0.2 : faint;
  for (let i = 0; frame.glow && i < k; i++) { // what is left over glows at the tip, below all needles
    const g = Math.min(reach, scale * frame.glow.data[i]);
    if (g < 0.4) continue;
    const [x, y] = tip(data, i), [a, b] = inside(tip(frame.ends.data, i));
    const room = Math.max(4, Math.min(y, foot - y)); // never cut off
    for (const [r, opacity] of [[2 + g, 0.1], [1.5 + 0.6 * g, 0.16]]) disc(x, y, Math.min(room, r), paints.bad, opacity * faint);
    line(a, b, x, y, paints.bad, wide + 1.4, 0.85 * faint);
  }
  const needle = (i, shown, grown) => {
    const [x, y] = tip(data, i), dead = frame.dead.data[i] > 0, colour = dead ? paints.ink3 : inkOf(frame.ink.data[i], paints);
    if (dead) context.setLineDash([2, 2]);
    line(at(i), middle, x, y, colour, wide + grown, shown * (dead ? 0.6 : 0.9));
    context.setLineDash([]);
    const r = Math.max(1, HEAD * Math.sqrt(frame.out.data[i] / most)) + grown;
    if (!dead) { disc(x, y, r, colour, shown); return; }
    context.globalAlpha = shown; context.strokeStyle = colour; context.lineWidth = 1.2;
    context.beginPath(); context.arc(at(i), middle, 1.8, 0, 2 * Math.PI); context.stroke();
  };
  for (let i = 0; i < k; i++) needle(i, dim, frame.term === "kink" ? 0.8 : 0);
  if (frame.lit >= 0) needle(frame.lit, 1, 1);
  context.globalAlpha = 1;
};
// The bars of the pulls: call(j, i, top, tall) for point i at needle j, of own class up, of others
// down. Each needle has its own scale: what pulls along it is as tall as the needle is long. Returns
// where each sum ends, [y of needle j].
const eachPull = (frame, size, foot, call) => {
  const [n, k] = frame.pulls.shape, { data } = frame.pulls, half = (size.height - foot) / 2 - 2, middle = foot + half + 2;
  const unit = half / longest(frame.needles);
  return Array.from({ length: k }, (_, j) => {
    let along = 0, against = 0;
    for (let i = 0; i < n; i++) { const v = data[i * k + j]; if (v > 0) along += v; else against -= v; }
    const long = Math.hypot(frame.needles.data[2 * j], frame.needles.data[2 * j + 1]);
    const scale = (unit * long) / Math.max(along, against, 1e-300);
    let up = middle, down = middle;
    for (let i = 0; i < n; i++) {
      const v = data[i * k + j] * scale, tall = Math.abs(v);
      if (tall) call(j, i, v > 0 ? (up -= tall) : (down += tall) - tall, tall);
    }
    return middle - scale * (along - against);
  });
};
const paintPulls = (context, frame, size, paints, { k, step, at, foot }) => {
  const wide = Math.min(Math.max(16, step / 4), Math.max(1, step - (step > 4 ? 1 : 0))), left = (j) => at(j) - wide / 2;
  const ends = eachPull(frame, size, foot, (j, i, top, tall) => {
    const off = (frame.lift >= 0 && frame.lift !== i) || (frame.lit >= 0 && frame.lit !== j) || ["kink", "left"].includes(frame.term);
    context.globalAlpha = off ? 0.22 : 0.85;
    context.fillStyle = inkOf(frame.labels.data[i], paints);
    context.fillRect(left(j), top, wide, Math.max(0.3, tall - (tall > FEW_PULLS ? 0.5 : 0)));
  });
  context.globalAlpha = 1; context.fillStyle = paints.ink;
  for (let j = 0; j < k; j++) context.fillRect(left(j), ends[j] - 0.75, wide, 1.5);
};
// Of the place (x, y) in the row of pulls its point; -1 for none.
const pullAt = (frame, size, slots, x, y) => {
  let found = -1;
  if (!frame.pulls || y < slots.foot) return found;
  const slot = slots.slot(x);
  eachPull(frame, size, slots.foot, (j, i, top, tall) => { if (j === slot && y >= top && y < top + tall) found = i; });
  return found;
};
const paintBand = (context, frame, size, paints) => {
  if (!frame.needles) return;
  const slots = slotsOf(frame, size);
  if (frame.pulls) paintPulls(context, frame, size, paints, slots);
  paintNeedles(context, frame, paints, slots);
};

// --- the view of a kernel ---------------------------------------------------------------------
const GLOWS = 0.01; // of the longest needle: less is not seen; arbitrary
const SEEN = 5e-4; // of the weights: less is no part of a bar; arbitrary
const NEAR = 7; // px from a line of the plane within which it is lit; arbitrary
function render({ model, el }) {
  el.classList.add("mx-band");
  const title = make("span", "mx-band-title"), left = make("span", "mx-band-left"), why = make("p", "mx-note-text"), key = make("p", "mx-note-text mx-band-key", { "aria-hidden": "true" });
  const gauge = make("div", "mx-band-gauge", { hidden: true, "aria-hidden": "true" }, make("i", "")); // of the weights the share that is left over
  const box = make("div", "mx-band-box", { tabIndex: 0, role: "slider", "aria-orientation": "horizontal", "aria-valuemin": 1 });
  el.append(make("div", "mx-band-head", {}, title, left), gauge, box, key, why);
  let frame = null, lit = -1, lift = -1, term = "";
  const drawn = (context, size, paints) => frame && paintBand(context, { ...frame, lit, lift, term }, size, paints);
  const { canvas, redraw, close } = surface(box, drawn);
  const sizeOf = () => ({ width: box.clientWidth, height: box.clientHeight });
  const words = (i) => {
    const at = (name, e = 0, w = 1) => Number(frame[name].data[w * i + e].toPrecision(3)).toString().replace("-", "−");
    const many = frame.count?.data[i] > 1 ? `${frame.count.data[i]} neurons of this direction` : `Neuron ${frame.neurons.data[i] + 1}`;
    const asleep = frame.dead.data[i] ? ", active at no point" : "";
    const flat = model.get("flat"), way = flat ? at("needles", 0, 2) : `(${at("needles", 0, 2)}, ${at("needles", 1, 2)})`;
    return `${many}${asleep}: weights ${way}, bias ${at("bias")}, output ${frame.ink.data[i] < 0 ? "−" : ""}${at("out")}.`;
  };
  // How strongly each point pulls at a needle, as a share of the strongest.
  const pullsOf = (j) => {
    if (j < 0 || !frame.pulls) return [];
    const [n, k] = frame.pulls.shape, sizes = Array.from({ length: n }, (_, i) => Math.abs(frame.pulls.data[i * k + j]));
    const most = Math.max(1e-300, ...sizes);
    return sizes.map((v) => v / most);
  };
  // Under the band: the needle that is lit, else what is drawn.
  const tell = (said) => {
    const kinds = ["needle: the weights of a neuron"];
    if (frame?.pulls) kinds.splice(0, 1, "needle: neuron", "bar: what a point adds");
    if (left.classList.contains("on")) kinds.push("red: left over");
    write(key, lit < 0 ? kinds.join(" · ") : said);
  };
  // What is lit here and there: this view tells the others, unless they told it.
  const light = (i, told = true) => {
    const count = frame?.needles?.shape[0] || 0;
    lit = i < count ? i : -1;
    const said = lit < 0 ? model.get("label") : words(lit);
    tell(said);
    attribute(box, "aria-valuenow", lit + 1); attribute(box, "aria-valuetext", said);
    canvas.mxLit = lit; // for tests
    redraw();
    if (told || lit >= 0)
      tellLight(el, { line: lit < 0 ? null : [...frame.lines.data.subarray(3 * lit, 3 * lit + 3)], ink: lit < 0 ? 0 : frame.ink.data[lit], pulls: pullsOf(lit) });
  };
  const raise = (i, told = true) => {
    if (i === lift) return;
    lift = i; canvas.mxLift = i;
    redraw();
    if (told) tellLight(el, { point: i });
  };
  box.addEventListener("pointermove", (e) => {
    if (!frame?.needles) return;
    const [x, y] = placeIn(box, e), slots = slotsOf(frame, sizeOf()), i = slots.slot(x);
    if (i !== lit) light(i);
    raise(pullAt(frame, sizeOf(), slots, x, y));
  });
  const leave = () => { light(-1); raise(-1); };
  box.addEventListener("pointerleave", leave);
  box.addEventListener("blur", leave);
  box.addEventListener("keydown", (e) => {
    const k = frame?.needles?.shape[0] || 0;
    const to = { ArrowLeft: lit - 1, ArrowDown: lit - 1, ArrowRight: lit + 1, ArrowUp: lit + 1, Home: 0, End: k - 1, Escape: -1 }[e.key];
    if (to === undefined || !k) return;
    e.preventDefault();
    light(e.key === "Escape" ? -1 : Math.min(k - 1, Math.max(0, to)));
  });
  // The plane tells where its pointer or its cursor is, in shares, and how large it is.
  const nearest = ({ u, v, width, height }) => {
    let best = -1, least = NEAR;
    for (let i = 0; i < frame.needles.shape[0]; i++) {
      const [a, b, c] = frame.lines.data.subarray(3 * i, 3 * i + 3), steep = Math.hypot((2 * a) / width, (2 * b) / height);
      const away = Math.abs(a * u + b * v + c) / (steep || 1e-300);
      if (away < least - 1e-9) { least = away; best = i; }
    }
    return best;
  };
  const unlight = onLight(el, (what) => {
    if (what.term !== undefined) { term = what.term; canvas.mxTerm = term; redraw(); }
    if (!frame?.needles || what.line !== undefined) return;
    if (what.place !== undefined) {
      const i = what.place ? nearest(what.place) : -1;
      if (i !== lit) light(i, true);
    }
    if (what.point !== undefined) raise(what.point, false);
  });
  const take = (newest) => {
    frame = newest;
    canvas.mxFrame = frame; // for tests and for those who look: the numbers on screen
    const count = frame.needles?.shape[0] || 0;
    if (lit >= count) light(-1);
    explain(title, frame.title); explain(left, frame.left || "");
    left.classList.toggle("on", Boolean(frame.glow) && Math.max(...frame.glow.data) > GLOWS * longest(frame.needles)); // in the colour of what glows
    gauge.hidden = !(frame.share >= 0);
    gauge.firstChild.style.width = frame.share > SEEN ? `max(2px, ${100 * frame.share}%)` : "0";
    write(why, frame.why || "");
    attribute(box, "aria-valuemax", Math.max(1, count));
    box.hidden = key.hidden = !count; why.hidden = !frame.why;
    if (lit < 0) tell("");
  };
  const text = () => attribute(box, "aria-label", model.get("label"));
  text(); light(-1, false);
  const ends = [follow(model, redraw, take, el, false), unlight, close, heed(model, "change:label", text)];
  return () => ends.forEach((end) => end());
}
export default { render };
