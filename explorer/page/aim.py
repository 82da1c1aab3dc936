"""What an attack looks at, and what its claims came to: parts of a frame, by pure functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from explorer.engine import training
from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import Certificate
from explorer.engine.controls import Controls, control_sets
from explorer.engine.data import Dataset
from explorer.engine.energy.landscape import StartLandscape, Weights, read_lattice
from explorer.engine.energy.maps import Split
from explorer.engine.energy.points import Energies
from explorer.engine.energy.questions import Picture
from explorer.engine.energy.starts import mix_from_weights
from explorer.engine.explanations.certainty import known_limit
from explorer.engine.explanations.cone import Cone
from explorer.engine.roster import AttackState, by_key
from explorer.engine.store import Run
from explorer.page.frame import Aim, Attacking, Frame, Handle, Passed, PointMap, Training
from explorer.research.grid import Grid, Problem, even
from explorer.research.grid.landscape import landscape_of, recovered_count
from explorer.research.pictures.charts import has_lowest_mark
from explorer.research.pictures.shades import span_of
from explorer.research.repeat import Repeated
from explorer.research.runs import Attacked, granted_target, judgement
from explorer.research.sweep.experiment import Victim


def aim_at(part: Training, truth: Dataset, made: Certificate | None = None) -> Aim:
    """Return the weights of a training state as those attacked, at margin 1.

    Args:
        part: the training, with a state.
        truth: the points of these weights; none where nobody told them.
        made: the certificate of the weights on the points.

    Raises:
        ValueError: where the network does not separate the points, and no earlier weights are
            kept.
    """
    state = part.state
    assert state is not None
    q_min = float(state.q.min()) if truth.n else 1.0  # of weights alone nothing better is known
    before = training.earlier_weights(part.before, state)
    if not (q_min > 0 or part.weight_decay) and before is None:
        raise ValueError(
            "The network does not separate the points, so it has no margin to attack. "
            "Train on until all of them are on the side of their class."
        )
    controls = control_sets(truth) if truth.n else Controls(())
    target = Target.of(state.net, q_min, part.weight_decay, before, part.loss)
    return Aim(state.net, target, truth, controls, made)


def victim_of(now: Frame) -> Victim:
    """Return the attacked weights and what only the judge may see, for a comparison of attacks."""
    assert now.aim is not None
    state = now.training.state
    gamma = float("nan") if state is None else state.gamma_bar
    return Victim(now.aim.target, now.aim.truth, now.aim.controls, now.training.certificate, gamma)


def limit_of(aim: Aim, cone: Cone) -> float:
    """Return what an explanation of these weights may leave: as much as their points do."""
    left = 0.0 if aim.certificate is None else aim.certificate.residual
    return known_limit(cone, aim.truth, left)


def with_verdict(part: Attacking, aim: Aim, config: Any, more: bool) -> Attacking:  # noqa: ANN401 - of its attack
    """Return the attack with what it claims now, its scores and its verdict.

    Args:
        part: the attack; one without a state comes back as it is.
        aim: what it looks at.
        config: its settings.
        more: whether to make more controls where the first do not suffice.
    """
    if part.state is None:
        return part
    entry: Any = by_key(part.name)
    own = entry.own is not None  # weights of its own training
    kept = part.certainty if part.judged is part.state else None
    target = granted_target(aim.target, aim.truth, config, part.seed or 0)
    claims = entry.report(target, part.state, config)
    known = getattr(target, "known", None)
    part = replace(part, claims=claims, judged=part.state, certainty=kept, known=known)
    if not aim.truth.n:
        return part
    made = judgement(claims, aim.truth, aim.controls, None if own else aim.certificate, more)
    return replace(part, scores=made.scores, verdict=made.verdict)


def made_at(now: Frame, run: Run) -> Repeated:
    """Return what a frame shows of a run, as `repeat` would make it, for pictures and reports."""
    attack, attacked = now.attack, None
    if now.newest and attack.state is not None and attack.claims is not None and now.aim:
        attacked = Attacked(
            (attack.state,), now.aim.target, attack.claims, attack.scores, attack.verdict
        )
    return Repeated(run, now.training.state, now.training.certificate, attacked=attacked)


def starts_grid(
    aim: Aim,
    name: str,
    settings: Any,  # noqa: ANN401 - of the attack
    seed: int,
    side: int,
    drawn: bool = False,
) -> Grid:
    """Return the starts of an attack on the attacked weights, all as the attack has it.

    There are as many candidates as it takes, and no fewer than points. A run from noise is that of
    the attack itself; one from a start that holds data begins with multipliers fitted to that, or
    with `drawn` ones.
    """
    entry: Any = by_key(name)
    m = even(aim.truth.n)
    m = m if entry.own else max(m, settings.m)
    config = entry.suit(replace(settings, m=m), 0.0)
    return Grid(aim.target, aim.truth, aim.heldout, name, config, seed, side, drawn=drawn)


def handle_at(
    shared: Problem, energies: StartLandscape, weights: Weights,
    known: NDArray[np.float64] | None = None,
) -> Handle:  # fmt: skip
    """Return the handle at a place of the triangle, with its candidates and their energy.

    Of `known` energies (side, side) it is read, which is rough: linear between their places.

    Raises:
        ValueError: for weights that are negative or do not sum to 1.
    """
    x = energies.candidates(weights)
    report = Report(x, shared.parts.y, torch.ones(len(x), dtype=x.dtype))
    if known is not None:
        near = float(read_lattice(known, np.array([weights]))[0])
        return Handle(shared, energies, weights, report, near, rough=True)
    return Handle(shared, energies, weights, report, energies.energy(weights))


def first_handle(of: Grid, settings: Any, weights: Weights) -> Handle:  # noqa: ANN401 - of the attack
    """Return the handle over the starts of an attack with these settings, as yet without energies.

    Raises:
        ValueError: if these weights have no energies of starts.
    """
    shared = of.problem()
    made = handle_at(shared, landscape_of(shared), weights)
    return replace(made, usual=usual_count(of, settings))


def usual_count(of: Grid, settings: Any) -> int:  # noqa: ANN401 - of the attack
    """Return how many candidates the attack stage takes; 0 for an attack that trains its own."""
    entry = by_key(of.attack)
    return 0 if entry.own else entry.candidate_count(settings)


def with_place(held: Handle, weights: Weights, passing: bool = False) -> Handle:
    """Return the handle at another place, with all that is known of the starts.

    Where a drag is `passing`, the energy is read from the map, once that is known.
    """
    placed = handle_at(held.problem, held.landscape, weights, held.energies if passing else None)
    known = ("energies", "finest", "arrivals", "usual", "runs", "census", "counting")
    return replace(placed, **{name: getattr(held, name) for name in known})


def passed_by(held: Handle, state: AttackState, ended: bool = False) -> Passed:
    """Return where a run is at this state, on the triangle of the handle.

    Its end stands where its claims are: candidates that carry nothing are no part of it.
    """
    problem, parts = held.problem, held.problem.parts
    settings = problem.of.settings_at(mix_from_weights(*held.weights)[1])
    claims = by_key(problem.of.attack).report(problem.target, state, settings)
    of_claims = ended and len(claims.x) > 0
    place = parts.claims_weights(claims.x, claims.y) if of_claims else parts.weights(state.x)
    found = recovered_count(problem, claims.x, claims.y)
    return Passed(place, held.landscape.measure(state.x), state.t, found, claims if ended else None)


def at_state(held: Handle, state: AttackState) -> Handle:
    """Return the handle with a state of the run from it: candidates, energy, trail so far."""
    there = replace(held, candidates=Report(state.x, state.y, state.lam), shown=state)
    passed = there.trail_so_far
    return replace(there, energy=passed[-1].energy if passed else held.energy)


def point_map(picture: Picture, place: NDArray[np.float64]) -> PointMap:
    """Return what the plane shows of a picture, with the mapped point at `place` (d,)."""
    span = span_of(picture.values, picture.reference)
    values = None if picture.curve is not None else picture.values
    low = picture.lowest if values is not None and has_lowest_mark(picture) else None
    ends = None
    if isinstance(made := picture.about, Split) and not made.pinned and values is not None:
        far = min(made.free, float(np.hypot(*picture.box[1::2]))) * made.u.numpy()
        ends = np.stack([place - far, place + far])
    return PointMap(values, picture.box, span, low, ends, _answer(picture))


def _answer(picture: Picture) -> str:
    """Return what a picture says of its point, by the names of `PointMap.archetype`."""
    made = picture.about
    if isinstance(made, Split):
        return "nothing" if not made.carries else "one" if made.pinned else "two"
    if isinstance(made, Energies) and picture.archetype != made.archetype.value:
        return "forced"
    return picture.archetype
