"""What the last act says: where a point must be, what the truth shows, what the eraser does."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.engine.arrays import Array, Flags, as_array
from explorer.engine.explanations.cone import FINE
from explorer.engine.explanations.needed import Needed
from explorer.engine.number_words import coarse_share, count, digits_above, percent, share
from explorer.engine.statement import Action, Statement
from explorer.page.frame import Frame, Proof
from explorer.page.plane.marks import matches, traceless_points
from explorer.page.words.screen import ASK, COMPARE
from explorer.style import CLASSES

LIFT = "Allow points again"
WIDER, NARROWER = "Wider", "Narrower"
ALLOW = Action("allow-points", LIFT)
REVEAL = Action("reveal-points", "Reveal the points")
SOUGHT = "The best set without a point in the disc is being sought."
FORBID = "Press the plane to forbid points in a disc, and see what else explains the weights."
GAUGE = "Unexplained share of the weights"
LEAST, HERE = "best set", "without a point here"
SEARCHED = "so far"
CLOSED_IN, WIDTH = "How wide each place is", "width"
ENDS = ("narrowest", "widest")
# Of each point, once the truth is shown; what is proven first.
EACH_POINT = "What is known of each point"
PROVEN, MET, UNPROVEN = "must be there", "recovered, not proven", "nothing proven"
NO_TRACE = "no trace"
HIDE = "Hide the points"
NEXT = Action("landscape", "Try other starts")
NOWHERE = "No place must hold a point"
FREE = "No point is needed in the disc"
FILLED = "Filled points: the best set without one there."


def statement(frame: Frame, held: Proof) -> Statement:
    """Return the headline of the last act."""
    if held.centre is not None and held.refit is not None:
        return _argument(frame, held)
    made = held.needed
    if made is None:
        words = "The training points are out of sight. What follows is of the weights alone."
        return Statement(ASK, words)
    found, fold = len(made.rows), _numbers(frame, held)
    if not held.done:
        title = f"{count(found, 'place')} must hold a point, so far" if found else ASK
        words = "From the weights alone: a place begins wide, and narrows as far as is proven."
        return Statement(title, words, "", fold)
    if not found:
        return _none(frame, held, fold)
    if held.revealed:
        return _revelation(frame, held, fold)
    title = f"{count(found, 'place')} must hold a training point"
    if not frame.is_told:
        title = f"{count(found, 'place')} likely to hold a training point"
    return Statement(title, claim(frame, held), "good", fold, reveal_action(frame, held))


def hint(frame: Frame, held: Proof) -> str:
    """Return what can be done once all is known, or that a disc has no answer yet; "" else."""
    if held.centre is not None:
        return "" if held.refit is not None else _region_words(frame, SOUGHT)
    return _region_words(frame, FORBID) if held.done else ""


def claim(frame: Frame, held: Proof) -> str:
    """Return what is proven of the places; of which sets, stands under Numbers."""
    where = "each of them" if held.places > 1 else "it"
    return (
        f"Every set that explains the weights {_as_good(frame, held)} has a point of its colour in "
        f"{where}."
    )


def reveal_action(frame: Frame, held: Proof) -> Action | None:
    """Return the way to the truth, where there is one that is hidden."""
    return REVEAL if frame.is_told and not held.revealed else None


def is_open(held: Proof) -> bool:
    """Return whether a disc has no verdict yet, and may get one."""
    bound = held.refit
    return bound is not None and not held.exact and bound.low <= held.limit < bound.high


def leaver(frame: Frame, made: Needed) -> str:
    """Return who leaves the residual that other explanations are held against."""
    return "the training points leave" if _is_of_points(frame, made) else "is allowed"


def limit_name(frame: Frame, made: Needed) -> str:
    """Return what a chart calls the residual that other explanations are held against."""
    return "the training points" if _is_of_points(frame, made) else "allowed"


def _is_of_points(frame: Frame, made: Needed) -> bool:
    """Return whether the training points set the residual that others may leave."""
    return frame.is_told and made.limit > FINE


def _as_good(frame: Frame, held: Proof) -> str:
    assert held.needed is not None
    if held.needed.limit <= FINE:
        return f"but for {share(held.needed.limit)}"
    return "equally well" if frame.is_told else "as well as a threshold asks"


def _numbers(frame: Frame, held: Proof) -> tuple[tuple[str, str], ...]:
    made = held.needed
    assert made is not None
    left, less = share(made.limit), ""
    may = f"A set counts as well where it leaves {left} of the weights unexplained, or less."
    if _is_of_points(frame, made):
        may = f"The training points leave {left} of the weights unexplained: so may another set."
        less = ", less than the training points" if share(made.least) != left else ""
    rows = [may, _sets_meant(made), f"The best of these sets leaves {share(made.least)}{less}."]
    if len(made.rows):
        low, high = (digits_above(wide) for wide in widths_of(made)[[0, -1]])
        rows.append(f"Each place is {low if low == high else f'{low} to {high}'} wide.")
    return tuple((row, "") for row in rows)


def _sets_meant(made: Needed) -> str:
    margins = f"whose margins are up to {made.top:.3g} times the smallest"
    if made.top == inf:
        margins = "of all margins, at the price of the weight decay"
    return f"Every set is meant whose points lie within ±{made.box:.2g} of 0, and {margins}."


def _none(frame: Frame, held: Proof, fold: tuple[tuple[str, str], ...]) -> Statement:
    made = held.needed
    assert made is not None
    words = f"{_trial_words(frame, held)} The best set is drawn."
    return Statement(NOWHERE, words, "warn", fold, reveal_action(frame, held) or way_on(frame))


def _trial_words(frame: Frame, held: Proof) -> str:
    """Return of how many places it is shown that another set does without a point there."""
    made = held.needed
    assert made is not None
    which, rest = "each place tried", ""
    if made.spared < made.asked:
        which = "most places tried" if 2 * made.spared > made.asked else "some places tried"
        rest = " Of the others nothing is proven."
    good = _as_good(frame, held)
    return f"For {which} another set without a point there explains the weights {good}.{rest}"


def way_on(frame: Frame) -> Action:
    """Return the way to the landscape, or beyond it where its runs have come to a result."""
    return COMPARE if frame.is_answered else NEXT


def _revelation(frame: Frame, held: Proof, fold: tuple[tuple[str, str], ...]) -> Statement:
    made, known = held.needed, known_points(frame, held)
    assert made is not None
    right, n = int(known.proven.sum()), len(known.proven)
    words = place_words(right, len(made.rows))
    if right < n:
        words += _others(known)
    title = f"{right} of {n} points must be in {'its' if right == 1 else 'their'} place"
    tone = "good" if right == len(made.rows) else "bad"
    return Statement(title, words, tone, fold, way_on(frame))


class KnownPoints(NamedTuple):
    """What the act and the stages before it know of each training point; each is of one kind.

    Attributes:
        proven: which points (n,) stand for a place that must hold one.
        gone: which others leave no trace in the weights.
        met: which of the rest the attack recovered, more than chance does.
        place: of each point (n,) the place that it stands for; -1 for none.
    """

    proven: Flags
    gone: Flags
    met: Flags
    place: NDArray[np.int64]


def known_points(frame: Frame, held: Proof) -> KnownPoints:
    """Return what is known of the training points, once the places stand."""
    made, truth, verdict = held.needed, frame.truth, frame.attack.verdict
    assert made is not None and truth is not None
    place = np.full(truth.n, -1)
    stands = made.points_of(as_array(truth.x), as_array(truth.y))
    place[stands[stands >= 0]] = np.flatnonzero(stands >= 0)
    proven, none = place >= 0, np.zeros(truth.n, dtype=bool)
    lost = traceless_points(frame, truth.n)
    gone = none if lost is None else lost & ~proven
    match = matches(frame)
    ruled_out = verdict is not None and verdict.beyond_chance and len(match) == truth.n
    met = (match >= 0) & ~proven & ~gone if ruled_out else none
    return KnownPoints(proven, gone, met, place)


def _others(known: KnownPoints) -> str:
    """Return what is known of the points without a place, though the attack recovered them."""
    right, gone, met = (int(some.sum()) for some in (known.proven, known.gone, known.met))
    rest = len(known.proven) - right - gone
    leave = "is off the margin and leaves" if gone == 1 else "are off the margin and leave"
    off = f"{gone} {leave} no trace"
    if not rest:
        return f" The other {off}."
    said = f" Of {rest if gone else f'the other {rest}'} nothing is proven"
    if met:
        them = ("it" if rest == 1 else "them") if met == rest else f"{met} of them"
        said += f", though the attack recovered {them}, too"
    return f"{said}; {off}." if gone else f"{said}."


def widths_of(made: Needed) -> Array:
    """Return how wide each place is, in units of the data (p,)."""
    return 2.0 * (made.rows[:, -3] + made.reach)


def places_told(made: Needed) -> list[str]:
    """Return of each place its class and its width."""
    return [
        f"{CLASSES[int(label)].sign}: width {digits_above(wide)}"
        for label, wide in zip(made.rows[:, -2], widths_of(made), strict=True)
    ]


def place_words(right: int, places: int) -> str:
    """Return what the truth shows of the places: how many hold one of its points."""
    if right < places:
        return f"{right} of {places} places hold a point of their colour."
    return f"{'Each' if places > 1 else 'The'} place holds a point of its colour."


def _outside(held: Proof) -> str:
    """Return where the other set has the points of places that the disc cuts; "" if none."""
    made = held.needed
    assert made is not None and held.centre is not None
    cut = int(made.meets(held.centre, held.radius).sum())
    if not cut:
        return ""
    which = "the place" if cut == 1 else f"each of the {cut} places"
    return f" In {which} that the disc cuts it has one outside the disc."


def _argument(frame: Frame, held: Proof) -> Statement:
    """Return what it costs to do without points in the region."""
    made = _of_disc(frame, held)
    return replace(
        made, title=_region_words(frame, made.title), words=_region_words(frame, made.words)
    )


def _region_words(frame: Frame, text: str) -> str:
    """Return words on a disc; on a line it is a strip."""
    return text.replace("disc", "strip") if frame.dataset.d == 1 else text


def _of_disc(frame: Frame, held: Proof) -> Statement:
    made, bound, cone = held.needed, held.refit, held.cone
    assert bound is not None and cone is not None and made is not None
    least = cone.least.high
    fold = (
        *_numbers(frame, held),
        (f"By proof every set without a point there leaves {percent(bound.low)} or more.", ""),
    )
    title = f"Without a point in the disc {coarse_share(bound.high)} is unexplained"
    if bound.high <= 1.02 * least:
        title = FREE
    action, whose = reveal_action(frame, held) or ALLOW, leaver(frame, made)
    if bound.low > made.limit:
        words = f"By proof more than {whose}: a training point is in the disc. {FILLED}"
        return Statement(title, words, "good", fold, action)
    if bound.high <= made.limit:
        title = FREE if held.places else NOWHERE
        words = (
            "The filled points are another set: none in the disc, and no more unexplained than "
            f"{whose}.{_outside(held)}"
        )
        if not held.places:  # the disc was put there to show it
            words = f"{_trial_words(frame, held)} One is drawn."
        return Statement(title, words, "warn", fold, action)
    words = f"More than {whose}, but no proof says that none leaves less. {FILLED}"
    if is_open(held):
        words = f"More than {whose}, so far: let the disc rest for the proof. {FILLED}"
    return Statement(title, words, "", fold, action)
