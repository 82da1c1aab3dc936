"""Train, aim, attack, judge: the only pipeline from points to a verdict.

    trained = train(Run(data, TrainConfig(), seed=0))
    done = attack(trained.target, KKTConfig(), 0, truth=data, certificate=trained.certificate)
    print(verdicts.verdict(done.verdict))

Page, commands, sweeps, arena, grid, tuning and images all use it. What is to be made is a `Run`
without states. A `watch` sees the states of a run go by, about a hundred or as many as are kept: it
may show progress, end the run early, or raise an error to cancel it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from explorer.engine import training
from explorer.engine.attacks.certified import CertifiedState
from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import TAU_EXACT, TAU_TRAINED, Certificate, certify, in_reach
from explorer.engine.controls import Controls, control_sets
from explorer.engine.data import Dataset, heldout, in_unit, read_csv, unit_of
from explorer.engine.exact import Exact, maximum_margin
from explorer.engine.exact import finish as finishing
from explorer.engine.exact.finish import Finished
from explorer.engine.explanations.assumptions import cone_of, extent, obstacle
from explorer.engine.explanations.certainty import Certainty, certainty
from explorer.engine.explanations.cone import Cone
from explorer.engine.files import naming, safe_name
from explorer.engine.known import knowledge_of, known_of
from explorer.engine.margin import Loss, q_of
from explorer.engine.network import Network
from explorer.engine.progress import Progress, no_progress, part_progress, with_progress
from explorer.engine.roster import DEFAULT, AnyAttack, AnyTarget, AttackConfig, AttackState, by_key
from explorer.engine.scoring import RADII, Score, Verdict, judge, score
from explorer.engine.status import Status
from explorer.engine.store import Run, open_bytes, read_file
from explorer.engine.training import TrainConfig, TrainState
from explorer.research.devices import attack_load, on_device, target_on, to_cpu, training_load
from explorer.research.state import is_link, read_link
from explorer.research.words import weights

KEPT = 100  # arbitrary: states of a run that a file keeps, evenly spaced
RADIUS = RADII[1]  # 0.03, the radius of the measured figures
AS_WELL = 0.02  # of the norm: what leaves no more explains the weights; arbitrary
NEAREST, FARTHEST = RADIUS / 10, RADIUS * 10  # of a curve over the radius; arbitrary
FINE = tuple(sorted({*RADII, *np.geomspace(NEAREST, FARTHEST, 41).tolist()}))

PUBLIC = 1000  # seed of public points; arbitrary: no control has it
ROOM = 1.2  # times the farthest known point: the box where that of the weights is too small

State = TypeVar("State", bound=TrainState | AttackState)
Watch = Callable[[Iterable[State], int, str], Iterable[State]]


class RunFailed(RuntimeError):
    """A run that ended without a result; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A finished training of a run.

    Attributes:
        run: what was to be made: the points, the settings, the seed.
        states: those that were kept, the first and the last among them.
        exact: the solution of a network that was solved for; None for one that was trained.
        finished: what is known of a network that was trained to the end; None for another.
    """

    run: Run
    states: tuple[TrainState, ...]
    exact: Exact | None = None
    finished: Finished | None = None

    @property
    def data(self) -> Dataset:
        """Return the points."""
        return self.run.dataset

    @cached_property
    def net(self) -> Network:
        """Return the last network, on the CPU in float64."""
        return self.states[-1].net.to(device="cpu", dtype=torch.float64)

    @cached_property
    def q_min(self) -> float:
        """Return the smallest margin y Phi(x)."""
        return float(q_of(self.net, self.data.x, self.data.y).min())

    @cached_property
    def certificate(self) -> Certificate | None:
        """Return the certificate, made at the first call; None where the net is not homogeneous."""
        if not self.net.homogeneous:
            return None
        tau = TAU_TRAINED if self.exact is None and self.finished is None else TAU_EXACT
        return certify(self.net, self.data.x, self.data.y, tau)

    @cached_property
    def target(self) -> Target:
        """Return the network at margin 1, as an attack sees it, and the weights it began at."""
        config = self.run.train_config
        decay = config.weight_decay if self.exact is None else 0.0
        return Target.of(self.net, self.q_min, decay, first_weights(self.states), config.loss)


@dataclass(frozen=True, eq=False)
class Judgement:
    """The judgement of claims.

    Attributes:
        scores: of the truth, and of the first control.
        verdict: at `RADIUS`, against all controls.
    """

    scores: tuple[Score, Score]
    verdict: Verdict


@dataclass(frozen=True, eq=False)
class Attacked:
    """A finished attack; scores (truth, first control) and verdict where the truth is known.

    `certainty` where it was asked for (`with_certainty`): of the training points, or of the claims
    where nobody knows those.
    """

    states: tuple[AttackState, ...]
    target: Target
    claims: Report
    scores: tuple[Score, Score] | None = None
    verdict: Verdict | None = None
    certainty: Certainty | None = None


def first_weights(states: Sequence[TrainState]) -> Network | None:
    """Return the weights at which training began, at the scale of the last, if kept in `states`."""
    kept = states and not states[0].t
    return training.earlier_weights(states[0], states[-1]) if kept else None


def no_watch(states: Iterable[State], total: int, label: str) -> Iterable[State]:
    """Return the states as they are."""
    return states


def watch_of(progress: Progress) -> Watch[Any]:
    """Return the watch that tells `progress` what share of a run's states has gone by."""
    return lambda states, total, _: with_progress(states, total, progress)


