"""How certain claims and places are, by a real mouse: the dots say so, the map comes and goes."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.steps import NEAR_KKT, Explorer


def test_claims_are_certified_and_the_map_is_drawn(app: Explorer) -> None:
    app.preset("Two points")
    app.press("2 Train")
    app.press("Jump to the exact solution")
    expect(app.verdict).to_contain_text(NEAR_KKT)
    app.press("3 Attack")
    app.press("Play")
    dots = app.page.locator(".mx-dots .mx-chart-foot")
    expect(dots).to_contain_text(re.compile(r"● found: 2.*✓ certified: 2"))
    app.press("5 Explain")
    card = app.page.locator(".mx-explain")
    app.press("How certain is a point here?")
    expect(card.locator(".mx-scale")).to_be_visible()
    app.press("Hide the map")
    expect(app.button("How certain is a point here?")).to_be_visible()
    expect(card.locator(".mx-scale")).not_to_be_visible()
