// Copying and pasting, for controls that hand something over.
// Where the clipboard is forbidden the text is selected and copied as of old, or left selected.
const copyText = async (field, button, done = "Copied") => {
  const words = button.dataset.words || button.textContent;
  button.dataset.words = words;
  let copied = false;
  try {
    await navigator.clipboard.writeText(field.value);
    copied = true;
  } catch {
    field.focus();
    field.select();
    copied = attempt(() => document.execCommand("copy"), false); // else it stays selected
  }
  button.textContent = copied ? done : "Press Ctrl+C";
  setTimeout(() => { button.textContent = words; }, 2500);
  return copied;
};
// A line of text that is copied, with its button: {root, set}.
const copyLine = (name, label, words) => {
  const field = make("input", "mx-line", { type: "text", readOnly: true, spellcheck: false, "aria-label": name, on: { focus: () => field.select() } });
  const button = makeButton("mx-flat", label, words, () => copyText(field, button));
  return { root: make("div", "mx-share-row", {}, field, button), field, button, set: (text) => put(field, "value", text) };
};
// A line of text that is pasted, with its button; `take` gets what was pasted.
const pasteLine = (name, label, take) => {
  const field = make("input", "mx-line", { type: "text", placeholder: name, spellcheck: false, "aria-label": name, autocomplete: "off",
    on: { keydown: (e) => { if (e.key === "Enter") button.click(); } } });
  const button = makeButton("mx-flat", label, undefined, () => {
    const text = field.value.trim();
    if (text) take(text);
    field.value = "";
  });
  return { root: make("div", "mx-share-row", {}, field, button), field, button };
};
// A file of text that is chosen; `take` gets its content.
const textFile = (label, accept, take) => {
  const field = fileField(accept, async (file) => { if (file.size < 8 * 2 ** 20) take((await file.text()).trim()); });
  return make("span", "", {}, makeButton("mx-flat", label, undefined, () => field.click()), field);
};
// Whether an address is of this computer alone.
const isLocal = (address) => /^https?:\/\/(localhost|127\.[\d.]+|\[::1\])[:/]/.test(address);
// The page's address as the network knows its machine.
const addressOn = (network) => Object.assign(new URL(location.href.split(/[?#]/)[0]), { hostname: network }).href;
// In Voila a link is the page's own address; in a notebook it is text alone, for `app("...")`.
// It keeps the theme that the address asks for.
const addressOf = (text) => {
  if (document.body.dataset.voila === undefined) return text;
  const theme = new URLSearchParams(location.search).get("theme");
  return `${location.href.split(/[?#]/)[0]}${theme ? `?theme=${encodeURIComponent(theme)}` : ""}#${text}`;
};
