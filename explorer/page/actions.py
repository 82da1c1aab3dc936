"""The next sensible thing that a headline offers, by its key: one press carries it out."""

from __future__ import annotations

from collections.abc import Callable

from explorer.engine.data import preset
from explorer.page import play
from explorer.page.session import Session
from explorer.page.stages import draw

POINTS = "alternating-circle"  # every point holds the margin, so every point leaves a trace


def take_points(session: Session) -> None:
    """Draw points that alternate around a circle; one undo brings back what was drawn."""
    draw.load(session, preset(POINTS, seed=session.seed))


def turn_class(session: Session) -> None:
    """Take up the class that has no point yet."""
    drawn = set(session.frame.dataset.y.tolist())
    draw.set_tool(session, "place")
    draw.set_label(session, -1 if 1.0 in drawn else 1)


def train_on(session: Session) -> None:
    """Turn to training, and let it run."""
    if session.frame.stage != "train" and session.frame.training.state is not None:
        play.go(session, "train")
    elif session.frame.stage != "train":
        play.go(session, "draw")
    play.play(session)


def begin_attack(session: Session) -> None:
    """Turn to the attack, and let it run."""
    play.go(session, "attack")
    play.play(session)


def attack_again(session: Session) -> None:
    """Attack from other starts: the next seed."""
    play.reseed(session)
    play.play(session)


def add_candidates(session: Session) -> None:
    """Attack again with twice as many candidates."""
    play.configure(session, m=2 * session.attack_config.m)
    play.play(session)


ACTIONS: dict[str, Callable[[Session], None]] = {
    "points": take_points,
    "other-class": turn_class,
    "draw": lambda session: play.go(session, "draw"),
    "train": train_on,
    "reseed": attack_again,
    "attack": begin_attack,
    "play": play.play,
    "restart": attack_again,
    "candidates": add_candidates,
    "explain": lambda session: play.go(session, "explain"),
}


def act(session: Session, key: str) -> None:
    """Carry out the action of a key. ValueError for an unknown key, or from the command itself."""
    if key not in ACTIONS:
        raise ValueError(f"no action {key!r}; there are: {', '.join(ACTIONS)}")
    ACTIONS[key](session)
