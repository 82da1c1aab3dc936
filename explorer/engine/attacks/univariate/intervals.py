r"""The scan of Algorithm 1 over the intervals of the line: groups, rules, and what they guarantee.

C_i says whether Phi is constant at the margin on I_i. From i = 0, with N + 1 intervals:

    neither C_i nor C_{i+1}   the crossings of I_i and I_{i+1} are a group (rule 3.2);  i <- i + 2
    C_i and C_{i+2}           the two ends of I_{i+1} are a group (rule 3.3);           i <- i + 2
    otherwise                 no theorem speaks of I_i alone;                           i <- i + 1

Rule 3.2: the union of two adjacent intervals on which Phi is not constant at the margin holds a
training point on the margin, and at most four places with |Phi| = 1. Rule 3.3: if (a) some neuron
is active on all training points and (b) theta is a local minimum of the margin problem, one of the
two ends of a ramp between two constant intervals is a training point (Smorodinsky, Vardi and
Safran, theorems 3.2 to 3.4, restated; see the paper for the original).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from explorer.engine.attacks.univariate.config import Tolerances
from explorer.engine.piecewise import Piecewise

Point = tuple[float, float]  # x and its label, the sign of Phi
Rule = Literal["3.2", "3.3", ""]
Seen = Literal[
    "3.2", "3.3", "shared 3.2", "shared 3.3", "empty", "flat everywhere", "one interval", "flat",
    "last", "before flat", "",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Group:
    """Candidates of which one at least is a training point, at an exact KKT point.

    Attributes:
        rule: the theorem, "3.2" or "3.3".
        low: left end of the intervals that it covers, -inf for the line's.
        high: right end.
        x: its candidates, ascending: at most four by 3.2, two by 3.3.
        y: their labels.
        counted: whether no earlier counted group holds one of them: counted groups hold one
            training point each, all different.
    """

    rule: str
    low: float
    high: float
    x: tuple[float, ...]
    y: tuple[float, ...]
    counted: bool


@dataclass(frozen=True, eq=False)
class Turn:
    """One turn of the scan.

    Attributes:
        first: the interval it began at.
        last: the last interval it looked at.
        following: the interval of the next turn.
        group: the group found, or None.
        seen: what there was: a group of either rule, one that the strict count leaves out as it
            shares a candidate, no place with |Phi| = 1 where rule 3.2 wants one, or why no theorem
            speaks.
        places: candidates of the group, or of the one left out.
    """

    first: int
    last: int
    following: int
    group: Group | None
    seen: Seen
    places: int = 0


def distinct(points: list[Point], same: float) -> list[Point]:
    """Return one point for each bunch of one label within `same` of its first: the middle."""
    out: list[Point] = []
    for label in (1.0, -1.0):
        bunch: list[float] = []
        for x in [*sorted(x for x, y in points if y == label), np.inf]:
            if bunch and x - bunch[0] > same:
                out.append(
                    (bunch[0] if bunch[0] == bunch[-1] else (bunch[0] + bunch[-1]) / 2, label)
                )
                bunch = []
            bunch.append(x)
    return sorted(out)


def constant(line: Piecewise, tol: Tolerances) -> list[bool]:
    """Return C_i for every interval, at margin 1."""
    return [line.on_margin(i, 1.0, tol.flat) for i in range(len(line))]


def crossings(line: Piecewise, tol: Tolerances, level: float = 1.0) -> list[Point]:
    """Return the places with |Phi| = level where Phi is not constant: all support points."""
    found = [
        point
        for i in range(len(line))
        if not line.on_margin(i, level, tol.flat)
        for point in line.crossings(i, level, tol.same, tol.flat)
    ]
    return distinct(found, tol.same)


def turn(line: Piecewise, i: int, tol: Tolerances, groups: tuple[Group, ...], strict: bool) -> Turn:
    """Return the turn at interval i, after the groups found so far.

    With `strict` a group that shares a candidate with a counted one is left out.
    """
    flat, last = constant(line, tol), len(line) - 1
    if i + 1 <= last and not flat[i] and not flat[i + 1]:
        points = [p for j in (i, i + 1) for p in line.crossings(j, 1.0, tol.same, tol.flat)]
        made = _group("3.2", line, i, i + 1, distinct(points, tol.same), tol, groups)
        return _take(made, i, i + 1, strict)
    if i + 2 <= last and flat[i] and flat[i + 2]:
        ends = [(x, 1.0 if line.value(x) > 0 else -1.0) for x in line.ends(i + 1)]
        made = _group("3.3", line, i + 1, i + 1, ends, tol, groups)
        return _take(made, i, i + 2, strict)
    return Turn(i, min(i + 1, last), i + 1, None, _nothing(flat, i))


def _group(
    rule: Rule, line: Piecewise, first: int, last: int, points: list[Point], tol: Tolerances,
    groups: tuple[Group, ...],
) -> Group:  # fmt: skip
    taken = [point for g in groups if g.counted for point in zip(g.x, g.y, strict=True)]
    shared = any(
        abs(x - other) <= tol.same and y == label for x, y in points for other, label in taken
    )
    low, high = line.ends(first)[0], line.ends(last)[1]
    x, y = tuple(p[0] for p in points), tuple(p[1] for p in points)
    return Group(rule, low, high, x, y, bool(points) and not shared)


def _take(made: Group, i: int, last: int, strict: bool) -> Turn:
    seen: Seen = "3.3" if made.rule == "3.3" else "3.2" if made.x else "empty"
    if strict and made.x and not made.counted:
        seen = "shared 3.3" if seen == "3.3" else "shared 3.2"
        return Turn(i, last, i + 1, None, seen, len(made.x))
    return Turn(i, last, i + 2, made, seen, len(made.x))


def _nothing(flat: list[bool], i: int) -> Seen:
    """Return why no theorem speaks of interval i."""
    if len(flat) == 1:
        return "flat everywhere" if flat[0] else "one interval"
    if flat[i]:
        return "flat"
    return "last" if i == len(flat) - 1 else "before flat"


def guarantee(groups: tuple[Group, ...], claimed: int) -> float:
    """Return the share of `claimed` points that the counted groups make training points.

    0 where a group is empty: the theorems then do not apply to these weights.
    """
    if not claimed or any(not g.x for g in groups):
        return 0.0
    return sum(g.counted for g in groups) / claimed
