// The head: name, stages, menus, theme. tabs.js stands before it.
// A row of a menu: what it is, and what it does.
const rowOf = (title, words, click) => {
  const made = makeButton("mx-menu-row", undefined, words, click);
  made.append(make("b", "", { textContent: title }), make("span", "", { textContent: words }));
  return made;
};
const EXAMPLES = "Each is trained for you, and opens on the stage that it is about.";
// The lessons in their order, a picture each; then those out of a file, and the other pages.
const lessonsOf = (state, send) => {
  let asked = false; // for the pictures, which come when the menu opens first
  const opened = () => { if (!asked) send("pictures"); asked = true; };
  const row = (title, words, call) => rowOf(title, words, () => { lessons.set(false); call(); });
  const take = async (chosen) => { lessons.set(false); send("lesson-file", await chosen.text()); };
  const file = fileField(".json", take, { "aria-label": "A lesson from a file" });
  const link = ({ page, title }) => make("a", "mx-menu-row", { href: address(page), target: "_blank", textContent: title });
  const first = ({ page }) => /^lessons|story$/.test(page);
  const rows = state.lessons.map(({ title, line }, i) => {
    const made = row(`${i} ${title}`, line, () => send("lesson", i));
    made.lastChild.remove(); // the line is its tip
    made.prepend(make("i", "mx-lesson-picture", { style: `--column:${i % 5};--row:${Math.floor(i / 5)}` }));
    return made;
  });
  const lessons = menu("mx-lessons", "Lessons", "Lessons and further pages", [
    make("div", "mx-lesson-top", {}, make("div", "mx-menu-head", { textContent: "Begin with lesson 0; each takes five to ten minutes" }),
      ...state.pages.filter(first).map(link)),
    make("div", "mx-lesson-cards", {}, ...rows),
    make("div", "mx-menu-pair", {}, make("div", "", {},
      make("div", "mx-menu-head", { textContent: "Your own" }),
      row("Open a lesson…", "From a file", () => file.click()),
      row("Record a lesson", "Moments of this page, with words, a question and a goal", () => send("record")),
    ), make("div", "", {},
      make("div", "mx-menu-head", { textContent: "Other pages" }),
      ...state.pages.filter((one) => !first(one)).map(link), file,
    )),
  ], opened);
  // Which are done, the browser keeps: a tick before the name.
  const done = () => attempt(() => JSON.parse(localStorage.getItem("mx-lessons") || "[]"), []);
  const tick = (...more) => {
    const every = [...new Set([...done(), ...more])];
    if (more.length) attempt(() => localStorage.setItem("mx-lessons", JSON.stringify(every))); // else ticks of this page alone
    for (const k of every) if (rows[k]) put(rows[k].lastChild, "textContent", `✓ ${k} ${state.lessons[k].title}`);
  };
  tick();
  const close = listen(document, "mx-lesson-done", (e) => tick(e.detail)), closed = lessons.close;
  lessons.close = () => { close(); closed(); };
  return lessons;
};

const build = (el, send, onClose, onMessage) => {
  const tabs = tabsOf(send), look = themeOf(el);
  const right = make("div", "mx-head-right");
  el.append(brandOf(), tabs.list, right);
  onClose(look.close);
  onMessage(({ kind }, [sheet] = []) => {
    if (kind === "pictures") el.style.setProperty("--mx-lesson-sheet", `url(${URL.createObjectURL(new Blob([sheet], { type: "image/webp" }))})`);
  });
  let built = false;
  const menus = (state) => {
    built = true;
    const example = ({ name, sentence, fails, points }) => make("button", "mx-menu-row", { type: "button", on: { click: () => { examples.set(false); send("example", name); } } },
      make("i", "mx-dots", { innerHTML: dotsOf(points) }), make("span", "", {}, name, make("small", "", { textContent: fails ? `✗ Fails. ${sentence}` : sentence })));
    const groups = state.examples.map(({ group, rows }) => make("div", "mx-menu-group", {}, make("div", "mx-menu-head", { textContent: group }), ...rows.map(example)));
    const examples = menu("mx-examples", "Examples", "Ready runs: points, network and attack",
      [make("div", "mx-examples-groups", {}, ...groups), make("p", "mx-examples-foot", { textContent: EXAMPLES })]);
    const lessons = lessonsOf(state, send);
    const share = makeButton("mx-ghost", "Share", "A link, the code, files, and a game of two", () => send("share"));
    const again = () => { help.set(false); window.mxOpening.again(); };
    const replay = makeButton("mx-menu-row", "Play the opening again", undefined, again, { hidden: !window.mxOpening });
    const help = menu("mx-help", "?", "Help: what this page is, and its keys", [make("div", "mx-help-text"), replay]);
    help.button.setAttribute("aria-label", "Help");
    right.append(examples.root, lessons.root, share, presentOf("mx-ghost", false), look.button, help.root);
    for (const one of [examples, lessons, help]) onClose(one.close);
    return help.box.firstChild;
  };
  let text = null;
  return (state) => {
    if (!state.stages) return;
    tabs.update(state.stages, state.now);
    if (!built) text = menus(state);
    const rows = [state.about, ...state.keys.map(([k, words]) => `<kbd>${k}</kbd> ${words}`)];
    put(text, "innerHTML", rows.map((row) => `<p>${row}</p>`).join(""));
  };
};
