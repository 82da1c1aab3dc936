"""Settings as rows of a form: the field of a config, its widget, and how the two translate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ipywidgets as w

WIDE = w.Layout(width="250px")


@dataclass(frozen=True)
class Row:
    """One setting: the config's field, its widget, and how the two translate."""

    field: str
    widget: w.Widget
    to_config: Callable[[Any], Any] = lambda v: v
    to_widget: Callable[[Any], Any] = lambda v: v


def choice(name: str, tip: str, *options: Any) -> w.Dropdown:  # noqa: ANN401
    """A dropdown over (words, value) or plain values."""
    return _named(w.Dropdown(options=options, description=name, tooltip=tip, layout=WIDE))


def whole(name: str, tip: str, low: int, high: int) -> w.BoundedIntText:
    """A whole number between two bounds."""
    return _named(
        w.BoundedIntText(min=low, max=high, description=name, tooltip=tip, layout=WIDE,
                         continuous_update=False)
    )  # fmt: skip


def real(name: str, tip: str, low: float, high: float) -> w.BoundedFloatText:
    """A real number between two bounds."""
    return _named(
        w.BoundedFloatText(min=low, max=high, description=name, tooltip=tip, layout=WIDE,
                           continuous_update=False)
    )  # fmt: skip


def _named(widget: w.Widget) -> w.Widget:
    widget.style.description_width = "112px"
    return widget


Rows = tuple[list[Row], list[Row]]
"""Settings in sight, and folded ones."""
