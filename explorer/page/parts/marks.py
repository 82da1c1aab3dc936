"""The marks on the plane, from the map at the bottom to the candidates on top."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import bqplot as bq
import ipywidgets as w
import numpy as np

from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.shapes import EMPTY, NONE, Array, Shapes
from explorer.engine.explanations.alternatives import forced_points
from explorer.engine.explanations.cells import cell_interval, cell_of, cell_polygon, segment
from explorer.engine.explanations.splitting import Explanation, extent_at
from explorer.engine.roster import AttackState, by_key
from explorer.page.frame import Candidates, Frame
from explorer.page.parts.drawing import map_png
from explorer.page.parts.overlay import OverlayMarks
from explorer.research.explained import Explained, free_direction
from explorer.style import (
    COLOURS,
    INK,
    LABELS,
    LARGEST_AREA,
    MARKERS,
    NEGATIVE,
    POINT_AREA,
    POSITIVE,
    SMALLEST,
)

# --- What the explain stage draws: the cell of the point in hand, its level line, pins and masses

ASIDE = 0.055  # of the half width: where words stand beside a point; arbitrary
WORDS = 0.28  # likewise: what a word and its distance take on the narrowest plane; arbitrary
MOST_PINS = 12  # arbitrary: more words than that hide the plane


def explain_shapes(state: Explained, extent: float) -> Shapes:
    """Polygon (or interval), level line, ring, pins, and forced masses of the truth."""
    flat = state.net.d == 1
    texts = _pins(state, extent) + _masses(state, extent)
    rings = [_place_of(state, i) for i in _forced_indices(state)]
    if state.selected is None:
        return Shapes(rings=_table(rings), texts=tuple(texts))
    e, i = (state.now, state.selected)
    if state.slide is not None:
        e, i = state.slide.before, state.slide.i
    cell = cell_of(state.net, e.x[i], e.at(i))
    hand = [tuple(state.now.x[state.selected].tolist())]
    if flat:
        hand = [(hand[0][0], float(state.now.y[state.selected]))]
        return Shapes(
            spans=(cell_interval(cell, e.x[i], extent),), hands=_table(hand), rings=_table(rings),
            texts=tuple(texts),
        )  # fmt: skip
    corners = cell_polygon(cell, e.x[i], extent)
    lines = np.vstack([corners, corners[:1]]) if len(corners) > 2 else NONE
    return Shapes(
        area=lines, strong=_line(state, extent), hands=_table(hand), rings=_table(rings),
        texts=tuple(texts),
    )  # fmt: skip


def _line(state: Explained, extent: float) -> Array:
    """Return the part of the split's line that is within the cell."""
    slide, i = state.slide, state.selected
    if slide is not None:
        ends = slide.extent
        return segment(slide.before.x[slide.i], slide.u, ends.minus, ends.plus, extent)
    u = None if i is None else free_direction(state.net, state.now, i)
    if u is None or i is None:
        return NONE
    reach = extent_at(state.net, state.now, i, u)
    return segment(state.now.x[i], u, reach.minus, reach.plus, extent)


def _place_of(state: Explained, i: int) -> tuple[float, float]:
    x = state.truth.x[i].tolist()
    return (x[0], x[1]) if len(x) > 1 else (x[0], float(state.truth.y[i]))


def _forced_indices(state: Explained) -> list[int]:
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
    for i in _forced_indices(state):
        x, y = _place_of(state, i)
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


# --- The candidates of the landscape stage on the plane: in hand, and how far from the truth ----


def landscape_shapes(points: Candidates) -> Shapes:
    """A square around the mapped point, a cross at each moved one, a line from where it was."""
    x, truth = points.x.numpy(), points.truth.x.double().cpu().numpy()
    if x.shape[1] == 1:
        heights = points.y.numpy()[:, None]
        x, truth = np.hstack([x, heights]), np.hstack([truth, heights])
    away = np.flatnonzero(np.abs(x - truth).max(axis=1) > 0)
    gap = np.full(2, np.nan)
    lines = [row for i in away for row in (truth[i], x[i], gap)][:-1]
    return Shapes(
        lines=np.array(lines).reshape(-1, 2),
        dots=x[away],
        hands=x[points.mapped : points.mapped + 1],
    )


