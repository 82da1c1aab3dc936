"""Open a page on a scenario: its points, its settings, trained as far as the row says."""

from __future__ import annotations

from dataclasses import replace

from explorer.scenarios import by_name
from explorer.session import Session
from explorer.state import LIVE_STEPS


def open_scenario(session: Session, name: str) -> None:
    """Draw and train the row of this name, and turn to the stage it is about.

    Training to the row's step takes seconds; the page is ready when it is done.

    Raises:
        ValueError: for an unknown name, with the names there are.
    """
    row = by_name(name)
    session.running = False
    session.seed = row.seed
    session.train_config = replace(row.train, steps=LIVE_STEPS)
    session.load(row.dataset())
    session.begin_training()
    session.advance(steps=row.freeze)
    session.assess()
    session.choose_attack(row.attack_name)
    session.attack_config = row.attack
    if row.stage != "train":
        session.go(row.stage)
    session.message = row.sentence
