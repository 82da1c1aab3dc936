"""How certain places are, by a real mouse: the map comes and goes, and an interval is forbidden."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.steps import Explorer
from tests.browser.test_proof import FITTED, LEFT


def test_two_points_are_mapped_and_forbidden(app: Explorer) -> None:
    app.to_exact("Two points")
    the_map_is_drawn(app)
    on_a_line_an_interval_is_forbidden_by_keys(app)
    app.press("1 Draw")
    app.preset("XOR")  # a plane again, on which other tests of this page begin


def the_map_is_drawn(app: Explorer) -> None:
    app.press("4 Explain")
    card = app.page.locator(".mx-explain:not(.mx-proof)")
    app.press("How certain is a point here?")
    expect(card.locator(".mx-scale")).to_be_visible()
    app.press("Hide the map")
    expect(app.button("How certain is a point here?")).to_be_visible()
    expect(card.locator(".mx-scale")).not_to_be_visible()


def on_a_line_an_interval_is_forbidden_by_keys(app: Explorer) -> None:
    app.press("Where must a point be?")
    app.press("Reveal the points")
    app.plane.focus()
    for key in ("ArrowRight", "Shift+ArrowRight", "+", "-"):
        app.page.keyboard.press(key)
    expect(app.verdict).to_contain_text(LEFT)
    app.page.wait_for_function(FITTED)
    expect(app.said).to_contain_text(re.compile(r"no point within"))
    app.page.keyboard.press("Delete")
    expect(app.verdict).not_to_contain_text(LEFT)
    app.press("Which can become two?")
    expect(app.button("Which can become two?")).not_to_be_visible()
