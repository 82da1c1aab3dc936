"""The state of the explain stage: a training set that explains the weights, and a drag in it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from explorer.engine.attacks.target import Target
from explorer.engine.certificate import TAU_TRAINED, certify
from explorer.engine.data import Dataset
from explorer.engine.explanations.cells import KINK, Extent
from explorer.engine.explanations.certainty import Certainty
from explorer.engine.explanations.masses import allowed_residual, forced_masses
from explorer.engine.explanations.others import OtherSet, Rivals
from explorer.engine.explanations.splitting import (
    TRAINED_MARGIN,
    Explanation,
    extent_at,
    free_direction,
    kinks_at,
    margin_error,
    pinned_points,
    predicted_jump,
    relative_change,
    remainder,
    slackness,
    split,
    training_explanation,
)
from explorer.engine.network import Network
from explorer.engine.progress import Progress, no_progress, part_progress
from explorer.research.runs import RADIUS, certified_points, cone_around

STEPS = 61  # arbitrary: places of the curve along a line
EXACT_MARGIN = 1e-6  # arbitrary: |y Phi - 1| up to this is on the margin, as `TRAINED_MARGIN`
EXPLAINS = 1e-5  # arbitrary: as `others.AS_WELL`
BESIDE = 1e-6  # arbitrary: the curve has places so near to a wall on both sides, relative
SAME = 0.01  # of what the truth leaves: so much less well is as well; arbitrary
LEAST = 1e-9  # of the plane: shorter drags count as no drag


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
        curve: rows (at, change of the sum, margin error), STEPS of them and the walls.
        jumps: (at, predicted change) at the walls in reach.
        shown: whether the page shows it by itself: no hand has dragged the point.
    """

    before: Explanation
    i: int
    u: Tensor
    extent: Extent
    at: float
    reach: float
    curve: Tensor
    jumps: tuple[tuple[float, float], ...]
    shown: bool = False


@dataclass(frozen=True, eq=False)
class Explained:
    """What the explain stage shows.

    Attributes:
        target: the weights.
        net: their network; parallel neurons are merged if it was trained.
        truth: the explanation by the points that it was trained on.
        now: the explanation on screen.
        exact: whether the truth explains the weights to rounding.
        base: what the points that it was trained on leave unexplained: the certificate's residual.
        left: the same of the set that `now` was split from: the truth, or the farthest other one.
        reference: theta minus the sum of that set (P,).
        change: by how much the sum of `now` differs from that one, relative to |theta|.
        margin_error: max |y Phi - 1| of `now`.
        slackness: of `now`.
        pinned: (n,) of `now`.
        selected: index of the chosen point, or None.
        mate: the point chosen before it, its partner in a merge.
        slide: the line of the last drag, or None.
        free: whether a drag may leave the level line.
        forced: (n,) of `truth`: least mass at each point, once computed.
        far: the farthest other set, while it is on screen, or that none was found.
        words: a sentence on the last action.
    """

    target: Target
    net: Network
    truth: Explanation
    now: Explanation
    exact: bool
    base: float
    left: float
    reference: Tensor
    change: float
    margin_error: float
    slackness: float
    pinned: Tensor
    selected: int | None = None
    mate: int | None = None
    slide: Slide | None = None
    free: bool = False
    forced: Tensor | None = None
    far: OtherSet | None = None
    words: str = ""
    _kinks: dict[int, int] = field(default_factory=dict, repr=False)

    @property
    def halves(self) -> list[int]:
        """Return the two points that the one in hand became, while it is dragged."""
        if self.slide is None or self.selected is None or self.mate is None:
            return []
        return [self.selected, self.mate]

    @property
    def is_example(self) -> bool:
        """Return whether the page shows a split by itself: no hand has dragged the point."""
        return self.slide is not None and self.slide.shown

    def kinks(self, i: int) -> int:
        """Return how many neurons have point i on their line, with a slope between 0 and 1."""
        if i not in self._kinks:
            self._kinks[i] = kinks_at(self.net, self.now, i)
        return self._kinks[i]


def first_explained(target: Target, truth: Dataset, base: float | None = None) -> Explained:
    """Return the explanation by the training points: exact where possible, else with its kinks.

    `base`: the residual of their certificate, where it is known already.
    """
    if base is None:
        base = share_left(target, truth.x, truth.y)
    net, e, exact = training_explanation(target, truth.x, truth.y)
    reference = remainder(net, e)
    made = Explained(
        target=target, net=net, truth=e, exact=exact, base=base, left=base, reference=reference,
        **measures(net, e, reference),  # type: ignore[arg-type]
    )  # fmt: skip
    return replace(made, free=net.d == 1 or bool(made.pinned.all()))


