"""Commands of the landscape: move the handle over the starts, and points over their maps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from explorer.engine.attacks.claims import Report
from explorer.engine.energy.landscape import Weights
from explorer.engine.energy.starts import mix_weights
from explorer.engine.roster import AttackState
from explorer.page.frame import Candidates, Starts, first_candidates
from explorer.page.history import History
from explorer.page.session import Session
from explorer.page.stages import attack
from explorer.research.grid import Of, even, landscape_of

STEPS = 200  # of a run from a start; arbitrary: half a minute for 21 runs of the KKT attack
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
    begin_starts(session)


# --- the starts -------------------------------------------------------------------------------


def problem(session: Session, steps: int = STEPS, side: int = 5) -> Of:
    """Return the starts of the present attack on the attacked weights."""
    now, entry = session.frame, session.entry
    settings: Any = session.attack_config
    m = even(now.truth.n) if now.truth is not None else 2
    config = entry.config_for(replace(settings, steps=steps, m=m), 0.0)  # anew with every start
    return Of(
        now.target, now.truth, now.heldout, now.attack.name, config, session.seed, side
    )  # fmt: skip


def begin_starts(session: Session) -> None:
    """Put the handle at the mix of the session; no handle where there are no such energies."""
    now = session.frame
    if now.target is None or not session.entry.takes_start:
        session.show(starts=None)
        return
    of = problem(session)
    if now.starts is not None and now.starts.of == of:
        return
    try:
        shared = of.problem()
        session.show(starts=_start(of, shared, landscape_of(shared, of.attack, session.extent),
                                   mix_weights(*session.mix)))  # fmt: skip
    except ValueError:
        session.show(starts=None)  # the panel says why


def _start(of: Of, shared: Any, energies: Any, weights: Weights) -> Starts:  # noqa: ANN401
    x = energies.candidates(weights)
    report = Report(x, shared.parts.y, torch.ones(len(x), dtype=x.dtype))
    return Starts(of, shared, energies, weights, report, energies.energy(weights))


def starts(session: Session) -> Starts:
    """Return the place of the handle. ValueError where there is none."""
    held = session.frame.starts
    if held is None:
        raise ValueError("No starts here: choose an attack that starts at given candidates.")
    return held


def choose_attack(session: Session, name: str) -> None:
    """Turn to another attack, and to its starts. ValueError where it cannot be used here."""
    attack.choose(session, name)
    begin_starts(session)


def place_handle(session: Session, weights: Weights) -> None:
    """Put the handle at a place of the triangle: the candidates and their energy follow.

    Raises:
        ValueError: for weights that are negative or do not sum to 1; the handle stays.
    """
    held = starts(session)
    session.show(starts=_start(held.of, held.problem, held.landscape, weights))


def follow_run(session: Session, state: AttackState, place: Weights, energy: float) -> None:
    """Show a state of the run from the handle, at a place of the triangle with its energy."""
    held, shown = starts(session), Report(state.x, state.y, state.lam)
    session.show(starts=replace(held, candidates=shown, energy=energy,
                                trail=(*held.trail, (place, energy))))  # fmt: skip


# --- one point --------------------------------------------------------------------------------


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
