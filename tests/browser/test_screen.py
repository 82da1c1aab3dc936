"""The screen: one viewport at every size, in every stage and both themes; barriers, theme, keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from explorer.serve import server
from tests.browser.steps import STAGES, Explorer, barriers, settled

SIZES = (
    (1280, 640), (1280, 720), (1366, 768), (1440, 900), (1920, 1080), (2560, 1440), (3840, 2160),
    (848, 591), (568, 631), (820, 1180), (390, 844),
)  # fmt: skip
ZOOMED = ((640, 360), (960, 540))  # screens of 1280 x 720 and 1920 x 1080 at 200%
THEMES = ("light", "dark")
SCREEN = (Path(__file__).parent / "screen.js").read_text(encoding="utf-8")


def wrong_with(page: Page, what: str) -> list[str]:
    """What one of the functions of screen.js finds, or axe-core."""
    if what == "barriers":
        return barriers(page)
    found: list[str] = page.evaluate(f"() => {{ {SCREEN}\n return {what}(); }}")
    return found


def every_size(app: Explorer, stage: str) -> list[str]:
    """What is wrong in this stage: in either theme, and, as a theme moves no box, at any size."""
    found = []
    for theme in THEMES:
        to_theme(app, theme)
        for one in wrong_with(app.page, "patches") + barriers(app.page):
            found.append(f"{stage}, {theme}: {one}")
    for width, height in SIZES:
        app.page.set_viewport_size({"width": width, "height": height})
        laid_out(app.page)
        where = f"{stage}, {width} x {height}"
        found += [f"{where}, {one}" for one in wrong_with(app.page, "misplaced")]
    return found + large_text(app, stage)


def large_text(app: Explorer, stage: str) -> list[str]:
    """What is cut with text at 200%: by the browser's zoom, and by its size of letters."""
    found = []
    for width, height in ZOOMED:  # a zoom leaves a window of half the size
        app.page.set_viewport_size({"width": width, "height": height})
        laid_out(app.page)
        where = f"{stage}, {width} x {height}"
        found += [f"{where}, {one}" for one in wrong_with(app.page, "cut")]
    app.page.set_viewport_size({"width": 2 * ZOOMED[0][0], "height": 2 * ZOOMED[0][1]})
    letters = app.page.add_style_tag(content="html {font-size: 200% !important;}")
    expect(app.page.locator(".mx-explorer")).to_have_css("zoom", "2")
    laid_out(app.page)
    found += [f"{stage}, letters of 200%, {one}" for one in wrong_with(app.page, "cut")]
    letters.evaluate("e => e.remove()")
    expect(app.page.locator(".mx-explorer")).to_have_css("zoom", "1")
    return found


def laid_out(page: Page) -> None:
    """Wait until nothing on the page has changed its box for four drawn frames."""
    page.evaluate(
        """() => new Promise(done => {
             let last = "", kept = 0;
             const look = () => {
               const parts = document.querySelectorAll(".mx-stage, .mx-card, .mx-headline, canvas");
               const now = JSON.stringify([...parts].map(e => e.getBoundingClientRect()));
               kept = now === last ? kept + 1 : 0; last = now;
               kept >= 4 ? done() : requestAnimationFrame(look);
             };
             look();
           })"""
    )


def to_theme(app: Explorer, theme: str) -> None:
    """Let the system have this theme, which the page follows."""
    app.page.emulate_media(color_scheme=theme)
    expect(app.page.locator(".mx-explorer")).to_have_attribute("data-theme", theme)


def test_nothing_is_out_of_sight_or_in_the_way_and_charts_are_large(app: Explorer) -> None:
    wrong = every_size(app, "empty")
    app.preset("Alternating circle")
    app.expect_points(20)
    wrong += every_size(app, STAGES[0])
    app.press(STAGES[1])
    app.press("Jump to the exact solution")
    expect(app.where).to_have_text("exact")
    wrong += every_size(app, STAGES[1])
    charts_have_a_least_height_and_a_large_screen_is_used(app)
    app.press(STAGES[1])
    for stage in STAGES[2:]:
        app.press(stage)
        if stage == STAGES[2]:
            expect(app.where).to_have_text(re.compile("^step 0"))
            app.press("Step × n")
            expect(app.where).to_have_text("step 100")
            app.page.keyboard.press("Escape")  # the menu stays open for more steps
        wrong += every_size(app, stage)
    assert wrong == []


