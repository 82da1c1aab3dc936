"""Of the bilevel attack: the boundaries of the attacked model and of that on the candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from contourpy import contour_generator

from explorer.engine.attacks.bilevel import BilevelState
from explorer.engine.attacks.hinge import HingeState
from explorer.engine.attacks.pooled import PooledState
from explorer.engine.attacks.target import Target
from explorer.engine.attacks.univariate import UnivariateState, view
from explorer.engine.explanations.alternatives import forced_points
from explorer.engine.explanations.cells import cell_interval, cell_of, cell_polygon, segment
from explorer.engine.explanations.splitting import extent_at
from explorer.engine.network import phi
from explorer.engine.piecewise import Piecewise
from explorer.page.frame import Frame, Walk
from explorer.page.parts.overlay import EMPTY, NONE, Array, Overlay
from explorer.research.explained import Explained, free_direction

CELLS = 61  # arbitrary: across the plane; the boundary of a small network is smooth
HALF = 4.0  # arbitrary: twice the usual plane, so that a line reaches its edges after zooming


def bilevel_overlay(target: Any, state: BilevelState) -> Overlay:  # noqa: ANN401 - the page's target
    """Thick: z = 0 of theta*; thin: z = 0 of theta(x), which the attack brings onto it."""
    shape = state.victim.lower.shape
    if shape.d != 2:
        return EMPTY
    return Overlay(
        lines=_zero(shape, state.theta), strong=_zero(shape, state.victim.theta)
    )  # fmt: skip


def _zero(shape: Any, theta: torch.Tensor) -> Array:  # noqa: ANN401
    """The paths on which the model is zero, (k, 2), a row of nan between them."""
    axis = np.linspace(-HALF, HALF, 2 * CELLS)
    x1, x2 = np.meshgrid(axis, axis)
    places = torch.from_numpy(np.column_stack([x1.ravel(), x2.ravel()]))
    z = shape.at(theta, places).z.numpy().reshape(x1.shape)
    paths = contour_generator(x1, x2, z).lines(0.0)
    gap = np.full((1, 2), np.nan)
    pieces = [piece for path in paths for piece in (np.asarray(path), gap)]
    return np.concatenate(pieces[:-1]) if pieces else np.zeros((0, 2))


# --- What the explain stage draws: the cell of the point in hand, its level line, pins and masses

ASIDE = 0.055  # of the half width: where words stand beside a point; arbitrary
WORDS = 0.28  # likewise: what a word and its distance take on the narrowest plane; arbitrary
MOST_PINS = 12  # arbitrary: more words than that hide the plane


def explain_overlay(state: Explained, extent: float) -> Overlay:
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


# --- What the hinge attack draws: merged lines, the candidates kept, the needed places ----------

MOST_LINES = 80  # arbitrary: more cannot be told apart
MOST_DOTS = 400  # arbitrary: more hide the plane
LONG = 8.0  # half length of a line: leaves any plane that is drawn


def hinge_overlay(target: Target, state: HingeState) -> Overlay:
    """Lines by weight, dots for the candidates kept, rings for the needed places."""
    flat = target.net.d == 1
    return Overlay(
        lines=NONE if flat else _lines(state),
        dots=table(state.pool[: min(len(state.pool), MOST_DOTS)], target, flat)
        if state.stage in ("fit", "prove") else NONE,
        rings=table(state.x[state.needed], target, flat),
    )  # fmt: skip


def _lines(state: HingeState) -> Array:
    pieces = []
    for n, b in list(zip(state.normal, state.offset, strict=True))[:MOST_LINES]:
        foot, along = -b * n, torch.stack([-n[1], n[0]]) * LONG
        pieces.append(torch.stack([foot - along, foot + along]).cpu().numpy())
        pieces.append(np.full((1, 2), np.nan))
    return np.concatenate(pieces[:-1]) if pieces else NONE


def table(x: torch.Tensor, target: Target, flat: bool) -> Array:
    """Places (m, d) as rows of an overlay; on the line at their height on the graph."""
    if not len(x):
        return NONE
    if not flat:
        return np.asarray(x.cpu().numpy(), dtype=float)
    height = phi(target.net, x.to(target.net.dtype)).cpu().numpy()
    return np.column_stack([x[:, 0].cpu().numpy(), height])


# --- What the pooled attack draws: the claims of its starts, then what the hinge attack draws ---


def pooled_overlay(target: Target, state: PooledState) -> Overlay:
    """Dots for the claims of every start while they come; lines and needed places later."""
    drawn = hinge_overlay(target, state)
    if state.stage not in ("starts", "lines"):
        return drawn
    return replace(drawn, dots=table(state.found, target, target.net.d == 1))


# --- What the provable attack draws on the graph of Phi: where it looks, groups, ramps, claims --

FAR = 50.0  # beyond every plane: where an unbounded interval is drawn to end
FOOT = -1.95  # height of the bar under the intervals looked at; arbitrary
HIGH = 1.72  # height of a group's words on a plane of half width 2; arbitrary


def univariate_overlay(target: Target, state: UnivariateState) -> Overlay:
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


# --- The candidates of the landscape stage on the plane: in hand, and how far from the truth ----


def walk_overlay(walk: Walk) -> Overlay:
    """A square around the mapped point, a cross at each moved one, a line from where it was."""
    x, truth = walk.x.numpy(), walk.truth.x.double().cpu().numpy()
    if x.shape[1] == 1:
        heights = walk.y.numpy()[:, None]
        x, truth = np.hstack([x, heights]), np.hstack([truth, heights])
    away = np.flatnonzero(np.abs(x - truth).max(axis=1) > 0)
    gap = np.full(2, np.nan)
    lines = [row for i in away for row in (truth[i], x[i], gap)][:-1]
    return Overlay(
        lines=np.array(lines).reshape(-1, 2), dots=x[away], hands=x[walk.mapped : walk.mapped + 1]
    )


# --- Which overlay belongs to which attack: one function per row of the roster that draws one ---

OVERLAYS: dict[str, Callable[[Target, Any], Overlay]] = {
    "hinge": hinge_overlay,
    "pooled": pooled_overlay,
    "univariate": univariate_overlay,
    "bilevel": bilevel_overlay,
}


def overlay_of(frame: Frame, extent: float) -> Overlay:
    """What the present attack draws beside its candidates, or the explain stage."""
    if frame.stage == "explain" and frame.explained is not None:
        return explain_overlay(frame.explained, extent)
    if frame.stage == "landscape" and frame.walk is not None:
        return walk_overlay(frame.walk)
    draw = OVERLAYS.get(frame.attack_name)
    if frame.stage != "attack" or draw is None or frame.target is None or frame.attack is None:
        return EMPTY
    return draw(frame.target, frame.attack)
