r"""The energy of every start of an attack, over the triangle of truth, unseen points and noise.

A place of the triangle is a mixture, its weights are barycentric, and its energy is what the
candidates there leave of the weights. A lattice of side s holds the s (s + 1) / 2 places whose
weights are whole multiples of 1 / (s - 1). Each side of `SIDES` holds all places of the one before,
which are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import gcd
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from explorer.engine.energy.starts import Parts, mix_from_weights
from explorer.engine.progress import Progress, no_progress

Array = NDArray[np.float64]
Weights = tuple[float, float, float]  # of truth, unseen points and noise; they sum to 1
SIDES = (4, 7, 13, 25, 49)  # 10, 28, 91, 325 and 1225 places; each lattice holds the one before
LOOK_S = 0.3  # between two looks at a lattice that is being computed; arbitrary
AS_ONE = 1e-9  # of a weight: places nearer to each other are one; far below a pixel


@dataclass(frozen=True, eq=False)
class Landscape:
    """The energy of all mixtures of three sets.

    Attributes:
        parts: the three sets, paired row by row.
        measure: the energy of candidates (m, d).
        known: energies that were computed, by the place's whole numbers over a common denominator.
    """

    parts: Parts
    measure: Callable[[Tensor], float]
    known: dict[tuple[int, int, int], float] = field(default_factory=dict)

    def candidates(self, weights: Weights) -> Tensor:
        """The start at a place (m, d). ValueError for weights of no place of the triangle."""
        return self.parts.start(*mix_from_weights(*weights))

    def energy(self, weights: Weights) -> float:
        """The energy of the start at a place."""
        place = _place(weights)
        if place is not None and place in self.known:
            return self.known[place]
        return self.measure(self.candidates(weights))

    def node(self, i: int, j: int, k: int) -> float:
        """The energy where the weights are i, j and k over their sum; computed once."""
        common = gcd(i, j, k)
        place = (i // common, j // common, k // common)
        if place not in self.known:
            total = sum(place)
            mix = mix_from_weights(place[0] / total, place[1] / total, place[2] / total)
            self.known[place] = self.measure(self.parts.start(*mix))
        return self.known[place]

    def lattice(self, side: int, progress: Progress = no_progress) -> Array:
        """Energies on a lattice (side, side), row noise and column truth; nan where no place is.

        Raises:
            ValueError: for fewer than 2 places a side.
        """
        *_, last = self.looks(side, None, progress)
        return last

    def looks(
        self, side: int, before: Array | None = None, progress: Progress = no_progress
    ) -> Iterator[Array]:
        """The lattice as it fills: places that are not computed yet are read from `before`.

        The last one is complete. `progress` is told the share of the places that are done.

        Raises:
            ValueError: for fewer than 2 places a side.
        """
        if side < 2:
            raise ValueError(f"a triangle needs 2 or more places a side; got {side}. Try 25.")
        out = np.full((side, side), np.nan) if before is None else between_places(before, side)
        last, places = side - 1, _spread(side)
        looked = perf_counter()
        for done, (k, i) in enumerate(places):
            progress(done / len(places))
            out[k, i] = self.node(i, last - i - k, k)
            if perf_counter() - looked > LOOK_S:
                yield out.copy()
                looked = perf_counter()
        yield out


def _place(weights: Weights) -> tuple[int, int, int] | None:
    """The whole numbers of a place of the finest lattice; None for places between."""
    last = SIDES[-1] - 1
    scaled = [w * last for w in weights]
    near = [round(v) for v in scaled]
    if any(abs(a - b) > AS_ONE * last for a, b in zip(scaled, near, strict=True)):
        return None
    common = gcd(*near) or 1
    return near[0] // common, near[1] // common, near[2] // common


def _spread(side: int) -> list[tuple[int, int]]:
    """The places (noise, truth) of a lattice, corners and edges first, then row by row."""
    last = side - 1
    all_of = [(k, i) for k in range(side) for i in range(side - k)]

    def rank(place: tuple[int, int]) -> int:
        zeros = [place[0], place[1], last - sum(place)].count(0)
        return -zeros

    return sorted(all_of, key=rank)


def between_places(values: Array, side: int) -> Array:
    """A lattice read at the places of another, linearly within its small triangles (side, side)."""
    old, last = len(values) - 1, side - 1
    k, i = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    inside = k + i <= last
    row, column = k * old / last, i * old / last
    a, b = np.minimum(row.astype(int), old), np.minimum(column.astype(int), old)
    u, v = row - a, column - b
    upper = u + v > 1  # of the two triangles of a cell

    def at(x: NDArray[np.int64], y: NDArray[np.int64]) -> Array:
        known: Array = np.nan_to_num(values[np.minimum(x, old), np.minimum(y, old)])
        return known

    lower = (1 - u - v) * at(a, b) + u * at(a + 1, b) + v * at(a, b + 1)
    above = (u + v - 1) * at(a + 1, b + 1) + (1 - v) * at(a + 1, b) + (1 - u) * at(a, b + 1)
    return np.where(inside, np.where(upper, above, lower), np.nan)


def profile(
    landscape: Landscape, first: Weights, last: Weights, count: int,
    progress: Progress = no_progress,
) -> Iterator[float]:  # fmt: skip
    """Energies of `count` starts along a line of the triangle, from one place to another."""
    for t in np.linspace(0, 1, count).tolist():
        progress(t)
        a, b = ((1 - t) * p + t * q for p, q in zip(first[:2], last[:2], strict=True))
        yield landscape.energy((a, b, 1 - a - b))