BREAKS = {
    "misplaced": (
        ".mx-side {margin-top: 560px !important;}", ".mx-tool {margin-top: -9px !important;}",
        ".mx-screen, .mx-explorer {height: 1200px !important;}",
        ".mx-stage {aspect-ratio: 2 !important;}", ".mx-palette {display: none !important;}",
    ),
    "barriers": (".mx-tab {color: #444 !important;}", ".mx-title {color: #444 !important;}"),
    "patches": (
        ".mx-transport {background: #fff !important;}", "body {background: #fff !important;}",
    ),
    "cut": (
        ".mx-title {height: 9px; overflow: hidden;}",
        ".mx-card {min-width: 900px !important;}",
    ),
}  # fmt: skip


def test_what_is_looked_for_is_found_and_the_window_holds_menus_and_what_is_presented(
    app: Explorer,
) -> None:
    what_finds_nothing_wrong_would_find_it(app)
    to_theme(app, "light")
    menus_and_share_stay_in_the_window_and_are_worked_by_keys(app)
    f_presents_and_escape_ends_it_but_not_while_one_types(app)


def what_finds_nothing_wrong_would_find_it(app: Explorer) -> None:
    page = app.page
    page.set_viewport_size({"width": 1280, "height": 720})
    to_theme(app, "dark")
    laid_out(page)
    for what, styles in BREAKS.items():
        for style in styles:
            assert wrong_with(page, what) == []
            added = page.add_style_tag(content=style)
            laid_out(page)
            assert wrong_with(page, what), style
            added.evaluate("e => e.remove()")
            settled(app.plane)


HEIGHTS = "all => all.map(e => e.getBoundingClientRect().height)"
PICTURES = {"2 Train": ".mx-chart-plot", "5 Landscape": ".mx-triangle-view, .mx-strip-view"}


def charts_have_a_least_height_and_a_large_screen_is_used(circle: Explorer) -> None:
    a_large_screen_is_used_to_its_edges(circle)
    charts_have_a_least_height_and_are_larger_when_presented(circle)


def charts_have_a_least_height_and_are_larger_when_presented(circle: Explorer) -> None:
    page = circle.page
    circle.press("Step × n")
    expect(circle.where).to_have_text("step 100")
    page.keyboard.press("Escape")
    for size, most in (((1280, 640), 80), ((1280, 720), 130)):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        laid_out(page)
        heights = page.locator(".mx-cards .mx-chart-plot").evaluate_all(HEIGHTS)
        assert len(heights) == 2 and min(heights) >= 80 and max(heights) >= most
    for stage, pictures in PICTURES.items():
        circle.press(stage)
        expect(page.locator(".mx-cards").locator(pictures)).to_have_count(2)
        # What is computed late has its lines: no later word takes height from a picture.
        expect(page.locator(".mx-cards [data-item=share]:visible")).to_have_count(0)
        for size in ((1280, 720), (1920, 1080)):
            page.set_viewport_size({"width": size[0], "height": size[1]})
            sums = []
            for _ in range(2):
                laid_out(page)
                settled(page.locator(f".mx-cards :is({pictures})").first)
                heights = page.locator(f".mx-cards :is({pictures})").evaluate_all(HEIGHTS)
                sums.append(sum(heights))
                page.locator(".mx-presents:visible").click()
            assert sums[1] > sums[0], (stage, size)


def a_large_screen_is_used_to_its_edges(circle: Explorer) -> None:
    page = circle.page
    page.set_viewport_size({"width": 2560, "height": 1440})
    laid_out(page)
    plane, side = (page.locator(part).bounding_box() for part in (".mx-stage", ".mx-side"))
    assert plane and side
    assert plane["x"] < 40 and side["x"] + side["width"] > 2560 - 40
    letters = page.locator(".mx-words").first.evaluate(
        "e => parseFloat(getComputedStyle(e).fontSize) * e.currentCSSZoom"
    )
    assert letters > 18


