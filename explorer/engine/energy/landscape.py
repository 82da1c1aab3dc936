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
from torch import Tensor

from explorer.engine.arrays import Array, Index
from explorer.engine.energy.starts import Parts, lattice, mix_from_weights, mix_of
from explorer.engine.progress import Progress, no_progress

Weights = tuple[float, float, float]  # of truth, unseen points and noise; they sum to 1
SIDES = (4, 7, 13, 25, 49)  # 10, 28, 91, 325 and 1225 places; each lattice holds the one before
LOOK_S = 0.3  # between two looks at a lattice that is being computed; arbitrary
NEAR = 1e-9  # of a step of the lattice: rounding
AS_ONE = 1e-9  # of a weight: places nearer to each other are one; far below a pixel


@dataclass(frozen=True, eq=False)
class StartLandscape:
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
        """Return the start at a place (m, d).

        ValueError for weights of no place of the triangle.
        """
        return self.parts.start(*mix_from_weights(*weights))

    def energy(self, weights: Weights) -> float:
        """Return the energy of the start at a place."""
        place = _place(weights)
        if place is not None and place in self.known:
            return self.known[place]
        return self.measure(self.candidates(weights))

    def node(self, i: int, j: int, k: int) -> float:
        """Return the energy where the weights are i, j and k over their sum; computed once."""
        common = gcd(i, j, k)
        place = (i // common, j // common, k // common)
        if place not in self.known:
            self.known[place] = self.measure(self.parts.start(*mix_of(*place)))
        return self.known[place]

    def lattice(self, side: int, progress: Progress = no_progress) -> Array:
        """Return energies on a lattice (side, side), row noise and column truth; nan for no place.

        Raises:
            ValueError: for fewer than 2 places a side.
        """
        *_, last = self.looks(side, None, progress)
        return last

    def looks(
        self, side: int, before: Array | None = None, progress: Progress = no_progress
    ) -> Iterator[Array]:
        """Yield the lattice as it fills: places that are not computed yet are read from `before`.

        The last one is complete. `progress` is told the share of the places that are done.

        Raises:
            ValueError: for fewer than 2 places a side.
        """
        places, looked = lattice(side), perf_counter()
        out = np.full((side, side), np.nan) if before is None else between_places(before, side)
        for done, (i, j, k) in enumerate(places):
            progress(done / len(places))
            out[k, i] = self.node(i, j, k)
            if perf_counter() - looked > LOOK_S:
                yield out.copy()
                looked = perf_counter()
        yield out


def on_edge(weights: Weights) -> bool:
    """Return whether a place lies on an edge of the triangle, or at a corner."""
    return min(weights) <= AS_ONE


def edge_place(weights: Weights) -> float:
    """Return how far round the triangle a place of an edge is: truth 0, unseen 1, noise 2."""
    truth, _, noise = weights
    if noise <= AS_ONE:
        return 1 - truth
    return 1 + noise if truth <= AS_ONE else 2 + truth


def _place(weights: Weights) -> tuple[int, int, int] | None:
    """Return the whole numbers of a place of the finest lattice; None for places between."""
    last = SIDES[-1] - 1
    scaled = [w * last for w in weights]
    near = [round(v) for v in scaled]
    if any(abs(a - b) > AS_ONE * last for a, b in zip(scaled, near, strict=True)):
        return None
    common = gcd(*near) or 1
    return near[0] // common, near[1] // common, near[2] // common


def between_places(values: Array, side: int) -> Array:
    """Return a complete lattice read at the places of another (side, side)."""
    last = side - 1
    k, i = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    inside = k + i <= last
    out = np.full((side, side), np.nan)
    weights = np.stack([i, last - i - k, k], -1)[inside] / last
    out[inside] = read_lattice(values, weights)
    return out


def read_lattice(values: Array, places: Array) -> Array:
    """Return a lattice (side, side) read at places (p, 3), linearly in its small triangles (p,).

    Row noise and column truth. nan where a corner of the small triangle is not known.
    """
    last = len(values) - 1
    row, column = places[:, 2] * last, places[:, 0] * last
    a = np.clip(np.floor(row + NEAR).astype(int), 0, last)
    b = np.clip(np.floor(column + NEAR).astype(int), 0, last)
    u, v = np.clip(row - a, 0, 1), np.clip(column - b, 0, 1)
    upper = (u + v > 1 + NEAR) & (a + b + 2 <= last)  # of the two triangles of a rhombus

    def at(x: Index, y: Index, share: Array) -> Array:
        found = values[np.minimum(x, last), np.minimum(y, last)]
        return np.where(np.abs(share) < NEAR, 0.0, share * found)

    below = at(a, b, 1 - u - v) + at(a + 1, b, u) + at(a, b + 1, v)
    above = at(a + 1, b + 1, u + v - 1) + at(a + 1, b, 1 - v) + at(a, b + 1, 1 - u)
    found: Array = np.where(upper, above, below)
    return found


# --- paths over the triangle, along which energies are read ---

CORNERS: dict[str, Weights] = {
    "truth": (1.0, 0.0, 0.0), "unseen": (0.0, 1.0, 0.0), "noise": (0.0, 0.0, 1.0),
}  # fmt: skip
PATHS = {
    "noise": ("noise", "truth"),
    "unseen": ("unseen", "truth"),
    "edges": ("truth", "unseen", "noise", "truth"),
}
THROUGH = ("noise", "unseen")  # paths that bend to pass the handle
SAMPLES = 81  # of a path; arbitrary: some px each


@dataclass(frozen=True, eq=False)
class Path:
    """A path of straight pieces over the triangle.

    Attributes:
        places: weights of the samples (k, 3).
        along: how far along the path each is (k,), 0 to 1.
        marks: corners, with how far along they are.
        handle: how far along the handle is; None where the path does not pass it.
    """

    places: Array
    along: Array
    marks: list[tuple[float, str]]
    handle: float | None


def path(kind: str, handle: Weights) -> Path:
    """Return a path of PATHS: from corner to corner by the handle, or along all edges."""
    names = PATHS[kind]
    turns = [CORNERS[name] for name in names]
    if kind in THROUGH:
        turns.insert(1, handle)
    stops = np.array(turns)
    lengths = np.linalg.norm(np.diff(stops, axis=0), axis=1)
    total = max(float(lengths.sum()), 1e-12)
    ends = np.concatenate([[0.0], np.cumsum(lengths) / total])
    ends[-1] = 1.0
    at: float | None = edge_place(handle) / 3 if on_edge(handle) else None
    if kind in THROUGH:
        at, marks = float(ends[1]), [(0.0, names[0]), (1.0, names[1])]
    else:
        marks = [(float(end), name) for end, name in zip(ends, names, strict=True)]
    known = ends if at is None else np.append(ends, at)
    along = np.unique(np.concatenate([np.linspace(0, 1, SAMPLES), known]))
    places = np.stack([np.interp(along, ends, stops[:, c]) for c in range(3)], 1)
    return Path(places, along, marks, at)
