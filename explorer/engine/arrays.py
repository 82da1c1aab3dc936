"""The types of arrays that the engine computes with, and the way from tensors to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching
from torch import Tensor

Array = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]
Flags = NDArray[np.bool_]
Index = NDArray[np.int64]
R = TypeVar("R", Tensor, NDArray[Any])


def as_array(values: Tensor) -> Array:
    """Return a tensor of any device and type, as float64."""
    found: Array = values.detach().cpu().double().numpy()
    return found


def near_head(x: Tensor, y: Tensor, radius: float) -> Callable[[Tensor], Tensor]:
    """Return for `greedy_groups` which points x (n, d) lie within the radius and have its label."""

    def near(left: Tensor) -> Tensor:
        apart: Tensor = (x[left] - x[left[0]]).norm(dim=1)
        return (apart <= radius) & (y[left] == y[left[0]])

    return near


def greedy_groups(order: R, near: Callable[[R], R]) -> Iterator[R]:
    """Yield groups: the first of what is left, and those of the others that are near it.

    Args:
        order: indices (n,), the heads of groups first.
        near: indices, the head's before the others' -> which are near the head (m,).
    """
    while len(order):
        mine = near(order)
        mine[0] = True
        yield order[mine]
        order = order[~mine]


def one_to_one(near: Tensor) -> Tensor:
    """Return the largest one-to-one matching of near (n, c): each row's column or -1 (n,)."""
    if not near.any():
        return torch.full((len(near),), -1)
    columns = maximum_bipartite_matching(csr_matrix(near.numpy()), perm_type="column")
    return torch.from_numpy(columns.astype(np.int64))


def signed_points(x: Tensor, y: Tensor) -> tuple[Array, Array]:
    """Return points (n, d) and labels -1 or +1 (n,); ValueError for anything else."""
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise ValueError(f"expected x (n, d) and y (n,); got {tuple(x.shape)} and {tuple(y.shape)}")
    points, labels = as_array(x), as_array(y)
    if not np.isfinite(points).all() or not (np.abs(labels) == 1).all():
        raise ValueError("expected finite x and labels y in {-1, +1}; check the data")
    return points, labels
