// A lesson that plays without Python: its words, a player where a step has a picture, answers that are
// folded. file.js, landscape.js and figure.js stand before it.
const pictureOf = (recording, starts, i) => {
  let land = null;
  const figure = figureOf(recording, i + 1, { told: (picture) => land?.draw(picture) });
  if (starts) { land = landBeside(figure, starts); land.play(); if (calm) figure.seek(figure.last()); }
  return figure.el;
};
const stepOf = ({ caption, question, answer, goal }, recording, starts, i) => {
  const paragraphs = (texts, className) => texts.map((text) => make("p", className, { textContent: text }));
  const el = make("section", "mx-told-step", { "aria-label": `Step ${i + 1}` }, make("h2", "mx-lesson-number", { textContent: `Step ${i + 1}` }), ...paragraphs(caption));
  if (recording) el.append(pictureOf(recording, starts, i));
  if (goal) el.append(make("p", "mx-lesson-goal", { textContent: `On the page: ${goal}` }));
  if (question) el.append(make("p", "mx-lesson-question", { textContent: question }));
  if (answer) el.append(make("details", "mx-lesson-fold", {}, make("summary", "", { textContent: "Answer" }), ...paragraphs(answer.split("\n\n"), "mx-lesson-answer")));
  return el;
};

const buildLesson = ({ data, recordings, starts }) => {
  const app = make("div", "mx-app mx-told-page");
  const link = make("textarea", "mx-code mx-wrap", { readOnly: true, spellcheck: false, rows: 3, "aria-label": "Link to the lesson", value: data.link });
  const copy = makeButton("mx-flat", "Copy", undefined, () => copyText(link, copy));
  app.append(
    make("header", "mx-head", {}, brandOf(), make("div", "mx-head-right", {}, themeButton(app))),
    make("main", "", {}, make("h1", "mx-title", { textContent: data.title }), make("p", "mx-words", { textContent: data.line }),
      ...data.steps.map((step, i) => stepOf(step, recordings[i], starts[i], i)),
      make("details", "mx-card mx-played-about", {}, make("summary", "mx-card-title", { textContent: "Do it yourself" }),
        make("p", "mx-note-text", { textContent: "On the page of Margin Explorer the tasks tick themselves off. Put this behind the # of its address, or into app(lesson=…) in a notebook." }), link, copy)));
  document.getElementById("mx-fault").replaceWith(app);
};
openFile(() => readRows("steps"), buildLesson);
