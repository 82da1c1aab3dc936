"""By touch: a tap adds, a swipe sprays, and the page stays where it is meanwhile."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from explorer.serve import server
from tests.browser.known_curve import corners, prior_of
from tests.browser.steps import NEAR_KKT, NEGATIVE, Explorer, Place, drag_by_finger, on_plane
from tests.browser.test_triangle import the_handle_is_dragged_by_touch

SWIPE = ((0.3, 0.9), (0.3, 0.2))  # upward, as one scrolls a page down
MOVES = 5
SCROLLED = """e => {
  let sum = 0;
  for (; e; e = e.parentElement) sum += e.scrollTop;
  return sum;
}"""


def test_tap_adds_swipe_sprays_and_forbids(touch_page: Page, voila_server: server.Server) -> None:
    app = Explorer(touch_page).visit(voila_server.url)
    touch_page.touchscreen.tap(*app.at((0.6, 0.4)))
    app.expect_points(1)
    app.button(NEGATIVE).tap()
    app.plane.scroll_into_view_if_needed()
    before = app.plane.evaluate(SCROLLED)
    swipe(app, *SWIPE)
    app.expect_points(2 + MOVES)
    assert app.plane.evaluate(SCROLLED) == before

    app.button("Undo").tap()  # one gesture, one undo
    app.expect_points(1)
    app.button("Redo").tap()
    app.expect_points(2 + MOVES)

    app.button("Move").tap()
    swipe(app, (0.6, 0.4), (0.8, 0.2))
    app.button("Share").tap()
    points = app.points()
    assert [y for *_, y in points] == [1] + [-1] * (1 + MOVES)
    assert all(
        abs(got - wanted) < 0.02
        for got, wanted in zip(points[0][:2], on_plane((0.8, 0.2)), strict=True)
    )
    app.button("Erase").tap()
    swipe(app, *SWIPE)
    app.expect_points(1)
    app.button("Share").tap()
    a_word_is_explained_at_a_touch(app)
    app.button("5 Landscape").tap()
    the_handle_is_dragged_by_touch(touch_page)
    a_curve_is_drawn_by_touch(app)
    points_are_forbidden_by_touch(app)


def points_are_forbidden_by_touch(app: Explorer) -> None:
    touch_page = app.page
    app.button("1 Draw").tap()
    expect(touch_page.locator(".mx-tab[aria-selected=true]")).to_have_text("1 Draw")
    app.preset("Two points")
    app.button("2 Train").tap()
    app.button("Jump to the exact solution").tap()
    expect(app.verdict).to_contain_text(NEAR_KKT)
    app.button("4 Explain").tap()
    app.button("Reveal the points").wait_for()
    app.plane.scroll_into_view_if_needed()
    before = app.plane.evaluate(SCROLLED)
    swipe(app, (0.2, 0.5), (0.4, 0.5))
    expect(app.verdict).to_contain_text("Without a point in the strip")
    disc = "() => document.querySelector('.mx-plane canvas').mxFrame.disc?.data"
    touch_page.wait_for_function(f"() => Math.abs(({disc})()[0] + 0.2) < 0.01")
    assert app.plane.evaluate(SCROLLED) == before
    wide = touch_page.evaluate(disc)[2]
    app.button("Wider").tap()
    touch_page.wait_for_function(f"wide => ({disc})()[2] > wide", arg=wide)
    app.button("Allow points again").tap()
    expect(app.verdict).not_to_contain_text("Without a point in the strip")


def a_curve_is_drawn_by_touch(app: Explorer) -> None:
    app.button("3 Attack").tap()
    app.unfold_settings()
    prior_of(app).select_option(label="a drawn curve")
    expect(app.page.locator(".mx-plane .mx-pad-hint")).to_contain_text("Draw the curve")
    app.plane.scroll_into_view_if_needed()
    before = app.plane.evaluate(SCROLLED)
    swipe(app, *SWIPE)
    expect(app.button("Draw anew")).to_be_visible()
    assert app.plane.evaluate(SCROLLED) == before
    corners(app, lambda k: k == 2)  # a finger's straight line has no corner between


def swipe(app: Explorer, start: Place, end: Place) -> None:
    """One finger along a line of the plane."""
    drag_by_finger(app.page, app.at(start), app.at(end), MOVES)


def a_word_is_explained_at_a_touch(app: Explorer) -> None:
    touch_page = app.page
    assert touch_page.evaluate("matchMedia('(pointer: coarse)').matches"), "it knows no mouse"
    app.preset("Alternating circle")
    app.button("2 Train").tap()
    app.button("Jump to the exact solution").tap()
    term = touch_page.locator(".mx-headline .mx-term", has_text="KKT point")
    card = touch_page.locator(".mx-term-card")
    term.tap()
    expect(card).to_be_visible()
    assert card.inner_text() == term.evaluate("e => e.ariaDescription")
    touch_page.locator(".mx-title").tap()
    expect(card).to_be_hidden()
