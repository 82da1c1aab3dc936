"""What a stage draws beside points and candidates: plain shapes, in units of the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from explorer.engine.arrays import Array
from explorer.engine.attacks.shapes import EMPTY, NONE, Shapes
from explorer.engine.explanations.cells import cell_corners, cell_of, segment
from explorer.engine.explanations.masses import forced_points
from explorer.engine.explanations.splitting import free_direction
from explorer.engine.roster import by_key
from explorer.page.frame import Candidates, Frame, Handle, PointMap
from explorer.research.explained import Explained
from explorer.research.pictures.axes import Axes
from explorer.research.pictures.fields import places_of

# --- What the explain stage draws: the cell of the point in hand, its level line, least masses

ASIDE = 0.055  # of the half width: where words stand beside a point; arbitrary
CELL, FREE = "no neuron switches here", "line along which it splits"
FILLED = ("candidate", "explains the weights")
WORDS = 0.28  # likewise: what a word and its distance take on the narrowest plane; arbitrary
SHARE = 0.44  # likewise, of the words on a half's share; arbitrary


def explain_shapes(state: Explained, axes: Axes) -> Shapes:
    """Polygon (or interval), level line, and the least masses at points of the truth."""
    flat = state.net.d == 1
    texts = _masses(state, axes)
    if state.selected is None:
        return Shapes(texts=tuple(texts), names=(FILLED,))
    e, i = (state.now, state.selected)
    if state.slide is not None:
        e, i = state.slide.before, state.slide.i
    cell = cell_of(state.net, e.x[i], e.at(i), e.cover[i])
    halves = state.halves
    hand = places_of(state.now.x, state.now.y)[halves or [state.selected]]
    texts += _shares(state, halves, hand, axes)
    corners = cell_corners(cell, e.x[i], axes.reach)
    if flat:
        spans = tuple((float(low), float(high)) for low, high in corners.reshape(-1, 2))
        return Shapes(spans=spans, hands=hand, texts=tuple(texts), names=(FILLED, ("spans", CELL)))
    lines = np.vstack([corners, corners[:1]]) if len(corners) > 2 else NONE
    return Shapes(
        area=lines, strong=_line(state, axes), hands=hand,
        lines=hand if halves else NONE, texts=tuple(texts),
        names=(FILLED, ("area", CELL), ("lines", "two halves of a point"), ("strong", FREE)),
    )  # fmt: skip


def pointed_at(frame: Frame, i: int) -> Array:
    """Return where the point i stands that a pointer is over in a chart; no place for none.

    In the last act it is the middle of a place that must hold a point.
    """
    if frame.proof is not None:
        made = frame.proof.needed
        if made is None:
            return NONE
        x, y = (torch.from_numpy(rows) for rows in (made.rows[:, :-3], made.rows[:, -2]))
    elif frame.stage == "explain" and frame.explain is not None:
        x, y = frame.explain.present.now.x, frame.explain.present.now.y
    else:
        points = frame.truth if frame.is_aimed and frame.truth is not None else frame.dataset
        x, y = points.x, points.y
    return places_of(x, y)[i : i + 1] if 0 <= i < len(x) else NONE


def _shares(
    state: Explained, halves: list[int], places: Array, axes: Axes
) -> list[tuple[float, float, str]]:
    """Return what share of the multiplier, of the weight that a point carries, each half has."""
    lam = [float(state.now.lam[i]) for i in halves]
    middle, half = axes.x
    top = places[:, 1].argmax()  # its words stand above it, those of the other below
    return [
        (
            min(max(x - SHARE * half / 2, middle - half), middle + (1 - SHARE) * half),
            y + (2 if k == top else -2) * ASIDE * axes.y[1],
            f"{own / sum(lam):.0%} of its weight",
        )
        for k, (own, (x, y)) in enumerate(zip(lam, places.tolist(), strict=False))
    ]


def _line(state: Explained, axes: Axes) -> Array:
    """Return the part of the split's line that is within the cell."""
    slide, i = state.slide, state.selected
    if slide is not None:
        ends = slide.extent
        return segment(slide.before.x[slide.i], slide.u, ends.minus, ends.plus, axes.reach)
    found = None if i is None else free_direction(state.net, state.now, i)
    if found is None or i is None:
        return NONE
    u, reach = found
    return segment(state.now.x[i], u, reach.minus, reach.plus, axes.reach)


