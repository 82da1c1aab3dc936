"""The energies of all starts, computed beside a page, finer and finer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter, sleep

from explorer.engine.arrays import Array
from explorer.engine.energy.landscape import SIDES, StartLandscape
from explorer.engine.progress import Progress
from explorer.page.job import Job, page_waits

MOST_S = 20.0  # of computing: a finer lattice that would take longer is left out; arbitrary
REST_S = 0.25  # after the hand has moved: the processor is its own so long; arbitrary
AT_ONCE = 2  # lattices where no page waits, as in a script: enough to see the shape
AGAIN_S = 0.01  # between two looks whether the hand rests


class StartEnergies:
    """Computes the lattices of one landscape after the other; `show` takes each look at them.

    Attributes:
        job: the work, with its share.
        values: the newest lattice (side, side), or None.
        complete: whether that is complete, and not read from a coarser one.
    """

    def __init__(self, show: Callable[[], None], ended: Callable[[], None]) -> None:
        """`ended` is called when nothing finer follows, or the work was cancelled or failed."""
        self.job, self.complete = Job(), False
        self.values: Array | None = None
        self._whole: Array | None = None  # the newest that is complete
        self._show, self._ended = show, ended
        self._of: StartLandscape | None = None
        self._moved_at, self._resting = -REST_S, False

    @property
    def finest(self) -> bool:
        """Return whether nothing finer follows."""
        return not self.job.busy and not self._resting

    def ask(self, landscape: StartLandscape | None, later: bool = False) -> None:
        """Compute the energies of this landscape from now on; None: of none.

        `later`: nothing finer than the first complete lattice before it is asked for again.
        """
        if landscape is self._of:
            if later and self._whole is not None:
                self.rest()
            elif not later and self._resting and landscape is not None:
                self._begin(landscape)
            return
        self._of, self.values, self._whole, self.complete = landscape, None, None, False
        self.job.cancel()
        if landscape is not None:
            self._begin(landscape)

    def hand(self) -> None:
        """Note that the handle moves: its own energy comes first."""
        self._moved_at = perf_counter()

    def rest(self) -> None:
        """Compute nothing until the landscape is asked for again; what is known stays."""
        self._resting = self._resting or self.job.busy
        self.job.cancel()

    def close(self) -> None:
        """End the work with its page."""
        self.job.close()

    def _begin(self, landscape: StartLandscape) -> None:
        self._resting = False
        coarse = self._whole
        known = 0 if coarse is None else len(coarse)
        sides = [s for s in (SIDES if page_waits() else SIDES[:AT_ONCE]) if s > known]
        places = [side * (side + 1) // 2 for side in sides]

        def work(progress: Progress) -> Iterator[tuple[Array, bool]]:
            before, spent = coarse, 0.0
            for side, count in zip(sides, places, strict=True):
                done = len(landscape.known)
                if done and spent / done * (count - done) > MOST_S:
                    return
                begun = perf_counter()
                for look in landscape.looks(side, before, self._patient(progress)):
                    last = look
                    yield look, False
                before, spent = last, spent + perf_counter() - begun
                yield before, True

        self.job.start(work, self._take, self._ended)

    def _patient(self, progress: Progress) -> Progress:
        """Wait between two places while the hand moves."""

        def wait_for_hand(share: float) -> None:
            progress(share)
            while perf_counter() - self._moved_at < REST_S:
                sleep(AGAIN_S)
                progress(share)

        return wait_for_hand

    def _take(self, part: tuple[Array, bool]) -> None:
        self.values, self.complete = part
        if self.complete:
            self._whole = self.values
        self._show()
