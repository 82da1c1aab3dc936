"""What pages share: how they are shown, a sentence, a place for failures, the link back."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from html import escape
from typing import Protocol, TypeVar
from urllib.parse import parse_qs

import ipywidgets as w
from IPython import get_ipython
from IPython.display import display

from explorer.page.words.failures import failure

# Arbitrary: the explorer sends some 110 messages when it opens, and 36 a second while it plays.
MOST_WAITING = 20_000


class Showable(Protocol):
    """A page that a notebook cell shows."""

    widget: w.Widget

    def close(self) -> None:
        """Stop its work and free the widgets."""


P = TypeVar("P", bound=Showable)


class PageNotes:
    """The verdict and the failure of a page. A page puts both where it wants them."""

    def __init__(self) -> None:
        """Nothing is said yet, and the place for failures is hidden."""
        self.sentence = w.HTML()
        self.verdict = w.VBox([self.sentence]).add_class("mx-verdict")
        self.failure = w.HTML(layout=w.Layout(display="none")).add_class("mx-failed")

    def say(self, words: str, tone: str, more: str = "") -> None:
        """Show the verdict, and more of it below; tone "good", "warn", "bad" or ""."""
        rest = f"<div class='mx-verdict-more'>{escape(more)}</div>" if more else ""
        self.sentence.value = f"<div aria-live='polite'>{escape(words)}{rest}</div>"
        for known in ("good", "warn", "bad"):
            mark = self.verdict.add_class if known == tone else self.verdict.remove_class
            mark(known)

    def attempt(self, call: Callable[[], None]) -> None:
        """Call it, and show an exception, which would else appear only in the kernel's log."""
        try:
            call()
        except Exception as error:
            self.fail(error)
        else:
            self.failure.layout.display = "none"

    def fail(self, error: Exception) -> None:
        """Show an error on the page."""
        self.failure.value = escape(failure(error))
        self.failure.layout.display = ""


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


def show(before: P | None, build: Callable[[], P]) -> P:
    """Build a page and show it in this cell, in place of the one shown `before`."""
    if before is not None:
        before.close()  # widgets are never collected while open
    lose_nothing()
    made = build()
    gc.freeze()  # its many small objects stay: looking through them cost 3% of the engine
    display(made.widget)
    return made


def under_voila() -> bool:
    """Return whether Voila shows the page alone: nobody runs another cell."""
    return os.environ.get("SERVER_SOFTWARE", "").startswith("voila")


def way_back() -> str:
    """Return a link to the main page if Voila serves both, in the theme of this one."""
    if not under_voila():
        return ""
    theme = parse_qs(os.environ.get("QUERY_STRING", "")).get("theme", [""])[0]
    query = f"?theme={theme}" if theme in ("light", "dark") else ""
    return f"<a href='../../{query}'>← Margin Explorer</a>"
