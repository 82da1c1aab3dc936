"""Open a page on a scenario or a link, trained and attacked as far as it says, or a recording."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from explorer.engine.explanations.certainty import Certainty
from explorer.engine.explanations.needed import Needed
from explorer.engine.roster import by_key
from explorer.engine.store import Run
from explorer.page import play
from explorer.page.session import LIVE_STEPS, Note, Session
from explorer.page.sharing import files
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.train import commands as train
from explorer.research.repeat import is_attacked, is_trained
from explorer.research.runs import to_the_end
from explorer.research.scenarios import by_name

# Of training while a visitor sees it, and between slices; arbitrary.
SLICE_S, BREATH_S = 0.15, 0.03
# The run of the opening, and beside it what is known of it; scripts/opening.py makes both.
RECORDED = Path(__file__).with_name("opening.safetensors")


def known_of_opening() -> tuple[Certainty, Needed]:
    """Return how certain the points of the opening's run are, and the places that need one."""
    told = json.loads(RECORDED.with_suffix(".json").read_text(encoding="utf-8"))
    radius = torch.tensor(told["certainty"]["radius"], dtype=torch.float64)
    log = np.array(told["needed"]["log"]).reshape(-1, 6)
    made = Certainty(**{**told["certainty"], "radius": radius})
    return made, Needed(**{**told["needed"], "log": log})


def open_recorded(session: Session) -> None:
    """Show the run that was recorded for the opening, at its end: drawn, trained, attacked.

    What is certain of it was computed before: its certified points, and where a point must be.
    """
    made, needed = known_of_opening()
    with session.hold_trait_notifications():  # else panels would begin to compute the certainty
        files.open_file(session, RECORDED.read_bytes())
        truth, aim = session.frame.truth, session.frame.aim
        if aim is not None and truth is not None and truth.n == len(made.radius):
            session.put(aim=replace(aim, needed=needed))
            play.take_certainty(session, made)


def opening_scenario(session: Session, name: str, seconds: float = float("inf")) -> Iterator[float]:
    """Open it in slices of so many seconds; yield the share of the work that is done.

    Raises:
        ValueError: for an unknown name, with the names there are.
    """
    row = by_name(name)
    live = replace(row.run, train_config=replace(row.run.train_config, steps=LIVE_STEPS))
    yield from opening(session, live, f"The example {name!r}", "", seconds)


def opening(
    session: Session, run: Run, what: str, words: str, seconds: float = float("inf")
) -> Iterator[float]:
    """Train and attack as far as the run says, in slices of so many seconds, and turn to its stage.

    Yields the share of its steps that are done. Commands of the visitor between slices take
    precedence: other points or another stage end it.

    Args:
        session: of the page.
        run: without states.
        what: it is called so in a message.
        words: the message at the end.
        seconds: of a slice.

    Raises:
        ValueError: for points that the plane cannot show, or an attack that suits not the weights.
    """
    session.running, session.opening = False, True
    try:
        yield from _shares(session, run, what, words, seconds)
    finally:
        session.opening = False


def _shares(session: Session, run: Run, what: str, words: str, seconds: float) -> Iterator[float]:
    """Do what `opening` promises."""
    trains, attacks = is_trained(run), is_attacked(run)
    session.seed, session.train_config = run.seed, run.train_config
    session.mix = run.mix or (0.0, 0.0)
    if run.dataset.n or run.dataset.d != session.frame.dataset.d or session.frame.dataset.n:
        draw.load(session, run.dataset)
        # The other branches are of the points before; an undo finds their run on this one.
        session.branches, session.branch_index = [replace(session.branch, name="main")], 0
    if trains and run.dataset.n:
        for share in training_as(session, run, seconds):
            held: tuple[Any, Any] = session.frame.dataset, session.train_config
            yield share
            if _has_left(session, held, f"{what} was left before it was trained.", what):
                return
    if session.frame.training.state is not None:
        play.assess(session)
    for share in attacking_as(session, run, seconds, attacks):
        held = session.frame.aim, session.attack_config
        yield share
        if _has_left(session, held, f"{what} was left before its attack was done.", what):
            return
    if run.stage:
        play.open_at(session, run.stage)
    session.message = Note(words)


def training_as(session: Session, run: Run, seconds: float) -> Iterator[float]:
    """Train the points on the page as a run says, in slices; yield its share that is done."""
    (train.jump_to_exact if run.exact else train.begin)(session)
    last, whole = run.steps[0], max(sum(run.steps), 1)
    for t in _steps(session, last if run.finish is None else min(run.finish, last), seconds):
        yield t / whole
    begun_at = session.frame.training.state
    if run.finish is None or begun_at is None or begun_at.t >= last:
        return
    for state, made in to_the_end(session.frame.dataset, begun_at, session.train_config):
        train.take(session, state, made)
        yield state.t / whole
        if state.t >= last:
            return


def attacking_as(session: Session, run: Run, seconds: float, begins: bool) -> Iterator[float]:
    """Choose the attack of a run, and if it `begins`, attack likewise and judge."""
    attack.choose(session, run.attack_name)
    session.attack_config = run.attack_config or by_key(run.attack_name).config()
    session.mix = run.mix or (0.0, 0.0)
    if not begins:
        return
    session.seed = run.seed if run.attack_seed is None else run.attack_seed
    play.go(session, "attack")
    done, whole = run.steps[0], max(sum(run.steps), 1)
    yield done / whole
    for t in _steps(session, run.steps[1], seconds):
        yield (done + t) / whole
    play.assess(session)


def _steps(session: Session, last: int, seconds: float) -> Iterator[int]:
    """Take the steps of this stage up to `last`, in slices; yield where it stands."""
    while (now := session.frame.state) is not None and now.t < last:
        if not play.advance(session, seconds=seconds, steps=last - now.t):
            return
        yield session.frame.state.t if session.frame.state else last


def _has_left(session: Session, held: tuple[Any, Any], words: str, what: str) -> bool:
    """Return whether the visitor turned to something else in between, and say so.

    `held`: points and settings of the training, or weights and settings of the attack.
    """
    now = session.frame
    attacking = held[0] is now.aim
    if now.stage != ("attack" if attacking else "train") or held[0] not in (now.dataset, now.aim):
        session.message = words
        return True
    config = session.attack_config if attacking else session.train_config
    if config is not held[1] or session.running:
        session.message = f"{what} was taken over at step {now.t}."
        return True
    return False
