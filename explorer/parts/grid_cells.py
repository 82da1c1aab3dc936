"""One cell of a grid: chosen from a list, by keyboard as well, with what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import ipywidgets as w

from explorer.engine.lambda_grid import NAMES
from explorer.grids.live import Key
from explorer.grids.maps import WORDS

Cell = tuple[float, float]
NONE = ("choose a cell …", None)


class GridCells:
    """A list of the cells that are done, and a sentence."""

    def __init__(self, load: Callable[[Cell], None]) -> None:
        """`load` is called with (lambda_1, lambda_2) of a chosen cell."""
        self._load, self._setting = load, False
        self.chosen: Cell | None = None
        self.list = w.Dropdown(
            options=[NONE], description="cell", layout=w.Layout(width="100%", max_width="420px"),
            tooltip="The cells that are done, with their mean distances: choosing one loads its "
            "run, as a click on the maps does",
        )  # fmt: skip
        self.list.style.description_width = "initial"
        self.list.observe(self._on_choice, names=["value"])
        self.said = w.HTML().add_class("mx-note")
        self.widget = w.VBox([self.list, self.said], layout=w.Layout(overflow="visible"))

    def _on_choice(self, change: dict[str, Any]) -> None:
        if not self._setting and change["new"] is not None:
            self._load(change["new"])

    def fill(self, rows: Mapping[Key, Mapping[str, Any]]) -> None:
        """List these cells, those of the first seed."""
        options = [
            (f"λ₁ {a:g}, λ₂ {b:g}: {_distances(row)}", (a, b))
            for (k, a, b), row in sorted(rows.items())
            if k == 0
        ]
        self._setting = True
        self.list.options = [NONE, *options]
        self.list.value = self.chosen if self.chosen in dict((v, t) for t, v in options) else None
        self._setting = False

    def tell(self, cell: Cell | None, words: str) -> None:
        """`cell` is the one that is shown now."""
        self.chosen, self.said.value = cell, escape(words)
        self._setting = True
        known = [value for _, value in self.list.options]
        self.list.value = cell if cell in known else None
        self._setting = False


def _distances(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{row['result'][n]:.3g} to {WORDS[n]}" for n in NAMES)
