"""Paths over the triangle of starts, and the energies that are read along them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.engine.energy.landscape import Weights

Array = NDArray[np.float64]
CORNERS: dict[str, Weights] = {
    "truth": (1.0, 0.0, 0.0), "unseen": (0.0, 1.0, 0.0), "noise": (0.0, 0.0, 1.0),
}  # fmt: skip
PATHS = {
    "noise": ("noise", "truth"), "unseen": ("unseen", "truth"),
    "edges": ("truth", "unseen", "noise", "truth"),
}  # fmt: skip
THROUGH = ("noise", "unseen")  # paths that bend to pass the handle
SAMPLES = 81  # of a path; arbitrary: some px each


@dataclass(frozen=True, eq=False)
class Path:
    """A path of straight pieces over the triangle.

    Attributes:
        places: weights of the samples (k, 3).
        along: how far along the path each is (k,), 0 to 1.
        marks: corners, with how far along they are.
        handle: how far along the handle is, or is nearest.
    """

    places: Array
    along: Array
    marks: list[tuple[float, str]]
    handle: float


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
    along = np.unique(np.concatenate([np.linspace(0, 1, SAMPLES), ends]))
    places = np.stack([np.interp(along, ends, stops[:, c]) for c in range(3)], 1)
    if kind in THROUGH:
        return Path(places, along, [(0.0, names[0]), (1.0, names[1])], float(ends[1]))
    far = np.linalg.norm(places - np.array(handle), axis=1)
    marks = [(float(at), name) for at, name in zip(ends, names, strict=True)]
    return Path(places, along, marks, float(along[int(far.argmin())]))
