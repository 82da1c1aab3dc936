r"""The triangle of starts: its geometry, its lattice, and a lattice of values as pixels.

A start is a mixture of truth, held-out data and noise; its three weights sum to 1, so it is one
place of a triangle. A lattice of side s holds the s (s + 1) / 2 places whose weights are whole
multiples of 1 / (s - 1), evenly over the triangle, where (lambda_1, lambda_2) crowds them at noise.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# Truth, held-out data, noise in the unit square, equal sides, with room around for the names.
CORNERS = np.array([[0.5, 0.88], [0.08, 0.15], [0.92, 0.15]])
PIXELS = 360  # a side of the picture; arbitrary: about one a pixel of the screen
INSIDE = -1e-9  # weights down to this are inside: rounding


def weights_at(x: Array, y: Array, corners: Array = CORNERS) -> Array:
    """Weights (..., 3) of places x, y (...): they sum to 1, one is negative outside."""
    system = np.vstack([corners.T, np.ones(3)])
    places = np.stack([x, y, np.ones_like(x)], -1)
    found: Array = places @ np.linalg.inv(system).T
    return found


def nearest(weights: Array, side: int) -> NDArray[np.int64]:
    """Lattice places (..., 3) nearest to weights (..., 3) of the triangle; each sums to side - 1.

    All three are rounded, and the one that was rounded most makes up for the others.
    """
    wanted = weights * (side - 1)
    near = np.rint(wanted)
    worst = np.abs(near - wanted).argmax(-1, keepdims=True)
    missing = side - 1 - near.sum(-1, keepdims=True)
    np.put_along_axis(near, worst, np.take_along_axis(near, worst, -1) + missing, -1)
    return near.astype(np.int64)


def value_at(values: Array, x: float, y: float) -> float:
    """The value of a lattice (side, side), row noise and column truth, at a place; nan outside."""
    weights = weights_at(np.array(x), np.array(y))
    if weights.min() < INSIDE:
        return float("nan")
    truth, _, noise = nearest(weights, len(values))
    return float(values[noise, truth])


def raster(values: Array, pixels: int = PIXELS) -> Array:
    """A lattice (side, side) as pixels (pixels, pixels), first row on top; nan outside."""
    noise, truth, inside = _pixels(len(values), pixels)
    return np.where(inside, values[noise, truth], np.nan)


@lru_cache(maxsize=4)
def _pixels(side: int, pixels: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    at = (np.arange(pixels) + 0.5) / pixels
    x, y = np.meshgrid(at, at[::-1])
    weights = weights_at(x, y)
    inside = weights.min(-1) >= INSIDE
    near = nearest(np.where(inside[..., None], weights, 1 / 3), side)
    return near[..., 2], near[..., 0], inside


def paths(trails: list[list[list[float]]], corners: Array = CORNERS) -> Array:
    """Runs, each rows of weights, as one path (k, 2) broken by nan, cut at the unit square."""
    gap = np.full((1, 2), np.nan)
    pieces = [piece for t in trails for piece in (np.clip(np.asarray(t) @ corners, 0, 1), gap)]
    return np.concatenate(pieces[:-1]) if pieces else np.zeros((2, 2))


def reading(x: float, y: float) -> str:
    """What stands at a place, in words: its three weights, and the two numbers of the mixture."""
    truth, heldout, noise = (float(v) for v in weights_at(np.array(x), np.array(y)))
    if min(truth, heldout, noise) < INSIDE:
        return "outside the triangle"
    truth, heldout, noise = (abs(round(v, 6)) for v in (truth, heldout, noise))  # no "-0%"
    data = 1 - noise
    share = f"{truth / data:.2f}" if data > 1e-6 else "any"
    return (
        f"{truth:.0%} truth, {heldout:.0%} held-out data, {noise:.0%} noise "
        f"(λ₁ = {share}, λ₂ = {data:.2f})"
    )
