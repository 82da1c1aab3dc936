"""One background job: work beside the page, with progress, cancel, stale, failure.

The work is a generator function: `work(progress)` yields what it makes, part by part. A part is
made in a thread, so that the page stays alive, and is taken on the page's own loop. The work calls
`progress(share)` several times a second. Where it is cancelled, that call raises `Stopped`: the
work ends there, its thread returns, and no further part is taken.

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
    """How a job stands."""

    IDLE = "idle"  # nothing was started yet
    RUNNING = "running"
    CANCELLING = "cancelling"  # the work was asked to end, and has not yet
    DONE = "done"
    CANCELLED = "cancelled"
    STALE = "stale"  # ended, since what it was asked of has changed
    FAILED = "failed"  # see `Job.error`


def page_waits() -> bool:
    """Whether a loop is running, on which a page waits: in a script there is none."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _nothing(*_: object) -> None:
    """Take no note."""


def _never() -> bool:
    """What is asked of stays as it is."""
    return False


class Job:
    """Runs one piece of work at a time, again and again.

    Where no loop is running, as in a script, `start` does the whole work before it returns.

    Attributes:
        state: how it stands.
        share: what share of the work is done, in [0, 1]; it stays where the work ended.
        error: why it failed; None in every other state.
    """

    def __init__(self, in_thread: bool = True, pause_s: float = 0.0) -> None:
        """Nothing runs yet.

        Args:
            in_thread: whether parts are made in a thread; else on the loop, for work on the
                session, which the loop alone may touch.
            pause_s: seconds that the page has for itself after each part.
        """
        self.state, self.share = JobState.IDLE, 0.0
        self.error: Exception | None = None
        self._in_thread, self._pause_s = in_thread, pause_s
        self._observers: list[Callable[[], None]] = []
        self._ended: Callable[[], None] = _nothing
        self._following: Callable[[], None] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether work goes on, be it to its end or to the next place where it can be ended."""
        return self.state in (JobState.RUNNING, JobState.CANCELLING)

    def observe(self, call: Callable[[], None]) -> None:
        """Have `call` called on the loop whenever the state or the share has changed."""
        self._observers.append(call)

    def start(
        self, work: Work[T], take: Callable[[T], None] = _nothing,
        ended: Callable[[], None] = _nothing, stale: Callable[[], bool] = _never,
    ) -> None:  # fmt: skip
        """Begin `work`. Other work under way is cancelled first; its end is then not told.

        Args:
            work: makes the parts.
            take: called with each part, on the loop.
            ended: called once after the last part, with `state` as it then is.
            stale: asked several times a second, and before a part is taken; where it says yes,
                what the work was asked of has changed, and the work ends.
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
        """End the work, if any goes on, and forget what was to follow it."""
        self._following = None
        if self.state is JobState.RUNNING:
            self.state = JobState.CANCELLING
            self._tell()

    def close(self) -> None:
        """End the work with its page, which is told nothing any more."""
        self._observers, self._ended = [], _nothing
        self.cancel()

    async def done(self) -> None:
        """Wait until no work goes on, nor is any to follow."""
        while self._task is not None and not self._task.done():
            await asyncio.wait({self._task})

    # --- the work ---------------------------------------------------------------------------
    def _progress(self, share: float) -> None:
        """What the work calls, in its thread."""
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
            while (part := await self._part(parts, stale)) is not _END:
                self._look(stale)
                self._progress(self.share)
                take(part)
                await asyncio.sleep(self._pause_s)
                self._progress(self.share)

    async def _part(self, parts: Iterator[T], stale: Callable[[], bool]) -> T:
        """The next part, or _END."""
        if not self._in_thread:
            return next(parts, _END)
        making = asyncio.create_task(asyncio.to_thread(next, parts, _END))
        while not (await asyncio.wait({making}, timeout=LOOK_S))[0]:
            self._look(stale)
        return making.result()

    @contextmanager
    def _ending(self, stale: Callable[[], bool]) -> Iterator[None]:
        """Note how the work within ends, tell it, and begin what is to follow."""
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
