// The hall attacks: a button in the drawer, and the round over the whole page, for the projector.
// Put a sentence with a command: no argument of it breaks at the end of a line.
const putCommand = (e, text) => {
  if (e.textContent === text) return;
  const parts = text.split(/(margin-explorer \w+|--[\w-]+ [\w.]*\w)/);
  e.replaceChildren(...parts.map((part, i) => (i % 2 ? make("span", "mx-together", { textContent: part }) : part)));
};
// Put a large word flush with its column: the first letter has air on its left.
const putFlush = (e, text) => {
  if (e.textContent === text) return;
  put(e, "textContent", text);
  const pen = document.createElement("canvas").getContext("2d"), { fontWeight, fontFamily } = getComputedStyle(e);
  pen.font = `${fontWeight} 100px ${fontFamily}`;
  e.style.marginLeft = `${pen.measureText(text.slice(0, 1)).actualBoundingBoxLeft / 100}em`;
};
// What will happen, before the first phone comes: the marks of each act on a plane, and its words.
const ACTS = [
  ["+", "You tap on phones where you believe the points are"], ["● ▲", "The machine claims points"],
  ["▢", "A proof: places that must hold a point"], ["○ △", "The points are revealed"], ["", "Who met more: the hall, the machine, or chance?"],
];
const drawActs = () => make("ol", "mx-hall-acts", { hidden: true }, ...ACTS.map(([marks, says]) => make("li", "", {},
  marks ? make("div", "", {}, ...marked(marks)) : make("div", "bars", {}, ...["good", "ink", "ink3"].map((ink, k) => make("span", "", { style: `background:var(--mx-${ink});width:${85 - 25 * k}%` }))),
  make("span", "", { textContent: says }))));
