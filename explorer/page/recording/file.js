// What every file that plays without Python begins with: it is read, or leaves one sentence and runs
// nothing. player.js stands before it. Words of the file are put in as text, never as markup.
const VERSION = 2; // of the data, as in document.py
const DAMAGED = "What this page holds cannot be read: it was changed or cut short on its way. Export it again.";
const LATER = "This page was made by a later version of Margin Explorer than what plays it. Export it again by one version.";
const framesIn = async (text) => framesOf(await unzipped(new Blob([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))]).stream()));
// The data of the file; a later version gives none.
const readData = () => {
  const data = JSON.parse(document.getElementById("mx-data").textContent);
  if (data.format !== "margin-explorer page" || !Number.isInteger(data.version)) throw new Error("not a page of Margin Explorer");
  return data.version > VERSION ? null : data;
};
// Build the page of what is read, unless it is damaged.
const openFile = (read, build) => {
  const say = (sentence) => document.body.replaceChildren(make("p", "", { id: "mx-fault", textContent: sentence }));
  read().then((found) => (found ? build(found) : say(LATER))).catch((error) => { console.warn(error); say(DAMAGED); });
};
const themeButton = (app) => {
  const order = ["auto", "light", "dark"], names = { auto: "as the system", light: "light", dark: "dark" };
  let chosen = "auto"; // for as long as the page is open: a file keeps nothing
  const button = makeButton("mx-ghost mx-theme", undefined, undefined, () => { chosen = order[(order.indexOf(chosen) + 1) % 3]; apply(); });
  button.innerHTML = icon("theme");
  const apply = () => {
    app.dataset.theme = document.documentElement.dataset.theme = chosen !== "auto" ? chosen : systemTheme.matches ? "dark" : "light";
    button.title = `Theme: ${names[chosen]}`;
    button.setAttribute("aria-label", button.title);
    button.dataset.choice = chosen;
  };
  listen(systemTheme, "change", apply);
  apply();
  return button;
};
