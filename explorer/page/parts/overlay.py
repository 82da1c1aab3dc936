"""The bqplot marks of `Shapes`, above the map and below the points."""

from __future__ import annotations

import bqplot as bq
import numpy as np
from contourpy import contour_generator

from explorer.engine.attacks.shapes import EMPTY, Array, Level, Shapes, joined
from explorer.style import INK, PROVEN

NOWHERE = np.zeros((2, 2))  # two equal places draw nothing; an empty path is an error to bqplot


class OverlayMarks:
    """The marks of what an attack or an explanation draws."""

    def __init__(self, scales: dict[str, bq.Scale]) -> None:
        """Make them, empty, on the scales of the plane."""
        self._lines = _path(scales, INK, 1.0, 0.7)
        self._strong = _path(scales, PROVEN, 2.5, 1.0)
        self._spans = bq.Lines(
            x=np.zeros((1, 2)), y=np.zeros((1, 2)), scales=scales, colors=[PROVEN],
            stroke_width=0, fill="inside", fill_colors=[PROVEN], fill_opacities=[0.15],
        )  # fmt: skip
        self._area = _path(scales, PROVEN, 1.5, 0.9)
        self._area.fill, self._area.fill_colors, self._area.fill_opacities = (
            "inside", [PROVEN], [0.16],
        )  # fmt: skip
        self._dots = _dots(scales, INK, 16, "cross")
        self._rings = _dots(scales, PROVEN, 330, "circle")
        self._rings.fill, self._rings.stroke, self._rings.stroke_width = False, PROVEN, 2.5
        self._diamonds = _dots(scales, PROVEN, 560, "diamond")
        self._diamonds.fill, self._diamonds.stroke = False, PROVEN
        self._diamonds.stroke_width = 2.0
        self._hands = _dots(scales, INK, 420, "square")
        self._hands.fill, self._hands.stroke, self._hands.stroke_width = False, INK, 1.5
        self._texts = bq.Label(
            x=np.zeros(0), y=np.zeros(0), text=[], scales=scales, colors=[INK], default_size=12,
            font_weight="normal",
        )  # fmt: skip
        self.below = [self._spans, self._area, self._lines, self._strong, self._dots]
        self.above = [self._rings, self._diamonds, self._hands, self._texts]
        self._now = EMPTY

    def show(self, shapes: Shapes, extent: float) -> None:
        """Draw `shapes`; the same ones are not drawn again."""
        if shapes is self._now:
            return
        self._now = shapes
        paths = (self._lines, _path_of(shapes, False)), (self._strong, _path_of(shapes, True))
        for mark, path in (*paths, (self._area, shapes.area)):
            _set(mark, path if len(path) > 1 else NOWHERE)
        sets = (shapes.dots, shapes.rings, shapes.diamonds, shapes.hands)
        marks = (self._dots, self._rings, self._diamonds, self._hands)
        for mark, places in zip(marks, sets, strict=True):
            _set(mark, places)
        low, high = (np.array([s[i] for s in shapes.spans] or [0.0]) for i in (0, 1))
        with self._spans.hold_sync():
            self._spans.x = np.column_stack([low, high, high, low])
            flat = np.full(len(low), extent if shapes.spans else 0.0)
            self._spans.y = np.column_stack([-flat, -flat, flat, flat])
            # One value would fill the first span only; neighbours differ, to be told apart.
            self._spans.fill_opacities = [0.12 + 0.1 * (i % 2) for i in range(len(low))]
            self._spans.fill_colors = self._spans.colors = [PROVEN] * len(low)
        with self._texts.hold_sync():
            self._texts.x = np.array([t[0] for t in shapes.texts], dtype=float)
            self._texts.y = np.array([t[1] for t in shapes.texts], dtype=float)
            self._texts.text = [t[2] for t in shapes.texts]


def _path_of(shapes: Shapes, strong: bool) -> Array:
    """The thin or the thick paths, with the lines at 0 of the functions so drawn."""
    own = shapes.strong if strong else shapes.lines
    zeros = [path for level in shapes.levels if level.strong == strong for path in _zero(level)]
    return joined([own, *zeros] if len(own) else zeros)


def _zero(level: Level) -> list[Array]:
    """The paths (k, 2) on which the function is 0."""
    found = contour_generator(level.axis, level.axis, level.values).lines(0.0)
    return [np.asarray(path, dtype=float) for path in found]


def _path(scales: dict[str, bq.Scale], colour: str, width: float, opacity: float) -> bq.Lines:
    return bq.Lines(
        x=np.zeros(2), y=np.zeros(2), scales=scales, colors=[colour], stroke_width=width,
        opacities=[opacity],
    )  # fmt: skip


def _dots(scales: dict[str, bq.Scale], colour: str, size: int, marker: str) -> bq.Scatter:
    return bq.Scatter(
        x=np.zeros(0), y=np.zeros(0), scales=scales, colors=[colour], default_size=size,
        marker=marker,
    )  # fmt: skip


def _set(mark: bq.Mark, places: Array) -> None:
    places = np.asarray(places, dtype=float).reshape(-1, 2)
    if not (
        np.array_equal(mark.x, places[:, 0], True) and np.array_equal(mark.y, places[:, 1], True)
    ):
        with mark.hold_sync():
            mark.x, mark.y = places[:, 0].copy(), places[:, 1].copy()
