"""What a page gives away: its present moment as a run without states, for a link and for code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from explorer.engine.store import Run
from explorer.page.aim import made_at
from explorer.page.frame import Frame
from explorer.page.session import Session
from explorer.page.sharing.words import ANEW, ATTACK_ANEW, WEIGHTS
from explorer.research.pictures import planes
from explorer.research.repeat import Repeated


def run_of_page(session: Session) -> Run:
    """Return what this page can be made again from: points, settings, seeds, steps and stage.

    Weights that nothing can make again, as the points changed while they were trained, are left
    out: the run then stands before its first step; `gap` says so.
    """
    now = session.frame
    known = plan_of(now)
    if known is None:
        return Run(
            now.dataset, session.train_config, attack_name=now.attack.name,
            attack_config=session.attack_config, seed=session.seed, mix=session.mix, stage="draw",
        )  # fmt: skip
    attacked = now.attack.state if now.newest and now.attack.seed is not None else None
    other = None if attacked is None or now.attack.seed == known.seed else now.attack.seed
    return replace(
        known, attack_name=now.attack.name, attack_config=session.attack_config, mix=session.mix,
        stage=now.stage, attack_seed=other,
        steps=(now.training.t, 0 if attacked is None else attacked.t),
    )  # fmt: skip


def plan_of(now: Frame) -> Run | None:
    """Return the run that makes the present weights again; None where none does."""
    known, state = now.training.plan, now.training.state
    if state is None or known is None or known.dataset is not now.dataset:
        return None
    return known


def gap(session: Session) -> str:
    """Return what a link cannot hold of this page, as a sentence, or an empty string."""
    now = session.frame
    if now.training.state is None:
        return ""
    if plan_of(now) is None:
        return WEIGHTS if now.training.given else ANEW
    loaded = now.newest and now.attack.state is not None and now.attack.seed is None
    return ATTACK_ANEW if loaded else ""


def made_of(session: Session) -> Repeated:
    """Return what the page shows now, as `repeat` would make it, for pictures and reports."""
    now, run = session.frame, run_of_page(session)
    named = replace(run, attack_name=now.attack.name, attack_config=session.attack_config)
    made = made_at(now, named)
    return made if made.attacked is not None else replace(made, run=run)


def film_of(session: Session, of: str, pixels: int) -> tuple[int, Iterator[Any]]:
    """Return how many frames the film of the "train" or "attack" run has, and the frames.

    Each is `pixels` squared.

    Raises:
        ValueError: where no step was taken.
    """
    now = session.frame
    line: Any = session.branch.train if of == "train" else session.branch.attack
    net = now.aim.net if of == "attack" and now.aim is not None else None
    if len(line.states) < 2:
        raise ValueError("There is no film yet: let it run first.")
    states = list(line.states)
    return min(len(states), planes.MOST_FRAMES), planes.film(now.dataset, states, net, pixels)
