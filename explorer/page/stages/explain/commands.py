"""Commands of the explain stage: choose, drag, drop and merge points; show other explanations."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from explorer.engine.explanations.assumptions import obstacle
from explorer.engine.explanations.others import OtherSet
from explorer.engine.explanations.splitting import (
    Explanation,
    free_direction,
    kinks_at,
    merge,
)
from explorer.engine.network import Network
from explorer.page import sight
from explorer.page.frame import Certain
from explorer.page.history import History
from explorer.page.question import LET_GO, OWN, turn
from explorer.page.session import Session
from explorer.page.stages.explain import words
from explorer.research.explained import (
    LEAST,
    Explained,
    Slide,
    first_explained,
    refresh,
    slide_along,
    split_toward,
)
from explorer.research.pictures.axes import Axes
from explorer.research.words import explanations

NO_PAST = "these are the points it was trained on."
IN_SIGHT = (0.7, 0.95)  # of the plane: so far its own split goes, clear of words; arbitrary
SEEN = 0.05  # of its half width: as two, if they are so far apart; arbitrary
NO_FUTURE = "no step was taken back."


def history(session: Session) -> History[Explained]:
    """Return the explanation with the earlier ones. ValueError before the stage was begun."""
    held = session.frame.explain
    if held is None and session.frame.stage == "explain":
        raise ValueError(
            "No point splits here: that is known where all points are on their side. Ask where a "
            "point must be."
        )
    if held is None:
        raise ValueError("Nothing to explain yet: train a network, then turn to Explain.")
    return held


def explanation(session: Session) -> Explained:
    """Return the explanation on screen. ValueError before the stage was begun."""
    return history(session).present


def begin(session: Session) -> None:
    """Find the explanation of the attacked weights by the points they were trained on.

    Of weights with errors no point splits here; what every explanation shares can be asked all
    the same.

    Raises:
        ValueError: for weights of which nothing can be said.
    """
    now = session.frame
    if now.target is None or now.truth is None:
        raise ValueError(explanations.NO_WEIGHTS)
    if not now.target.net.homogeneous:
        raise ValueError(
            "Explanations are of homogeneous networks: of weights with biases beyond the first "
            "layer no theorem says that points explain them."
        )
    if not now.target.separated:
        why = obstacle(now.target)
        if why:
            raise ValueError(f"{why[0].upper()}{why[1:]}")
        session.show(explain=None)
        return
    made = None if now.aim is None or now.aim.certificate is None else now.aim.certificate.residual
    session.show(explain=History(first_explained(now.target, now.truth, made)))


# --- the hand ---------------------------------------------------------------------------
def choose(session: Session, i: int | None) -> None:
    """Choose point i; the point chosen before stays as its partner."""
    state = explanation(session)
    if i is not None and not 0 <= i < state.now.n:
        raise ValueError(f"no point {i}; the explanation holds 0 to {state.now.n - 1}")
    if i != state.selected:
        answer = OWN if state.now is state.truth else {}
        said = "" if answer else state.words
        made = replace(state, selected=i, mate=state.selected, slide=None, words=said, **answer)
        _amend(session, made)


def set_free(session: Session, free: bool) -> None:
    """Set whether a drag may leave the level line: stationarity then holds, the margin does not."""
    if free != explanation(session).free:
        _amend(session, replace(explanation(session), free=free, slide=None))


def pull(session: Session, place: Tensor, free: bool | None = None) -> None:
    """Split the chosen point so that one child is at `place` (d,), or nearest to it.

    Raises:
        ValueError: if no point is chosen, or one that cannot be split: the message says why.
    """
    state = explanation(session)
    free = state.free if free is None else free
    i, slide = _in_hand(state), state.slide
    before, own = (state.now, i) if slide is None else (slide.before, slide.i)
    offset = place - before.x[own]
    u = _direction(state.net, before, own, offset, free)
    at = float(offset @ u)
    if slide is not None and bool((slide.u - u).abs().max() < LEAST):
        slide = replace(slide, at=at, shown=False)
    else:
        reach = 2 * session.extent
        slide = slide_along(state.net, before, own, u, at, reach, state.reference)
    _slide(session, state, slide)


def _in_hand(state: Explained, remedy: str = "click one first") -> int:
    """Return the chosen point. ValueError for none."""
    if state.selected is None:
        raise ValueError(f"No point in hand: {remedy}.")
    return state.selected


def _slide(session: Session, state: Explained, slide: Slide) -> None:
    e = split_toward(state.net, slide.before, slide.i, slide.u, slide.extent, slide.at, slide.reach)
    mate = e.n - 1 if e.n > slide.before.n else None
    words = "One point became two."
    made = refresh(state, e, slide=slide, selected=slide.i, mate=mate, words=words, **OWN)
    put = _push if state.slide is None else _amend  # one drag is one step
    put(session, made)


def _direction(net: Network, e: Explanation, i: int, offset: Tensor, free: bool) -> Tensor:
    if free:
        size = float(offset.norm())
        return offset / size if size > LEAST else torch.eye(len(offset), dtype=offset.dtype)[0]
    found = free_direction(net, e, i)
    if found is None:
        raise ValueError(words.cannot(net, kinks_at(net, e, i)))
    return found[0]


def nudge(session: Session, step: tuple[float, float]) -> None:
    """Move the chosen point by a step of the plane, along its line unless drags are free."""
    state = explanation(session)
    i = _in_hand(state, "press Tab to choose one")
    move = torch.tensor(step[: state.net.d], dtype=torch.float64)
    slide = state.slide
    if slide is None or state.free:
        place = state.now.x[i] + move
    else:
        place = slide.before.x[slide.i] + (slide.at + float(move @ slide.u)) * slide.u
    pull(session, place)


def drop(session: Session) -> None:
    """End the drag: the children become points that can be split again."""
    if session.frame.explain is not None and explanation(session).slide is not None:
        _amend(session, replace(explanation(session), slide=None))


def split_widest(session: Session) -> None:
    """Split the chosen point as far as its cell and the plane allow."""
    i = _in_hand(explanation(session))
    drop(session)
    state = explanation(session)
    ends = _ends(session, state, i)
    if ends is None:
        pull(session, state.now.x[i], free=False)  # says why
        return
    u, far, _ = ends
    pull(session, state.now.x[i] + far * u, free=False)
    drop(session)


def show_split(session: Session) -> None:
    """Ask which points can become two: one is shown so, in sight, with both halves farthest.

    A drag goes on with it.
    """
    explanation(session)
    turn(session)
    state = explanation(session)
    free = (~state.pinned).nonzero().flatten().tolist()
    for edge in IN_SIGHT:
        ways = {i: ends for i in free if (ends := _ends(session, state, i, edge)) is not None}
        i = max(ways, key=lambda i: min(ways[i][1:]), default=-1)
        if i >= 0 and sum(ways[i][1:]) > SEEN * session.axes.x[1]:
            break
    else:
        return
    u, far, _ = ways[i]
    reach = 2 * session.extent
    slide = slide_along(state.net, state.now, i, u, far, reach, state.reference)
    _slide(session, replace(state, selected=i), replace(slide, shown=True))


def _ends(
    session: Session, state: Explained, i: int, edge: float = 1.0
) -> tuple[Tensor, float, float] | None:
    """Return the line of point i, and how far both halves go: to walls, or a share of the plane."""
    found = free_direction(state.net, state.now, i)
    if found is None:
        return None
    u, extent = found
    room = [_in_view(state.now.x[i], s * u, session.axes, edge) for s in (1.0, -1.0)]
    ends = [min(end, 2 * session.extent) for end in (extent.plus, extent.minus)]
    share = min(1.0, *(r / end for r, end in zip(room, ends, strict=True)))  # as `lengths` goes
    return u, share * ends[0], share * ends[1]


def combine(session: Session) -> None:
    """Merge the chosen point with the one chosen before it."""
    state = explanation(session)
    if state.selected is None or state.mate is None:
        raise ValueError("A merge takes two points: click one, then the other.")
    made = merge(state.net, state.now, state.selected, state.mate)
    i = state.selected - (state.mate < state.selected)
    let_go = {**LET_GO, **OWN, "selected": i, "words": explanations.merging(made)}
    _push(session, refresh(state, made.explanation, **let_go))


# --- memory -----------------------------------------------------------------------------
def reset(session: Session) -> None:
    """Go back to the training points, without any answer; undo brings the present ones back."""
    explanation(session)
    turn(session)


def restore(session: Session, history: History[Explained]) -> None:
    """Show the explanation of `history`, with no point chosen."""
    free = explanation(session).free  # whether drags are free is no step: it stays
    let_go = {key: value for key, value in LET_GO.items() if key != "words"}
    sight.come_home(session)
    session.show(explain=history.amend(replace(history.present, **let_go, free=free)), radii=None)
    sight.keep_in_sight(session)


def _amend(session: Session, state: Explained) -> None:
    session.show(explain=history(session).amend(state), radii=None)


def _push(session: Session, state: Explained) -> None:
    session.show(explain=history(session).push(state), radii=None)


# --- what was asked of all explanations ---------------------------------------------------------
def take_forced(session: Session, mass: Tensor, words: str = "") -> None:
    """Show how much mass every explanation has at each point of the truth, and say so."""
    turn(session, forced=mass, words=words)


def take_radii(session: Session, made: Certain | None) -> None:
    """Show the map of radii under the points; None for none."""
    if made is None or session.frame.question == "map":  # of which this is more
        session.show(radii=made)
    else:
        turn(session, radii=made)


def take_farthest(session: Session, found: OtherSet) -> None:
    """Put the farthest explanation on screen, beside the truth; undo takes it back.

    Where none is farther than the radius that tells points, the truth stays, and this is said.
    """
    turn(session, found.explanation if found.other else None, far=found)


def _in_view(x: Tensor, u: Tensor, axes: Axes, edge: float) -> float:
    """Return how far x + a u stays within a share `edge` of the plane."""
    moving = u.abs() > LEAST
    centre, half = (torch.from_numpy(v)[: len(x)] for v in (axes.centre, axes.half))
    room = (edge * half - u.sign() * (x - centre))[moving] / u.abs()[moving]
    return max(float(room.min()), LEAST)