def points_at(place: str | Path) -> Dataset:
    """Return points of a CSV file or of a link, whose settings are not taken."""
    if is_link(str(place)):
        return read_link(str(place)).dataset
    with naming(place):
        return read_csv(read_file(place))


def fingerprint(path: str | Path) -> str:
    """Return a digest of a file or a link: a row runs on the content that it was made for."""
    content = str(path).encode() if is_link(str(path)) else read_file(path)
    return hashlib.sha256(content).hexdigest()[:16]


def points_in(path: str, made: str) -> Dataset:
    """Return points of a file or link in their unit; ValueError for another `fingerprint`."""
    if fingerprint(path) != made:
        raise ValueError(f"{safe_name(Path(path).name)} has changed since this row was made.")
    return in_unit(points_at(path))


def stride_of(planned: int, keep: int = KEPT) -> int:
    """Return the number of steps between two states that are kept."""
    return max(1, math.ceil(planned / keep))


def watched_stride(planned: int, keep: int = KEPT) -> int:
    """Return the number of steps between two states that a watch sees.

    It divides that of `stride_of`, so that states that are kept are seen; the steps between go
    faster where no state is made of them.
    """
    return math.gcd(stride_of(planned, keep), stride_of(planned))


def thin(states: Iterable[State], planned: int, keep: int = KEPT) -> tuple[State, ...]:
    """Return the first and last state, and those between at even steps: at most about `keep`."""
    stride, kept, last = stride_of(planned, keep), list[State](), None
    for state in states:
        if last is None or state.t % stride == 0:
            kept.append(state)
        last = state
    if last is not None and kept[-1] is not last:
        kept.append(last)
    return tuple(kept)


def _through(
    watch: Watch[State], states: Iterator[State], total: int, label: str
) -> Iterator[State]:
    """Yield the first state, made at once, then the others by way of `watch`."""
    yield next(states)
    yield from watch(states, total, label)


