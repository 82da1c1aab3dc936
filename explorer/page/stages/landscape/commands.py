"""Commands of the landscape: move the handle over the starts, and points over their maps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from explorer.engine.attacks.claims import Report
from explorer.engine.energy.landscape import Weights, edge_place, on_edge
from explorer.engine.energy.questions import MAPS
from explorer.engine.energy.starts import mix_weights
from explorer.engine.known import knowledge_of
from explorer.engine.roster import AttackState
from explorer.page.aim import (
    at_state,
    first_handle,
    passed_by,
    starts_grid,
    usual_count,
    with_place,
)
from explorer.page.frame import Candidates, Handle, Passed, PointMap, first_candidates, numbers
from explorer.page.history import History, Timeline
from explorer.page.session import Session
from explorer.research.census import Census, page_problem
from explorer.research.grid import Grid, Problem
from explorer.research.grid.landscape import SIDES, Arrivals, Runs
from explorer.research.runs import granted_target

OWN = (
    "A census of the page is of KKT, on the weights of 2 Train: choose an attack on these, or take "
    "margin-explorer census --loss bilevel."
)
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
            first = first_candidates(now.target, now.truth)
            session.show(landscape=History(first), point_map=None)
        except ValueError:
            session.show(landscape=None)  # the panel says why
    begin_starts(session)


# --- the starts -------------------------------------------------------------------------------


def problem(session: Session, side: int = SIDES[0]) -> Grid:
    """Return the starts of the present attack on the attacked weights, all as the attack has it.

    There are as many candidates as it takes, and no fewer than points. A run from noise is that of
    3 Attack.
    """
    now = session.frame
    if now.aim is None:
        raise ValueError("No starts here: train a network first.")
    drawn = session.multipliers == "drawn"
    return starts_grid(now.aim, now.attack.name, session.attack_config, session.seed, side, drawn)


def begin_starts(session: Session) -> None:
    """Put the handle at the mix of the session; no handle where there are no such energies."""
    now = session.frame
    if now.target is None or not session.entry.takes_start:
        session.show(starts=None, no_starts="")
        return
    of, config = problem(session), session.attack_config
    if now.starts is not None and now.starts.problem.of == of:
        session.put(starts=replace(now.starts, usual=usual_count(of, config)))
        return
    at = now.starts.weights if now.starts is not None else mix_weights(*session.mix)
    try:
        session.show(starts=first_handle(of, config, at), no_starts="")
    except ValueError as error:
        session.show(starts=None, no_starts=str(error))  # the panel says why


def starts(session: Session) -> Handle:
    """Return the place of the handle. ValueError where there is none."""
    held = session.frame.starts
    if held is None:
        raise ValueError("No starts here: choose an attack that starts at given candidates.")
    return held


def configure(session: Session, **changes: Any) -> None:  # noqa: ANN401 - fields of the settings
    """Change settings of the attack that starts here: its run in the Attack stage begins anew.

    Raises:
        ValueError: for a value that the setting does not take.
    """
    given = replace(session.attack_config, **changes)
    now = session.frame
    granted_target(now.target, now.truth, given, session.seed)  # refuses what these points lack
    session.attack_config, session.running = given, False
    session.branch.attack = Timeline()
    session.put(attack=now.attack.without_run(now.attack.name))
    begin_starts(session)


def choose_multipliers(session: Session, which: str) -> None:
    """Choose whether runs begin with "drawn" multipliers, as published, or with "fitted" ones."""
    session.multipliers = which
    begin_starts(session)


def place_handle(session: Session, weights: Weights, passing: bool = False) -> None:
    """Put the handle at a place of the triangle: the candidates and their energy follow.

    Where a drag is `passing`, the energy is read from the map, once that is known.

    Raises:
        ValueError: for weights that are negative or do not sum to 1; the handle stays.
    """
    session.show(starts=with_place(starts(session), weights, passing))


def know(session: Session, energies: NDArray[np.float64], finest: bool) -> None:
    """Take over the energies of all starts (side, side), for the headline."""
    held = starts(session)
    if held.energies is not energies or held.finest is not finest:
        session.show(starts=replace(held, energies=energies, finest=finest))


def note_runs(session: Session, found: Runs | None, arrivals: Arrivals | None) -> None:
    """Take over the runs from all places, and where they ended, for the headline."""
    held = starts(session)
    if held.arrivals != arrivals:
        session.show(starts=replace(held, runs=found, arrivals=arrivals, census=None))


def census_problem(session: Session) -> Problem:
    """Return what a census of the starts on screen counts: KKT, with a candidate for each point.

    Raises:
        ValueError: where there are no starts, or the attack trains weights of its own.
    """
    starts(session)
    now = session.frame
    if session.entry.own is not None or now.truth is None:
        raise ValueError(OWN)
    config = session.attack_config
    knows, curve = knowledge_of(config) or "nothing", vars(config).get("curve", ())
    return page_problem(now.target, now.truth, now.heldout, session.seed, knows, curve)


def note_counting(session: Session, counting: tuple[int, int] | None) -> None:
    """Take over how far a census is, for the headline; None where none goes on any more."""
    held = session.frame.starts
    if held is not None and held.counting != counting:
        session.show(starts=replace(held, counting=counting))


def note_census(session: Session, made: Census) -> None:
    """Take over what a census counted, for the headline."""
    held = starts(session)
    session.show(starts=replace(held, census=made, counting=None, end=-1))


def show_end(session: Session, y: Tensor, made: Census, k: int) -> None:
    """Show end number k of a census, of candidates with labels y (m,): its points on the plane."""
    one, held = made.basins[k], starts(session)
    shown = Report(one.x, y, torch.ones(len(y), dtype=one.x.dtype))
    at = with_place(held, held.weights)  # without a run
    session.show(starts=replace(at, candidates=shown, energy=one.hard, census=made, end=k))


PERIOD_S = 12.0  # of the way round the triangle at Play; arbitrary


def travel(session: Session, seconds: float) -> None:
    """Carry the handle on along the edges: truth, unseen points, noise, truth.

    From within the triangle it begins at the truth. ValueError where there is no handle.
    """
    at = starts(session).weights
    gone = edge_place(at) if on_edge(at) else 3.0  # edges behind it
    gone = (gone + 3 * seconds / PERIOD_S) % 3 if gone < 3 else 0.0
    edge, share = divmod(gone, 1)
    here = [0.0, 0.0, 0.0]
    here[int(edge)], here[(int(edge) + 1) % 3] = 1 - share, share
    place_handle(session, (here[0], here[1], here[2]))


def show_run(
    session: Session, mix: tuple[float, float], states: list[AttackState], best: bool = False
) -> None:
    """Put the handle where a run began, and show the candidates at which it ended.

    `best`: whether it is shown as the best of all runs, of which the headline goes on to tell.
    """
    place_handle(session, mix_weights(*mix))
    session.put(starts=replace(starts(session), best=best))
    for state in states[:-1]:
        _keep_state(session, state, passed_by(starts(session), state, False))
    follow_run(session, states[-1], passed_by(starts(session), states[-1], True))


def follow_run(session: Session, state: AttackState, passed: Passed) -> None:
    """Take up a state of the run from the handle, at a place of the triangle with its energy.

    It is shown unless earlier ones are being played. The run of 3 Attack stays as it is.
    """
    _keep_state(session, state, passed)
    if not session.running:
        show_state(session, state)


def _keep_state(session: Session, state: AttackState, passed: Passed) -> None:
    """Take up a state of the run from the handle for its timeline, without showing it."""
    held = starts(session)
    held.line.append(state, numbers, always=True)
    session.put(starts=replace(held, trail=(*held.trail, passed)))


def show_side(session: Session, end: bool) -> None:
    """Show the `end` of the run from the handle, or its start. Nothing where there is no run."""
    line = starts(session).line.states
    if line:
        show_state(session, line[-1 if end else 0])


def show_state(session: Session, state: AttackState) -> None:
    """Show a state of the run from the handle: its candidates, their energy, its trail up to it."""
    session.show(starts=at_state(starts(session), state))


REPLAY_S = 6.0  # of a whole run at Play; arbitrary


def replay(session: Session, seconds: float) -> bool:
    """Show the run from the handle so much further on; from its end it begins anew.

    Returns:
        Whether it goes on from there.
    """
    line = session.timeline
    if session.frame.t >= line.last_t:
        on = 0.0
    else:
        on = session.frame.t + max(1.0, line.last_t * seconds / REPLAY_S)
    at = next((i for i, state in enumerate(line.states) if state.t >= on), len(line.states) - 1)
    show_state(session, line.states[at])
    return at < len(line.states) - 1


# --- one point --------------------------------------------------------------------------------


def show_map(session: Session, kind: str) -> None:
    """Choose what moves: all points of a start, one point, or the halves of one.

    Raises:
        ValueError: for a kind that is not in MAPS.
    """
    if kind not in MAPS:
        raise ValueError(f"a map is one of {', '.join(MAPS)}; got {kind!r}")
    if kind != session.frame.map_kind:
        session.running = False  # what travels is out of sight
        session.show(map_kind=kind, point_map=None)


def draw_map(session: Session, drawn: PointMap | None) -> None:
    """Show a map on the plane, under the points; None for none."""
    session.show(point_map=drawn)


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


def restore(session: Session, history: History[Candidates]) -> None:
    """Show the candidates of `history`, and the map of the point on screen."""
    mapped = candidates(session).mapped
    session.show(landscape=history.amend(replace(history.present, mapped=mapped)))
