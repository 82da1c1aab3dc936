// The plane of a round of the hall, on phones and on the projector: boundary, needles, taps, and what is
// shown later. Places are shares of the plane: (-1, -1) is bottom left.
const hallInk = (el, name) => getComputedStyle(el).getPropertyValue(`--mx-${name}`).trim();
const hallRgb = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
// A canvas as sharp as the screen, of the size that its box has: [context, width, height].
const hallCanvas = (canvas) => {
  const { width, height } = canvas.getBoundingClientRect(), sharp = Math.min(devicePixelRatio || 1, 2);
  const [w, h] = [width, height].map((v) => Math.max(1, Math.round(sharp * v)));
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const context = canvas.getContext("2d");
  context.setTransform(sharp, 0, 0, sharp, 0, 0);
  context.clearRect(0, 0, width, height);
  return [context, width, height];
};
// The map as a picture with the boundary as a line; made once for a round and a theme.
const hallMap = (canvas, round) => {
  const colours = ["card", "pos", "neg", "ink"].map((name) => hallInk(canvas, name)), key = round.seal + colours;
  if (canvas.mxMap?.key === key) return canvas.mxMap.picture;
  const bytes = atob(round.map), s = round.size, side = 640, [card, pos, neg, ink] = colours.map(hallRgb);
  const at = (i, j) => (bytes.charCodeAt(i * s + j) - 128) / 50;
  const values = new Float32Array(side * side);
  for (let p = 0; p < side; p++) {
    const u = (p * (s - 1)) / (side - 1), i = Math.min(s - 2, Math.floor(u)), a = u - i;
    for (let q = 0; q < side; q++) {
      const v = (q * (s - 1)) / (side - 1), j = Math.min(s - 2, Math.floor(v)), b = v - j;
      values[p * side + q] = (1 - a) * ((1 - b) * at(i, j) + b * at(i, j + 1)) + a * ((1 - b) * at(i + 1, j) + b * at(i + 1, j + 1));
    }
  }
  const picture = document.createElement("canvas");
  picture.width = picture.height = side;
  const context = picture.getContext("2d"), image = context.createImageData(side, side);
  for (let k = 0; k < values.length; k++) {
    const v = values[k], slope = Math.hypot((k + 1) % side ? v - values[k + 1] : 0, v - (values[k + side] ?? v)) + 1e-6;
    const t = 0.3 * Math.tanh(1.1 * Math.abs(v)), edge = 0.85 * Math.min(1, Math.max(0, 1.7 - Math.abs(v) / slope)), to = v > 0 ? pos : neg;
    image.data.set([...card.map((c, e) => Math.round((c * (1 - t) + to[e] * t) * (1 - edge) + ink[e] * edge)), 255], 4 * k);
  }
  context.putImageData(image, 0, 0);
  canvas.mxMap = { key, picture };
  return picture;
};
// Paint the plane. `cloud`: [[x, y, age in seconds]] of everybody; `mine`: [[x, y]]; `aim`: a place or null.
const paintHall = (canvas, round, { cloud = [], mine = [], aim = null } = {}) => {
  const [context, width, height] = hallCanvas(canvas), unit = Math.min(width, height) / 100;
  const X = (x) => ((x + 1) / 2) * width, Y = (y) => ((1 - y) / 2) * height;
  const ink = Object.fromEntries(["card", "ink", "pos", "neg", "accent", "good", "warn"].map((name) => [name, hallInk(canvas, name)]));
  const paint = (label) => (label > 0 ? ink.pos : ink.neg);
  const path = (call, colour, line, fill) => {
    context.beginPath();
    call();
    if (fill) { context.fillStyle = fill; context.fill(); }
    if (line) { context.strokeStyle = colour; context.lineWidth = line; context.stroke(); }
  };
  const disc = (x, y, r) => () => context.arc(X(x), Y(y), r, 0, 2 * Math.PI);
  context.drawImage(hallMap(canvas, round), 0, 0, width, height);
  context.lineCap = context.lineJoin = "round";
  for (const [a, b, c, d, strength] of round.lines || []) {
    context.globalAlpha = 0.12 + 0.3 * strength;
    path(() => { context.moveTo(X(a), Y(b)); context.lineTo(X(c), Y(d)); }, ink.ink, 1);
  }
  const few = Math.min(1, Math.sqrt(100 / Math.max(1, cloud.length))); // of many taps each is paler: they add up
  for (const [x, y, age] of cloud) { // a tap falls in as a ring that closes, and stays as a soft disc
    context.globalAlpha = (round.claims ? 0.45 : 0.7) * few;
    path(disc(x, y, 1.5 * unit), "", 0, ink.accent);
    if (age < 0.7) {
      context.globalAlpha = 1 - age / 0.7;
      path(disc(x, y, (1.5 + 6 * (1 - age / 0.7)) * unit), ink.accent, 0.4 * unit);
    }
  }
  context.globalAlpha = 1;
  for (const [x, y, wide, high, label] of round.places || []) {
    const [rx, ry] = [Math.max(2.6 * unit, (wide * width) / 2), Math.max(2.6 * unit, (high * height) / 2)];
    const ring = () => context.roundRect(X(x) - rx, Y(y) - ry, 2 * rx, 2 * ry, Math.min(rx, ry) / 2);
    path(ring, ink.card, unit, faint(paint(label)));
    path(ring, ink.good, 0.5 * unit);
  }
  const shape = (x, y, label, r) => () => {
    if (label > 0) return context.arc(X(x), Y(y), r, 0, 2 * Math.PI);
    context.moveTo(X(x), Y(y) - 1.15 * r);
    context.lineTo(X(x) + 1.1 * r, Y(y) + 0.8 * r);
    context.lineTo(X(x) - 1.1 * r, Y(y) + 0.8 * r);
    context.closePath();
  };
  for (const [x, y, label] of round.truth || []) path(shape(x, y, label, 1.9 * unit), ink.ink, 0.45 * unit, ink.card);
  for (const [x, y, label] of round.claims || []) path(shape(x, y, label, 1.05 * unit), ink.card, 0.25 * unit, paint(label));
  const plus = (x, y, r) => () => {
    context.moveTo(X(x) - r, Y(y)); context.lineTo(X(x) + r, Y(y)); context.moveTo(X(x), Y(y) - r); context.lineTo(X(x), Y(y) + r);
  };
  const taps = round.claims ? mine : [];
  for (const [x, y] of [...taps, ...(cloud.length ? round.guess || [] : [])]) for (const [colour, line] of [[ink.card, 1.1], [ink.accent, 0.6]]) path(plus(x, y, 1.6 * unit), colour, line * unit);
  for (const [x, y] of round.claims ? [] : mine) {
    path(disc(x, y, 2.6 * unit), ink.card, unit);
    path(disc(x, y, 2.6 * unit), ink.accent, 0.55 * unit);
    path(disc(x, y, 0.6 * unit), "", 0, ink.accent);
  }
  if (aim) path(plus(...aim, 9), ink.ink, 2);
};
const faint = (colour) => `${colour}30`;
// The weights as needles, one a neuron, in the order of their direction: up is up.
const paintNeedleRow = (canvas, round) => {
  const [context, width, height] = hallCanvas(canvas), rows = round.needles || [], step = (width - 24) / Math.max(1, rows.length);
  const reach = height / 2 - 3;
  context.lineCap = "round";
  context.lineWidth = Math.min(2.2, Math.max(0.8, step / 4));
  rows.forEach(([dx, dy, label], i) => {
    const x = 12 + (i + 0.5) * step, y = height / 2;
    context.strokeStyle = hallInk(canvas, label > 0 ? "pos" : label < 0 ? "neg" : "ink2");
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x + reach * dx, y - reach * dy);
    context.stroke();
  });
};
