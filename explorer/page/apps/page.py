"""What pages share: how they are shown, and the frame of those beside the explorer."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import parse_qs

import ipywidgets as w
from IPython import get_ipython
from IPython.display import display

from explorer.page.controls.access import Access
from explorer.page.controls.control import PageHead
from explorer.page.controls.remembered import Remembered
from explorer.page.job import Job
from explorer.page.keeping.browser import BrowserKeeper
from explorer.page.words.failures import failure
from explorer.style import CSS

# Arbitrary: the explorer sends some 110 messages when it opens, and 36 a second while it plays.
MOST_WAITING = 20_000


class Showable(Protocol):
    """A page that a notebook cell shows."""

    widget: w.Widget

    def close(self) -> None:
        """Stop its work and free the widgets."""


P = TypeVar("P", bound=Showable)
PLANE, LESSONS = "The plane", "Lessons"  # pages that each head leads to


class HeadStep(NamedTuple):
    """A step of a page.

    Attributes:
        key: its name.
        title: the words of its tab, its number first.
        tip: what is done there.
        part: where it stands on the page, as a selector.
    """

    key: str
    title: str
    tip: str
    part: str


class SidePage:
    """A page beside the explorer: its head, a verdict, what it shows, its failures.

    Attributes:
        question: what the page is about; it stands above the verdict.
        steps: what is done on it, in order.
        head: the way back, its name, its steps.
        asks: the jobs of the page; they end with it.
        access: what the host does not give the page.
        sentence: the verdict.
        failure: the place for failures, hidden while there is none.
        widget: all of it, once composed.
    """

    widget: w.Widget
    question = ""
    steps: tuple[HeadStep, ...] = ()

    def __init__(self, title: str) -> None:
        """Nothing is said yet on the page of this title."""
        self.asks: list[Job] = []
        self.access = Access()
        self.head = page_head(title)
        self.sentence = w.HTML()
        self.verdict = w.VBox([self.sentence]).add_class("mx-verdict").add_class("mx-headline")
        self.failure = w.HTML(layout=w.Layout(display="none")).add_class("mx-failed")

    def compose(self, body: list[w.Widget], kept: Remembered) -> None:
        """Put the page together: `body` below the verdict; `kept` outlives a reload."""
        page = w.VBox([self.verdict, *body], layout=w.Layout(overflow="visible"))
        parts = [w.HTML(CSS), self.access, BrowserKeeper(), kept, self.head, page]
        self.widget = w.VBox(parts, layout=w.Layout(overflow="visible")).add_class("mx-app")

    def done(self) -> set[str]:
        """Return the keys of the steps that are done."""
        return set()

    def say(self, words: str, tone: str, more: str = "", numbers: str = "") -> None:
        """Show the verdict, more of it below, its numbers folded; tone "good", "warn" or ""."""
        rest = f"<p class='mx-words'>{escape(more)}</p>" if more else ""
        if numbers:
            rest += (
                "<details class='mx-more'><summary>Numbers</summary>"
                f"<p class='mx-words'>{escape(numbers)}</p></details>"
            )
        title = f"<h1 class='mx-title'>{escape(words)}</h1>"
        asked = f"<p class='mx-asked'>{escape(self.question)}</p>"
        self.sentence.value = f"{asked}<div aria-live='polite'>{title}{rest}</div>"
        self.tell_steps()
        for known in ("good", "warn", "bad"):
            mark = self.verdict.add_class if known == tone else self.verdict.remove_class
            mark(known)

    def tell_steps(self) -> None:
        """Show in the head which steps are done; the first that is not, or the last, is present."""
        done = self.done()
        last = self.steps[-1].key if self.steps else ""
        now = next((step.key for step in self.steps if step.key not in done), last)
        self.head.show(now=now, stages=[
            {**step._asdict(), "state": "done" if step.key in done else "open"}
            for step in self.steps
        ])  # fmt: skip

    def tell(self, words: str) -> None:
        """Show words in place of the verdict."""
        self.say(words, "")

    def attempt(self, call: Callable[[], None]) -> None:
        """Call it, and show an exception, which would else appear only in the kernel's log."""
        try:
            call()
        except Exception as error:
            self.fail(error)
        else:
            self.tell_failure(None)

    def fail(self, error: Exception) -> None:
        """Show an error on the page."""
        self.failure.value = escape(failure(error))
        self.failure.layout.display = ""

    def tell_failure(self, error: Exception | None) -> None:
        """Show how a job failed, or that all is well."""
        if error is None:
            self.failure.layout.display = "none"
        else:
            self.fail(error)

    def close(self) -> None:
        """End the jobs and free the widgets; a second call does nothing."""
        for job in self.asks:
            job.close()
        if self.widget.comm is not None:
            self.widget.close()


