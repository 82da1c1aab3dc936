// Two players: one hides points in weights, the other guesses them.
const build = (el, send) => {
  const head = make("div", "mx-chart-title", { textContent: "Two players" });
  const words = make("p", "mx-note", { role: "status" });
  const challenge = copyLine("Challenge to give away", "Copy challenge", "The weights alone, with a commitment to the points");
  challenge.root.append(makeButton("mx-flat", "Save as file", undefined, () => send("save_challenge")));
  const reveal = copyLine("Reveal to keep until the guess", "Copy reveal", "Give it away when you have their guess: points and salt of the commitment");
  const theirs = pasteLine("Paste their guess", "Score it", (text) => send("theirs", text));
  const guess = copyLine("Your guess, to send", "Copy guess", "The other player scores it, and reveals the points");
  const truth = pasteLine("Paste the reveal", "Reveal", (text) => send("reveal", text));
  const button = (label, kind, tip, className = "mx-flat") => makeButton(className, label, tip, () => send(kind));
  const hide = button("Hide these points", "hide", "Make a challenge of the present network");
  const computer = button("Against the computer", "computer", "It hides points; you attack its weights");
  const openFile = textFile("Open a challenge", ".txt,.mxc", (text) => send("take", text));
  const handIn = button("Hand in my guess", "hand_in", "The claims of the attack on screen, or the drawn points: it cannot be changed afterwards", "mx-action");
  const leave = button("End the game", "end", "The page stays as it is");
  const score = make("div", "mx-score");
  // In a class: the score goes to the teacher's board when the student says so, under any name.
  const name = make("input", "mx-line", { type: "text", maxLength: 20, placeholder: "A name of your choice", "aria-label": "Your name on the board", autocomplete: "off", spellcheck: false });
  const told = make("small", "", { role: "status" });
  const putUp = makeButton("mx-flat", "Put it on the board", "Your teacher's page then shows this name and your best score", undefined, { type: "submit" });
  const board = make("form", "mx-share-row", { on: { submit: (e) => {
    e.preventDefault();
    const chosen = name.value.replace(/\s+/g, " ").trim();
    if (!chosen) return name.focus();
    told.textContent = window.mxBoard(signed, chosen) ? `Your best score is on the board, as ${chosen}.` : "The server does not answer. Try again.";
  } } }, name, putUp, told);
  let signed = null;
  const first = make("div", "mx-share-row", {}, head, hide, computer, openFile);
  const last = make("div", "mx-share-row", {}, handIn, leave);
  el.append(first, words, challenge.root, reveal.root, theirs.root, guess.root, truth.root, score, board, last);
  const seen = (e, on) => put(e, "hidden", !on);
  return (state) => {
    if (!state.part) return;
    const part = state.part;
    const on = part !== "none"; // a game that is on stands on top
    if (on && !el.classList.contains("on")) el.closest(".mx-drawer")?.scrollTo(0, 0);
    el.classList.toggle("on", on);
    put(head, "title", state.words);
    put(words, "textContent", on ? state.words : "");
    seen(words, on);
    put(computer, "disabled", state.busy);
    const parts = [[first, "none"], [challenge.root, "hider"], [reveal.root, "hider"], [theirs.root, "hider"], [handIn, "guesser"], [guess.root, "waiting"], [truth.root, "waiting"]];
    for (const [e, of] of parts) seen(e, part === of);
    seen(last, on);
    challenge.set(state.challenge && state.as_link ? addressOf(state.challenge) : state.challenge);
    reveal.set(state.reveal);
    guess.set(state.guess);
    score.replaceChildren(...(state.scores || []).map(([who, points, how]) => make("div", "mx-score-row", {},
      make("b", "", { textContent: points }), make("span", "", { textContent: who }), make("small", "", { textContent: how }))));
    seen(score, Boolean(state.scores?.length));
    if (state.signed?.score !== signed?.score) told.textContent = "";
    signed = state.signed;
    seen(board, Boolean(signed && window.mxBoard));
  };
};
