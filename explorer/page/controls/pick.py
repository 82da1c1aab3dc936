"""A list beside a chart: choosing an entry loads it, by keyboard as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as w


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