const build = (el, send, onClose) => {
  const words = make("p", "mx-note", { role: "status" });
  const choice = (label) => make("select", "mx-select", { "aria-label": label });
  const which = choice("Which network the hall attacks"), other = choice("Which network comes next");
  const begin = makeButton("mx-flat", "Let the hall attack", "A code for phones; nobody sees the points", () => send("begin", which.value));
  const reopen = makeButton("mx-flat", "Back to the round", undefined, () => dialog.showModal());
  const warned = make("p", "mx-note bad", { hidden: true });
  el.append(make("div", "mx-share-row", {}, begin, which, reopen), words);

  const plane = make("canvas", "mx-hall-plane", { role: "img", "aria-label": "The plane with all taps" });
  const needles = make("canvas", "mx-hall-needles", { role: "img", "aria-label": "The weights, a needle for each neuron" });
  const network = make("p", "mx-hall-said", {}), title = make("h2", "", {}), where = make("p", "mx-hall-address", {}), code = make("p", "mx-hall-code", {});
  const qr = make("canvas", "mx-hall-qr", { role: "img", "aria-label": "QR code of the address", hidden: true });
  const count = make("p", "mx-hall-count", { role: "status" }), table = make("table", "mx-hall-score", {});
  const said = make("p", "mx-hall-said", { role: "status" });
  const scope = make("p", "", {}), scoped = make("details", "mx-hall-seal", {}, make("summary", "", { textContent: "Of which sets?" }), scope), legend = make("p", "mx-hall-key", { "aria-label": "What the marks mean" });
  const asked = make("div", "mx-hall-asked", { hidden: true }), best = make("ol", "mx-hall-best", {});
  const board = make("div", "mx-hall-board", {}, make("p", "mx-hall-said", { textContent: "Best phones" }), best), scores = make("div", "mx-hall-scores", { hidden: true }, table, board);
  const fit = make("p", "", {}), sealed = make("summary", "", {}), seal = make("details", "mx-hall-seal", {}, sealed, fit), busy = make("small", "mx-hall-busy", { role: "status" });
  const next = makeButton("mx-action", "", undefined, () => step());
  const skip = makeButton("mx-flat", "Reveal now", "Without the proof", () => send("truth", taps()));
  const again = makeButton("mx-action", "Next round", "Phones go on with it by themselves", () => send("begin", other.value));
  const leave = makeButton("mx-flat mx-hall-leave", "", "Phones are told that it is over", () => { tell({ end: true }); dialog.close(); send("end"); });
  const open = makeButton("mx-action", "Let phones on this Wi-Fi join", "They reach their own page alone, until the server ends", () => tell({ open: true }));
  const acts = drawActs();
  const hide = makeButton("mx-flat", "Hide the taps", "Until they are closed", () => { hide.setAttribute("aria-pressed", String(hide.getAttribute("aria-pressed") !== "true")); redraw(); }, { "aria-pressed": "false" });
  const scan = make("div", "mx-hall-scan", {}, make("div", "", {}, qr), make("div", "", {}, code, count, legend));
  const join = make("div", "mx-hall-join", {}, open, acts, where, scan);
  const dialog = make("dialog", "mx-hall-screen", { "aria-label": "The hall attacks" },
    make("div", "mx-hall-left", {}, plane, make("div", "mx-hall-said", { textContent: "The network's weights: all that the machine sees" }), needles),
    make("div", "mx-hall-right", {}, network, title, said, join, warned, scoped, scores, asked, seal, busy,
      make("div", "mx-hall-steps", {}, next, skip, hide, other, again, leave))); // what ends it or goes on to another is never under the hand that reveals
  el.append(dialog);

  let now = {}, phones = {}, told = {}, socket = null, cloud = [], moving = 0, shown = "", seen = "";
  const stage = () => (!now.round ? "" : now.round.truth ? "truth" : now.round.places ? "places" : now.round.claims ? "claims" : "taps");
  const taps = () => Object.fromEntries(Object.entries(phones).map(([number, [own]]) => [number, own]));
  const step = () => ({ taps: () => send("claims", taps()), claims: () => send("places"), places: () => send("truth", taps()) })[stage()]?.();
  const tell = (what) => { if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(what)); };

  // Taps fall for a moment, then the picture stands still.
  const paint = () => {
    moving = 0;
    if (!now.round || !dialog.open) return;
    const at = performance.now(), aged = cloud.map(([x, y, born]) => [x, y, (at - born) / 1000]);
    const shut = stage() === "taps" && hide.getAttribute("aria-pressed") === "true";
    paintHall(plane, now.round, { cloud: shut ? [] : aged });
    if (aged.some(([, , age]) => age < 0.7)) redraw();
  };
  const redraw = () => { if (!moving) moving = requestAnimationFrame(paint); };
  const heard = ({ code: letters, address: place, can_open: canOpen, qr: rows, count: total, phones: changed }) => {
    if (letters) {
      forget();
      told = { letters, place, canOpen, rows };
      dialog.dataset.code = letters;
    }
    for (const [number, row] of Object.entries(changed || {})) {
      const before = new Map(cloud.filter(([, , , of]) => of === number).map(([x, y, born]) => [`${x} ${y}`, born]));
      cloud = cloud.filter(([, , , of]) => of !== number).concat(row[0].map(([x, y]) => [x, y, before.get(`${x} ${y}`) ?? performance.now(), number]));
      phones[number] = row;
    }
    if (changed) told.total = total;
    writeAll();
    redraw();
  };
  const forget = () => { phones = {}; cloud = []; told = {}; };
  const configuration = () => JSON.parse(document.getElementById("jupyter-config-data").textContent);
  const pageOf = (name) => new URL(`${configuration().baseUrl}${name}`, location.href);
  const connect = () => {
    const address = pageOf("hall/projector");
    address.searchParams.set("kernel", configuration().kernelId);
    address.searchParams.set("origin", location.origin);
    address.protocol = address.protocol.replace("http", "ws");
    socket = new WebSocket(address);
    socket.onopen = () => tell({ round: now.round });
    socket.onmessage = (e) => heard(JSON.parse(e.data));
    socket.onclose = () => { socket = null; if (now.round) setTimeout(() => { if (now.round && !socket && el.isConnected) connect(); }, 1000); };
  };
  const votes = () => {
    const all = Object.values(phones).map(([, guess]) => guess).filter(Boolean), { question, answer, answers } = now.round;
    asked.hidden = !question; // it stands there before the first answer, as on the phones
    const rows = stage() === "taps" || all.length ? Object.entries(answers || {}) : [];
    asked.replaceChildren(make("p", "", { textContent: answer || question || "" }), make("div", "mx-hall-bars", {}, ...rows.map(([key, name]) => {
      const some = all.filter((guess) => guess === key).length;
      return make("div", "", {}, make("span", "", { textContent: key === now.round.right ? `✓ ${name}` : name }), make("span", "", { textContent: some }), make("i", "", {}, make("b", "", { style: `width:${(100 * some) / Math.max(1, all.length)}%` })));
    })));
  };
  const writeAll = () => {
    if (!now.round) return;
    network.replaceChildren(...marked(now.round.network || ""));
    const at = stage(), total = told.total || 0, tapped = Object.values(phones).reduce((sum, [own]) => sum + own.length, 0);
    if (title.textContent !== now.title) title.replaceChildren(...marked(now.title));
    put(said, "textContent", now.said);
    put(said, "hidden", at === "taps" && told.canOpen); // the acts say it
    put(scope, "textContent", now.scope);
    put(scoped, "hidden", !now.scope);
    legend.replaceChildren(...hallKey(now.round, "a tap"));
    put(legend, "hidden", at !== "taps"); // later the marks stand in the rows
    put(where, "textContent", told.letters && !told.canOpen ? (told.place || pageOf("hall").href).replace(/^http:\/\//, "") : "");
    put(open, "hidden", !told.canOpen);
    put(acts, "hidden", !told.canOpen || at !== "taps");
    put(scan, "hidden", told.canOpen);
    putCommand(warned, now.no_phones);
    put(warned, "hidden", !told.letters || Boolean(told.place) || told.canOpen || total > 0 || at !== "taps");
    join.classList.toggle("small", at !== "taps"); // who comes late is in for the next round
    put(join, "hidden", at === "truth");
    putFlush(code, told.letters || "");
    put(count, "textContent", `${total} ${total === 1 ? "phone" : "phones"}, ${tapped} ${tapped === 1 ? "tap" : "taps"}`);
    put(count, "hidden", at !== "taps");
    put(sealed, "textContent", at === "truth" ? "Check the seal" : "The seal");
    put(fit, "textContent", `${now.sealed} SHA-256: ${now.round.seal}`);
    dialog.dataset.stage = at;
    const label = { taps: "The machine's claims", claims: "Where a point must be", places: "Reveal the points" }[at];
    put(next, "textContent", label || "");
    put(next, "hidden", !label);
    next.className = at === "taps" && told.canOpen ? "mx-flat" : "mx-action"; // phones come first
    put(next, "disabled", (at === "taps" && !now.ready.claims) || (at === "claims" && !now.ready.places));
    put(skip, "hidden", at !== "claims");
    put(hide, "hidden", at !== "taps");
    put(leave, "textContent", at === "truth" ? "Close" : "End the round");
    for (const one of [again, other]) put(one, "hidden", at !== "truth");
    put(again, "disabled", now.waits);
    put(busy, "textContent", now.waits || (at === "taps" && !now.ready.claims) || (at === "claims" && !now.ready.places) || (at === "truth" && now.round.question && !now.round.answer) ? now.busy : "");
    votes();
    scores.hidden = at === "taps";
    if (at !== "taps") score();
    qr.hidden = !told.rows?.length || at !== "taps";
    if (!qr.hidden) drawCode(told.rows);
  };
  const offer = (select, sets) => {
    const key = JSON.stringify(sets);
    if (select.dataset.sets === key) return; // an open menu stays as it is
    select.dataset.sets = key;
    select.replaceChildren(...sets.map(([value, textContent]) => make("option", "", { value, textContent })));
  };
  const score = () => {
    const cell = (tag, text) => { const [large, small] = text.split("|"); return make(tag, "", {}, ...marked(large), make("small", "", { textContent: small || "" })); };
    table.replaceChildren(...now.rows.map(([who, of, width]) => {
      const value = cell("td", of);
      value.lastChild.before(make("i", "", {}, make("b", "", { style: `width:${width}` })));
      return make("tr", "", {}, cell("th", who), value);
    }));
    const order = Object.entries(now.round.scores || {}).filter(([number, [near]]) => near && phones[number]).sort(([a, [one]], [b, [other]]) => other - one || a - b).slice(0, 3);
    best.replaceChildren(...order.map(([number, [near, n]]) => make("li", "", {}, make("span", "", { textContent: phones[number][2] || `Phone ${number}` }), make("b", "", { textContent: `: ${near} of ${n}` }))));
    board.hidden = !order.length;
  };
  const drawCode = (rows) => {
    const s = rows.length + 4; // two modules of quiet on each side, and the card around
    Object.assign(qr, { width: s, height: s });
    const context = qr.getContext("2d");
    context.fillStyle = "#ffffff";
    context.fillRect(0, 0, s, s);
    context.fillStyle = "#000000";
    rows.forEach((row, i) => [...row].forEach((bit, j) => { if (bit === "1") context.fillRect(j + 2, i + 2, 1, 1); }));
  };
  const repaint = () => { redraw(); if (now.round && dialog.open) paintNeedleRow(needles, now.round); };
  const watch = new ResizeObserver(repaint);
  watch.observe(dialog);
  dialog.addEventListener("keydown", (e) => e.stopPropagation()); // the page's own keys wait
  dialog.addEventListener("cancel", (e) => e.preventDefault()); // what the attack found lies below
  const untheme = listen(systemTheme, "change", repaint);
  onClose(() => { untheme(); watch.disconnect(); now = {}; socket?.close(); });
  return (state) => {
    if (!state.words) return;
    now = state;
    putCommand(words, state.words);
    for (const one of [begin, which]) put(one, "hidden", Boolean(state.round) || !state.served);
    put(begin, "disabled", state.waits);
    put(reopen, "hidden", !state.round);
    offer(which, state.sets);
    offer(other, state.sets.filter(([key]) => key !== "page"));
    if (!state.round) { shown = ""; return; }
    if (!dialog.open && !shown) dialog.showModal();
    const round = JSON.stringify(state.round);
    if (seen !== state.round.seal) [phones, cloud] = [{}, []]; // code and phones stay
    seen = state.round.seal;
    if (round !== shown) {
      shown = round;
      if (socket) tell({ round: state.round }); else connect();
    }
    writeAll();
    paintNeedleRow(needles, state.round);
    redraw();
  };
};
