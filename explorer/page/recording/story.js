// The story: scenes that one scrolls, each a figure that stops at a question. file.js and figure.js stand
// before it, and landscape.js for the triangle. Nothing is kept: a page that is opened again asks again.
const chosen = (right) => (right ? "Right." : "Not so.");

const sceneOf = (scene, recording, starts, i, done) => {
  const { key, name, title, words, question, options, right, answer, alt, note } = scene;
  const said = make("p", "mx-guess-said", { role: "status" }), asks = `mx-asks-${key}`;
  const paragraph = (text, className = "") => { const p = make("p", className); explain(p, text); return p; };
  let open = false, figure = null, land = null;
  // Beside each frame: the triangle, and whether it has come to the question.
  const told = (picture, i) => {
    if (!figure) return;
    guess.classList.toggle("now", !open && i === figure.last());
    land?.draw(open ? picture : { share: 0 });
  };
  const buttons = options.map((option, k) => makeButton("mx-flat", option, undefined, () => choose(k), { "aria-pressed": "false" }));
  const guess = make("div", "mx-guess", { role: "group", "aria-labelledby": asks }, make("p", "mx-lesson-question", { id: asks, textContent: question }), make("div", "mx-guess-options", {}, ...buttons), said);
  const fold = make("details", "mx-lesson-fold", { on: { toggle: () => fold.open && reveal() } }, make("summary", "", { textContent: "Answer" }), ...answer.map((text) => paragraph(text, "mx-lesson-answer")));
  const el = make("section", "mx-scene", { id: key, tabIndex: -1, "aria-labelledby": `mx-title-${key}` });
  const reveal = () => {
    if (open) return;
    open = true;
    guess.classList.remove("now");
    for (const b of buttons) b.disabled = true;
    if (!land) return figure.reveal();
    land.el.inert = false;
    land.play();
    if (calm) figure.seek(figure.last()); else figure.player.play();
  };
  const choose = (k) => {
    buttons.forEach((b, j) => { b.setAttribute("aria-pressed", String(j === k)); b.classList.toggle("mx-right", j === right); });
    write(said, chosen(k === right));
    said.classList.toggle("good", k === right);
    done(k === right);
    fold.open = true;
    const { top, bottom } = figure.plane.getBoundingClientRect(); // on a phone it stands above the question
    if (top < 0 || bottom > innerHeight) figure.plane.scrollIntoView({ block: "center", behavior: calm ? "auto" : "smooth" });
    reveal();
  };
  figure = figureOf(recording, i + 1, { asked: scene.asked, told, alt, again: true });
  if (starts) {
    land = landBeside(figure, starts);
    land.el.inert = true;
    land.draw({ share: 0 });
  }
  el.addEventListener("mx-light", (e) => figure.light(e.detail));
  el.append(
    make("div", "mx-scene-words", {}, make("p", "mx-scene-number", { textContent: `${i + 1} · ${name}` }), make("h2", "", { id: `mx-title-${key}`, textContent: title }), ...words.map((text) => paragraph(text)), guess, fold, ...(note ? [make("p", "mx-note-text", { textContent: note })] : [])),
    figure.el);
  const last = () => { fold.open = true; reveal(); figure.seek(figure.last()); };
  return { el, last };
};

// Where the story leads: to the live page where a server has one, else to how it is started.
const onward = (more) => {
  const served = /^(.*\/)story\/?$/.exec(location.pathname), row = make("p", "mx-onward");
  if (served) row.append(make("a", "mx-action", { href: served[1], textContent: "Open the live page" }));
  else row.append("Install it and start the page: ", make("code", "", { textContent: "pip install '.[app]'" }), " and ", make("code", "", { textContent: "margin-explorer serve" }), ".");
  if (more) row.append(" ", make("a", "mx-more-link", { href: more, textContent: "All pages of the docs" }));
  return row;
};

const buildStory = ({ data, recordings, starts }) => {
  const app = make("div", "mx-app mx-told-page mx-story");
  const links = data.scenes.map(({ key, name }, i) => make("a", "mx-story-link", { href: `#${key}`, title: name }, make("span", "", { textContent: String(i + 1) }), make("span", "mx-story-name", { textContent: name })));
  const tick = (i, right) => { links[i].classList.add(right ? "good" : "missed"); links[i].setAttribute("aria-label", `${data.scenes[i].name}: ${right ? "guessed" : "not guessed"}`); };
  const main = make("main", "", {}, make("div", "mx-story-head", {}, make("h1", "mx-title", { textContent: data.title }), make("p", "mx-words", { textContent: data.line })));
  const head = make("header", "mx-head", {}, brandOf(), make("nav", "mx-story-nav", { "aria-label": "Scenes" }, ...links), make("div", "mx-head-right", {}, themeButton(app)));
  app.append(head, main);
  let before = 0; // it makes way for what the wheel scrolls down to, and is back as one goes up
  listen(window, "wheel", (e) => { if (e.deltaY > 0 && scrollY > 60) head.classList.add("away"); });
  listen(window, "scroll", () => { if (scrollY < before) head.classList.remove("away"); before = scrollY; });
  // Arrows turn to the scene before or after; a slider in the hand keeps its own.
  listen(window, "keydown", (e) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (!by || e.altKey || e.ctrlKey || e.metaKey || e.target.closest?.("input")) return;
    const at = Math.max(0, links.findIndex((link) => link.getAttribute("aria-current") === "true"));
    e.preventDefault();
    scenes[Math.max(0, Math.min(scenes.length - 1, at + by))].el.scrollIntoView();
  });
  document.getElementById("mx-fault").replaceWith(app);
  const scenes = data.scenes.map((scene, i) => sceneOf(scene, recordings[i], starts[i], i, (right) => tick(i, right)));
  main.append(...scenes.map(({ el }) => el));
  scenes.at(-1).el.querySelector(".mx-scene-words").append(onward(data.more));
  const watcher = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) if (isIntersecting) links.forEach((link) => attribute(link, "aria-current", String(link.hash === `#${target.id}`)));
  }, { rootMargin: "-45% 0px -45% 0px" });
  for (const { el } of scenes) watcher.observe(el);
  // On paper each scene stands at its end, with its answer, in the light theme.
  listen(window, "beforeprint", () => {
    app.dataset.printed = app.dataset.theme;
    app.dataset.theme = document.documentElement.dataset.theme = "light";
    for (const { last } of scenes) last();
    document.dispatchEvent(new Event("mx-paint"));
  });
  listen(window, "afterprint", () => { app.dataset.theme = document.documentElement.dataset.theme = app.dataset.printed; });
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
};
openFile(() => readRows("scenes"), buildStory);