def shapes_of(frame: Frame, extent: float) -> Shapes:
    """Return what the attack on screen draws beside its candidates, or what the stage does."""
    if frame.stage == "explain" and frame.explain is not None:
        return explain_shapes(frame.explain.present, extent)
    if frame.stage == "landscape" and frame.landscape is not None:
        return landscape_shapes(frame.landscape.present)
    draw = by_key(frame.attack.name).shapes
    if (
        frame.stage != "attack"
        or draw is None
        or frame.target is None
        or frame.attack.state is None
    ):
        return EMPTY
    return draw(frame.target, frame.attack.state)


Path = tuple[Array, Array]
# Two equal places: an empty path is an error to the browser, and this one draws nothing.
NOWHERE = np.zeros(2)
CLEAR = map_png(np.zeros((1, 1)))
WIDTHS = (0.7, 1.2, 2.0)
# Of another set that explains the weights: shapes that neither points nor candidates have.
OTHERS = {1: "diamond", -1: "triangle-down"}
OTHER_AREA = 150  # px; arbitrary: larger than a candidate, which may stand inside


class PlaneMarks:
    """All bqplot marks of the plane, each set by one method."""

    def __init__(self, x: bq.Scale, y: bq.Scale) -> None:
        """Make the marks, bottom first, on the scales of the plane."""
        scales = {"x": x, "y": y}
        self._images = [w.Image(value=CLEAR, format="png") for _ in range(2)]
        self._front = 0
        self._scales = scales
        self._size = bq.LinearScale(min=0, max=1)  # of an area: the share of a mark's default size
        self.image = bq.Image(image=self._images[0], scales=scales, x=[-2, 2], y=[-2, 2])
        self._neurons = [self._line(INK, width, 0.3 + 0.15 * i) for i, width in enumerate(WIDTHS)]
        self._levels = [
            self._line(NEGATIVE, 1.5, 1, "dashed"), self._line(INK, 2.5, 1),
            self._line(POSITIVE, 1.5, 1, "dashed"),
        ]  # fmt: skip
        self.further_levels = [self._line(COLOURS[label], 1.5, 1, "dashed") for label in LABELS[2:]]
        self._graph = self._line("#009E73", 3, 1)
        self._trails = {y: self._line(COLOURS[y], 1, 0.6) for y in LABELS}
        self.point_marks = {y: self._scatter(y) for y in LABELS}
        self.candidate_marks = {y: self._scatter(y) for y in LABELS}
        for scatter in self.candidate_marks.values():
            scatter.opacities = [0.9]
        self.other_marks = {label: self._scatter(label) for label in OTHERS}
        for label, scatter in self.other_marks.items():
            scatter.marker, scatter.fill, scatter.default_size = OTHERS[label], False, OTHER_AREA
            scatter.stroke, scatter.stroke_width = COLOURS[label], 2.5
        self._past: dict[int, list[Array]] = {label: [] for label in LABELS}
        self._past_t = -1
        self.overlay = OverlayMarks(scales)
        self.all = [
            self.image, *self._neurons, *self._levels, *self.further_levels, self._graph,
            *self._trails.values(), *self.overlay.below, *self.point_marks.values(),
            *self.candidate_marks.values(), *self.other_marks.values(), *self.overlay.above,
        ]  # fmt: skip

    def _line(self, colour: str, width: float, opacity: float, style: str = "solid") -> bq.Lines:
        return bq.Lines(
            x=NOWHERE, y=NOWHERE, scales=self._scales, colors=[colour], stroke_width=width,
            opacities=[opacity], line_style=style, interpolation="linear",
        )  # fmt: skip

    def _scatter(self, label: int) -> bq.Scatter:
        return bq.Scatter(
            x=np.zeros(0), y=np.zeros(0), scales=self._scales | {"size": self._size},
            colors=[COLOURS[label]],
            marker=MARKERS[label], default_size=POINT_AREA, stroke="white", stroke_width=1.2,
        )  # fmt: skip

    # --- backdrop ---------------------------------------------------------------------------
    def map(self, png: bytes, extent: float) -> None:
        """Show the decision map. Two images take turns: a new value in the shown one is ignored."""
        self._front = 1 - self._front
        image = self._images[self._front]
        image.value = png
        with self.image.hold_sync():
            if self.image.x[1] != extent:
                self.image.x = self.image.y = np.array([-extent, extent])
            self.image.image = image

    def clear_map(self) -> None:
        """Remove decision map and level lines."""
        self.map(CLEAR, float(self.image.x[1]))
        self.levels([(NOWHERE, NOWHERE)] * 3)

    def levels(self, paths: list[Path], more: Sequence[Path] = ()) -> None:
        """Level lines at minus margin, zero and plus margin; those of classes 3 and 4."""
        for mark, path in zip(self._levels, paths, strict=True):
            _set(mark, path)
        for mark, further in zip_longest(self.further_levels, more[: len(self.further_levels)]):
            if further is not None or len(mark.x) > 2:
                _set(mark, further or (NOWHERE, NOWHERE))

    def neurons(self, paths: list[Path] | None) -> None:
        """Neurons' lines, weakest first."""
        for mark, path in zip(self._neurons, paths or [(NOWHERE, NOWHERE)] * 3, strict=True):
            _set(mark, path)

    def graph(self, x: Array, values: Array, extent: float) -> None:
        """The graph of Phi with its levels."""
        _set(self._graph, (x, values))
        ends = np.array([-extent, extent])
        self.levels([(ends, np.full(2, level)) for level in (-1.0, 0.0, 1.0)])

    def breakpoints(self, places: list[Array] | None, extent: float) -> None:
        """Breakpoints as upright lines, weakest first."""
        if places is None:
            return self.neurons(None)
        self.neurons([_upright(at, extent) for at in places])

    def hide(self, graph: bool, plane: bool) -> None:
        """Remove the marks of the other dimension."""
        if graph and len(self._graph.x) > 2:
            _set(self._graph, (NOWHERE, NOWHERE))
        if plane and self._images[self._front].value != CLEAR:
            self.map(CLEAR, float(self.image.x[1]))

    def clear_backdrop(self) -> None:
        """Remove everything behind the points."""
        if self._images[self._front].value != CLEAR:
            self.map(CLEAR, float(self.image.x[1]))
        for mark in (*self._levels, *self.further_levels, *self._neurons, self._graph):
            if len(mark.x) > 2:
                _set(mark, (NOWHERE, NOWHERE))

    # --- points -----------------------------------------------------------------------------
    def points(self, frame: Frame, shown: bool) -> None:
        """Show the drawn points; hollow while they are the truth that an attack looks for."""
        attack = frame.aimed
        data = frame.truth if attack and frame.truth is not None else frame.dataset
        x, y = data.x.cpu().numpy(), data.y.cpu().numpy()
        made = frame.training.certificate
        lam = None if made is None or attack or len(made.lam) != len(y) else made.lam.cpu().numpy()
        for label, mark in self.point_marks.items():
            mine = (y == label) & shown
            with mark.hold_sync():
                _place(mark, x[mine], y[mine])
                _areas(mark, None if lam is None else lam[mine], lam)
                if mark.fill == attack:
                    mark.fill = not attack
                    mark.stroke = COLOURS[label] if attack else "white"
                    mark.stroke_width = 2 if attack else 1.2

    def candidates(self, frame: Frame) -> None:
        """The attack's candidates with their last few places, multiplier as area.

        In the explain stage these are the points of the present explanation, without trails. The
        landscape shows the candidates of a run, and none if there was no run.
        """
        state = frame.attack.state if frame.stage in ("attack", "landscape") else None
        if state is not None and frame.stage == "landscape" and not state.t:
            state = None
        if frame.stage == "explain" and frame.explain is not None:
            return self._explanation(frame.explain.present.now)
        if state is None:
            self._past, self._past_t = {label: [] for label in LABELS}, -1
            for trail in self._trails.values():
                _set(trail, (NOWHERE, NOWHERE))
            self._filled(frame.claims)
            return
        self._filled(state)
        x, y = (v.cpu().numpy() for v in (state.x, state.y))
        for label, trail in self._trails.items():
            mine = y == label
            _set(trail, self._trail(label, x[mine], y[mine], state.t))
        self._past_t = state.t

    def other(self, places: Report | None) -> None:
        """Another set that explains the weights, hollow."""
        for label, mark in self.other_marks.items():
            x, y = (np.zeros((0, 2)), np.zeros(0)) if places is None else (
                places.x.cpu().numpy(), places.y.cpu().numpy()
            )  # fmt: skip
            mine = y == label
            with mark.hold_sync():
                _place(mark, x[mine], y[mine])

    def _filled(self, places: AttackState | Report | None) -> None:
        """Candidates, or claims, at their places."""
        if places is None:
            for mark in self.candidate_marks.values():
                _place(mark, np.zeros((0, 2)), np.zeros(0))
            return
        x, y, lam = (v.cpu().numpy() for v in (places.x, places.y, places.lam))
        for label, mark in self.candidate_marks.items():
            mine = y == label
            with mark.hold_sync():
                _place(mark, x[mine], y[mine])
                _areas(mark, lam[mine], lam)

    def _explanation(self, e: Explanation) -> None:
        x, y, lam = e.x.numpy(), e.y.numpy(), e.lam.numpy()
        for label, mark in self.candidate_marks.items():
            mine = y == label
            with mark.hold_sync():
                _place(mark, x[mine], y[mine])
                _areas(mark, lam[mine], lam)
            if len(self._trails[label].x) > 2:
                _set(self._trails[label], (NOWHERE, NOWHERE))

    def _trail(self, label: int, x: Array, y: Array, t: int, length: int = 12) -> Path:
        past = self._past[label]
        if t < self._past_t or (past and past[-1].shape != (len(x), 2)):
            past.clear()
        past.append(np.column_stack([x[:, 0], x[:, 1] if x.shape[1] > 1 else y]))
        del past[:-length]
        gap = np.full((1, len(x), 2), np.nan)
        path = np.concatenate([np.stack(past), gap]).transpose(1, 0, 2).reshape(-1, 2)
        return (path[:, 0], path[:, 1]) if len(path) else (NOWHERE, NOWHERE)


