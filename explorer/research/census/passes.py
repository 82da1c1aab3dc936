"""The lowest pass between two sets of points: a string of sets between them that is let down.

The string (E, Ren and Vanden-Eijnden 2007, restated) is a row of sets at even distances. Each goes
down the loss a little, and then they are laid evenly along the line through them. What is reached
is an upper bound on the lowest pass: the highest value on its way, which is looked at between the
sets too. Two explanations that a split connects have a way on which the residual stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.explanations.splitting import (
    Explanation,
    extent_at,
    free_direction,
    remainder,
    split,
)
from explorer.engine.network import Network
from explorer.engine.progress import Progress, no_progress
from explorer.research.census import Census
from explorer.research.census.descent import Loss, descend
from explorer.research.grid import Problem

SETS = 24  # of the string, its ends left out; arbitrary
BETWEEN = 8  # places between two of them at which the way is looked at; arbitrary
STEP = 0.02  # the longest way of a set in one round at first, in units of the data; arbitrary
SPLIT = 51  # places of a split at which the residual is asked; arbitrary
LEAST = 1e-4  # of STEP: rounds that help no more; arbitrary


@dataclass(frozen=True, eq=False)
class LowestPass:
    """Two ways between two sets, by their length in [0, 1], and the values on them.

    Attributes:
        at: places along the way (p,).
        straight: values on the straight mix (p,).
        lowest: on the string (p,).
        way: the sets of the string (s, m, d), both ends among them.
    """

    at: Tensor
    straight: Tensor
    lowest: Tensor
    way: Tensor

    @property
    def barrier(self) -> float:
        """Return by how much the string rises above the higher of its ends, 0 where nowhere."""
        return _rise(self.lowest)

    @property
    def straight_barrier(self) -> float:
        """Return the same of the straight mix."""
        return _rise(self.straight)


def _rise(values: Tensor) -> float:
    return float(values.max() - torch.maximum(values[0], values[-1]))


def in_order_of(x: Tensor, other: Tensor, y: Tensor) -> Tensor:
    """Return the points of `other` (m, d) in the order that is nearest to x, label by label y."""
    out = x.clone()
    for label in y.unique():
        rows = (y == label).nonzero()[:, 0]
        apart = torch.cdist(x[rows], other[rows]).square()
        first, second = linear_sum_assignment(apart.numpy())
        out[rows[first]] = other[rows[second]]
    return out


def ends_to_join(made: Census, problem: Problem, loss: Loss) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the end below the truth (m, d), and sets to which ways lead from there, by key.

    They are the end below the "unseen" points, and the farthest "other" end that is as good; their
    rows stand in the order of the first.
    """
    parts = problem.parts
    both = torch.stack((parts.truth, parts.heldout)).double()
    ends = descend(loss, both.flatten(1), made.config.steps).x.view(both.shape)
    good = [one for one in made.basins if one.kind == "explanation"]
    sets = {"unseen": ends[1], **({"other": max(good, key=lambda one: one.away).x} if good else {})}
    return ends[0], {key: in_order_of(ends[0], x, parts.y) for key, x in sets.items()}


def lowest_pass(
    loss: Loss, a: Tensor, b: Tensor, rounds: int = 2000, progress: Progress = no_progress
) -> LowestPass:
    """Return the lowest way found from a to b (m, d), and the straight mix beside it.

    Args:
        loss: of sets laid flat.
        a: where it begins.
        b: where it ends: rows paired as they are mixed, see `in_order_of`.
        rounds: of the string, at most.
        progress: hears which share is done.
    """
    t = torch.linspace(0, 1, SETS + 2, dtype=torch.float64)[:, None]
    straight = (1 - t) * a.flatten() + t * b.flatten()
    best, step = straight, STEP
    highest = float(_along(loss, best).max())
    for k in range(rounds):
        progress(k / rounds)
        gradient = loss(best[1:-1])[1]
        share = step / gradient.abs().amax(1, keepdim=True).clamp_min(step)
        tried = best.clone()
        tried[1:-1] -= share * gradient
        tried = _even(tried)
        reached = float(_along(loss, tried).max())
        # A higher ridge is a way through a finer place than the step is: go on with a shorter one.
        best, highest, step = (
            (tried, reached, 1.1 * step) if reached <= highest else (best, highest, step / 2)
        )
        if step < LEAST * STEP:
            break
    low, high = _along(loss, best), _along(loss, straight)
    return LowestPass(torch.linspace(0, 1, len(low)), high, low, best.view(-1, *a.shape))


def _along(loss: Loss, way: Tensor) -> Tensor:
    """Return the values on a way (s, p), at its sets and at `BETWEEN` places after each."""
    t = torch.arange(BETWEEN, dtype=way.dtype)[:, None] / BETWEEN
    places = (1 - t) * way[:-1, None] + t * way[1:, None]
    return loss(torch.cat([places.flatten(0, 1), way[-1:]]))[0]


def _even(way: Tensor) -> Tensor:
    """Return as many sets at even distances on the same way."""
    length = (way[1:] - way[:-1]).norm(dim=1).cumsum(0)
    reached = torch.cat([length.new_zeros(1), length])
    wanted = torch.linspace(0, 1, len(way), dtype=way.dtype) * length[-1]
    k = torch.searchsorted(reached, wanted, right=True).clamp(1, len(way) - 1)
    share = (wanted - reached[k - 1]) / (reached[k] - reached[k - 1]).clamp_min(1e-300)
    made = torch.lerp(way[k - 1], way[k], share.clamp(0, 1)[:, None])
    made[0], made[-1] = way[0], way[-1]
    return made


def split_profile(net: Network, e: Explanation, i: int) -> Array | None:
    """Return by what |theta - sum|^2 / |theta|^2 differs while point i splits, at `SPLIT` places.

    Its halves go apart along the direction that keeps the margin, to the walls of the cell. With
    hard slopes this is rounding: the two explanations are connected by a flat way. None where no
    split keeps the margin.
    """
    found = free_direction(net, e, i)
    if found is None:
        return None
    u, _ = found
    extent = extent_at(net, e, i, u)
    far = float(e.x.abs().max())  # a cell without an end is left at the farthest point
    plus, minus = min(extent.plus, far), min(extent.minus, far)
    size, before = float(net.rho) ** 2, float(remainder(net, e).square().sum())
    out = np.zeros(SPLIT)
    for k, t in enumerate(np.linspace(0, 1, SPLIT)[1:], 1):
        now = split(net, e, i, u, float(t) * plus, float(t) * minus)
        out[k] = (float(remainder(net, now).square().sum()) - before) / size
    return out
