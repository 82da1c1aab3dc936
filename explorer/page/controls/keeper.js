// Nothing is lost: the browser keeps the newest state of the page and offers it again, and asks the
// kernel whether it answers. What is kept stays in this browser: the server gets none of it before
// somebody presses "Take up".
// The kernel is asked so long after it was heard last; so long it may be silent; and so long each answer may take.
const TICK_MS = 500, BEAT_MS = 2000, SILENT_MS = 5000, ANSWER_MS = 2500;
const OWNER_MS = 400; // arbitrary: in which a tab that writes on a row says so
const RESTS_MS = 600000; // of a page that nobody touches and that draws nothing; it then asks no more; arbitrary

// --- the bar: one sentence and its buttons, above the side: it covers nothing ----------------------------------------
const makeBar = () => {
  const words = make("span", "", { role: "status" }), row = make("div", "mx-kept-row");
  const root = make("div", "mx-kept", { hidden: true }, words, row);
  let said = "";
  const show = (what) => { // {kind, words, buttons: [[label, call]]} or null
    const key = what ? what.kind + what.words : "";
    if (key === said) return;
    said = key;
    root.hidden = !what;
    root.dataset.kind = what?.kind || "";
    words.textContent = what?.words || "";
    row.replaceChildren(...(what?.buttons || []).map(([textContent, click]) => makeButton("mx-flat mx-slim", textContent, undefined, click)));
  };
  return { root, show };
};

// A server behind a hub answers those alone who show that they can read its cookie.
const passed = () => {
  const [, token] = /(?:^|; )_xsrf=([^;]*)/.exec(document.cookie) || [];
  return token ? { "X-XSRFToken": decodeURIComponent(token) } : {};
};

