// A run that plays without Python: the page builds itself from the data in its own file (file.js stands
// before it), and asks no host.
const TITLES = { draw: "Draw", train: "Train", attack: "Attack", landscape: "Landscape" };
const CHART_MS = 100; // between two lines of the chart while frames play
const TICKS_OF_TIME = 1000, SPEEDS = [0.25, 0.5, 1, 2, 4];

const read = async () => {
  const data = readData();
  if (!data) return null;
  const recording = await framesIn(data.recording);
  if (!recording.frames.length) throw new Error("no frames");
  const starts = data.landscape && { ...data.landscape, frames: (await framesIn(data.landscape.recording)).frames };
  return { data, recording, starts };
};

// --- the parts ------------------------------------------------------------------------------------
// The line of a chart at a step.
const lineAt = ({ low, high }, t) => (t < 0 ? null : { at: Math.min(high, Math.max(low, t)), name: "step" });
const listOf = (className) => {
  const list = make("dl", className);
  let shown = "";
  const show = (rows) => {
    const names = JSON.stringify(rows.map(([name]) => name));
    if (names !== shown) list.replaceChildren(...rows.flatMap(([name]) => [make("dt", "", { textContent: name }), make("dd")]));
    shown = names;
    rows.forEach(([, value], i) => write(list.children[2 * i + 1], value));
  };
  return { list, show };
};
const codeOf = (name, text) => {
  const field = make("textarea", "mx-code mx-wrap", { readOnly: true, spellcheck: false, rows: 4, "aria-label": name, value: text });
  const button = makeButton("mx-flat", "Copy", `Copy: ${name}`, () => copyText(field, button), { "aria-label": `Copy: ${name}` });
  return make("div", "mx-played-code", {}, make("div", "mx-share-head", {}, make("span", "mx-chart-title", { textContent: name }), button), field);
};
// What the run is: its numbers, how to do it again, what made it, how to cite it.
const aboutOf = (about) => {
  const rows = listOf("mx-numbers-list");
  rows.show(about.rows);
  const words = (text) => make("p", "mx-note-text", { textContent: text });
  const details = (name, open, ...parts) => make("details", "mx-card mx-played-about", { open }, make("summary", "mx-card-title", { textContent: name }), ...parts);
  return [
    details("Numbers of the run", false, rows.list),
    details("Do it again", false, words(about.note), codeOf("Link", about.link), codeOf("Command", about.command), codeOf("Python", about.python)),
    details("Made with, and how to cite it", false, words(about.versions.join(", ")), codeOf("BibTeX", about.cite), ...about.papers.map(words)),
  ];
};

