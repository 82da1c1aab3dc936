"""The screen: one viewport at every size, in every stage and both themes; names and contrast."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from explorer.serve import server
from tests.browser.steps import Explorer, settled

SIZES = (
    (1280, 640), (1280, 720), (1366, 768), (1440, 900), (1920, 1080), (2560, 1440), (3840, 2160),
    (820, 1180), (390, 844),
)  # fmt: skip
STAGES = ("1 Draw", "2 Train", "3 Attack", "4 Landscape", "5 Explain", "6 Compare")
THEMES = ("light", "dark")

# What stands where it must not, as words. Boxes that scroll by themselves may hold more than they
# show; what they hide is asked for no place.
MISPLACED = """() => {
  const wrong = [], w = innerWidth, h = innerHeight;
  const app = document.querySelector('.mx-explorer');
  const name = e => `${e.tagName} ${e.className?.baseVal ?? e.className} ${(e.ariaLabel || e.innerText || '').slice(0, 30)}`;
  for (let e = app; e; e = e.parentElement)
    if (e.scrollHeight > e.clientHeight + 1 && e !== app && !['visible', 'hidden'].includes(getComputedStyle(e).overflowY)
        || e.scrollWidth > e.clientWidth + 1 && e !== app) wrong.push(`scrolls: ${name(e)} ${e.scrollWidth}>${e.clientWidth} ${e.scrollHeight}>${e.clientHeight}`);
  const shown = e => {  // the part of an element's box that its scrolling ancestors let see
    let r = e.getBoundingClientRect(), box = { l: r.left, t: r.top, r: r.right, b: r.bottom };
    for (let up = e.parentElement; up && up !== app; up = up.parentElement) {
      const s = getComputedStyle(up);
      if (['auto', 'scroll'].includes(s.overflowY) || ['auto', 'scroll'].includes(s.overflowX)) {
        const u = up.getBoundingClientRect();
        box = { l: Math.max(box.l, u.left), t: Math.max(box.t, u.top), r: Math.min(box.r, u.right), b: Math.min(box.b, u.bottom) };
      }
    }
    return box;
  };
  const seen = e => e.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const kinds = 'button, input, select, textarea, summary, a, [role=slider], h1, .mx-words, .mx-stage, .mx-where, canvas, .mx-card';
  const parts = [...app.querySelectorAll(kinds)].filter(seen).map(e => [e, shown(e)])
    .filter(([, b]) => b.r - b.l > 1 && b.b - b.t > 1);
  for (const [e, b] of parts)
    if (b.l < -1 || b.t < -1 || b.r > w + 1 || b.b > h + 1)
      wrong.push(`outside: ${name(e)} ${[b.l, b.t, b.r, b.b].map(Math.round)}`);
  const controls = parts.filter(([e]) => e.matches('button, input, select, textarea, a, summary') && !e.closest('.bqplot'));
  for (let i = 0; i < controls.length; i++) for (let j = i + 1; j < controls.length; j++) {
    const [[e, a], [f, b]] = [controls[i], controls[j]];
    if (e.contains(f) || f.contains(e)) continue;
    const wide = Math.min(a.r, b.r) - Math.max(a.l, b.l), high = Math.min(a.b, b.b) - Math.max(a.t, b.t);
    if (wide > 2 && high > 2) wrong.push(`overlap: ${name(e)} | ${name(f)}`);
  }
  const plane = app.querySelector('.mx-stage').getBoundingClientRect();
  if (Math.abs(plane.width - plane.height) > 2) wrong.push(`no square: ${plane.width} x ${plane.height}`);
  for (const must of ['.mx-tabs', '.mx-palette', '.mx-transport', '.mx-title'])
    if (!app.querySelector(must)?.checkVisibility()) wrong.push(`not in sight: ${must}`);
  return [...new Set(wrong)];
}"""

# Text whose colour is too near to what it stands on: WCAG AA asks 4.5, and 3 of large text.
PALE = """() => {
  const parse = c => { const m = c.match(/[\\d.]+/g).map(Number); return { c: m.slice(0, 3), a: m[3] ?? 1 }; };
  const light = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
  const ground = e => { for (; e; e = e.parentElement) { const p = parse(getComputedStyle(e).backgroundColor); if (p.a > .99) return p.c; } return [255, 255, 255]; };
  const wrong = new Set();
  for (const e of document.querySelectorAll('.mx-explorer *')) {
    if (!e.checkVisibility({ visibilityProperty: true }) || e.closest('svg, canvas, :disabled')) continue;
    const own = [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.textContent.replaceAll('\\u200b', '').trim()).join('');
    if (!own || e.closest('.mx-stage') && !e.closest('button, .mx-message')) continue;
    if (/^[●▲■◆]$/.test(own)) continue;  // a sign, of which 3 is asked
    const s = getComputedStyle(e), a = light(parse(s.color).c), b = light(ground(e));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05), large = parseFloat(s.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5)) wrong.add(`${ratio.toFixed(2)} ${e.className} ${own.slice(0, 40)} ${s.color} on ${ground(e)}`);
  }
  return [...wrong];
}"""

# A ground that belongs to the other theme.
PATCHES = """theme => {
  const wrong = new Set();
  for (const e of [document.body, ...document.querySelectorAll('.mx-explorer, .mx-explorer *')]) {
    if (!e.checkVisibility({ visibilityProperty: true })) continue;
    const r = e.getBoundingClientRect();
    const [red, green, blue, alpha = 1] = getComputedStyle(e).backgroundColor.match(/[\\d.]+/g).map(Number);
    if (alpha < .5 || r.width * r.height < 400 || e.matches('.mx-action, .mx-play, .mod-primary, .progress-bar, .noUi-connect')) continue;
    if (theme === 'dark' ? red + green + blue > 300 : red + green + blue < 500) wrong.add(`${e.tagName} ${e.className}`);
  }
  return [...wrong];
}"""


def every_size(app: Explorer, stage: str) -> list[str]:
    """What is wrong in this stage, at any size, in either theme."""
    found = []
    for width, height in SIZES:
        app.page.set_viewport_size({"width": width, "height": height})
        settled(app.plane)
        found += [f"{stage}, {width} x {height}: {one}" for one in app.page.evaluate(MISPLACED)]
    app.page.set_viewport_size({"width": 1280, "height": 720})
    for theme in THEMES:
        to_theme(app, theme)
        found += [f"{stage}, {theme}: pale {one}" for one in app.page.evaluate(PALE)]
        found += [f"{stage}, {theme}: patch {one}" for one in app.page.evaluate(PATCHES, theme)]
    return found


def to_theme(app: Explorer, theme: str) -> None:
    """Press the switch until the page is in this theme by choice."""
    switch = app.page.locator(".mx-theme")
    for _ in range(3):
        if switch.get_attribute("data-choice") == theme:
            return
        switch.click()
    raise AssertionError(f"the switch never came to {theme}")


def test_nothing_is_out_of_sight_or_in_the_way(page: Page, voila_server: server.Server) -> None:
    app = Explorer(page).visit(voila_server.url)
    wrong = every_size(app, "empty")
    app.preset("Alternating circle")
    app.expect_points(20)
    wrong += every_size(app, STAGES[0])
    app.press(STAGES[1])
    wrong += every_size(app, "2 Train, at its start")
    app.press("Step × n")
    expect(app.where).to_have_text("step 100 of 100")
    app.press("Jump to the exact solution")
    expect(app.where).to_have_text("step 0 of 0")
    wrong += every_size(app, STAGES[1])
    for stage in STAGES[2:]:
        app.press(stage)
        expect(page.get_by_role("tab", selected=True)).to_have_text(stage)
        if stage == STAGES[2]:
            app.press("Step × n")
            expect(app.where).to_have_text("step 100 of 100")
        wrong += every_size(app, stage)
    assert wrong == []


@pytest.mark.parametrize("style", [
    ".mx-side {margin-top: 200px;}", ".mx-tool {margin-top: -9px;}", ".mx-where {color: #bbb;}",
    ".mx-screen {height: 1200px !important;} .mx-explorer {height: 1200px !important;}",
    ".mx-stage {aspect-ratio: 2 !important;}", ".mx-palette {display: none !important;}",
    ".mx-transport {background: #fff;}",
])  # fmt: skip
def test_each_of_these_breaks_is_seen(page: Page, voila_server: server.Server, style: str) -> None:
    """What finds nothing wrong in the test above can find it."""
    app = Explorer(page).visit(f"{voila_server.url}?theme=dark")
    look = [page.evaluate(MISPLACED), page.evaluate(PALE), page.evaluate(PATCHES, "dark")]
    assert look == [[], [], []]
    page.add_style_tag(content=style)
    settled(app.plane)
    assert page.evaluate(MISPLACED) + page.evaluate(PALE) + page.evaluate(PATCHES, "dark")


def test_the_theme_follows_the_system_and_a_choice_is_remembered(
    page: Page, voila_server: server.Server
) -> None:
    theme = "document.querySelector('.mx-explorer').dataset.theme"
    page.emulate_media(color_scheme="dark")
    app = Explorer(page).visit(voila_server.url)
    assert page.evaluate(theme) == "dark"
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"{theme} === 'light'")
    to_theme(app, "dark")
    assert page.evaluate(theme) == "dark"
    page.reload()
    app.ready()
    assert page.evaluate(theme) == "dark"


def test_f_presents_and_escape_ends_it_but_not_while_one_types(
    page: Page, voila_server: server.Server
) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    app = Explorer(page).visit(voila_server.url)
    before = app.box()["height"]
    page.get_by_label("seed").focus()
    page.keyboard.press("f")
    page.keyboard.press("Escape")
    assert app.box()["height"] == before
    page.locator(".mx-tab").first.focus()
    page.keyboard.press("f")
    expect(page.locator(".mx-presets")).to_be_hidden()
    settled(app.plane)
    assert app.box()["height"] > before + 40
    assert page.evaluate(MISPLACED) == ["not in sight: .mx-tabs", "not in sight: .mx-palette"]
    page.keyboard.press("Escape")
    expect(page.locator(".mx-presets")).to_be_visible()
