"""The controls of a background job: a button that starts it and cancels it, and a progress bar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as w

from explorer.page.controls.row import Item, Row
from explorer.page.job import Job, JobState

CANCELLING = "Cancelling …"
BEGIN, END = "begin", "end"  # what a press on the button means


class JobButton(Row):
    """A button that starts a job, and cancels it while it runs.

    A press means what stood on the button when it was pressed: a Cancel that comes after the end
    starts nothing, and the second click of a double click cancels nothing.
    """

    def __init__(
        self, job: Job, label: str, cancel: str, tooltip: str, start: Callable[[Any], None],
        filled: bool = False, shared: bool = False,
    ) -> None:  # fmt: skip
        """`label` and `cancel`: what the button says; `start` begins the job, or refuses.

        `filled`: whether it is the next thing to do. `shared`: whether other buttons start jobs on
        `job`, too: then this one cancels only what it began.
        """
        self.job, self._label, self._cancel, self._start = job, label, cancel, start
        self._shared, self._mine = shared, False
        press = Item("button", label, tooltip, value=BEGIN, filled=filled, call=self._press)
        super().__init__((), press=press)
        job.observe(self._follow)

    @property
    def label(self) -> str:
        """Return what the button says."""
        return self.items["press"].label

    @property
    def disabled(self) -> bool:
        """Return whether nothing can be done with it."""
        return self.items["press"].disabled

    @disabled.setter
    def disabled(self, value: bool) -> None:
        self.put("press", disabled=value)

    @property
    def filled(self) -> bool:
        """Return whether it is the next thing to do."""
        return self.items["press"].filled

    @filled.setter
    def filled(self, value: bool) -> None:
        self.put("press", filled=value)

    def name(self, label: str) -> None:
        """Change what the button says while no job runs."""
        self._label = label
        self._follow()

    def press(self) -> None:
        """Do what the button says."""
        self._press(self.value("press"))

    def _press(self, meant: Any) -> None:  # noqa: ANN401 - from a browser
        if meant == END:
            self.job.cancel()
        elif meant == BEGIN and not self.job.busy:
            self._mine = True
            self._start(None)
            self._mine = self.job.busy

    def _follow(self) -> None:
        words = {JobState.RUNNING: self._cancel, JobState.CANCELLING: CANCELLING}
        ends = self.job.busy and (self._mine or not self._shared)
        label = words[self.job.state] if ends else self._label
        self.put("press", label=label, value=END if ends else BEGIN)
        self._mine = self._mine and self.job.busy


class JobRow:
    """A question as a row: its button, progress and Cancel while a job works on it, the answer.

    Attributes:
        job: what works on it.
        box: the row.
    """

    def __init__(
        self, label: str, tooltip: str, ask: Callable[[], None], job: Job | None = None
    ) -> None:
        """`ask` is called by the button, also while the job works: it says what that means."""
        self.job = job or Job()
        self.box = Row(
            ("mx-question",),
            ask=Item("button", label, tooltip, call=lambda _: ask()),
            share=Item("bar", tip=f"Share done: {label}", value=0.0, hidden=True),
            cancel=Item(
                "button", "Cancel", f"Stop: {label}", hidden=True, call=lambda _: self.job.cancel()
            ),
            said=Item("words", value="", hidden=True),
        )
        self.job.observe(self._follow)

    @property
    def said(self) -> str:
        """Return the answer, as HTML."""
        return str(self.box.value("said"))

    def say(self, words: str) -> None:
        """Show an answer; an empty one takes no room."""
        self.box.put("said", value=words, hidden=not words)

    def _follow(self) -> None:
        with self.box.at_once():
            self.box.put("share", value=self.job.share, hidden=not self.job.busy)
            stoppable = self.job.state is JobState.RUNNING
            self.box.put("cancel", hidden=not self.job.busy, disabled=not stoppable)


def cancel_button(job: Job, tooltip: str) -> w.Button:
    """Return a button that cancels the job; it is there while the job goes on."""
    made = w.Button(description="Cancel", tooltip=tooltip)
    made.on_click(lambda _: job.cancel())
    while_busy(job, made, lambda: setattr(made, "disabled", job.state is not JobState.RUNNING))
    return made


def progress_bar(job: Job, tooltip: str = "", width: str = "160px") -> w.FloatProgress:
    """Return a bar of the share that is done; it is there while the job goes on."""
    bar = w.FloatProgress(value=0, min=0, max=1, layout=w.Layout(width=width), tooltip=tooltip)
    while_busy(job, bar, lambda: setattr(bar, "value", job.share))
    return bar


def while_busy(job: Job, widget: w.DOMWidget, show: Callable[[], None]) -> None:
    """Show the widget while the job goes on, with `show` at each change: nothing where none is."""

    def follow() -> None:
        display = "" if job.busy else "none"
        if widget.layout.display != display:
            widget.layout.display = display
        show()

    follow()
    job.observe(follow)
