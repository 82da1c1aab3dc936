// The bar at the foot: back, play, step, speed, the time line with its branches.
const TICKS = 1000, EVERY_MS = 40;
const build = (el, send, onClose) => {
  const flat = (name, title, i, kind) => {
    const b = makeButton("mx-square", undefined, title, () => send(kind), { "aria-label": name });
    b.innerHTML = icon(i);
    return b;
  };
  const reset = flat("Reset", "Back to step 0 of this stage with the same seed", "start", "reset");
  const play = makeButton("mx-play", undefined, undefined, () => send(play.dataset.does));
  const step = flat("Step", "Pause, and take one full-batch step", "step", "step");
  const many = make("input", "", { type: "number", min: 2, max: 100000, value: 100, title: "Steps of the next button", "aria-label": "n steps" });
  const steps = makeButton("mx-menu-row", "Step × n", "Pause, and take n steps at once", () => send("steps", Number(many.value)));
  const reseed = makeButton("mx-menu-row", "New seed", "Back to step 0 with another random initialisation", () => send("reseed"));
  const further = menu("mx-up", "", "Steps of your choice, and another seed", [make("label", "mx-menu-row", {}, "n steps ", many), steps, reseed]);
  further.button.innerHTML = `<span class="mx-roomy">Steps </span>${icon("more")}`;
  further.button.setAttribute("aria-label", "Steps");
  const speed = make("select", "mx-select", { title: "Steps per second while playing", "aria-label": "Speed", on: { change: () => send("speed", speed.selectedIndex) } });
  const time = make("input", "mx-time", { type: "range", min: 0, max: TICKS, value: 0, title: "Scrub back through the run; play goes on from there", "aria-label": "Time" });
  const marks = make("div", "mx-marks", { role: "group", "aria-label": "Branches" });
  const line = make("div", "mx-timeline", {}, time, marks);
  const told = make("span", ""), where = make("span", "mx-where", { role: "status", "aria-live": "off" }, told);
  const branch = makeButton("mx-flat", undefined, "Branch: keep this run, and try another way from this moment. Both stay on the time line.", () => send("branch"));
  branch.innerHTML = icon("branch");
  branch.append(" ", "Branch");
  const present = presentOf("mx-square", true);
  el.append(reset, play, step, further.root, speed, line, where, branch, present);
  onClose(further.close);

  let held = false, timer = null;
  const seek = () => { timer = null; send("seek", Number(time.value) / TICKS); };
  time.addEventListener("input", () => { held = true; if (!timer) timer = setTimeout(seek, EVERY_MS); fill(); });
  time.addEventListener("change", () => { clearTimeout(timer); seek(); held = false; });
  const fill = () => time.style.setProperty("--at", `${(100 * time.value) / TICKS}%`);

  return (state) => {
    if (!state.speeds) return;
    const running = state.running;
    const name = running ? "Pause" : "Play";
    play.dataset.does = running ? "pause" : "play"; // a Pause that comes after the end does not play again
    if (play.getAttribute("aria-label") !== name) {
      play.setAttribute("aria-label", name);
      play.title = running ? "Pause the run" : "Run the present stage";
      play.innerHTML = icon(running ? "pause" : "play", true);
    }
    if (speed.options.length !== state.speeds.length)
      speed.replaceChildren(...state.speeds.map((words) => make("option", "", { textContent: words })));
    put(speed, "selectedIndex", state.speed);
    el.classList.toggle("mx-idle", !!state.idle);
    for (const [name, b] of Object.entries({ reset, play, step, further: further.button, time, branch, speed })) put(b, "disabled", !state.able.includes(name));
    if (!held) put(time, "value", String(state.time));
    fill();
    attribute(time, "aria-valuetext", state.where);
    put(told, "textContent", state.where);
    const shown = JSON.stringify(state.branches);
    if (marks.dataset.shown === shown) return;
    marks.dataset.shown = shown;
    marks.replaceChildren(...state.branches.map(({ index, name: words, at, on }) => {
      const b = makeButton(`mx-mark${on ? " on" : ""}`, undefined, words, () => send("select", index), { "aria-label": words, "aria-current": on ? "true" : undefined });
      b.style.left = `${100 * at}%`;
      return b;
    }));
  };
};
