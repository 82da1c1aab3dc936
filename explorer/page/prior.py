"""Commands of the prior dial, and of the curve that is drawn on the plane for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from explorer.engine.arrays import Array
from explorer.engine.attacks.descent import DescentConfig
from explorer.engine.known import knowledge_of
from explorer.engine.settings import setting_of
from explorer.page import play
from explorer.page.frame import Frame
from explorer.page.history import History
from explorer.page.session import Session

Place = tuple[float, float]
Curve = tuple[float, ...]  # x and y of one corner after the other
DRAWN = "drawn"
OF_IMAGES = "components"  # the plane has no public images
# Shares of the plane's width; arbitrary.
LEAST = 0.05  # a shorter curve is a click
CLOSED = 0.04  # of the ends of a closed curve
BEND = 0.004  # corners so near to the path without them are left out
MOST = 100  # corners, so that a link holds them; arbitrary
TOO_SHORT = (
    "The curve is too short: {} within a twentieth of the plane. Drag farther, or add corners with "
    "Space."
)


def offers(frame: Frame) -> list[tuple[str, str]]:
    """Return words and value of what the dial offers here: on a line no curve is to be drawn."""
    without = {OF_IMAGES, *[DRAWN] * (frame.dataset.d == 1)}
    labels = setting_of(DescentConfig, "knows").choices
    return [(words, value) for words, value in labels if value not in without]


def present(session: Session) -> str:
    """Return where the dial stands: at the curve while one is drawn."""
    if session.frame.sketch is not None:
        return DRAWN
    return knowledge_of(session.attack_config) or "nothing"


def choose(session: Session, knows: str) -> None:
    """Grant something of the points to the attack: a curve that was drawn before, or a new one.

    Raises:
        ValueError: where the points do not have that.
    """
    curve = _history(session).present
    if knows == DRAWN and not curve:
        begin(session)
        return
    _put_away(session)
    play.configure(session, knows=knows, **({"curve": curve} if knows == DRAWN else {}))


def begin(session: Session) -> None:
    """Begin to draw a curve on the plane.

    Raises:
        ValueError: on a line.
    """
    if session.frame.dataset.d != 2:
        raise ValueError(
            "A curve is drawn on the plane; these points lie on a line, where it is a segment. "
            "Take the circle, which is that segment there."
        )
    session.running = False
    _sketch(session, ())


def add(session: Session, place: Place, shown: bool = True) -> None:
    """Add a corner to the curve that is drawn; not `shown` it waits for the next redraw."""
    now = session.frame
    if now.sketch is not None:
        session.put(attack=replace(now.attack, sketch=(*now.sketch, place)))
        if shown:
            session.show()


def take_back(session: Session) -> None:
    """Take back the last corner of the curve that is drawn."""
    if session.frame.sketch is not None:
        _sketch(session, session.frame.sketch[:-1])


def begin_stroke(session: Session, place: Place) -> None:
    """Begin the curve anew where a hand presses."""
    if session.frame.sketch is not None:
        session.put(attack=replace(session.frame.attack, sketch=(place,)))


def finish(session: Session) -> None:
    """Grant the curve that was drawn; its ends are joined where they are near.

    Raises:
        ValueError: for a curve too short; another can be drawn at once.
    """
    drawn = session.frame.sketch
    if drawn is None:
        return
    corners, wide = np.array(drawn).reshape(-1, 2), 2 * session.axes.x[1]
    long = float(np.linalg.norm(np.diff(corners, axis=0), axis=1).sum())
    if long < LEAST * wide:
        _sketch(session, ())
        count = len(np.unique(corners, axis=0))
        raise ValueError(TOO_SHORT.format("one corner" if count == 1 else f"{count} corners"))
    if np.linalg.norm(corners[0] - corners[-1]) <= CLOSED * wide and long > 4 * CLOSED * wide:
        corners = np.concatenate([corners[:-1], corners[:1]])
    off = BEND * wide
    while len(bent := simple_path(corners, off)) > MOST:
        off *= 2
    _grant(session, _history(session).push(_numbers(bent)))


def cancel(session: Session) -> None:
    """Draw no curve; what the attack knew before, it still knows."""
    if session.frame.sketch is not None:
        _put_away(session)
        session.show()


def undo(session: Session) -> None:
    """Go back to the curve before, or to none. ValueError where none was drawn."""
    _turn(session, History.undo, "no curve was drawn before.")


def redo(session: Session) -> None:
    """Take the last undo back. ValueError where nothing was undone."""
    _turn(session, History.redo, "no curve was taken back.")


def simple_path(corners: Array, off: float) -> Array:
    """Return those corners (k, 2) of a path from which it lies at most `off` away.

    Source: Ramer 1972, Douglas and Peucker 1973.
    """
    if len(corners) < 3:
        return corners
    begin, along = corners[0], corners[-1] - corners[0]
    away = corners - begin
    share = away @ along / max(float(along @ along), 1e-300)
    gaps = np.linalg.norm(away - np.clip(share, 0, 1)[:, None] * along, axis=1)
    k = int(gaps.argmax())
    if gaps[k] <= off:
        return corners[[0, -1]]
    parts = simple_path(corners[: k + 1], off)[:-1], simple_path(corners[k:], off)
    return np.concatenate(parts)


def _numbers(corners: Array) -> Curve:
    """Return corners as a setting, to four digits: finer than a pixel."""
    return tuple(float(f"{v:.4g}") for v in corners.ravel().tolist())


def _history(session: Session) -> History[Curve]:
    """Return the curves that were drawn; one that came with the settings is the present one."""
    held, curve = session.frame.attack.curves, vars(session.attack_config).get("curve", ())
    return held.push(curve) if curve and curve != held.present else held


def _turn(session: Session, turn: Callable[[History[Curve]], History[Curve]], nothing: str) -> None:
    held = _history(session)
    there = turn(held)
    if there is held:
        raise ValueError(f"Nothing to turn to: {nothing}")
    _grant(session, there)


def _grant(session: Session, curves: History[Curve]) -> None:
    """Let the attack know the present one of these curves, or nothing where there is none."""
    before = session.frame.attack
    session.put(attack=replace(before, curves=curves, sketch=None))
    try:
        knows = DRAWN if curves.present else "nothing"
        play.configure(session, knows=knows, curve=curves.present)
    except ValueError:
        session.put(attack=before)
        raise


def _put_away(session: Session) -> None:
    session.put(attack=replace(session.frame.attack, sketch=None))


def _sketch(session: Session, corners: Sequence[Place]) -> None:
    session.show(attack=replace(session.frame.attack, sketch=tuple(corners)))