def to_the_end(
    data: Dataset, state: TrainState, config: TrainConfig, progress: Progress = no_progress
) -> Iterator[tuple[TrainState, Finished | None]]:
    """Train on from `state` for as long as it takes to find good cells, then finish over them.

    A round of finishing counts as a step, and comes with what is known then.

    Raises:
        ValueError: for weights or points that cannot be finished; see `finish`.
    """
    finishing.check(state.net, data.x, data.y)
    most = state.t + finishing.MOST
    while not training.terminate(state, config).over and (
        state.t < finishing.AFTER or (state.q_min <= 0 and state.t < most)
    ):
        progress(0.0)
        state = training.advance(data, state, config, 1)
        yield state, None
    for made in finishing.states(state.net, data.x, data.y, progress=progress):
        yield training.with_net(data, state, config, made.net, state.t + made.rounds), made


def training_states(
    run: Run, net: Network | None = None, *, every: int = 1, last: float = math.inf,
    note: Callable[[Finished | None], object] = bool,
) -> Iterator[TrainState]:  # fmt: skip
    """Yield the states of the training of a run, to step `last` at most.

    Args:
        run: its points, settings and seed; from its step `finish` on the network is finished
            exactly (`to_the_end`).
        net: the weights to begin with; None draws them by the seed, or solves for them where the
            run is `exact`.
        every: beside the first and the last state only those are made whose t it divides.
        last: the last step.
        note: is called with what is known of each state that was finished.
    """
    data, config = run.dataset, run.train_config
    if net is None and run.exact:
        net = maximum_margin(data.x, data.y).net
    state = training.init(data, config, torch.Generator().manual_seed(run.seed), net)
    yield state
    descent = last if run.finish is None else min(run.finish, last)
    while state.t < descent and not training.terminate(state, config).over:
        state = training.advance(
            data, state, config, int(min(every - state.t % every, descent - state.t))
        )
        yield state
    if run.finish is None or state.t >= last:
        return
    for later, made in to_the_end(data, state, config):
        note(made)
        yield later
        if later.t >= last:
            return


def train(
    run: Run, *, device: str = "cpu", dtype: torch.dtype = torch.float64, keep: int = KEPT,
    watch: Watch[TrainState] = no_watch, separated: bool = True,
) -> Trained:  # fmt: skip
    """Train as a run says, to its last planned step. RunFailed where points are not separated.

    Args:
        run: points of any type and device, the settings, and the seed of the first weights and
            mini-batches. `exact` takes the exact solution and trains nothing; `finish` trains for
            some hundred steps, then finishes exactly (`to_the_end`).
        device: where to train.
        dtype: floating type of the training.
        keep: states to keep, evenly spaced, beside the first and the last.
        watch: sees states go by, those that are kept among them; see `watched_stride`.
        separated: whether it fails where points are not separated.
    """
    data, config = run.dataset, run.train_config
    solved = maximum_margin(data.x, data.y) if run.exact else None
    config = replace(config, steps=0) if solved else config
    every = 1 if run.finish is not None else watched_stride(config.steps, keep)
    ended: list[Finished | None] = [None]
    try:
        with on_device(device, dtype, training_load(data.n, data.d, config.widths, dtype)):
            there = replace(run, dataset=data.to(device=device, dtype=dtype), train_config=config)
            net = solved.net if solved else None
            states = training_states(there, net, every=every, note=ended.append)
            seen = _through(watch, states, math.ceil(config.steps / every), "training")
            done = Trained(run, thin(seen, config.steps, keep), solved, ended[-1])
    except finishing.NotSeparated as error:
        raise RunFailed(str(error)) from error
    status = training.terminate(done.states[-1], config)
    if status in (Status.DIVERGED, Status.DEAD):
        raise RunFailed(weights.status(status))
    if separated and done.q_min <= 0:
        raise RunFailed(
            f"the points are not separated after {done.states[-1].t} steps. "
            "Take more steps, more neurons or another seed."
        )
    return done


def in_own_unit(run: Run) -> Run:
    """Return the points and weights of a run in the unit of its network (`Network.unit`)."""
    unit = 1.0 if run.net is None else run.net.unit
    if unit == 1:
        return run
    states = tuple(replace(state, net=state.net.in_unit()) for state in run.train_states)
    return replace(run, dataset=run.dataset.over(unit), train_states=states)


