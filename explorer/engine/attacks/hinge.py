"""The hinge attack: its settings, its state, and a step; see below for what it does."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, ClassVar, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.attack_panel import AttackPanel, PanelContent
from explorer.engine.attacks import crossings, pursuit
from explorer.engine.attacks.attack import Attack, FileCheck, Needs
from explorer.engine.attacks.claims import Report, in_units_of_data, merge_candidates
from explorer.engine.attacks.crossings import curve_vertices
from explorer.engine.attacks.pursuit import CandidatePool, SparseFit
from explorer.engine.attacks.shapes import NONE, Shapes, joined_paths, places
from explorer.engine.attacks.target import Target
from explorer.engine.charts import Axis, Chart, Guide, Series
from explorer.engine.merging import MERGE_ANGLE
from explorer.engine.network import Network
from explorer.engine.number_words import count
from explorer.engine.rounding import EDGE, at_edge
from explorer.engine.settings import setting, settings
from explorer.engine.sizes import Size
from explorer.engine.statement import Action, Judged, Statement
from explorer.engine.status import Status
from explorer.engine.threads import few_threads


@settings
class HingeConfig:
    """A hinge attack. "Tuned" values were chosen on sets of seeds 100 to 109, see docs/hinge.md."""

    # fmt: off
    claim: Annotated[Literal["proven", "fitted"], setting(
        "Only places that no other explanation can do without, or all places of the explanation "
        "found", title="claims", form="sight", place=1,
        labels=(("needed places", "proven"), ("all fitted places", "fitted")),
    )] = "proven"
    merge_angle: Annotated[float, setting(
        "Two layers: neurons closer than this many radians are merged before the attack; 0: none",
        title="merge angle", unit="radians", form="more", place=3, page=(0, 1), ge=0,
        note="As of the KKT attack.",
    )] = MERGE_ANGLE
    tolerance: Annotated[float, setting(
        "A crossing is kept if |Φ| is this near to 1", title="tolerance of |Φ|", unit="margins",
        form="sight", place=4, page=(1e-9, 1), gt=0,
        note="Arbitrary, far above the 0.01 by which trained networks miss.",
    )] = 0.1
    spacing: Annotated[float, setting(
        "Candidates of one label are at least so far apart", title="spacing", unit="of the data",
        form="more", place=5, page=(1e-4, 1), gt=0,
        note="Arbitrary, a third of the radius 0.03 at which claims are scored.",
    )] = 0.01
    reach: Annotated[float, setting(
        "No candidate lies farther from the origin", title="reach", unit="of the data",
        form="more", place=6, page=(0.1, 100), gt=0,
        note="The corner of the plane, 2√2. The attacker is assumed to know the scale of the data.",
    )] = 2.8
    grid: Annotated[int, setting(
        "Lines each way on which the margin is sampled besides", title="grid lines", form="more",
        place=7, page=(0, 400), ge=0, note="Arbitrary. They stand for explanations by points that "
        "lie on no kink; 0 leaves only the ends of the region.",
    )] = 60
    tau: Annotated[float, setting(
        "Slopes are free within this relative distance of a kink", title="kink τ", form="more",
        place=4, page=(0, 0.5), ge=0, note="The certificate's for trained weights.",
    )] = 0.01
    batch: Annotated[int, setting(
        "Candidates that join the explanation at each step", title="batch", form="more", place=8,
        page=(1, 100), ge=1, note="Arbitrary.",
    )] = 6
    apart: Annotated[float, setting(
        "How far apart those must be", title="apart", unit="of the data", form="more", place=9,
        page=(1e-3, 2), gt=0, note="Arbitrary.",
    )] = 0.1
    rounds: Annotated[int, setting(
        "At most so many batches", title="rounds", form="more", place=10, page=(1, 1000), ge=1,
        note="Arbitrary: none of the tuned runs needed 30.",
    )] = 40
    merge_radius: Annotated[float, setting(
        "Fitted candidates of one label this near to each other become one", title="merge radius",
        unit="of the data", form="more", place=2, page=(1e-3, 2), gt=0,
        note="Arbitrary, above the width of the pencils of lines (0.01) and below the distances "
        "of points.",
    )] = 0.05
    radius: Annotated[float, setting(
        "The neighbourhood without which the weights are explained again",
        title="left-out radius", unit="of the data", form="more", place=1, page=(1e-3, 2), gt=0,
        note="Arbitrary, three times the radius at which claims are scored.",
    )] = 0.1
    rise: Annotated[float, setting(
        "A place is needed if without its neighbourhood the residual rises by at least this share",
        title="rise", unit="of the residual", form="sight", place=2, page=(0, 10), ge=0,
        note="Tuned.",
    )] = 0.02
    floor: Annotated[float, setting(
        "… and by at least this share of the norm of the weights", title="and by", unit="of ‖θ‖",
        form="sight", place=3, page=(0, 1), ge=0, note="Tuned.",
    )] = 0.002
    lam_share: Annotated[float, setting(
        "Places below this share of the mean multiplier are not asked about", title="least λ",
        unit="mean multipliers", form="more", place=11, page=(0, 1), ge=0,
        note="As for the claims of the KKT attack.",
    )] = 0.1
    # fmt: on


# --- What the hinge attack holds at one moment --------------------------------------------------

Stage = Literal["starts", "lines", "cross", "fit", "prove", "weigh", "done"]


@dataclass(frozen=True, eq=False)
class HingeState:
    """One moment of the attack.

    Attributes:
        t: steps taken.
        stage: what the next step does.
        x: candidates (m, d) in sight: the pool, then those that carry, then the merged ones.
        y: their labels (m,).
        lam: their multipliers (m,), 0 before the fit.
        without: (m,) the residual without each one's neighbourhood; nan where not asked yet.
        residual: |theta - sum| / |theta| of the fit; 1 before it.
        limit: the residual from which on a place is needed; 1 before the questions.
        normal: unit normals of the lines (K, d).
        offset: of the lines (K,): normal . x + offset = 0.
        weight: path weights of the lines (K,).
        pool: all candidates (N, d).
        active: those that carry theta, as indices (A,) into the pool.
        mass: their multipliers (A,).
        left: what they leave of theta, block by block.
        tried: crossings of lines and of the margin; None before, and in files of version 0.1.
        near: how many of them have |Phi| within the tolerance of 1; None likewise.
    """

    retired: ClassVar[tuple[str, ...]] = ("sentence",)  # fields of version 0.1
    t: int
    stage: Stage
    x: Tensor
    y: Tensor
    lam: Tensor
    without: Annotated[Tensor, Size("m")]
    residual: float
    limit: float
    normal: Annotated[Tensor, Size("lines d")]
    offset: Annotated[Tensor, Size("lines")]
    weight: Annotated[Tensor, Size("lines")]
    pool: Annotated[Tensor, Size("pool d")]
    active: Annotated[Tensor, Size("active", dtype=torch.int64, below="pool")]
    mass: Annotated[Tensor, Size("active")]
    left: tuple[Tensor, ...]
    tried: int | None = field(default=None, kw_only=True)
    near: int | None = field(default=None, kw_only=True)

    @property
    def needed(self) -> Tensor:
        """Return which places are needed, (m,) bool; one not asked about is not."""
        return self.without.nan_to_num(0.0) >= self.limit

    @property
    def explanation(self) -> SparseFit:
        """Return the explanation of theta by the candidates that carry it."""
        return SparseFit(self.active, self.mass, self.residual, list(self.left))

    def numbers(self) -> dict[str, float]:
        """Return the residual, the candidates in sight, and how many were asked about."""
        return {
            "residual": self.residual,
            "candidates": float(len(self.x)),
            "asked": float((~self.without.isnan()).sum()),
            "needed": float(self.needed.sum()),
        }


# --- The hinge attack: training points where the kinks of the network and its margin meet -------
# Near a KKT point the kinks of neurons pass through training points, and points with a multiplier
# lie on |Phi| = 1. So the candidates are finitely many (`crossings`), and which of them carry theta
# is a convex question (`pursuit`). The attack asks three in turn:
#
#     lines     the kink sets of the neurons
#     cross     their crossings and their crossings of |Phi| = 1, filtered by | |Phi| - 1 |
#     fit       multipliers >= 0 on few of them that explain theta, slopes free at kinks
#     prove     for each fitted candidate: is theta explained as well without its neighbourhood?
#
# The last is what makes a claim. With r the residual of the fit and r_i the least residual found
# without any candidate of the same label within `radius` of candidate i, i is *needed* if
#
#     r_i >= (1 + rise) r + floor.
#
# In two layers r_i is no less than a bound that the search proves (`pursuit.at_least`), and what it
# can neither prove nor refute is at the edge and no claim: which candidates it met first, where
# the last bits may decide, does not matter. At an exact KKT point with r = 0 and a complete pool a
# needed candidate has a training point within `radius` (the min lam > 0 over all explanations of
# theory 2.5, as a residual). Near one it is evidence of that: a network far from its KKT point is
# explained better by other points than by its own. Own construction; the 1-D proof is of the
# univariate attack.

S = TypeVar("S", bound=HingeState)
_GAIN = 0.995  # arbitrary: a round that lowers the residual by less than 0.5% is no progress
_MOST = 0.5  # arbitrary: what leaves more is on its way, however little a round gains
_FIRST = 6  # arbitrary: rounds before that is asked; the first ones only fill the set
_TRIES = 6  # arbitrary: rounds in which the rest may make up for a candidate, in three layers
_PROOF = 60  # arbitrary: the same in two layers, before a place is said to be at the edge
_CLOSEST = 1e-5  # arbitrary: of their fits
_DUST = 1e-7  # arbitrary: residuals below this share of |theta| are rounding of the fit


def fits(target: Target) -> str:
    """Return why this attack cannot be used on these weights, or an empty string."""
    net = target.net
    if net.d > 2:
        return (
            "The hinge attack lists crossings of lines, so it needs inputs of 1 or 2 coordinates; "
            f"these have {net.d}. Beyond 2-D kinks of d neurons meet in a point, and their "
            "number grows as (neurons)^d."
        )
    if len(net.weights) not in (2, 3) or len(net.weights[-1]) != 1:
        return (
            "The hinge attack knows the kinks of two and three layers of weights with one output; "
            f"these weights have {len(net.weights)} layers and {len(net.weights[-1])} outputs."
        )
    return ""


@few_threads()
def init(
    target: Target, config: HingeConfig, generator: torch.Generator, start: object = None
) -> HingeState:
    """Return the lines, and no candidate yet. Draws nothing, and takes no start."""
    why = fits(target)
    if why:
        raise ValueError(why)
    net = explained_network(target, config)
    found = crossings.lines(net)
    none = net.weights[0].new_zeros(0, dtype=torch.float64)
    spots, labels = none.reshape(0, net.d), none
    return HingeState(
        0, "lines", spots, labels, none, none, 1.0, 1.0, found.normal, found.offset, found.weight,
        spots, torch.zeros(0, dtype=torch.long), none, (),
    )  # fmt: skip


@few_threads()
def step(target: Target, state: HingeState, config: HingeConfig) -> HingeState:
    """Return one stage, or one batch of candidates of it, or one question."""
    take = {"lines": _cross, "cross": _grow, "fit": _grow, "prove": _prove}.get(state.stage)
    if take is None:
        return state
    return replace(take(target, state, config), t=state.t + 1)


def terminate(state: HingeState, config: HingeConfig) -> Status:
    """Return how the run stands."""
    return Status.COMPLETE if state.stage == "done" else Status.RUNNING


@in_units_of_data
def report(target: Target, state: HingeState, config: HingeConfig) -> Report:
    """Return the needed candidates, or all fitted ones; nothing before the questions are asked."""
    if state.stage not in ("prove", "weigh", "done"):
        return Report(state.x[:0], state.y[:0], state.lam[:0])
    kept = state.needed if config.claim == "proven" else _worth(state, config)
    return Report(state.x, state.y, state.lam).take(kept)


def _worth(state: HingeState, config: HingeConfig) -> Tensor:
    return state.lam >= config.lam_share * state.lam.mean() if len(state.lam) else state.lam > 0


def explained_network(target: Target, config: HingeConfig) -> Network:
    """Return the weights that are explained: merged where that is faithful, in two layers."""
    net = target.merged(config.merge_angle) if len(target.net.weights) == 2 else target.net
    return net.to(dtype=torch.float64, device="cpu")


def belongs(target: Target, state: HingeState, config: HingeConfig) -> bool:
    """Return whether what the state leaves unexplained has the shapes of these weights."""
    net = explained_network(target, config)
    layers = zip(net.weights, net.biases, strict=True)
    blocks = [(w.shape[0], w.shape[1] + (b is not None)) for w, b in layers]
    return not state.left or [tuple(block.shape) for block in state.left] == blocks


def pool_of(target: Target, state: HingeState, config: HingeConfig) -> CandidatePool:
    """Return the pool of the state, with what pricing needs; kept while the target lives."""
    net = explained_network(target, config)
    make = partial(CandidatePool.of, net, state.pool, config.tau)
    return target.latest("hinge, pool", state.pool, make)


def _cross(target: Target, state: HingeState, config: HingeConfig) -> HingeState:
    net = explained_network(target, config)
    lines = crossings.Lines(state.normal, state.offset, state.weight)
    met, along, owners = crossings.vertices(net, lines, config.reach)
    found = [met, along, *curve_vertices(net, along, owners, config.reach)]
    kept = [crossings.on_margin(net, some, config.tolerance) for some in found]
    thin = crossings.sparse_vertices(net, kept[0].union(*kept[1:]), config.spacing)
    both = thin.union(crossings.level_vertices(net, config.grid, config.reach))
    pool = CandidatePool.of(net, both.x, config.tau)
    target.latest("hinge, pool", pool.x, lambda: pool)
    zero = torch.zeros(len(both), dtype=torch.float64)
    return replace(
        state, stage="cross", x=thin.x, y=pool.y[: len(thin)], lam=zero[: len(thin)],
        without=zero[: len(thin)] * torch.nan, pool=pool.x,
        tried=sum(map(len, found)), near=sum(map(len, kept)),
    )  # fmt: skip


def _grow(target: Target, state: HingeState, config: HingeConfig) -> HingeState:
    pool = pool_of(target, state, config)
    now = state.explanation if state.stage == "fit" else pursuit.nothing(pool)
    after = pursuit.next_explanation(pool, now, config.batch, config.apart)
    rounds = state.t - 1
    slow = _MOST > after.residual > _GAIN * now.residual and rounds >= _FIRST
    grown = with_fit(state, pool, after)
    if not (slow or rounds >= config.rounds or after.residual < _DUST or after is now):
        return grown
    return _merge(grown, config)


def with_fit(state: S, pool: CandidatePool, now: SparseFit) -> S:
    """Return the state that holds this explanation, its candidates in sight."""
    return replace(
        state, stage="fit", x=pool.x[now.index], y=pool.y[now.index], lam=now.lam,
        without=now.lam * torch.nan, residual=now.residual, active=now.index, mass=now.lam,
        left=tuple(now.left),
    )  # fmt: skip


def _merge(state: HingeState, config: HingeConfig) -> HingeState:
    """Return the state with fitted candidates of one place made one; the questions begin."""
    merged = merge_candidates(state.x, state.y, state.lam, config.merge_radius)
    return replace(
        state, stage="prove" if len(merged.x) else "done", x=merged.x, y=merged.y, lam=merged.lam,
        without=merged.lam * torch.nan,
        limit=(1 + config.rise) * state.residual + config.floor,
    )  # fmt: skip


def _prove(target: Target, state: HingeState, config: HingeConfig) -> HingeState:
    """Ask of the heaviest candidate not asked yet whether the others can make up for it."""
    open_ = (state.without.isnan() & _worth(state, config)).nonzero()[:, 0]
    if not len(open_):
        return replace(state, stage="done")
    i = int(open_[0])
    pool, stop = pool_of(target, state, config), state.limit
    answers = state.without.clone()
    answers[i] = without(pool, state.explanation, state.x[i], state.y[i], stop, config)
    return replace(state, without=answers, stage="prove" if len(open_) > 1 else "done")


def without(
    pool: CandidatePool, now: SparseFit, x: Tensor, y: Tensor, stop: float, config: HingeConfig
) -> float:
    """Return what is left of theta with no candidate of label y () within `radius` of x (d,).

    At least `stop`: the place is needed, in two layers proven, in three as far as the search went.
    Below: left by an explanation that was found, the place is not needed. Just below `stop`, where
    a search in two layers ended without an answer.
    """
    near = ((pool.x - x).norm(dim=1) <= config.radius) & (pool.y == y)
    kept = (~near).nonzero()[:, 0]
    place = torch.full((len(near),), -1)
    place[kept] = torch.arange(len(kept))
    rest, carried = pool.take(kept), place[now.index]
    found = pursuit.best_explanation(rest, carried[carried >= 0])
    if len(pool.net.weights) == 2:
        return _decision(rest, found, stop, config)
    for _ in range(_TRIES):
        if found.residual < stop:
            break
        after = pursuit.next_explanation(rest, found, config.batch, config.apart)
        stuck, found = after.residual > 0.99 * found.residual, after
        if stuck:
            break
    return found.residual


def _decision(rest: CandidatePool, found: SparseFit, stop: float, config: HingeConfig) -> float:
    """Return `without` in two layers: a residual below `stop`, a bound above it, or neither.

    Neither is just below `stop`.

    Where a round gains no more than its fits may miss, the next ones are fitted more closely.
    """
    accuracy = 1e-2
    for _ in range(_PROOF):
        least = pursuit.at_least(rest, found)
        if found.residual < stop or least >= stop:
            return least if least >= stop else found.residual
        after = pursuit.next_explanation(rest, found, config.batch, config.apart, accuracy)
        if after.residual > (1 - accuracy) * found.residual:
            accuracy /= 10
        found = after
        if accuracy < _CLOSEST:
            break
    return stop * (1 - EDGE / 2)


# --- What the last step did, in words -----------------------------------------------------------


def words(state: HingeState, config: HingeConfig) -> str:
    """Return what the last step did, with its numbers."""
    if state.stage in ("starts", "lines"):
        return f"{len(state.offset)} lines of neurons that differ."
    if state.stage == "cross":
        return crossing_words(state, config, len(state.x))
    left = f"explain all but {state.residual:.1%} of the weights."
    if state.stage == "fit":
        return f"{len(state.x)} candidates {left}"
    asked = (~state.without.isnan()).nonzero()[:, 0]
    if not len(state.x) or (state.stage == "prove" and not len(asked)):
        return f"{len(state.x)} places {left} Which of them are needed?"
    return _answer(state, int(asked[-1])) if state.stage == "prove" else result(state, config)


def crossing_words(state: HingeState, config: HingeConfig, count: int) -> str:
    """Return what is said of the crossings, `count` candidates of which are in sight."""
    tried = (
        ""
        if state.tried is None
        else f"{state.tried} crossings tried, {state.near} of them with |Φ| within "
        f"{config.tolerance:g} of 1: "
    )
    return (
        f"{tried}{count} candidates {config.spacing:g} apart. Beside them stand "
        f"{len(state.pool) - len(state.x)} sampled points of the margin."
    )


def _answer(state: HingeState, i: int) -> str:
    """Return the answer to the question about place i; places are asked about in their order."""
    residual, stop = float(state.without[i]), state.limit
    held, verdict = "at most", "not needed"
    if residual >= stop:
        held, verdict = "at least", "needed"
    elif at_edge(residual, stop):
        held, verdict = "about", "at the edge, so no claim"
    return (
        f"Without the candidates around place {i + 1} of {len(state.x)} {held} {residual:.1%} of "
        f"the weights stays unexplained, with them {state.residual:.1%}: {verdict}."
    )


def result(state: HingeState, config: HingeConfig) -> str:
    """Return what is said of all answers to the question of the residual."""
    count = int(state.needed.sum())
    open_ = sum(at_edge(v, state.limit) and v < state.limit for v in state.without.tolist())
    edge = f" ({open_} of them at the edge)" if open_ else ""
    return (
        f"{count} fitted places are needed: without the candidates within {config.radius:g} the "
        "fit leaves more of the weights than a threshold. By that they are likely, not certified. "
        f"Without the others{edge} it leaves no more than that."
    )


def headline(state: HingeState, known: Judged) -> Statement | None:
    """Return that other places explain the weights as well, where none is claimed."""
    if known.claims:
        return None
    words = (
        f"The attack explains the weights by {count(len(state.x), 'place')}, and the weights can "
        "do without each of them: other places explain them as well."
    )
    action = Action("explain", "See which others explain them")
    return Statement("No place is needed", words, "warn", action=action)


TOP = 3.0  # dots above this many bounds stand at it
TITLE = "Places that the weights need"


def show(
    target: Target, state: HingeState, config: HingeConfig, across: tuple[float, float]
) -> PanelContent:
    """Return the answers so far, sorted: the unexplained share without each place, by the bound.

    Green: needed; grey: not.
    """
    asked = state.without[~state.without.isnan()].cpu().numpy()
    height = np.sort(np.minimum(asked / max(state.limit, 1e-300), TOP))[::-1]
    rank = np.arange(1, len(height) + 1)
    series = [
        Series(rank[mine], height[mine], name, "dots", colour=colour)
        for name, colour, mine in (
            ("needed", "good", height >= 1),
            ("not needed", "ink3", height < 1),
        )
        if mine.any()
    ]
    rules = [Guide(1.0, "needed from here")] if len(height) else []
    x = Axis(0.0, len(height) + 1.0, "places, most needed first", "place", whole=True,
             hidden=not len(height))  # fmt: skip
    y = Axis(0.0, TOP + 0.2, short="unexplained without it, over the bound",
             ticks=(0, 1, 2, [3, "3 +"]), hidden=not len(height))  # fmt: skip
    note = "unexplained without it, over the bound" if len(height) else ""
    return PanelContent(Chart(series, x, y, TITLE, note, rules=rules))


PANEL = AttackPanel(show)


MOST_LINES = 80  # arbitrary: more cannot be told apart
MOST_DOTS = 400  # arbitrary: more hide the plane
LONG = 8.0  # half length of a line: leaves any plane that is drawn


def shapes(target: Target, state: HingeState) -> Shapes:
    """Return lines of neurons, dots for the candidates kept, squares for the needed places."""
    kept = state.pool[:MOST_DOTS] if state.stage in ("fit", "prove") else state.pool[:0]
    return Shapes(
        lines=NONE if target.net.d == 1 else _lines(state),
        dots=places(target, kept),
        rings=places(target, state.x[state.needed]),
        names=(("lines", "kink read off the weights"), ("rings", "needed place")),
    )


def _lines(state: HingeState) -> Array:
    paths = []
    for n, b in list(zip(state.normal, state.offset, strict=True))[:MOST_LINES]:
        foot, along = -b * n, torch.stack([-n[1], n[0]]) * LONG
        paths.append(torch.stack([foot - along, foot + along]).cpu().numpy())
    return joined_paths(paths)


ATTACK = Attack(
    place=5, heavy=True, key="hinge", title="Hinges", paper="own",
    sentence="Finds the places where kinks cross the margin. A convex program fits these "
    "crossings; it claims those without which it leaves more than a threshold.",
    config=HingeConfig, state=HingeState,
    first=init, step=step, terminate=terminate, report=report,
    needs=Needs(fits), shapes=shapes, words=words, headline=headline,
    panel=PANEL, file=FileCheck(belongs=belongs),
    curves=(("residual", "unexplained share"),),
)  # fmt: skip
