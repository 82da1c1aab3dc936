"""The page comes up, is readable while it waits, and says so when its kernel is gone."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Browser, Page, expect

from explorer.page.apps.digits import DigitsApp
from explorer.serve import server as serve
from tests.browser.steps import kernel_address
from tests.serve.visits import within

FIRST_CONTROL = ".jupyter-button"  # buttons and toggles alike


def test_before_scripts_are_there_pages_are_readable_and_no_page_asks_another_host(
    page: Page, browser: Browser, small_server: serve.Server, console_errors: list[str]
) -> None:
    the_policy_stops_what_a_page_would_ask_of_another_host(browser, small_server)
    # Scripts held back, the page stays as a visitor sees it first.
    page.route("**/*.js*", lambda route: route.abort())
    for theme in serve.THEMES:
        is_readable(page, small_server, theme)
        page.emulate_media(color_scheme=theme)
        shows_its_question(page, small_server, theme)
    console_errors.clear()  # the console notes the scripts held back


def shows_its_question(page: Page, small_server: serve.Server, theme: str) -> None:
    page.goto(f"{small_server.url}voila/render/digits.ipynb")
    expect(page.get_by_role("heading", name=DigitsApp.question)).to_be_visible()
    expect(page.locator("#coming")).to_have_attribute("data-theme", theme)


def is_readable(page: Page, small_server: serve.Server, theme: str) -> None:
    page.goto(f"{small_server.url}?theme={theme}")
    heading = page.get_by_role("heading", name="Margin Explorer is starting")
    expect(heading).to_be_visible()
    ink, paper = (
        page.evaluate("([e, p]) => getComputedStyle(document.querySelector(e))[p]", pair)
        for pair in (["#loading", "color"], ["body", "backgroundColor"])
    )
    brightness = [int(rgb.strip("rgba()").split(",")[0]) for rgb in (ink, paper)]
    assert abs(brightness[0] - brightness[1]) > 150
    assert (brightness[1] < 100) == (theme == "dark")


# Names that a query may have for Voila; whatever they say, the page asks no other host: `new_page`.
LEFT = {
    "close": "template=reveal&voila-template=reveal&theme=reveal",
    "reload": "theme=dark&template=nothing&template=classic&classic-tree=true",
}


def test_page_that_is_left_takes_its_kernel_with_it_and_says_when_that_has_ended(
    new_page: Callable[..., Page], small_server: serve.Server, console_errors: list[str]
) -> None:
    for leave, query in LEFT.items():
        page = new_page()
        takes_its_kernel_with_it(page, small_server, leave, query)
    says_when_its_kernel_has_ended(page, small_server)
    console_errors.clear()  # the console notes the kernel that is not found


def takes_its_kernel_with_it(
    page: Page, small_server: serve.Server, leave: str, query: str
) -> None:
    page.goto(f"{small_server.url}?{query}")
    page.get_by_role("button", name="Hello").wait_for()
    expect(page.locator("#loading")).to_have_count(0)
    address = kernel_address(page, small_server)
    asked = page.context.request  # which outlives the page
    assert asked.get(address).status == 200
    if leave == "close":
        page.close(run_before_unload=True)
    else:
        page.reload()
    # Its own farewell: idle kernels of this server are kept for 75 s, longer than we wait here.
    assert within(60, lambda: asked.get(address).status == 404)


def says_when_its_kernel_has_ended(page: Page, server: serve.Server) -> None:
    page.locator(FIRST_CONTROL).first.wait_for()
    banner = page.get_by_role("alert")
    expect(banner).to_be_hidden()
    address = kernel_address(page, server)
    ended = page.request.post(address.replace("api/kernels", "voila/api/shutdown"))
    assert ended.status == 204
    expect(banner).to_contain_text("Reload the page")


def the_policy_stops_what_a_page_would_ask_of_another_host(
    browser: Browser, server: serve.Server
) -> None:
    page = browser.new_page()  # unwatched: even a request that is stopped counts as one
    page.goto(f"{server.url}nothing")
    stopped = page.evaluate(
        """() => new Promise(done => {
             document.addEventListener('securitypolicyviolation', e => done(e.effectiveDirective));
             const script = document.createElement('script');
             script.src = 'https://elsewhere.invalid/a.js';
             document.head.append(script);
           })"""
    )
    page.close()
    assert stopped.startswith("script-src")
