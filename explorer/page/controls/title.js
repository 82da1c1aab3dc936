// The headline of a screen, one sentence, and the next sensible thing to do.
const build = (el, send, onClose) => {
  const question = make("p", "mx-over"), title = make("h1", "mx-title"), words = make("p", "mx-words");
  const told = make("div", "mx-told", { "aria-live": "polite", tabIndex: -1 }, question, title, words);
  const action = makeButton("mx-action", undefined, "The filled button leads on", () => send("act", action.dataset.key));
  const numbers = make("dl", "mx-numbers-list");
  const fold = menu("mx-numbers", "Numbers", "The numbers behind the headline", [numbers]);
  el.append(told, make("div", "mx-title-row", {}, action, fold.root));
  onClose(fold.close);
  // What is dragged below stays under the pointer, however many lines the words come to meanwhile: a drag ends what is told of a run.
  const hold = (height) => { el.style.height = height; el.style.overflow = height && "hidden"; };
  onClose(listen(document, "pointerdown", (e) => { if (e.target.closest?.(".mx-triangle-view")) hold(getComputedStyle(el).height); }, true));
  for (const end of ["pointerup", "pointercancel"]) onClose(listen(document, end, () => hold(""), true));
  return (state) => {
    put(question, "textContent", state.question || "");
    put(title, "textContent", state.title || "");
    [question.hidden, title.hidden, words.hidden] = [!state.question, !state.title, !state.words]; // a lesson may want silence
    explain(words, state.words || "");
    for (const tone of ["good", "warn", "bad"]) el.classList.toggle(tone, state.tone === tone);
    if (!state.action && document.activeElement === action) told.focus({ preventScroll: true }); // not lost with its button
    action.hidden = !state.action;
    action.dataset.key = state.key || "";
    put(action, "textContent", state.action || "");
    const rows = state.fold || [];
    fold.root.hidden = !rows.length;
    while (numbers.children.length < 2 * rows.length) numbers.append(make("dt", ""), make("dd", ""));
    while (numbers.children.length > 2 * rows.length) numbers.lastChild.remove();
    rows.forEach(([name, value], i) => { explain(numbers.children[2 * i], name); put(numbers.children[2 * i + 1], "textContent", value); });
  };
};
