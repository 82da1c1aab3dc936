"""Commands of the energy maps: choose a point, drag one, undo, go home."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from explorer.page.frame import Walk, first_walk
from explorer.page.session import Session


def walk(session: Session) -> Walk:
    """Return the candidates. ValueError where there are none."""
    if session.now.walk is None:
        raise ValueError("No energy here: train a homogeneous network with one output first.")
    return session.now.walk


def begin(session: Session) -> None:
    """Put the candidates at the truth; none for weights without an energy."""
    now = session.now
    held = now.walk
    if now.target is None or now.truth is None:
        session.show(walk=None)
    elif held is None or held.target is not now.target:
        try:
            session.show(walk=first_walk(now.target, now.truth))
        except ValueError:
            session.show(walk=None)  # the panel says why


def map_point(session: Session, i: int) -> None:
    """Show the map of point i."""
    held = walk(session)
    if not 0 <= i < len(held.x):
        raise ValueError(f"no point {i + 1}; there are {len(held.x)}")
    if i != held.mapped:
        session.show(walk=replace(held, mapped=i))


def move_point(session: Session, i: int, place: Tensor, gesture: int | None = None) -> None:
    """Put point i at a place (d,)."""
    session.show(walk=walk(session).moved(i, place, gesture))


def undo(session: Session) -> None:
    """Take the last drag back."""
    session.show(walk=walk(session).undone())


def redo(session: Session) -> None:
    """Take the last undo back."""
    session.show(walk=walk(session).redone())


def reset(session: Session) -> None:
    """Put all candidates back at the truth."""
    session.show(walk=walk(session).home())
