"""The same road in a cell of JupyterLab."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.steps import NEAR_KKT, VERDICT, Explorer, know_the_marks
from tests.browser.test_screen import wrong_with


def test_road_in_a_cell(page: Page, open_in_lab: Callable[[Page], None]) -> None:
    know_the_marks(page)
    open_in_lab(page)
    app = Explorer(page).ready()
    expect(page.locator(".mx-play")).to_have_css("border-radius", "50%")  # Lab rounds all alike
    assert wrong_with(page, "patches") == []
    app.draw_twelve()
    app.press("Play")
    app.wait_for_step(200)
    expect(app.verdict).to_contain_text(NEAR_KKT)
    app.press("Pause")
    expect(app.button("Play")).to_be_visible()

    app.press("3 Attack")
    expect(page.locator(".mx-found > .mx-dots")).to_have_count(1)  # what is made late has its look
    app.press("Play")
    app.wait_for_step(2000)
    expect(app.verdict).to_contain_text(VERDICT)
