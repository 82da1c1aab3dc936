"""Nothing is lost: whatever happens to page, kernel or server, the drawing comes back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from explorer.serve import server as serve
from tests.browser.faults import Wire, kernel_of, port_of, wire_to
from tests.browser.steps import NEGATIVE, POSITIVE, Explorer, leave_opening, settled

ROWS = """() => Object.keys(localStorage).filter(key => key.startsWith('mx-kept:'))
  .map(key => JSON.parse(localStorage.getItem(key))).sort((a, b) => b.time - a.time)"""


class Kept:
    """A page with a drawing that its browser keeps."""

    def __init__(self, page: Page) -> None:
        self.page, self.app = page, Explorer(page)
        self.bar: Locator = page.locator(".mx-kept")
        self.text = ""

    def draw(self, url: str) -> Kept:
        """Five points, a hundred steps; wait until the browser keeps both."""
        self.app.visit(url)
        return self.draw_here()

    def draw_here(self) -> Kept:
        """The same on a page that is there."""
        for name, x in ((POSITIVE, 0.3), (NEGATIVE, 0.7)):
            self.app.press(name)
            for y in (0.25, 0.45):
                self.app.click((x, y))
        self.app.click((0.62, 0.75))
        self.app.expect_points(5)
        self.app.press("Step × n")
        expect(self.app.where).to_have_text("step 100")
        self.text = self.kept("5 points, trained for 100 steps")
        return self

    def kept(self, words: str) -> str:
        """Wait until the browser keeps what is told so; give its text."""
        self.page.wait_for_function(f"words => ({ROWS})()[0]?.words.startsWith(words)", arg=words)
        return str(self.page.evaluate(f"({ROWS})()[0].text"))

    def kept_among(self, words: str) -> None:
        """Wait until one of the rows is told so."""
        told = f"words => ({ROWS})().some(row => row.words.startsWith(words))"
        self.page.wait_for_function(told, arg=words)

    def is_offered(self) -> Locator:
        """Wait until the drawing is offered again."""
        expect(self.bar).to_contain_text(re.compile(r"^Go on where you were at \d\d:\d\d \(5 poi"))
        return self.bar.get_by_role("button", name="Take up")

    def take_up(self) -> None:
        """Take it up: it is the same to the last bit of points and weights."""
        self.is_offered().click()
        expect(self.bar).to_be_hidden()
        self.app.expect_points(5)
        expect(self.app.where).to_have_text("step 100")
        # What was taken up is kept again, and what it took the place of as one more step to undo.
        self.page.wait_for_function(f"text => ({ROWS})()[0].text.startsWith(text)", arg=self.text)
        self.app.press("Step")
        expect(self.app.where).to_have_text("step 101")

    def says_that_the_kernel_is_gone(self) -> None:
        """Its notice has the drawing as a file; after a reload it can be taken up."""
        expect(self.bar).to_contain_text("kernel behind this page has ended")
        self.downloads()
        self.bar.get_by_role("button", name="Reload").click()
        self.take_up()

    def downloads(self) -> None:
        """The notice gives the drawing as a file."""
        with self.page.expect_download() as download:
            self.bar.get_by_role("button", name="Download").click()
        assert download.value.path().read_text() == self.text

    def click(self, place: tuple[float, float]) -> None:
        """Place a point, with the pencil where the tools are folded."""
        pencil = self.app.button("Edit the points")
        if pencil.is_visible():
            pencil.click()
        self.app.click(place)

    def click_meanwhile(self) -> None:
        """A sixth point, which comes later."""
        self.click((0.5, 0.55))

    def goes_on(self) -> None:
        """The page is still there, with what was pressed meanwhile."""
        expect(self.bar).to_be_hidden()
        self.app.expect_points(6)
        self.click((0.4, 0.6))
        self.app.expect_points(7)
        self.kept("7 points")


def test_a_drawing_is_offered_again_and_a_duplicated_tab_keeps_one_of_its_own(
    page: Page, voila_server: serve.Server
) -> None:
    drawn = Kept(page).draw(voila_server.url)
    look = page.locator(".mx-explorer:not(#opening)")
    expect(look).to_have_attribute("data-theme", "light")
    page.locator(".mx-theme").click()  # each press is seen
    expect(look).to_have_attribute("data-theme", "dark")
    drawn.page.reload(wait_until="commit")
    drawn.is_offered()
    expect(look).to_have_attribute("data-theme", "dark")  # a choice is remembered too
    covers_nothing(drawn)
    drawn.take_up()
    a_duplicated_tab_keeps_a_drawing_of_its_own(drawn)
    # Another drawing is kept beside them.
    drawn.app.press("Clear")
    drawn.app.expect_points(0)
    drawn.click((0.5, 0.5))
    drawn.kept("1 point")
    drawn.app.fold("Share")
    rows = page.locator(".mx-kept-list .mx-kept-row")
    expect(rows).to_have_count(3)
    rows.filter(has_text="8 points").get_by_role("button", name="Take up").click()
    drawn.app.expect_points(8)


def a_duplicated_tab_keeps_a_drawing_of_its_own(first: Kept) -> None:
    """The browser copies the session storage, so both tabs think of one row as theirs."""
    page = first.page
    with page.context.expect_page() as opened:
        page.evaluate("() => void window.open(location.href)")
    second = Kept(opened.value)
    second.is_offered().click()
    second.app.expect_points(5)
    for drawn, place in ((first, (0.5, 0.55)), (second, (0.4, 0.6)), (second, (0.55, 0.3))):
        drawn.click(place)
    first.kept_among("6 points")
    second.kept_among("7 points")
    for drawn, words in ((first, "6 points"), (second, "7 points")):
        drawn.page.reload(wait_until="commit")
        expect(drawn.bar).to_contain_text(words)
    first.bar.get_by_role("button", name="Take up").click()  # nobody else writes on its row now
    first.app.expect_points(6)
    for place in ((0.25, 0.75), (0.6, 0.85)):  # below a notice
        first.click(place)
    first.kept_among("8 points")
    assert len(page.evaluate(ROWS)) == 2
    second.page.close()


def covers_nothing(drawn: Kept) -> None:
    """The bar stands beside plane, headline and cards, on a wide and a narrow screen.

    While Share is open, which lists all that is kept, it waits.
    """
    parts = ".mx-headline, .mx-cards"
    for width, height in ((1280, 720), (1280, 640), (800, 1100)):
        # On a narrow screen the side scrolls as one, so what is in it may go on below the bar.
        rest = f".mx-stage, {parts if width > 900 else '.mx-side'}, .mx-transport, .mx-head"
        drawn.page.set_viewport_size({"width": width, "height": height})
        settled(drawn.bar)
        bar = drawn.bar.bounding_box()
        assert bar and bar["x"] >= 0 and bar["x"] + bar["width"] <= width
        for other in drawn.page.locator(rest).all():
            box = other.bounding_box()
            assert box, (width, height, other.get_attribute("class"))
            apart = [
                bar[at] + bar[size] <= box[at] or box[at] + box[size] <= bar[at]
                for at, size in (("x", "width"), ("y", "height"))
            ]
            assert any(apart), (width, height, other.get_attribute("class"))
        drawn.app.fold("Share")
        expect(drawn.page.locator(".mx-drawer")).to_be_visible()
        expect(drawn.bar).to_be_hidden()
        drawn.page.keyboard.press("Escape")
        expect(drawn.page.locator(".mx-drawer")).to_be_hidden()
        expect(drawn.bar).to_be_visible()


def is_kept_over_a_reload(drawn: Kept, server: serve.Server, wire: Wire) -> None:
    drawn.page.reload(wait_until="commit")
    drawn.take_up()


def is_kept_over_a_killed_kernel(drawn: Kept, server: serve.Server, wire: Wire) -> None:
    kernel_of(server).kill()
    drawn.says_that_the_kernel_is_gone()


def is_kept_over_a_killed_server(drawn: Kept, server: serve.Server, wire: Wire) -> None:
    server.process.kill()
    expect(drawn.bar).to_contain_text("The server does not answer")
    with serve.start(port=0) as again:
        wire.target = port_of(again)
        drawn.says_that_the_kernel_is_gone()
        drawn.page.goto("about:blank")


def is_kept_over_150_s_offline(drawn: Kept, server: serve.Server, wire: Wire) -> None:
    offline(drawn, wire, 150)
    drawn.says_that_the_kernel_is_gone()  # its server keeps it for 75 to 90 seconds


def offline(drawn: Kept, wire: Wire, seconds: float) -> None:
    """Take the browser off the network, click meanwhile, and come back."""
    drawn.page.context.set_offline(True)
    wire.hold()
    drawn.click_meanwhile()
    expect(drawn.bar).to_contain_text("The server does not answer")
    drawn.page.wait_for_timeout(1000 * seconds)
    drawn.page.context.set_offline(False)
    wire.free()


@pytest.fixture
def site() -> Iterator[tuple[serve.Server, Wire]]:
    """A server of one's own, and the line to it; name it before the page, which goes first."""
    with serve.start(port=0) as server, wire_to(server) as wire:
        yield server, wire


