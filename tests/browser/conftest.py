"""A real Chromium, servers to visit with it, and a guard on every page.

Every page a test opens is watched: a request to any host but our own fails the test, and so does
an error on the page's console, unless the test takes it out of `console_errors` itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from benchmarks import lab
from explorer.serve import server as serve

pytest.importorskip("playwright.sync_api")

from playwright import sync_api

from tests.browser.steps import Explorer

FLAGS = (
    "--headless",
    "--no-sandbox",  # build machines run as root, where Chromium has no sandbox
    "--disable-gpu",
    "--disable-software-rasterizer",  # no GPU in software either: nothing here draws by WebGL
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LOOPBACK = {"127.0.0.1", "localhost", "::1"}
LOCAL_SCHEMES = {"data", "blob", "about", "chrome-error", "file"}
PATIENCE_MS = 90_000  # arbitrary: for a loaded machine; nothing waits this long when all is well
PICTURE_MS = 5_000  # arbitrary
sync_api.expect.set_options(timeout=PATIENCE_MS)
# What Playwright says when what it waits for does not come: of its own, and of `expect`.
TIMEOUTS = ["TimeoutError", r"with timeout \d+ms"]
RUNS_TRIED = 6  # arbitrary: half a minute in all
WIDE = {"width": 1366, "height": 900}  # a common projector's width
TABLET = {"width": 820, "height": 1180}  # a tablet held upright, above the 800 px of the layout
# Harmless, and nothing of ours can stop it: ipywidgets hands a last message to a view that has just
# been closed.
KNOWN_NOISE = ("Cannot read properties of null (reading 'processLuminoMessage')",)
PICTURES = Path(__file__).resolve().parents[2] / "test-results"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs a browser, which may stop drawing: see CONTRIBUTING.md."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if on_a_build_machine():
                item.add_marker(pytest.mark.flaky(reruns=1, only_rerun=TIMEOUTS))


def on_a_build_machine() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    """Let the fixtures below know how the test went, for a picture of a failure."""
    report = yield
    if report.when == "setup":
        item.stash[FAILED] = report.failed
    elif report.when == "call":
        item.stash[FAILED] |= report.failed
    return report


FAILED = pytest.StashKey[bool]()


@pytest.fixture(scope="session")
def chromium_path() -> str:
    named = os.environ.get("CHROMIUM")
    for name in (named,) if named else NAMES:
        path = shutil.which(name)
        if path:
            return path
    reason = (
        f"$CHROMIUM names {named!r}, which is no program"
        if named
        else f"no Chromium: none of {', '.join(NAMES)} is here; `make test` brings one"
    )
    # On a build machine a skip would look like success.
    if on_a_build_machine():
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="package")
def browser(chromium_path: str) -> Iterator[sync_api.Browser]:
    """Closed after this folder: Playwright keeps an event loop running, and others need theirs."""
    with sync_api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=chromium_path, args=list(FLAGS))
        yield chromium
        chromium.close()


class Visitors:
    """Contexts that tests use in turn: the scripts of all pages are there, and nothing else.

    To load and compile them anew is two fifths of what it costs to open a page.
    """

    def __init__(self, browser: sync_api.Browser) -> None:
        self.browser = browser
        self.known: dict[str, list[sync_api.BrowserContext]] = {}

    def context(self, k: int, options: dict[str, object]) -> sync_api.BrowserContext:
        """That of a test's k-th visitor with these options of Playwright."""
        alike = self.known.setdefault(repr(options), [])
        if k == len(alike):
            alike.append(self.browser.new_context(**{"viewport": WIDE, **options}))
        return alike[k]


@pytest.fixture(scope="package")
def visitors(browser: sync_api.Browser) -> Visitors:
    return Visitors(browser)


@pytest.fixture(scope="package")
def voila_server() -> Iterator[serve.Server]:
    """The app as `make app` serves it. For the dark theme visit `server.url + "?theme=dark"`."""
    with serve.start(port=0) as server:
        yield server


@pytest.fixture(scope="package")
def small_server() -> Iterator[serve.Server]:
    """The server's own pages with one button in the app's place, which starts at once."""
    cells = ("import ipywidgets", "ipywidgets.Button(description='Hello')")
    with serve.start(port=0, cells=cells) as server:
        yield server


