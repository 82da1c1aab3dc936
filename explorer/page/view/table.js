// A table whose rows can be ticked and drawn, with a bar, its interval and a control in each.
const make = (tag, name, text) => {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
};
const WIDE = "(100% - 12px)"; // of a cell of bars, less its padding
const bar = (name, from, to) => {
  const made = make("i", name);
  made.style.left = `calc(6px + ${WIDE} * ${from})`;
  made.style.width = `max(1px, calc(${WIDE} * ${Math.max(0, to - from)}))`;
  return made;
};
const bars = (row) => {
  const cell = make("td", "mx-bars");
  for (const [kind, share] of [["found", row.share], ["chance", row.chance]]) {
    if (!share) continue;
    const [value, low, high] = share;
    cell.append(bar(`mx-${kind}-bar`, 0, value));
    if (high > low) cell.append(bar(`mx-span mx-${kind}-span`, low, high));
  }
  cell.append(make("span", "mx-said", row.said || ""));
  return cell;
};
// What a spreadsheet takes.
const asText = (model) =>
  [["attack", ...model.get("head")], ...model.get("rows").map((r) => [r.title, r.said || "", ...(r.cells || [r.words || ""])])]
    .map((line) => line.join("\t")).join("\n");
function render({ model, el }) {
  el.classList.add("mx-table");
  const draw = () => {
    const focus = el.contains(document.activeElement) ? document.activeElement.dataset.at : null;
    const head = make("div", "mx-table-head"), table = make("table"), top = make("tr");
    head.append(make("b", "", model.get("title")), make("span", "", model.get("note")));
    const copy = make("button", "mx-table-copy", "Copy as table");
    copy.type = "button";
    copy.onclick = async () => {
      await navigator.clipboard?.writeText(asText(model));
      copy.textContent = navigator.clipboard ? "Copied" : "No clipboard here";
    };
    if (model.get("rows").some((r) => r.share)) head.append(copy);
    top.append(...["attack", ...model.get("head")].map((t) => Object.assign(make("th"), { scope: "col" })));
    ["attack", ...model.get("head")].forEach((t, i) => explain(top.children[i], t));
    table.append(make("caption", "mx-said", `${model.get("title")}. ${model.get("note")}`), top);
    for (const row of model.get("rows")) {
      const on = row.key === model.get("chosen"), can = row.drawn !== false;
      const line = make("tr", `${can ? "mx-can" : ""} ${on ? "mx-on" : ""} ${row.off ? "mx-off" : ""}`), first = make("td");
      if (row.ticked !== null && row.ticked !== undefined) {
        const box = make("input");
        box.type = "checkbox";
        box.checked = row.ticked;
        box.disabled = row.off;
        box.dataset.at = `tick ${row.key}`;
        box.setAttribute("aria-label", `Run ${row.title}`);
        box.onclick = (e) => e.stopPropagation();
        box.onchange = () => model.send({ kind: "tick", key: row.key, ticked: box.checked });
        first.append(box);
      }
      const name = make("button", "", row.title);
      name.type = "button";
      name.title = row.tip || "";
      name.disabled = !can;
      name.dataset.at = `name ${row.key}`;
      name.setAttribute("aria-pressed", on);
      first.append(name);
      line.append(first);
      if (row.cells) line.append(bars(row), ...row.cells.map((t) => make("td", "", t)));
      else {
        const words = Object.assign(make("td", "mx-words"), { colSpan: model.get("head").length, title: row.words || "" });
        words.append(make("div", "", row.words || ""));
        line.append(words);
      }
      if (can) line.onclick = () => model.send({ kind: "choose", key: row.key });
      table.append(line);
    }
    el.replaceChildren(head, table);
    if (focus) [...el.querySelectorAll("[data-at]")].find((n) => n.dataset.at === focus)?.focus();
  };
  draw();
  for (const name of ["title", "note", "head", "rows", "chosen"]) model.on(`change:${name}`, draw);
}
export default { render };