FAULTS = {
    "reload": is_kept_over_a_reload,
    "kernel kill": is_kept_over_a_killed_kernel,
    "server restart": is_kept_over_a_killed_server,
    "150 s offline": is_kept_over_150_s_offline,
}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_drawing_is_kept_over_all_faults(
    new_page: Callable[..., Page], console_errors: list[str]
) -> None:
    kept = []
    for name, is_kept in FAULTS.items():
        with serve.start(port=0) as server, wire_to(server) as wire:
            page = new_page()
            try:
                is_kept(Kept(page).draw(wire.url), server, wire)
                kept.append(name)
            except AssertionError as error:
                print(f"{name}: {error}")
            page.close()
    print(f"drawing kept over {', '.join(FAULTS)}: {len(kept)} of {len(FAULTS)}")
    console_errors.clear()  # the console notes every request that failed
    assert kept == list(FAULTS)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [8, 40])
def test_a_page_goes_on_after_a_while_offline(
    site: tuple[serve.Server, Wire], page: Page, seconds: int, console_errors: list[str]
) -> None:
    drawn = Kept(page).draw(site[1].url)
    offline(drawn, site[1], seconds)
    drawn.goes_on()
    console_errors.clear()


@pytest.mark.slow
def test_a_page_goes_on_after_its_kernel_was_stopped_for_30_s(
    site: tuple[serve.Server, Wire], page: Page
) -> None:
    drawn = Kept(page).draw(site[1].url)
    page.context.add_cookies([{"name": "_xsrf", "value": "2|a%3Db", "url": site[1].url}])
    asked = []
    page.on("request", lambda r: "api/kernels/" in r.url and asked.append(r.headers))
    kernel = kernel_of(site[0])
    kernel.suspend()
    drawn.click_meanwhile()
    expect(drawn.bar).to_contain_text("Busy")
    assert {headers.get("x-xsrftoken") for headers in asked} == {"2|a=b"}, "what a hub asks for"
    page.wait_for_timeout(30_000)
    drawn.app.expect_points(5)
    kernel.resume()
    drawn.goes_on()


