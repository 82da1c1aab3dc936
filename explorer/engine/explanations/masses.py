r"""How much mass every explanation has at a place, and how far from given points one can be.

Both are linear in the multipliers of an explanation, over the same finitely many rays as the radius
(`cone`). For a price p_g of each ray,

    min over lam >= 0 of  || theta - sum lam g ||^2 / 2 + sum lam p_g

has a solution with <u, g> <= p_g for u = theta - sum lam g (Karush, Kuhn and Tucker). For any such
u and any explanation that leaves up to r of |theta|,

    sum lam p_g >= <u, sum lam g> >= <u, theta> - r |theta| |u|.

So a price of 1 inside of a place and 0 elsewhere bounds the *forced mass* from below, and a price of
minus the distance bounds the *farthest* explanation from above. The bounds rest on u alone and not
on the solver: where <u, g> exceeds p_g, a multiple of the cone's pivot is taken away from u. They
are reached where the solution leaves just r. A distance to the nearest of several points is convex
on each point's own part of the plane, and largest at corners of pieces cut there: nothing is
sampled.
"""  # noqa: E501

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Array, as_array
from explorer.engine.explanations.cone import (
    COARSE,
    ROUNDS,
    Cone,
    RayPart,
    RaySum,
    rays_of,
    steepest,
)
from explorer.engine.explanations.places import Hole, Places, cut, stack
from explorer.engine.progress import Progress, no_progress, with_progress
from explorer.engine.threads import few_threads

CLOSE = 0.01  # of the objective, between a solution and what bounds it; arbitrary
TRIES = 9  # prices tried, each with the solution before as its start; arbitrary
STRONG = 30.0  # times the first price: beyond it the place is as good as left out; arbitrary
SLACK = 1.02  # times the least residual that an explanation may leave at least; arbitrary
LEAST = 1e-4  # of |theta|: likewise, where the least is rounding
FORCED = 1e-3  # arbitrary: a forced mass above this share of the whole one counts
BAND = 2.0  # arbitrary: up to this factor above or below it, it is at the edge and claims nothing


@dataclass(frozen=True, eq=False)
class Farthest:
    """How far from given points the points of an explanation can be, on average.

    Attributes:
        distance: of the explanation that was found, in units of the data.
        at_most: no explanation is farther; in units of the data.
        residual: what the explanation found leaves, a share of |theta|.
        allowed: what explanations may leave, a share of |theta|.
        x: its points (a, d).
        y: their labels (a,).
        lam: their multipliers (a,).
    """

    distance: float
    at_most: float
    residual: float
    allowed: float
    x: Tensor
    y: Tensor
    lam: Tensor


def allowed_residual(cone: Cone, truth: float | None = None) -> float:
    """Return what explanations may leave: as much as the truth does, or hardly more than the least.

    Args:
        cone: of the weights.
        truth: the residual of the known points (`certainty.truth_residual`); None: not known.
    """
    return max(SLACK * cone.least.high, LEAST, 0.0 if truth is None else truth)


@few_threads()
def forced_masses(
    cone: Cone, x: Tensor, y: Tensor, half: float, residual: float,
    progress: Progress = no_progress,
) -> Tensor:  # fmt: skip
    """Return the mass that every explanation has within `half` of each point, at least.

    Args:
        cone: of the weights (`assumptions.assumed_cone`).
        x: the points (n, d), in units of the data.
        y: their labels (n,).
        half: half width of the places around them, in units of the data.
        residual: what an explanation may leave, a share of |theta|.
        progress: hears of each point, and may end the work.

    Returns:
        Proven lower bounds (n,) on the sum of the multipliers of that label; 0 for what is not
        needed.

    Raises:
        ValueError: where `residual` is below the least residual of any explanation.
    """
    _check(cone, residual)
    rows = list(zip(as_array(x), y.tolist(), strict=True))
    made = [
        _forced_mass(cone, at, label, half, residual)
        for at, label in with_progress(rows, len(rows), progress)
    ]
    return torch.tensor(made, dtype=torch.float64)


def forced_points(mass: Tensor, whole: float) -> tuple[Tensor, Tensor]:
    """Return which least masses (n,) are forced, and which are at the edge of it: (n,) bool, twice.

    Least masses are continuous in the weights and in the residual, so a claim with a factor `BAND`
    to spare is not that of the last bits, nor of a residual that moved a little.
    """
    share = mass / max(whole, 1e-300)
    forced = share > BAND * FORCED
    return forced, (share > FORCED / BAND) & ~forced


def _forced_mass(cone: Cone, at: Array, y: float, half: float, residual: float) -> float:
    low, high = at - half, at + half
    if cone.radius(low, high, y, residual).high <= residual:
        return 0.0
    hole = Hole.box(low, high)
    meets = cone.places.meet(hole, y)
    mine = cone.places.take(meets)
    parts = [RayPart.of(cone.rays, ~meets[cone.rays.piece])]
    for pieces, price in ((mine.without(hole), 0.0), (mine.part_inside(hole), 1.0)):
        parts.append(RayPart.of(rays_of(pieces, cone.neurons), price=price))
    return max(0.0, _best_bound(cone, parts, residual)[0])


@few_threads()
def farthest(cone: Cone, x: Tensor, residual: float, progress: Progress = no_progress) -> Farthest:
    """Return an explanation whose points lie far from given ones, and how far any can be.

    Args:
        cone: of the weights (`assumptions.assumed_cone`).
        x: the given points (n, d), n at least 1, in units of the data.
        residual: what an explanation may leave, a share of |theta|.
        progress: hears of each price that is tried, and may end the work.

    Returns:
        The distance of each point to the nearest given one, weighted by the multipliers and
        divided by |theta|^2 / order, which is the sum of the multipliers at a KKT point.

    Raises:
        ValueError: without points, or where `residual` is below the least of any explanation.
    """
    return farthest_rays(cone, x, residual, progress)[0]


