// Plays a recording: the opening of the page, and every page that plays without Python. `paintPlane`
// and `surface` stand before this script.

// A recording is gzip of a line of JSON, then the numbers; see packing.py. An array holds until it is
// given again or dropped. What is not whole raises an error.
const unzipped = async (stream) =>
  new Uint8Array(await new Response(stream.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
const GAP = -(2 ** 15); // in a line
const framesOf = (bytes) => {
  const end = bytes.indexOf(10), head = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
  const sizeOf = (shape) => shape.reduce((a, b) => a * b, 1), ints = {}, held = {};
  let low = end + 1, high = head.frames.flatMap(({ arrays }) => arrays).reduce((sum, [, , shape]) => sum + sizeOf(shape), low);
  const part = (at, size) => {
    if (at + size > bytes.length) throw new Error("the recording ends too early");
    return bytes.subarray(at, at + size);
  };
  // The numbers of an array: what is left of it, to which its neighbours and its last state are added.
  const numbersOf = ([name, kind, shape, stride, lags, after]) => {
    const size = sizeOf(shape), made = new (kind === "h" ? Int16Array : Uint8Array)(size), left = new made.constructor(part(low, size));
    low += size;
    if (kind === "h") {
      part(high, size).forEach((b, i) => { const v = left[i] | (b << 8); left[i] = (v >>> 1) ^ -(v & 1); });
      high += size;
    }
    for (const lag of lags) for (let i = lag; i < size; i++) left[i] += left[i - lag];
    for (let k = 0, i = 0; k < stride; k++) for (let at = k; at < size; at += stride) made[at] = left[i++] + (after ? ints[name][at] : 0);
    return made;
  };
  const frames = head.frames.map(({ arrays, drop, values, ...words }) => {
    for (const row of arrays) {
      const [name, kind, shape] = row, made = (ints[name] = numbersOf(row));
      held[name] = { data: kind === "h" ? Float32Array.from(made, (v) => (v === GAP ? NaN : v / head.unit)) : made, shape };
    }
    for (const name of drop) delete held[name];
    return { ...words, frame: { ...values, ...held } };
  });
  return { rate: head.rate, frames };
};

// A player on the plane `el`. `told(picture, i)` is called with each frame that is shown, `ended()`
// when play has come to the end; {frames} are there once they are loaded. `paintFrame`: of another picture.
const makePlayer = (el, told, ended, paintFrame = paintPlane) => {
  let memory = {}, now = null, place = 0, turn = 0, lit = null;
  const view = surface(el, (context, size, paints) => {
    if (!now) return;
    paintFrame(context, lit ? { ...now, lit } : now, size, paints);
    if (!performance.getEntriesByName("mx-first-picture").length) performance.mark("mx-first-picture");
  }, true);
  const player = { canvas: view.canvas, rate: 1, frames: [], speed: 1, at: 0, running: false };
  const paint = (frame) => { now = frame; view.canvas.mxFrame = frame; view.redraw(); };
  player.load = (recording) => Object.assign(player, recording);
  player.show = (i) => {
    player.at = i; place = Math.floor(place) === i ? place : i;
    paint(remember(memory, player.frames[i].frame));
    told(player.frames[i], i);
  };
  player.pause = () => { player.running = false; turn += 1; };
  player.play = (from = 0) => {
    player.pause();
    player.running = true;
    place = from;
    const mine = turn;
    let before = null;
    const tick = (time) => {
      if (mine !== turn) return;
      place += before === null ? 0 : ((time - before) / 1000) * player.rate * player.speed;
      before = time;
      if (place >= player.frames.length) { player.pause(); return void ended(); }
      if (Math.floor(place) !== player.at || now === null) player.show(Math.floor(place));
      requestAnimationFrame(tick);
    };
    player.show(from);
    requestAnimationFrame(tick);
  };
  player.paint = paint; // a frame beside the recording
  player.light = (what) => { lit = what; view.canvas.mxLit = lit; view.redraw(); }; // as `onLight` hears it
  player.clear = () => { player.pause(); memory = {}; paint(now && { view: now.view }); };
  player.close = () => { player.pause(); view.close(); };
  return player;
};
