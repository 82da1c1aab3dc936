// The head of a page beside the explorer: the way back to it, the steps of this page, its theme. A step
// that is pressed brings its part into sight. tabs.js stands before it.
const build = (el, send, onClose) => {
  const brand = brandOf("a"), named = make("span", "mx-page-name"), look = themeOf(el);
  let parts = {};
  const go = (_, key) => {
    const part = el.closest(".mx-app").querySelector(parts[key]);
    part?.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth", block: "center" });
    const field = "input, select, button";
    (part?.matches(field) ? part : part?.querySelector(field))?.focus({ preventScroll: true });
  };
  const tabs = tabsOf(go);
  tabs.list.setAttribute("aria-label", "Steps");
  const ways = make("nav", "mx-head-ways", { "aria-label": "Other pages" });
  el.append(brand, named, tabs.list, make("div", "mx-head-right", {}, ways, look.button));
  onClose(look.close);
  return (state) => {
    if (state.home) brand.href = state.home; // none where no server has the other page
    put(named, "textContent", state.title);
    if (!ways.childElementCount) ways.append(...state.links.map(([href, textContent]) => make("a", "mx-ghost", { href, textContent })));
    parts = Object.fromEntries(state.stages.map(({ key, part }) => [key, part]));
    tabs.list.hidden = !state.stages.length;
    tabs.update(state.stages, state.now);
  };
};