@pytest.fixture(scope="package")
def lab_server() -> Iterator[serve.Server]:
    """JupyterLab with the app's notebook; see `open_in_lab`."""
    with lab.lab_server("explorer.ipynb") as server:
        yield server


@pytest.fixture
def open_in_lab(lab_server: serve.Server) -> Callable[..., Path]:
    """Open the app's notebook in JupyterLab, with cells added to it, and run its own cell.

    Returns the folder in which it lies, as `given.ipynb`.
    """
    work = Path(lab_server.folder.name) / "work"

    def open_(page: sync_api.Page, *cells: str) -> Path:
        book = json.loads((work / "explorer.ipynb").read_text())
        first = book["cells"][0]
        book["cells"] += [
            {**first, "id": f"cell-{k}", "source": lines} for k, lines in enumerate(cells)
        ]
        (work / "given.ipynb").write_text(json.dumps(book))
        page.goto(f"{lab_server.url}lab/tree/given.ipynb?reset")
        # The kernel is named in the toolbar once it is there; before that a run is lost.
        page.locator(".jp-NotebookPanel .jp-Toolbar-kernelName", has_text="Python 3").wait_for()
        cell = page.locator(".jp-Notebook .jp-CodeCell").first
        # A run that comes before the kernel answers is lost, and the cell stays without a mark.
        for _ in range(RUNS_TRIED):
            cell.locator(".cm-content").click()
            page.keyboard.press("Shift+Enter")
            with contextlib.suppress(AssertionError):
                ran = re.compile(r"\[[*\d]+\]")
                sync_api.expect(cell.locator(".jp-InputPrompt")).to_have_text(ran, timeout=5_000)
                return work
        pytest.fail(f"JupyterLab did not run the cell, {RUNS_TRIED} times")

    return open_


@pytest.fixture
def console_errors() -> list[str]:
    """What the test's pages reported; a test that provokes an error clears it."""
    return []


@pytest.fixture
def new_page(
    request: pytest.FixtureRequest, visitors: Visitors, console_errors: list[str]
) -> Iterator[Callable[..., sync_api.Page]]:
    """A function that opens a page as a new visitor; its arguments are Playwright's for one.

    `own`: in a context that nobody used before, and nobody uses again.
    """
    requests: list[str] = []
    pages: list[sync_api.Page] = []
    owned: list[sync_api.BrowserContext] = []
    alike: Counter[str] = Counter()

    def note(asked: sync_api.Request | sync_api.WebSocket) -> None:
        requests.append(asked.url)

    def open_(own: bool = False, **options: Any) -> sync_api.Page:
        media = {name: options.pop(name) for name in MEDIA if name in options}
        size = None if "is_mobile" in options else options.pop("viewport", None)
        if own:
            context = visitors.browser.new_context(viewport=WIDE, **options)
            owned.append(context)
        else:
            context = visitors.context(alike[repr(options)], options)
            alike[repr(options)] += 1
        page = watched(context, note, console_errors)
        pages.append(page)
        if size:
            page.set_viewport_size(size)
        if media:
            page.emulate_media(**media)
        return page

    yield open_
    if request.node.stash.get(FAILED, False):
        for number, page in enumerate(pages, 1):
            if not page.is_closed():
                keep(page, f"{request.node.name}-{number}")
    for page in pages:
        forget(page, requests)
        page.context.remove_listener("request", note)
    for context in owned:
        context.close()
    assert [url for url in requests if not is_ours(url)] == [], "asked another host"
    assert console_errors == []


def watched(
    context: sync_api.BrowserContext, note: Callable[..., None], errors: list[str]
) -> sync_api.Page:
    """A visitor's page; what it and its popups ask for is noted, as are errors of its console."""
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    context.on("request", note)
    page.on("websocket", note)
    page.on("pageerror", lambda e: is_news(str(e)) and errors.append(str(e)))
    page.on("console", lambda said: is_error(said) and errors.append(said.text))
    return page


def leave(page: sync_api.Page) -> None:
    """Leave as a person does, so that the kernel is ended."""
    if not page.is_closed():
        page.goto("about:blank")
    page.context.close()


