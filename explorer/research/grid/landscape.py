"""The landscape of starts on the weights of a page: its energies, and the runs from its places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import gcd
from typing import Any

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.data import PLANE
from explorer.engine.energy.landscape import Landscape
from explorer.engine.energy.maps import tau_of
from explorer.engine.energy.points import check_energy, energy
from explorer.engine.energy.questions import DROP, STANDARD
from explorer.engine.energy.starts import NAMES, mix_of, places_of
from explorer.engine.merging import MERGE_ANGLE, merge_neurons
from explorer.engine.progress import Progress, no_progress
from explorer.engine.roster import by_key
from explorer.research.grid import TRAIL, Grid, Problem, Trace
from explorer.research.runs import RADIUS

PIXELS = 0.5  # of a map of STANDARD of the usual plane: half the band of a kink; arbitrary
SIDES = (6, 11, 26)  # places a side of the triangle from which attacks run: 21, 66, 351 in all


def landscape_of(problem: Problem) -> Landscape:
    """Return the energies of all starts of a problem, as shares of the weights.

    Args:
        problem: the target and the three sets.

    Raises:
        ValueError: for weights without an energy.
    """
    parts, own = problem.parts, by_key(problem.of.attack).own
    if own is not None:
        return Landscape(parts, lambda x: own.energy(problem.target, x, parts.y))
    net, y = problem.target.net.to(dtype=torch.float64), parts.y.double()
    truth, tau = parts.truth.double(), tau_of(PLANE, STANDARD, PIXELS)
    check_energy(net, truth, y, tau)
    merged = merge_neurons(net, MERGE_ANGLE, DROP, truth).net
    return Landscape(parts, lambda x: energy(merged, x.double(), y, tau))


# --- Runs from many places, side by side, kept so that they can go on later

KEPT = 20  # arbitrary: states kept of a run on a coarse grid, for the timeline
MOST_STEPS = 500  # arbitrary: in one go; a third of a second of a joint attack on 2-100-100-1
TOGETHER = 21  # runs side by side; arbitrary: as many as the coarsest triangle has
ROLLING = 3  # in place of the number of a set: a run that has not ended
FEWEST = 2  # states kept of a run on a finer one: its start and its end
MOST_NUMBERS = 2**22  # arbitrary: coordinates in all states kept; a state takes some six times that

EXPLAINED = 0.05  # of the weights: what leaves less explains them; arbitrary
Key = tuple[int, float, float]  # number of the seed, mix_truth, mix_data


def _block(between: int) -> int:
    """Return the steps in one go: `between`, or a part of it that takes less than a second."""
    parts = (k for k in range(MOST_STEPS // 10, MOST_STEPS + 1) if between % k == 0)
    return between if between <= MOST_STEPS else max(parts, default=between)


@dataclass(frozen=True)
class Arrivals:
    """Where the runs from all places ended, each within RADIUS of a set or of none.

    Attributes:
        total: runs that were asked for.
        ended: those that have ended.
        truth: of these, those that ended at the truth.
        unseen: those that ended at the unseen points.
        began: of those at the truth, those that began there.
        explain: of those elsewhere, those that leave EXPLAINED of the weights or less.
        steps: of a run; 0 where the attack plans none.
        going: whether the others go on.
    """

    total: int
    ended: int
    truth: int
    unseen: int
    began: int
    explain: int
    steps: int
    going: bool = False


@dataclass(eq=False)
class Runs:
    """The known runs of one problem.

    Attributes:
        of: the problem.
        rows: results of the finished runs (`Trace.result`), with the energy of their end.
        states: kept states of runs, the first and the last among them, of pictures the last alone;
            those of the oldest runs go where there would be too many.
        problems: what the runs of each seed share.
        rolling: runs that were begun and have not ended.
        measure: the energy of candidates, kept with each run; None where there is none.
    """

    of: Grid
    rows: dict[Key, dict[str, Any]] = field(default_factory=dict)
    states: dict[Key, list[Any]] = field(default_factory=dict)
    problems: dict[int, Problem] = field(default_factory=dict)
    rolling: dict[Key, Trace] = field(default_factory=dict)
    measure: Callable[[Tensor], float] | None = None
    _live: dict[Key, Iterator[None]] = field(default_factory=dict)

    def todo(self, seeds: int) -> list[Key]:
        """Return the runs that are not finished, those of the first seed first."""
        all_of = [(k, a, b) for k in range(seeds) for a, b in places_of(self.of.side)]
        return [key for key in all_of if key not in self.rows]

    def prepare(self, seeds: int, progress: Progress = no_progress) -> None:
        """Make what the runs share. ValueError where the attack cannot be used here."""
        for k in range(seeds):
            progress(k / seeds)
            if k not in self.problems:
                self.problems[k] = self.of.problem(k)

    def roll(self, keys: list[Key], progress: Progress = no_progress) -> Iterator[None]:
        """Run from these places, TOGETHER side by side; yield whenever all have gone on a bit.

        What `progress` ends goes on where it was when the same places are asked for again.
        """
        for low in range(0, len(keys), TOGETHER):
            group = [key for key in keys[low : low + TOGETHER] if key not in self.rows]
            while group:
                for key in group:
                    progress((low + self._share_of(keys[low : low + TOGETHER])) / len(keys))
                    self._go_on(key)
                group = [key for key in group if key not in self.rows]
                yield

    def run_again(self, key: Key, progress: Progress = no_progress) -> None:
        """Run from one place, whether or not it is known, for its states."""
        for _ in self._run(key):
            progress(self._part_of(key))

    def _go_on(self, key: Key) -> None:
        try:
            next(self._live.setdefault(key, self._run(key)), None)
        except BaseException:  # it would look like one that has ended
            self._live.pop(key, None)
            self.rolling.pop(key, None)
            raise

    def _share_of(self, group: list[Key]) -> float:
        """Return how many runs of a group are done, parts of them counted."""
        return sum(1.0 if key in self.rows else self._part_of(key) for key in group)

    def _part_of(self, key: Key) -> float:
        trace = self.rolling.get(key)
        if trace is None or trace.last is None:
            return 0.0
        return float(min(1.0, trace.last.t / max(self.of.config.steps, 1)))

    def _run(self, key: Key) -> Iterator[None]:
        """Yield one run, from place to place of its trail; it is kept when it has ended."""
        k, a, b = key
        problem = self.problems[k]
        kept: list[Any] = []
        steps, pictures = self.of.config.steps, self.of.pictures is not None
        stride = max(1, steps // (KEPT if self.of.side <= SIDES[0] else FEWEST))
        between = gcd(stride, max(1, steps // TRAIL))  # those of the trail are seen
        pace = _block(between)
        trace = self.rolling[key] = Trace(problem.parts)
        last = None
        for last in problem.states(a, b, _block(between)):
            trace.last = last
            if last.t % stride == 0 and not pictures:
                kept.append(last)
            if last.t % between == 0:
                trace.add(last)
            if last.t % pace == 0:
                yield
        if last is not None and last.t % between:
            trace.add(last)
        if not kept or kept[-1] is not last:
            kept.append(last)
        self._keep(key, trace, kept)

    def _keep(self, key: Key, trace: Trace, kept: list[Any]) -> None:
        k, a, b = key
        result = trace.result()
        if self.measure is not None:
            result["energy"] = self.measure(trace.last.x)
        parts = self.problems[k].parts
        if parts.pictures is None:
            result["apart"] = list(parts.set_distances(trace.last.x))
            result["began"] = list(parts.set_distances(parts.start(a, b)))
        self.states[key] = kept
        numbers = sum(state.x.numel() for state in kept)
        while len(self.states) > max(1, MOST_NUMBERS // numbers):
            del self.states[next(iter(self.states))]
        self.rows[key] = result
        del self.rolling[key]
        self._live.pop(key, None)

    # --- what is drawn --------------------------------------------------------------------------
    def trails(self) -> list[tuple[Key, list[list[float]], int]]:
        """Return each run with its places and the set it ends nearest to: 0 to 2, 3 if it rolls."""
        made = [(key, row["trail"], nearest_set(row)) for key, row in self.rows.items()]
        return made + [
            (key, t.places, ROLLING) for key, t in list(self.rolling.items()) if t.places
        ]

    def arrivals(self, seeds: int, going: bool) -> Arrivals | None:
        """Return where the runs of these seeds ended; None before one began, or where unknown.

        It is not known of pictures, nor of rows that were written before this was noted. Rows of a
        file may lie beside the lattice: they are drawn, and not counted here.
        """
        asked = {(k, a, b) for k in range(seeds) for a, b in places_of(self.of.side)}
        rows = [row for key, row in self.rows.items() if key in asked]
        if not (rows or self.rolling) or not all("apart" in row and "began" in row for row in rows):
            return None
        truth = [row["apart"][0] <= RADIUS for row in rows]
        unseen = [not at and row["apart"][1] <= RADIUS for at, row in zip(truth, rows, strict=True)]
        began = sum(at and row["began"][0] <= RADIUS for at, row in zip(truth, rows, strict=True))
        other = [row for at, row in zip(truth, rows, strict=True) if not at]
        explain = sum(row.get("energy", np.inf) <= EXPLAINED for row in other)
        steps = by_key(self.of.attack).step_count(self.of.config, 0)
        ended = len(rows), sum(truth), sum(unseen)
        return Arrivals(len(asked), *ended, began, explain, steps, going)

    def ends(self) -> Array:
        """Return the energy of each end, mean over seeds, on the lattice of starts (side, side).

        Row noise and column truth, as `Landscape.lattice`; nan where no run ended.
        """
        last = self.of.side - 1
        out = np.full((last + 1, last + 1), np.nan)
        for k in range(last + 1):
            for i in range(last + 1 - k):
                mix = mix_of(i, last - k - i, k)
                found = [
                    row.get("energy", np.nan) for key, row in self.rows.items() if key[1:] == mix
                ]
                if found:
                    out[k, i] = float(np.mean(found))
        return out


def nearest_set(row: dict[str, Any]) -> int:
    """Return the set that a finished run ends nearest to, as its number in NAMES."""
    return int(np.argmin([row[name] for name in NAMES]))
