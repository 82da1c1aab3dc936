// Tools on the plane's left edge, folded to one pencil where nobody draws; layers at its foot.
const build = (el, send) => {
  let now = {};
  const palette = make("div", "mx-palette", { role: "toolbar", "aria-label": "Drawing tools", "aria-orientation": "vertical" });
  const chips = make("div", "mx-chips", { role: "group", "aria-label": "What the plane shows" });
  el.append(palette, chips);
  const tool = (html, name, title, on, click, colour = "") => {
    const b = makeButton("mx-tool", undefined, title, click, { "aria-label": name });
    b.innerHTML = html;
    if (on !== null) b.setAttribute("aria-pressed", String(on));
    if (colour) b.style.color = `var(--mx-${colour})`;
    return b;
  };
  const line = () => make("hr", "");
  const draw = () => {
    const { classes, label, tool: held, drawing } = now;
    const named = (b) => b.dataset.layer ?? b.getAttribute("aria-label"); // the words of a layer may change when it is pressed
    const focused = el.contains(document.activeElement) ? named(document.activeElement) : null;
    if (!drawing || now.folded) {
      palette.replaceChildren(tool(icon("pencil"), "Edit the points", `Edit the points: ${drawing ? "the run goes on with them" : "back to Draw"}`, null, () => send("edit", true)));
    } else {
      const tools = [["place", "Place", "pencil", "Place: a click adds a point, a drag sprays (P)"],
        ["move", "Move", "move", "Move: drag a point (M)"], ["erase", "Erase", "eraser", "Erase: click or drag over points (E)"]];
      palette.replaceChildren(
        ...classes.map((c) => tool(c.sign, c.name, c.tip, c.value === label, () => send("label", c.value), c.colour)),
        line(),
        ...tools.map(([key, name, i, tip]) => tool(icon(i), name, tip, key === held, () => send("tool", key))),
        line(),
        tool(icon("undo"), "Undo", "Take the last edit back (Ctrl+Z on the plane)", null, () => send("undo")),
        tool(icon("redo"), "Redo", "Do the undone edit again (Ctrl+Y on the plane)", null, () => send("redo")),
        tool(icon("bin"), "Clear", "Erase all points; undo brings them back", null, () => send("clear")),
      );
      if (now.stage !== "draw") palette.append(line(), tool(icon("close"), "Fold the tools", "Fold the tools: a press on the plane edits nothing", null, () => send("edit", false)));
    }
    // One that is neither on nor off is a command, and its name says which.
    chips.replaceChildren(...now.chips.map(({ key, name, tip, on }) =>
      makeButton(`mx-chip${on === null ? " act" : on ? " on" : ""}`, name, tip, () => send("layer", key), { ...(on === null ? {} : { "aria-pressed": String(on) }), data: { layer: key } })));
    if (focused) [...el.querySelectorAll("button")].find((b) => named(b) === focused)?.focus();
  };
  return (state) => {
    if (!state.classes) return;
    now = state;
    draw();
  };
};
