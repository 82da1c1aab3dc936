"""Whatever is asked of the server, the page asks no other host, and keeps its own policy."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from explorer.serve import server
from tests.browser.conftest import is_ours

# Each visit costs a kernel and a page: every name that a query may have, several at once.
QUERIES = (
    "template=reveal&voila-template=reveal&theme=reveal",
    "theme=dark&template=nothing&template=classic&classic-tree=true",
)


@pytest.mark.parametrize("query", QUERIES)
def test_no_query_makes_the_page_ask_another_host(
    page: Page, small_server: server.Server, query: str
) -> None:
    """A query chooses no notebook: one button stands for the app, whose pages are all watched."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{small_server.url}?{query}")
    page.get_by_role("button", name="Hello").wait_for()
    expect(page.locator("#loading")).to_have_count(0)
    assert asked and [url for url in asked if not is_ours(url)] == []


def test_the_policy_stops_what_a_page_would_ask_of_another_host(
    browser: Browser, voila_server: server.Server
) -> None:
    page = browser.new_page()  # unwatched: even a request that is stopped counts as one
    page.goto(f"{voila_server.url}nothing")
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
