// The drawings that this browser keeps, each to be taken up or forgotten.
const build = (el, send, onClose) => {
  let says = null;
  const list = make("div", "mx-kept-list"), title = make("div", "mx-chart-title");
  el.append(list);
  const button = (...what) => makeButton("mx-flat mx-slim", ...what);
  const show = () => {
    if (!says) return;
    const all = rows();
    title.textContent = all.length ? says.some : says.none;
    list.replaceChildren(title, ...all.map((row) => make("div", "mx-kept-row", {},
      make("span", "", { textContent: `${clock(row.time)}: ${row.words}` }),
      button(says["take up"], "Show it in place of what is on screen", () => send("take up", [row.text, row.lesson])),
      button(says.download, "As a file, which can be opened here again", () => download(row)),
      button(says.forget, "Delete it from this browser", () => { attempt(() => localStorage.removeItem(row.key)); changed(); }))));
  };
  onClose(listen(document, CHANGED, show));
  return (state) => { says = state.says; show(); };
};