@pytest.mark.slow
def test_a_drawing_is_kept_in_jupyterlab(
    page: Page, lab_server: serve.Server, open_in_lab: Callable[[Page], None]
) -> None:
    """Over a killed kernel, which JupyterLab starts anew, and over a reload of the page."""
    open_in_lab(page)
    drawn = Kept(page)
    drawn.app.ready()
    drawn.draw_here()
    kernel_of(lab_server).kill()
    expect(drawn.bar).to_contain_text("kernel behind this page has ended")
    expect(drawn.bar).to_contain_text("Run the cell again")
    page.locator(".jp-Dialog button", has_text="Ok").click()
    drawn.downloads()
    run_again(page)
    drawn.take_up()
    page.once("dialog", lambda dialog: dialog.accept())  # JupyterLab's own question
    open_in_lab(page)
    drawn.is_offered()


def run_again(page: Page) -> None:
    """Run the cell of the notebook once more, which replaces the page."""
    old = page.locator(".mx-app").element_handle()
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    assert old is not None
    old.wait_for_element_state("hidden")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["membership", "digits"])
def test_further_pages_say_when_their_kernel_has_ended(
    site: tuple[serve.Server, Wire], page: Page, name: str, console_errors: list[str]
) -> None:
    page.goto(f"{site[1].url}voila/render/{name}.ipynb")
    page.wait_for_function("() => window.mxWatched")
    bar = page.locator(".mx-kept")
    expect(bar).to_be_hidden()
    kernel_of(site[0]).kill()
    expect(bar).to_contain_text("kernel behind this page has ended")
    expect(bar.get_by_role("button", name="Reload")).to_be_visible()
    console_errors.clear()


@pytest.mark.slow
def test_a_page_comes_back_by_the_back_button(page: Page, voila_server: serve.Server) -> None:
    drawn = Kept(page).draw(voila_server.url)
    page.goto("about:blank")
    page.go_back(wait_until="commit")
    drawn.take_up()
    drawn.page.reload(wait_until="commit")
    drawn.is_offered()
    drawn.bar.get_by_role("button", name="No", exact=True).click()
    expect(drawn.bar).to_be_hidden()
    drawn.page.reload(wait_until="commit")
    leave_opening(drawn.page)  # nothing is offered, so it is played again
    drawn.app.ready()
    expect(drawn.bar).to_be_hidden()


KEEPS_NOTHING = "Storage.prototype.setItem = () => { throw new Error('full') }"


def a_browser_without_storage_says_so_once_and_nothing_breaks(page: Page) -> None:
    """On a page of `KEEPS_NOTHING`: test_sharing.py."""
    app = Explorer(page).start_over()
    app.click((0.3, 0.3))
    bar = page.locator(".mx-kept")
    expect(bar).to_contain_text("This browser keeps nothing")
    bar.get_by_role("button", name="Close").click()
    app.click((0.5, 0.5))
    app.expect_points(2)
    expect(bar).to_be_hidden()
    with page.expect_event("dialog") as dialog:
        page.close(run_before_unload=True)
    assert dialog.value.type == "beforeunload"
    with page.expect_event("close"):
        dialog.value.accept()