def rivals_of(state: Explained, extent: float) -> Rivals:
    """Return all training sets in the box of this half width that explain the weights as well."""
    tau = KINK if state.exact else TAU_TRAINED
    _, first = np.unique(state.truth.origin, return_index=True)  # of each pair of classes one
    points = state.truth.take(first)
    return replace(Rivals.of(state.net, points.x, points.y, extent, tau), truth=state.truth)


def certified_masses(
    state: Explained, points: Dataset, progress: Progress = no_progress
) -> tuple[Certainty, Tensor]:
    """Return which points are certified, and the least mass near each point of the truth (n,)."""
    made = certified_points(state.target, points, progress=part_progress(progress, 0.0, 0.7))
    cone, sure = cone_around(state.target, points), made.certain[state.truth.origin]
    allowed, mass = allowed_residual(cone, made.truth), torch.zeros(state.truth.n).double()
    mass[sure] = forced_masses(
        cone, state.truth.x[sure], state.truth.y[sure], RADIUS, allowed,
        part_progress(progress, 0.7, 1.0),
    )  # fmt: skip
    return made, mass


def share_left(target: Target, x: Tensor, y: Tensor) -> float:
    """Return what points leave of the weights: the residual of their certificate."""
    return certify(target.net, x, y).residual


def measures(net: Network, e: Explanation, reference: Tensor) -> dict[str, object]:
    """Return the fields of `Explained` that say how e compares with the set that it came from."""
    return {
        "now": e, "change": relative_change(net, e, reference),
        "margin_error": margin_error(net, e), "slackness": slackness(net, e),
        "pinned": pinned_points(net, e), "_kinks": {},
    }  # fmt: skip


def lengths(extent: Extent, at: float, reach: float) -> tuple[float, float]:
    """Return (a, b) of a split whose first child was dragged to `at`; the other goes in proportion.

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


def split_toward(
    net: Network, before: Explanation, i: int, u: Tensor, extent: Extent, at: float, reach: float
) -> Explanation:
    """Return `before` with point i split along u. The child at `at` keeps the index i."""
    size = abs(at)
    if size <= LEAST:
        return before
    a, b = lengths(extent, at, reach)
    if at < 0:  # the child in hand is the first one of the split
        return split(net, before, i, -u, b, a)
    return split(net, before, i, u, a, b)


def slide_along(
    net: Network, before: Explanation, i: int, u: Tensor, at: float, reach: float, reference: Tensor
) -> Slide:
    """Return the line of a drag, with the change of the sum and the margin on it."""
    base = relative_change(net, before, reference)
    extent = extent_at(net, before, i, u)
    walls = [s * e * f for s, e in ((1, extent.plus), (-1, extent.minus)) if e < reach
             for f in (1 - BESIDE, 1 + BESIDE)]  # fmt: skip
    even = torch.linspace(-reach, reach, STEPS, dtype=torch.float64)
    places = torch.cat([even, torch.tensor(walls, dtype=torch.float64)]).sort().values
    rows = []
    for place in places.tolist():
        e = split_toward(net, before, i, u, extent, place, reach)
        rows.append([place, relative_change(net, e, reference), margin_error(net, e)])
    jumps = []
    for sign, own, walls_here in (
        (1.0, extent.plus, extent.walls_plus),
        (-1.0, extent.minus, extent.walls_minus),
    ):
        if not walls_here or own > reach:
            continue
        a, b = lengths(extent, sign * max(own, 10 * LEAST), reach)
        own_a, other = (a, b) if sign > 0 else (b, a)
        lam = float(before.lam[i]) * other / (own_a + other)
        x = before.x[i] + sign * own * u
        jump = predicted_jump(net, x, lam, walls_here, before.at(i), before.cover[i])
        jumps.append((sign * own, float((jump**2 + base**2) ** 0.5)))
    curve = torch.tensor(rows, dtype=torch.float64)
    return Slide(before, i, u, extent, at, reach, curve, tuple(jumps))


def split_all(state: Explained, reach: float) -> Explanation:
    """Return the truth with every point split to the ends of its cell on its level line."""
    e = state.truth
    for i in range(state.truth.n):
        free = free_direction(state.net, e, i)
        if free is not None:
            u, extent = free
            e = split(state.net, e, i, u, min(extent.plus, reach), min(extent.minus, reach))
    return e


def refresh(state: Explained, e: Explanation, **changes: object) -> Explained:
    """Return the state with another explanation."""
    reference = changes.get("reference", state.reference)
    made = measures(state.net, e, reference)  # type: ignore[arg-type]
    return replace(state, **{**made, **changes})  # type: ignore[arg-type]


def misfit(state: Explained) -> str:
    """Return which condition the set on screen breaks: "residual", "margin", or "" for none."""
    if max(state.change, state.left - state.base) > max(EXPLAINS, SAME * state.base):
        return "residual"
    slack = EXACT_MARGIN if state.exact else TRAINED_MARGIN
    return "margin" if state.margin_error > slack else ""
