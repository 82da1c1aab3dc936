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
LEFT = re.compile(r"Without a point in the disc|No point is needed")


def drawn(page: Page, name: str) -> int:
    """How many of these the plane shows."""
    return int(page.evaluate(SHOWN, name))


# Every step that the opening tells of, until the page is there.
TOLD = """() => new Promise(done => {
  const all = new Set();
  const look = () => {
    const e = document.querySelector('.mx-opening-step');
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
    assert len(told) == 1 and "2,000" in told[0]
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
    expect(app.button("Leave the proof")).to_be_visible()  # while the answer to a disc is sought
    app.drag((0.9, 0.2), (0.74, 0.42))
    expect(app.verdict).to_contain_text(LEFT)
    page.wait_for_function(FITTED)
    assert drawn(page, "candidates") > 0
    gauge = page.locator(".mx-proof > .mx-chart-view:not(.mx-widths) .mx-chart-plot")
    expect(gauge).to_be_visible()
    width = "() => document.querySelector('.mx-plane canvas').mxFrame.disc.data[2]"
    before = page.evaluate(width)
    page.mouse.wheel(0, -100)
    page.wait_for_function(f"before => ({width})() > before", arg=before)
    app.button("Allow points again").click()
    expect(app.verdict).not_to_contain_text(LEFT)
    app.button("Leave the proof").click()
    page.wait_for_function(f"name => ({SHOWN})(name) === 0", arg="places")
    assert drawn(page, "points") == 20
