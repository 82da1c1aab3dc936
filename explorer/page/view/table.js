// A table whose rows can be ticked and drawn, with a bar, its interval and a control in each.
// What is there stays and is changed in place: focus and selection outlive a redraw.
const WIDE = "(100% - var(--lead) - 6px)"; // of a cell of bars, less the number before them and its padding
const bar = (name, from, to) => {
  const made = make("i", name);
  made.style.left = `calc(var(--lead) + ${WIDE} * ${from})`;
  made.style.width = `calc(${WIDE} * ${Math.max(0, to - from)})`;
  return made;
};
const bars = (row) => {
  const made = row.share ? [bar("mx-track", 0, 1)] : [];
  for (const [kind, share] of [["found", row.share], ["chance", row.chance]]) {
    if (!share) continue;
    const [value, low, high] = share;
    made.push(bar(`mx-${kind}-bar`, kind === "found" ? 0 : value, value)); // none found leaves the track empty; chance is a mark
    if (high > low) made.push(bar(`mx-span mx-${kind}-span`, low, high));
  }
  if (row.count) made.push(make("span", "mx-count", { textContent: row.count }));
  return [...made, make("span", "mx-said", { textContent: row.said || "" })];
};
// What a spreadsheet takes.
const asText = (model) =>
  [["attack", ...model.get("head")], ...model.get("rows").map((r) => [r.title, `${r.count || ""}${r.said || ""}`, ...(r.cells || [r.words || ""])])]
    .map((line) => line.join("\t")).join("\n");
// One row: its box, its name, and the cells behind them, which are made anew when they differ.
const rowOf = (model, key) => {
  let shown = "", can = false;
  const name = make("button", "", { type: "button" }), box = make("input", "", { type: "checkbox", on: {
    click: (e) => e.stopPropagation(), change: () => model.send({ kind: "tick", key, ticked: box.checked }),
  } });
  const line = make("tr", "", { on: { click: () => { if (can) model.send({ kind: "choose", key }); } } }, make("td", "", {}, box, name));
  const show = (row, columns, on) => {
    can = row.drawn !== false;
    put(line, "className", `${can ? "mx-can" : ""} ${on ? "mx-on" : ""} ${row.off ? "mx-off" : ""}`);
    put(box, "hidden", row.ticked === null || row.ticked === undefined);
    put(box, "checked", !!row.ticked);
    put(box, "disabled", !!row.off);
    box.setAttribute("aria-label", `Run ${row.title}`);
    put(name, "textContent", row.title);
    put(name, "title", row.tip || "");
    name.toggleAttribute("data-fold", "open" in row); name.toggleAttribute("data-open", !!row.open);
    put(name, "disabled", !can);
    name.setAttribute("aria-pressed", on);
    put(line.firstChild, "colSpan", row.whole ? columns + 1 : 1);
    const told = line.querySelector(".mx-words"); // its words may be selected: they stay when columns come
    if (told) put(told, "colSpan", columns);
    const now = JSON.stringify([row.whole, row.share, row.chance, row.count, row.said, row.cells, row.words]);
    if (now === shown) return;
    shown = now;
    while (line.children.length > 1) line.lastChild.remove();
    if (row.cells) {
      line.append(make("td", "mx-bars", {}, ...bars(row)), ...row.cells.map((textContent) => make("td", "", { textContent })));
      return;
    }
    if (!row.whole) line.append(make("td", "mx-words", { colSpan: columns, title: row.words || "" }, make("div", "", { textContent: row.words || "" })));
  };
  return { line, show };
};
function render({ model, el }) {
  el.classList.add("mx-table");
  const copy = makeButton("mx-table-copy", "Copy as table", undefined, async () => {
    await navigator.clipboard?.writeText(asText(model));
    copy.textContent = navigator.clipboard ? "Copied" : "No clipboard here";
  });
  const title = make("b"), note = make("span"), top = make("tr"), body = make("tbody", "", {}, top);
  const caption = make("caption", "mx-said"), rows = new Map();
  let columns = "";
  el.replaceChildren(make("div", "mx-table-head", {}, title, note, copy), make("table", "", {}, caption, body));
  const draw = () => {
    const given = model.get("rows"), names = ["attack", ...model.get("head")];
    put(title, "textContent", model.get("title"));
    put(note, "textContent", model.get("note"));
    put(caption, "textContent", `${model.get("title")}. ${model.get("note")}`);
    put(copy, "hidden", !given.some((r) => r.share));
    if (copy.hidden) copy.textContent = "Copy as table";
    if (names.join() !== columns) {
      columns = names.join();
      top.replaceChildren(...names.map(() => make("th", "", { scope: "col" })));
      names.forEach((t, i) => explain(top.children[i], t));
    }
    const keys = given.map((r) => r.key);
    for (const [key, { line }] of rows) if (!keys.includes(key)) { line.remove(); rows.delete(key); }
    given.forEach((row, i) => {
      if (!rows.has(row.key)) rows.set(row.key, rowOf(model, row.key));
      const { line, show } = rows.get(row.key);
      show(row, names.length - 1, row.key === model.get("chosen"));
      if (body.children[i + 1] !== line) body.insertBefore(line, body.children[i + 1] || null);
    });
  };
  draw();
  for (const name of ["title", "note", "head", "rows", "chosen"]) model.on(`change:${name}`, draw);
}
export default { render };
