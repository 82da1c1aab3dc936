"""Questions to the energy answered beside a page: the newest one, coarse first, until stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from threading import Event
from time import perf_counter
from typing import Protocol

from explorer.engine.energy.questions import (
    STANDARD,
    TRIANGLE,
    Answers,
    Picture,
    Question,
)

LADDER = (31, STANDARD, 121)  # pixels a side, refined while nothing else is asked
LOOK_S = 0.25  # between two looks at the share done; arbitrary
AT_ONCE_S = 0.12  # a map expected to take less needs no coarser one before it; arbitrary
SKETCH = (
    "A sketch, with the multipliers of the other points as they are: the map comes when the hand "
    "rests, and lies below it."
)
PACE_S = 1e-4  # of a pixel, before one was computed; arbitrary


def ladder_of(q: Question) -> tuple[int, ...]:
    """Sizes of the maps of one question, coarse first."""
    return TRIANGLE if q.kind == "starts" else LADDER


class Viewer(Protocol):
    """Who asks."""

    def answered(self, q: Question, picture: Picture, seconds: float) -> None:
        """Show a map."""

    def waiting(self, share: float, first: bool, seconds: float) -> None:
        """Told now and then while a map is computed; `first`: none of this question is there."""

    def refused(self, why: str) -> None:
        """Say why there is no such map."""

    def rested(self, halted: bool) -> None:
        """Nothing is computed any more: all was answered, or `halted`."""

    def fail(self, error: Exception) -> None:
        """Say what went wrong."""


class EnergyWork:
    """Answers one question after the other; a newer one interrupts, as `halt` does.

    Where a point alone was dragged on, the first map is finished all the same: something moves.
    Where even the coarsest map of a point takes longer than a glance, a sketch comes before it: the
    others' multipliers frozen, which costs a hundredth. No map is computed anew where the mapped
    point alone moved, which changes nothing of it.

    Attributes:
        asked: the newest question, or None.
        pace: seconds of a pixel, by kind of map.
    """

    def __init__(self, viewer: Viewer) -> None:
        """Nothing is asked yet."""
        self.viewer, self.answers = viewer, Answers()
        self.asked: Question | None = None
        self.task: asyncio.Task[None] | None = None
        self.pace: dict[str, float] = {}
        self._stop, self._halted = Event(), False

    def ask(self, q: Question) -> None:
        """Answer this from now on."""
        self.asked, self._halted = q, False
        self._stop.set()
        self._stop = Event()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # nobody would run a task: without a page
            begun = perf_counter()
            picture = self.answers.answer(q, ladder_of(q)[1])
            if picture is not None:
                self.viewer.answered(q, picture, perf_counter() - begun)
            self.viewer.rested(False)
            return
        if self.task is None or self.task.done():
            self.task = loop.create_task(self._work())

    def halt(self) -> None:
        """Leave the map as it is."""
        self._halted = True
        self._stop.set()

    def resume(self) -> None:
        """Go on after `halt`."""
        if self.asked is not None:
            self.ask(replace(self.asked))  # another object: the old one may be under way still

    def forget(self) -> None:
        """Ask nothing any more."""
        self.asked = None
        self.halt()

    async def _work(self) -> None:
        answered: Question | None = None
        while self.asked is not None and self.asked is not answered:
            q = self.asked
            try:
                await self._refine(q, self._stop)
            except ValueError as error:
                if q is self.asked:
                    self.viewer.refused(str(error))
            except Exception as error:  # a task's error would vanish unseen
                self.viewer.fail(error)
            answered = q
        self.viewer.rested(self._halted)

    async def _refine(self, q: Question, stop: Event) -> None:
        """Every size of one question, as long as nothing else is asked."""
        begun = perf_counter()
        for k, (asked, size) in enumerate(self._rungs(q)):
            here, known = perf_counter(), self.answers.kept.finest(q) >= size
            picture = await self._answer(asked, size, self._going(q, stop, not k), (begun, not k))
            if picture is None:
                return
            if asked is q and not known:
                self.pace[q.kind] = (perf_counter() - here) / size**2
            else:
                picture = replace(picture, words=SKETCH, archetype="")
            if self._wanted(q):
                self.viewer.answered(q, picture, perf_counter() - begun)
            if stop.is_set():
                return

    def _rungs(self, q: Question) -> list[tuple[Question, int]]:
        """What is computed one after the other, the quickest first."""
        ladder, pace = ladder_of(q), self.pace.get(q.kind, PACE_S)
        known = self.answers.kept.finest(q)
        if known:
            return [(q, s) for s in ladder if s >= known]
        quick = [s for s in ladder[:2] if s * s * pace < AT_ONCE_S]
        rungs = [(q, s) for s in ladder if s >= max(quick or ladder[:1])]
        if q.kind == "point" and q.net.d == 2 and not q.frozen and not quick:
            rungs.insert(0, (replace(q, frozen=True), STANDARD))
        return rungs

    def _wanted(self, q: Question) -> bool:
        """Whether a map of q is of use: it is asked, or was until a point moved on."""
        return self.asked is not None and (q is self.asked or q.moved_to(self.asked))

    def _going(self, q: Question, stop: Event, first: bool) -> Callable[[], bool]:
        return lambda: not stop.is_set() or (first and not self._halted and self._wanted(q))

    async def _answer(
        self, q: Question, size: int, going: Callable[[], bool], since: tuple[float, bool]
    ) -> Picture | None:
        """The map, made in a thread; None where it was interrupted.

        `since`: when the question was asked, and whether none of its maps is there.
        """
        done, (begun, first) = [0.0], since

        def go_on(share: float) -> bool:
            done[0] = share
            return going()

        task = asyncio.create_task(asyncio.to_thread(self.answers.answer, q, size, go_on))
        while not task.done():
            await asyncio.wait({task}, timeout=LOOK_S)
            if not task.done():
                self.viewer.waiting(done[0], first, perf_counter() - begun)
        return task.result()
