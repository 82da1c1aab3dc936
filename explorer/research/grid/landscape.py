"""The landscape of starts on the weights of a page: its energies, and the runs from its places."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, gcd
from typing import Any

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.certificate import TAU_TRAINED
from explorer.engine.energy.landscape import StartLandscape
from explorer.engine.energy.points import Following, check_energy
from explorer.engine.energy.starts import NAMES, mix_of, mix_weights, places_of
from explorer.engine.merging import merge_neurons
from explorer.engine.progress import Progress, no_progress
from explorer.engine.roster import by_key
from explorer.engine.scoring import score
from explorer.research.grid import TRAIL, Grid, Problem, Trace
from explorer.research.runs import AS_WELL, RADIUS

ALIKE = 1e-3  # radians: nearer neurons are one; arbitrary: residuals of trained weights stay, to 1%
SIDES = (6, 11, 26)  # places a side of the triangle from which attacks run: 21, 66, 351 in all


def landscape_of(problem: Problem) -> StartLandscape:
    """Return the energies of all starts of a problem, as shares of the weights.

    An energy is the square of the residual that `certify` has, with slopes free as there: at the
    truth it is what the training points leave unexplained.

    Args:
        problem: the target and the three sets.

    Raises:
        ValueError: for weights without an energy.
    """
    parts, own = problem.parts, by_key(problem.of.attack).own
    if own is not None:
        return StartLandscape(parts, lambda x: own.energy(problem.target, x, parts.y))
    net, y = problem.target.net.to(dtype=torch.float64), parts.y.double()
    check_energy(net, parts.truth.double(), y, TAU_TRAINED, several=True)
    return StartLandscape(parts, Following(merge_neurons(net, ALIKE).net, y, TAU_TRAINED))


# --- Runs from many places, side by side, kept so that they can go on later

KEPT = 20  # arbitrary: states kept of a run on a coarse grid, for the timeline
MOST_STEPS = 500  # arbitrary: in one go; a third of a second of a joint attack on 2-100-100-1
TOGETHER = 21  # runs side by side; arbitrary: as many as the coarsest triangle has
ROLLING = 3  # in place of the number of a set: a run that has not ended
FEWEST = 2  # states kept of a run on a finer one: its start and its end
MOST_NUMBERS = 2**22  # arbitrary: coordinates in all states kept; a state takes some six times that

LEVEL = 0.001  # of the weights: a run is level whose energy falls by no more; arbitrary
LAST = 10  # share of a run, one in so many, over which it is level; arbitrary
LEGS = 5  # times the attack's steps after which a run ends that is not level; arbitrary
MOST = 0.9  # of the points: a run that recovers so many ends at the truth; arbitrary
KNOWN = {"recovered", "energy", "level"}  # of a row that is counted
PROCESSORS = 2  # runs that go on at once; arbitrary: those of a small machine
Key = tuple[int, float, float]  # number of the seed, mix_truth, mix_data


def _block(between: int) -> int:
    """Return the steps in one go: `between`, or a part of it that takes less than a second."""
    parts = (k for k in range(MOST_STEPS // 10, MOST_STEPS + 1) if between % k == 0)
    return between if between <= MOST_STEPS else max(parts, default=between)


@dataclass(frozen=True)
class Arrivals:
    """Where the runs from all places ended, and what these ends are.

    Attributes:
        total: runs that were asked for.
        ended: those that have ended.
        level: of these, those that ended level, see `level_states`.
        truth: those that recover MOST of the points, see `least_at_truth`.
        other: of the others, those that are as good, see `good_up_to`: another
            explanation. The rest is stuck.
        left: what the truth leaves of the weights.
        points: of the truth.
        going: whether the others go on.
    """

    total: int
    ended: int
    level: int
    truth: int
    other: int
    left: float
    points: int
    going: bool = False

    @property
    def stuck(self) -> int:
        """Return how many ended at nothing that explains the weights as the truth does."""
        return self.ended - self.truth - self.other


def good_up_to(left: float, own: bool) -> float:
    """Return the energy up to which a set is as good as the truth, which leaves `left`.

    An energy of KKT is the square of a share, one of an attack's `own` is not.
    """
    return max(AS_WELL if own else AS_WELL**2, left)


def least_at_truth(points: int) -> int:
    """Return how many of so many points a run recovers at least that ends at the truth."""
    return ceil(MOST * points)


def recovered_count(problem: Problem, x: Tensor, y: Tensor) -> int:
    """Return how many points claims x (k, d), y (k,) recover."""
    assert problem.of.truth is not None  # a landscape has one
    return int(score(problem.of.truth, x, y, (RADIUS,)).found)


Measure = Callable[[Tensor], float]


def level_states(
    problem: Problem, mix: tuple[float, float], stride: int, measure: Measure | None
) -> Iterator[tuple[Any, bool]]:
    """Yield a run until it is level, each state with whether the run is level there.

    A run takes the steps that its settings say. It is level where its energy fell by LEVEL or less
    over the last one in LAST of them; where it did not, it goes on from there by the same settings,
    with fitted multipliers, LEGS times in all at most. Without a measure it ends as planned.
    """
    config, start, done = problem.of.settings_at(mix[1]), problem.parts.start(*mix), 0
    steps = by_key(problem.of.attack).step_count(config, 0)
    tail = steps - steps // LAST
    for leg in range(LEGS):
        before, last = None, None
        for state in problem.states_from(start, config, stride):
            if leg and not state.t:
                continue  # the end of the leg before
            if before is None and state.t >= tail:
                before = state
            if last is not None:
                yield last, False
            last = replace(state, t=done + state.t)
        if last is None:
            return
        off, level = getattr(last, "diverged", False), True
        if measure is not None and before is not None:
            level = measure(before.x) - measure(last.x) <= LEVEL
        level = level and not off
        yield last, level
        if off or level:
            return
        start, done = last.x, last.t
        config = by_key(problem.of.attack).suit(config, 1.0)


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
    measure: Measure | None = None
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
        with ThreadPoolExecutor(min(PROCESSORS, os.cpu_count() or 1)) as threads:
            for low in range(0, len(keys), TOGETHER):
                every = keys[low : low + TOGETHER]
                while group := [key for key in every if key not in self.rows]:
                    for _ in threads.map(self._go_on, group):
                        progress((low + self._share_of(every)) / len(keys))
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
        legs = 1 if self.measure is None else LEGS
        return float(min(1.0, trace.last.t / max(legs * self.of.config.steps, 1)))

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
        last, level = None, False
        for last, ends in level_states(problem, (a, b), pace, self.measure):
            trace.last, level = last, ends
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
        self._keep(key, trace, kept, level)

    def _keep(self, key: Key, trace: Trace, kept: list[Any], level: bool) -> None:
        k, a, b = key
        result = trace.result()
        problem, parts = self.problems[k], self.problems[k].parts
        if self.measure is not None:
            result |= {"energy": self.measure(trace.last.x), "level": level}
        if parts.pictures is None:
            entry, last = by_key(self.of.attack), trace.last
            made = entry.report(problem.target, last, problem.of.settings_at(b))
            begun = recovered_count(problem, parts.start(a, b), parts.y)
            result["recovered"] = [recovered_count(problem, made.x, made.y), begun]
            if len(made.x):  # candidates that carry nothing of the weights are no part of the end
                result["trail"] = [*trace.places[:-1], list(parts.claims_weights(made.x, made.y))]
        self.states[key] = kept
        numbers = sum(state.x.numel() for state in kept)
        while len(self.states) > max(1, MOST_NUMBERS // numbers):
            del self.states[next(iter(self.states))]
        self.rows[key] = result
        del self.rolling[key]
        self._live.pop(key, None)

    # --- what is drawn --------------------------------------------------------------------------
    def trails(self) -> list[tuple[Key, list[list[float]], int]]:
        """Return each run with its places and what its end is: see `_end`; 3 if it rolls."""
        made = [(key, row["trail"], self._end(row)) for key, row in list(self.rows.items())]
        return made + [
            (key, t.places, ROLLING) for key, t in list(self.rolling.items()) if t.places
        ]

    def met(self, key: Key) -> int:
        """Return how many points the finished run from here recovers; -1 where unknown."""
        return int(self.rows.get(key, {}).get("recovered", (-1,))[0])

    def best(self, near: tuple[float, float, float]) -> Key | None:
        """Return the run with states that recovers most; of equals that begun nearest to a place.

        `near`: shares of truth, unseen points and noise. None where it is not known of any.
        """
        known = [key for key in list(self.states) if self.met(key) >= 0]

        def rank(key: Key) -> tuple[int, float]:
            begun = mix_weights(*key[1:])
            return -self.met(key), sum((a - b) ** 2 for a, b in zip(begun, near, strict=True))

        return min(known, key=rank, default=None)

    def _end(self, row: dict[str, Any]) -> int:
        """Return 0 for the truth, 1 for another explanation, 2 for stuck, as `Arrivals` says.

        Of rows that do not tell, the number of the set in NAMES that it ends nearest to.
        """
        if self.measure is None or not row.keys() >= KNOWN:
            return nearest_set(row)
        if row["recovered"][0] >= least_at_truth(self._points):
            return 0
        own = by_key(self.of.attack).own is not None
        return 2 if row["energy"] > good_up_to(self.left, own) else 1

    @property
    def _points(self) -> int:
        return 0 if self.of.truth is None else self.of.truth.n

    def arrivals(self, seeds: int, going: bool) -> Arrivals | None:
        """Return where the runs of these seeds ended; None before one began, or where unknown.

        It is not known of pictures, nor of rows that were written before this was noted. Rows of a
        file may lie beside the lattice: they are drawn, and not counted here.
        """
        if self.measure is None:
            return None
        asked = {(k, a, b) for k in range(seeds) for a, b in places_of(self.of.side)}
        rows = [row for key, row in list(self.rows.items()) if key in asked]
        if not (rows or self.rolling) or not all(KNOWN <= row.keys() for row in rows):
            return None
        kinds = [self._end(row) for row in rows]
        ended = len(rows), sum(row["level"] for row in rows), kinds.count(0), kinds.count(1)
        return Arrivals(len(asked), *ended, self.left, self._points, going)

    @cached_property
    def left(self) -> float:
        """Return what the truth leaves of the weights; 1 where nothing is measured."""
        if self.measure is None:
            return 1.0
        self.prepare(1)
        return self.measure(self.problems[0].parts.truth)

    def ends(self) -> Array:
        """Return the energy of each end, mean over seeds, on the lattice of starts (side, side).

        Row noise and column truth, as `StartLandscape.lattice`; nan where no run ended.
        """
        last = self.of.side - 1
        out = np.full((last + 1, last + 1), np.nan)
        for k in range(last + 1):
            for i in range(last + 1 - k):
                mix = mix_of(i, last - k - i, k)
                rows = list(self.rows.items())
                found = [row.get("energy", np.nan) for key, row in rows if key[1:] == mix]
                if found:
                    out[k, i] = float(np.mean(found))
        return out


def nearest_set(row: dict[str, Any]) -> int:
    """Return the set that a finished run ends nearest to, as its number in NAMES."""
    return int(np.argmin([row[name] for name in NAMES]))