MENUS = ".mx-head .mx-menu > button"


def menus_and_share_stay_in_the_window_and_are_worked_by_keys(app: Explorer) -> None:
    page, keys = app.page, app.page.keyboard
    for width, height in ((1280, 720), (1280, 640), (800, 1100), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        laid_out(page)
        for button in page.locator(MENUS).all():
            box = button.locator("xpath=following-sibling::*")
            button.focus()
            keys.press("ArrowDown")
            expect(box).to_be_visible()
            seen = box.bounding_box()
            assert seen and seen["x"] >= 0 and seen["x"] + seen["width"] <= width
            assert seen["y"] >= 0 and seen["y"] + seen["height"] <= height
            if width == 1280:  # all of it is in sight at once
                assert box.evaluate("e => e.scrollHeight <= e.clientHeight + 1")
            keys.press("End")
            last = box.locator("button, a").last
            if last.count():
                expect(last).to_be_focused()
            keys.press("Escape")
            expect(box).to_be_hidden()
            expect(button).to_be_focused()
    page.set_viewport_size({"width": 1280, "height": 640})
    app.button("Share").click()
    expect(page.locator(".mx-drawer")).to_be_visible()
    laid_out(page)
    wrong = wrong_with(page, "misplaced")
    assert [one for one in wrong if "mx-code" not in one] == []  # code scrolls in its own box
    keys.press("Escape")
    expect(page.locator(".mx-drawer")).to_be_hidden()
    app.button("Share").click()
    app.button("Close Share").click()
    expect(page.locator(".mx-drawer")).to_be_hidden()


def test_a_notice_leaves_by_itself_and_a_refusal_stays(
    new_page: Callable[..., Page], voila_server: server.Server
) -> None:
    """A minute later: unless the pointer is on it, or it says why a command was refused."""
    page = new_page(own=True)  # as is its clock
    page.clock.install()
    app = Explorer(page).visit(voila_server.url)
    app.press("Play")
    expect(app.message).to_contain_text("No points")
    page.clock.fast_forward(60_000)
    settled(app.message)
    expect(app.message).to_contain_text("No points")
    app.preset("Alternating circle")
    page.get_by_role("tab", name="Train").click()
    app.press("Step")
    app.click((0.5, 0.5))  # with the tools folded it adds nothing, so one undo below is enough
    app.button("Edit the points").click()
    page.locator(".mx-palette .mx-tool", has_text="■").click()
    app.click((0.5, 0.5))
    expect(app.message).to_be_visible()
    said = app.message.inner_text()
    app.message.hover()
    page.clock.fast_forward(60_000)
    settled(app.message)
    page.keyboard.press("Control+z")  # a command takes the words away, once the pointer leaves
    app.expect_points(20)
    expect(app.message).to_have_text(said)
    page.mouse.move(*app.at((0.5, 0.9)))
    page.clock.fast_forward(60_000)
    expect(app.message).to_have_text("")
    expect(app.message).to_be_hidden()


def f_presents_and_escape_ends_it_but_not_while_one_types(app: Explorer) -> None:
    page = app.page
    page.set_viewport_size({"width": 1280, "height": 720})
    settled(app.plane)
    before = app.box()["height"]
    page.get_by_role("spinbutton", name="seed").focus()
    page.keyboard.press("f")
    page.keyboard.press("Escape")
    assert app.box()["height"] == before
    page.locator(".mx-tab").first.focus()
    page.keyboard.press("f")
    expect(page.locator(".mx-presets .mx-fields")).to_be_hidden()
    settled(app.plane)
    assert app.box()["height"] > before + 40
    gone = ["not in sight: .mx-tabs", "not in sight: .mx-palette"]
    assert wrong_with(page, "misplaced") == gone
    page.keyboard.press("Escape")
    expect(page.locator(".mx-presets .mx-fields")).to_be_visible()
    page.get_by_role("button", name="Share", exact=True).click()  # what it covers is presented
    expect(page.locator(".mx-title")).to_be_hidden()
    page.locator(".mx-tab").first.focus()
    page.keyboard.press("f")
    expect(page.locator(".mx-title")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Share", exact=True).click()
    expect(page.locator(".mx-title")).to_be_visible()
