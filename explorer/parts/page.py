"""What pages of their own share: a sentence, a place for failures, the way back."""

from __future__ import annotations

import os
from collections.abc import Callable
from html import escape
from urllib.parse import parse_qs

import ipywidgets as w


class Page:
    """The verdict and the failure of a page. A page puts both where it wants them."""

    def __init__(self) -> None:
        """Nothing is said yet, and the place for failures is hidden."""
        self.sentence = w.HTML()
        self.verdict = w.VBox([self.sentence]).add_class("mx-verdict")
        self.failure = w.HTML(layout=w.Layout(display="none")).add_class("mx-failed")

    def say(self, words: str, tone: str) -> None:
        """Show the verdict; tone "good", "warn", "bad" or ""."""
        self.sentence.value = f"<div aria-live='polite'>{escape(words)}</div>"
        for known in ("good", "warn", "bad"):
            mark = self.verdict.add_class if known == tone else self.verdict.remove_class
            mark(known)

    def guarded(self, call: Callable[[], None]) -> None:
        """Call, and show an exception, which would vanish in the kernel's log."""
        try:
            call()
        except Exception as error:
            self.fail(error)
        else:
            self.failure.layout.display = "none"

    def fail(self, error: Exception) -> None:
        """Say on the page what went wrong."""
        self.failure.value = escape(f"{type(error).__name__}: {error}")
        self.failure.layout.display = ""


def way_back() -> str:
    """A link to the first page where Voila serves both, in the theme of this one."""
    if not os.environ.get("SERVER_SOFTWARE", "").startswith("voila"):
        return ""
    theme = parse_qs(os.environ.get("QUERY_STRING", "")).get("theme", [""])[0]
    query = f"?theme={theme}" if theme in ("light", "dark") else ""
    return f"<a href='../../{query}'>← Margin Explorer</a>"
