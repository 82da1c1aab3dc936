"""What the explain stage draws: the cell of the point in hand, its level line, pins and masses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from explorer.engine.cell_polygon import cell_interval, cell_polygon, segment
from explorer.engine.cells import cell_of
from explorer.engine.determined import forced_points
from explorer.engine.splitting import extent_at
from explorer.parts.overlay import NONE, Overlay
from explorer.stages.explained import Explained, free_direction

Array = NDArray[np.float64]
ASIDE = 0.055  # of the half width: where words stand beside a point; arbitrary
WORDS = 0.28  # likewise: what a word and its distance take on the narrowest plane; arbitrary
MOST_PINS = 12  # arbitrary: more words than that hide the plane


def overlay(state: Explained, extent: float) -> Overlay:
    """Polygon (or interval), level line, ring, pins, and forced masses of the truth."""
    flat = state.net.d == 1
    texts = _pins(state, extent) + _masses(state, extent)
    rings = [_place(state, i) for i in _forced(state)]
    if state.selected is None:
        return Overlay(rings=_table(rings), texts=tuple(texts))
    e, i = (state.now, state.selected)
    if state.slide is not None:
        e, i = state.slide.before, state.slide.i
    cell = cell_of(state.net, e.x[i], e.at(i))
    hand = [tuple(state.now.x[state.selected].tolist())]
    if flat:
        hand = [(hand[0][0], float(state.now.y[state.selected]))]
        return Overlay(
            spans=(cell_interval(cell, e.x[i], extent),), hands=_table(hand), rings=_table(rings),
            texts=tuple(texts),
        )  # fmt: skip
    corners = cell_polygon(cell, e.x[i], extent)
    lines = np.vstack([corners, corners[:1]]) if len(corners) > 2 else NONE
    return Overlay(
        area=lines, strong=_line(state, extent), hands=_table(hand), rings=_table(rings),
        texts=tuple(texts),
    )  # fmt: skip


def _line(state: Explained, extent: float) -> Array:
    """The part of the split's line that is within the cell."""
    slide, i = state.slide, state.selected
    if slide is not None:
        ends = slide.extent
        return segment(slide.before.x[slide.i], slide.u, ends.minus, ends.plus, extent)
    u = None if i is None else free_direction(state.net, state.now, i)
    if u is None or i is None:
        return NONE
    reach = extent_at(state.net, state.now, i, u)
    return segment(state.now.x[i], u, reach.minus, reach.plus, extent)


def _place(state: Explained, i: int) -> tuple[float, float]:
    x = state.truth.x[i].tolist()
    return (x[0], x[1]) if len(x) > 1 else (x[0], float(state.truth.y[i]))


def _forced(state: Explained) -> list[int]:
    if state.forced is None:
        return []
    least: list[int] = (
        forced_points(state.forced, state.target.mass)[0].nonzero().flatten().tolist()
    )
    return least


def _masses(state: Explained, extent: float) -> list[tuple[float, float, str]]:
    if state.forced is None:
        return []
    out = []
    for i in _forced(state):
        x, y = _place(state, i)
        share = float(state.forced[i] / state.truth.lam[i])
        out.append((_aside(x, extent), y - 2 * ASIDE * extent, f"≥ {min(share, 1):.0%}"))
    return out


def _pins(state: Explained, extent: float) -> list[tuple[float, float, str]]:
    which = state.pinned.nonzero().flatten().tolist()
    if len(which) > MOST_PINS:
        return []
    out = []
    for i in which:
        x = state.now.x[i].tolist()
        y = x[1] if len(x) > 1 else float(state.now.y[i])
        out.append((_aside(x[0], extent), y + ASIDE * extent, "pinned"))
    return out


def _aside(x: float, extent: float) -> float:
    """Where a word beside a point begins: right of it, or left where it would leave the plane."""
    return x + (ASIDE if x < (1 - WORDS) * extent else -WORDS) * extent


def _table(places: Sequence[tuple[float, ...]]) -> Array:
    return np.array(places, dtype=float).reshape(-1, 2)