MEDIA = ("color_scheme", "reduced_motion")  # what a page can be told at any time
STORED = "cookies,local_storage,indexeddb,cache_storage,service_workers"


def forget(page: sync_api.Page, requests: list[str]) -> None:
    """Leave the context as one who was never there: all that pages stored goes."""
    context = page.context
    if not page.is_closed():
        page.goto("about:blank")
    context.set_offline(False)
    last = context.new_page()
    for other in context.pages:
        if other is not last:
            other.close()
    tools = context.new_cdp_session(last)
    for origin in {"://".join(urlsplit(url)[:2]) for url in requests if url.startswith("http")}:
        tools.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": STORED})
    last.close()


class Visit:
    """One page of the app that tests use in turn; after a failure another one is opened."""

    def __init__(self, browser: sync_api.Browser, url: str) -> None:
        self.browser, self.url = browser, url
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.app: Explorer | None = None

    def note(self, asked: sync_api.Request | sync_api.WebSocket) -> None:
        """Note what the page asks for."""
        self.requests.append(asked.url)

    def begin(self) -> Explorer:
        """Come to an empty plane."""
        if self.app is None:
            context = self.browser.new_context(viewport=WIDE)
            self.app = Explorer(watched(context, self.note, self.errors))
            self.app.visit(self.url)
        self.app.page.set_viewport_size(WIDE)
        self.app.page.emulate_media(color_scheme="light")
        return self.app.start_over()

    def beside(self) -> sync_api.Page:
        """Another page of the same visitor; who asks for it closes it."""
        assert self.app is not None
        return watched(self.app.page.context, self.note, self.errors)

    def end(self) -> None:
        """Leave the page, if there is one."""
        app, self.app = self.app, None
        if app is not None:
            leave(app.page)


@pytest.fixture(scope="package")
def visit(browser: sync_api.Browser, voila_server: serve.Server) -> Iterator[Visit]:
    made = Visit(browser, voila_server.url)
    yield made
    made.end()


@pytest.fixture
def app(request: pytest.FixtureRequest, visit: Visit) -> Iterator[Explorer]:
    """The app on an empty plane, on a page that other tests used before.

    Settings, attack, theme and storage are theirs: whoever changes those takes `page` instead.
    """
    visit.requests.clear()
    visit.errors.clear()
    try:
        made = visit.begin()
    except Exception:
        visit.end()
        raise
    yield made
    if request.node.stash.get(FAILED, False):
        keep(made.page, request.node.name)
        visit.end()
    assert [url for url in visit.requests if not is_ours(url)] == [], "asked another host"
    assert visit.errors == []


@pytest.fixture
def circle(app: Explorer) -> Explorer:
    """The same with twenty points of a circle, and the exact network for them."""
    app.to_exact("Alternating circle")
    return app


def keep(page: sync_api.Page, name: str) -> None:
    """What is on the page, and a picture of it unless the browser has stopped drawing."""
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / f"{name}.html").write_text(page.content())
    with contextlib.suppress(sync_api.TimeoutError):
        page.screenshot(path=PICTURES / f"{name}.png", timeout=PICTURE_MS)


def is_error(said: sync_api.ConsoleMessage) -> bool:
    """Whether a line of the console is an error that is not known to be harmless."""
    return said.type == "error" and is_news(said.text)


def is_news(text: str) -> bool:
    """Whether an error is not one of those that nothing of ours can stop."""
    return not any(noise in text for noise in KNOWN_NOISE)


def is_ours(url: str) -> bool:
    """Whether an address stays on this machine."""
    parts = urlsplit(url)
    return parts.scheme in LOCAL_SCHEMES or parts.hostname in LOOPBACK


@pytest.fixture
def page(new_page: Callable[..., sync_api.Page]) -> sync_api.Page:
    """A page with a mouse and a keyboard."""
    return new_page()


@pytest.fixture
def touch_page(new_page: Callable[..., sync_api.Page]) -> sync_api.Page:
    """A page that is touched: no mouse, a tablet's screen."""
    return new_page(has_touch=True, is_mobile=True, viewport=TABLET)
