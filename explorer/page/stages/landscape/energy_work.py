"""How an energy is drawn: a map with its colour bar, or a curve."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter
from typing import Protocol

import numpy as np

from explorer.engine.energy.questions import STANDARD, Answers, MapQuestion, Picture
from explorer.engine.number_words import plain
from explorer.engine.progress import Progress
from explorer.page.job import Job, JobState, page_waits
from explorer.page.stages.landscape.energy_words import UNIT_BILEVEL
from explorer.page.words.statement import scale_html
from explorer.research.pictures.shades import SHADING


def colour_bar(picture: Picture, low: float, top: float) -> str:
    """Return the legend of a map: colours with numbers."""
    middle = float(np.sqrt(low * top))  # of log colours
    least, half = (plain(f"{value:.1g}") for value in (low, middle))
    bilevel = picture.kind in ("ridge", "last")
    unit = UNIT_BILEVEL if bilevel else "share of ‖θ‖² unexplained"
    marks = (f"≤ {least}", half, plain(f"{top:.2g}"))
    return scale_html(SHADING[::-1], marks, f"<div>{unit}, log colours</div>")


# --- Questions to the energy answered beside a page: the newest one, coarse first, until stopped

LADDER = (31, STANDARD, 121)  # pixels a side, refined while nothing else is asked
LOOK_S = 0.25  # of a map, before one says that it is under way; arbitrary
AT_ONCE_S = 0.12  # a map expected to take less needs no coarser one before it; arbitrary
PACE_S = 1e-4  # of a pixel, before one was computed; arbitrary


class Viewer(Protocol):
    """What the work calls: the panel that asks."""

    def show_map(self, q: MapQuestion, picture: Picture, seconds: float) -> None:
        """Show a map."""

    def show_progress(self, share: float, first: bool, seconds: float) -> None:
        """Called now and then while a map is computed; `first`: this question has no map yet."""

    def show_refusal(self, why: str) -> None:
        """Say why there is no such map."""

    def show_rest(self, halted: bool) -> None:
        """The computation has ended: all is answered, or it was `halted`."""

    def fail(self, error: Exception) -> None:
        """Show an error."""


class EnergyWork:
    """Answers one question after the other; a newer one interrupts, as `halt` does.

    During the drag of a point the first map is still finished, so the picture changes. If even the
    coarsest map of a point takes longer than `AT_ONCE_S`, a sketch comes before it: the multipliers
    of the other points are frozen, which costs a hundredth. If the mapped point alone moved, the
    map is the same and is not computed again.

    Attributes:
        asked: the newest question, or None.
        pace: seconds of a pixel, by kind of map.
    """

    def __init__(self, viewer: Viewer) -> None:
        """Make it with no question yet."""
        self.viewer, self.answers = viewer, Answers()
        self.asked: MapQuestion | None = None
        self.job = Job()
        self.job.observe(self._waiting)
        self.pace: dict[str, float] = {}
        self._halted = False
        self._begun, self._first = 0.0, True  # of the question under way
        self._now: MapQuestion | None = None

    def ask(self, q: MapQuestion) -> None:
        """Answer this question from now on."""
        self.asked, self._halted = q, False
        now = self._now
        if now is not None and self._first and self.job.state is JobState.RUNNING:
            if now.moved_to(q):
                return  # its first map is finished, and then q begins
        self._begin(q)

    def close(self) -> None:
        """End the work when the page ends."""
        self.asked = None
        self.job.close()

    def _begin(self, q: MapQuestion) -> None:
        self._now, self._first, self._begun = q, True, perf_counter()
        rungs = self._rungs(q) if page_waits() else [(q, LADDER[1])]

        def work(progress: Progress) -> Iterator[tuple[MapQuestion, Picture]]:
            for asked, size in rungs:
                here, known = perf_counter(), self.answers.kept.finest(q) >= size
                picture = self.answers.answer(asked, size, progress)
                if asked is q and not known:
                    self.pace[q.kind] = (perf_counter() - here) / size**2
                yield asked, picture

        self.job.start(work, self._take, self._end)

    def _take(self, part: tuple[MapQuestion, Picture]) -> None:
        """Show a map of the present question, or turn to a newer question."""
        (asked, picture), q = part, self._now
        self._first = False
        if q is None or self.asked is None:
            return
        if asked is not q:
            picture = replace(picture, about=None, archetype="")
        self.viewer.show_map(q, picture, perf_counter() - self._begun)
        if self.asked is not q:
            self._begin(self.asked)

    def _end(self) -> None:
        error, q = self.job.error, self._now
        if isinstance(error, ValueError) and q is self.asked:
            self.viewer.show_refusal(str(error))
        elif error is not None and not isinstance(error, ValueError):
            self.viewer.fail(error)
        if self.asked is not None and self.asked is not q and not self._halted:
            self._begin(self.asked)
        else:
            self.viewer.show_rest(self._halted)

    def _waiting(self) -> None:
        seconds = perf_counter() - self._begun
        if self.job.state is JobState.RUNNING and seconds > LOOK_S:
            self.viewer.show_progress(self.job.share, self._first, seconds)

    def halt(self) -> None:
        """Stop the work; the map stays as it is."""
        self._halted = True
        self.job.cancel()

    def resume(self) -> None:
        """Go on after `halt`."""
        if self.asked is not None:
            self.ask(replace(self.asked))  # another object: the old one may be under way still

    def forget(self) -> None:
        """Drop the question."""
        self.asked = None
        self.halt()

    def _rungs(self, q: MapQuestion) -> list[tuple[MapQuestion, int]]:
        """Return what is computed one after the other, the quickest first."""
        pace = self.pace.get(q.kind, PACE_S)
        known = self.answers.kept.finest(q)
        if known:
            return [(q, s) for s in LADDER if s >= known]
        quick = [s for s in LADDER[:2] if s * s * pace < AT_ONCE_S]
        rungs = [(q, s) for s in LADDER if s >= max(quick or LADDER[:1])]
        if q.kind == "point" and q.net.d == 2 and not q.config.frozen and not quick:
            rungs.insert(0, (replace(q, config=replace(q.config, frozen=True)), STANDARD))
        return rungs
