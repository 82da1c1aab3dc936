"""How much room things have on the screen of a projector, and how much to present gives."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from explorer.page.lessons.file import packaged_lessons
from tests.browser.steps import Explorer, settled, triangle_layout

LAPTOP = {"width": 1280, "height": 720}
SIZES = (LAPTOP, {"width": 1366, "height": 768}, {"width": 1920, "height": 1080})
CUT = """() => {
  const box = document.querySelector('.mx-numbers .mx-menu-box').getBoundingClientRect();
  const range = document.createRange();
  return [...document.querySelectorAll('.mx-numbers-list :is(dt, dd)')].filter((e) => {
    range.selectNodeContents(e);
    return range.getBoundingClientRect().right > box.right - 4;
  }).map((e) => e.textContent);
}"""


def side_of(page: Page, small: bool = False) -> float:
    """The side of the triangle of starts, as triangle.js lays it out, also in a small box."""
    box = page.locator(".mx-triangle-view").first.bounding_box()
    assert box is not None
    return triangle_layout(box["width"], box["height"], small)[0]


def plane_width(page: Page) -> float:
    """The width of the plane, in pixels."""
    box = page.locator(".mx-stage").bounding_box()
    assert box is not None
    return box["width"]


def heights(page: Page) -> list[float]:
    """Of the parts of charts that curves are drawn in, with the line of numbers below."""
    boxes = [plot.bounding_box() for plot in page.locator(".mx-side .mx-chart-plot:visible").all()]
    return [box["height"] for box in boxes if box is not None]


def the_ready_run_has_room_and_to_present_makes_it_more(app: Explorer) -> None:
    """As the opening leaves it at a first visit: test_opening.py."""
    page, wide = app.page, app.page.viewport_size
    assert wide is not None
    page.get_by_role("button", name="Numbers").click()
    for size in SIZES:
        page.set_viewport_size(size)
        assert page.evaluate(CUT) == []
    page.set_viewport_size(LAPTOP)
    page.keyboard.press("Escape")
    app.press("2 Train")
    settled(page.locator(".mx-cards"))
    before = heights(page)
    curve, stems = before
    assert curve >= 80 + 20 and stems >= 80  # the numbers of an axis take 20; stems have none
    page.get_by_role("button", name="Present").click()
    expect(page.locator(".mx-beside")).to_be_hidden()
    settled(page.locator(".mx-cards"))
    assert all(after > old for after, old in zip(heights(page), before, strict=True))
    page.keyboard.press("Escape")
    app.press("5 Landscape")
    expect(page.locator(".mx-strip-view")).to_be_visible()
    settled(page.locator(".mx-cards"))
    small = side_of(page)
    page.get_by_role("button", name="Present").click()
    settled(page.locator(".mx-cards"))
    assert side_of(page) > small and page.locator(".mx-strip-view").is_visible()
    page.get_by_role("button", name="Present").click()
    expect(page.locator(".mx-tabs")).to_be_visible()
    app.press("Runs")  # its form leaves the triangle its room, and is put away where one presents
    expect(page.locator(".mx-runs")).to_be_visible()
    settled(page.locator(".mx-cards"))
    assert side_of(page) >= 240
    page.get_by_role("button", name="Present").click()
    expect(page.locator(".mx-runs")).to_be_hidden()
    expect(page.locator(".mx-strip-view")).to_be_visible()
    page.get_by_role("button", name="Present").click()
    app.press("Runs")
    page.set_viewport_size(wide)


def test_triangle_and_plane_of_a_lesson_are_large_and_stay_so(app: Explorer) -> None:
    app.page.set_viewport_size(LAPTOP)
    the_triangle_is_large(app)
    the_plane_keeps_its_size_beside_the_weights(app)


def the_triangle_is_large(app: Explorer) -> None:
    page = app.page
    app.lesson(packaged_lessons()[5].title)
    expect(page.locator(".mx-triangle-view")).to_be_visible()
    settled(page.locator(".mx-cards"))
    assert side_of(page) >= 240
    foot, low = page.locator(".mx-starts").bounding_box(), page.locator(".mx-side").bounding_box()
    assert foot and low and foot["y"] + foot["height"] <= low["y"] + low["height"] + 1
    first = plane_width(page)
    page.locator(".mx-lesson-dot").last.click()
    expect(page.locator(".mx-start-triangle")).to_be_visible()
    settled(page.locator(".mx-cards"))
    assert plane_width(page) == first and side_of(page, small=True) >= 240
    app.leave_lesson()


def the_plane_keeps_its_size_beside_the_weights(app: Explorer) -> None:
    page, band = app.page, app.page.locator(".mx-band-card")
    app.lesson(packaged_lessons()[4].title)
    expect(band).to_be_visible()
    settled(app.plane)
    first = plane_width(page)
    assert first >= 480
    side, card = page.locator(".mx-side").bounding_box(), band.bounding_box()
    assert side and card and card["y"] >= side["y"] + side["height"]
    page.locator(".mx-lesson-dot").nth(1).click()
    expect(band).to_be_hidden()
    settled(app.plane)
    assert plane_width(page) == first
    app.leave_lesson()
