// A notice over the plane: it leaves by itself once it could be read, unless the pointer or the focus
// is on it, and none goes from under the pointer; a refusal stays until it is closed or another command takes its place.
const READ = { first: 4000, letter: 50 }; // ms; arbitrary: 20 letters a second
const build = (el, send, onClose) => {
  const words = make("span", "mx-toast-words", { role: "status", "aria-live": "polite" });
  const close = makeButton("mx-toast-close", undefined, "Close this notice", () => { told = ""; show(); send("close"); }, { "aria-label": "Close this notice" });
  close.innerHTML = icon("close");
  el.append(words, close);
  let timer = null, passes = false, told = "";
  const show = () => {
    put(words, "textContent", told);
    el.classList.toggle("told", Boolean(told));
    close.hidden = !told;
  };
  const wait = () => {
    clearTimeout(timer);
    if (!passes || !told) return;
    timer = setTimeout(() => { if (!el.matches(":hover, :focus-within")) send("close"); }, READ.first + READ.letter * told.length);
  };
  el.addEventListener("pointerleave", () => { show(); wait(); });
  el.addEventListener("focusout", wait);
  onClose(() => clearTimeout(timer));
  return ({ words: said = "", stays = false }) => {
    told = said;
    passes = !stays;
    if (told || !el.matches(":hover")) show(); // else once the pointer leaves
    wait();
  };
};