def open_run(file: Path, truth: Path | None = None) -> tuple[Run | None, Network, Dataset | None]:
    """Return the run in a file, or None for a state_dict alone; the weights.

    The points where known.

    `truth` is a CSV of the points, in place of those of the run. With a run all is in its unit.
    """
    with naming(file):
        held = open_bytes(read_file(file))
    run, net = (in_own_unit(held), held.net) if isinstance(held, Run) else (None, held)
    if net is None:
        raise ValueError(f"{safe_name(file.name)} holds points but no weights. Train first.")
    known = None if run is None else run.dataset
    if truth is not None:
        with naming(truth):
            given = read_csv(read_file(truth))
        unit = net.unit
        if unit == 1 and known is not None and unit_of(known) == 1:
            unit = unit_of(given)  # the verbs train on points in their unit
        known = given if unit == 1 else given.over(unit)
    return run, net if run is None else net.in_unit(), known


def points_and_weights(file: Path) -> tuple[Dataset, Network]:
    """Return those of a saved run, the weights in float64. ValueError for another file."""
    _, net, known = open_run(file)
    if known is None:
        raise ValueError(
            f"{safe_name(file.name)} is no run with points and weights. Save one with `train`."
        )
    return known, net.to(dtype=torch.float64)


def aim(
    net: Network, truth: Dataset | None, margin: float | None, trained: TrainConfig | None = None,
    before: Network | None = None,
) -> tuple[Target, Certificate | None, str]:  # fmt: skip
    """Return the network at margin 1, its certificate on `truth`, and what had to be assumed.

    The margin is that of the truth where it is known, else `margin`, else 1. `trained`: how the
    network was trained, where that is known: with weight decay it need not separate the truth.
    `before`: earlier weights of it, if any.

    Raises:
        ValueError: for a margin that is not positive and finite, points of another dimension, or
            earlier weights of another network.
        RunFailed: where the network does not separate the truth, and there are no earlier weights.
    """
    if margin is not None and not (math.isfinite(margin) and margin > 0):
        raise ValueError(
            f"the margin must be positive and finite; got {margin}. Leave it away where it is not "
            "known."
        )
    decay = 0.0 if trained is None else trained.weight_decay
    loss: Loss = "logistic" if trained is None else trained.loss
    if truth is not None:
        if truth.d != net.d:
            raise ValueError(f"the points are {truth.d}-D; the network takes {net.d} inputs")
        truth = truth.to(dtype=net.dtype)
        q_min = float(q_of(net, truth.x, truth.y).min())
        if q_min <= 0 and before is None and not decay:
            raise RunFailed("the network does not separate these points, so there is no margin.")
        target = Target.of(net, q_min, decay, before, loss)
        made = certify(net, truth.x, truth.y) if net.homogeneous else None
        return target, made, weights.assumptions(target, margin, q_min)
    target = Target.of(net, 1.0 if margin is None else margin, decay, before, loss)
    return target, None, weights.assumptions(target, margin, None)


def granted_target(target: Any, truth: Dataset | None, config: object, seed: int) -> Any:  # noqa: ANN401
    """Return the target with what the settings of an attack grant of the points, if anything.

    Public points are a draw of their own, and no control. `seed`: of the point that is left out
    where all others are granted.

    Raises:
        ValueError: where the points do not have what the settings grant.
    """
    knows = knowledge_of(config) or "nothing"
    if not isinstance(target, Target) or truth is None or not truth.n or knows == "nothing":
        return target

    curve: tuple[float, ...] = vars(config)["curve"]

    def make() -> Target:
        public = heldout(truth, PUBLIC).x if knows == "public" else None
        known = known_of(knows, truth.x, truth.y, public, seed, curve, vars(config)["components"])
        return replace(target, known=known)

    return target.latest(("granted", knows, curve, seed), truth, make)


