"""Open a page on a scenario, trained as far as its row says, or where the recording ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from explorer.page import files, play
from explorer.page.session import LIVE_STEPS, Session
from explorer.page.stages import attack, draw, train
from explorer.research.scenarios import by_name

RECORDED = Path(__file__).with_name("opening.safetensors")  # made by scripts/opening.py


def open_recorded(session: Session) -> None:
    """Show the run that was recorded for the opening, at its end: drawn, trained, attacked."""
    files.open_file(session, RECORDED.read_bytes())


def open_scenario(session: Session, name: str) -> None:
    """Draw and train the scenario of this name, and turn to its stage.

    Training to the row's step takes seconds; the page is ready when it is done.

    Raises:
        ValueError: for an unknown name, with the names there are.
    """
    for _ in opening(session, name):
        pass


def opening(session: Session, name: str, seconds: float = float("inf")) -> Iterator[float]:
    """Open it in slices of so many seconds; yield the share of the training that is done.

    Commands of the visitor between slices take precedence: other points or another stage end it.

    Raises:
        ValueError: for an unknown name, with the names there are.
    """
    row = by_name(name)
    session.running = False
    session.seed = row.seed
    session.train_config = replace(row.train, steps=LIVE_STEPS)
    draw.load(session, row.dataset())
    if row.exact:
        train.jump_to_exact(session)
    else:
        train.begin(session)
    dataset, config = session.frame.dataset, session.train_config
    while (done := _step(session)) < row.freeze:
        play.advance(session, seconds=seconds, steps=row.freeze - done)
        if session.frame.status.over:
            break
        yield _step(session) / row.freeze
        now = session.frame
        if now.stage != "train" or now.dataset is not dataset:
            session.message = f"The example {name!r} was left before it was trained."
            return
        if session.train_config is not config or session.running:
            session.message = f"The example {name!r} was taken over at step {_step(session)}."
            return
    play.assess(session)
    attack.choose(session, row.attack_name)
    session.mix = (0.0, 0.0)  # every row is measured from noise
    session.attack_config = row.attack
    if row.stage != "train":
        play.go(session, row.stage)
    session.message = row.sentence


def _step(session: Session) -> int:
    state = session.frame.training.state
    return 0 if state is None else state.t
