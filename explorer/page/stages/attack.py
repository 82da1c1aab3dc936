"""Commands around the attacked weights: take them, choose an attack, start it, mix its start."""

from __future__ import annotations

from typing import Any, cast

import torch

from explorer.engine.attacks.target import Target
from explorer.engine.controls import control_sets
from explorer.engine.energy.starts import attack_start
from explorer.engine.roster import ROSTER, AnyAttack, AttackConfig, by_key
from explorer.engine.status import Status
from explorer.page.frame import Frame, certified, judged, numbers
from explorer.page.history import Timeline
from explorer.page.session import Session


def take_target(session: Session) -> None:
    """Take the present weights as those attacked, at margin 1; nothing runs yet.

    Raises:
        ValueError: with no network, or with one that does not separate the points.
    """
    now = session.frame
    if now.train is None or not now.dataset.n:
        raise ValueError("No network to attack: draw points and train first.")
    q_min = float(now.train.q.min())
    if not q_min > 0:
        raise ValueError(
            "The network does not separate the points, so it has no margin to attack. "
            "Train on until the light says that it separates them."
        )
    target = Target.of(now.train.net, q_min)
    name = _fitting(session, target)
    session.controls = control_sets(now.dataset)
    session.branch.attack = Timeline()
    session.show(
        attack_name=name, attacked=now.train.net, target=target, truth=now.dataset,
        heldout=session.controls.sets[0], attack=None, scores=None, verdict=None,
        **certified(now),
    )  # fmt: skip


def _fitting(session: Session, target: Target) -> str:
    """Return the present attack where it suits these weights, else the first that does."""
    why = session.entry.refusal(target)
    if not why:
        return session.frame.attack_name
    name = next(key for key, row in ROSTER.items() if not row.refusal(target))
    turn_to(session, name)
    session.message = f"{by_key(name).title} takes over. {why.partition(' Choose ')[0]}"
    return name


def begin(session: Session) -> None:
    """Take the present weights as the target, and start the attack at t = 0."""
    take_target(session)
    session.show(stage="attack")
    restart(session)


def choose(session: Session, name: str) -> None:
    """Turn to another attack of the roster, with the settings it was left with.

    Raises:
        ValueError: for an unknown name, or where the attack cannot be used on these weights;
            the present attack then stays.
    """
    target = session.frame.target
    why = by_key(name).refusal(target) if target is not None else ""
    if why:
        raise ValueError(why)
    if name == session.frame.attack_name:
        return
    session.running = False
    turn_to(session, name)
    session.branch.attack = Timeline()
    session.show(attack_name=name, attack=None, scores=None, verdict=None)
    if session.frame.stage == "attack":
        restart(session)


def restart(session: Session) -> None:
    """Begin the attack again at t = 0, from the mix and the seed of the session.

    Raises:
        ValueError: with no weights to attack.
    """
    now = session.frame
    if now.target is None or now.truth is None or now.heldout is None:
        raise ValueError("No attack to start: train a network, then turn to Attack.")
    state = first_state(now, session.entry, session.attack_config, session.seed, session.mix)
    session.branch.attack = Timeline()
    session.branch.attack.append(state, numbers)
    mix = session.mix if session.entry.takes_start else (0.0, 0.0)
    session.show(attack=state, mix=mix, status=Status.RUNNING)
    judge(session)


def remix(session: Session, mix_truth: float, mix_data: float) -> None:
    """Start the attack anew from another mix of truth, held-out data and noise."""
    session.running = False
    session.mix = (mix_truth, mix_data)
    session.attack_config = session.entry.suited(session.attack_config, mix_data)
    restart(session)


def judge(session: Session) -> None:
    """Compute the verdict on what the attack claims now, and show it."""
    session.show(**judged(session.frame, session.attack_config, session.controls))


def turn_to(session: Session, name: str) -> None:
    """Keep the present attack's settings, and take up those of another."""
    now = session.frame.attack_name
    if name != now:
        settings = session.settings_of(name)
        session.configs[now] = session.attack_config
        session.attack_config = settings


def first_state(
    frame: Frame, entry: AnyAttack, config: AttackConfig, seed: int, mix: tuple[float, float]
) -> Any:  # noqa: ANN401 - of the entry's own class
    """The attack's state at t = 0: from the mix of truth, held-out data and noise if it takes one.

    Raises:
        ValueError: where the attack cannot be used on these weights.
    """
    target, truth, heldout = frame.target, frame.truth, frame.heldout
    if target is None or truth is None or heldout is None:
        raise ValueError("No weights to attack: train a network first.")
    start, given = None, cast(Any, config)
    if entry.takes_start:
        # Where training itself is seen through, labels and their number are known.
        y = truth.y if entry.victim is not None else None
        start = attack_start(truth, heldout, given.m, given.sigma_x, seed, mix, y)
    aimed = entry.aimed(target, truth.x, truth.y, config, seed)
    return entry.init(aimed, config, torch.Generator().manual_seed(seed), start)
