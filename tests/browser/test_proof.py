"""The last act by a real mouse: from the opening's verdict."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from explorer.serve.server import Server
from tests.browser.steps import Explorer

SHOWN = "name => document.querySelector('.mx-plane canvas')?.mxFrame?.[name]?.shape?.[0] ?? 0"
FITTED = """() => {
  const { disc, candidates } = document.querySelector('.mx-plane canvas').mxFrame;
  return disc && candidates; // what is fitted without the disc comes with it
}"""
# The boxes of the last three names that the gauge painted: left, right, middle; null before.
NAMES = """() => {
  const pen = CanvasRenderingContext2D.prototype, real = pen.fillText;
  window.mxNames = [];
  pen.fillText = function (words, x, y) {
    if (this.canvas.closest(".mx-gauge")) mxNames.push([x, x + this.measureText(words).width, y]);
    return real.call(this, words, x, y);
  };
}"""
LEFT = re.compile(r"Without a point in the disc|No point is needed")


def drawn(page: Page, name: str) -> int:
    """How many of these the plane shows."""
    return int(page.evaluate(SHOWN, name))


# Every title that the opening has, until the page is there.
TOLD = """() => new Promise(done => {
  const all = new Set();
  const look = () => {
    const e = document.querySelector('.mx-opening-title');
    if (!e && document.querySelector('.mx-plane')) return done([...all]);
    if (e?.innerText) all.add(e.innerText);
    requestAnimationFrame(look);
  };
  look();
})"""


def test_without_motion_the_last_frame_leads_to_rings_the_truth_and_an_argument(
    new_page: Callable[..., Page], voila_server: Server
) -> None:
    page = new_page(reduced_motion="reduce")
    page.goto(voila_server.url, wait_until="commit")
    told = page.evaluate(TOLD)
    assert len(told) == 1 and "20 of 20" in told[0]
    page.locator(".lm-Widget.mx-app").wait_for(state="attached")
    expect(page.locator("#opening")).to_have_count(0)
    app = Explorer(page)
    app.button("Could they be elsewhere?").click()
    page.wait_for_function(f"name => ({SHOWN})(name) > 0", arg="places")
    assert drawn(page, "points") == 0
    reveal = app.button("Reveal the points")
    reveal.click()
    expect(app.verdict).to_contain_text(re.compile(r"\d+ of 20 points must be in their place"))
    page.wait_for_function(f"name => ({SHOWN})(name) === 20", arg="points")
    expect(app.button("Which can become two?")).to_be_visible()
    app.drag((0.9, 0.2), (0.74, 0.42))
    expect(app.verdict).to_contain_text(LEFT)
    page.wait_for_function(FITTED)
    assert drawn(page, "candidates") > 0
    gauge = page.locator(".mx-gauge .mx-chart-plot")
    expect(gauge).to_be_visible()
    width = "() => document.querySelector('.mx-plane canvas').mxFrame.disc.data[2]"
    before = page.evaluate(width)
    page.evaluate(NAMES)
    page.mouse.wheel(0, -100)
    page.wait_for_function(f"before => ({width})() > before", arg=before)
    page.wait_for_function("() => mxNames.length >= 3")
    boxes = page.evaluate("() => mxNames.slice(-3)")
    for i, (left, right, middle) in enumerate(boxes):
        for other in boxes[:i]:
            assert right < other[0] or other[1] < left or abs(middle - other[2]) >= 14
    app.button("Allow points again").click()
    expect(app.verdict).not_to_contain_text(LEFT)
    app.button("Which can become two?").click()
    page.wait_for_function(f"name => ({SHOWN})(name) === 0", arg="places")
    assert drawn(page, "points") == 20
