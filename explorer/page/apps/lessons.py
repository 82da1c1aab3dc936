"""The index of the lessons: each with its picture and one line, and where to start."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path

import ipywidgets as w

from explorer.page.apps.page import LESSONS, page_head, show, theme_query, under_voila
from explorer.page.controls.access import Access
from explorer.page.lessons.file import Lesson, packaged_lessons
from explorer.research.pages import FIRST
from explorer.style import CSS

PICTURES = Path(__file__).parents[1] / "lessons" / "pictures"  # made by scripts/lessons.py
START = "Start here"
WORDS = (
    "Fifteen lessons, picture first, one idea each. Begin at the beginning: each one uses what the "
    "ones before have shown. A lesson takes five to ten minutes. Its words stand beside the page, "
    "and its steps tick themselves off."
)


class LessonsApp:
    """A page of cards; a card opens its lesson on the explorer's page."""

    def __init__(self) -> None:
        """Lay out the cards."""
        cards = "".join(_card(k, lesson) for k, lesson in enumerate(packaged_lessons()))
        head = w.HTML(f"<div class='mx-index-head'><h1>Lessons</h1><p>{WORDS}</p></div>")
        self.cards = w.HTML(f"<ol class='mx-index'>{cards}</ol>")
        self.widget = w.VBox(
            [w.HTML(CSS), Access(), page_head(LESSONS), head, self.cards]
        ).add_class("mx-app")

    def close(self) -> None:
        """Free the widgets."""
        self.widget.close()


def picture(k: int) -> bytes:
    """Return the picture of a lesson of the course, as PNG."""
    return (PICTURES / f"{k:02d}.png").read_bytes()


def _card(k: int, lesson: Lesson) -> str:
    coded = base64.b64encode(picture(k)).decode()
    start = f"<span class='mx-index-start'>{START}</span>" if k == 0 else ""
    words = (
        f"<img alt='' src='data:image/png;base64,{coded}'>{start}"
        f"<b>{k} {escape(lesson.title)}</b><span>{escape(lesson.line)}</span>"
    )
    if under_voila():
        return f"<li><a href='{_address(k)}'>{words}</a></li>"
    return f"<li><div>{words}<code>app(lesson={k})</code></div></li>"


def _address(k: int) -> str:
    """Return where the page opens this lesson: beside this one, in its theme."""
    return f"{FIRST}?lesson={k}{theme_query('&')}"


def lessons() -> LessonsApp:
    """Show the index of the lessons in this cell. Showing it again replaces the one before.

    Returns:
        The page.

    Example:
        >>> from explorer import lessons
        >>> page = lessons()  # doctest: +SKIP
    """
    return show(LessonsApp, LessonsApp)
