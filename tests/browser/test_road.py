"""The road by mouse: draw, train, attack, read the verdict; and time, back and forth."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from explorer.serve import server
from tests.browser.steps import (
    BLUE,
    NEAR_KKT,
    ORANGE,
    POSITIVE,
    SPRAYED,
    STROKE,
    VERDICT,
    Explorer,
    kernel_address,
    leave_opening,
    on_plane,
)
from tests.serve.visits import within

LATE = (0.35, 0.3)

WATCH_STEPS = """transport => {
  window.steps = [];
  const note = () => {
    const step = transport.innerText.match(/step ([\\d,]+)/);
    if (step) window.steps.push(Number(step[1].replaceAll(',', '')));
  };
  const all = {subtree: true, childList: true, characterData: true};
  new MutationObserver(note).observe(transport, all);
}"""


def test_mouse_draws_trains_attacks_reads_the_verdict_and_goes_back_in_time(
    page: Page, voila_server: server.Server
) -> None:
    app = Explorer(page).visit(voila_server.url)
    app.draw_twelve()
    app.fold("Share")
    assert_points(app, [*((p, 1) for p in BLUE), *((p, -1) for p in (*ORANGE, *stroke()))])

    app.press("Play")
    app.wait_for_step(50)
    page.locator(".mx-transport").evaluate(WATCH_STEPS)
    app.press(POSITIVE)
    app.click(LATE)
    app.expect_points(13)
    app.wait_for_step(app.step() + 500)  # more than a slow machine draws in one frame
    onward = page.evaluate("window.steps")
    assert len(onward) > 2 and onward == sorted(onward)  # a point more, and it trains on
    app.press("Undo")  # brings back points and network, as they were
    app.expect_points(12)
    page.wait_for_function("() => steps.some((step, at) => at > 0 && step < steps[at - 1])")
    app.press("Redo")
    app.expect_points(13)
    page.evaluate("window.steps.length = 0")
    page.wait_for_function("() => steps.length > 2 && steps.at(-1) > steps[0] + 50")
    expect(app.button("Pause")).to_be_visible()  # it never stopped
    expect(app.verdict).to_contain_text(NEAR_KKT)
    app.press("Pause")
    expect(app.button("Play")).to_be_visible()
    steps = page.evaluate("window.steps")
    assert steps == sorted(steps)
    assert_points(app, [(LATE, 1)], skip=12)
    paused = app.step()

    app.press("3 Attack")
    app.press("Play")
    app.wait_for_step(2000)
    expect(app.button("Play")).to_be_visible()
    expect(app.verdict).to_contain_text(VERDICT)
    attacked = app.where.inner_text()
    app.press("2 Train")
    expect(app.where).not_to_have_text(attacked)
    assert app.step() >= paused  # the weights attacked are still there

    # A page that is left in full run: nothing of it is on the next one.
    app.press("Play")
    app.wait_for_step(app.step() + 20)
    address = kernel_address(page, voila_server)
    page.reload(wait_until="commit")
    leave_opening(page)
    app.ready()
    app.expect_points(0)
    time_goes_back_and_branches(app)
    # A busy kernel ends like an idle one; two minutes are promised.
    assert within(60, lambda: page.request.get(address).status == 404)


def time_goes_back_and_branches(app: Explorer) -> None:
    page = app.page
    app.preset("Moons")
    for end in (100, 200, 300):
        app.press("Step × n")
        expect(app.where).to_have_text(f"step {end}")

    handle = page.locator(".mx-timeline .mx-time")
    track = handle.bounding_box()
    assert track is not None
    page.mouse.move(track["x"] + track["width"] - 9, track["y"] + track["height"] / 2)
    page.mouse.down()
    page.mouse.move(track["x"] + track["width"] / 2, track["y"], steps=5)
    page.mouse.up()
    expect(app.where).to_have_text(re.compile(r"^step 1[45]\d of 300$"))
    handle.press("Home")
    expect(app.where).to_have_text("step 0 of 300")

    app.press("Branch")
    expect(app.branches()).to_have_count(2)
    app.press("Step × n")
    expect(app.where).to_have_text("step 100")
    app.branches().nth(0).click()
    expect(app.where).to_have_text("step 0 of 300")
    app.branches().nth(1).click()
    expect(app.where).to_have_text("step 100")


def stroke() -> list[tuple[float, float]]:
    """Where the stroke leaves its points."""
    (x, y), (end, _) = STROKE
    return [(x + i * (end - x) / (SPRAYED - 1), y) for i in range(SPRAYED)]


def assert_points(app: Explorer, wanted: list[tuple], skip: int = 0) -> None:
    """The page holds these points, each where the mouse was to a pixel, and of its class."""
    got = app.points()[skip:]
    assert [y for *_, y in got] == [label for _, label in wanted]
    for (x1, x2, _), (place, _) in zip(got, wanted, strict=True):
        assert (x1, x2) == pytest.approx(on_plane(place), abs=0.01)
