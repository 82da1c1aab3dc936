"""The hall attacks: a teacher's page and two phones, from the code to the truth."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from explorer.serve.network import address_on_network
from explorer.serve.server import Server
from tests.browser.steps import Explorer, barriers

OWN = "This page's network"
PHONE = {"width": 390, "height": 844}


def test_two_phones_attack_and_all_see_the_truth(
    app: Explorer,
    new_page: Callable[..., Page],
    voila_server: Server,
    console_errors: list[str],
) -> None:
    page = app.page
    app.preset("XOR")
    app.press("2 Train")
    app.press("Jump to the exact solution")
    expect(app.where).to_have_text("exact")
    app.fold("Share")
    begin, link = (app.button(name).bounding_box() for name in ("Let the hall attack", "Copy link"))
    assert begin and link and begin["y"] < link["y"], "a class comes first"
    page.get_by_label("Which network the hall attacks").select_option(label=OWN)
    app.press("Let the hall attack")
    hall = page.get_by_role("dialog", name="The hall attacks")
    code = hall.locator(".mx-hall-code")
    let_phones_in(hall, voila_server)
    expect(code).to_have_text(re.compile("^[A-Z]{4}$"))
    assert barriers(page) == []
    assert whole(hall)

    phones = [new_page(viewport=PHONE, has_touch=True, is_mobile=True) for _ in range(2)]
    for phone in phones:
        phone.goto(f"{voila_server.url}hall")
        phone.get_by_label("Code of the round").fill(code.inner_text().lower())
        phone.get_by_role("button", name="Join").click()
    first, second = phones
    for at in ((0.285, 0.23), (0.7, 0.7)):  # the first on a point of the set
        tap(first, at)
    tap(second, (0.5, 0.5))
    expect(hall.get_by_role("status").filter(has_text="phones")).to_have_text("2 phones, 3 taps")
    legend = hall.locator(".mx-hall-key > span")
    expect(legend).to_have_count(1)  # of a tap
    first.get_by_role("button", name="Take the last back").click()
    expect(hall.get_by_role("status").filter(has_text="phones")).to_have_text("2 phones, 2 taps")
    first.get_by_label("A name for the board").fill("<i>Ann</i>")
    assert barriers(first) == []

    # A phone without a network keeps its taps, and the page can be loaded again.
    second.context.set_offline(True)
    tap(second, (0.25, 0.25))
    expect(second.locator("#status")).to_contain_text("No network")
    second.context.set_offline(False)
    assert all("DISCONNECTED" in error for error in console_errors)
    console_errors.clear()
    expect(hall.get_by_role("status").filter(has_text="phones")).to_have_text("2 phones, 3 taps")
    second.reload()
    expect(second.locator("#count")).to_have_text("2 of 20 taps")

    hall.get_by_role("button", name="The machine's claims").click()
    expect(first.locator("#title")).to_have_text("The machine claims")
    expect(hall.locator(".mx-hall-qr")).to_be_hidden()  # nobody can tap any more
    assert high(code) >= 48, "who comes late is in for the next round"
    expect(hall.locator(".mx-hall-score th small").last).to_have_text("2 phones, 3 taps")
    tap(first, (0.6, 0.6))  # too late
    hall.get_by_role("button", name="Where a point must be").click()
    expect(first.locator("#title")).to_have_text("Here a point must be")
    hall.get_by_role("button", name="Reveal the points").click()
    expect(hall.get_by_role("button", name="Close")).to_be_visible()
    expect(hall.locator(".mx-hall-score td")).to_have_count(4)  # of machine, hall, chance and proof
    expect(legend.first).to_be_hidden()  # the marks stand in these rows
    lines = "e => e.clientHeight / parseFloat(getComputedStyle(e).lineHeight)"
    assert hall.locator("h2").evaluate(lines) < 2.5, "more than two lines"
    expect(first.locator("#key > span")).to_have_count(3)
    assert whole(hall)
    for phone in phones:
        expect(phone.locator("#score")).to_have_text(re.compile(r": \d+ of 20$"))
    expect(first.locator("#count")).to_contain_text("The machine")
    rule = first.locator("#how").inner_text()
    assert rule and rule in hall.locator(".mx-hall-said[role=status]").inner_text(), "one rule"
    before_round = first.locator("#plane").bounding_box()
    expect(hall.locator(".mx-hall-best span")).to_have_text(["iAnni"])  # the other has none
    second.close()

    # The phone goes on with the next round by itself, with no tap of the one before.
    before = code.inner_text()
    hall.get_by_label("Which network comes next").select_option("moons")
    hall.get_by_role("button", name="Next round").click()
    expect(first.locator("#count")).to_have_text("0 of 24 taps")
    expect(first.locator("#network")).to_contain_text("Round 2")
    expect(first.locator("#ask")).to_be_visible()
    assert first.locator("#plane").bounding_box() == before_round, "no act moves it under the hand"
    expect(code).to_have_text(before)
    assert whole(hall)
    tap(first, (0.3, 0.3))
    first.get_by_role("button", name="Fewer").click()
    expect(hall.locator(".mx-hall-count")).to_have_text("2 phones, 1 tap")  # as before
    expect(hall.locator(".mx-hall-bars > div").last).to_have_text("Fewer1")
    assert high(code) >= 48 and whole(hall), "it is read from the last row of a room"
    qr = hall.locator(".mx-hall-qr")
    assert not address_on_network() or high(qr) >= 200
    tap(first, (0.3, 0.3))
    expect(first.locator("#count")).to_have_text("0 of 24 taps")  # a tap on a cross takes it away
    hall.get_by_role("button", name="The machine's claims").click()
    hall.get_by_role("button", name="Reveal now").click()
    expect(hall.locator(".mx-hall-bars")).to_contain_text("✓")  # its answer is known
    assert whole(hall)
    hall.get_by_role("button", name="Close").click()
    expect(hall).to_be_hidden()
    expect(first.get_by_role("button", name="Enter another code")).to_be_visible()
    notice, plane = (first.locator(at).bounding_box() for at in ("#status", "#plane"))
    assert notice and plane and 0 <= notice["y"] < plane["y"], "it stands on top"
    first.close()


def whole(hall: Locator) -> bool:
    """Return whether the column beside the plane stands within the screen."""
    column = hall.locator(".mx-hall-right")
    return bool(column.evaluate("(e) => e.scrollHeight <= e.clientHeight"))


def high(part: Locator) -> float:
    """Return how many pixels high a part is; of words, their letters' size."""
    found = part.evaluate(
        "e => e.matches('canvas') ? e.clientHeight : parseFloat(getComputedStyle(e).fontSize)"
    )
    return float(found)


def let_phones_in(hall: Locator, server: Server) -> None:
    """A server of this machine alone opens a door for phones, where the machine has a network."""
    address, network = hall.locator(".mx-hall-address"), address_on_network()
    if not network:
        expect(address).to_have_text(f"{server.url.partition('//')[2]}hall")
        return
    opening = hall.get_by_role("button", name="Let phones")
    expect(
        hall.locator("button:has-text('Let phones'):visible, .mx-hall-address:visible")
    ).to_have_count(1)
    if opening.is_visible():  # not after another test of this server
        opening.click()
    expect(address).to_have_text(re.compile(f"^{re.escape(network)}:[0-9]+/hall$"))
    expect(hall.locator(".mx-hall-qr")).to_be_visible()


def tap(phone: Page, place: tuple[float, float]) -> None:
    """Tap at shares of the plane, from its left and its top."""
    box = phone.locator("#plane").bounding_box()
    assert box is not None
    phone.touchscreen.tap(box["x"] + place[0] * box["width"], box["y"] + place[1] * box["height"])
