// What all canvas views share: colours from the page's CSS, a sharp canvas that follows its size,
// frames from messages, tables for screen readers.

// Names of CSS variables (--mx-pos ...): the page sets them, light and dark; here are the light ones.
const COLOURS = {
  bg: "#f7f8fa", card: "#ffffff", line: "#e3e6ea", ink: "#16191d", ink2: "#5b6570", ink3: "#707a84",
  accent: "#2f5bea", soft: "#eef1f5", good: "#0a7d55", warn: "#9a6700", bad: "#b3261e",
  pos: "#0072B2", neg: "#D55E00", third: "#CC79A7", fourth: "#009E73",
  plum: "#8e44ad", petrol: "#1f7a8c", brown: "#7a4420", olive: "#6b7318",
};
const colours = (el) => {
  const style = getComputedStyle(el);
  const read = (name) => style.getPropertyValue(`--mx-${name}`).trim() || COLOURS[name];
  return Object.fromEntries(Object.keys(COLOURS).map((name) => [name, read(name)]));
};
const FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";

// Colour "#rrggbb" with an opacity of 0 to 1.
const faded = (colour, opacity) =>
  colour + Math.round(255 * Math.min(1, Math.max(0, opacity))).toString(16).padStart(2, "0");

const rgb = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
// Viridis in 256 shades from dark to bright, of energies: bright is low, in both themes.
const VIRIDIS = (() => {
  const stops = ["#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#fde725"].map(rgb);
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (stops.length - 1), k = Math.min(Math.floor(at), stops.length - 2);
    return stops[k].map((v, c) => Math.round(v + (at - k) * (stops[k + 1][c] - v)));
  });
})();
// A path through rows of x, y; a NaN breaks it.
const polyline = (context, { data }, X, Y) => {
  let open = false;
  context.beginPath();
  for (let i = 0; i < data.length; i += 2) {
    const gap = Number.isNaN(data[i]) || Number.isNaN(data[i + 1]);
    if (!gap && open) context.lineTo(X(data[i]), Y(data[i + 1]));
    else if (!gap) context.moveTo(X(data[i]), Y(data[i + 1]));
    open = !gap;
  }
};

// {name: {data, shape}} and plain values of one message. An array of kind "=" is that of the frame
// before; a browser that has none gets the whole frame soon.
const unpack = (message, buffers, before) => {
  const kinds = { f: Float32Array, u: Uint8Array, i: Int32Array };
  let i = 0;
  const frame = { ...message.values, number: message.frame, sent: message.sent };
  message.arrays.forEach(([name, kind, shape]) => {
    if (kind === "=") { if (before?.[name]) frame[name] = before[name]; return; }
    const b = buffers[i++], bytes = b.buffer.slice(b.byteOffset, b.byteOffset + b.byteLength);
    frame[name] = { data: new kinds[kind](bytes), shape };
  });
  return frame;
};

// Where an element stands on the screen, with its size in its own pixels, and how many pixels of the
// screen are one of those: more where the page is zoomed for a visitor's larger text.
const rectOf = (el) => {
  const r = el.getBoundingClientRect(), zoom = el.currentCSSZoom || 1;
  return { left: r.left, top: r.top, width: r.width / zoom, height: r.height / zoom, zoom };
};
// The place of a pointer event in an element, in the element's own pixels.
const placeIn = (el, event) => {
  const { left, top, zoom } = rectOf(el);
  return [(event.clientX - left) / zoom, (event.clientY - top) / zoom];
};

