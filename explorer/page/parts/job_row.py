"""The controls of a background job: a button that starts it and cancels it, and a progress bar."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import ipywidgets as w

from explorer.page.job import Job, JobState

CANCELLING = "Cancelling …"


class JobButton:
    """A button that starts a job, and cancels it while it runs.

    Attributes:
        widget: the button.
    """

    def __init__(
        self, job: Job, label: str, cancel: str, tooltip: str, start: Callable[[], None],
        again_s: float = 0.0, **traits: Any,  # noqa: ANN401 - of the button
    ) -> None:  # fmt: skip
        """`label` and `cancel`: what the button says; `start` begins the job, or refuses.

        `again_s`: seconds after a cancel in which a second press is ignored, as a double click.
        """
        self.job, self._label, self._cancel, self._start = job, label, cancel, start
        self._again_s, self._cancelled_at = again_s, float("-inf")
        self.widget = w.Button(description=label, tooltip=tooltip, **traits)
        job.observe(self._show)

    def name(self, label: str) -> None:
        """Change what the button says while no job runs."""
        self._label = label
        self._show()

    def press(self) -> None:
        """Start the job, or cancel it."""
        if self.job.busy:
            self._cancelled_at = perf_counter()
            self.job.cancel()
        elif perf_counter() - self._cancelled_at >= self._again_s:
            self._start()

    def _show(self) -> None:
        words = {JobState.RUNNING: self._cancel, JobState.CANCELLING: CANCELLING}
        self.widget.description = words.get(self.job.state, self._label)


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
