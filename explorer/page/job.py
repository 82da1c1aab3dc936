"""One background job: work beside the page that can report progress, be cancelled, be stale, fail.

The work is a generator function: `work(progress)` yields its results part by part. A part is made
in a thread, so the page still answers, and is taken on the page's own loop. The work calls
`progress(share)` several times a second. After a cancel this call raises `Stopped`: the work ends
there, its thread returns, and no further part is taken.

    >>> def squares(progress):
    ...     for k in range(4):
    ...         progress(k / 4)
    ...         yield k * k
    >>> job, taken = Job(), []
    >>> job.start(squares, taken.append)  # no loop is running, as in a script: all is done at once
    >>> job.state, taken
    (<JobState.DONE: 'done'>, [0, 1, 4, 9])
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, TypeVar

from explorer.engine.progress import Progress, Stopped

LOOK_S = 0.1  # between two looks at the share that is done; arbitrary
_END: Any = object()

T = TypeVar("T")
Work = Callable[[Progress], Iterator[T]]


class JobState(Enum):
    """The state of a job."""

    IDLE = "idle"  # nothing was started yet
    RUNNING = "running"
    CANCELLING = "cancelling"  # the work was asked to end, and has not yet
    DONE = "done"
    CANCELLED = "cancelled"
    STALE = "stale"  # ended, since what it was asked of has changed
    FAILED = "failed"  # see `Job.error`


def page_waits() -> bool:
    """Return whether an event loop is running, as on a page; in a script there is none."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def do_nothing(*_: object) -> None:
    """Do nothing."""


def once(make: Callable[[Progress], T]) -> Work[T]:
    """Return work of one part, which `make` returns."""

    def work(progress: Progress) -> Iterator[T]:
        yield make(progress)

    return work


def in_slices(shares: Iterator[float]) -> Work[float]:
    """Return work that `shares` does slice by slice; each slice is a part, the share then done."""

    def work(progress: Progress) -> Iterator[float]:
        for share in shares:
            progress(share)
            yield share

    return work


def _never() -> bool:
    """Return False: the question is never stale."""
    return False


class Job:
    """Runs one piece of work at a time, again and again.

    If no loop is running, as in a script, `start` does the whole work before it returns.

    Attributes:
        state: its present state.
        share: share of the work that is done, in [0, 1]; it keeps its last value when work ends.
        error: why it failed; None in every other state.
    """

    def __init__(self, in_thread: bool = True, pause_s: float = 0.0) -> None:
        """Make a job that runs nothing yet.

        Args:
            in_thread: whether parts are made in a thread; else on the loop, for work on the
                session, which the loop alone may touch.
            pause_s: seconds that the page has for itself before each part.
        """
        self.state, self.share = JobState.IDLE, 0.0
        self.error: Exception | None = None
        self._in_thread, self._pause_s = in_thread, pause_s
        self._observers: list[Callable[[], None]] = []
        self._ended: Callable[[], None] = do_nothing
        self._following: Callable[[], None] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """Return whether work goes on; cancelled work goes on until its next call of `progress`."""
        return self.state in (JobState.RUNNING, JobState.CANCELLING)

    def observe(self, call: Callable[[], None]) -> None:
        """Call `call` on the loop whenever the state or the share has changed."""
        self._observers.append(call)

    def start(
        self, work: Work[T], take: Callable[[T], None] = do_nothing,
        ended: Callable[[], None] = do_nothing, stale: Callable[[], bool] = _never,
    ) -> None:  # fmt: skip
        """Begin `work`. Work in progress is cancelled first; its `ended` is not called.

        Args:
            work: makes the parts.
            take: called with each part, on the loop.
            ended: called once after the last part, with `state` as it then is.
            stale: called several times a second, and before a part is taken; if it returns True,
                the inputs of the work have changed, and the work ends.
        """
        if self.busy:
            self.cancel()
            self._following = lambda: self.start(work, take, ended, stale)
            return
        self.state, self.share, self.error, self._ended = JobState.RUNNING, 0.0, None, ended
        self._tell()
        if page_waits():
            self._task = asyncio.create_task(self._run(work, take, stale))
        else:
            self._run_here(work, take, stale)

    def cancel(self) -> None:
        """End the work, if any goes on, and drop the work that was to follow."""
        self._following = None
        if self.state is JobState.RUNNING:
            self.state = JobState.CANCELLING
            self._tell()

    def close(self) -> None:
        """End the work with its page; nothing is called any more."""
        self._observers, self._ended = [], do_nothing
        self.cancel()

    async def wait(self) -> None:
        """Wait until no work goes on and none is to follow."""
        while self._task is not None and not self._task.done():
            await asyncio.wait({self._task})

    # --- the work ---------------------------------------------------------------------------
    def _progress(self, share: float) -> None:
        """Take the share from the work, in its thread. Stopped after a cancel."""
        self.share = share
        if self.state is not JobState.RUNNING:
            raise Stopped("the job was cancelled")

    def _look(self, stale: Callable[[], bool]) -> None:
        if self.state is JobState.RUNNING and stale():
            self.cancel()
        self._tell()

    def _run_here(
        self, work: Work[T], take: Callable[[T], None], stale: Callable[[], bool]
    ) -> None:
        with self._ending(stale):
            for part in work(self._progress):
                self._look(stale)
                self._progress(self.share)
                take(part)

    async def _run(
        self, work: Work[T], take: Callable[[T], None], stale: Callable[[], bool]
    ) -> None:
        with self._ending(stale):
            parts = work(self._progress)
            while True:
                if self._pause_s:
                    await asyncio.sleep(self._pause_s)
                    self._look(stale)
                    self._progress(self.share)
                part = await self._part(parts, stale)
                if part is _END:
                    return
                self._look(stale)
                self._progress(self.share)
                take(part)
                await asyncio.sleep(0)
                self._progress(self.share)

    async def _part(self, parts: Iterator[T], stale: Callable[[], bool]) -> T:
        """Return the next part, or _END."""
        if not self._in_thread:
            return next(parts, _END)
        making = asyncio.create_task(asyncio.to_thread(next, parts, _END))
        while not (await asyncio.wait({making}, timeout=LOOK_S))[0]:
            self._look(stale)
        return making.result()

    @contextmanager
    def _ending(self, stale: Callable[[], bool]) -> Iterator[None]:
        """Record how the work within ends, report it, and begin the work that is to follow."""
        state = JobState.CANCELLED
        try:
            yield
            state = JobState.DONE
        except Stopped:
            state = JobState.STALE if stale() else state
        except Exception as error:  # would vanish in the task
            self.error, state = error, JobState.FAILED
        finally:
            self.state = state
            following, self._following = self._following, None
            if following is not None:
                following()
            else:
                self._tell()
                self._ended()

    def _tell(self) -> None:
        for call in self._observers:
            call()
