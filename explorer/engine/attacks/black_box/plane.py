"""Lines of the neurons of a network of the plane, from its outputs alone.

Along a probe, a segment of the plane, the graph of Phi breaks where it crosses the line of a neuron
(`scan`). Beside the probe the slope across it is asked in each piece. The gradients on both sides
of a breakpoint differ by a multiple of the neuron's first weights: its line goes through the
breakpoint, at right angles to that difference. Probes of several directions miss no line but one
that all of them miss.

Source: own; that a ReLU network is told by its bends is used by Rolnick and Kording (2020) and
Carlini, Jagielski and Mironov (2020).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np

from explorer.engine.arrays import Array
from explorer.engine.attacks.black_box.scan import (
    GOLDEN,
    RESOLUTION,
    cut,
    first_stretch,
    graph,
    share_at,
)
from explorer.engine.sizes import Size

ASIDE = 0.37  # of the reach, from 0 to a probe: lines through 0 cross it apart; arbitrary
ACROSS, HALVINGS = 0.1, 12  # of a piece, how far beside the probe is asked at first; arbitrary
STRAIGHT = 1e-9  # of the steepest slope: two slopes across that differ by less are one; arbitrary
SAME = 1e-5  # of turn and reach: lines that differ by less are one; arbitrary

Outputs = Callable[[Array], Array]  # places (q, 2) -> outputs (q,)


@dataclass(frozen=True, eq=False)
class FoundLines:
    """Lines {x: normal . x = offset} of neurons, in the order in which they were found.

    Attributes:
        normal: unit vectors (k, 2), the first coordinate not below 0.
        offset: (k,), in units of x.
        bend: by how much the slope across the line changes (k,): |w| v of the neuron, or the sum
            where several have one line; which side it is active on is not told.
        queries: how many outputs were asked.
    """

    normal: Annotated[Array, Size("k 2")]
    offset: Annotated[Array, Size("k")]
    bend: Annotated[Array, Size("k")]
    queries: int


def found_lines(outputs: Outputs, reach: float = 4.0, probes: int = 3) -> FoundLines:
    """Return the lines of neurons that some probe crosses within the reach.

    Args:
        outputs: Phi at places, of a network with two inputs, one hidden layer and one output.
        reach: half the length of a probe, in units of x.
        probes: how many; each misses the lines that are parallel to it.

    Raises:
        ValueError: for no probe, or a reach that is not positive.

    Example:
        >>> import numpy as np
        >>> from explorer.engine.attacks.black_box.plane import found_lines
        >>> found = found_lines(lambda x: 5 * np.maximum(0.6 * x[:, 0] + 0.8 * x[:, 1] - 0.5, 0))
        >>> found.normal.round(6).tolist(), found.offset.round(6).tolist(), found.bend.round(6)
        ([[0.6, 0.8]], [0.5], array([5.]))
    """
    if probes < 1 or not reach > 0:
        raise ValueError(f"expected a probe or more, and a reach above 0; got {probes}, {reach}")
    table, asked = np.zeros((0, 4)), 0

    def ask(x: Array) -> Array:
        nonlocal asked
        asked += len(x)
        return np.asarray(outputs(x), dtype=float)

    for k in range(probes):
        table = with_probe(ask, table, k, reach)
    return FoundLines(table[:, :2], table[:, 2], table[:, 3], asked)


def with_probe(ask: Outputs, known: Array, k: int, reach: float) -> Array:
    """Return the lines that are known (m, 4), and those that only probe k crosses below them.

    A row is normal, offset and bend; see `found_lines`.
    """
    turn = np.pi * (GOLDEN * (k + 1) % 1.0)
    along, across = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    rows = known.tolist()
    for normal, offset, bend in _on_probe(ask, along, across, reach):
        same = [abs(a * normal[1] - b * normal[0]) + abs(c - offset) / reach < SAME
                for a, b, c, _ in rows]  # fmt: skip
        if not any(same):
            rows.append([*normal.tolist(), offset, bend])
    return np.array(rows).reshape(-1, 4)


def _on_probe(
    ask: Outputs, along: Array, across: Array, reach: float
) -> list[tuple[Array, float, float]]:
    """Return normal, offset and bend of the lines that one probe crosses."""
    origin = ASIDE * reach * across
    places: list[float] = []
    values: list[float] = []

    def on(s: Array) -> Array:
        told = ask(origin + s[:, None] * along)
        places.extend(s.tolist())
        values.extend(told.tolist())
        return told

    stretches, breaks, t = [first_stretch(on, -reach, reach, 0.0)], [], 0
    while stretches:
        t += 1
        more, found = cut(on, stretches.pop(), share_at(t), 0.0, RESOLUTION * 2 * reach)
        stretches += more
        breaks += found
    line, _ = graph(np.array(places), np.array(values), np.array(breaks), 0.0)
    ends = np.concatenate([[-reach], line.breaks, [reach]])
    slopes = [
        _slope_across(ask, origin + (a + b) / 2 * along, across, ACROSS * (b - a))
        for a, b in pairwise(ends)
    ]
    gradients = line.slope[:, None] * along + np.array(slopes)[:, None] * across
    lines = []
    for at, step in zip(line.breaks, np.diff(gradients, axis=0), strict=True):
        size = float(np.hypot(*step))
        normal = step / size if step @ along > 0 else -step / size
        bend = float(step @ normal)
        normal = normal if normal[0] >= 0 else -normal
        lines.append((normal, float(normal @ (origin + at * along)), bend))
    return lines


def _slope_across(ask: Outputs, place: Array, across: Array, width: float) -> float:
    """Return the slope of Phi at a place at right angles to the probe, of the piece it is in."""
    for _ in range(HALVINGS):
        steps = width * np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
        told = ask(place + steps[:, None] * across)
        rises = np.diff(told) / np.diff(steps)
        if np.ptp(rises) <= STRAIGHT * max(1.0, float(np.abs(rises).max())):
            break
        width /= 2
    return float((told[3] - told[1]) / width)
