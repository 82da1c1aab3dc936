// A lesson that is written: what was recorded of the page, in order, each with its words and its goal.
const PAUSE = 500; // ms without a key after which what was written is sent; arbitrary
const build = (el, tell, onClose, onMessage) => {
  // What was written goes before whatever is pressed next.
  const written = new Map(), typed = new Set(); // not sent yet; and written since the step was chosen
  let timer = null;
  const flush = () => {
    clearTimeout(timer);
    const pairs = [...written];
    written.clear();
    for (const [name, input] of pairs) if (name !== "title" && name !== "line") tell("text", [name, input.value]);
    if (pairs.some(([name]) => name === "title" || name === "line")) tell("words", [title.value, line.value]);
  };
  onClose(() => clearTimeout(timer));
  const send = (kind, value) => { flush(); tell(kind, value); };
  // To another step. What is written from now on is of that one, also before the kernel has answered.
  const turn = (kind, value) => {
    send(kind, value);
    typed.clear();
    if (kind === "record") for (const input of Object.values(texts)) input.value = "";
  };
  const field = (name, words, tag = "textarea", more = {}) => {
    const input = make(tag, "", { "aria-label": words, placeholder: words, ...more });
    input.addEventListener("input", () => { written.set(name, input); typed.add(input); clearTimeout(timer); timer = setTimeout(flush, PAUSE); });
    input.addEventListener("change", flush);
    return input;
  };
  const button = (words, tip, kind, className = "mx-flat") =>
    makeButton(className, words, tip, () => (kind === "record" || kind === "delete" ? turn : send)(kind));
  const title = field("title", "Title of the lesson", "input", { type: "text", maxLength: 80 });
  const line = field("line", "What it shows, in one line", "input", { type: "text", maxLength: 160 });
  const list = make("ol", "mx-lesson-list");
  const of = make("p", "mx-note-text");
  const texts = { caption: field("caption", "Words: what is to be seen, what to do", "textarea", { rows: 4, maxLength: 1200 }),
    question: field("question", "A question, if you like", "textarea", { rows: 2, maxLength: 400 }),
    answer: field("answer", "Its answer, folded at first", "textarea", { rows: 2, maxLength: 1200 }) };
  const goal = make("select", "", { "aria-label": "Goal of the step" });
  const value = make("input", "", { type: "number", step: "any", "aria-label": "Number of the goal" });
  goal.addEventListener("change", () => send("goal", [goal.value, null]));
  value.addEventListener("change", () => send("goal", [goal.value, value.value === "" ? null : Number(value.value)]));
  const file = fileField(".json", async (chosen) => turn("open", await chosen.text()), { "aria-label": "A lesson from a file" });
  const move = (words, tip, by) => makeButton("mx-square", words, tip, () => turn("move", by), { "aria-label": tip });
  const tools = make("div", "mx-lesson-row", {}, move("↑", "Earlier", -1), move("↓", "Later", 1),
    button("Record anew", "This moment of the page, with the words of this step", "again"), button("Delete", "Take this step out", "delete"));
  const one = make("div", "mx-lesson-one", {}, tools, of, texts.caption, texts.question, texts.answer, make("div", "mx-lesson-row", {}, goal, value));
  const body = make("div", "mx-lesson-body", {}, title, line, list,
    button("Record this moment", "Points, network, attack and stage, as they are now, become a step", "record", "mx-flat mx-lesson-record"), one);
  const link = copyLine("Link to the lesson", "Copy", "The whole lesson, for whoever opens the address");
  link.root.hidden = true;
  onMessage((message) => {
    if (message.kind !== "link") return;
    link.root.hidden = false;
    link.set(addressOf(message.text));
    copyText(link.field, link.button);
  });
  const foot = make("div", "mx-lesson-foot", {}, button("Preview", "Walk it as a student does", "preview"), button("Save", "As a file", "save"), button("Link", "As a link, for whoever opens the address", "link"),
    makeButton("mx-flat", "Open…", "Go on with a lesson out of a file", () => file.click()), file);
  el.append(make("div", "mx-lesson-head", {}, make("div", "mx-lesson-number", { textContent: "Record a lesson" }), button("Leave", "Leave without saving", "leave", "mx-lesson-leave")), body, link.root, foot);
  const set = (input, words) => { if (input.value !== words && !typed.has(input)) input.value = words; };
  let known = false;
  return (state) => {
    if (!state.steps) return;
    if (!known) {
      known = true;
      goal.append(make("option", "", { value: "", textContent: "No goal: reading is all" }),
        ...state.goals.map(({ name, words }) => make("option", "", { value: name, textContent: words })));
    }
    link.root.hidden = true;
    set(title, state.title);
    set(line, state.line);
    list.replaceChildren(...state.steps.map((words, i) => make("li", "", {},
      makeButton("mx-menu-row", words, undefined, () => turn("choose", i), { "aria-current": i === state.at ? "step" : "false" }))));
    one.hidden = !state.step;
    if (!state.step) return;
    put(of, "textContent", state.of);
    for (const [name, input] of Object.entries(texts)) set(input, state.step[name]);
    goal.value = state.goal;
    value.hidden = !state.number;
    set(value, state.value === null ? "" : String(state.value));
  };
};
