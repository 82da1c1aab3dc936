// A notice over the plane; it stays until it is closed or another command takes its place.
const build = (el, send) => {
  const words = make("span", "mx-toast-words", { role: "status", "aria-live": "polite" });
  const close = make("button", "mx-toast-close", { type: "button", title: "Close this notice", "aria-label": "Close this notice", on: { click: () => send("close") } });
  close.innerHTML = icon("close");
  el.append(words, close);
  return ({ words: said = "" }) => {
    put(words, "textContent", said);
    el.classList.toggle("told", Boolean(said));
    close.hidden = !said;
  };
};
