"""The road without a page: train, certify, attack, judge. The caller sees each state go by."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from explorer.engine import training
from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import TAU_EXACT, TAU_TRAINED, Certificate, certify
from explorer.engine.controls import control_sets
from explorer.engine.data import Dataset, read_csv
from explorer.engine.exact import Exact, maximum_margin
from explorer.engine.files import named
from explorer.engine.margin import q_of
from explorer.engine.network import Network
from explorer.engine.roster import AttackConfig, AttackState, by_key
from explorer.engine.scoring import Score, Verdict
from explorer.engine.status import Status
from explorer.engine.store import Run, open_bytes, read_file
from explorer.engine.training import TrainConfig, TrainState
from explorer.research.judging import judgement
from explorer.research.words import weights

KEPT = 100  # arbitrary: states of a run that a file keeps, evenly spaced

State = TypeVar("State", bound=TrainState | AttackState)
Watch = Callable[[Iterable[State], int, str], Iterable[State]]


class RunFailed(RuntimeError):
    """A run that ended without a result; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A finished training: kept states, and the last one's certificate on the CPU in float64.

    Weights that are not homogeneous have a smallest margin `q_min` and no certificate; `exact` is
    what is known of a network that was solved for, None for one that was trained.
    """

    states: tuple[TrainState, ...]
    net: Network
    certificate: Certificate | None
    q_min: float
    exact: Exact | None = None


@dataclass(frozen=True, eq=False)
class Attacked:
    """A finished attack; scores (truth, first control) and verdict where the truth is known."""

    states: tuple[AttackState, ...]
    target: Target
    claims: Report
    scores: tuple[Score, Score] | None = None
    verdict: Verdict | None = None


def unwatched(states: Iterable[State], total: int, label: str) -> Iterable[State]:
    """No progress shown."""
    return states


def fetched(held: Any) -> Any:  # noqa: ANN401 - states and what they hold
    """The same on the CPU, in float64 where it is of floating type."""
    if isinstance(held, torch.Tensor):
        return held.to("cpu", torch.float64 if held.is_floating_point() else held.dtype)
    if isinstance(held, tuple):
        return tuple(fetched(part) for part in held)
    if is_dataclass(held) and not isinstance(held, type):
        return replace(held, **{f.name: fetched(getattr(held, f.name)) for f in fields(held)})
    return held


def stride_of(planned: int) -> int:
    """How many steps lie between two states that are kept."""
    return max(1, math.ceil(planned / KEPT))


def walked(states: Iterable[State], first: State, planned: int) -> tuple[State, ...]:
    """The first and last state, and those between at even steps: at most about `KEPT`."""
    stride = stride_of(planned)
    kept: tuple[State, ...] = (first,)
    last = first
    for state in states:
        last = state
        if state.t % stride == 0:
            kept = (*kept, state)
    return kept if kept[-1] is last else (*kept, last)


def train(
    data: Dataset, config: TrainConfig, seed: int, *, exact: bool = False,
    device: str = "cpu", dtype: torch.dtype = torch.float64, watch: Watch[TrainState] = unwatched,
) -> Trained:  # fmt: skip
    """Train on `data`, or take the exact solution. RunFailed where the points are not separated."""
    placed = data.to(device=device, dtype=dtype)
    solved = maximum_margin(data.x, data.y) if exact else None
    net = solved.net if solved else None
    config = replace(config, steps=0) if exact else config
    first = training.init(placed, config, torch.Generator().manual_seed(seed), net)
    steps = training.iterate(placed, first, config)
    states = walked(watch(steps, config.steps, "training"), first, config.steps)
    status = training.terminate(states[-1], config)
    if status in (Status.DIVERGED, Status.DEAD):
        raise RunFailed(weights.status(status))
    last = states[-1].net.to(device="cpu", dtype=torch.float64)
    q_min = float(q_of(last, data.x, data.y).min())
    if q_min <= 0:
        raise RunFailed(
            f"the points are not separated after {states[-1].t} steps. "
            "Take more steps, more neurons or another seed."
        )
    tau = TAU_EXACT if exact else TAU_TRAINED
    made = certify(last, data.x, data.y, tau) if last.homogeneous else None
    return Trained(states, last, made, q_min, solved)


def opened(file: Path, truth: Path | None = None) -> tuple[Run | None, Network, Dataset | None]:
    """The run in a file, or None for a state_dict alone; the weights; the points where known.

    `truth` is a CSV of the points, in place of those of the run.
    """
    held = open_bytes(read_file(file))
    run, net = (held, held.net) if isinstance(held, Run) else (None, held)
    if net is None:
        raise ValueError(f"{named(file.name)} holds points but no weights. Train first.")
    if truth is not None:
        return run, net, read_csv(read_file(truth))
    return run, net, run.dataset if run else None


def points_and_weights(file: Path) -> tuple[Dataset, Network]:
    """Those of a saved run, the weights in float64. ValueError for another file."""
    _, net, known = opened(file)
    if known is None:
        raise ValueError(
            f"{named(file.name)} is no run with points and weights. Save one with `train`."
        )
    return known, net.to(dtype=torch.float64)


def aim(
    net: Network, truth: Dataset | None, margin: float | None
) -> tuple[Target, Certificate | None, str]:
    """The network at margin 1, its certificate on `truth`, and what had to be assumed.

    The margin is that of the truth where it is known, else `margin`, else 1.

    Raises:
        ValueError: for a margin that is none, or points of another dimension.
        RunFailed: where the network does not separate the truth.
    """
    if margin is not None and not (math.isfinite(margin) and margin > 0):
        raise ValueError(
            f"the margin must be positive and finite; got {margin}. Leave it away where it is not "
            "known."
        )
    if truth is not None:
        if truth.d != net.d:
            raise ValueError(f"the points are {truth.d}-D; the network takes {net.d} inputs")
        truth = truth.to(dtype=net.dtype)
        q_min = float(q_of(net, truth.x, truth.y).min())
        if q_min <= 0:
            raise RunFailed("the network does not separate these points, so there is no margin.")
        target = Target.of(net, q_min)
        made = certify(net, truth.x, truth.y) if net.homogeneous else None
        note = "" if margin is None else f"The margin is that of the points, {q_min:.3g}."
        return target, made, _assumed(target, note)
    note = "" if margin is not None else "The margin is not known and was taken as 1 (--margin)."
    target = Target.of(net, 1.0 if margin is None else margin)
    return target, None, _assumed(target, note)


def _assumed(target: Target, margin: str) -> str:
    """What had to be assumed of the weights and of their margin, in words."""
    return " ".join(filter(None, (weights.note(target.net), margin, weights.caveat(target))))


def attack(
    target: Target, config: AttackConfig, seed: int, *, name: str = "kkt",
    truth: Dataset | None = None, certificate: Certificate | None = None,
    watch: Watch[AttackState] = unwatched, device: str = "cpu",
) -> Attacked:  # fmt: skip
    """Attack from noise; with `truth`, judge the claims. RunFailed where it diverges.

    `name` is the attack's key in the roster, `config` of its class. Attacks that follow their
    weights (`Attack.anywhere`) run on `device`, the others on the CPU, where all are judged.
    """
    entry = by_key(name)
    aimed: Any = target
    if truth is not None:
        aimed = entry.aimed(target, truth.x, truth.y, config, seed)
    if device != "cpu" and entry.anywhere:
        wide = torch.float32 if device == "mps" else torch.float64  # mps has no other
        aimed = Target(target.net.to(device=device, dtype=wide), target.level)
    first = entry.init(aimed, config, torch.Generator().manual_seed(seed))
    planned = entry.planned(config, KEPT)  # attacks of few steps plan none
    stride = entry.stride(config, stride_of(planned))  # states that nobody keeps are left out
    following = entry.iterate(aimed if entry.anywhere else target, first, config, stride)
    states = walked(watch(following, math.ceil(planned / stride), "attack"), first, planned)
    if device != "cpu":
        states = fetched(states)
    if entry.terminate(states[-1], config) is Status.DIVERGED:
        raise RunFailed(weights.status(Status.DIVERGED))
    done = Attacked(states, target, entry.report(target, states[-1], config))
    if truth is None:
        return done
    found = judgement(name, done.claims, truth, control_sets(truth), certificate)
    return replace(done, scores=found.scores, verdict=found.verdict)
