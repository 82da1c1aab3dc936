"""What a step of a lesson may wait for: a small closed list, each a predicate of the frame.

A goal is of the moment on screen, or of the newest certificate or verdict of the run on screen.
What an attack recovered counts only where it began without any share of the truth.

    >>> from explorer.page.lessons.goals import Goal
    >>> Goal(name="recovered at least", value=8).words
    'Recover at least 8 points'
    >>> Goal(name="p at most", value=2)
    Traceback (most recent call last):
        ...
    ValueError: the goal 'p at most' takes a number from 0 to 1; got 2.0
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import torch

from explorer.engine.certificate import ON_MARGIN, holds_margin
from explorer.engine.number_words import PLAIN, plain
from explorer.engine.scoring import Verdict
from explorer.engine.settings import setting, settings
from explorer.page.frame import STAGES, Frame
from explorer.research.explained import Explained, misfit

ELSEWHERE = "task of its page"  # not of the frame: that page tells it, `course.note_done`
SMALL_SCALE = 1e-4  # of the second network that the task of the page of images asks for
NEAR_HALF = 0.1  # of the edge of the triangle, within which a hand is half-way; arbitrary
TURNED = "stage on screen"


def _present_stage(stage: float) -> float:
    """Return the present number of a stage: Explain was 5, and Landscape 4."""
    return {4.0: 5.0, 5.0: 4.0}.get(stage, stage)


def _root(energy: float) -> float:
    return energy**0.5 if energy >= 0 else energy  # which is refused


# Names in lesson files of before, each with its present name, and its number by the one of before.
FORMER: dict[str, tuple[str, Callable[[float], float]]] = {
    "page opened": (ELSEWHERE, float),
    "turned to stage": (TURNED, _present_stage),
    "energy at most": ("start unexplained at most", _root),
    "energy at least": ("start unexplained at least", _root),
    "run without truth down to": ("run without truth unexplained at most", _root),
}


@dataclass(frozen=True)
class Task:
    """One row of the list.

    Attributes:
        words: what the student reads; {} is the number.
        is_met: whether a frame meets it, given the number.
        low: the least number; None where the goal takes none.
        high: the largest.
        usual: what the form proposes.
        percent: whether the number is a share, which the page writes in per cent.
        by: the actions of the headline that lead to it, by key (`page.play.ACTIONS`).
    """

    words: str
    is_met: Callable[[Frame, float], bool]
    low: float | None = None
    high: float = math.inf
    usual: float = 0.0
    percent: bool = False
    by: tuple[str, ...] = ()

    def number_of(self, value: float) -> float:
        """Return the number as the page writes it."""
        return float(f"{100 * value:.12g}") if self.percent else value

    def value_of(self, number: float) -> float:
        """Return the number that a person means who writes this."""
        return float(f"{number / 100:.12g}") if self.percent else number


# --- what is read off a frame -------------------------------------------------------------------
def _margins(frame: Frame) -> torch.Tensor | None:
    """Return the margins q over the least of them; None where the points are not separated."""
    state = frame.training.state
    if state is None or not len(state.q) or not float(state.q.min()) > 0:
        return None
    return state.q / state.q.min()


def _on_margin(frame: Frame) -> int:
    """Return how many points hold the margin."""
    q = _margins(frame)
    return 0 if q is None else int(holds_margin(q).sum())


def _off_margin(frame: Frame) -> int:
    """Return how many points do not hold the margin; 0 where one alone does: it is inside it."""
    q, on = _margins(frame), _on_margin(frame)
    return 0 if q is None or on < 2 else len(q) - on


def _point_beyond(frame: Frame, k: float) -> bool:
    """Return whether the newest of k points or more is farther out than the margin of the first.

    Those are k - 1; others that were placed beside them, on a wrong side too, do not count.
    """
    state = frame.training.state
    if state is None or len(state.q) < k:
        return False
    return bool(state.q[-1] > (1 + ON_MARGIN) * state.q[: max(int(k) - 1, 1)].min())


def _all_on_margin(frame: Frame, _: float) -> bool:
    q = _margins(frame)
    return q is not None and _on_margin(frame) == len(q)


def _is_solved(frame: Frame, _: float) -> bool:
    """Return whether the network was solved, not trained."""
    part = frame.training
    return part.state is not None and not part.t and part.is_exact


def _gamma(frame: Frame) -> float:
    state = frame.training.state
    return -math.inf if state is None or _margins(frame) is None else state.gamma_bar


def _residual(frame: Frame) -> float:
    part = frame.training
    known = part.certificate is not None and part.certified is part.state
    separated = _margins(frame) is not None
    return part.certificate.residual if known and separated and part.certificate else math.inf


def _verdict(frame: Frame) -> Verdict | None:
    """Return the verdict on an attack that took a step and began without the truth."""
    part = frame.attack
    begun = part.judged is not None and part.judged.t > 0
    return part.verdict if begun and part.mix[0] * part.mix[1] == 0 else None


def _found_count(frame: Frame) -> int:
    made = _verdict(frame)
    return -1 if made is None else made.found


def _has_ended(frame: Frame, _: float) -> bool:
    """Return whether the attack is at its end, and judged there."""
    part = frame.attack
    return frame.stage == "attack" and frame.status.over and part.judged is part.state


def _at_most(frame: Frame, k: float) -> bool:
    """Return whether a whole attack found so few."""
    return _has_ended(frame, k) and 0 <= _found_count(frame) <= k


def _p(frame: Frame) -> float:
    made = _verdict(frame)
    return math.inf if made is None or math.isnan(made.p_value) else made.p_value


def _count(frame: Frame, name: str) -> float:
    """Return a number that the present attack counts by itself; nan where it does not."""
    state = frame.attack.state
    return math.nan if state is None else state.numbers().get(name, math.nan)


def _share_left(frame: Frame) -> float:
    """Return the share that the candidates at the handle leave of the weights."""
    held = frame.starts
    return math.nan if held is None or held.rough else math.sqrt(max(0.0, held.energy))


def _is_half_way(frame: Frame, _: float) -> bool:
    """Return whether the handle rests half-way between truth and unseen."""
    held = frame.starts
    if held is None or held.rough:
        return False
    truth, unseen, noise = held.weights
    return abs(truth - unseen) <= NEAR_HALF and noise <= NEAR_HALF / 2


def _run_without_truth(frame: Frame, share: float) -> bool:
    """Return whether a run from a start without the truth has come down to this share."""
    held = frame.starts
    if held is None or len(held.trail) < 2 or held.weights[0] > 0:
        return False
    return _share_left(frame) <= share


def _has_moved(frame: Frame, far: float) -> bool:
    held = frame.landscape
    if held is None:
        return False
    apart = (held.present.x - held.present.truth.x.double()).norm(dim=1)
    return bool(len(apart)) and float(apart.max()) >= far


def _of_explanation(holds: Callable[[Explained], bool]) -> Callable[[Frame, float], bool]:
    """Return whether something holds of the explanation on screen."""
    return lambda frame, _: frame.explain is not None and holds(frame.explain.present)


def _needed_places(frame: Frame) -> float:
    held = frame.proof
    return math.nan if held is None or not held.done or not held.needed else len(held.needed.rows)


def _needs_region(frame: Frame) -> bool:
    """Return whether more is left without points in the disc than may be."""
    held = frame.proof
    if held is None or held.needed is None or held.refit is None or not held.disc:
        return False
    return held.refit.low > held.needed.limit


def _has_comparison(frame: Frame, _: float) -> bool:
    return frame.arena is not None and frame.arena.target is frame.target


def _of_each_class(frame: Frame) -> int:
    """Return the size of the smallest class; 0 where there is but one."""
    y = frame.dataset.y.tolist()
    return min((y.count(label) for label in set(y)), default=0) if len(set(y)) > 1 else 0


def _points_map(frame: Frame, _: float) -> bool:
    return frame.stage == "landscape" and frame.map_kind == "point" and frame.point_map is not None


def _least(read: Callable[[Frame], float]) -> Callable[[Frame, float], bool]:
    return lambda frame, value: read(frame) >= value  # never true of nan


def _most(read: Callable[[Frame], float]) -> Callable[[Frame, float], bool]:
    return lambda frame, value: bool(np.isfinite(read(frame)) and read(frame) <= value)


_TRAINED, _ATTACKED = ("train",), ("attack", "play", "reseed", "restart", "candidates")
KINDS: dict[str, Task] = {
    "points at least": Task("Draw at least {} points", _least(lambda f: f.dataset.n), 1, 200, 4,
                             by=("points",)),
    "points of each class at least": Task("Draw at least {} points of each class",
                                          _least(_of_each_class), 1, 100, 2,
                                          by=("points", "other-class")),
    TURNED: Task("Turn to stage {}", lambda f, k: f.stage == list(STAGES)[int(k) - 1],
                 1, len(STAGES), 2, by=("attack",)),
    "trained at least": Task("Train for at least {} steps", _least(lambda f: f.training.t), 1,
                             usual=100, by=_TRAINED),
    "separated": Task("All points on the side of their class",
                      lambda f, _: _margins(f) is not None, by=_TRAINED),
    "on the margin at least": Task("At least {} points hold the margin",
                                   _least(_on_margin), 1, 200, 4, by=_TRAINED),
    "off the margin at least": Task("At least {} points do not hold the margin",
                                    _least(_off_margin), 1, 200, 1,
                                    by=_TRAINED),
    "point beyond the margin": Task("Place a point beyond its thin line",
                                    _point_beyond, 1, 200, 9, by=("points",)),
    "all points at the margin": Task("All points hold the margin", _all_on_margin, by=_TRAINED),
    "exact network": Task("The exact network is on screen", _is_solved, by=_TRAINED),
    "normalised margin at least": Task("A normalised margin of at least {}", _least(_gamma), 0, 1,
                                       0.1, by=_TRAINED),
    "residual at most": Task("The points leave at most {}% of the weights unexplained",
                             _most(_residual), 0, 1, 0.05, percent=True, by=_TRAINED),
    "attacked at least": Task("Attack for at least {} steps", _least(lambda f: f.attack.t), 1,
                              usual=100, by=_ATTACKED),
    "attack ended": Task("Attack to the end", _has_ended, by=_ATTACKED),
    "recovered at least": Task("Recover at least {} points", _least(_found_count), 1, 200, 4,
                               by=_ATTACKED),
    "recovered at most": Task("At the end, at most {} points recovered", _at_most,
                              0, 200, 0, by=_ATTACKED),
    "p at most": Task("Recover more than chance does: p at most {}", _most(_p), 0, 1, 0.05,
                       by=_ATTACKED),
    "proven at least": Task("Prove at least {} points or places",
                            _least(lambda f: _count(f, "proven")), 1, 200, 1, by=_ATTACKED),
    "needed at least": Task("Find at least {} places that the weights need",
                            _least(lambda f: _count(f, "needed")), 1, 200, 1, by=_ATTACKED),
    "upper loss at most": Task("The weights agree, but for a gap of at most {}",
                               _most(lambda f: _count(f, "l_upper")), 0, usual=1e-3, by=_ATTACKED),
    "energies known": Task("The map of all starts is on screen", lambda f, _: (
        f.starts is not None and f.starts.energies is not None)),
    "starts counted": Task("A census of the starts is on screen", lambda f, _: (
        f.starts is not None and f.starts.census is not None)),
    "start unexplained at most": Task("Move the handle to at most {}% unexplained",
                                      _most(_share_left), 0, 1, 0.2, percent=True),
    "start unexplained at least": Task("Move the handle to at least {}% unexplained",
                                       _least(_share_left), 0, 1, 0.7, percent=True),
    "start half-way": Task("Move the handle half-way from truth to unseen", _is_half_way),
    "run without truth unexplained at most": Task(
        "Attack from a start without truth, down to {}% unexplained",
        _run_without_truth, 0, 1, 0.3, percent=True),
    "map of one point": Task("The map of one point lies on the plane", _points_map),
    "point moved at least": Task("Move a point by at least {}", _has_moved, 0, usual=0.2),
    "split in two": Task("One point became two, and the weights are still explained",
                         _of_explanation(lambda e: e.now.n > e.truth.n and not misfit(e))),
    "explains no longer": Task("The points no longer explain the weights",
                                _of_explanation(lambda e: misfit(e) == "residual")),
    "certain points known": Task("It is known which points are certified",
                                 _of_explanation(lambda e: e.forced is not None)),
    "places needed at least": Task("Find at least {} places that must hold a point",
                                   _least(_needed_places), 1, 200, 1, by=("places",)),
    "region needed": Task("Forbid a region that needs a point", lambda f, _: _needs_region(f),
                          by=("places", "reveal-points")),
    "farthest set": Task("The farthest other set is on screen", _of_explanation(
        lambda e: e.far is not None and e.far.other and not misfit(e))),
    "attacks compared": Task("The claims of a compared attack are on screen", _has_comparison,
                             by=("compare",)),
    ELSEWHERE: Task("Do it on that page; this step then ticks itself off", lambda frame, _: False),
}  # fmt: skip

if TYPE_CHECKING:
    Name = str
else:
    Name = Literal[tuple(KINDS)]
GOALS: tuple[str, ...] = tuple(KINDS)


@settings
class Goal:
    """A row of the list with its number.

    Attributes:
        name: of the row.
        value: the number; None where the row takes none.
    """

    name: Annotated[Name, setting("What is waited for")]
    value: Annotated[float | None, setting("Its number")] = None

    def __post_init__(self) -> None:
        """Refuse a number that the row does not take."""
        row = KINDS[self.name]
        if row.low is None:
            if self.value is not None:
                raise ValueError(f"the goal {self.name!r} takes no number; got {self.value}")
            return
        if self.value is None or not row.low <= self.value <= row.high:
            high = f" to {row.high:g}" if math.isfinite(row.high) else " on"
            raise ValueError(
                f"the goal {self.name!r} takes a number from {row.low:g}{high}; got {self.value}"
            )

    @property
    def words(self) -> str:
        """Return what the student reads."""
        row = KINDS[self.name]
        if self.value is None:
            return row.words
        shown = row.number_of(self.value)
        if 0 < shown < PLAIN:
            return row.words.format(plain(f"{shown:g}"))
        return row.words.format(np.format_float_positional(shown, trim="-"))

    def is_met(self, frame: Frame) -> bool:
        """Return whether this frame meets it."""
        return KINDS[self.name].is_met(frame, self.value or 0.0)
