// Share: a link, the code, and files of the present moment.
const build = (el, send, onClose, onMessage) => {
  const link = copyLine("Link to this moment", "Copy link", "Points, settings, seeds, steps and stage, for another browser, Python or the command");
  link.button.className = "mx-action";
  const note = make("p", "mx-note", {}), only = make("p", "mx-note", { hidden: true });
  const paste = pasteLine("Paste a link or a challenge", "Open", (text) => send("open", text));
  const tabs = make("div", "mx-segments", { role: "group", "aria-label": "Language" });
  const code = make("textarea", "mx-code", { readOnly: true, spellcheck: false, rows: 4, "aria-label": "Code", wrap: "off" });
  const copyCode = makeButton("mx-flat", "Copy", "Copy the code", () => copyText(code, copyCode));
  const files = make("div", "mx-share-files");
  let now = {}, language = "python", rows = "";
  const languages = [["python", "Python"], ["notebook", "Notebook"], ["command", "Command"]].map(([key, words]) => {
    const b = makeButton("mx-segment", words, undefined, () => { language = key; show(); });
    tabs.append(b);
    return [key, b];
  });
  const fold = (words, ...parts) => make("details", "", {}, make("summary", "", { textContent: words }), ...parts);
  const title = (words) => make("div", "mx-chart-title", { textContent: words });
  const close = makeButton("mx-toast-close", undefined, "Close", () => send("close"), { "aria-label": "Close Share", innerHTML: icon("close") });
  el.append(make("div", "mx-share-top", {}, make("h2", "", { textContent: "Share" }), close),
    make("div", "mx-share-row", {}, title("Link"), link.field, link.button), make("div", "mx-share-notes", {}, note, only), files,
    make("div", "mx-share-folds", {},
      fold("The same in code", make("div", "mx-share-head", {}, tabs, copyCode), code), fold("Paste a link or a challenge", paste.root)));
  const show = () => {
    link.set(now.link ? addressOf(now.link) : "");
    put(link.button, "disabled", !now.link);
    put(note, "textContent", now.note);
    put(only, "textContent", now.only_here.replace("{address}", () => addressOn(now.network)));
    put(only, "hidden", !now.only_here || !isLocal(link.field.value));
    put(code, "value", now[language] || "");
    code.classList.toggle("mx-wrap", language === "command");
    for (const [key, b] of languages) attribute(b, "aria-pressed", String(key === language));
    const wanted = JSON.stringify(now.files);
    if (wanted === rows) return;
    rows = wanted;
    files.replaceChildren(title("File"), ...now.files.map(([name, kinds]) => make("div", "mx-share-file", { role: "group", "aria-label": name },
      make("span", "", { textContent: name }),
      ...kinds.map(({ key, label, tip, off }) => makeButton("mx-flat", label, tip, () => send("save", key), { disabled: off, "aria-label": `${name}: ${label}` })))));
  };
  onMessage((message, buffers) => {
    if (message.kind !== "frames") return;
    recordVideo(message.times, buffers).then(
      ({ video, ending }) => {
        saveFile(`${message.name}.${ending}`, video.type, video);
        send("recorded", true);
      },
      () => send("recorded", false),
    );
  });
  return (state) => {
    if (!state.files) return;
    now = state;
    show();
  };
};