def _set(mark: bq.Mark, path: Path) -> None:
    with mark.hold_sync():
        mark.x, mark.y = path


def _place(mark: bq.Scatter, x: Array, y: Array) -> None:
    """Move a scatter; points of a line stand at the height of their label."""
    height = x[:, 1] if x.shape[1] > 1 else y
    if not (np.array_equal(mark.x, x[:, 0]) and np.array_equal(mark.y, height)):
        mark.x, mark.y = x[:, 0].copy(), height.copy()


def _areas(mark: bq.Scatter, lam: Array | None, everyone: Array | None) -> None:
    """Area by multiplier, linear from a small share to the largest; plain without them."""
    if lam is None or everyone is None or not len(lam) or everyone.max() <= 0:
        if mark.size is not None:
            mark.size, mark.default_size = None, POINT_AREA
        return
    shares = np.round(SMALLEST + (1 - SMALLEST) * np.clip(lam / everyone.max(), 0, 1), 3)
    if mark.size is None or not np.array_equal(mark.size, shares):
        mark.size, mark.default_size = shares, LARGEST_AREA


def _upright(at: Array, extent: float) -> Path:
    gap = np.full(len(at), np.nan)
    x = np.column_stack([at, at, gap]).reshape(-1)
    y = np.column_stack([gap * 0 - extent, gap * 0 + extent, gap])
    y[:, 0], y[:, 1] = -extent, extent
    return (x, y.reshape(-1)) if len(at) else (NOWHERE, NOWHERE)