def cards_of(titled: Sequence[tuple[w.Widget, w.Widget]], least: str) -> w.HBox:
    """Return views under their titles as cards, side by side where each has the `least` width."""
    cards = [
        w.VBox(list(pair), layout=w.Layout(min_width="0")).add_class("mx-card") for pair in titled
    ]
    return columns(cards, least)


def columns(boxes: Sequence[w.Widget], least: str) -> w.HBox:
    """Return boxes side by side where each has the `least` width."""
    made = w.HBox(boxes).add_class("mx-charts")
    made.layout.grid_template_columns = f"repeat(auto-fit, minmax(min(100%, {least}), 1fr))"
    return made


def key(title: str, *entries: tuple[str, str]) -> str:
    """Return a chart's title, and on a line of its own, at the chart, what each mark means."""
    marks = "".join(
        f"<span><span style='color:var(--mx-{colour})'>■</span> {escape(words)}</span> "
        for colour, words in entries
    )
    return f"{escape(title)}<div class='mx-key'>{marks}</div>"


def lose_nothing() -> None:
    """Let the kernel queue all messages of a page; call it before widgets are made.

    A kernel publishes by ZeroMQ, which drops messages beyond its high-water mark, 1000 by default.
    A page of a thousand widgets sends more than that, and on a busy machine the message that shows
    the page may be lost. Kernels of another kind are not changed.
    """
    kernel = getattr(get_ipython(), "kernel", None)
    publisher = getattr(kernel, "iopub_thread", None)
    if publisher is not None:  # its socket is not to be touched from any other thread
        publisher.schedule(lambda: setattr(publisher.socket, "sndhwm", MOST_WAITING))


class Place(NamedTuple):
    """Where a page is shown.

    Attributes:
        cell: of the notebook; "" where the host names none.
        request: to run it; "" outside of a kernel.
        deleted: cells that are gone since the last request.
    """

    cell: str = ""
    request: str = ""
    deleted: tuple[str, ...] = ()


def this_place() -> Place:
    """Return the cell that runs."""
    parent: dict[str, Any] = getattr(get_ipython(), "get_parent", dict)() or {}
    about, header = parent.get("metadata") or {}, parent.get("header") or {}
    gone = tuple(map(str, about.get("deletedCells") or ()))
    return Place(str(about.get("cellId") or ""), str(header.get("msg_id") or ""), gone)


_pages: list[tuple[type, Place, Showable]] = []


def show(kind: type[P], build: Callable[[], P], shown: bool = True) -> P:
    """Build a page and show it in this cell, in place of those of its kind that it showed before.

    A run of one cell may show several; those of other cells stay. Not `shown`, it is only built.
    """
    here = this_place()
    for one in [*_pages]:  # widgets are never collected while open
        of, place, page = one
        again = of is kind and place.cell == here.cell
        again = again and (not here.request or place.request != here.request)
        if again or place.cell in here.deleted or page.widget.comm is None:
            _pages.remove(one)
            page.close()
    lose_nothing()
    made = build()
    gc.freeze()  # its many small objects stay: looking through them cost 3% of the engine
    if shown:
        display(made.widget)
    _pages.append((kind, here, made))
    return made


def under_voila() -> bool:
    """Return whether Voila shows the page alone: nobody runs another cell."""
    return os.environ.get("SERVER_SOFTWARE", "").startswith("voila")


def theme_query(before: str = "?") -> str:
    """Return the theme that the address asks for, to go on in it; "" for none."""
    theme = parse_qs(os.environ.get("QUERY_STRING", "")).get("theme", [""])[0]
    return f"{before}theme={theme}" if theme in ("light", "dark") else ""


def page_head(title: str) -> PageHead:
    """Return the head of a page of this title; ways to others are there if Voila serves them."""
    home = f"../../{theme_query()}" if under_voila() else ""
    ways = [[home, PLANE], [f"lessons.ipynb{theme_query()}", LESSONS]] if home else []
    links = [way for way in ways if way[1] != title]
    return PageHead({}, ("mx-head",), title=title, home=home, links=links, stages=[], now="")
