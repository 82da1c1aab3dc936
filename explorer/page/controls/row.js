// Buttons, choices, fields, files, bars and words in a row that wraps: one widget, however many they
// are. An item is {kind, label, tip, value, options, disabled, hidden ...}; what a hand does to it is
// sent as ["set", [its name, its new value]]: of a choice the place among its options.
// Put HTML that differs in its words alone into the nodes that are there; return whether it does.
const rewrite = (root, html) => {
  const textsOf = (of) => (of.nodeType === Node.TEXT_NODE ? [of] : [...of.childNodes].flatMap(textsOf));
  const [old, fresh] = [root, make("div", "", { innerHTML: html })].map(textsOf);
  if (old.length !== fresh.length) return false;
  old.forEach((node, i) => put(node, "data", fresh[i].data));
  return true;
};
let fields = 0; // of the page: each has an id, by which its name belongs to it
const build = (el, send, onClose) => {
  el.classList.add("mx-items");
  let reading = null; // of the map under a hand
  const formed = []; // shows words anew
  const tell = (name, value = null, buffers = []) => send("set", [name, value], buffers);
  const dress = (e, s) => { put(e, "title", s.tip); put(e, "disabled", !!s.disabled); };
  // A field after its name, in which known words are explained.
  const labelled = (field, more = []) => {
    field.id = `mx-field-${fields++}`;
    const words = make("label", "", { htmlFor: field.id });
    const root = make("span", "mx-item-field", {}, words, field, ...more);
    return { root, show: (s) => {
      explain(words, s.label); words.hidden = !s.label;
      dress(field, s); attribute(field, "aria-label", s.label || s.tip);
    } };
  };
  // What is typed stays while the field has the focus, unless the kernel has another value now.
  const keep = (box, value) => {
    if (document.activeElement !== box || box.dataset.sent !== value) put(box, "value", value);
    box.dataset.sent = value;
  };
  const button = (name, said) => {
    const b = makeButton("mx-flat", undefined, undefined, (e) => { if (!b.dataset.does || e.detail < 2) said(b.dataset.does); });
    return { root: b, show: (s) => {
      put(b, "textContent", s.label); dress(b, s);
      put(b, "className", s.filled ? "mx-action" : "mx-flat");
      if (typeof s.value === "boolean") attribute(b, "aria-pressed", String(s.value));
    } };
  };
  const fill = (box, s, option) => {
    const now = JSON.stringify(s.options);
    if (box.dataset.shown === now) return;
    box.dataset.shown = now;
    box.replaceChildren(...s.options.map(option));
  };
  const kinds = {
    button: (name) => button(name, () => tell(name)),
    cancel: (name) => button(name, () => tell(name)),
    job: (name) => { // it says what was asked of it, once: a double click is one
      const { root, show } = button(name, (does) => tell(name, does));
      return { root, show: (s) => { root.dataset.does = s.value; show(s); } };
    },
    segments: (name) => {
      const root = make("div", "mx-segments", { role: "group" });
      return { root, show: (s) => {
        attribute(root, "aria-label", s.label);
        fill(root, s, ([words, tip], i) => makeButton("mx-segment", words, tip, () => tell(name, i)));
        [...root.children].forEach((b, i) => { attribute(b, "aria-pressed", String(i === s.value)); put(b, "disabled", !!s.disabled); });
      } };
    },
    select: (name) => {
      const box = make("select", "mx-select", { on: { change: () => tell(name, box.selectedIndex) } }), { root, show } = labelled(box);
      return { root, show: (s) => {
        show(s); fill(box, s, ([words]) => make("option", "", { textContent: words }));
        put(box, "selectedIndex", s.value);
      } };
    },
    number: (name) => {
      const box = make("input", "", { type: "number", on: { change: () => tell(name, box.valueAsNumber) } }), { root, show } = labelled(box);
      return { root, show: (s) => {
        show(s); put(box, "min", String(s.low)); put(box, "max", String(s.high)); put(box, "step", s.whole ? "1" : "any");
        keep(box, String(s.value));
      } };
    },
    slider: (name) => {
      let now = {};
      const value = () => now.ratio ? 10 ** box.valueAsNumber : box.valueAsNumber, on = (v) => now.ratio ? Math.log10(v) : v;
      const written = (v) => now.options ? now.options[v]?.[0] ?? "" : now.ratio ? String(Number(v.toPrecision(2))) : v.toFixed(now.step < 1 ? 2 : 0);
      const read = (v) => { write(shown, written(v)); attribute(box, "aria-valuetext", shown.textContent); };
      const box = make("input", "", { type: "range", on: {
        input: () => { read(value()); if (now.live) tell(name, value()); },
        change: () => { if (!now.live) tell(name, value()); } } });
      const shown = make("output", "mx-readout"), { root, show } = labelled(box, [shown]);
      return { root, show: (s) => {
        now = s; show(s);
        const [low, high, step] = s.options ? [0, s.options.length - 1, 1] : [s.low, s.high, s.step].map(on);
        put(box, "min", String(low)); put(box, "max", String(high)); put(box, "step", String(step));
        if (box.matches(":active")) return; // a hand holds it
        put(box, "value", String(on(s.value)));
        read(s.value);
      } };
    },
    text: (name) => {
      const box = make("input", "", { type: "text", spellcheck: false, autocomplete: "off", on: { change: () => tell(name, box.value) } }), { root, show } = labelled(box);
      return { root, show: (s) => { show(s); keep(box, s.value); } };
    },
    file: (name) => {
      const field = fileField("", async (file) => tell(name, file.name, [await file.arrayBuffer()]), { "aria-hidden": "true" });
      const b = makeButton("mx-flat", undefined, undefined, () => field.click()), words = make("span", "");
      b.innerHTML = icon("upload");
      b.append(words);
      return { root: make("span", "mx-item-file", {}, b, field), show: (s) => { put(words, "textContent", s.label); put(field, "accept", s.accept); dress(b, s); } };
    },
    bar: () => {
      const root = make("progress", "mx-bar", { max: 1 });
      return { root, show: (s) => { put(root, "value", s.value); put(root, "title", s.tip); attribute(root, "aria-label", s.tip); } };
    },
    words: () => {
      const root = make("div", "mx-item-words");
      let now = {};
      const show = (s = now) => {
        now = s;
        const html = reading && s.form ? filledForm(s.form, reading) : s.value;
        if (root.dataset.shown === html) return;
        root.dataset.shown = html;
        if (reading && rewrite(root, html)) return;
        root.innerHTML = html;
        delete root.mxText;
        if (!root.children.length) explain(root, root.textContent);
      };
      formed.push(show);
      return { root, show };
    },
    break: () => ({ root: make("div", "mx-break"), show: () => {} }),
  };
  const made = new Map();
  onClose(onLight(el, (what) => { if (what.reading !== undefined) { reading = what.reading; formed.forEach((show) => show()); } }));
  return ({ items }) => {
    for (const [name, s] of items || []) {
      if (!made.has(name)) {
        made.set(name, kinds[s.kind](name));
        made.get(name).root.dataset.item = name;
        el.append(made.get(name).root);
      }
      const { root, show } = made.get(name);
      put(root, "hidden", !!s.hidden);
      show(s);
    }
  };
};
