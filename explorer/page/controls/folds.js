// Buttons at the foot of the side; each opens a drawer over it.
const build = (el, send, onClose) => {
  const row = make("div", "mx-fold-row", { role: "group", "aria-label": "More" });
  el.append(row);
  // The drawer ends above this row, on however many lines it stands.
  new ResizeObserver(() => {
    el.closest(".mx-side")?.style.setProperty("--mx-folds", `${el.offsetHeight + 8}px`);
  }).observe(el);
  let now = {};
  // Escape closes the drawer, wherever the hand is on the page, unless it closes something nearer.
  const escape = (e) => {
    const app = el.closest(".mx-app");
    if (e.key !== "Escape" || e.defaultPrevented || !now.open || !app || app.matches(".mx-present") || document.querySelector(":popover-open")) return;
    if (app.contains(e.target) || e.target === document.body) send("fold", now.open);
  };
  onClose(listen(document, "keydown", escape));
  return (state) => {
    now = state;
    if (!state.titles) return;
    const focused = row.contains(document.activeElement) ? document.activeElement.textContent : null;
    row.replaceChildren(...state.titles.map((title) =>
      makeButton("mx-fold", title, `${title}: open or close`, () => send("fold", title), { "aria-expanded": String(title === state.open) })));
    if (focused) [...row.children].find((b) => b.textContent === focused)?.focus();
    el.closest(".mx-side")?.classList.toggle("open", Boolean(state.open));
  };
};
