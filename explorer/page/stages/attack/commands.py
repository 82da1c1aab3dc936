"""Commands of the attack stage: take the weights, choose an attack, start it, mix its start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any, cast

import torch

from explorer.engine import data
from explorer.engine.attacks.target import Target
from explorer.engine.energy.starts import attack_start
from explorer.engine.roster import ROSTER, AnyAttack, AttackConfig, AttackState, by_key
from explorer.engine.settings import schema
from explorer.engine.status import Status
from explorer.page.aim import aim_at, with_verdict
from explorer.page.frame import Frame, Shown, certificate_of, numbers
from explorer.page.history import Timeline
from explorer.page.session import Session
from explorer.research.runs import granted_target


def take_target(session: Session) -> None:
    """Take the present weights as those attacked, at margin 1; nothing runs yet.

    Raises:
        ValueError: with no network, or with one that does not separate the points.
    """
    frame, state = session.frame, session.frame.training.state
    truth = data.empty(frame.dataset.d) if session.guessing else frame.dataset
    known = truth.n > 0
    if state is None or not (known or frame.training.given):
        raise ValueError("No network to attack: draw points and train first.")
    part = frame.training
    aim = aim_at(part, truth)
    name = _suitable(session, aim.target)
    if known:
        made = part.certificate if part.certified is state else certificate_of(state, frame.dataset)
        known_growth = part.growth if part.certified is state else None
        part = replace(part, certificate=made, certified=state, growth=known_growth)
        aim = replace(aim, certificate=made)
    session.branch.attack = Timeline()
    session.show(aim=aim, attack=frame.attack.without_run(name), training=part)


def check_room(config: AttackConfig | None) -> None:
    """ValueError for a count above what the form offers: time and memory grow with these."""
    for row in schema(type(config)) if config is not None else ():
        value = getattr(config, row.name)
        if row.kind == "whole" and row.page and (value or 0) > row.page[1]:
            raise ValueError(
                f"{row.name} must be at most {row.page[1]:g} on a page; got {value}. "
                "The command line takes more."
            )


def _suitable(session: Session, target: Target) -> str:
    """Return the attack that was chosen if it suits these weights, else the first that does."""
    now, wanted = session.frame.attack.name, session.gave_way or session.frame.attack.name
    why = by_key(wanted).refusal(target)
    if not why:
        session.gave_way = ""
        turn_to(session, wanted)
        return wanted
    session.gave_way = wanted
    if not session.entry.refusal(target):
        return now
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
    """Turn to another attack of the roster, with its last settings.

    Raises:
        ValueError: for an unknown name, or if the attack cannot be used on these weights;
            the present attack then stays.
    """
    target = session.frame.target
    why = by_key(name).refusal(target) if target is not None else ""
    if why:
        raise ValueError(why)
    session.gave_way = ""
    if name == session.frame.attack.name:
        return
    session.running = False
    turn_to(session, name)
    session.branch.attack = Timeline()
    session.show(attack=session.frame.attack.without_run(name))
    if session.frame.stage == "attack":
        restart(session)


def restart(session: Session) -> None:
    """Begin the attack again at t = 0, from the mix and the seed of the session.

    Raises:
        ValueError: with no weights to attack.
    """
    state = first_state(
        session.frame, session.entry, session.attack_config, session.seed, session.mix
    )
    session.branch.attack = Timeline()
    session.branch.attack.append(state, numbers)
    aim = session.frame.aim
    mixed = session.entry.takes_start and aim is not None and aim.truth.n > 0
    mix = session.mix if mixed else (0.0, 0.0)
    part = replace(
        session.frame.attack.without_run(session.frame.attack.name),
        state=state,
        mix=mix,
        seed=session.seed,
    )
    session.show(attack=part, status=Status.RUNNING)
    judge(session)


def remix(session: Session, mix_truth: float, mix_data: float) -> None:
    """Start the attack anew from another mix of truth, held-out data and noise."""
    session.running = False
    session.mix = (mix_truth, mix_data)
    session.attack_config = session.entry.suit(session.attack_config, mix_data)
    restart(session)


def configure(session: Session, **changes: Any) -> None:  # noqa: ANN401 - fields of the settings
    """Change settings of the attack, which starts anew.

    Raises:
        ValueError: for a value that the setting does not take.
    """
    before = session.attack_config
    session.attack_config = replace(before, **changes)
    session.running = False
    try:
        restart(session)
    except ValueError:  # such as a prior that these points do not have
        session.attack_config = before
        raise


def reach(session: Session, state: AttackState, status: Status) -> None:
    """Take over the state that the run has reached; the next `show` draws it."""
    session.put(attack=replace(session.frame.attack, state=state), status=status)


def heavy(session: Session) -> bool:
    """Return whether a single step of this stage may take a second."""
    return session.frame.stage == "attack" and session.entry.heavy


def steps_beside(
    session: Session, steps: int, seconds: float
) -> tuple[Callable[[], list[Any]], Callable[[list[Any]], int]]:
    """Return work that takes steps of the attack, for a thread, and the command that shows them.

    Args:
        session: stays as it is while the work goes on.
        steps: how many at most, 1 or more.
        seconds: after these the work takes no further step.

    Returns:
        The work, which returns states; and a command that takes them and returns how many steps
        they are: none where the run was paused meanwhile, or is another one.
    """
    now, entry, config = session.frame, session.entry, session.attack_config
    first: Any = now.attack.state
    target = granted_target(now.target, now.truth, config, now.attack.seed or 0)

    def work() -> list[Any]:
        made, begun = [first], perf_counter()
        while len(made) <= steps and not entry.terminate(made[-1], config).over:
            made.append(entry.step(target, made[-1], config))
            if perf_counter() - begun > seconds:
                break
        return made[1:]

    def take(made: list[Any]) -> int:
        same = session.frame.attack.state is first and session.attack_config is config
        if not same or not session.running or session.frame.stage != "attack":
            return 0
        for state in made:
            session.timeline.append(state, numbers)
        last = made[-1] if made else first
        reach(session, last, entry.terminate(last, config))
        return len(made)

    return work, take


def judge(session: Session) -> None:
    """Judge what the attack claims now, and show scores and verdict."""
    aim, attack = session.frame.aim, session.frame.attack
    if aim is not None:
        # While it runs, and before its first step, the first controls must do.
        more = not session.running and attack.t > 0
        attack = with_verdict(attack, aim, session.attack_config, more)
    session.show(attack=attack)


def show_other(session: Session, other: Shown | None) -> None:
    """Show another set that explains the attacked weights, or none."""
    session.show(attack=replace(session.frame.attack, other=other))


def show_claims(session: Session, shown: Shown) -> None:
    """Draw the claims of a run of the arena, with their sentence on top of the page."""
    session.show(arena=shown)


def turn_to(session: Session, name: str) -> None:
    """Keep the settings of the present attack, and load those of another."""
    now = session.frame.attack.name
    if name != now:
        settings = session.settings_of(name)
        session.configs[now] = session.attack_config
        session.attack_config = settings


def first_state(
    frame: Frame, entry: AnyAttack, config: AttackConfig, seed: int, mix: tuple[float, float]
) -> Any:  # noqa: ANN401 - of the entry's own class
    """Return the attack's state at t = 0, from the mix of truth, held-out data and noise if it can.

    Raises:
        ValueError: if the attack cannot be used on these weights.
    """
    aim = frame.aim
    if aim is None:
        raise ValueError("No attack to start: train a network, then turn to Attack.")
    start, given = None, cast(Any, config)
    if entry.own is not None and not aim.truth.n:
        raise ValueError(f"{entry.title} trains on the points itself, and there are none.")
    if entry.takes_start and aim.truth.n:
        # Where training itself is seen through, labels and their number are known.
        y = aim.truth.y if entry.own is not None else None
        start = attack_start(aim.truth, aim.heldout, given.m, given.sigma_x, seed, mix, y)
    held = granted_target(aim.target, aim.truth, config, seed)
    aimed = entry.target_for(held, aim.truth.x, aim.truth.y, config, seed)
    return entry.init(aimed, config, torch.Generator().manual_seed(seed), start)
