// Plays a recording: the opening of the page, and every page that plays without Python. `paintPlane`
// and `surface` stand before this script.

// A recording is gzip of a line of JSON, then the numbers; see packing.py. An array holds until it is
// given again or dropped. What is not whole raises an error.
const unzipped = async (stream) =>
  new Uint8Array(await new Response(stream.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
const GAP = -(2 ** 15); // in a line
const framesOf = (bytes) => {
  const end = bytes.indexOf(10), head = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
  let at = end + 1;
  const held = {};
  const frames = head.frames.map(({ arrays, drop, values, ...words }) => {
    for (const [name, kind, shape] of arrays) {
      const size = shape.reduce((a, b) => a * b, 1), width = kind === "h" ? 2 : 1;
      const part = bytes.slice(at, at + size * width);
      if (part.length !== size * width) throw new Error("the recording ends too early");
      at += size * width;
      const data = kind === "h" ? Float32Array.from(new Int16Array(part.buffer), (v) => (v === GAP ? NaN : v / head.unit)) : part;
      held[name] = { data, shape };
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
