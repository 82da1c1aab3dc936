r"""Places likely to hold a training point: the certified radius, searched from coarse to fine.

A place is an interval of the line or a square of the plane with a label. Its radius is the least
residual of any explanation of the weights that has no point of that label there
(`explanations.cone`): one convex problem without a seed, a start or a descent. The search
begins with wide places around the points of the least explanation, as every needed place holds
one of them, keeps those with a radius above the threshold and goes on with narrower ones inside
them. What is claimed are the centres of the narrowest places that do not meet: no two of them can
stand for the same point. That the radii exceed the threshold is proven; that the points of the
weights leave less than it is a judgement, as nobody knows them here. Who does says which of the
places are certified (`runs.certified_places`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.attacks.attack import Attack, FileCheck, Needs, Start
from explorer.engine.attacks.claims import Report, in_units_of_data
from explorer.engine.attacks.shapes import SQUARE, Shapes, joined_paths
from explorer.engine.attacks.target import Target
from explorer.engine.explanations.assumptions import (
    THRESHOLD,
    cone_of,
    obstacle,
    threshold,
    threshold_obstacle,
)
from explorer.engine.explanations.cone import Cone, scope
from explorer.engine.number_words import count, percent, share
from explorer.engine.settings import setting, settings
from explorer.engine.sizes import Size
from explorer.engine.statement import Action, Judged, Statement
from explorer.engine.status import Status
from explorer.engine.threads import few_threads

FINER = 2  # times as narrow are the next places


@settings
class CertifiedConfig:
    """Settings of the search; `benchmarks/bench_certified.py` measures the defaults."""

    # fmt: off
    threshold: Annotated[float, setting(
        "The least radius of a claim, a share of |θ|: so much does an explanation in the box leave "
        "that has no point there", title="least radius", form="sight", place=1,
        page=(0, 1), ge=0, lt=1, note="Three times the residual of the least explanation is taken "
        "where that is more, in the plane 1.75 times where that residual is 10% at most; "
        "what moves and storage in few bits may leave is added. Arbitrary.",
    )] = THRESHOLD
    narrowest: Annotated[float, setting(
        "Half width of the narrowest places", title="narrowest place", unit="of the data",
        form="sight", place=2, page=(1e-4, 10), gt=0,
    )] = 0.03
    widest: Annotated[float, setting(
        "Half width of the first places", title="widest place", unit="of the data", form="more",
        place=1, page=(1e-4, 10), gt=0,
    )] = 0.24
    margin_error: Annotated[float, setting(
        "By how much the known margin may be off, as a share of it", title="margin known to",
        form="sight", place=3, page=(0, 0.9), ge=0, lt=1,
    )] = 0.0
    box: Annotated[float | None, setting(
        "Half width of the box of all points; 0: found from the weights", title="box",
        unit="of the data", form="more", place=2, page=(0, 100), gt=0,
    )] = None
    per_step: Annotated[int, setting(
        "Places that one step looks at", title="places a step", form="more", place=3,
        page=(1, 1000), ge=1,
    )] = 8
    steps: Annotated[int, setting(
        "Length of the search at most", title="steps", form="more", place=4, page=(1, 100_000),
        gt=0,
    )] = 1000
    # fmt: on

    def __post_init__(self) -> None:
        """Refuse first places that are narrower than the last."""
        if self.widest < self.narrowest:
            raise ValueError(
                f"the widest place must not be narrower than the narrowest; got widest="
                f"{self.widest}, narrowest={self.narrowest}. Raise widest."
            )


@dataclass(frozen=True, eq=False)
class CertifiedState:
    """What is proven so far, and what is still to be looked at.

    Attributes:
        t: steps taken.
        x: centres of the claimed places (m, d).
        y: their labels (m,).
        lam: the multipliers that the least explanation has there (m,).
        radius: their proven radii (m,), shares of |theta|.
        half: their half widths (m,); a training point lies within half + reach.
        proven: all places with a radius above the threshold (p, d + 3): centre, half width, label,
            radius.
        waiting: places to look at (w, d + 2): centre, half width, label.
        least: least residual of any explanation, a share of |theta|.
        threshold: the radius that a claim exceeds.
        reach: how far from a place its training point may stand; units of x.
        band: support points are assumed to have y Phi <= 1 + band.
        tau: slopes are free within this distance of a neuron's line.
        box: half width of the box of all points.
        looked: places looked at so far.
        why: why nothing can be likely of these weights, as a sentence; or "".
    """

    t: int
    x: Tensor
    y: Tensor
    lam: Tensor
    radius: Annotated[Tensor, Size("m", dtype=torch.float64, finite=True)]
    half: Annotated[Tensor, Size("m", dtype=torch.float64, finite=True)]
    proven: Annotated[Tensor, Size("proven columns", dtype=torch.float64, finite=True)]
    waiting: Annotated[Tensor, Size("waiting sides", dtype=torch.float64, finite=True)]
    least: float
    threshold: float
    reach: float
    band: float
    tau: float
    box: float
    looked: int = 0
    why: str = ""

    def numbers(self) -> dict[str, float]:
        """Return counts, and the least residual of any explanation."""
        return {
            "proven": float(len(self.x)),
            "waiting": float(len(self.waiting)),
            "least": self.least,
            "radius": float(self.radius.min()) if len(self.radius) else 0.0,
        }


def fits(target: Target) -> str:
    """Return why nothing can be certified of these weights within minutes, or an empty string."""
    return obstacle(target, asked=True)


def init(
    target: Target, config: CertifiedConfig, generator: torch.Generator, start: Start | None = None
) -> CertifiedState:
    """Return a state that knows nothing; it draws nothing. The first step finds the assumptions."""
    d, kind = target.net.d, target.net.dtype
    none = torch.zeros(0, dtype=torch.float64)
    return CertifiedState(
        0, none.reshape(0, d).to(kind), *(none.to(kind),) * 2, none, none, none.reshape(0, d + 3),
        none.reshape(0, d + 2), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
    )  # fmt: skip


def _with_assumptions(cone: Cone, state: CertifiedState, config: CertifiedConfig) -> CertifiedState:
    """Return the state with its assumptions and the first places to look at."""
    made = cone.assumptions
    return replace(
        state, t=1, waiting=torch.from_numpy(_first(cone, config.widest)), least=cone.least.high,
        threshold=threshold(cone, config.threshold), reach=made.reach, band=made.top - 1,
        tau=made.tau, box=made.box, why=threshold_obstacle(cone),
    )  # fmt: skip


@few_threads()
def step(target: Target, state: CertifiedState, config: CertifiedConfig) -> CertifiedState:
    """Look at the next places; narrower ones inside those that are proven wait for their turn."""
    cone, d = cone_of(target, config.margin_error, config.box), target.net.d
    if not state.t:
        return _with_assumptions(cone, state, config)
    now, later = state.waiting[: config.per_step], state.waiting[config.per_step :]
    proven, finer = [state.proven.numpy()], [later.numpy()]
    for row in now.numpy():
        at, half, label = row[:d], float(row[d]), float(row[d + 1])
        found = cone.radius(at - half, at + half, label, state.threshold)
        if found.low > state.threshold:
            proven.append(np.append(row, found.low)[None])
            finer.append(_inside(row, d, config.narrowest))
    all_proven = np.concatenate(proven)
    kept = _disjoint(all_proven, d, state.reach)
    lam = [cone.mass(r[:d] - r[d], r[:d] + r[d], r[d + 1]) for r in kept]
    kind = target.net.dtype
    columns = torch.from_numpy(kept)
    return replace(
        state, t=state.t + 1, x=columns[:, :d].to(kind), y=columns[:, d + 1].to(kind),
        lam=torch.tensor(lam, dtype=kind), radius=columns[:, d + 2].clone(),
        half=columns[:, d].clone(), proven=torch.from_numpy(all_proven),
        waiting=torch.from_numpy(_once(np.concatenate(finer))), looked=state.looked + len(now),
    )  # fmt: skip


def terminate(state: CertifiedState, config: CertifiedConfig) -> Status:
    """Return how the run stands."""
    if state.t and not len(state.waiting):
        return Status.COMPLETE
    return Status.FINISHED if state.t >= config.steps else Status.RUNNING


@in_units_of_data
def report(target: Target, state: CertifiedState, config: CertifiedConfig) -> Report:
    """Return the centres of the narrowest proven places apart, largest multiplier first."""
    return Report(state.x, state.y, state.lam).heaviest_first()


def _first(cone: Cone, half: float) -> Array:
    """Return overlapping places of half width `half` that hold a point of the least explanation."""
    at = cone.least.take(cone.least.y != 0)
    d = at.x.shape[1]
    rows = []
    for shift in product((0.0, 1.0), repeat=d):
        centre = (np.floor((at.x / half + shift) / 2) * 2 + 1 - np.array(shift)) * half
        rows.append(np.column_stack([centre, np.full(len(centre), half), at.y]))
    found: Array = np.unique(np.concatenate(rows).round(9), axis=0)  # no order of the solver's
    return found


def _inside(row: Array, d: int, narrowest: float) -> Array:
    """Return places of half the width inside a place, in its middle and at its walls."""
    half = float(row[d]) / FINER
    if half < narrowest * (1 - 1e-9):
        return np.zeros((0, len(row)))
    shifts = np.array(list(product((-half, 0.0, half), repeat=d)))
    rest = np.tile([half, row[d + 1]], (len(shifts), 1))
    return np.concatenate([row[:d] + shifts, rest], axis=1)


def _once(rows: Array) -> Array:
    """Return each place once, in order; places equal up to rounding are one."""
    found: Array = rows[np.sort(np.unique(rows.round(9), axis=0, return_index=True)[1])]
    return found


def _disjoint(rows: Array, d: int, reach: float) -> Array:
    """Return the narrowest proven places, then those of largest radius, `2 reach` apart.

    Radii are known to 2% only: of those equal to two digits the first in place is taken.
    Each must have a point in its inside, so that those of reach 0 may share a wall.
    """
    kept: list[Array] = []
    order = (*rows[:, :d].T[::-1], -rows[:, d + 2].round(2), rows[:, d].round(12))
    for row in rows[np.lexsort(order)]:
        apart = (
            (np.abs(row[:d] - other[:d]) >= row[d] + other[d] + 2 * reach - 1e-12).any()
            or row[d + 1] != other[d + 1]
            for other in kept
        )
        if all(apart):
            kept.append(row)
    return np.array(kept).reshape(-1, rows.shape[1])


def shapes(target: Target, state: CertifiedState) -> Shapes:
    """Return the claimed places and their reach: spans, or squares; dashed rings at centres."""
    x, half = state.x.numpy(), state.half.numpy()[:, None] + state.reach
    if target.net.d == 1:
        ends = np.column_stack([x - half, x + half])
        spans = tuple((float(low), float(high)) for low, high in ends)
        held = np.column_stack([x, state.y.numpy()])
        return Shapes(spans=spans, likely=held, names=(("spans", "a claimed place"),))
    squares = [at + h * SQUARE for at, h in zip(x, half, strict=True)]
    return Shapes(lines=joined_paths(squares), likely=x, names=(("lines", "edge of its place"),))


def words(state: CertifiedState, config: CertifiedConfig) -> str:
    """Return what is proven so far, on which assumption, and what still waits."""
    if not state.t:
        return "The first step finds what must be assumed of the points, from the weights alone."
    if state.why:
        return state.why
    if state.threshold >= 1:
        return (
            f"The nearest explanation leaves {state.least:.1%} of the weights: too much for any "
            "place to be claimed."
        )
    if not state.looked:
        return (
            f"Some explanation leaves {state.least:.1%} of the weights; a place is likely where "
            f"explanations without a point there leave more than {state.threshold:.1%}. "
            f"Explanations are those with {scope(state.box, 1 + state.band)}."
        )
    left = f" {len(state.waiting)} places wait." if len(state.waiting) else ""
    if not len(state.radius):
        return f"Of {state.looked} places looked at none is likely to hold a training point.{left}"
    least = float(state.radius.min())
    reach = f", or have one within {state.reach:.2g}" if state.reach else ""
    return (
        f"Of {state.looked} places looked at {len(state.radius)} that do not meet are likely to "
        f"hold a training point each{reach}: without one every "
        f"explanation with {scope(state.box, 1 + state.band)} leaves {least:.1%} of the "
        f"weights or more. That the true points leave less is a judgement by a threshold "
        f"({state.threshold:.1%}).{left}"
    )


def headline(state: CertifiedState, known: Judged) -> Statement:
    """Return how many places are certified and likely; whether their centres are near is less."""
    if not len(state.x):
        nothing = (
            "By its threshold no place is likely to hold a training point. That proves no safety."
        )
        return Statement("No place is likely to hold a point", state.why or nothing, "warn")
    many, sure = len(state.x), known.certified
    if sure == many:
        each = "it holds" if many == 1 else "each holds"
        title = f"{count(many, 'place')} proven: {each} a training point"
    elif sure:
        title = f"{sure} of {count(many, 'place')} proven, {many - sure} likely"
    else:
        title = f"{count(many, 'place')} likely to hold a training point"
    reach = f" or within {state.reach:.2g} of it" if state.reach else ""
    words = (
        f"Without a point there{reach} every explanation with "
        f"{scope(state.box, 1 + state.band)} leaves {percent(float(state.radius.min()))} of the "
        "weights or more"
    )
    words += (
        f"; the training points leave {share(known.residual)}."
        if known.box == state.box
        else f". That the points leave less is judged by a threshold, {share(state.threshold)}."
    )
    words += f" Their centres are within {known.radius:g} of {known.found} of {known.n} points."
    tone = "good" if sure == many else "warn"
    return Statement(title, words, tone, action=Action("explain", "Could they be elsewhere?"))


def belongs(target: Target, state: CertifiedState, config: CertifiedConfig) -> bool:
    """Return whether the rows of places have the columns of these weights' points."""
    d = target.net.d
    return state.proven.shape[1] == d + 3 and state.waiting.shape[1] == d + 2


ATTACK = Attack(
    place=7, heavy=True, key="certified_places", title="Likely places", paper="own",
    sentence="Names places likely to hold a training point. Without one of its label, explanations "
    "in a box leave more of the weights than a threshold, which is found from the weights alone.",
    config=CertifiedConfig, state=CertifiedState,
    first=init, step=step, terminate=terminate, report=report,
    needs=Needs(fits, several=True, unseparated=True), shapes=shapes, words=words,
    headline=headline, file=FileCheck(belongs=belongs),
    curves=(("proven", "places above the threshold"), ("waiting", "places waiting")),
)  # fmt: skip
