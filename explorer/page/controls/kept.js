// What the browser keeps: a row for each page that was opened, in the local storage of this server,
// under its base path.
const MOST_ROWS = 8; // arbitrary
const config = () => attempt(() => JSON.parse(document.getElementById("jupyter-config-data").textContent), {});
const lab = () => document.body.dataset.voila === undefined;
const base = config().baseUrl || "/";

const PREFIX = `mx-kept:${base}:`, MINE = `mx-kept:${base}`; // rows; and the row of this tab, which a reload keeps
const CHANGED = "mx-kept-changed", changed = () => document.dispatchEvent(new Event(CHANGED));
const newKey = () => PREFIX + crypto.getRandomValues(new Uint32Array(2)).join("-");
const rowOf = (text) => attempt(() => {
  const row = JSON.parse(text);
  return typeof row.text === "string" && row.text && Number.isFinite(row.time) ? row : null;
}, null);
const rows = () => attempt(() => Object.keys(localStorage).filter((key) => key.startsWith(PREFIX))
  .map((key) => ({ key, ...rowOf(localStorage.getItem(key)) })).filter((row) => row.text)
  .sort((a, b) => b.time - a.time), []);
const store = (key, row) => {
  const text = JSON.stringify(row);
  const others = rows().filter((other) => other.key !== key), drawn = others.filter((other) => other.own);
  const old = [...drawn, ...others.filter((other) => !other.own)]; // ready-made sets make room first
  for (const { key: late } of old.splice(MOST_ROWS - 1)) attempt(() => localStorage.removeItem(late));
  const put = (name, value) => attempt(() => { localStorage.setItem(name, value); return true; }, false);
  const gone = []; // where the storage is full the oldest make room, unless that is of no use
  while (!put(key, text)) {
    const last = old.pop();
    if (!last) { for (const [name, value] of gone) put(name, value); return false; }
    gone.push([last.key, attempt(() => localStorage.getItem(last.key), "")]);
    attempt(() => localStorage.removeItem(last.key));
  }
  attempt(() => sessionStorage.setItem(MINE, key));
  changed();
  return true;
};
// The row of this tab; else, where the tab is a new one, the newest of the same page.
const offered = (page) => {
  const all = rows().filter((row) => row.page === page && !row.left);
  const mine = attempt(() => sessionStorage.getItem(MINE), null);
  return all.find((row) => row.key === mine) || (mine ? null : all[0]) || null;
};
const clock = (time) => {
  const at = new Date(time), two = (n) => String(n).padStart(2, "0");
  const day = at.toDateString() === new Date().toDateString() ? "" : `${at.toLocaleDateString("en-GB", { day: "numeric", month: "long" })}, `;
  return `${day}${two(at.getHours())}:${two(at.getMinutes())}`;
};
const download = (row) => saveFile(`drawing-${clock(row.time).replace(/\W+/g, "-")}.mx`, "text/plain", row.text);
