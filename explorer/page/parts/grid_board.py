"""All views of a grid of starts: four maps, two edges, the triangle, and their legend."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import bqplot as bq
import ipywidgets as w
import numpy as np

from explorer.engine.energy.starts import NAMES, start_of, steps_of
from explorer.page.parts.grid_charts import (
    CHOSEN,
    SHADES,
    SHADING,
    CellMap,
    Edge,
    Triangle,
)
from explorer.research.grid import WORDS, Maps

EDGES = (
    "Dotted: at the start. Bands span the seeds; at λ₂ = 1 no noise enters, so that all seeds are "
    "one run and there is no band."
)


class GridBoard:
    """Shows `Maps`; a click on a cell is told by its place."""

    def __init__(
        self, press: Callable[[tuple[float, float]], None], chart: Callable[..., bq.Figure],
        titled: Callable[[str, w.Widget], w.Widget],
    ) -> None:  # fmt: skip
        """`press` is called with (lambda_1, lambda_2); `chart` and `titled` are those of panels."""
        self.cells: list[tuple[float, float]] = []

        def on_cell(index: int) -> None:
            press(self.cells[index])

        self.maps = [CellMap(f"distance to {WORDS[n]}", SHADING, on_cell) for n in NAMES]
        self.nearest = CellMap("nearest set", [SHADES[n] for n in NAMES], on_cell)
        self.edges = [
            Edge("data", "λ₁ at λ₂ = 1", chart),
            Edge("noise", "λ₂ at λ₁ = 1", chart),
        ]
        self.triangle = Triangle()
        self.legend = w.HTML().add_class("mx-note")
        pairs = [self.maps[:2], [self.maps[2], self.nearest]]
        wrapped = w.Layout(flex_flow="row wrap", overflow="visible")
        four = w.VBox(
            [w.HBox([m.widget for m in pair], layout=wrapped) for pair in pairs],
            layout=w.Layout(overflow="visible"),
        )
        runs = w.VBox(
            [w.HTML("runs on the triangle").add_class("mx-note"), self.triangle.figure],
            layout=w.Layout(overflow="visible"),
        )
        grid = w.HBox([four, runs]).add_class("mx-row")
        edges = w.HBox([e.figure for e in self.edges]).add_class("mx-charts")
        self.widget = w.VBox(
            [
                grid,
                self.legend,
                titled("Edges: mean distance after the run", edges),
                w.HTML(EDGES).add_class("mx-note"),
            ],
            layout=w.Layout(overflow="visible"),
        )

    def show(self, seen: Maps, trails: list[Any], chosen: tuple[float, float] | None) -> None:
        """Maps of at least one cell, and the runs; the `chosen` cell has a frame."""
        side = len(seen.values)
        cells = [(a, b) for b in steps_of(side) for a in steps_of(side)]
        mean = seen.mean.reshape(3, -1)
        known = np.isfinite(mean[0])
        self.cells = [c for c, k in zip(cells, known, strict=True) if k]
        at = np.array(self.cells)
        words = [_words(c, v) for c, v in zip(self.cells, mean[:, known].T, strict=True)]
        top = float(mean[:, known].max())
        for one, values in zip(self.maps, mean, strict=True):
            one.show(at, values[known], words, side, top)
        nearest = seen.nearest.reshape(-1)[known].astype(float)
        self.nearest.show(at, nearest, words, side, 2.0)
        for edge in self.edges:
            edge.show(seen)
        self.triangle.show(trails)
        self.legend.value = _legend(top)
        self.choose(chosen)

    def choose(self, cell: tuple[float, float] | None) -> None:
        """Frame this cell on every map."""
        for one in (*self.maps, self.nearest):
            one.choose([c for c in self.cells if cell is not None and start_of(*c) == cell])


def trails_of(rows: Mapping[Any, Mapping[str, Any]]) -> list[Any]:
    """The trajectory of each finished cell."""
    return [row["result"]["trail"] for row in rows.values()]


def _legend(top: float) -> str:
    sets = " &nbsp; ".join(
        f"<span><b style='color:{SHADES[n]}'>■</b> {WORDS[n]}</span>" for n in NAMES
    )
    return (
        f"Maps of distances: dark is near (0), bright is far ({top:.2g}). &nbsp; {sets} &nbsp; "
        f"<span><b style='color:{CHOSEN}'>□</b> the cell chosen</span>"
    )


def _words(cell: tuple[float, float], values: np.ndarray) -> str:
    parts = ", ".join(f"{v:.3g} to {WORDS[n]}" for v, n in zip(values, NAMES, strict=True))
    return f"λ₁ {cell[0]:g}, λ₂ {cell[1]:g}: {parts}"