def _masses(state: Explained, axes: Axes) -> list[tuple[float, float, str]]:
    if state.forced is None:
        return []
    out, truth = [], places_of(state.truth.x, state.truth.y).tolist()
    of, lam = state.truth.origin, state.truth.lam
    whole = lam.new_zeros(int(of.max()) + 1).index_add(0, of, lam)[of]
    for i in forced_points(state.forced, state.target.mass)[0].nonzero().flatten().tolist():
        x, y = truth[i]
        share = float(state.forced[i] / whole[i])
        out.append((_aside(x, axes), y - 2 * ASIDE * axes.y[1], f"≥ {min(share, 1):.0%}"))
    return out


def _aside(x: float, axes: Axes) -> float:
    """Where a word right of a point begins: on the other side if it would leave."""
    centre, half = axes.x
    return x + (ASIDE if x < centre + (1 - WORDS) * half else -WORDS) * half


# --- The candidates of the landscape stage on the plane: in hand, and how far from the truth ----


def landscape_shapes(points: Candidates, drawn: PointMap | None = None) -> Shapes:
    """Return the mapped point, and a line to each moved one from where it was.

    Of its map the lowest place, and the line along which it splits freely.
    """
    low = drawn.lowest if drawn is not None else None
    segment = drawn.segment if drawn is not None else None
    x, truth = (places_of(v, points.y) for v in (points.x, points.truth.x))
    away = np.flatnonzero(np.abs(x - truth).max(axis=1) > 0)
    gap = np.full(2, np.nan)
    lines = [row for i in away for row in (truth[i], x[i], gap)][:-1]
    return Shapes(
        lines=np.array(lines).reshape(-1, 2),
        hands=x[points.mapped : points.mapped + 1],
        diamonds=NONE if low is None else np.array([low]),
        strong=NONE if segment is None else segment,
        names=(("lines", "from where it was"), ("strong", FREE)),
    )


def starts_shapes(held: Handle) -> Shapes:
    """Return a line from each candidate to the training point that it is mixed from."""
    if held.end >= 0:  # of a census: from no point
        return EMPTY
    parts = held.problem.parts
    ends = [places_of(x, parts.y) for x in (parts.truth, held.candidates.x)]
    gap = np.full_like(ends[0], np.nan)
    lines = np.stack([*ends, gap], 1).reshape(-1, 2)[:-1]
    return Shapes(lines=lines, names=(("lines", "to its training point"),))


def known_curve(frame: Frame) -> Array:
    """Return the corners (k, 2) of the curve that the attacker on screen knows, or is drawn now."""
    if frame.sketch is not None:
        return np.array(frame.sketch, dtype=float).reshape(-1, 2)
    known = frame.attack.known if frame.stage == "attack" else None
    if frame.handle is not None:
        known = getattr(frame.handle.problem.target, "known", None)
    return NONE if known is None or known.kind != "curve" else known.x.numpy()


def shapes_of(frame: Frame, axes: Axes) -> Shapes:
    """Return what the attack on screen draws beside its candidates, or what the stage does."""
    return replace(_of_stage(frame, axes), curve=known_curve(frame))


def _of_stage(frame: Frame, axes: Axes) -> Shapes:
    if frame.proof is not None:
        return EMPTY
    if frame.stage == "explain" and frame.explain is not None:
        return explain_shapes(frame.explain.present, axes)
    if frame.stage == "landscape" and frame.map_kind == "starts":
        return EMPTY if frame.starts is None else starts_shapes(frame.starts)
    if frame.stage == "landscape" and frame.landscape is not None:
        return landscape_shapes(frame.landscape.present, frame.point_map)
    if frame.stage != "attack" or frame.target is None or frame.attack.state is None:
        return EMPTY
    return by_key(frame.attack.name).shapes(frame.target, frame.attack.state)
