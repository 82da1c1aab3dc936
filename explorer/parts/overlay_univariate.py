"""What the provable attack draws on the graph of Phi: where it looks, groups, ramps, claims."""

from __future__ import annotations

import numpy as np

from explorer.engine.attacks.target import Target
from explorer.engine.attacks.univariate import UnivariateState, view
from explorer.engine.piecewise import Piecewise
from explorer.parts.overlay import Array, Overlay

FAR = 50.0  # beyond every plane: where an unbounded interval is drawn to end
FOOT = -1.95  # height of the bar under the intervals looked at; arbitrary
HIGH = 1.72  # height of a group's words on a plane of half width 2; arbitrary


def overlay(target: Target, state: UnivariateState) -> Overlay:
    """Spans: groups with their rule. Thick, at the foot: the intervals looked at.

    Rings: proven points. Diamonds: likely ones. Crosses: the ends of a ramp by theorem 3.3.
    """
    line = view(target, state)
    spans = tuple((max(g.low, -FAR), min(g.high, FAR)) for g in state.groups)
    ramps = [(x, y) for g in state.groups if g.rule == "3.3" for x, y in zip(g.x, g.y, strict=True)]
    rings, diamonds = (
        np.column_stack([state.x[kept, 0].numpy(), state.y[kept].numpy()])
        for kept in (state.proven, state.likely)
    )
    texts = tuple(
        (_middle(line, g.low, g.high), HIGH - 0.16 * (i % 2), f"{i + 1}: {g.rule}")
        for i, g in enumerate(state.groups)
    )
    return Overlay(
        strong=_below(line, state.looked), dots=np.array(ramps).reshape(-1, 2), rings=rings,
        diamonds=diamonds, spans=spans, texts=texts,
    )  # fmt: skip


def _below(line: Piecewise, looked: tuple[int, int]) -> Array:
    """A bar at the foot of the plane under the intervals looked at."""
    first, last = looked
    if first < 0 or first >= len(line):
        return np.zeros((0, 2))
    low, high = line.ends(first)[0], line.ends(min(last, len(line) - 1))[1]
    return np.array([(max(low, -FAR), FOOT), (min(high, FAR), FOOT)])


def _middle(line: Piecewise, low: float, high: float) -> float:
    """Where a group's words stand: its middle, an unbounded one's near its inner end."""
    if np.isfinite(low) and np.isfinite(high):
        return (low + high) / 2
    if np.isfinite(low):
        return low + 0.15
    return high - 0.55 if np.isfinite(high) else 0.0
