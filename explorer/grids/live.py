"""The grid of starts on the weights of a page: cell by cell, kept, so that it can go on later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import gcd
from threading import Event
from typing import Any

from explorer.engine.attacks.target import Target
from explorer.engine.data import Dataset
from explorer.engine.lambda_grid import SIDE, Pictures, starts
from explorer.engine.roster import by_key
from explorer.grids.cells import TRAIL, Problem, outcome, problem_of

KEPT = 20  # arbitrary: states kept of a run on a coarse grid, for the timeline
FEWEST = 2  # states kept of a run on a finer one: its start and its end
MOST_NUMBERS = 2**22  # arbitrary: coordinates in all states kept; a state takes some six times that

Key = tuple[int, float, float]  # number of the seed, mix_truth, mix_data


@dataclass(frozen=True)
class Of:
    """Which problem: equal settings on the very same weights and points are the same one."""

    target: Target | None
    truth: Dataset | None
    heldout: Dataset | None
    attack: str
    config: Any
    seed: int
    side: int
    pictures: Pictures | None = None

    @property
    def ready(self) -> bool:
        """Whether there is something to attack: weights, or a victim of the attack's own."""
        known = self.target is not None or by_key(self.attack).victim is not None
        return known and self.truth is not None and self.heldout is not None


@dataclass(eq=False)
class Found:
    """What is known of one problem.

    Attributes:
        of: the problem.
        rows: finished cells, as `maps.maps` takes them.
        states: kept states of cells, the first and the last among them, of pictures the last alone;
            those of the oldest cells go where there would be too many.
        problems: what the cells of each seed share.
    """

    of: Of
    rows: dict[Key, dict[str, Any]] = field(default_factory=dict)
    states: dict[Key, list[Any]] = field(default_factory=dict)
    problems: dict[int, Problem] = field(default_factory=dict)

    def todo(self, seeds: int) -> list[Key]:
        """Cells that are not done, those of the first seed first."""
        all_of = [(k, a, b) for k in range(seeds) for a, b in starts(self.of.side)]
        return [key for key in all_of if key not in self.rows]

    def share(self, seeds: int) -> float:
        """Share of the cells that are done."""
        total = len(starts(self.of.side)) * seeds
        return 1 - len(self.todo(seeds)) / total

    def prepare(self, seeds: int) -> None:
        """Make what the cells share. ValueError where the attack cannot be used here."""
        of = self.of
        if not of.ready or of.truth is None or of.heldout is None:
            raise ValueError("No weights to attack: train a network first.")
        for k in range(seeds):
            if k not in self.problems:
                self.problems[k] = problem_of(
                    by_key(of.attack), of.config, of.target, of.truth, of.heldout, of.seed + k,
                    of.pictures,
                )  # fmt: skip

    def run(self, key: Key, stop: Event) -> None:
        """Run one cell and keep it, unless it is stopped."""
        k, a, b = key
        problem = self.problems[k]
        kept: list[Any] = []
        stride = max(1, problem.config.steps // (KEPT if self.of.side <= SIDE else FEWEST))
        between = gcd(stride, max(1, problem.config.steps // TRAIL))  # those of the trail are seen

        def watched() -> Iterator[Any]:
            last = None
            for last in problem.states(a, b, between):
                if last.t % stride == 0 and self.of.pictures is None:
                    kept.append(last)
                yield last
                if stop.is_set():
                    return
            if not kept or kept[-1] is not last:
                kept.append(last)

        result = outcome(problem.parts, watched())
        if not stop.is_set():
            self.states[key] = kept
            numbers = sum(state.x.numel() for state in kept)
            while len(self.states) > max(1, MOST_NUMBERS // numbers):
                del self.states[next(iter(self.states))]
            self.rows[key] = {"mix_truth": a, "mix_data": b, "seed": k, "result": result}
