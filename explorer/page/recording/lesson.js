// A lesson that plays without Python: its words, a player where a step has a picture, answers that are
// folded. file.js stands before it. A picture plays when it comes into sight, and stops when it leaves.
const TICKS = 1000;

const figureOf = (recording, number) => {
  const plane = make("div", "mx-plane"), title = make("b"), words = make("p", "mx-note-text"), where = make("span", "mx-where");
  const button = makeButton("mx-play", undefined, undefined, () => toggle());
  const time = make("input", "mx-time", { type: "range", min: 0, max: TICKS, value: 0, "aria-label": `Time of picture ${number}` });
  const el = make("figure", "mx-card mx-told", {}, plane, make("div", "mx-told-time", {}, button, time, where), make("figcaption", "", {}, title, words));
  const last = recording.frames.length - 1, whole = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const told = (picture, i) => {
    const running = player.running;
    write(title, picture.title);
    write(words, running ? picture.words : picture.still);
    write(where, picture.step || "step –");
    time.value = String(Math.round((TICKS * i) / Math.max(1, last)));
    time.style.setProperty("--at", `${time.value / 10}%`);
    attribute(time, "aria-valuetext", `${picture.step}. ${picture.title}`);
    attribute(player.canvas, "aria-label", `Plane. ${picture.title}`);
    name();
  };
  const name = () => {
    const words = `${player.running ? "Pause" : "Play"} picture ${number}`;
    if (button.getAttribute("aria-label") === words) return;
    button.setAttribute("aria-label", words);
    button.innerHTML = icon(player.running ? "pause" : "play", true);
  };
  const player = makePlayer(plane, told, () => player.show(last));
  player.load(recording);
  player.canvas.setAttribute("role", "img");
  const seek = (i) => { player.pause(); player.show(i); };
  const toggle = () => (player.running ? seek(player.at) : player.play(player.at >= last ? 0 : player.at));
  time.addEventListener("input", () => seek(Math.round((time.value / TICKS) * last)));
  player.show(whole ? last : 0);
  let seen = whole; // it begins by itself once
  new IntersectionObserver(([{ isIntersecting }]) => {
    if (!isIntersecting && player.running) return seek(player.at);
    if (isIntersecting && !seen) { seen = true; player.play(); }
  }, { threshold: 0.6 }).observe(plane);
  return el;
};

const stepOf = ({ caption, question, answer, goal }, recording, i) => {
  const paragraphs = (texts, className) => texts.map((text) => make("p", className, { textContent: text }));
  const el = make("section", "mx-told-step", { "aria-label": `Step ${i + 1}` }, make("h2", "mx-lesson-number", { textContent: `Step ${i + 1}` }), ...paragraphs(caption));
  if (recording) el.append(figureOf(recording, i + 1));
  if (goal) el.append(make("p", "mx-lesson-goal", { textContent: `On the page: ${goal}` }));
  if (question) el.append(make("p", "mx-lesson-question", { textContent: question }));
  if (answer) el.append(make("details", "mx-lesson-fold", {}, make("summary", "", { textContent: "Answer" }), ...paragraphs(answer.split("\n\n"), "mx-lesson-answer")));
  return el;
};

const readLesson = async () => {
  const data = readData();
  if (!data) return null;
  const recordings = await Promise.all(data.steps.map(({ recording }) => recording && framesIn(recording)));
  if (recordings.some((one) => one && !one.frames.length)) throw new Error("no frames");
  return { data, recordings };
};
const buildLesson = ({ data, recordings }) => {
  const app = make("div", "mx-app mx-told-page"), brand = make("div", "mx-brand");
  brand.innerHTML = `${LOGO}<span>Margin Explorer</span>`;
  const link = make("textarea", "mx-code mx-wrap", { readOnly: true, spellcheck: false, rows: 3, "aria-label": "Link to the lesson", value: data.link });
  const copy = makeButton("mx-flat", "Copy", undefined, () => copyText(link, copy));
  app.append(
    make("header", "mx-head", {}, brand, make("div", "mx-head-right", {}, themeButton(app))),
    make("main", "", {}, make("h1", "mx-title", { textContent: data.title }), make("p", "mx-words", { textContent: data.line }),
      ...data.steps.map((step, i) => stepOf(step, recordings[i], i)),
      make("details", "mx-card mx-played-about", {}, make("summary", "mx-card-title", { textContent: "Do it yourself" }),
        make("p", "mx-note-text", { textContent: "On the page of Margin Explorer the tasks tick themselves off. Put this behind the # of its address, or into app(lesson=…) in a notebook." }), link, copy)));
  document.getElementById("mx-fault").replaceWith(app);
};
openFile(readLesson, buildLesson);
