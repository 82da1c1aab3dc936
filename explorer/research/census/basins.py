"""Ends of descents as basins: which are the same, what they are, and how many were not seen."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from explorer.engine.arrays import Index
from explorer.engine.attacks.claims import MERGE_RADIUS
from explorer.engine.confidence import Share, share
from explorer.engine.explanations.splitting import USED
from explorer.engine.progress import Progress, no_progress
from explorer.research.census.descent import Loss

ALIKE = 1e-3  # of the weights: residuals that differ by less are equal; arbitrary
HEAVY = 0.01  # share of all multipliers of a point that must have its like; arbitrary
SLOPE, BEND = 1e-3, 1e-3  # of the weights, that a move by `MERGE_RADIUS` may gain at a minimum, by
# the gradient and by the least curvature; arbitrary
DIFFERENCE = 1e-4  # of a coordinate, for second derivatives; arbitrary

Kind = Literal["truth", "explanation", "minimum", "slope", "saddle", "open"]
KINDS: dict[Kind, str] = {
    "truth": "the truth", "explanation": "another explanation as good", "minimum": "local minima",
    "saddle": "saddles", "slope": "slopes", "open": "not level",
}  # fmt: skip


# --- Which ends are the same ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WeightedSet:
    """A weighted set of which nothing can be split or merged further: places, labels, weights."""

    x: Tensor
    y: Tensor
    weight: Tensor

    @property
    def heavy(self) -> Tensor:
        """Return which points have more than `HEAVY` of the weight (n,)."""
        return self.weight > HEAVY * self.weight.sum()


def merged_points(x: Tensor, y: Tensor, weight: Tensor, cells: Tensor | None = None) -> WeightedSet:
    """Return a set with its points of one cell, or within `MERGE_RADIUS`, as one: their centroid.

    Splits of a point within its cell have the same residual (`splitting`), and end as one here, as
    do all orders of the points. What carries no weight is left out.

    Args:
        x: places (m, d).
        y: labels (m,).
        weight: multipliers (m,), not negative.
        cells: on which side of each neuron a place lies (m, k), or None.
    """
    kept = weight > USED * weight.sum()
    x, y, weight = x[kept], y[kept], weight[kept]
    if not len(x):  # all multipliers are 0
        return WeightedSet(x, y, weight)
    like = y[:, None] == y
    near = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist") <= MERGE_RADIUS
    if cells is not None:
        near |= (cells[kept][:, None] == cells[kept]).all(2)
    count, group = connected_components((like & near).numpy(), directed=False)
    one = torch.nn.functional.one_hot(torch.from_numpy(group).long(), count).to(x)
    total = one.T @ weight
    return WeightedSet(
        one.T @ (weight[:, None] * x) / total[:, None], one.T @ y / one.sum(0), total
    )


def same_ends(values: Tensor, sets: list[WeightedSet]) -> Index:
    """Return the number of the basin of each end (b,): 0 for the largest, the lowest of equal ones.

    Two ends are one where their residuals are `ALIKE` and each heavy point of either has a point of
    its label within `MERGE_RADIUS` in the other; so are those that a chain of such ends connects.
    """
    most = max((len(one.x) for one in sets), default=0)
    x = torch.full((len(sets), most, sets[0].x.shape[1] if sets else 1), torch.inf).double()
    y, heavy = torch.zeros(len(sets), most).double(), torch.zeros(len(sets), most).bool()
    for i, one in enumerate(sets):
        n = len(one.x)
        x[i, :n], y[i, :n], heavy[i, :n] = one.x, one.y, one.heavy
    x = x.nan_to_num(posinf=1e6)  # far from all: no point
    rows, columns = [], []
    for i in range(len(sets)):
        at = i + ((values[i:] - values[i]).abs() <= ALIKE).nonzero()[:, 0]
        apart = (x[i, None, :, None] - x[at][:, None]).square().sum(3).sqrt()
        near = (apart <= MERGE_RADIUS) & (y[i, None, :, None] == y[at][:, None])
        both = (near.any(2) | ~heavy[i]).all(1) & (near.any(1) | ~heavy[at]).all(1)
        columns += at[both].tolist()
        rows += [i] * int(both.sum())
    graph = coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(sets), len(sets)))
    _, group = connected_components(graph, directed=False)
    count = Counter(group.tolist())
    low = {g: min(float(v) for v, h in zip(values, group, strict=True) if h == g) for g in count}
    order = {g: k for k, g in enumerate(sorted(count, key=lambda g: (-count[g], low[g])))}
    return np.array([order[g] for g in group.tolist()], dtype=np.int64)


# --- How many were not seen ----------------------------------------------------------------------


@dataclass(frozen=True)
class Unseen:
    """What the counts say of basins that no start fell into.

    Attributes:
        volume: the share of starts that fall into them: that of starts whose basin has no other
            (Good 1953).
        count: at least so many of them (Chao 1984).
    """

    volume: Share
    count: float


def unseen_basins(counts: list[int]) -> Unseen:
    """Return the estimates from how many starts fell into each basin that was seen."""
    once, twice = counts.count(1), counts.count(2)
    return Unseen(share([once], [sum(counts)]), once * (once - 1) / (2 * (twice + 1)))


# --- What an end is ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Conditions:
    """What a move by `MERGE_RADIUS` from an end may lower the loss by, in shares of the weights.

    Attributes:
        slope: along the gradient.
        bend: along the direction of the least curvature, where that is negative.
    """

    slope: float
    bend: float

    @property
    def kind(self) -> Kind:
        """Return whether both orders allow a minimum."""
        return "slope" if self.slope > SLOPE else "saddle" if self.bend > BEND else "minimum"


def conditions(loss: Loss, x: Tensor, progress: Progress = no_progress) -> list[Conditions]:
    """Return the conditions of first and second order at places (b, p), from gradients there."""
    made, eye = [], DIFFERENCE * torch.eye(x.shape[1], dtype=x.dtype)
    for i, place in enumerate(x):
        progress(i / len(x))
        _, g = loss(torch.cat([place + eye, place - eye, place[None]]))
        plus, minus = g[:-1].chunk(2)
        second = (plus - minus) / (2 * DIFFERENCE)
        least = float(torch.linalg.eigvalsh((second + second.T) / 2)[0])
        bend = max(0.0, -least) * MERGE_RADIUS**2 / 2
        made.append(Conditions(float(g[-1].norm()) * MERGE_RADIUS, bend))
    return made


@dataclass(frozen=True, eq=False)
class Basin:
    """A distinct end.

    Attributes:
        starts: the starts that fell into it, as indices.
        volume: the share that they are of all, with its interval.
        kind: what it is.
        value: the lowest residual in it, as a share of the weights.
        x: the candidates there (m, d).
        points: how many they are, those of a split as one.
        away: mean distance to the truth, as of `Parts.distances`.
        conditions: of first and second order.
        hard: the residual there with hard slopes, free at kinks; nan where there is none.
        kinked: whether a candidate in use lies on the line of a neuron.
    """

    starts: tuple[int, ...]
    volume: Share
    kind: Kind
    value: float
    x: Tensor
    points: int
    away: float
    conditions: Conditions
    hard: float
    kinked: bool
