"""The cell of a point in view: a polygon on the plane, an interval on the line."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from explorer.engine.cells import Cell

Array = NDArray[np.float64]


def cell_polygon(cell: Cell, x: Tensor, extent: float) -> Array:
    """Corners of the closed cell of x within [-extent, extent]^2, in order. -> (c, 2), c may be 0.

    Half-planes are cut off one by one (Sutherland and Hodgman 1974). A kink of free slope holds
    the point on its line, which is then the cell: two corners, or one place given twice.
    """
    corners = extent * np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])
    at = x.detach().numpy()
    kinks = set(cell.kinks.tolist())
    for row in range(len(cell.z)):
        normal, z = cell.jacobian[row].numpy(), float(cell.z[row])
        size = float(np.linalg.norm(normal))
        if size == 0:
            continue
        side = 1.0 if float(cell.slopes[row]) > 0.5 else -1.0
        values = (side * z + side * ((corners - at) @ normal)) / size
        corners = _cut(corners, values)
        if row in kinks and len(corners):
            corners = _cut(corners, -(z + (corners - at) @ normal) * side / size)
    return corners


def cell_interval(cell: Cell, x: Tensor, extent: float) -> tuple[float, float]:
    """The closed cell of x within [-extent, extent] on the line; one point at a free slope."""
    at = float(x[0])
    low, high = -extent, extent
    for row in range(len(cell.z)):
        slope, z = float(cell.jacobian[row, 0]), float(cell.z[row])
        if slope == 0:
            continue
        wall = at - z / slope
        on = 0 < float(cell.slopes[row]) < 1 and row in cell.kinks.tolist()
        if on or (slope > 0) == (float(cell.slopes[row]) > 0.5):
            low = max(low, min(wall, at))
        if on or (slope > 0) != (float(cell.slopes[row]) > 0.5):
            high = min(high, max(wall, at))
    return low, high


def _cut(corners: Array, values: Array) -> Array:
    """The part of a polygon where values (one per corner, linear) are not negative."""
    tolerance = 1e-9  # arbitrary: a wall that runs through the point itself does not cut it off
    out = []
    for i in range(len(corners)):
        j = (i + 1) % len(corners)
        a, b = values[i], values[j]
        if a >= -tolerance:
            out.append(corners[i])
        if (a > tolerance and b < -tolerance) or (a < -tolerance and b > tolerance):
            out.append(corners[i] + (corners[j] - corners[i]) * (a / (a - b)))
    return np.array(out).reshape(-1, 2)


def segment(x: Tensor, u: Tensor, minus: float, plus: float, extent: float) -> Array:
    """X - minus u to x + plus u, each way cut where the line leaves the view. -> (2, d)."""
    reach = 3 * extent  # past every corner of the view
    ends = torch.stack([x - min(minus, reach) * u, x + min(plus, reach) * u])
    ends_in_view: Array = ends.detach().numpy()
    return ends_in_view
