r"""The hinge attack: training points where the kinks of the network and its margin meet.

Near a KKT point the kinks of neurons pass through training points, and points with a multiplier lie
on |Phi| = 1. So the candidates are finitely many (`crossings`), and which of them carry theta is a
convex question (`pursuit`). The attack asks three in turn:

    lines     the kink sets of the neurons
    cross     their crossings and their crossings of |Phi| = 1, filtered by | |Phi| - 1 |
    fit       multipliers >= 0 on few of them that explain theta, slopes free at kinks
    prove     for each fitted candidate: is theta explained as well without its neighbourhood?

The last is what makes a claim. With r the residual of the fit and r_i the least residual found
without any candidate of the same label within `radius` of candidate i, i is *needed* if

    r_i >= (1 + rise) r + floor.

In two layers r_i is no less than a bound that the search proves (`pursuit.at_least`), and what it
can neither prove nor refute is at the edge and no claim: which candidates it met first, where
the last bits may decide, does not matter. At an exact KKT point with r = 0 and a complete pool a
needed candidate has a training point within `radius` (the min lam > 0 over all explanations of
theory 2.5, as a residual). Near one it is evidence of that: a network far from its KKT point is
explained better by other points than by its own. Own construction; the 1-D proof is of the
univariate attack.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from explorer.engine.attacks import crossings, pursuit
from explorer.engine.attacks.claims import Report, merge_candidates
from explorer.engine.attacks.curves import curve_vertices
from explorer.engine.attacks.hinge_config import HingeConfig
from explorer.engine.attacks.hinge_state import HingeState
from explorer.engine.attacks.pursuit import Explanation, Pool
from explorer.engine.attacks.target import Target
from explorer.engine.network import Network
from explorer.engine.rounding import EDGE, at_edge
from explorer.engine.status import Status, iterated

__all__ = [
    "HingeConfig",
    "HingeState",
    "attacked",
    "fits",
    "init",
    "iterate",
    "pool_of",
    "report",
    "step",
    "terminate",
]

_GAIN = 0.995  # arbitrary: a round that lowers the residual by less than 0.5% is no progress
_FIRST = 6  # arbitrary: rounds before that is asked; the first ones only fill the set
_TRIES = 6  # arbitrary: rounds in which the rest may make up for a candidate, in three layers
_PROOF = 60  # arbitrary: the same in two layers, before a place is said to be at the edge
_CLOSEST = 1e-5  # arbitrary: of their fits
_DUST = 1e-7  # arbitrary: residuals below this share of |theta| are rounding of the fit

_POOLS: WeakKeyDictionary[Target, tuple[object, Pool]] = WeakKeyDictionary()


def fits(target: Target) -> str:
    """Why this attack cannot be used on these weights, or an empty string."""
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


def init(
    target: Target, config: HingeConfig, generator: torch.Generator, start: object = None
) -> HingeState:
    """The lines, and no candidate yet. Draws nothing, and takes no start."""
    why = fits(target)
    if why:
        raise ValueError(why)
    net = attacked(target, config)
    found = crossings.lines(net)
    none = net.weights[0].new_zeros(0, dtype=torch.float64)
    spots, labels = none.reshape(0, net.d), none
    return HingeState(
        0, "lines", spots, labels, none, none, 1.0, 1.0, found.normal, found.offset, found.weight,
        spots, torch.zeros(0, dtype=torch.long), none, (),
        f"{len(found.offset)} lines of neurons that differ.",
    )  # fmt: skip


def step(target: Target, state: HingeState, config: HingeConfig) -> HingeState:
    """One stage, or one batch of candidates of it, or one question."""
    take = {"lines": _cross, "cross": _open, "fit": _fit, "prove": _prove}.get(state.stage)
    if take is None:
        return state
    return replace(take(target, state, config), t=state.t + 1)


def terminate(state: HingeState, config: HingeConfig) -> Status:
    """How the run stands."""
    return Status.COMPLETE if state.stage == "done" else Status.RUNNING


def iterate(target: Target, state: HingeState, config: HingeConfig) -> Iterator[HingeState]:
    """The states after `state`, to the end."""
    return iterated(step, terminate, target, state, config)


def report(target: Target, state: HingeState, config: HingeConfig) -> Report:
    """The needed candidates, or all fitted ones; nothing before the questions are asked."""
    if state.stage not in ("prove", "weigh", "done"):
        return Report(state.x[:0], state.y[:0], state.lam[:0])
    kept = state.needed if config.claim == "proven" else _worth(state, config)
    return Report(state.x[kept], state.y[kept], state.lam[kept])


def _worth(state: HingeState, config: HingeConfig) -> Tensor:
    return state.lam >= config.lam_share * state.lam.mean() if len(state.lam) else state.lam > 0


def attacked(target: Target, config: HingeConfig) -> Network:
    """The weights that are explained: merged where that is faithful, in two layers."""
    net = target.merged(config.merge_angle) if len(target.net.weights) == 2 else target.net
    return net.to(dtype=torch.float64, device="cpu")


def pool_of(target: Target, state: HingeState, config: HingeConfig) -> Pool:
    """The pool of the state, with what pricing needs; kept while the target lives."""
    kept = _POOLS.get(target)
    if kept is None or kept[0] is not state.pool:
        made = Pool.of(attacked(target, config), state.pool, config.tau)
        _POOLS[target] = kept = (state.pool, made)
    return kept[1]


def _cross(target: Target, state: HingeState, config: HingeConfig) -> HingeState:
    net = attacked(target, config)
    lines = crossings.Lines(state.normal, state.offset, state.weight)
    met, along, owners = crossings.vertices(net, lines, config.reach)
    found = [met, along, *curve_vertices(net, along, owners, config.reach)]
    kept = [crossings.on_margin(net, some, config.tolerance) for some in found]
    thin = crossings.thinned(net, crossings.joined(kept, met.x), config.spacing)
    sampled = crossings.sampled(net, config.grid, config.reach)
    both = crossings.joined([thin, sampled], met.x)
    pool = Pool.of(net, both.x, config.tau)
    _POOLS[target] = (pool.x, pool)
    zero = torch.zeros(len(both), dtype=torch.float64)
    tried, near = sum(map(len, found)), sum(map(len, kept))
    return replace(
        state, stage="cross", x=thin.x, y=pool.y[: len(thin)], lam=zero[: len(thin)],
        without=zero[: len(thin)] * torch.nan, pool=pool.x,
        sentence=f"{tried} crossings tried, {near} of them with |Φ| within "
        f"{config.tolerance:g} of 1: {len(thin)} candidates {config.spacing:g} apart. Beside "
        f"them stand {len(sampled)} sampled points of the margin.",
    )  # fmt: skip


def _open(target: Target, state: HingeState, config: HingeConfig) -> HingeState:
    """Begin the fit: the first batch."""
    start = pursuit.nothing(pool_of(target, state, config))
    return _grown(target, state, config, start)


def _fit(target: Target, state: HingeState, config: HingeConfig) -> HingeState:
    now = Explanation(state.active, state.mass, state.residual, list(state.left))
    return _grown(target, state, config, now)


def _grown(target: Target, state: HingeState, config: HingeConfig, now: Explanation) -> HingeState:
    pool = pool_of(target, state, config)
    after = pursuit.grown(pool, now, config.batch, config.apart)
    rounds = state.t - 1
    slow = after.residual > _GAIN * now.residual and rounds >= _FIRST
    x, y = pool.x[after.index], pool.y[after.index]
    grown = replace(
        state, stage="fit", x=x, y=y, lam=after.lam, without=after.lam * torch.nan,
        residual=after.residual, active=after.index, mass=after.lam, left=tuple(after.left),
        sentence=f"{len(x)} candidates explain all but {after.residual:.1%} of the weights.",
    )  # fmt: skip
    if not (slow or rounds >= config.rounds or after.residual < _DUST or after is now):
        return grown
    return _merged(grown, config)


def _merged(state: HingeState, config: HingeConfig) -> HingeState:
    """Fitted candidates of one place become one, and the questions begin."""
    merged = merge_candidates(state.x, state.y, state.lam, config.merge_radius)
    return replace(
        state, stage="prove" if len(merged.x) else "done", x=merged.x, y=merged.y, lam=merged.lam,
        without=merged.lam * torch.nan,
        limit=(1 + config.rise) * state.residual + config.floor,
        sentence=f"{len(merged.x)} places explain all but {state.residual:.1%} of the weights. "
        "Which of them are needed?",
    )  # fmt: skip


def _prove(target: Target, state: HingeState, config: HingeConfig) -> HingeState:
    """Ask of the heaviest candidate not asked yet whether the others can make up for it."""
    open_ = (state.without.isnan() & _worth(state, config)).nonzero()[:, 0]
    if not len(open_):
        return _finished(state, config)
    i = int(open_[0])
    pool, stop = pool_of(target, state, config), state.limit
    now = Explanation(state.active, state.mass, state.residual, list(state.left))
    residual = without(pool, now, state.x[i], state.y[i], stop, config)
    answers = state.without.clone()
    answers[i] = residual
    held = "at least" if residual >= stop else "about" if at_edge(residual, stop) else "at most"
    verdict = {"at least": "needed", "about": "at the edge, so no claim"}.get(held, "not needed")
    asked = replace(
        state, without=answers,
        sentence=f"Without the candidates around place {i + 1} of {len(state.x)} {held} "
        f"{residual:.1%} of the weights stays unexplained, with them {state.residual:.1%}: "
        f"{verdict}.",
    )  # fmt: skip
    return asked if len(open_) > 1 else _finished(asked, config)


def without(
    pool: Pool, now: Explanation, x: Tensor, y: Tensor, stop: float, config: HingeConfig
) -> float:
    """What is left of theta with no candidate of label y () within `radius` of x (d,).

    At least `stop`: the place is needed, in two layers proven, in three as far as the search went.
    Below: left by an explanation that was found, the place is not needed. Just below `stop`, where
    a search in two layers ended without an answer.
    """
    near = ((pool.x - x).norm(dim=1) <= config.radius) & (pool.y == y)
    kept = (~near).nonzero()[:, 0]
    place = torch.full((len(near),), -1)
    place[kept] = torch.arange(len(kept))
    rest, carried = pool.take(kept), place[now.index]
    found = pursuit.fitted(rest, carried[carried >= 0])
    if len(pool.net.weights) == 2:
        return _decided(rest, found, stop, config)
    for _ in range(_TRIES):
        if found.residual < stop:
            break
        after = pursuit.grown(rest, found, config.batch, config.apart)
        stuck, found = after.residual > 0.99 * found.residual, after
        if stuck:
            break
    return found.residual


def _decided(rest: Pool, found: Explanation, stop: float, config: HingeConfig) -> float:
    """`without` in two layers: a residual below `stop`, a bound above it, or just below: neither.

    Where a round gains no more than its fits may miss, the next ones are fitted more closely.
    """
    accuracy = 1e-2
    for _ in range(_PROOF):
        least = pursuit.at_least(rest, found)
        if found.residual < stop or least >= stop:
            return least if least >= stop else found.residual
        after = pursuit.grown(rest, found, config.batch, config.apart, accuracy)
        if after.residual > (1 - accuracy) * found.residual:
            accuracy /= 10
        found = after
        if accuracy < _CLOSEST:
            break
    return stop * (1 - EDGE / 2)


def _finished(state: HingeState, config: HingeConfig) -> HingeState:
    count = int(state.needed.sum())
    open_ = sum(at_edge(v, state.limit) and v < state.limit for v in state.without.tolist())
    edge = f" ({open_} of them at the edge)" if open_ else ""
    return replace(
        state, stage="done",
        sentence=f"{count} fitted places are needed: no explanation does without a point within "
        f"{config.radius:g} of them. The others{edge} are not recoverable with certainty from "
        "these weights: other points explain them as well.",
    )  # fmt: skip
