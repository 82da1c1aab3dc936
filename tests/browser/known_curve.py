"""The curve that an attacker knows is drawn on the plane: by mouse, by keys, and taken back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from tests.browser.steps import Explorer, field

CURVE = "() => document.querySelector('.mx-stage .mx-plane canvas').mxFrame.curve?.shape[0] ?? 0"
ARC = [(0.5 + 0.3 * math.cos(a / 10), 0.5 - 0.3 * math.sin(a / 10)) for a in range(0, 40)]


def corners(app: Explorer, fits: Callable[[int], bool]) -> int:
    """How many corners the curve on the plane has, once that fits."""
    for _ in range(100):
        found: int = app.page.evaluate(CURVE)
        if fits(found):
            return found
        app.page.wait_for_timeout(100)
    raise AssertionError(found)


def draw_arc(app: Explorer) -> None:
    """Press, go along an arc, let go."""
    app.page.mouse.move(*app.at(ARC[0]))
    app.page.mouse.down()
    for place in ARC[1:]:
        app.page.mouse.move(*app.at(place))
    app.page.mouse.up()


def prior_of(app: Explorer) -> Any:
    return field(app.page, "attacker knows")


def a_curve_is_drawn_for_the_attacker(app: Explorer) -> None:
    page = app.page
    app.press("3 Attack")
    page.get_by_role("button", name="KKT reconstruction").first.click()
    app.unfold_settings()
    prior_of(app).select_option(label="a drawn curve")
    hint = page.locator(".mx-plane .mx-pad-hint")
    expect(hint).to_contain_text("Draw the curve")
    app.click((0.4, 0.4))  # no curve: it is refused, and the hand may draw again
    expect(app.message).to_contain_text("too short")
    expect(hint).to_contain_text("Draw the curve")
    draw_arc(app)
    expect(app.button("Draw anew")).to_be_visible()
    first = corners(app, lambda k: k > 5)
    assert first < len(ARC), "what lies near the path is left out"
    page.get_by_role("button", name="Legend").click()
    expect(page.locator("[data-glyph=curve]")).to_be_visible()
    page.keyboard.press("Escape")

    app.press("Draw anew")  # by keys: the plane has the cursor at once
    expect(app.plane).to_be_focused()
    page.keyboard.press("Space")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Space")
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("Space")
    page.keyboard.press("Backspace")
    corners(app, lambda k: k == 2)
    page.keyboard.press("Enter")
    expect(app.button("Draw anew")).to_be_visible()
    corners(app, lambda k: k == 2)
    app.page.locator(".mx-curve").get_by_role("button", name="Undo").click()
    corners(app, lambda k: k == first)
    app.press("Draw anew")
    corners(app, lambda k: k == 0)
    page.keyboard.press("Escape")
    corners(app, lambda k: k == first)

    app.press("5 Landscape")  # it goes along
    corners(app, lambda k: k == first)
