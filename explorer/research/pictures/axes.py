"""The axes of the plane: which part of the data's space it shows, at any scale and unit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from explorer.engine.data import PLANE, Dataset

MARGIN = 1.25  # half widths of the plane to those of the data; arbitrary
SMALL = 1 / 4  # share of the half width that a loaded set should fill at least; arbitrary
EDGE = 1e-9  # a point at the very edge is inside, however its place was rounded


@dataclass(frozen=True)
class Axes:
    """A rectangle of the data's space. On a line the height is Phi over the margin.

    Attributes:
        x: centre and half width, in units of the data.
        y: centre and half height.
    """

    x: tuple[float, float] = (0.0, PLANE)
    y: tuple[float, float] = (0.0, PLANE)

    @property
    def centre(self) -> NDArray[np.float64]:
        """Return the centre (2,), in units of the data."""
        return np.array([self.x[0], self.y[0]])

    @property
    def half(self) -> NDArray[np.float64]:
        """Return half width and half height (2,), in units of the data."""
        return np.array([self.x[1], self.y[1]])

    @property
    def reach(self) -> float:
        """Return the half width of the smallest square around 0 that holds the plane."""
        return float((np.abs(self.centre) + self.half).max())

    def shares(self, places: ArrayLike) -> NDArray[np.float64]:
        """Return places (k, 2) as shares of the half sizes: (-1, -1) is bottom left."""
        return (np.asarray(places, dtype=float).reshape(-1, 2) - self.centre) / self.half

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return the place at shares of the whole sizes, from 0 at the left and the bottom to 1."""
        at = self.centre + (2 * np.array([x, y]) - 1) * self.half
        return float(at[0]), float(at[1])

    def holds(self, dataset: Dataset) -> bool:
        """Return whether all points lie inside."""
        x, half = dataset.x.double().cpu(), torch.from_numpy(self.half)[: dataset.d]
        return bool(
            ((x - torch.from_numpy(self.centre)[: dataset.d]).abs() <= half * (1 + EDGE)).all()
        )


def axes_for(axes: Axes, dataset: Dataset, loaded: bool = False) -> Axes:
    """Return `axes` where they show the points well, else those that do.

    A set that was `loaded` should fill the plane. Points that are drawn by hand, inside the axes,
    do not move them.
    """
    if not dataset.n:
        return Axes()
    low, high = _bounds(dataset)
    spread = float((high - low).max()) / 2
    readable = spread >= SMALL * axes.x[1] or dataset.n < 2
    if axes.holds(dataset) and (readable or not loaded):
        return axes
    first = Axes()
    if first.holds(dataset) and (spread >= SMALL * PLANE or dataset.n < 2):
        return first
    furthest = float(np.abs([low, high]).max())
    half, centre = _nice(MARGIN * (spread or furthest)), (low + high) / 2
    # About 0 where that holds them all, so that the axes keep their zero.
    if furthest <= half:
        centre = np.zeros_like(centre)
    if dataset.d == 1:
        return Axes(x=(float(centre[0]), half))
    return Axes((float(centre[0]), half), (float(centre[1]), half))


def _bounds(dataset: Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x = dataset.x.double().cpu().numpy()
    return x.min(0), x.max(0)


def _nice(value: float) -> float:
    """Return the next number of two digits."""
    power = 10.0 ** (np.floor(np.log10(value)) - 1)
    return float(f"{np.ceil(value / power) * power:.2g}")