def farthest_rays(
    cone: Cone, x: Tensor, residual: float, progress: Progress = no_progress
) -> tuple[Farthest, Array, Places]:
    """Return `farthest`, its points' rays (a, P), and the pieces that they are on (a of them)."""
    _check(cone, residual)
    given = as_array(x)
    if not len(given):
        raise ValueError("there are no points to be far from; give one or more")
    own = _nearest_parts(cone.places, given)
    rays = rays_of(own, cone.neurons)
    away = _gaps(rays.x[:, :-1], given)
    parts = [replace(RayPart.of(rays), price=-away)]
    bound, found = _best_bound(cone, parts, residual, progress)
    mass = cone.neurons.rho**2 / cone.neurons.order
    total = float(found.lam @ _gaps(found.x, given)) / mass
    made = Farthest(
        total, max(-bound / mass, total), _residual(cone, found), residual,
        *(torch.from_numpy(v.copy()) for v in (found.x, found.y, found.lam)),
    )  # fmt: skip
    return made, found.columns, own.take(found.piece)


def _nearest_parts(of: Places, x: Array) -> Places:
    """Return the pieces cut so that each has one nearest of the points x (n, d)."""
    parts, owners = [], []
    for i, at in enumerate(x):
        pieces, owner = of.pieces, np.arange(len(of.pieces))
        for j, other in enumerate(x):
            if i == j or np.array_equal(at, other):
                continue
            normal, middle = at - other, (at + other) / 2
            pieces, left = cut(pieces, (pieces - middle) @ normal, 0.0)
            owner = owner[left]
        parts.append(pieces)
        owners.append(owner)
    return of.parts(stack(parts), np.concatenate(owners))


def _gaps(x: Array, given: Array) -> Array:
    """Return the distance (m,) of each place (m, d) to the nearest given point."""
    best = np.full(len(x), np.inf)
    for at in given:
        np.minimum(best, np.linalg.norm(x - at, axis=1), out=best)
    return best


# --- Prices --------------------------------------------------------------------------------------


def _residual(cone: Cone, found: RaySum) -> float:
    """Return what an explanation leaves, a share of |theta|."""
    return float(np.linalg.norm(found.remainder(cone.neurons.theta))) / cone.neurons.rho


def _check(cone: Cone, residual: float) -> None:
    if not residual >= cone.least.low:
        raise ValueError(
            f"no explanation leaves as little as {residual:.3g} of the weights; the least is "
            f"{cone.least.high:.3g}. Take that, or what the true points leave."
        )


def _best_bound(
    cone: Cone, parts: list[RayPart], residual: float, progress: Progress = no_progress
) -> tuple[float, RaySum]:
    """Return the best bound on the cost of explanations up to `residual`, and the best of them."""
    found = RaySum.none(cone.neurons)
    if not any(part.there.any() for part in parts):
        return 0.0, found
    pointed = min(part.depth(cone.pivot) for part in parts)
    if not pointed > 0:  # no dual vector is sure to serve: nothing is proven
        return -np.inf, found
    dear = max(float(np.abs(part.price).max(initial=0.0)) for part in parts)
    usual = float(np.median(parts[-1].rays.sizes))
    weight = residual * cone.neurons.rho * usual / max(dear, 1e-300)
    low, high = 0.0, np.inf  # weights at which the solution leaves too little, too much
    bound, best = -np.inf, None
    for turn in range(TRIES):
        progress(turn / TRIES)
        found, proven = _cheapest(cone, parts, weight, found, pointed, residual)
        bound = max(bound, proven)
        leaves = _residual(cone, found)
        if leaves <= residual * (1 + 1e-9):
            low, best = weight, found
        else:
            high = weight
        if low and high < np.inf:
            weight = float(np.sqrt(low * high))
        else:
            weight *= STRONG if not np.isfinite(high) else 1 / STRONG
    return bound, best if best is not None else found


def _cheapest(
    cone: Cone, parts: list[RayPart], weight: float, start: RaySum, pointed: float,
    residual: float,
) -> tuple[RaySum, float]:  # fmt: skip
    """Return the cheapest explanation at prices times `weight`, and what it proves of the cost."""
    theta, rho = cone.neurons.theta, cone.neurons.rho
    bound, cell = -np.inf, COARSE * cone.neurons.box
    none = [np.zeros(0, dtype=np.int64)] * len(parts)
    found = start.with_rays(parts, none, theta, theta, weight)
    for _ in range(ROUNDS):
        u = found.remainder(theta)
        over = [part.gains(u, weight) for part in parts]
        most = max(float(o.max(initial=0.0)) for o in over)
        down = u - most / pointed * cone.pivot
        size = float(np.linalg.norm(down))
        bound = max(bound, (float(down @ theta) - residual * rho * size) / weight)
        reached = float(u @ u) / 2 + weight * float(found.lam @ found.price)
        dual = float(down @ theta) - size**2 / 2
        if reached - dual <= CLOSE * max(float(u @ u), 1e-8 * rho**2):
            break
        fresh = steepest(parts, over, cell)
        if not sum(map(len, fresh)):
            break
        cell *= 0.9
        found = found.with_rays(parts, fresh, u, theta, weight)
    return found, bound
