"""Two visitors at once: each has points, a network and a clock of their own."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from explorer.serve import server
from tests.browser.steps import NEGATIVE, Explorer, know_the_marks


def test_two_visitors_never_see_each_other(
    new_page: Callable[..., Page], voila_server: server.Server
) -> None:
    pages = [new_page(), new_page()]
    for page in pages:
        know_the_marks(page)
        page.goto(voila_server.url, wait_until="commit")  # both kernels start at once
    for page in pages:
        page.locator(".mx-opening-own").click()  # both, while it is played
    for page in pages:
        expect(page.locator("#opening")).to_have_count(0)
    one, two = (Explorer(page).ready() for page in pages)
    for i in range(5):
        place = (0.2 + 0.15 * i, 0.3)
        two.click(place)
        if i < 3:
            one.click(place)
    one.press(NEGATIVE)
    one.click((0.5, 0.8))
    one.expect_points(4)
    two.expect_points(5)

    one.press("Play")
    one.wait_for_step(50)
    expect(two.where).to_have_text("")
    two.press("Clear")
    two.expect_points(0)
    two.click((0.5, 0.5))
    two.press("Step")
    expect(two.where).to_have_text("step 1 of 1")
    one.wait_for_step(one.step() + 50)
    one.expect_points(4)
    two.expect_points(1)
    expect(two.where).to_have_text("step 1 of 1")
