"""The state of the explain stage: a training set that explains the weights, and a drag in it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from explorer.engine.attacks.target import Target
from explorer.engine.certificate import TAU_TRAINED
from explorer.engine.data import Dataset
from explorer.engine.explanations.cells import KINK, Extent, level_directions, slopes_at
from explorer.engine.explanations.splitting import (
    Explanation,
    explanation_of,
    extent_at,
    kinks_at,
    margin_error,
    pinned_points,
    predicted_jump,
    residual,
    slackness,
    split,
)
from explorer.engine.network import Network, phi, scaled_network

STEPS = 61  # arbitrary: places of the curve along a line
EXACT_MARGIN, TRAINED_MARGIN = 1e-6, 0.05  # arbitrary: |y Phi - 1| up to this is on the margin
EXPLAINS = 1e-5  # arbitrary: ten times the tolerance of the linear programs
BESIDE = 1e-6  # arbitrary: the curve has places so near to a wall on both sides, relative
EXACT = 1e-6  # the certificate's light "exact"
ANGLE = 0.02  # radians: `merging`'s own default
LEAST = 1e-9  # of the plane: shorter drags are none

FARTHEST = "Mean distance from the truth"  # begins the words on what the linear program found


@dataclass(frozen=True, eq=False)
class Slide:
    """A drag of a point: the explanation before it, and the line along which the point splits.

    Attributes:
        before: the explanation with the whole point.
        i: its index there.
        u: unit direction (d,).
        extent: of the cell along u.
        at: how far it was dragged along u, signed.
        reach: how far the curve looks.
        curve: rows (at, residual, margin error), STEPS of them and the walls.
        jumps: (at, predicted residual) at the walls in reach.
    """

    before: Explanation
    i: int
    u: Tensor
    extent: Extent
    at: float
    reach: float
    curve: Tensor
    jumps: tuple[tuple[float, float], ...]


@dataclass(frozen=True, eq=False)
class Explained:
    """What the explain stage shows.

    Attributes:
        target: the weights.
        net: their network; parallel neurons are merged if it was trained.
        truth: the explanation by the points that it was trained on.
        now: the explanation on screen.
        exact: whether the truth explains the weights to rounding.
        base: residual of the truth.
        residual: of `now`, relative to |theta|.
        margin_error: max |y Phi - 1| of `now`.
        slackness: of `now`.
        pinned: (n,) of `now`.
        selected: index of the chosen point, or None.
        mate: the point chosen before it, its partner in a merge.
        slide: the line of the last drag, or None.
        free: whether a drag may leave the level line.
        forced: (n,) of `truth`: least mass at each point, once computed.
        words: a sentence on the last action.
    """

    target: Target
    net: Network
    truth: Explanation
    now: Explanation
    exact: bool
    base: float
    residual: float
    margin_error: float
    slackness: float
    pinned: Tensor
    selected: int | None = None
    mate: int | None = None
    slide: Slide | None = None
    free: bool = False
    forced: Tensor | None = None
    words: str = ""
    _kinks: dict[int, int] = field(default_factory=dict, repr=False)

    def kinks(self, i: int) -> int:
        """Return how many neurons have point i on their line, with a slope between 0 and 1."""
        if i not in self._kinks:
            self._kinks[i] = kinks_at(self.net, self.now, i)
        return self._kinks[i]


def first_explained(target: Target, truth: Dataset) -> Explained:
    """The explanation by the training points: exact where it can be, else with kinks as trained."""
    net = target.net.to(dtype=torch.float64, device="cpu")
    x, y = truth.x.cpu().double(), truth.y.cpu().double()
    e = explanation_of(net, x, y, KINK)
    exact = residual(net, e) < EXACT
    if not exact:
        net = target.merged(ANGLE).to(dtype=torch.float64, device="cpu")
        low = float((y * phi(net, x)).min())
        net = scaled_network(net, low ** (-1 / net.order)) if low > 0 else net
        near = y * phi(net, x) <= 1 + TRAINED_MARGIN  # a trained margin is never quite level
        e = explanation_of(net, x[near], y[near], TAU_TRAINED)
        if net.depth > 2:
            e = replace(e, slopes=slopes_at(net, e.x))
    made = measures(net, e)
    return Explained(
        target=target, net=net, truth=e, exact=exact, base=float(made["residual"]),  # type: ignore[arg-type]
        free=net.d == 1, **made,  # type: ignore[arg-type]
    )  # fmt: skip


def measures(net: Network, e: Explanation) -> dict[str, object]:
    """Return the fields of `Explained` that say how well e explains net."""
    return {
        "now": e, "residual": residual(net, e), "margin_error": margin_error(net, e),
        "slackness": slackness(net, e), "pinned": pinned_points(net, e), "_kinks": {},
    }  # fmt: skip


def lengths(extent: Extent, at: float, reach: float) -> tuple[float, float]:
    """(a, b) of a split whose first child was dragged to `at`: the other goes in proportion.

    Within the cell both children are at the same share t of their way to the wall; beyond it the
    other waits at its own wall. Where the cell has no room, both go equally far.
    """
    size = abs(at)
    own, other = (extent.plus, extent.minus) if at > 0 else (extent.minus, extent.plus)
    own, other = min(own, reach), min(other, reach)
    if own <= LEAST or other <= LEAST:
        back = size if other <= LEAST else min(size, other)
    else:
        back = min(size / own, 1.0) * other
    return (size, back) if at > 0 else (back, size)


def split_toward(net: Network, before: Explanation, i: int, u: Tensor, extent: Extent, at: float,
           reach: float) -> Explanation:  # fmt: skip
    """`before` with point i split along u, the child in hand at `at`. It keeps the index i."""
    size = abs(at)
    if size <= LEAST:
        return before
    a, b = lengths(extent, at, reach)
    if at < 0:  # the child in hand is the first one of the split
        return split(net, before, i, -u, b, a)
    return split(net, before, i, u, a, b)


def slide_along(
    net: Network, before: Explanation, i: int, u: Tensor, at: float, reach: float, base: float
) -> Slide:
    """The line of a drag with the curve of residual and margin along it."""
    extent = extent_at(net, before, i, u)
    walls = [s * e * f for s, e in ((1, extent.plus), (-1, extent.minus)) if e < reach
             for f in (1 - BESIDE, 1 + BESIDE)]  # fmt: skip
    even = torch.linspace(-reach, reach, STEPS, dtype=torch.float64)
    places = torch.cat([even, torch.tensor(walls, dtype=torch.float64)]).sort().values
    rows = []
    for place in places.tolist():
        e = split_toward(net, before, i, u, extent, place, reach)
        rows.append([place, residual(net, e), margin_error(net, e)])
    jumps = []
    for sign, own, walls_here in (
        (1.0, extent.plus, extent.walls_plus), (-1.0, extent.minus, extent.walls_minus)
    ):  # fmt: skip
        if not walls_here or own > reach:
            continue
        a, b = lengths(extent, sign * max(own, 10 * LEAST), reach)
        own_a, other = (a, b) if sign > 0 else (b, a)
        lam = float(before.lam[i]) * other / (own_a + other)
        x = before.x[i] + sign * own * u
        jump = predicted_jump(net, x, lam, walls_here, before.at(i))
        jumps.append((sign * own, float((jump**2 + base**2) ** 0.5)))
    curve = torch.tensor(rows, dtype=torch.float64)
    return Slide(before, i, u, extent, at, reach, curve, tuple(jumps))


def free_direction(net: Network, e: Explanation, i: int) -> Tensor | None:
    """Return the level direction of point i, if it has one: the first of several."""
    basis = level_directions(net, e.x[i], e.at(i))
    return basis[:, 0] if basis.shape[1] else None


def split_all(state: Explained, reach: float) -> Explanation:
    """Return the truth with every point split to the ends of its cell on its level line."""
    e = state.truth
    for i in range(state.truth.n):
        u = free_direction(state.net, e, i)
        if u is not None:
            extent = extent_at(state.net, e, i, u)
            a, b = min(extent.plus, reach), min(extent.minus, reach)
            if min(a, b) > LEAST:
                e = split(state.net, e, i, u, a, b)
    return e


def refresh(state: Explained, e: Explanation, **changes: object) -> Explained:
    """Return the state with another explanation."""
    return replace(state, **{**measures(state.net, e), **changes})  # type: ignore[arg-type]


def misfit(state: Explained) -> str:
    """Return which condition the set on screen breaks: "residual", "margin", or "" for none."""
    if state.residual > max(EXPLAINS, 1.01 * state.base):
        return "residual"
    slack = EXACT_MARGIN if state.exact else TRAINED_MARGIN
    return "margin" if state.margin_error > slack else ""
