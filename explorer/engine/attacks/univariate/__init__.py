"""The provable attack on the line: its state and its steps; see below for what it does."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.attacks.attack import Attack, Needs
from explorer.engine.attacks.claims import Report, in_units_of_data
from explorer.engine.attacks.shapes import NONE, Shapes
from explorer.engine.attacks.target import Target
from explorer.engine.attacks.univariate.config import (
    EXACT,
    SAFE,
    Tolerances,
    UnivariateConfig,
)
from explorer.engine.attacks.univariate.doubt import Inexact, doubt, doubt_words
from explorer.engine.attacks.univariate.graph import defect, merged_graph, programs, tolerances
from explorer.engine.attacks.univariate.intervals import (
    Group,
    Point,
    Seen,
    crossings,
    distinct,
    guarantee,
    turn,
)
from explorer.engine.attacks.univariate.panel import PANEL
from explorer.engine.certificate import balance
from explorer.engine.multipliers import fit_multipliers
from explorer.engine.piecewise import Piecewise, refusal
from explorer.engine.sizes import Size
from explorer.engine.status import Status
from explorer.engine.threads import few_threads

FIRM = 1e-5  # of the mass; arbitrary, 100 times what HiGHS may be off: a least multiplier above 0

Phase = Literal["walk", "gather", "fit", "prove", "done"]


@dataclass(frozen=True, eq=False)
class UnivariateState:
    """Where the scan stands, and what it has found.

    Attributes:
        t: steps taken.
        x: candidates (m, 1), ascending.
        y: their labels (m,), the sign of Phi.
        lam: multipliers (m,); equal shares of the mass until they are fitted.
        least: least multiplier with which the weights can be explained (m,); nan until solved.
        most: the largest (m,); nan until solved.
        groups: the groups found so far.
        alone: intervals that no group covers.
        at: the interval that is looked at next, or in the proof the next candidate.
        looked: the first and last interval of the step just taken; (-1, -1) where none.
        phase: what the next step does; "walk" is the scan, as saved runs name it.
        tol: the tolerances in force: those of rounding, or those of the settings.
        miss: the least possible miss of an equation, a share of |theta|; nan until fitted.
        eps: the miss allowed to explanations.
        residual: share of |theta| that the candidates leave unexplained by least squares, before
            neurons are merged; nan until fitted.
        defect: how far the weights are from the nearest KKT point that they show, a share of
            |theta| (`univariate.graph.defect`); nan, and nothing is proven, where a file of an
            earlier version does not say.
        intervals: of the graph; 0 where such a file does not say.
        seen: what the last turn of the scan found; "" before it.
        places: how many candidates that was.
        added: candidates that no group held, of those gathered; None before.
        flat: intervals on which |Phi| is 1 throughout; 0 before.
        imbalance: of the neurons, where the multipliers are fitted; nan before.
    """

    retired: ClassVar[tuple[str, ...]] = ("sentence",)  # fields of version 0.1
    t: int
    x: Tensor
    y: Tensor
    lam: Tensor
    least: Annotated[Tensor, Size("m")]
    most: Annotated[Tensor, Size("m")]
    groups: tuple[Group, ...]
    alone: tuple[int, ...]
    at: int
    looked: tuple[int, int]
    phase: Phase
    tol: Tolerances
    miss: float
    eps: float
    residual: float
    defect: float = math.nan
    intervals: int = 0
    seen: Seen = ""
    places: int = 0
    added: int | None = None
    flat: int = 0
    imbalance: float = math.nan

    @property
    def exact(self) -> bool:
        """Return whether the tolerances are those of rounding."""
        return self.tol == EXACT

    @property
    def doubt(self) -> Inexact | None:
        """Return why nothing is proven on these weights; None where they are an exact KKT point."""
        return doubt(self.defect, self.tol)

    @property
    def needed(self) -> Tensor:
        """Return which candidates no explanation does without, by `FIRM` of the mass or more."""
        return self.least > FIRM * self.lam.sum()

    @property
    def proven(self) -> Tensor:
        """Return which candidates must be training points (m,) bool: needed by exact weights."""
        return self.needed & (self.doubt is None)

    @property
    def likely(self) -> Tensor:
        """Return which candidates are needed by weights that are no exact KKT point (m,) bool."""
        return self.needed & (self.doubt is not None)

    @property
    def left_alone(self) -> bool:
        """Return whether the weights are too far from a KKT point to ask about candidates."""
        return self.phase == "done" and not self.at and not math.isnan(self.miss)

    @property
    def guaranteed_share(self) -> float:
        """Return the share of candidates that counted groups make training points; 0 in doubt."""
        return guarantee(self.groups, len(self.x)) if self.doubt is None else 0.0

    def numbers(self) -> dict[str, float]:
        """Return counts and the miss, for curves."""
        miss = {} if math.isnan(self.miss) else {"miss": self.miss}
        return {
            "candidates": float(len(self.x)),
            "groups": float(len(self.groups)),
            "proven": float(self.proven.sum()),
            "likely": float(self.likely.sum()),
            **miss,
        }


# --- The provable attack on networks of one input (Smorodinsky, Vardi and Safran, Algorithm 1) --
# At a KKT point of margin 1 every support point lies where |Phi| = 1, and between two of them the
# graph of Phi breaks at most twice. Hence whole stretches of the graph must hold a training point:
# `univariate.intervals` lists them, one turn of the scan per step, and names for each a few
# candidates. The union S of the groups is what the paper claims: under (a) some neuron is active
# on all training points and (b) theta is a local minimum, a quarter of S or more are training
# points.
#
# Then, ours: all places with |Phi| = 1 are gathered, and linear programs (`univariate.proof`) tell
# which of them no explanation of the weights does without; one step for each candidate. On an exact
# KKT point these are proven training points, on other weights likely ones
# (`UnivariateState.doubt`). Restated; see the paper for the original.


def fits(target: Target) -> str:
    """Return why the attack cannot be used on these weights, or an empty string."""
    why = refusal(target.net)
    return why and f"The univariate attack does not apply: {why}"


def view(target: Target, state: UnivariateState) -> Piecewise:
    """Return the graph that the attack scans: that of the merged weights."""
    return merged_graph(target, state.tol)[1]


@few_threads()
def init(
    target: Target,
    config: UnivariateConfig,
    generator: torch.Generator,
    start: object = None,
) -> UnivariateState:
    """Return the state that has found nothing, with its tolerances. It draws nothing."""
    why = fits(target)
    if why:
        raise ValueError(why)
    off = defect(target)
    tol = tolerances(off, config)
    line = merged_graph(target, tol)[1]
    none = torch.zeros(0, dtype=torch.float64)
    return UnivariateState(
        0, none[:, None], none, none, none, none, (), (), 0, (-1, -1), "walk", tol,
        math.nan, math.nan, math.nan, off, len(line),
    )  # fmt: skip


@few_threads()
def step(target: Target, state: UnivariateState, config: UnivariateConfig) -> UnivariateState:
    """Return a turn of the scan; then all crossings, the multipliers, and a candidate per step."""
    take = {"walk": _scan, "gather": _gather, "fit": _fit, "prove": _prove}.get(state.phase)
    return state if take is None else replace(take(target, state, config), t=state.t + 1)


def terminate(state: UnivariateState, config: UnivariateConfig) -> Status:
    """Return how the run stands."""
    return Status.COMPLETE if state.phase == "done" else Status.RUNNING


@in_units_of_data
def report(target: Target, state: UnivariateState, config: UnivariateConfig) -> Report:
    """Return the candidates, or under "certified" the needed ones, largest multiplier first."""
    kept = state.needed if config.mode == "certified" else state.y != 0
    rows = (v[kept].to(target.net.dtype) for v in (state.x, state.y, state.lam))
    return Report(*rows).heaviest_first()


def _points(state: UnivariateState) -> list[Point]:
    return list(zip(state.x[:, 0].tolist(), state.y.tolist(), strict=True))


def _with(target: Target, state: UnivariateState, points: list[Point]) -> UnivariateState:
    """Return the state with these candidates, nothing known of their multipliers."""
    x, y = torch.tensor(points, dtype=torch.float64).reshape(-1, 2).T
    unknown = torch.full_like(y, math.nan)
    lam = torch.full_like(y, target.mass / max(len(y), 1))
    return replace(
        state, x=x[:, None].contiguous(), y=y.contiguous(), lam=lam, least=unknown, most=unknown
    )


def _scan(target: Target, state: UnivariateState, config: UnivariateConfig) -> UnivariateState:
    line = view(target, state)
    made = turn(line, state.at, state.tol, state.groups, config.strict)
    groups, alone, points = state.groups, state.alone, _points(state)
    if made.group is None:
        alone = (*alone, made.first)
    else:
        groups = (*groups, made.group)
        points = distinct([*points, *zip(made.group.x, made.group.y, strict=True)], state.tol.same)
    over = made.following >= len(line)
    following: Phase = "walk" if not over else "done" if config.mode == "algorithm 1" else "gather"
    return replace(
        _with(target, state, points), groups=groups, alone=alone, at=made.following,
        looked=(made.first, made.last), phase=following, seen=made.seen,
        places=made.places,
    )  # fmt: skip


def _gather(target: Target, state: UnivariateState, config: UnivariateConfig) -> UnivariateState:
    line, tol = view(target, state), state.tol
    points = distinct([*_points(state), *crossings(line, tol)], tol.same)
    flat = sum(line.on_margin(i, 1.0, tol.flat) for i in range(len(line)))
    over = config.mode == "all crossings" or not points
    return replace(
        _with(target, state, points), looked=(-1, -1), at=0, phase="done" if over else "fit",
        added=len(points) - len(state.x), flat=flat,
    )  # fmt: skip


def _fit(target: Target, state: UnivariateState, config: UnivariateConfig) -> UnivariateState:
    tol = state.tol
    lam, miss = programs(*merged_graph(target, tol), _points(state), tol).fit()
    eps = max(config.slack * miss, tol.eps, SAFE * state.defect if state.doubt is None else 0.0)
    residual = fit_multipliers(target.net, state.x, state.y, tol.tau).residual
    apart = balance(target.net)
    far = residual > config.largest_residual or apart > config.largest_imbalance
    phase: Phase = "done" if far and state.doubt is not None else "prove"
    fitted = torch.from_numpy(lam)
    if float(fitted.sum()) <= 0:
        fitted = state.lam
    return replace(
        state, lam=fitted, miss=miss, eps=eps, residual=residual, phase=phase, imbalance=apart
    )


def _prove(target: Target, state: UnivariateState, config: UnivariateConfig) -> UnivariateState:
    i, tol = state.at, state.tol
    low, high = programs(*merged_graph(target, tol), _points(state), tol).bounds(i, state.eps)
    least, most = state.least.clone(), state.most.clone()
    least[i], most[i] = low, high
    return replace(
        state, least=least, most=most, at=i + 1,
        phase="done" if i + 1 == len(state.x) else "prove",
    )  # fmt: skip


# --- What the last step did, in words -----------------------------------------------------------

_NO_THEOREM = {
    "flat everywhere": "Φ is constant at the margin: every x could be a training point, none can "
    "be named.",
    "one interval": "Φ has no breakpoint: there is one interval only, and no theorem speaks of it.",
    "flat": "Φ is constant at the margin on interval {i}, and no ramp to another follows.",
    "last": "Interval {i} is the last one: no theorem speaks of it alone, and it is passed over.",
    "before flat": "Interval {i} is followed by one where Φ is constant: no theorem speaks of it "
    "alone, and it is passed over.",
}


def words(state: UnivariateState, config: UnivariateConfig) -> str:
    """Return what the last step did, and why, with its numbers."""
    if not state.t:
        kind = "exact" if state.exact else "trained"
        count = f"{state.intervals} " if state.intervals else ""
        return f"Φ is cut into {count}intervals ({kind} tolerances); the scan begins at 0."
    if state.looked != (-1, -1):
        return _turn_words(state)
    if state.at:
        return _proof_words(state, state.at - 1)
    return _gather_words(state) if math.isnan(state.miss) else _fit_words(state, config)


def _turn_words(state: UnivariateState) -> str:
    i, n, likely = state.looked[0], state.places, "" if state.doubt is None else "likely "
    if not state.seen:  # a file of an earlier version does not say
        return f"Intervals {i} to {state.looked[1]} were looked at."
    if state.seen in _NO_THEOREM:
        return _NO_THEOREM[state.seen].format(i=i)
    if state.seen == "empty":
        return (
            f"At a KKT point intervals {i} and {i + 1} would hold a training point (theorem 3.2), "
            "but |Φ| is nowhere 1 there: these weights are not at a KKT point of this margin."
        )
    if state.seen.endswith("3.3"):
        text = (
            f"Φ is constant at the margin on intervals {i} and {i + 2}, not between: one of the 2 "
            f"ends of interval {i + 1} is {likely}a training point (theorem 3.3, under (a) and "
            "(b))."
        )
    else:
        places = "the only place there" if n == 1 else f"one of {n} places"
        text = (
            f"On intervals {i} and {i + 1} Φ is not constant at the margin: together they "
            f"{likely}hold a training point, {places} with |Φ| = 1 (theorem 3.2)."
        )
    if likely:
        text += " Likely, as the theorem speaks of exact KKT points."
    if state.seen.startswith("shared"):
        text += " It shares a candidate with a group before, so the strict count leaves it out."
    return text


def _gather_words(state: UnivariateState) -> str:
    if state.added is None:  # a file of an earlier version does not say
        return f"{len(state.x)} places where |Φ| reaches 1 are gathered."
    rest = "every support point is one of them."
    if state.flat:
        rest = (
            f"|Φ| is 1 throughout {state.flat} intervals too, of which the ends alone are among "
            "them; every other support point is one of them."
        )
    return (
        f"{len(state.x)} places where |Φ| reaches 1 are gathered, {state.added} of them in no "
        f"group: {rest}"
    )


def _fit_words(state: UnivariateState, config: UnivariateConfig) -> str:
    if state.left_alone:
        apart = ""
        if not math.isnan(state.imbalance):
            apart = (
                f", neurons are out of balance by {state.imbalance:.1%} (at most "
                f"{config.largest_imbalance:.0%})"
            )
        return (
            f"Nothing can be proven, nor called likely: {state.residual:.1%} of |θ| is left "
            f"unexplained (at most {config.largest_residual:.0%}){apart}. Too far from a KKT "
            "point: train longer."
        )
    standing = f"What these need is likely, not proven: {doubt_words(state)}. {FALSE}"
    if state.doubt is None:
        standing = (
            f"The weights are an exact KKT point (to {state.defect:.0e}): what they need is proven "
            "if the margin is exactly the one given."
        )
    return (
        "With the best multipliers no equation of stationarity is missed by more than "
        f"{state.miss:.1e} of |θ|; {state.eps:.1e} is allowed. {standing}"
    )


def _proof_words(state: UnivariateState, i: int) -> str:
    x, low, high = (float(v) for v in (state.x[i, 0], state.least[i], state.most[i]))
    verdict = "the weights can be explained without it: not proven"
    if bool(state.needed[i]):
        verdict = "no explanation does without it: " + (
            "proven, a training point, if the margin is exact"
            if state.doubt is None
            else "likely a training point"
        )
    return f"x = {x:.3f} has λ between {low:.3g} and {high:.3g}; {verdict}."


FALSE = "Of trained weights 0.2 to 4% of such points are false."  # docs/univariate.md
FAR = 50.0  # beyond every plane: where an unbounded interval is drawn to end
HIGH = 1.72  # height of a group's words on a plane of half width 2; arbitrary


def shapes(target: Target, state: UnivariateState) -> Shapes:
    """Return spans for groups, which hold a point each. Thick: the pieces looked at.

    Squares: proven points. Dashed: likely ones. Crosses: the ends of a ramp by theorem 3.3.
    """
    line = view(target, state)
    ramps = [(x, y) for g in state.groups if g.rule == "3.3" for x, y in zip(g.x, g.y, strict=True)]
    rings, likely = (
        np.column_stack([state.x[kept, 0].numpy(), state.y[kept].numpy()])
        for kept in (state.proven, state.likely)
    )
    held = "likely a point" if state.doubt else "holds a point"
    texts = tuple(
        (_middle(g.low, g.high), HIGH - 0.16 * (i % 2), held) for i, g in enumerate(state.groups)
    )
    return Shapes(
        strong=_pieces(line, state.looked), dots=np.array(ramps).reshape(-1, 2), rings=rings,
        likely=likely, texts=texts,
        spans=tuple((max(g.low, -FAR), min(g.high, FAR)) for g in state.groups),
        names=(("strong", "pieces looked at"), ("spans", "interval with a point"),
               ("rings", "proven"), ("likely", "likely")),
    )  # fmt: skip


def _pieces(line: Piecewise, looked: tuple[int, int]) -> Array:
    """Return the graph over the intervals looked at."""
    first, last = looked
    if first < 0 or first >= len(line):
        return NONE
    ends = [line.ends(i) for i in range(first, min(last, len(line) - 1) + 1)]
    x = np.clip([ends[0][0], *(high for _, high in ends)], -FAR, FAR)
    return np.column_stack([x, [line.value(at) for at in x]])


def _middle(low: float, high: float) -> float:
    """Return where a group's words stand: its middle, an unbounded one's near its inner end."""
    if np.isfinite(low) and np.isfinite(high):
        return (low + high) / 2
    if np.isfinite(low):
        return low + 0.15
    return high - 0.55 if np.isfinite(high) else 0.0


ATTACK = Attack(
    place=2, key="univariate", title="Provable, on the line",
    paper="Smorodinsky, Vardi and Safran 2024",
    sentence="Reads training points off the bends of the graph. It scans the intervals of Φ and "
    "names places of which some must be training points; then single ones: proven where the "
    "weights are an exact KKT point, likely where they were trained.",
    config=UnivariateConfig, state=UnivariateState,
    first=init, step=step, terminate=terminate, report=report, needs=Needs(fits), shapes=shapes,
    words=words, panel=PANEL,
)  # fmt: skip
