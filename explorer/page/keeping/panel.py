"""Nothing is lost: after each edit the browser gets the page to keep, and may give it back."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Any

from explorer.engine.store import StoreError
from explorer.page.frame import Frame
from explorer.page.keeping.browser import BrowserKeeper, KeptList
from explorer.page.keeping.words import kept_words
from explorer.page.lessons import course
from explorer.page.lessons.course import Draft, Walk
from explorer.page.panels.base import Panel
from explorer.page.session import Session
from explorer.page.sharing import files

EDITED_S, PLAYING_S = 0.5, 5.0  # arbitrary: between two states that are kept
ANSWERED_S = 0.2  # after a change: the weights of a large network take 20 ms; arbitrary


class Keeping(Panel):
    """From a visitor's first act on, whatever changes is kept; what a page opens with is not."""

    look = ("mx-unseen",)

    def build(self) -> None:
        """One widget, without a picture of its own."""
        self.view = self.widget = BrowserKeeper(self.begin, self._on_take_up)
        self._kept: tuple[Any, ...] | None = None  # what was kept last; None before the first act
        self._opened: tuple[Any, ...] = ()  # what was there before the first act
        self._points: set[tuple[float, ...]] = set()  # of what was kept last
        self._when = 0.0
        self._due: asyncio.TimerHandle | None = None
        names = ["seed", "mix", "attack_config", "train_config", "running", "lesson"]
        self.session.observe(lambda _: self._look(), names=names)

    def render(self, frame: Frame) -> None:
        """Keep this frame, now or soon."""
        self._look()

    def begin(self) -> None:
        """Keep what changes from now on."""
        if self._kept is None:
            self._kept = self._present()
            self._opened = _work(self._kept)

    def _on_take_up(self, text: str, lesson: str) -> None:
        """Show what the browser kept."""
        self.begin()
        self.do(_take_up, self.session, text, lesson)

    def _present(self) -> tuple[Any, ...]:
        """Return what a change is told by."""
        session, now = self.session, self.session.frame
        draft = session.lesson if isinstance(session.lesson, Draft) else None
        return (now.dataset, now.training.state, now.attack.state, now.stage, session.seed,
                session.mix, session.train_config, session.attack_config, draft)  # fmt: skip

    def _look(self) -> None:
        """Keep the present moment if it is another one: a while after the last, and after this.

        The hand that made the change sees its answer first. Where no loop runs, as in a script, it
        is kept at once.
        """
        if self._kept is None or self._present() == self._kept or self._away():
            return
        wait = self._when + (PLAYING_S if self.session.running else EDITED_S) - monotonic()
        wait = max(wait, ANSWERED_S)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            wait = 0.0
        if wait <= 0:
            self._keep()
        elif self._due is None or self._due.when() > loop.time() + wait:
            self._forget_due()
            self._due = loop.call_later(wait, self._keep)

    def _keep(self) -> None:
        """Give the browser this moment to keep; a plane that was cleared is not worth it.

        What shares no point with what was kept last is another drawing, kept beside that one.
        """
        self._forget_due()
        if self._away():
            return
        self._kept, self._when = self._present(), monotonic()
        now = self.session.frame
        points = {tuple(x) for x in now.dataset.x.tolist()}
        lesson = course.draft_text(self.session)
        drawn = points or now.training.given or lesson
        idle = not drawn or _work(self._kept) == self._opened
        if idle and not self.view.kept.get("lesson"):  # a recording that was left is forgotten
            return  # to look at what a page opens with is no work of a visitor's
        anew = bool(self._points) and not self._points & points
        self._points = points
        try:
            text, whole = files.as_text(self.session)
        except StoreError:  # points without number
            text, whole = "", False
        own = now.dataset.source is None or bool(lesson)
        words = kept_words(now, self._kept[-1].steps if lesson else ())
        self.view.kept = {"text": text, "words": words, "whole": whole, "anew": anew, "own": own,
                          "lesson": lesson}  # fmt: skip

    def _away(self) -> bool:
        """Return whether a lesson is on screen: the visitor's own page comes back after it."""
        return isinstance(self.session.lesson, Walk)

    def _forget_due(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def end(self) -> None:
        """Keep nothing any more."""
        self._kept = None
        self._forget_due()


def _take_up(session: Session, text: str, lesson: str) -> None:
    """Show what a browser kept, and go on with the lesson that was being recorded, if any."""
    files.take_up(session, text)
    if lesson:
        course.record_on(session, lesson)


def _work(present: tuple[Any, ...]) -> tuple[Any, ...]:
    """All of a moment but its stage: to look round changes nothing."""
    return (*present[:3], *present[4:])


class KeptDrawings(Panel):
    """What the browser keeps, under the files."""

    def build(self) -> None:
        """One list."""
        self.view = self.widget = KeptList(
            lambda text, lesson: self.do(_take_up, self.session, text, lesson)
        )
