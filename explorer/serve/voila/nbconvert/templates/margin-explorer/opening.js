// Plays the opening while the kernel starts, in the look of the page, by the player of all recordings
// (page/recording/player.js stands before this script). The live page takes over when it has drawn a
// frame and the recording has ended, or at once after a click.
const PACE = 0.75; // of the recorded rate: a caption of a dozen words stands for three seconds and more
const SHIELD_MS = 700; // arbitrary: a hand that is on its way has come
const playOpening = (root, address) => {
  const find = (name) => root.querySelector(name);
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const lesson = new URLSearchParams(location.search).has("lesson"); // it begins without the recording
  let recording = null, ended = lesson, live = false, gone = false, wish = "";
  const listeners = [];
  const write = (name, text) => {
    const e = find(name);
    if (e.textContent !== text) e.textContent = text;
  };
  const told = (picture, i) => {
    write(".mx-opening-title", picture.title);
    write(".mx-opening-words", picture.words);
    find(".mx-opening-now").className = `mx-opening-now ${picture.scene === "end" ? picture.tone : ""}`;
    const stage = picture.scene === "end" ? "attack" : picture.scene;
    for (const tab of root.querySelectorAll("[data-scene]")) tab.classList.toggle("now", tab.dataset.scene === stage);
    const acts = [...root.querySelectorAll(".mx-opening-acts li")], at = acts.findIndex((act) => act.dataset.scene === stage);
    acts.forEach((act, k) => act.classList.toggle("past", k < at || picture.scene === "end"));
    find(".mx-opening-bar").style.width = `${(100 * (i + 1)) / recording.frames.length}%`;
  };
  const open = () => makePlayer(find(".mx-opening-plane"), told, () => end());
  let player = open();
  const leave = () => {
    if (gone || !live || !ended) return;
    gone = true;
    performance.mark("mx-live");
    player.close();
    if (wish !== "own") shield();
    root.remove();
    if (!listeners.length) document.dispatchEvent(new CustomEvent("mx-replayed", { detail: wish }));
    for (const call of listeners.splice(0)) call(wish);
  };
  // Who reached for a button of the opening as it ended meant none of the page's that now stands there.
  const shield = () => {
    const spots = [...root.querySelectorAll("button")].map((b) => b.getBoundingClientRect());
    const swallow = (e) => { // a click there of a hand, not of keys
      const there = spots.some((r) => e.clientX >= r.left && e.clientX <= r.right && e.clientY >= r.top && e.clientY <= r.bottom);
      if (gone && e.detail && there) { e.stopPropagation(); e.preventDefault(); }
    };
    document.addEventListener("click", swallow, true);
    setTimeout(() => document.removeEventListener("click", swallow, true), SHIELD_MS);
  };
  const end = () => {
    player.pause();
    if (recording && !["own", "link"].includes(wish)) player.show(recording.frames.length - 1);
    ended = true;
    leave();
  };
  const own = () => {
    wish = "own";
    ended = true;
    player.clear();
    write(".mx-opening-title", "");
    write(".mx-opening-words", "");
    leave();
  };
  const tabs = [...root.querySelectorAll(".mx-tab")];
  const press = (target) => {
    if (target.closest(".mx-opening-own")) return void own();
    const at = tabs.indexOf(target.closest(".mx-tab"));
    if (at >= 0) wish = `tab${at}`;
    end();
    if (at >= 0) tabs.forEach((tab, i) => tab.classList.toggle("now", i === at)); // where the page will be
  };
  root.addEventListener("click", (e) => press(e.target));
  document.addEventListener("keydown", (e) => { if (e.key === "Escape" && !gone) end(); });
  document.addEventListener("mx-drawn", (e) => { if (e.target.closest(".mx-plane")) { live = true; leave(); } });
  // The page behind asks what became of the opening, and gets "own" for a plane of one's own, and
  // "tab3" for the stage of that number.
  // It can be played again over the page, which stays as it is.
  const fit = () => { // as large as the page that comes
    const zoom = growth(innerWidth, innerHeight);
    root.style.setProperty("--mx-zoom", zoom);
    root.style.setProperty("--mx-height", `${innerHeight / zoom}px`);
  };
  listen(window, "resize", fit);
  fit();
  const again = () => {
    if (!gone) return;
    gone = ended = false;
    wish = "";
    find("[role=status]").hidden = true; // the kernel has long been there
    document.body.append(root);
    player = open();
    if (recording) play(recording); else begin();
  };
  window.mxOpening = { again, ended: new Promise((done) => listeners.push(done)) };

  const play = (loaded) => {
    recording = loaded;
    player.load({ ...loaded, speed: PACE });
    if (ended) return void (wish || end());
    if (calm) return void end();
    player.play();
  };
  // Without the recording the page comes all the same.
  const begin = () => fetch(address).then((response) => { if (!response.ok) throw new Error(response.status); return unzipped(response.body); })
    .then((bytes) => play(framesOf(bytes)))
    .catch((error) => { console.warn("The opening cannot be played:", error); end(); });
  // With a link in the address there is something else to see.
  if (/^#mx[a-z]?\d/.test(location.hash)) {
    wish = "link";
    ended = true;
    write(".mx-opening-title", "Opening a link");
    write(".mx-opening-words", "Its points are drawn, trained and attacked anew in a moment.");
    return;
  }
  begin();
  if (root.early) press(root.early); // a hand that was there before this script
};

{
  const root = document.getElementById("opening");
  root.dataset.theme = document.documentElement.dataset.theme = theme();
  playOpening(root, root.dataset.recording);
}
