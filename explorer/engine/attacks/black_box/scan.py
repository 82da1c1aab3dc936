"""The graph of a function of the line, from its values alone: where it breaks, and its lines.

Between two places a view of the function is its value and its slope there. Where both views are
one line, and a place between them lies on it, the stretch is straight. Where the two lines meet at
a place on the graph, it breaks there. Else the stretch is cut in two. Two breakpoints closer than
`RESOLUTION` of the range are one; a bend between two queries that all lie on one line is not seen.

Source: own; that a ReLU network is determined by its breakpoints is used by Rolnick and Kording
(2020) and Carlini, Jagielski and Mironov (2020).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from explorer.engine.arrays import Array
from explorer.engine.piecewise import NO_KINK, Piecewise

RESOLUTION = 1e-8  # of the range; arbitrary
# Of the largest output, what float64 may be off where large terms cancel; arbitrary.
ROUNDING = 1e-13
CLOSE, APART = 1e-3, 0.125  # of a stretch, where its slope is asked: exactly, with noise
NEARER = 4.0 ** -np.arange(6)  # shares of the way to a breakpoint, where its lines are asked
CLEAR = 8.0  # a change of slope so many times what it may be off is one; arbitrary
GOLDEN = (5**0.5 - 1) / 2  # turns that never repeat

Ask = Callable[[Array], Array]  # places (q,) -> outputs (q,)
View = tuple[float, float, float, float]  # place, value, slope, and how far the slope may be off
Stretch = tuple[View, View]


def first_stretch(ask: Ask, low: float, high: float, noise: float) -> Stretch:
    """Return the whole range as one stretch; four queries."""
    return _view(ask, low, high, noise), _view(ask, high, low, noise)


def _view(ask: Ask, place: float, towards: float, noise: float) -> View:
    """Return value and slope at the end of a stretch; its slope looks inwards. Two queries."""
    step = (towards - place) * (APART if noise else CLOSE)
    value, beside = ask(np.array([place, place + step]))
    off = 2 * (noise + ROUNDING * max(abs(value), abs(beside), 1.0)) / abs(step)
    return place, float(value), float(beside - value) / step, off


def share_at(t: int) -> float:
    """Return where the stretch of look t, from 1 on, is asked: never twice at one share."""
    return 0.3 + 0.4 * (GOLDEN * t % 1.0)


def cut(
    ask: Ask, stretch: Stretch, share: float, noise: float, least: float
) -> tuple[list[Stretch], list[float]]:
    """Return what is still to be looked at of a stretch, and the breakpoints found in it.

    Args:
        ask: the function.
        stretch: what is looked at.
        share: of the stretch, where it is asked or cut in two, between 0 and 1.
        noise: how far an output may be off.
        least: stretches of this length are not cut any more.
    """
    (a, low, left, off_left), (b, high, right, off_right) = stretch
    length = b - a
    middle = a + share * length

    def tolerance(place: float) -> float:
        value = 4 * (noise + ROUNDING * max(abs(low), abs(high), 1.0))
        return value + 2 * (off_left * (place - a) + off_right * (b - place))

    one_line = max(abs(low + left * length - high), abs(high - right * length - low))
    if one_line <= tolerance(b if off_left > off_right else a):
        places = a + length * np.array([share / 4, share / 2, share, (1 + share) / 2])
        if np.all(np.abs(ask(places) - low - left * (places - a)) <= tolerance(b)):
            return [], []
    elif left != right:
        meeting = a + (high - low - right * length) / (left - right)
        if a < meeting < b:
            steps = share * NEARER
            places = np.concatenate(
                [meeting - (meeting - a) * steps, [meeting], meeting + (b - meeting) * steps]
            )
            lines = np.where(
                places <= meeting, low + left * (places - a), high + right * (places - b)
            )
            if np.all(np.abs(ask(places) - lines) <= tolerance(meeting)):
                return [], [meeting]
    if length <= least:
        return [], [(a + b) / 2] if left != right else []
    return [
        ((a, low, left, off_left), _view(ask, middle, a, noise)),
        (_view(ask, middle, b, noise), (b, high, right, off_right)),
    ], []


def graph(places: Array, values: Array, breaks: Array, noise: float) -> tuple[Piecewise, float]:
    """Return the graph, and how far a breakpoint may be off at most, in units of x.

    A piece is the line through its outermost queries, a breakpoint where two neighbours meet.
    Pieces whose queries all lie on one line are one. A piece too short to tell its slope from a
    neighbour's is left out: its neighbours meet there.

    Args:
        places: of the queries (q,), in any order.
        values: their outputs (q,).
        breaks: breakpoints (k,), about.
        noise: how far an output may be off.
    """
    order = np.argsort(places)
    x, v, off = places[order], values[order], noise + ROUNDING * max(float(np.abs(values).max()), 1)
    ends = [0, *np.unique(np.searchsorted(x, np.sort(breaks), "right")).tolist(), len(x)]
    at = 1
    while at < len(ends) - 1:
        whole = slice(ends[at - 1], ends[at + 1])
        rise, height = _chord(x[whole], v[whole])
        if np.abs(height + rise * x[whole] - v[whole]).max() <= 4 * off:
            del ends[at]
        else:
            at += 1
    pieces = [(a, b) for a, b in pairwise(ends) if b - a > 1]
    slope, intercept = np.array([_chord(x[a:b], v[a:b]) for a, b in pieces]).T
    unsure = 4 * off / np.array([x[b - 1] - x[a] for a, b in pieces])
    unsure += NO_KINK * float(np.abs(slope).max())
    while len(slope) > 1:
        doubt = np.abs(np.diff(slope)) / np.maximum(unsure[1:], unsure[:-1])
        j = int(doubt.argmin())
        if doubt[j] > CLEAR:
            break
        out = j + int(unsure[j + 1] > unsure[j])
        slope, intercept, unsure = (np.delete(part, out) for part in (slope, intercept, unsure))
    line = of_pieces(-np.diff(intercept) / np.diff(slope), slope, intercept)
    return line, float((32 * off / np.abs(np.diff(slope))).max(initial=0.0))


def of_pieces(breaks: Array, slope: Array, intercept: Array) -> Piecewise:
    """Return a graph of which nobody knows to which side its neurons are active."""
    unknown = np.ones(len(breaks), dtype=bool)
    return Piecewise(breaks, unknown, unknown, slope, intercept)


def _chord(x: Array, v: Array) -> tuple[float, float]:
    """Return slope and intercept of the line through the first and the last of these."""
    rise = (v[-1] - v[0]) / (x[-1] - x[0])
    return float(rise), float(v[0] - rise * x[0])
