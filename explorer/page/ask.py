"""What a panel asks beside its page: every such job begins, goes stale, ends and fails alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from explorer.page.controls.row import Item, Row
from explorer.page.job import Job, JobState, Work, do_nothing
from explorer.page.panels.base import Panel

T = TypeVar("T")


class Asker(Protocol):
    """The panel that asks."""

    asks: list[Job]

    def tell(self, words: str) -> None:
        """Show words at the head of the page."""

    def tell_failure(self, error: Exception | None) -> None:
        """Show how a job failed."""


class Ask(Job):
    """One question of a panel, asked again and again; it ends with its panel.

    It is stale as soon as what it is `about` is another object. When it has ended, the words for
    that end are said, and a failure is shown on the page.

    Attributes:
        of: the object that was asked about last; None before.
    """

    def __init__(
        self, panel: Asker, about: Callable[[], object] = do_nothing,
        words: Mapping[JobState, str] | None = None, say: Callable[[str], None] | None = None,
        in_thread: bool = True, pause_s: float = 0.0,
    ) -> None:  # fmt: skip
        """Declare what a panel asks.

        Args:
            panel: asks, and shows failures.
            about: returns what the answer is of.
            words: what is said when the work has ended so.
            say: shows the words; by default at the head of the page.
            in_thread: as of `Job`.
            pause_s: as of `Job`.
        """
        super().__init__(in_thread, pause_s)
        self._panel, self._about, self._words = panel, about, words or {}
        self._say = say or panel.tell
        self.of: object = None
        panel.asks.append(self)

    def begin(
        self, work: Work[T], take: Callable[[T], None] = do_nothing,
        ended: Callable[[], None] = do_nothing, stale: Callable[[], bool] | None = None,
    ) -> None:  # fmt: skip
        """Begin `work` on the present frame.

        Args:
            work: as in `Job.start`.
            take: called with each part.
            ended: called after the last part, before a failure is shown.
            stale: decides in place of `about`.
        """
        about, asked = self._about, self._about()
        self.of = asked

        def end() -> None:
            if self.state in self._words:
                self._say(self._words[self.state])
            ended()
            self._panel.tell_failure(self.error)

        self.start(work, take, end, stale or (lambda: about() is not asked))


class Question(Ask):
    """A question on the attacked weights as a row: its button, bar and Cancel, the answer.

    Attributes:
        row: the items `ask`, `share`, `cancel` and `said`.
    """

    def __init__(
        self, panel: Panel, label: str, tip: str, ask: Callable[[], None],
        words: Mapping[JobState, str] | None = None,
    ) -> None:  # fmt: skip
        """`ask` is called by the button, also during the work: it decides what that means."""
        super().__init__(panel, panel.weights, words, self.say)
        self.row = Row(
            ("mx-question",),
            ask=Item("button", label, tip, call=lambda _: ask()),
            share=Item("bar", tip=f"Share done: {label}", job=self),
            cancel=Item("cancel", "Cancel", f"Stop: {label}", job=self),
            said=Item("words", value=""),
        )

    def begin(
        self, work: Work[T], take: Callable[[T], None] = do_nothing,
        ended: Callable[[], None] = do_nothing, stale: Callable[[], bool] | None = None,
    ) -> None:  # fmt: skip
        """Take the last answer back, and begin `work`."""
        self.say("")
        super().begin(work, take, ended, stale)

    def drop_old(self) -> None:
        """Take back an answer that is of other weights than those on screen."""
        if self.of is not None and self.of is not self._about():
            self.of = None
            self.say("")

    def say(self, words: str) -> None:
        """Show an answer, as HTML; an empty one takes no room."""
        self.row.say(words)

    @property
    def text(self) -> str:
        """Return the answer, as HTML."""
        return self.row.text
