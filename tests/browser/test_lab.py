"""The same road in a cell of JupyterLab."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.steps import NEAR_KKT, VERDICT, Explorer


def test_road_in_a_cell(page: Page, open_in_lab: Callable[[Page], None]) -> None:
    open_in_lab(page)
    app = Explorer(page).ready()
    app.draw_twelve()
    app.press("Play")
    app.wait_for_step(200)
    expect(app.verdict).to_contain_text(NEAR_KKT)
    app.press("Pause")
    expect(app.button("Play")).to_be_visible()

    app.press("3 Attack")
    app.press("Play")
    expect(app.message).to_contain_text("Finished")
    expect(app.verdict).to_contain_text(VERDICT)
