"""Commands of the energy maps: choose a point, drag one, go back to the truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from explorer.page.frame import Candidates, first_candidates
from explorer.page.history import History
from explorer.page.session import Session

NO_PAST, NO_FUTURE = "no point was dragged yet.", "no drag was taken back."


def history(session: Session) -> History[Candidates]:
    """Return the candidates with their earlier places. ValueError if there are none."""
    held = session.frame.landscape
    if held is None:
        raise ValueError("No energy here: train a homogeneous network with one output first.")
    return held


def candidates(session: Session) -> Candidates:
    """Return the present candidates. ValueError if there are none."""
    return history(session).present


def begin(session: Session) -> None:
    """Put the candidates at the truth; none for weights without an energy."""
    now = session.frame
    held = now.landscape
    if now.target is None or now.truth is None:
        session.show(landscape=None)
    elif held is None or held.present.target is not now.target:
        try:
            session.show(landscape=History(first_candidates(now.target, now.truth)))
        except ValueError:
            session.show(landscape=None)  # the panel says why


def map_point(session: Session, i: int) -> None:
    """Show the map of point i. ValueError where there is no such point."""
    held = history(session)
    if not 0 <= i < len(held.present.x):
        raise ValueError(f"no point {i + 1}; there are {len(held.present.x)}")
    if i != held.present.mapped:
        session.show(landscape=held.amend(replace(held.present, mapped=i)))


def move_point(session: Session, i: int, place: Tensor, gesture: int | None = None) -> None:
    """Put point i at a place (d,); drags of one gesture are undone together."""
    held = history(session)
    x = held.present.x.clone()
    x[i] = place
    session.show(landscape=held.push(replace(held.present, x=x), gesture))


def reset(session: Session) -> None:
    """Put all candidates back at the truth; undo brings the present places back."""
    held = history(session)
    start = held.present.truth.x.double()
    if not torch.equal(start, held.present.x):
        session.show(landscape=held.push(replace(held.present, x=start)))


def set_trails(session: Session, trails: list[Any]) -> None:
    """Set the runs of the grid of starts that the map of all starts draws."""
    session.trails = trails


def restore(session: Session, history: History[Candidates]) -> None:
    """Show the candidates of `history`, and the map of the point on screen."""
    mapped = candidates(session).mapped
    session.show(landscape=history.amend(replace(history.present, mapped=mapped)))
