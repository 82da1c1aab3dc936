"""The energies of all starts at several ages of one training, from its first steps to its limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter

from explorer.engine.arrays import Array
from explorer.engine.energy.landscape import SIDES, StartLandscape
from explorer.engine.progress import Progress, Stopped, no_progress, part_progress
from explorer.engine.store import Run
from explorer.research.grid import Grid
from explorer.research.grid.landscape import landscape_of
from explorer.research.runs import train, watch_of

AGES = (100, 1000, 6000, None)  # steps of training; None: the exact maximum margin
COARSE, FINE = SIDES[1:3]  # places a side
MOST_S = 10.0  # of the finer lattice of one age, which is left out where it would take longer


@dataclass(frozen=True, eq=False)
class Age:
    """The landscape of a training at one age.

    Attributes:
        steps: of training; None at the exact maximum margin.
        energies: of the starts (side, side), row noise and column truth, as `StartLandscape` has
            them.
    """

    steps: int | None
    energies: Array


def landscape_ages(
    of: Grid, run: Run, progress: Progress = no_progress
) -> Iterator[tuple[Age, ...]]:
    """Yield the landscapes of those of `AGES` at which the weights have an energy, then finer ones.

    The earliest comes last: its weights hardly merge, so that it takes as long as all others.

    Args:
        of: the starts, with an attack on given weights.
        run: the points, the settings of training, and its seed.
        progress: is told the share that is done.
    """
    known: dict[int | None, tuple[StartLandscape, Age, float]] = {}
    for k, steps in enumerate(reversed(AGES)):
        begin, half, over = ((k + share) / 2 / len(AGES) for share in (0.0, 0.5, 1.0))
        found = _landscape_at(of, run, steps, part_progress(progress, begin, half))
        begun = perf_counter()
        if found is not None:
            part = part_progress(progress, half, over)
            made = Age(steps, found.lattice(COARSE, part))
            known[steps] = found, made, (perf_counter() - begun) * (FINE / COARSE) ** 2
        if k >= len(AGES) - 2:
            yield tuple(age for _, age, _ in known.values())
    for k, (steps, (found, _, expected)) in enumerate(known.items()):
        if expected < MOST_S:
            part = part_progress(progress, (1 + k / len(known)) / 2, (1 + (k + 1) / len(known)) / 2)
            known[steps] = found, Age(steps, found.lattice(FINE, part)), expected
            yield tuple(age for _, age, _ in known.values())


def _landscape_at(
    of: Grid, run: Run, steps: int | None, progress: Progress
) -> StartLandscape | None:
    """Return it after so many steps; None where no point is separated, or none is exact."""
    config = replace(run.train_config, steps=steps or 0)
    aged = replace(run, train_config=config, exact=steps is None, finish=None)
    try:
        there = replace(of, target=train(aged, keep=1, watch=watch_of(progress)).target)
        return landscape_of(there.problem())
    except Stopped:
        raise
    except (RuntimeError, ValueError):
        return None
