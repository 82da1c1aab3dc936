"""A list beside a chart: choosing an entry loads it, by keyboard as well."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import ipywidgets as w

from explorer.engine.energy.starts import NAMES
from explorer.research.grid import WORDS, Key


class Pick:
    """A dropdown that calls `load` for a choice of the visitor, not for one set by the page."""

    def __init__(self, name: str, tip: str, load: Callable[[Any], None]) -> None:
        """Make it without entries."""
        self._load, self._setting, self._none = load, False, (f"choose a {name} …", None)
        self.list = w.Dropdown(
            options=[self._none], description=name, tooltip=tip,
            layout=w.Layout(width="100%", max_width="420px"),
        )  # fmt: skip
        self.list.style.description_width = "initial"
        self.list.observe(self._on_choice, names=["value"])
        self.choose(None)

    def _on_choice(self, change: dict[str, Any]) -> None:
        if not self._setting and change["new"] is not None:
            self._load(change["new"])

    def fill(self, options: Sequence[tuple[str, Any]], chosen: Any) -> None:  # noqa: ANN401
        """Offer these (words, value); `chosen` is the loaded one, if it is among them."""
        self._setting = True
        self.list.options = [self._none, *options]
        self.choose(chosen)

    def choose(self, value: Any) -> None:  # noqa: ANN401
        """Show this one as chosen, if it is offered; None for none."""
        self._setting = True
        known = [offered for _, offered in self.list.options]
        # By index: a value of None, though offered, leaves a dropdown blank.
        self.list.index = known.index(value) if value in known else 0
        self._setting = False


# --- One cell of a grid: chosen from a list, by keyboard as well, with what is said of it -------

Cell = tuple[float, float]


class GridCells:
    """A list of the finished cells, and a sentence."""

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
