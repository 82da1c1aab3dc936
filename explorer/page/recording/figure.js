// A picture that plays in a text: plane (or images), band of weights, time and words. It plays when it comes
// into sight, and stops when it leaves. player.js stands before it.
const TICKS = 1000;
const calm = matchMedia("(prefers-reduced-motion: reduce)").matches, paper = matchMedia("print");

// The arrays of the band in a frame, or null.
const bandOf = (frame) => {
  if (!frame?.band_needles) return null;
  return Object.fromEntries(Object.entries(frame).filter(([name]) => name.startsWith("band_")).map(([name, array]) => [name.slice(5), array]));
};
// Pairs of images: above what was trained on, where that is told, below what was found; found ones framed.
const ACROSS = 7; // pairs in a row; arbitrary
const paintImages = (context, frame, size, paints) => {
  const [n, h, w] = frame.found.shape, rows = Math.ceil(n / ACROSS), air = 6;
  const step = Math.min(size.width / ACROSS, (size.height - air) / (2 * rows)), side = step - air;
  const left = (size.width - ACROSS * step + air) / 2, top = (size.height - 2 * rows * step) / 2;
  const picture = make("canvas", "", { width: w, height: h }), small = picture.getContext("2d"), image = small.createImageData(w, h);
  const put = (array, i, x, y) => {
    for (let k = 0; k < h * w; k++) { const v = 255 - array.data[i * h * w + k]; image.data.set([v, v, v, 255], 4 * k); }
    small.putImageData(image, 0, 0);
    context.drawImage(picture, x, y, side, side);
  };
  context.imageSmoothingEnabled = false;
  for (let i = 0; i < n; i++) {
    const x = left + (i % ACROSS) * step, y = top + 2 * Math.floor(i / ACROSS) * step + (frame.truth ? 0 : step / 2);
    if (frame.truth) put(frame.truth, i, x, y);
    put(frame.found, i, x, frame.truth ? y + step - air / 2 : y);
    if (!frame.matched?.data[i]) continue;
    const clear = frame.clear.data[i] > 0; // else by its rank alone
    context.strokeStyle = clear ? paints.good : paints.ink2; context.lineWidth = 2; context.setLineDash(clear ? [] : [5, 4]);
    context.strokeRect(x - 1.5, y - 1.5, side + 3, 2 * step - air / 2 - air + 3);
  }
};