def attack(
    target: AnyTarget, config: AttackConfig, seed: int | torch.Generator, *,
    name: str | AnyAttack = DEFAULT,
    start: tuple[Tensor, Tensor] | None = None, truth: Dataset | None = None,
    controls: Controls | None = None, certificate: Certificate | None = None,
    keep: int = KEPT, watch: Watch[AttackState] = no_watch, device: str = "cpu",
    dtype: torch.dtype | None = None,
) -> Attacked:  # fmt: skip
    """Attack; with `truth`, judge the claims. RunFailed where it diverges.

    Attacks that follow their weights (`Needs.anywhere`) run on `device`, the others on the CPU,
    where all are judged.

    Args:
        target: the weights, of the attack's own kind where it has one.
        config: settings of the attack's class.
        seed: of what the attack draws, or the generator that it draws from.
        name: the attack's key in the roster, or its row.
        start: candidates x (m, d) and labels y (m,) to begin at; None begins at noise.
        truth: the points that the weights were trained on; an attack with a victim of its own
            trains it on them.
        controls: sets that stand for chance; None takes `control_sets`.
        certificate: of the weights on the truth, where there is one.
        keep: states to keep, evenly spaced, beside the first and the last.
        watch: sees every state go by.
        device: where to run.
        dtype: floating type of attacks that follow their weights; None: theirs on the CPU, the
            widest of another device.

    Raises:
        DeviceError: where the device is not there, or its memory is used up.
    """
    entry = by_key(name) if isinstance(name, str) else name
    drawn = seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(seed)
    aimed = target
    if truth is not None:
        seed_ = drawn.initial_seed()
        target = granted_target(target, truth, config, seed_)
        aimed = entry.target_for(target, truth.x, truth.y, config, seed_)
    planned = entry.step_count(config, KEPT)  # attacks of few steps plan none
    stride = watched_stride(planned, keep)
    m = entry.candidate_count(config) if start is None else len(start[0])
    with on_device(device, dtype, attack_load(entry, aimed, config, m, dtype)):
        aimed = target_on(aimed, entry, device, dtype)
        following = entry.states(aimed, config, drawn, start, stride)
        seen = _through(watch, following, math.ceil(planned / stride), "attack")
        states = thin(seen, planned, keep)
        if device != "cpu" or dtype is not None:
            states = to_cpu(states)
    if entry.terminate(states[-1], config) is Status.DIVERGED:
        raise RunFailed(weights.status(Status.DIVERGED))
    done = Attacked(states, target, entry.report(target, states[-1], config))
    if truth is None:
        return done
    sets = control_sets(truth) if controls is None else controls
    made = None if entry.own is not None else certificate  # it was trained otherwise
    found = judgement(done.claims, truth, sets, made)
    return replace(done, scores=found.scores, verdict=found.verdict)


def judgement(
    claims: Report, truth: Dataset, controls: Controls, made: Certificate | None, more: bool = False
) -> Judgement:
    """Return what may be said of the claims of an attack, against the truth and the controls.

    Args:
        claims: what it claims.
        truth: the points that the attacked network was trained on.
        controls: sets that stand for chance.
        made: the certificate of the attacked network on the truth; None where there is none, as
            for a victim of the attack's own training.
        more: whether to make more controls where the first do not suffice; see `judge`.
    """
    verdict = judge(truth, controls, claims.x, claims.y, RADIUS, in_reach(made, truth.n), more)
    first, control = (score(data, claims.x, claims.y) for data in (truth, controls.sets[0]))
    return Judgement((first, control), verdict)


