// A step of a lesson: its words, a goal that ticks itself off, then a question with a folded answer.
// The browser keeps which steps were done at any time, and in head.js which lessons.
const DONE = "mx-steps";
const everDone = (place, steps) => {
  if (place === null) return steps;
  const all = attempt(() => JSON.parse(localStorage.getItem(DONE) || "{}"), {}), before = all[place] || [];
  const ever = steps.map((now, i) => now || before.includes(i));
  const every = ever.flatMap((now, i) => (now ? [i] : []));
  if (every.length === before.length) return ever; // told and kept before
  attempt(() => localStorage.setItem(DONE, JSON.stringify({ ...all, [place]: every })));
  if (every.length === steps.length) document.dispatchEvent(new CustomEvent("mx-lesson-done", { detail: place }));
  return ever;
};
const SMALLEST = 14, LARGEST = 24; // px of the words
const build = (el, send, onClose) => {
  const number = make("div", "mx-lesson-number"), title = make("h2", "mx-lesson-title");
  const leave = makeButton("mx-lesson-leave", undefined, undefined, () => send("leave"));
  const dots = make("div", "mx-lesson-steps", { role: "group", "aria-label": "Steps of the lesson" });
  const caption = make("div", "mx-lesson-caption");
  const goal = make("div", "mx-lesson-goal", { role: "status", "aria-live": "polite" });
  const question = make("p", "mx-lesson-question"), answer = make("div", "mx-lesson-answer");
  const summary = make("summary", "", { textContent: "Answer" });
  const fold = make("details", "mx-lesson-fold", {}, summary, answer);
  fold.addEventListener("toggle", () => { if (fold.open) fold.scrollIntoView({ block: "nearest" }); });
  const links = make("div", "mx-lesson-links");
  const guessed = make("input", "", { type: "number", min: 0, step: "any" });
  const guess = make("label", "mx-lesson-guess", {}, "Your guess ", guessed); // it stays beside what is then seen
  const body = make("div", "mx-lesson-body", { tabIndex: 0, role: "region", "aria-label": "Words of the step" }, caption, links, guess, goal, question, fold);
  const back = makeButton("mx-flat", "Previous", undefined, () => send("turn", Number(el.dataset.at) - 1));
  const next = makeButton("mx-flat mx-lesson-next", undefined, undefined, () => send("next"));
  el.append(make("div", "mx-lesson-head", {}, number, dots, leave), title, body, make("div", "mx-lesson-foot", {}, back, next));
  // Lines that are set in are code.
  const code = (part) => make("pre", "", { textContent: part.replace(/^ {4}/gm, "").trimEnd() });
  const told = (text) => { const p = make("p"); explain(p, text); return p; };
  const paragraphs = (text) => text.split(/\n(?:[ \t]*\n)+/).filter((part) => part.trim())
    .map((part) => (/^ {4}/.test(part) ? code(part) : told(part.trim())));
  const anchors = (others) => others.map(({ page, title: name }) => make("a", "mx-action mx-lesson-link", {
    href: address(page), target: "_blank", textContent: `${name} ↗`,
  }));
  let shown = "", pages = [], asks = false, fit = false, has = [], texts = [];
  const overflows = () => body.scrollHeight > body.clientHeight;
  // Words as large as the room for each step's allows, so that all steps have one size.
  const fitWords = () => {
    const screen = el.closest(".mx-explorer"); // not this box, which may grow with its words
    if (!screen || !el.clientHeight) return;
    fit = false;
    let size = Math.min(LARGEST, Math.max(SMALLEST, Math.round(Math.min(screen.clientHeight, 0.6 * screen.clientWidth) / 42)));
    const shrink = () => {
      el.style.setProperty("--mx-words", `${size}px`);
      while (size > SMALLEST && overflows()) el.style.setProperty("--mx-words", `${size -= 1}px`);
    };
    const own = [[...caption.childNodes], [...links.childNodes], question.textContent, goal.textContent, goal.hidden];
    texts.forEach((step) => {
      caption.replaceChildren(...paragraphs(step.caption));
      links.replaceChildren(...anchors(step.links));
      [question.textContent, goal.textContent] = [step.question, `○ ${step.goal}`];
      [question.hidden, fold.hidden, goal.hidden] = [!step.question, !step.question, !step.goal];
      shrink();
    });
    caption.replaceChildren(...own[0]);
    links.replaceChildren(...own[1]);
    [question.textContent, goal.textContent, goal.hidden] = own.slice(2);
    [question.hidden, fold.hidden] = has.map((one) => !one || !asks);
  };
  const resized = new ResizeObserver(fitWords);
  resized.observe(el);
  onClose(() => resized.disconnect());
  // The other page, in a tab of the same browser, says when its task is done; see access.js.
  const heard = (e) => { if (e.key === "mx-task" && pages.includes((e.newValue || "").split(" ")[0])) send("done"); };
  onClose(listen(window, "storage", heard));
  return (state) => {
    if (!state.steps) return;
    pages = state.links.map(({ page }) => page.replace(".ipynb", ""));
    put(number, "textContent", state.number);
    put(title, "textContent", state.title);
    put(leave, "textContent", state.leave);
    el.dataset.at = state.at;
    el.classList.toggle("wide", !!state.wide); el.classList.toggle("plays", !!state.plays);
    texts = state.texts;
    const words = JSON.stringify([state.title, state.at, state.caption, state.question, state.answer]);
    const asked = state.asks && !asks && words === shown; // its goal was met just now
    asks = state.asks;
    if (words !== shown) {
      shown = words;
      caption.replaceChildren(...paragraphs(state.caption));
      links.replaceChildren(...anchors(state.links));
      answer.replaceChildren(...paragraphs(state.answer));
      put(question, "textContent", state.question);
      fold.open = false;
      guessed.value = "";
      body.scrollTop = 0;
      fit = true;
    }
    guess.hidden = !state.guesses;
    guessed.disabled = state.done;
    goal.hidden = !state.goal;
    has = [!!state.question, !!state.answer];
    question.hidden = !has[0] || !asks; // it is about what was seen
    fold.hidden = !has[1] || !asks;
    goal.classList.toggle("done", state.done);
    const waits = state.share !== null && state.share !== undefined;
    put(goal, "textContent", waits ? `Getting ready: ${Math.round(100 * state.share)}%` : `${state.done ? "✓" : "○"} ${state.goal}`);
    if (waits) goal.hidden = false;
    while (dots.children.length > state.steps.length) dots.lastChild.remove();
    while (dots.children.length < state.steps.length) { // they stay: a change takes the focus from none
      const i = dots.children.length;
      dots.append(makeButton("mx-lesson-dot", undefined, undefined, () => send("turn", i)));
    }
    everDone(state.place ?? null, state.steps).forEach((done, i) => {
      const dot = dots.children[i], said = done ? ", done" : "";
      put(dot, "textContent", done ? "✓" : String(i + 1));
      put(dot, "title", `Step ${i + 1}${said}`);
      dot.classList.toggle("done", done);
      attribute(dot, "aria-label", `Step ${i + 1} of ${state.steps.length}${said}`);
      attribute(dot, "aria-current", i === state.at ? "step" : "false");
    });
    back.disabled = state.at === 0;
    put(next, "textContent", state.next);
    next.classList.toggle("filled", state.ready);
    if (fit || (!fold.open && overflows())) fitWords();
    if (asked) fold.scrollIntoView({ block: "nearest" });
  };
};