// A canvas that fills `el`, as sharp as the screen. `draw(context, {width, height}, colours)`.
// An opaque one is the colour of a card where nothing is drawn: it is laid on the screen as it is,
// where others are mixed with what lies below. Returns {canvas, redraw, close}; redraw() draws at the next animation frame, many calls once; an event
// "mx-paint" of the document at once, for paper.
const surface = (el, draw, opaque = false) => {
  const canvas = make("canvas", "", { style: "position:absolute;inset:0;width:100%;height:100%;display:block" });
  if (getComputedStyle(el).position === "static") el.style.position = "relative";
  el.append(canvas);
  let waiting = 0;
  const paint = () => {
    waiting = 0;
    const r = rectOf(el), k = (window.devicePixelRatio || 1) * r.zoom;
    if (!r.width || !r.height) return;
    const [w, h] = [Math.round(r.width * k), Math.round(r.height * k)];
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
    const context = canvas.getContext("2d", { alpha: !opaque }), paints = colours(el);
    context.setTransform(k, 0, 0, k, 0, 0);
    if (opaque) { context.fillStyle = paints.card; context.fillRect(0, 0, r.width, r.height); }
    else context.clearRect(0, 0, r.width, r.height);
    draw(context, { width: r.width, height: r.height }, paints);
  };
  const redraw = () => { if (!waiting) waiting = requestAnimationFrame(paint); };
  // The theme is a class or attribute of an ancestor, or the system's. There are none before `el` is
  // in the page, which its first size tells.
  const theme = new MutationObserver(redraw);
  let top = null;
  const watcher = new ResizeObserver(() => {
    if (top !== el.getRootNode()) {
      top = el.getRootNode();
      theme.disconnect();
      for (let up = el; up; up = up.parentElement)
        theme.observe(up, { attributes: true, attributeFilter: ["class", "data-jp-theme-light", "data-theme"] });
    }
    redraw();
  });
  watcher.observe(el);
  const ends = [listen(systemTheme, "change", redraw), listen(document, "mx-paint", paint)];
  const close = () => { watcher.disconnect(); theme.disconnect(); ends.forEach((end) => end()); };
  return { canvas, redraw, close };
};

// Take frames of a view's model: `take(frame)` keeps the newest, `redraw` paints it. When it is on
// screen the kernel gets its number, if it sets its pace by it and the frame is not `unasked`, and `el` tells by an event "mx-drawn".
const follow = (model, redraw, take, el, answers = true) => {
  let newest = null, waiting = 0;
  const answer = () => {
    waiting = 0;
    if (answers && !newest.unasked) attempt(() => model.send({ kind: "drawn", frame: newest.number })); // the page may be leaving
    el.dispatchEvent(new CustomEvent("mx-drawn", { bubbles: true, detail: { frame: newest.number, sent: newest.sent } }));
  };
  const onMessage = (message, buffers) => {
    if (message.kind !== "frame") return;
    newest = unpack(message, buffers, newest);
    take(newest);
    redraw(); // before the answer, in the same animation frame
    if (!waiting) waiting = requestAnimationFrame(answer);
  };
  const ask = () => attempt(() => model.send({ kind: "ready" })); // the kernel may be gone
  const ends = [heed(model, "msg:custom", onMessage), listen(document, "mx-again", ask)]; // after a line that broke
  ask();
  return () => ends.forEach((end) => end());
};
// Calls `call` at most every `ms`, always with what was given last; at once where that is asked for.
const paced = (ms, call) => {
  let last = -1e9, waiting = null;
  const run = (given) => { waiting = null; last = performance.now(); call(given); };
  const ask = (given, now) => {
    clearTimeout(waiting);
    const rest = last + ms - performance.now();
    if (now || rest <= 0) run(given); else waiting = setTimeout(run, rest, given);
  };
  return { ask, end: () => clearTimeout(waiting) };
};

// Put a caption and rows of words into a table, the first of them its head, for a screen reader:
// into the cells that are there.
const fillRows = (table, caption, rows) => {
  table.caption ??= make("caption");
  write(table.caption, caption);
  while (table.rows.length > rows.length) table.deleteRow(-1);
  rows.forEach((texts, i) => {
    const row = table.rows[i] || table.insertRow();
    texts.forEach((text, k) => write(row.cells[k] || row.appendChild(make(i ? "td" : "th")), text));
  });
};
