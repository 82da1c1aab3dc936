"""A census on the page: counted beside it, drawn as regions and ends, chosen by hand and keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Arrays, Index
from explorer.engine.progress import Progress
from explorer.page import play
from explorer.page.ask import Ask
from explorer.page.controls.row import Item, Row, choices, pick, pick_options
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel
from explorer.page.session import Session
from explorer.page.stages.landscape import census_words as words
from explorer.page.stages.landscape import commands as landscape
from explorer.research.census import Census, CensusConfig, census, census_starts, surface_of
from explorer.research.census.basins import Kind
from explorer.research.grid import Problem

STARTS = 200  # arbitrary: some 10 s of two cores for 20 points
MARKS: dict[Kind, int] = {"truth": 0, "explanation": 1}  # as the ends of runs; others are stuck
COLOURS = 8  # of basins beside that of the truth, as in triangle.js; the rest is grey
SPECK = 1.0  # px: radius of a descent on its way
ENDED, GOING = 3, 4  # marks: white of ends, dark of descents on their way, as in triangle.js
LARGEST, SMALLEST = 18.0, 2.0  # px: radius of a dot that all starts come to, and of one alone
WHITE = 4.0  # px: least radius of an end while others are on their way


@dataclass
class Found:
    """A census with what is drawn of it.

    Attributes:
        problem: the weights, and the three sets that starts are mixed of.
        census: what was counted.
        places: of each end on the triangle (k, 3).
    """

    problem: Problem
    census: Census
    places: Tensor


@dataclass(frozen=True, eq=False)
class Going:
    """How far a census is.

    Attributes:
        places: of each start on the triangle (b, 3), or of its end where it has come to one.
        basin: the number so far of that end (b,), -1 where the descent goes on.
    """

    places: np.ndarray
    basin: Index

    @property
    def counts(self) -> tuple[int, int]:
        """Return how many starts there are, and how many have ended."""
        return len(self.basin), int((self.basin >= 0).sum())


class CensusBox:
    """Counts the basins of the starts on screen; what it has found stays until the weights change.

    Attributes:
        found: of the weights on screen, or None.
        going: how far the census is that goes on, or None.
        go: the button that counts, and cancels, with its bar.
        pick: the list of ends.
    """

    def __init__(
        self, panel: Panel, draw: Callable[[bool], None], clear: Callable[[], None]
    ) -> None:
        """`draw` shows what is known now; it is told whether that is a new census.

        `clear` ends a run from the handle, which would take the headline back.
        """
        self.session: Session = panel.session
        self.found: Found | None = None
        self.going: Going | None = None
        self._told: Going | None = None
        self._draw, self._clear = draw, clear
        self.job = Ask(panel, panel.weights, words.ENDED)
        self.job.observe(self._tell)
        self.go = Row(
            go=Item("job", words.CENSUS, words.TIP, call=panel.command(self._start), job=self.job),
            share=Item("bar", tip="Share of the census", job=self.job),
        )
        self.pick = pick("valley", words.PICK_TIP, lambda k: panel.do(self.press, k))

    def _start(self) -> None:
        """Count the basins of the weights on screen."""
        play.pause(self.session)
        self._clear()
        problem = landscape.census_problem(self.session)
        held = landscape.starts(self.session)
        if held.trail and not held.best:  # else the headline went on to tell of that run
            landscape.place_handle(self.session, held.weights)
        config = CensusConfig(starts=STARTS, seed=self.session.seed)
        surface_of(problem, config)  # what it refuses is said at once
        places = census_starts(problem.parts, config)[0].numpy()
        self.going = Going(places, np.full(STARTS, -1))

        def look(x: Tensor, basin: Index) -> None:
            nonlocal places
            before = self.going
            new = basin >= 0 if before is None else (basin >= 0) & (before.basin < 0)
            places = places.copy()
            for i in np.flatnonzero(new):
                places[i] = problem.parts.weights(x[i])
            self.going = Going(places, basin)

        def work(progress: Progress) -> Iterator[Found]:
            made = census(problem, config, progress, look)
            places = [problem.parts.weights(one.x) for one in made.basins]
            yield Found(problem, made, torch.tensor(places))

        self.job.begin(work, self._take, self._end)

    def _tell(self) -> None:
        """Show how far the census is, where that is another."""
        if self.going is not None and self.going is not self._told:
            self._told = self.going
            landscape.note_counting(self.session, self.going.counts)
            self._draw(False)

    def _end(self) -> None:
        self.going = self._told = None
        landscape.note_counting(self.session, None)
        self._draw(False)

    def _take(self, found: Found) -> None:
        self.going = None
        self.found = found
        landscape.note_census(self.session, found.census)
        self._draw(True)

    def drop_old(self, frame: Frame) -> None:
        """Forget a census of other weights."""
        if self.found is not None and self.found.problem.of.target is not frame.target:
            self.found = None

    # --- what is drawn --------------------------------------------------------------------------
    def arrays(self) -> Arrays:
        """Return starts and ends as `TriangleView` takes them; none without a census.

        While it goes on: a speck where a start is, a dot where some have ended.
        """
        if self.going is not None:
            return _going_arrays(self.going)
        if self.found is None:
            return {}
        made, n = self.found.census, len(self.found.census.basin)
        tints = np.array(_tints(made), dtype=np.uint8)
        sizes = [_size(len(b.starts), n) for b in made.basins]
        return {
            "starts": made.mixes[::2].numpy().astype(np.float32),  # the others are off the triangle
            "basins": tints[made.basin[::2]],
            "trails": self.found.places.numpy().astype(np.float32)[:, None],
            "ends": np.array([MARKS.get(one.kind, 2) for one in made.basins], dtype=np.uint8),
            "tints": tints,
            "sizes": np.array(sizes, dtype=np.float32),
        }

    def options(self) -> tuple[tuple[str, int | None, str], ...]:
        """Return the ends as a list takes them."""
        if self.found is None:
            return choices()
        made = self.found.census
        return pick_options("valley", *((words.end(made, k), k) for k in range(len(made.basins))))

    def press(self, k: int) -> None:
        """Show an end: its points on the plane, and what it leaves."""
        if self.found is not None and 0 <= k < len(self.found.census.basins):
            landscape.show_end(self.session, self.found.problem.parts.y, self.found.census, k)


def _size(came: int, n: int) -> float:
    """Return the radius of an end to which so many of n starts came."""
    return SMALLEST + (LARGEST - SMALLEST) * (came / n) ** 0.5


def _going_arrays(going: Going) -> Arrays:
    """Return dark specks of descents on their way and white dots of ends, as runs of one place."""
    ended = going.basin >= 0
    first, came = np.unique(going.basin[ended], return_index=True, return_counts=True)[1:]
    ends = going.places[ended][first]
    places = np.concatenate([going.places[~ended], ends]).astype(np.float32)
    sizes = [SPECK] * int((~ended).sum()) + [max(WHITE, _size(int(k), len(ended))) for k in came]
    return {
        "trails": places[:, None],
        "ends": np.array([GOING] * int((~ended).sum()) + [ENDED] * len(ends), dtype=np.uint8),
        "sizes": np.array(sizes, dtype=np.float32),
    }


def _tints(made: Census) -> list[int]:
    """Return the colour of each basin: 1 the truth, then the largest; 0 the rest, in grey."""
    out, used = [], 1
    for one in made.basins:
        if one.kind == "truth":
            out.append(1)
        elif len(one.starts) > 1 and used <= COLOURS:
            used += 1
            out.append(used)
        else:
            out.append(0)
    return out