// A figure of a recording: {el, player, limit, seek, light, play}. `asked`: so many frames are shown before
// `reveal()`; `told(picture)` hears of each frame; `again` plays whenever it comes into sight, else once.
const figureOf = (recording, number, { asked = recording.frames.length, told = () => {}, alt = "", again = false } = {}) => {
  const plane = make("div", "mx-plane"), title = make("b"), words = make("p", "mx-note-text"), where = make("span", "mx-where");
  const button = makeButton("mx-play", undefined, undefined, () => toggle()), band = make("div", "mx-told-band");
  const time = make("input", "mx-time", { type: "range", min: 0, max: TICKS, value: 0, "aria-label": `Time of picture ${number}` });
  const el = make("figure", "mx-card mx-told", {}, plane, make("div", "mx-told-time", {}, button, time, where), make("figcaption", "", {}, title, words, make("span", "mx-said", { textContent: alt })));
  const first = recording.frames[0].frame, hasBand = recording.frames.some(({ frame }) => frame.band_needles);
  if (hasBand) plane.after(band);
  const chart = recording.frames.some(({ frame }) => frame.chart) ? chartOf((t) => seek(player.frames.findLastIndex((one) => one.frame.chart && one.t <= t + 1e-6))) : null;
  if (chart) { chart.el.style.visibility = "hidden"; el.append(chart.el); } // until there is one
  let limit = asked, begun = false, term = "", shown = null;
  const last = () => player.frames.length - 1;
  const say = (picture, i) => {
    const running = player.running;
    write(title, picture.title);
    write(words, running ? picture.words : picture.still);
    write(where, picture.step || "");
    time.value = String(Math.round((TICKS * i) / Math.max(1, last())));
    time.style.setProperty("--at", `${time.value / 10}%`);
    attribute(time, "aria-valuetext", `${picture.step}. ${picture.title}`);
    attribute(player.canvas, "aria-label", `${first.images ? "Images" : "Plane"}. ${picture.title}`);
    shown = bandOf(picture.frame);
    under?.redraw();
    if (picture.frame.chart) { chart.el.style.visibility = ""; chart.show(picture.frame.chart); }
    name();
    told(picture, i);
  };
  const name = () => {
    const words = `${player.running ? "Pause" : "Play"} picture ${number}`;
    if (button.getAttribute("aria-label") === words) return;
    button.setAttribute("aria-label", words);
    button.innerHTML = icon(player.running ? "pause" : "play", true);
  };
  const player = makePlayer(plane, say, () => player.show(last()), first.images ? paintImages : paintPlane);
  const under = hasBand ? surface(band, (context, size, paints) => shown && BAND.paintBand(context, { ...shown, lit: -1, lift: -1, term }, size, paints), true) : null;
  if (under) { under.canvas.setAttribute("role", "img"); under.canvas.setAttribute("aria-label", "The weights as needles, one a neuron, and the terms of the points below them"); }
  player.load({ ...recording, frames: recording.frames.slice(0, limit) });
  player.canvas.setAttribute("role", "img");
  const seek = (i) => { player.pause(); player.show(i); };
  const play = () => (calm ? seek(last()) : player.play(player.at >= last() ? 0 : player.at));
  const toggle = () => (player.running ? seek(player.at) : player.play(player.at >= last() ? 0 : player.at));
  time.addEventListener("input", () => seek(Math.round((time.value / TICKS) * last())));
  // Until it plays, and where one passed by, it stands with all of its points.
  const drawn = recording.frames.findIndex(({ scene }) => scene !== recording.frames[0].scene) - 1;
  const whole = recording.frames[0].scene === "draw" ? Math.min(Math.max(0, drawn), last()) : 0;
  player.show(calm ? last() : whole);
  // It plays while most of the plane and all of its sentence's title are on screen.
  const seen = new Map([[plane, false], [title, false]]);
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, intersectionRatio } of entries) seen.set(target, intersectionRatio >= (target === plane ? 0.6 : 1));
    if (!seen.get(plane) && player.running) return seek(Math.max(whole, player.at));
    if (![...seen.values()].every(Boolean) || calm || paper.matches || (begun && !again) || (begun && player.at >= last())) return;
    if (begun || player.at > whole) play(); else player.play(0);
    begun = true;
  }, { threshold: [0.6, 1] });
  for (const part of seen.keys()) watcher.observe(part);
  return {
    el, player, seek, plane, last,
    // What a word names lights up: see `onLight`.
    light: (what) => { term = what.term || ""; player.light({ line: null, ink: 0, pulls: [], point: -1, term }); under?.redraw(); },
    // The rest, from where the question was asked.
    reveal: () => {
      const from = limit;
      limit = recording.frames.length;
      player.load({ ...recording, frames: recording.frames });
      if (calm || from >= limit) seek(limit - 1); else player.play(from);
    },
  };
};

// The triangle of starts beside the plane of a figure, and the frames of all runs in place of its recording.
const landBeside = (figure, starts) => {
  const { title, words, still } = starts.frames[0]; // of all runs, where they have ended
  const land = landscapeOf(starts, (frames, at, rate) => {
    if (frames.length > 1) frames[frames.length - 1] = { ...frames.at(-1), title, words, still };
    figure.player.pause(); figure.player.load({ frames, rate }); figure.player.show(at);
  });
  figure.plane.after(land.el);
  figure.el.classList.add("mx-told-wide");
  return land;
};
const startsIn = async (starts) => starts && { ...starts, frames: (await framesIn(starts.recording)).frames };
// The data of a file of scenes or steps, with what was recorded of each.
const readRows = async (name) => {
  const data = readData();
  if (!data) return null;
  const recordings = await Promise.all(data[name].map(({ recording }) => recording && framesIn(recording)));
  if (recordings.some((one) => one && !one.frames.length)) throw new Error("no frames");
  const starts = await Promise.all(data[name].map(({ starts }) => startsIn(starts)));
  return { data, recordings, starts };
};