// --- the page -------------------------------------------------------------------------------------
const buildPage = ({ data, recording, starts }) => {
  let { frames } = recording; // those of the player now
  const whole = frames, calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const app = make("div", "mx-app mx-explorer mx-played");
  const tabs = make("nav", "mx-tabs", { "aria-label": "Parts of the run" });
  const plane = make("div", "mx-plane");
  const title = make("h1", "mx-title"), words = make("p", "mx-words"), head = make("div", "mx-headline", {}, title, words);
  const fold = listOf("mx-numbers-list"), foldCard = make("div", "mx-card", {}, make("div", "mx-card-title", { textContent: "Numbers of this step" }), fold.list);
  const cards = make("div", "mx-cards", { tabIndex: 0, role: "region", "aria-label": "Numbers, and what the run is" }), bar = make("div", "mx-transport");
  app.append(make("div", "mx-screen", {},
    make("header", "mx-head-box", {}, make("div", "mx-head", {}, brandOf(), tabs, make("div", "mx-head-right", {}, make("span", "mx-played-what", { textContent: data.what, title: data.what }), themeButton(app)))),
    make("main", "mx-main", {}, make("div", "mx-stage", {}, plane), make("div", "mx-side", {}, make("div", "mx-headline-box", {}, head), cards)),
    make("footer", "mx-transport-box", {}, bar)));
  document.getElementById("mx-fault").replaceWith(app);

  const sceneOf = (i) => { while (frames[i].scene === "end") i -= 1; return frames[i].scene; }; // the end is that of what came before
  const firstOf = (scene) => frames.findIndex((_, i) => sceneOf(i) === scene);
  const chartsOf = Object.fromEntries(Object.entries(data.charts).map(([scene, chart]) => [scene, { chart, ...chartOf((t) => seekStep(scene, t)) }]));
  const about = aboutOf(data.about);
  const load = (given, rate) => { player.pause(); frames = given; player.load({ frames, rate }); };
  const land = starts && landscapeOf(starts, (given, i, rate) => { load(given, rate); player.show(i); });
  const turn = (scene) => {
    if (scene === "landscape") return void land.open();
    if (frames !== whole) load(whole, recording.rate);
    seek(firstOf(scene));
  };
  const buttons = Object.keys(TITLES).filter((scene) => (scene === "landscape" ? land : firstOf(scene) >= 0)).map((scene) => {
    const b = makeButton("mx-tab", TITLES[scene], undefined, () => turn(scene), { data: { scene } });
    tabs.append(b);
    return b;
  });
  let shownScene = "";
  const told = (picture, i) => {
    const scene = sceneOf(i), still = !player.running, end = picture.scene === "end";
    write(title, picture.title);
    write(words, still ? picture.still : picture.words);
    head.className = `mx-headline ${still || end ? picture.tone : ""}`;
    attribute(head, "aria-live", still ? "polite" : "off");
    attribute(player.canvas, "aria-label", `Plane. ${picture.title}`);
    fold.show(picture.fold);
    foldCard.hidden = !picture.fold.length;
    legend.take(picture.frame.legend);
    for (const b of buttons) { b.classList.toggle("now", b.dataset.scene === scene); attribute(b, "aria-current", String(b.dataset.scene === scene)); }
    const chart = chartsOf[scene === "draw" ? "train" : scene];
    if (scene !== shownScene) cards.replaceChildren(...[scene === "landscape" ? land.el : chart?.el, foldCard, ...about].filter(Boolean));
    if (scene === "landscape") land.draw(picture);
    shownScene = scene;
    if (chart && (still || scene !== chart.of || performance.now() - chart.at > CHART_MS)) {
      chart.show(chart.chart, lineAt(chart.chart.values.x, scene === "draw" ? -1 : picture.t));
      Object.assign(chart, { of: scene, at: performance.now() });
    }
    tellTime();
  };
  const tellTime = () => {
    const last = frames.length - 1, picture = frames[player.at];
    time({
      running: player.running, speeds: SPEEDS.map((v) => `${v} ×`), speed: SPEEDS.indexOf(player.speed), able: ["reset", "play", "step", "time", "speed"],
      time: last ? Math.round((TICKS_OF_TIME * player.at) / last) : 0, where: picture.step || "", branches: [],
    });
  };
  const legend = attachLegend(plane);
  const player = makePlayer(plane, told, () => player.show(frames.length - 1));
  player.load(recording);
  player.canvas.setAttribute("role", "img");
  const seek = (i) => { player.pause(); player.show(Math.min(frames.length - 1, Math.max(0, i))); };
  const seekStep = (scene, t) => seek(frames.reduce((best, picture, i) => (sceneOf(i) === scene && picture.t <= t ? i : best), firstOf(scene)));
  const toggle = () => {
    if (player.running) return seek(player.at);
    if (frames !== whole) land.play();
    player.play(player.at >= frames.length - 1 ? 0 : player.at);
  };
  const time = TIME_BAR(bar, (kind, value) => {
    if (kind === "play" || kind === "pause") toggle();
    if (kind === "reset") seek(0);
    if (kind === "step") seek(player.at + 1);
    if (kind === "speed" && SPEEDS[value]) { player.speed = SPEEDS[value]; tellTime(); }
    if (kind === "seek") seek(Math.round(value * (frames.length - 1)));
  }, () => {});
  for (const [name, tip] of [["Reset", "Back to the beginning (Home)"], ["Step", "Pause, and one frame on (→)"]]) bar.querySelector(`[aria-label="${name}"]`).title = tip;
  plane.addEventListener("pointermove", (e) => put(plane, "title", sentenceUnder(frames[player.at].frame, plane, e)));
  document.addEventListener("keydown", (e) => {
    const keys = { " ": toggle, ArrowRight: () => seek(player.at + 1), ArrowLeft: () => seek(player.at - 1), Home: () => seek(0), End: () => seek(frames.length - 1) };
    const own = e.key === " " ? "select, textarea, summary, button" : "input, select, textarea, [role=slider], [role=application]";
    const taken = e.target.closest?.(own);
    if (!keys[e.key] || taken || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    keys[e.key]();
  });
  if (calm) player.show(frames.length - 1); else player.play();
};

openFile(read, buildPage);
