// A transparent surface over a view: one path for mouse, touch, pen and keyboard. Positions go out
// as shares of the surface (0..1, y upward); the kernel knows the axes. What it does with them
// follows the traits of `PlaneView`. Returns {answer, close}: `answer()` when a frame has come.
const attachPad = (model, el) => {
  const canvas = make("canvas"), hint = make("div", "mx-pad-hint"), said = make("div", "mx-said", { "aria-live": "polite" });
  const surface = make("div", "mx-pad-surface", { tabIndex: 0, role: "application" }, canvas, hint);
  el.append(surface, said);

  let queue = [], gesture = 0, down = false, last = null;
  let echo = [], unanswered = 0, cursor = [0.5, 0.5], keys = false, stop = 0;
  // The first event goes at once. Those that follow go together, as soon as the picture of the last
  // has come: of a slow answer none is behind by more than one. Some events have no picture.
  const NO_PICTURE_MS = 250;
  let sentAt = -1e9, late = null;
  const send = () => { clearTimeout(late); if (queue.length) model.send({ kind: "events", events: queue }); queue = []; sentAt = performance.now(); };
  const push = (event, now) => {
    queue.push({ ...event, gesture });
    const rest = sentAt + NO_PICTURE_MS - performance.now();
    if (now || rest <= 0) send();
    else if (queue.length === 1) late = setTimeout(send, rest);
  };
  const place = (e) => {
    const r = surface.getBoundingClientRect();
    const clamp = (v) => Math.min(1, Math.max(0, v));
    return [clamp((e.clientX - r.left) / r.width), clamp(1 - (e.clientY - r.top) / r.height)];
  };
  const dot = (p) => { if (model.get("echo")) { echo.push(p); unanswered += 1; draw(); } };
  // An empty canvas would be laid over the plane again with every frame: it is there while it shows.
  const draw = () => {
    hint.hidden = model.get("path") && echo.length > 1; // it would cover what is drawn
    canvas.hidden = !echo.length && !keys;
    if (canvas.hidden) return;
    const r = surface.getBoundingClientRect(), k = window.devicePixelRatio || 1;
    canvas.width = Math.max(1, r.width * k); canvas.height = Math.max(1, r.height * k);
    const c = canvas.getContext("2d");
    c.scale(k, k);
    c.fillStyle = model.get("ink");
    if (model.get("path")) {
      c.strokeStyle = colours(el).accent; c.lineWidth = 2.5; c.lineJoin = "round"; c.beginPath();
      for (const [x, y] of echo) c.lineTo(x * r.width, (1 - y) * r.height);
      c.stroke();
    } else for (const [x, y] of echo) { c.beginPath(); c.arc(x * r.width, (1 - y) * r.height, 4, 0, 7); c.fill(); }
    if (!keys) return;
    const x = cursor[0] * r.width, y = (1 - cursor[1]) * r.height;
    for (const [colour, width] of [["#fff", 4], ["#000", 2]]) {
      c.strokeStyle = colour; c.lineWidth = width; c.beginPath();
      c.moveTo(x - 12, y); c.lineTo(x + 12, y); c.moveTo(x, y - 12); c.lineTo(x, y + 12); c.stroke();
    }
  };
  surface.addEventListener("pointerdown", (e) => {
    if (!model.get("active") || e.button !== 0) return;
    e.preventDefault(); surface.focus({ preventScroll: true }); surface.setPointerCapture(e.pointerId);
    keys = false; gesture += 1; down = true; last = place(e);
    dot(last);
    push({ kind: "down", x: last[0], y: last[1], shift: e.shiftKey }, true);
  });
  surface.addEventListener("pointermove", (e) => {
    if (!down) return;
    const p = place(e), r = surface.getBoundingClientRect();
    if (Math.hypot((p[0] - last[0]) * r.width, (p[1] - last[1]) * r.height) < model.get("spacing")) return;
    last = p;
    dot(p);
    push({ kind: "move", x: p[0], y: p[1], shift: e.shiftKey }, false);
  });
  const up = (e) => {
    if (!down) return;
    down = false;
    const p = place(e);
    push({ kind: "up", x: p[0], y: p[1] }, true);
    if (!unanswered && echo.length) { echo = []; draw(); } // no frame follows a letting go
  };
  surface.addEventListener("pointerup", up);
  surface.addEventListener("pointercancel", up);
  // A turn of the wheel is one step, however fine the wheel is.
  let turned = 0;
  surface.addEventListener("wheel", (e) => {
    if (!model.get("active") || !model.get("wheel") || e.ctrlKey) return;
    e.preventDefault();
    turned += Math.max(-100, Math.min(100, e.deltaMode ? 40 * e.deltaY : e.deltaY));
    while (Math.abs(turned) >= 40) {
      push({ kind: turned < 0 ? "larger" : "smaller", x: cursor[0], y: cursor[1] }, false);
      turned -= 40 * Math.sign(turned);
    }
  }, { passive: false });
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  const named = { " ": "act", Enter: "act", Delete: "erase", Backspace: "erase", "1": "positive", "2": "negative", "3": "third", "4": "fourth", p: "place", m: "move-tool", e: "erase-tool", "+": "larger", "=": "larger", "-": "smaller", "−": "smaller" };
  const pathKeys = { Enter: "end", Escape: "cancel" };
  surface.addEventListener("keydown", (e) => {
    if (!model.get("active")) return;
    const chord = e.ctrlKey || e.metaKey, key = e.key.length === 1 ? e.key.toLowerCase() : e.key;
    let kind = (model.get("path") && pathKeys[key]) || named[key];
    if (chord) kind = key === "z" ? (e.shiftKey ? "redo" : "undo") : key === "y" ? "redo" : undefined;
    const stops = model.get("stops");
    if (stops) {
      // Tab goes through the points, and past the last one on to the rest of the page.
      if (key === "Tab") { stop += e.shiftKey ? -1 : 1; kind = stop < 1 || stop > stops ? undefined : e.shiftKey ? "previous" : "next"; }
      else if (moves[key]) kind = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up-key", ArrowDown: "down-key" }[key];
      else if (key === "f") kind = "free";
    } else if (moves[key]) {
      const s = e.shiftKey ? 0.1 : 0.02;
      cursor = cursor.map((v, i) => Math.min(1, Math.max(0, Math.round((v + s * moves[key][i]) * 1000) / 1000)));
      kind = "cursor";
      surface.dispatchEvent(new CustomEvent("mx-cursor", { detail: cursor }));
    }
    if (!kind) return;
    e.preventDefault(); keys = !stops; draw(); gesture += 1;
    push({ kind, x: cursor[0], y: cursor[1], shift: e.shiftKey }, kind !== "cursor");
  });
  surface.addEventListener("focus", () => { keys = !model.get("stops") && surface.matches(":focus-visible"); stop = 0; draw(); });
  surface.addEventListener("blur", () => { keys = false; draw(); });

  const text = () => {
    surface.setAttribute("aria-label", model.get("label"));
    surface.title = model.get("tip");
    surface.style.cursor = model.get("active") ? model.get("cursor") : "default";
    hint.textContent = model.get("hint"); said.textContent = model.get("say");
  };
  const answer = () => {
    unanswered = 0;
    if (queue.length) send(); else sentAt = -1e9;
    if (echo.length && !(down && model.get("path"))) { echo = down && model.get("echo") ? echo.slice(-1) : []; draw(); }
  };
  const ends = ["label", "tip", "active", "cursor", "hint", "say"].map((name) => heed(model, `change:${name}`, text));
  // Who chose to draw a path by keys goes on with them.
  ends.push(heed(model, "change:path", () => { if (model.get("path")) surface.focus({ preventScroll: true }); }));
  const watch = new ResizeObserver(draw);
  watch.observe(surface);
  text();
  const close = () => { clearTimeout(late); watch.disconnect(); ends.forEach((end) => end()); };
  return { answer, close };
};
