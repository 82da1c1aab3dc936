// Plays the opening while the kernel starts, in the look of the page and by the code that draws its
// plane: `paintPlane` stands before this script. The live page takes over when it has drawn a frame
// and the recording has ended, or at once after a click.

// The recording: gzip of a line of JSON, then the numbers; see scripts/opening.py. An array holds
// until it is given again or dropped.
const unzipped = async (response) =>
  new Uint8Array(await new Response(response.body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
const framesOf = (bytes) => {
  const end = bytes.indexOf(10), head = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
  let at = end + 1;
  const held = {};
  const frames = head.frames.map(({ arrays, drop, values, ...words }) => {
    for (const [name, kind, shape] of arrays) {
      const size = shape.reduce((a, b) => a * b, 1), width = kind === "h" ? 2 : 1;
      const part = bytes.slice(at, at + size * width);
      at += size * width;
      const data = kind === "h" ? Float32Array.from(new Int16Array(part.buffer), (v) => v / head.unit) : part;
      held[name] = { data, shape };
    }
    for (const name of drop) delete held[name];
    return { ...words, frame: { ...values, ...held } };
  });
  return { rate: head.rate, frames };
};

const playOpening = (root, address) => {
  const find = (name) => root.querySelector(name);
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const lesson = new URLSearchParams(location.search).has("lesson"); // it begins without the recording
  let now = null, rate = 1, frames = [], ended = lesson, live = false, gone = false, wish = "";
  const listeners = [];
  let memory = {}, view = null;
  const open = () => { view = surface(find(".mx-opening-plane"), (context, size, paints) => {
    if (!now) return;
    paintPlane(context, now.frame, size, paints);
    if (!performance.getEntriesByName("mx-first-picture").length) performance.mark("mx-first-picture");
  }); };
  open();
  const write = (name, text) => {
    const e = find(name);
    if (e.textContent !== text) e.textContent = text;
  };
  const show = (i) => {
    const picture = frames[i];
    now = { ...picture, frame: remember(memory, picture.frame) };
    write(".mx-opening-title", picture.title);
    write(".mx-opening-words", picture.words);
    write(".mx-opening-step", picture.step);
    find(".mx-opening-now").className = `mx-opening-now ${picture.scene === "end" ? picture.tone : ""}`;
    const stage = picture.scene === "end" ? "attack" : picture.scene;
    for (const tab of root.querySelectorAll("[data-scene]")) tab.classList.toggle("now", tab.dataset.scene === stage);
    find(".mx-opening-bar").style.width = `${(100 * (i + 1)) / frames.length}%`;
    view.redraw();
  };
  const leave = () => {
    if (gone || !live || !ended) return;
    gone = true;
    performance.mark("mx-live");
    view.close();
    root.remove();
    if (!listeners.length) document.dispatchEvent(new CustomEvent("mx-replayed", { detail: wish }));
    for (const call of listeners.splice(0)) call(wish);
  };
  const end = () => {
    if (frames.length && !wish) show(frames.length - 1);
    ended = true;
    leave();
  };
  const own = () => {
    wish = "own";
    ended = true;
    if (now) now = { frame: { view: now.frame.view } };
    write(".mx-opening-title", "");
    write(".mx-opening-words", "");
    write(".mx-opening-step", "");
    view.redraw();
    leave();
  };
  root.addEventListener("click", (e) => (e.target.closest(".mx-opening-own") ? own() : end()));
  document.addEventListener("keydown", (e) => { if (e.key === "Escape" && !gone) end(); });
  document.addEventListener("mx-drawn", (e) => { if (e.target.closest(".mx-plane")) { live = true; leave(); } });
  // The page behind asks what became of the opening, and gets "own" for a plane of one's own.
  // It can be played again over the page, which stays as it is.
  const again = () => {
    if (!gone) return;
    gone = ended = false;
    [wish, memory, now] = ["", {}, null];
    find("[role=status]").hidden = true; // the kernel has long been there
    document.body.append(root);
    open();
    if (frames.length) play({ rate, frames }); else begin();
  };
  window.mxOpening = { again, ended: new Promise((done) => listeners.push(done)) };

  const play = (recording) => {
    ({ rate, frames } = recording);
    if (ended) return void (wish || end());
    if (calm) return void end();
    let first = 0;
    const tick = (time) => {
      if (ended) return;
      first = first || time;
      const i = Math.floor(((time - first) / 1000) * rate);
      if (i >= frames.length) return void end();
      show(i);
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  };
  // Without the recording the page comes all the same.
  const begin = () => fetch(address).then((response) => { if (!response.ok) throw new Error(response.status); return unzipped(response); })
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
};

{
  const root = document.getElementById("opening");
  root.dataset.theme = document.documentElement.dataset.theme = theme();
  playOpening(root, root.dataset.recording);
}
