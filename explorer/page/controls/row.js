// Buttons, choices, fields, bars and words in a row that wraps: one widget, however many they are.
// An item is {kind, label, tip, value, options, disabled, hidden ...}; what a hand does to it is
// sent as ["set", [its name, its new value]]: of a choice the place among its options.
const build = (el, send) => {
  el.classList.add("mx-items");
  const tell = (name, value = null) => send("set", [name, value]);
  const labelled = (root) => {
    const span = make("span", "");
    const label = make("label", "mx-item-field", {}, span, root);
    return { root: label, name: (words) => { put(span, "textContent", words); label.classList.toggle("bare", !words); } };
  };
  const kinds = {
    button: (name) => {
      // A button that changes what it does says what was asked of it, once: a double click is one.
      const b = make("button", "mx-flat", { type: "button", on: { click: (e) => { if (!b.dataset.does || e.detail < 2) tell(name, b.dataset.does); } } });
      return { root: b, show: (s) => {
        put(b, "textContent", s.label); put(b, "title", s.tip); put(b, "disabled", !!s.disabled);
        put(b, "className", s.filled ? "mx-action" : "mx-flat");
        if (typeof s.value === "string") b.dataset.does = s.value;
        if (typeof s.value === "boolean") attribute(b, "aria-pressed", String(s.value));
      } };
    },
    segments: (name) => {
      const root = make("div", "mx-segments", { role: "group" });
      let shown = "";
      return { root, show: (s) => {
        attribute(root, "aria-label", s.label);
        const now = JSON.stringify(s.options);
        if (now !== shown) {
          shown = now;
          root.replaceChildren(...s.options.map(([words, tip], i) => make("button", "mx-segment",
            { type: "button", textContent: words, title: tip, on: { click: () => tell(name, i) } })));
        }
        [...root.children].forEach((b, i) => { attribute(b, "aria-pressed", String(i === s.value)); put(b, "disabled", !!s.disabled); });
      } };
    },
    select: (name) => {
      const box = make("select", "mx-select", { on: { change: () => tell(name, box.selectedIndex) } });
      const { root, name: call } = labelled(box);
      let shown = "";
      return { root, show: (s) => {
        call(s.label); put(box, "title", s.tip); attribute(box, "aria-label", s.label || s.tip);
        const now = JSON.stringify(s.options);
        if (now !== shown) { shown = now; box.replaceChildren(...s.options.map(([words]) => make("option", "", { textContent: words }))); }
        put(box, "selectedIndex", s.value); put(box, "disabled", !!s.disabled);
      } };
    },
    number: (name) => {
      const box = make("input", "", { type: "number", on: { change: () => tell(name, box.valueAsNumber) } });
      const { root, name: call } = labelled(box);
      return { root, show: (s) => {
        call(s.label); put(box, "title", s.tip); put(box, "min", String(s.low)); put(box, "max", String(s.high));
        put(box, "step", s.whole ? "1" : "any"); put(box, "disabled", !!s.disabled);
        if (document.activeElement !== box || box.dataset.sent !== String(s.value)) put(box, "value", String(s.value));
        box.dataset.sent = String(s.value);
      } };
    },
    bar: () => {
      const root = make("progress", "mx-bar", { max: 1 });
      return { root, show: (s) => { put(root, "value", s.value); put(root, "title", s.tip); attribute(root, "aria-label", s.tip); } };
    },
    words: () => {
      const root = make("div", "mx-item-words");
      return { root, show: (s) => { if (root.dataset.shown !== s.value) { root.dataset.shown = s.value; root.innerHTML = s.value; } } };
    },
  };
  const made = new Map();
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
