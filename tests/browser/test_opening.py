"""The opening: a picture that moves before the kernel is there, and a page that goes on from it."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from explorer.serve.server import Server
from tests.browser.steps import Explorer, settled
from tests.browser.test_room import the_ready_run_has_room_and_to_present_makes_it_more

STARTED = "name => performance.getEntriesByName(name)[0]?.startTime ?? -1"


def played(page: Page) -> Page:
    """Wait until the live page has taken over."""
    page.locator(".lm-Widget.mx-app").wait_for(state="attached")
    expect(page.locator("#opening")).to_have_count(0)
    return page


def test_a_picture_moves_until_the_page_goes_on_with_two_marks_that_never_come_again(
    page: Page, voila_server: Server
) -> None:
    a_picture_moves_before_the_kernel_is_there_and_the_page_goes_on_from_its_end(page, voila_server)
    two_marks_at_the_first_drawing_and_never_again(page, voila_server)


def a_picture_moves_before_the_kernel_is_there_and_the_page_goes_on_from_its_end(
    page: Page, voila_server: Server
) -> None:
    page.goto(voila_server.url, wait_until="commit")
    told = page.locator(".mx-opening-title")
    expect(told).to_contain_text("of 20")  # a count of the run itself
    seen = told.inner_text()
    expect(told).not_to_have_text(seen)  # it moves
    last = page.evaluate(
        """() => new Promise(done => {
             const read = () => document.querySelector('.mx-opening-title');
             let words = '';
             const look = () => {
               if (!read()) return done(words);
               words = read().innerText;
               requestAnimationFrame(look);
             };
             look();
           })"""
    )
    first, live = (page.evaluate(STARTED, name) for name in ("mx-first-picture", "mx-live"))
    assert 0 < first < live
    app = Explorer(page)
    app.expect_points(20)
    expect(app.verdict).to_contain_text(last)  # the very state


OVER = """() => {
  const over = (a, b) =>
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const box = (q) => document.querySelector(q).getBoundingClientRect();
  return over(box('.mx-mark-box'), box('.mx-headline'));
}"""


# A hand that presses the button as soon as it is there: before the script that plays has come.
EARLY = """new MutationObserver((_, watch) => {
  const own = document.querySelector('.mx-opening-own');
  if (!own) return;
  watch.disconnect();
  own.click();
}).observe(document, {subtree: true, childList: true})"""


def a_click_ends_it_at_its_last_frame(page: Page, voila_server: Server) -> None:
    """At a first visit: test_stages.py."""
    page.goto(voila_server.url, wait_until="commit")
    expect(page.locator(".mx-opening-title")).to_contain_text("of 20")
    page.locator(".mx-opening-now").click()
    Explorer(played(page)).expect_points(20)
    expect(page.locator(".mx-mark-box")).to_have_count(0)


def two_marks_at_the_first_drawing_and_never_again(page: Page, voila_server: Server) -> None:
    """On the page that goes on from the opening, and at the next visit, ended before it plays."""
    mark, app = page.locator(".mx-mark-box"), Explorer(played(page))
    expect(mark).to_have_count(0)  # the verdict is read first, and it is of another stage
    the_ready_run_has_room_and_to_present_makes_it_more(app)
    expect(mark).to_have_count(0)
    app.press("1 Draw")
    settled(app.plane)
    expect(mark).to_have_count(0)  # nor beside a trained network
    app.press("Clear")
    for k in (1, 2):
        expect(mark).to_contain_text(f"{k} of")
        assert not page.evaluate(OVER)
        mark.get_by_role("button").click()
    expect(mark).to_have_count(0)
    app.press("Undo")
    app.expect_points(20)
    played_again_over_a_page_that_stays(page, app)
    page.add_init_script(EARLY)
    page.goto(voila_server.url, wait_until="commit")
    Explorer(played(page)).expect_points(0)
    expect(mark).to_have_count(0)


# On a large screen the plane of the opening lies over that of the page.
LARGE = {"width": 1920, "height": 1080}
SAME = """() => {
  const planes = [...document.querySelectorAll('.mx-stage')];
  const [one, other] = planes.map(e => e.getBoundingClientRect());
  return Math.abs(one.left - other.left) + Math.abs(one.width - other.width) < 3;
}"""


def played_again_over_a_page_that_stays(page: Page, app: Explorer) -> None:
    app.press("2 Train")
    stage = '#opening .mx-tab[data-scene="attack"]'
    for ending in (".mx-opening-now", stage, ".mx-opening-own"):
        page.get_by_role("button", name="Help").click()
        page.get_by_role("button", name="Play the opening again").click()
        expect(page.locator(".mx-opening-title")).not_to_be_empty()
        small = page.viewport_size
        page.set_viewport_size(LARGE)
        page.wait_for_function(SAME)
        page.set_viewport_size(small)
        page.locator(ending).click()
        expect(page.locator("#opening")).to_have_count(0)
        app.expect_points(0 if ending == ".mx-opening-own" else 20)
        if ending == stage:
            expect(page.locator(".mx-tab.now")).to_contain_text("Attack")
    page.keyboard.press("Escape")
    app.press("Undo")
    app.expect_points(20)
