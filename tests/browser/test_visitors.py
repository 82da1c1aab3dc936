"""Two visitors at once: each has points, a network and a clock of their own; and their game."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from explorer.serve import server
from tests.browser.steps import NEGATIVE, Explorer, know_the_marks


def test_two_visitors_never_see_each_other(
    new_page: Callable[..., Page], voila_server: server.Server
) -> None:
    pages = [new_page(), new_page()]
    for page in pages:  # both kernels start at once
        know_the_marks(page)
        page.goto(f"{voila_server.url}?theme=dark", wait_until="commit")
        page.locator(".mx-opening-own").click()  # at once: before it has been played
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
    expect(two.where).to_have_text("step 1")
    one.wait_for_step(one.step() + 50)
    one.expect_points(4)
    two.expect_points(1)
    expect(two.where).to_have_text("step 1")
    they_play_by_links(one, two)


def they_play_by_links(asking: Explorer, guesser: Explorer) -> None:
    page, there = asking.page, guesser.page
    asking.press("Pause")
    asking.press("1 Draw")
    asking.preset("XOR")
    asking.press("Play")
    asking.wait_for_step(500)
    asking.press("Pause")
    asking.fold("Share")
    asking.press("Hide these points")
    challenge = page.get_by_label("Challenge to give away")
    expect(challenge).to_have_value(re.compile(r"/\?theme=dark#mxc1\."))
    reveal = page.get_by_label("Reveal to keep until the guess").input_value()

    there.goto("about:blank")  # a new page, not a new hash
    there.goto(challenge.input_value(), wait_until="commit")
    hand_in = there.get_by_role("button", name="Hand in my guess")
    expect(hand_in).to_be_visible()
    expect(there.locator("html")).to_have_attribute("data-theme", "dark")
    guesser.expect_points(0)
    guesser.click((0.4, 0.4))
    guesser.expect_points(1)
    hand_in.click()
    guess = there.get_by_label("Your guess, to send")
    expect(guess).to_have_value(re.compile("^mx1"))
    there.get_by_label("Paste the reveal").fill(reveal)
    there.get_by_role("button", name="Reveal", exact=True).click()
    rows = there.locator(".mx-score-row")
    expect(rows).to_have_count(3)  # both players, and the computer
    page.get_by_label("Paste their guess").fill(guess.input_value())
    page.get_by_role("button", name="Score it").click()
    scores = page.locator(".mx-score-row")
    expect(scores).to_have_count(2)
    assert scores.locator("b").all_inner_texts() == rows.locator("b").all_inner_texts()[:2]
