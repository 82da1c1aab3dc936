"""One cell of a grid: chosen from a list, by keyboard as well, with what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import ipywidgets as w

from explorer.engine.lambda_grid import NAMES
from explorer.grids.live import Key
from explorer.grids.maps import WORDS
from explorer.parts.pick import Pick

Cell = tuple[float, float]


class GridCells:
    """A list of the cells that are done, and a sentence."""

    def __init__(self, load: Callable[[Cell], None]) -> None:
        """`load` is called with (lambda_1, lambda_2) of a chosen cell."""
        self.chosen: Cell | None = None
        self.pick = Pick(
            "cell", "The cells that are done, with their mean distances: choosing one loads its "
            "run, as a click on the maps does", load,
        )  # fmt: skip
        self.list = self.pick.list
        self.said = w.HTML().add_class("mx-note")
        self.widget = w.VBox([self.list, self.said], layout=w.Layout(overflow="visible"))

    def fill(self, rows: Mapping[Key, Mapping[str, Any]]) -> None:
        """List these cells, those of the first seed."""
        options = [
            (f"λ₁ {a:g}, λ₂ {b:g}: {_distances(row)}", (a, b))
            for (k, a, b), row in sorted(rows.items())
            if k == 0
        ]
        self.pick.fill(options, self.chosen)

    def tell(self, cell: Cell | None, words: str) -> None:
        """`cell` is the one that is shown now."""
        self.chosen, self.said.value = cell, escape(words)
        self.pick.choose(cell)


def _distances(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{row['result'][n]:.3g} to {WORDS[n]}" for n in NAMES)
