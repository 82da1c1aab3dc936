"""Commands of the last act: where a point must be, the truth brought back, a region forbidden."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from torch import Tensor

from explorer.engine.attacks.target import Target
from explorer.engine.explanations.cone import FINE, Bound, Cone
from explorer.engine.explanations.needed import Needed, merged_points, needed_places
from explorer.engine.explanations.places import Hole
from explorer.engine.progress import Progress, no_progress, part_progress
from explorer.page.aim import limit_of
from explorer.page.frame import Aim, Proof
from explorer.page.question import turn
from explorer.page.session import Session
from explorer.research.runs import RADIUS, cone_around

DISC = 0.12  # of the plane's half width: radius of the first disc; arbitrary
SIZES = (0.02, 0.6)  # likewise, the least and the largest; arbitrary
ROUGH = 2  # rounds of the search while the disc moves; arbitrary
SAME_PLACE = 0.01  # of the plane's half width: mass so near is drawn as one point; arbitrary
STEP_S = 0.04  # between two places that were known before; arbitrary: one sees them come
RIVALS = 5  # points of the best set that are tried to do without, the heaviest first; arbitrary
GROWN = 1.15  # times as wide by a turn of the wheel, or a key; arbitrary


def proof(session: Session) -> Proof:
    """Return the last act. ValueError before it was begun."""
    made = session.frame.proof
    if made is None:
        raise ValueError("Nothing is asked yet: press Where must a point be?")
    return made


def begin(session: Session) -> None:
    """Take the truth away, and ask where a point must be."""
    target = session.frame.target
    if target is None or session.frame.stage != "explain":
        raise ValueError("Turn to Explain first: there the question is asked.")
    turn(session, asked=Proof(target))


def leave(session: Session) -> None:
    """Go back to the points that can be dragged."""
    session.show(asked=None)


def proofs(target: Target, aim: Aim, progress: Progress = no_progress) -> Iterator[Needed | Cone]:
    """Yield the places as they are proven, at last the cone; those of `aim` come first, all."""
    known, truth = aim.needed, aim.truth
    begun, ended = (0.0, 0.3) if known is None else (0.5, 1.0)  # of the cone; one bar for all
    if known is not None:
        for k in range(len(known.log) + 1):
            progress(begun * k / (len(known.log) + 1))
            yield known.until(k)
            time.sleep(STEP_S)
        yield known
    progress(begun)
    cone = cone_around(target, truth, part_progress(progress, begun, ended))
    if known is None:
        limit = max(limit_of(aim, cone), FINE)
        yield from needed_places(cone, limit, RADIUS, part_progress(progress, ended, 1.0))
    yield cone


def take(session: Session, made: Needed | Cone) -> None:
    """Show the places that are known so far; those that were kept, or the cone, are all."""
    if isinstance(made, Cone):
        finish(session, made)
        return
    aim = session.frame.aim
    whole = aim is not None and made is aim.needed
    session.show(asked=replace(proof(session), needed=made, whole=whole))


def finish(session: Session, cone: Cone) -> None:
    """Show that these are all, and keep them with the weights; the eraser has its cone.

    Where there is no place, the plane shows another explanation, without a point of the best. A
    disc that was put down before gets its answer.
    """
    held = replace(proof(session), cone=cone)
    if held.needed is not None:
        keep(session, held.needed)
    if held.centre is not None:
        _put_disc(session, held)
        return
    session.show(asked=_rival(session, _at_rest(session, held)))


def _rival(session: Session, held: Proof) -> Proof:
    """Return the act with a disc that some explanation, as good, does without; as it is, if none.

    Where there are places, none is looked for; the disc lies whole on the plane.
    """
    if held.cone is None or held.points is None:
        return held
    d = held.target.net.d
    away = np.abs(held.points[:, :d] - session.axes.centre[:d]) / session.axes.half[:d]
    for row in held.points[(away <= 1 - DISC).all(axis=1)][:RIVALS]:
        disc = replace(held, centre=tuple(row[:-2].tolist()), radius=DISC * session.axes.x[1])
        made = held.cone.best_without(hole_of(disc.disc), rounds=ROUGH)
        if made.high <= held.limit:
            return _answer(session, disc, made, exact=False)
    return held


def _at_rest(session: Session, held: Proof) -> Proof:
    """Return the act without a disc: where there is no place, the best set is drawn."""
    points = None
    if held.cone is not None and not held.places:
        least = held.cone.least.take(held.cone.least.y != 0)
        points = merged_points(least, SAME_PLACE * session.axes.x[1])
    return replace(held, centre=None, refit=None, points=points, exact=True)


def keep(session: Session, made: Needed) -> None:
    """Keep the places with the weights that they are of."""
    aim = session.frame.aim
    if aim is not None:
        session.put(aim=replace(aim, needed=made))


def reveal(session: Session) -> None:
    """Bring the truth back, and lift the disc that was argued with; or hide it again."""
    held = proof(session)
    session.show(asked=replace(_at_rest(session, held), revealed=not held.revealed))


# --- the eraser ---------------------------------------------------------------------------------
def forbid(session: Session, place: Tensor) -> None:
    """Put the middle of the disc at a place (d,): no point may be there."""
    held = proof(session)
    radius = held.radius or DISC * session.axes.x[1]
    _put_disc(session, replace(held, centre=tuple(place.tolist()), radius=radius))


def resize(session: Session, wider: bool) -> None:
    """Make the disc wider or narrower by one turn of the wheel."""
    held = proof(session)
    low, high = (size * session.axes.x[1] for size in SIZES)
    radius = (held.radius or DISC * session.axes.x[1]) * (GROWN if wider else 1 / GROWN)
    _put_disc(session, replace(held, radius=min(max(radius, low), high)))


def _put_disc(session: Session, held: Proof) -> None:
    """Show the disc with a first explanation without it: one picture a move, and none is behind."""
    if held.centre is not None and held.cone is not None:
        made = held.cone.best_without(hole_of(held.disc), before=held.refit, rounds=ROUGH)
        held = _answer(session, held, made, exact=False)
    session.show(asked=held)


def _answer(session: Session, held: Proof, made: Bound, exact: bool) -> Proof:
    points = merged_points(made, SAME_PLACE * session.axes.x[1])
    return replace(held, refit=made, points=points, exact=exact)


def allow(session: Session) -> None:
    """Lift the disc: points may be anywhere again."""
    session.show(asked=_at_rest(session, proof(session)))


def take_refit(session: Session, disc: tuple[float, ...], made: Bound) -> None:
    """Show the best explanation without a disc, searched to the end, if the disc is still there."""
    held = proof(session)
    if held.disc == disc:
        session.show(asked=_answer(session, held, made, exact=True))


def hole_of(disc: tuple[float, ...]) -> Hole:
    """Return the region that a disc forbids, by its centre and radius."""
    return Hole.disc(np.array(disc[:-1]), disc[-1])
