"""The marks of the grid of starts: maps of cells to click, edges with bands, a triangle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bqplot as bq
import ipywidgets as w
import numpy as np
from numpy.typing import NDArray

from explorer.engine.energy import starts
from explorer.engine.energy.starts import CORNERS, NAMES
from explorer.research.grid import WORDS, Maps, band
from explorer.style import CURVES, INK, SHADES

Array = NDArray[np.float64]
# Viridis at six even places: equal steps of lightness, told apart by the colour-blind.
SHADING = ["#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#fde725"]
CHOSEN = "#ff4fd8"  # the frame of a chosen cell: on none of the colours below it
SIZE, LEFT, BOTTOM, TOP = 170, 34, 34, 6  # px of a map and its margins; two fit a narrow page
SQUARE = SIZE - LEFT - TOP  # px of the cells' area, both ways


class CellMap:
    """Squares over (lambda_1, lambda_2), coloured by a number."""

    def __init__(self, title: str, colours: list[str], on_cell: Callable[[int], None]) -> None:
        """Make it empty. `on_cell` is called with the index of a clicked cell in `words`."""
        self.x, self.y = (bq.LinearScale(min=0, max=1, allow_padding=False) for _ in range(2))
        self.colour = bq.ColorScale(min=0, max=1, colors=colours)
        self.marks = bq.Scatter(
            x=np.zeros(0), y=np.zeros(0), color=np.zeros(0), marker="square", stroke_width=0,
            scales={"x": self.x, "y": self.y, "color": self.colour}, display_names=False,
            tooltip=bq.Tooltip(fields=["name"], show_labels=False),
        )  # fmt: skip
        self.frame = bq.Scatter(
            x=np.zeros(0), y=np.zeros(0), marker="square", fill=False, colors=[CHOSEN],
            stroke=CHOSEN, stroke_width=3, scales={"x": self.x, "y": self.y}, interactions={},
        )  # fmt: skip
        self.marks.on_element_click(lambda _, event: on_cell(event["data"]["index"]))
        axes = [
            bq.Axis(scale=self.x, label="λ₁", grid_lines="none", tick_values=[0, 1],
                    tick_format="~g", label_offset="2em"),
            bq.Axis(scale=self.y, label="λ₂", side="left", grid_lines="none",
                    tick_values=[0, 1], tick_format="~g", label_offset="1.5em"),
        ]  # fmt: skip
        px = f"{SIZE}px"
        figure = bq.Figure(
            marks=[self.marks, self.frame], axes=axes, padding_x=0, padding_y=0,
            display_toolbar=False,
            fig_margin={"top": TOP, "bottom": SIZE - TOP - SQUARE, "left": LEFT, "right": TOP},
            background_style={"fill": "transparent"},
            layout=w.Layout(width=px, height=px, min_width="0"),
        )  # fmt: skip
        head = w.HTML(title).add_class("mx-note")
        self.widget = w.VBox([head, figure], layout=w.Layout(overflow="visible"))

    def show(self, cells: Array, values: Array, words: list[str], side: int, top: float) -> None:
        """Show cells (c, 2) with their numbers (c,) and a text on each."""
        half = 0.5 / (side - 1)
        for scale in (self.x, self.y):
            scale.min, scale.max = -half, 1 + half
        self.colour.min, self.colour.max = 0.0, max(top, 1e-9)
        with self.marks.hold_sync():
            self.marks.default_size = int((SQUARE / side - 1) ** 2)
            self.marks.x, self.marks.y = cells[:, 0].copy(), cells[:, 1].copy()
            self.marks.color, self.marks.names = values.copy(), np.array(words)
        self.frame.default_size = self.marks.default_size

    def choose(self, cells: list[tuple[float, float]]) -> None:
        """Put a frame around these."""
        at = np.array(cells, dtype=float).reshape(-1, 2)
        _set(self.frame, at[:, 0], at[:, 1])


class Edge:
    """Mean distances along an edge of the grid, with the band over seeds."""

    def __init__(self, which: str, label: str, chart: Callable[..., bq.Figure]) -> None:
        """`which` as in `Maps.edge`; `chart` makes the figure."""
        self.which, self.sets = which, (0, 1 if which == "data" else 2)
        self.x = bq.LinearScale(min=0, max=1, allow_padding=False)
        self.y = bq.LinearScale(min=0, max=1, allow_padding=False)
        scales = {"x": self.x, "y": self.y}
        shades = [SHADES[NAMES[k]] for k in self.sets]
        self.bands = [
            bq.Lines(
                x=np.zeros(2), y=np.zeros((2, 2)), scales=scales, colors=[shade, shade],
                stroke_width=0, fill="between", fill_colors=[shade], fill_opacities=[0.25],
            )
            for shade in shades
        ]  # fmt: skip
        self.lines = [self._line(shade, "solid", scales) for shade in shades]
        self.begun = [self._line(shade, "dotted", scales) for shade in shades]
        self.figure = chart(label, "", [*self.bands, *self.begun, *self.lines], self.x, self.y)
        self.figure.axes[0].tick_values = [0, 0.25, 0.5, 0.75, 1]
        self.figure.axes[0].tick_format = "~g"

    @staticmethod
    def _line(shade: str, style: str, scales: dict[str, bq.Scale]) -> bq.Lines:
        return bq.Lines(
            x=np.zeros(2), y=np.zeros(2), scales=scales, colors=[shade], line_style=style,
            stroke_width=2 if style == "solid" else 1.2,
        )  # fmt: skip

    def show(self, found: Maps) -> None:
        """Show the edge; unfinished cells are left out of the curves."""
        end, start = found.edge(self.which)
        top = 0.0
        for k, wide, line, dotted in zip(
            self.sets, self.bands, self.lines, self.begun, strict=True
        ):
            mean, low, high = band(end[:, k])
            first = band(start[:, k])[0]
            known = np.isfinite(mean)
            at = found.values[known]
            if len(at) < 2:
                at, mean, low, high, first = (np.zeros(2) for _ in range(5))
                known = np.ones(2, dtype=bool)
            else:
                top = max(top, float(high[known].max()), float(first[known].max()))
            _set(wide, at, np.stack([low[known], high[known]]))
            _set(line, at, mean[known])
            _set(dotted, at, first[known])
        self.y.max = _above(top) if top > 0 else 1.0
        self.figure.axes[1].tick_values = np.linspace(0, self.y.max, 5)


class TriangleMarks:
    """The triangle of starts: its edge, its named corners, runs as paths with their ends."""

    def __init__(
        self, scales: dict[str, bq.Scale], aside: Array, colour: str, size: int,
        around: str = "transparent", align: str = "start",
    ) -> None:  # fmt: skip
        """Marks without runs.

        `aside`: where a name stands beside its corner, by its start or its middle (`align`), in
        `size` px. `around`: a colour behind the runs, where they are on a map.
        """
        self.aside = aside
        self.edge = bq.Lines(x=np.zeros(2), y=np.zeros(2), scales=scales, colors=[INK])
        self.names = bq.Label(
            x=np.zeros(0), y=np.zeros(0), text=[], scales=scales, default_size=size,
            font_weight="normal", colors=[SHADES[n] for n in NAMES], align=align,
        )  # fmt: skip
        self.behind = bq.Lines(
            x=np.zeros(2), y=np.zeros(2), scales=scales, colors=[around], stroke_width=3
        )
        self.paths = bq.Lines(
            x=np.zeros(2), y=np.zeros(2), scales=scales, colors=[colour], stroke_width=1,
            opacities=[0.8],
        )  # fmt: skip
        self.ends = bq.Scatter(
            x=np.zeros(0), y=np.zeros(0), scales=scales, colors=[colour], default_size=24,
            stroke=around, stroke_width=1,
        )  # fmt: skip
        self.all = [self.edge, self.behind, self.paths, self.ends, self.names]

    def frame(self, shown: bool) -> None:
        """The edge with its names, or nothing."""
        ring = starts.outline() if shown else np.zeros((2, 2))
        if np.array_equal(self.edge.x, ring[:, 0]):
            return
        _set(self.edge, ring[:, 0], ring[:, 1])
        at = CORNERS + self.aside if shown else np.zeros((0, 2))
        with self.names.hold_sync():
            self.names.x, self.names.y = at[:, 0].copy(), at[:, 1].copy()
            self.names.text = [WORDS[n].split()[0] for n in NAMES] if shown else []

    def show(self, trails: list[list[list[float]]]) -> None:
        """One path per run, its end as a dot; what leaves the figure is cut at its edge."""
        path = starts.paths(trails)
        for mark in (self.behind, self.paths):
            _set(mark, path[:, 0], path[:, 1])
        last = [starts.paths([t[-1:]])[0] for t in trails]
        ends = np.array(last).reshape(-1, 2)
        _set(self.ends, ends[:, 0], ends[:, 1])


class Triangle:
    """Runs on the triangle of starts: the weights of the best mixture at each state."""

    def __init__(self) -> None:
        """A figure with three named corners and no runs."""
        self.x, self.y = (bq.LinearScale(min=0, max=1, allow_padding=False) for _ in range(2))
        aside = np.array([[0.04, 0.0], [-0.08, -0.1], [-0.12, -0.1]])
        self.marks = TriangleMarks({"x": self.x, "y": self.y}, aside, CURVES[0], 12)
        self.marks.frame(True)
        self.paths, self.ends, self.show = self.marks.paths, self.marks.ends, self.marks.show
        self.figure = bq.Figure(
            marks=self.marks.all, axes=[], padding_x=0, padding_y=0,
            fig_margin={"top": 4, "bottom": 4, "left": 4, "right": 4}, display_toolbar=False,
            background_style={"fill": "transparent"},
            layout=w.Layout(width="196px", height="200px", min_width="0"),
        )  # fmt: skip


def _above(value: float) -> float:
    """Return the next of 1, 2, 4, 6 or 8 times a power of ten: its quarters are short numbers."""
    power = 10.0 ** np.floor(np.log10(max(value, 1e-9)))
    return float(next(f * power for f in (1, 2, 4, 6, 8, 10) if f * power >= value * (1 - 1e-9)))


def _set(mark: Any, x: Array, y: Array) -> None:  # noqa: ANN401
    with mark.hold_sync():
        mark.x, mark.y = x.copy(), y.copy()
