"""What an attack or an explanation draws on the plane beside points and candidates.

`Overlay` says what is to be seen, in the coordinates of the plane; `OverlayMarks` are its bqplot
marks, above the map and below the points.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import bqplot as bq
import numpy as np
from numpy.typing import NDArray

from explorer.style import INK, PROVEN

Array = NDArray[np.float64]
NOWHERE = np.zeros((2, 2))  # two equal places draw nothing; an empty path is an error to bqplot
NONE = np.zeros((0, 2))


@dataclass(frozen=True, eq=False)
class Overlay:
    """Shapes on the plane; in 1-D the second coordinate is Phi over the margin.

    Attributes:
        lines: thin paths (k, 2), apart from each other by a row of nan.
        strong: thick paths, likewise.
        dots: small grey places (p, 2), such as candidates that were tried.
        rings: places with a ring around (r, 2), such as what is proven.
        diamonds: places with a thin diamond around (d, 2): what is likely, not proven.
        area: a pale polygon (k, 2).
        hands: places with a square around (h, 2): what is in hand.
        spans: shaded upright bands (low, high).
        texts: words at places (x, y, text).
    """

    lines: Array = field(default_factory=lambda: NONE)
    strong: Array = field(default_factory=lambda: NONE)
    dots: Array = field(default_factory=lambda: NONE)
    rings: Array = field(default_factory=lambda: NONE)
    diamonds: Array = field(default_factory=lambda: NONE)
    hands: Array = field(default_factory=lambda: NONE)
    area: Array = field(default_factory=lambda: NONE)
    spans: tuple[tuple[float, float], ...] = ()
    texts: tuple[tuple[float, float, str], ...] = ()


EMPTY = Overlay()


class OverlayMarks:
    """The marks of one overlay."""

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

    def show(self, overlay: Overlay, extent: float) -> None:
        """Draw `overlay`; the same one again costs nothing."""
        if overlay is self._now:
            return
        self._now = overlay
        paths = (self._lines, overlay.lines), (self._strong, overlay.strong)
        for mark, path in (*paths, (self._area, overlay.area)):
            _set(mark, path if len(path) > 1 else NOWHERE)
        sets = (overlay.dots, overlay.rings, overlay.diamonds, overlay.hands)
        marks = (self._dots, self._rings, self._diamonds, self._hands)
        for mark, places in zip(marks, sets, strict=True):
            _set(mark, places)
        low, high = (np.array([s[i] for s in overlay.spans] or [0.0]) for i in (0, 1))
        with self._spans.hold_sync():
            self._spans.x = np.column_stack([low, high, high, low])
            flat = np.full(len(low), extent if overlay.spans else 0.0)
            self._spans.y = np.column_stack([-flat, -flat, flat, flat])
            # One value would fill the first span only; neighbours differ, to be told apart.
            self._spans.fill_opacities = [0.12 + 0.1 * (i % 2) for i in range(len(low))]
            self._spans.fill_colors = self._spans.colors = [PROVEN] * len(low)
        with self._texts.hold_sync():
            self._texts.x = np.array([t[0] for t in overlay.texts], dtype=float)
            self._texts.y = np.array([t[1] for t in overlay.texts], dtype=float)
            self._texts.text = [t[2] for t in overlay.texts]


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
