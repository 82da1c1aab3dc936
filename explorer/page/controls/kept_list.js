// The drawings that this browser keeps, each to be taken up or forgotten.
const render = ({ model, el }) => {
  const list = document.createElement("div");
  list.className = "mx-kept-list";
  el.append(list);
  const button = (label, title, call) => {
    const made = document.createElement("button");
    made.type = "button"; made.className = "mx-flat mx-slim"; made.textContent = label; made.title = title;
    made.addEventListener("click", call);
    return made;
  };
  const show = () => {
    const all = rows(), says = model.get("says"), title = document.createElement("div");
    title.className = "mx-chart-title";
    title.textContent = all.length ? says.some : says.none;
    list.replaceChildren(title, ...all.map((row) => {
      const line = document.createElement("div"), words = document.createElement("span");
      line.className = "mx-kept-row";
      words.textContent = `${clock(row.time)}: ${row.words}`;
      line.append(words,
        button(says["take up"], "Show it in place of what is on screen", () => model.send({ kind: "take up", text: row.text, lesson: row.lesson })),
        button(says.download, "As a file, which can be opened here again", () => download(row)),
        button(says.forget, "Delete it from this browser", () => { attempt(() => localStorage.removeItem(row.key)); changed(); }));
      return line;
    }));
  };
  document.addEventListener(CHANGED, show);
  show();
  return () => document.removeEventListener(CHANGED, show);
};
export default { render };