function render({ model, el }) {
  el.style.display = "none";
  const page = lab() ? "lab" : location.pathname, bar = makeBar();
  let app = null, row = model.get("keeps") ? offered(page) : null, key = newKey();
  if (new URLSearchParams(location.search).has("lesson")) row = null; // who comes for a lesson is offered nothing else
  // Who follows a link wants what it holds: only what was drawn since in this very tab is offered then.
  if (row && /^#mx[a-z]?\d/.test(location.hash) && row.key !== attempt(() => sessionStorage.getItem(MINE), null)) row = null;
  let latest = null, stored = true, saved = "", shut = false, touched = false, active = performance.now();
  let state = "here"; // the kernel: "here", "busy", "away" (no way to the server), "gone"
  const reload = [model.get("says")["reload now"], () => { saved = latest?.text; location.reload(); }];

  const text = (name, about) => model.get("says")[name].replace("{time}", about ? clock(about.time) : "").replace("{words}", about?.words || "");
  // A duplicated tab has the session storage of the first: a row is written on by one alone.
  const tabs = attempt(() => new BroadcastChannel(MINE), null);
  const answer = ({ data }) => { if (latest && data.asks === key) tabs.postMessage({ has: key }); };
  const isFree = (asked) => new Promise((done) => {
    if (!tabs) { done(false); return; }
    const told = ({ data }) => { if (data.has === asked) end(false); };
    const end = (free) => { tabs.removeEventListener("message", told); done(free); };
    tabs.addEventListener("message", told);
    tabs.postMessage({ asks: asked });
    setTimeout(end, OWNER_MS, true);
  });
  const close = () => { const closed = row; row = null; say(); return closed; };
  const startNew = () => { // all stay among the rows, but none is offered again
    close();
    attempt(() => sessionStorage.setItem(MINE, key)); // a reload that comes before the rows are asked
    for (const { key: old, ...left } of rows().filter((other) => other.page === page && !other.left && other.key !== key)) {
      isFree(old).then((free) => { if (free) attempt(() => localStorage.setItem(old, JSON.stringify({ ...left, left: true }))); });
    }
  };
  const say = () => {
    const last = latest || row, held = last ? [[text("download"), () => { saved = last.text; download(last); }]] : [];
    const kept = !last ? "" : ` ${text(stored ? "kept" : "not kept", last)}`, again = text(lab() ? "run again" : "reload");
    if (state === "gone") bar.show({ kind: state, words: `${text("gone")}${kept} ${again}`, buttons: [...held, reload] });
    else if (state === "away") bar.show({ kind: state, words: `${text("away")}${kept}`, buttons: [...held, reload] });
    else if (state === "busy") bar.show({ kind: state, words: text("busy"), buttons: [] });
    else if (row) bar.show({ kind: "offer", words: text("offer", row), buttons: [[text("take up"), takeUp], [text("new"), startNew]] });
    else if (!stored && !shut) bar.show({ kind: "full", words: text("full"), buttons: [...held, [text("close"), () => { shut = true; say(); }]] });
    else bar.show(null);
  };
  const takeUp = async () => {
    // A row of this tab alone is written on; that of another tab, which may be open, is left as it is.
    const taken = close(), mine = taken.key === attempt(() => sessionStorage.getItem(MINE), null);
    if (mine && await isFree(taken.key)) key = taken.key;
    touched = true;
    send({ kind: "take up", text: taken.text, lesson: taken.lesson });
  };
  const keep = () => {
    const { text, words, whole, anew, own, lesson } = model.get("kept");
    if (text === undefined || (text === latest?.text && lesson === latest.lesson)) return;
    if (anew) key = newKey();
    latest = { time: Date.now(), page, words, text, own, lesson };
    stored = Boolean(text) && store(key, latest);
    latest.whole = whole;
    say();
  };
  // Asked by the browser in words of its own, before work is left that is not kept.
  const leave = (e) => { if (latest && latest.text !== saved && !(stored && latest.whole)) { e.preventDefault(); e.returnValue = ""; } };

  // --- the watch --------------------------------------------------------------------------------
  const kernel = model.widget_manager?.kernel;
  const address = kernel && `${base}api/kernels/${kernel.id}`;
  let asked = 0, heard = performance.now(), looked = 0;
  const turn = (to) => { if (state !== "gone" && state !== to) { state = to; say(); } };
  const hear = () => { asked = 0; heard = performance.now(); turn("here"); };
  const send = (content) => attempt(() => { model.send(content); return true; }, false); // not to a dead kernel
  const ask = (now) => { asked = asked || now; send({ kind: "beat" }); };
  // Who is silent: the server, a kernel that computes, or one that does not know this page any more.
  const look = async () => {
    let status = 200;
    if (address) status = await fetch(address, { headers: passed(), cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS) }).then((answer) => answer.status, () => 0);
    if (!asked) return;
    if (status === 404) return void turn("gone");
    if (status === 0 || status >= 500 || (kernel && kernel.connectionStatus !== "connected")) return void turn("away");
    turn("busy");
    const comms = await kernel?.requestCommInfo?.({ target_name: "jupyter.widget" });
    if (asked && comms?.content?.status === "ok" && !(model.get("comm_name") in comms.content.comms)) turn("gone");
  };
  const tick = () => {
    const now = performance.now();
    if (state === "gone") return;
    if (kernel?.status === "dead") { turn("gone"); return; }
    if (!asked) {
      if (!document.hidden && now - heard > BEAT_MS && now - active < RESTS_MS) ask(now);
      return;
    }
    if (now - heard < SILENT_MS || now - asked < ANSWER_MS || now - looked < SILENT_MS) return;
    if (kernel?.connectionStatus === "connected" || !kernel) ask(now); // a question may be lost on its way
    looked = now;
    look().catch(() => { /* asked again at the next turn */ });
  };
  const act = (e) => {
    active = performance.now();
    if (touched || !app?.contains(e.target) || bar.root.contains(e.target)) return;
    touched = true;
    send({ kind: "begin" });
  };
  const drawn = () => { active = performance.now(); };
  const message = (content) => { if (content.kind === "beat") hear(); };
  // Frames that were on their way when the line broke are lost: the views ask for them again.
  const connection = (_, status) => { if (status === "connected") document.dispatchEvent(new Event("mx-again")); };

  const ends = [
    listen(document, "pointerdown", act, true), listen(document, "keydown", act, true), listen(document, "mx-drawn", drawn),
    listen(window, "beforeunload", leave), heed(model, "msg:custom", message), heed(model, "change:kept", keep),
  ];
  tabs?.addEventListener("message", answer);
  kernel?.connectionStatusChanged?.connect?.(connection);
  const timer = setInterval(tick, TICK_MS);
  window.mxWatched = true; // the page around need not watch any more
  let placing = 0;
  const place = () => {
    app = el.closest(".mx-app");
    if (!app) { placing = setTimeout(place, 200); return; }
    const side = app.querySelector(".mx-side");
    if (side) side.before(bar.root); else app.append(bar.root);
    if (row) document.getElementById("opening")?.click(); // who comes back has seen it
    say();
  };
  place();
  return () => {
    ends.forEach((end) => end());
    kernel?.connectionStatusChanged?.disconnect?.(connection);
    clearInterval(timer); clearTimeout(placing);
    tabs?.close();
    bar.root.remove();
  };
}
export default { render };