def cone_around(target: Target, truth: Dataset | None, progress: Progress = no_progress) -> Cone:
    """Return the cone of the attacked weights, in a box that holds the known points as well.

    Weights of few neurons may suggest a box that is too small.

    Raises:
        ValueError: where nothing can be certified; the message says why.
    """
    far = 0.0 if truth is None or not truth.n else float(truth.x.abs().max())
    why = obstacle(target)
    if target.unit != 1:
        why = (
            f"these weights were trained on points divided by {target.unit:g}: give "
            "`target.inside`, and points and lengths divided by it (`Dataset.over`)"
        )
    if why:
        raise ValueError(why)
    wide = extent(target.net).box < far
    return cone_of(target, box=ROOM * far if wide else None, progress=progress)


def certify_claims(
    target: Target, claims: Report, truth: Dataset | None = None, half: float = RADIUS,
    progress: Progress = no_progress,
) -> Certainty:  # fmt: skip
    """Return how certain it is that a training point lies near each claim (`certainty`).

    Args:
        target: the attacked weights.
        claims: what is claimed.
        truth: the points that they were trained on; None where nobody knows them.
        half: half width of the places around the claims, in units of the data.
        progress: hears of the work, and may end it.

    Raises:
        ValueError: where nothing can be certified; the message says why.
    """
    known = truth if truth is not None and truth.n else None
    cone = cone_around(target, known, part_progress(progress, 0.0, 0.4))
    left = 0.0 if known is None else certify(target.net, known.x, known.y).residual
    return certainty(cone, claims.x, claims.y, half, known, part_progress(progress, 0.4, 1.0), left)


def certified_points(
    target: Target, truth: Dataset, half: float = RADIUS, progress: Progress = no_progress
) -> Certainty:
    """Return how certain each training point is: the one count of certified points of a network.

    It is of the weights and their points, whatever an attack claims, and kept with the target.

    Args:
        target: the weights.
        truth: the points that they were trained on, at least one.
        half: half width of the places around them, in units of the data.
        progress: hears of the work, and may end it.

    Raises:
        ValueError: where nothing can be certified; the message says why.
    """
    everyone = Report(truth.x, truth.y, truth.y.abs())
    key = ("certified points", half, truth.x.numpy().tobytes(), truth.y.numpy().tobytes())
    found: Certainty = target.kept(
        key, lambda: certify_claims(target, everyone, truth, half, progress)
    )
    return found


def certified_places(state: CertifiedState, known: Certainty | None) -> Tensor:
    """Return which places (m,) are certified, not just likely: `known` tells what the points leave.

    It must speak of the same box, and of no larger margins.
    """
    if known is None or known.truth is None or known.box != state.box:
        return torch.zeros_like(state.radius, dtype=torch.bool)
    return (state.radius > known.truth) & (known.top <= 1 + state.band + 1e-9)


def judged_places(
    state: AttackState | None, truth: Dataset, known: Certainty | None
) -> tuple[Tensor, Tensor] | None:
    """Return of claimed places which hold a point (c,), and which are certified (c,).

    A place is no dot: its point may stand anywhere in it. None for attacks that claim no places.
    """
    if not isinstance(state, CertifiedState):
        return None
    apart = (state.x[:, None] - truth.x.to(state.x)[None]).abs().amax(2)
    near = apart <= (state.half + state.reach)[:, None] * (1 + 1e-9)
    holds = (near & (state.y[:, None] == truth.y.to(state.y)[None])).any(1)
    order = torch.argsort(state.lam, descending=True, stable=True)  # as reported
    return holds[order], certified_places(state, known)[order]


def with_certainty(done: Attacked, truth: Dataset | None) -> Attacked:
    """Return the attack with how certain the training points are, in its verdict as well.

    Where nobody knows them it is how certain the claims are.

    Raises:
        ValueError: where nothing can be certified.
    """
    if truth is None or not truth.n:
        return replace(done, certainty=certify_claims(done.target, done.claims))
    made = certified_points(done.target, truth)
    if done.verdict is None:
        return replace(done, certainty=made)
    verdict = replace(done.verdict, certified=int(made.certain.sum()))
    return replace(done, certainty=made, verdict=verdict)
