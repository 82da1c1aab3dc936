"""Settings as rows of a form: the field of a config, its widget, and how the two translate.

The rows of a class of settings are made from its declarations (`explorer.engine.settings`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ipywidgets as w

from explorer.engine.settings import Setting, schema
from explorer.page.controls.row import Item, choices

WIDE = "250px"
LETTER = 6.4  # px: of a letter of a label, on average


@dataclass(frozen=True)
class SettingRow:
    """One setting: the config's field, its widget, and how the two translate."""

    field: str
    widget: w.Widget
    to_config: Callable[[Any], Any] = lambda v: v
    to_widget: Callable[[Any], Any] = lambda v: v


def choice(name: str, tip: str, *options: Any) -> w.Dropdown:  # noqa: ANN401
    """Return a dropdown over (words, value) or plain values."""
    return _with_name(
        w.Dropdown(options=options, description=name, tooltip=tip, layout=w.Layout(width=WIDE))
    )


def whole(name: str, tip: str, low: int, high: int) -> w.BoundedIntText:
    """Return a field for a whole number between two bounds."""
    return _with_name(
        w.BoundedIntText(min=low, max=high, description=name, tooltip=tip,
                         layout=w.Layout(width=WIDE), continuous_update=False)
    )  # fmt: skip


def real(name: str, tip: str, low: float, high: float) -> w.BoundedFloatText:
    """Return a field for a real number between two bounds."""
    return _with_name(
        w.BoundedFloatText(min=low, max=high, description=name, tooltip=tip,
                           layout=w.Layout(width=WIDE), continuous_update=False)
    )  # fmt: skip


def _with_name(widget: w.Widget) -> w.Widget:
    widget.style.description_width = "112px"
    return widget


def field_of(
    setting: Setting,
    value: Any,  # noqa: ANN401
    options: tuple[tuple[str, Any], ...] = (),
) -> w.ValueWidget:
    """Return one setting as a field that holds `value`, as wide as its name and its values.

    It is a choice (of `options` where they are given), a text, a slider where a step is declared (a
    real one over powers of ten is a logarithmic slider), or a number between bounds.
    """
    named: dict[str, Any] = {"description": setting.title, "tooltip": setting.description}
    if options := options or setting.choices:
        kind = w.SelectionSlider if setting.step else w.Dropdown
        made = kind(options=options, value=value, **named)
        room = 50 + LETTER * max(len(words) for words, _ in options)
    elif setting.kind == "word":
        made, room = w.Text(value, continuous_update=False, **named), 215
    else:
        low, high = setting.page or (setting.low, setting.high)
        assert low is not None and high is not None, setting.name
        if not setting.step:
            made, room = w.BoundedIntText(value, min=low, max=high, **named), 85
        elif setting.step < 1 or setting.kind == "whole":
            slider = w.IntSlider if setting.kind == "whole" else w.FloatSlider
            made = slider(value, min=low, max=max(high, value), step=setting.step, **named)
            room = 175
        else:
            powers = {"min": math.log10(low), "max": math.log10(high)}
            made = w.FloatLogSlider(
                value, step=math.log10(setting.step), readout_format=".2g", **powers, **named
            )
            room = 175
    made.style.description_width = "initial"
    made.layout.width = f"min(100%, {room + LETTER * len(setting.title):.0f}px)"
    return made


def item_of(setting: Setting, call: Callable[[Any], None], **more: Any) -> Item:  # noqa: ANN401
    """Return one setting as an item of a row of controls; `call` is told a new value."""
    if setting.choices:
        options = choices(*setting.choices)
        return Item(
            "select", setting.title, setting.description, setting.default, options, call, **more
        )
    low, high = setting.page or (setting.low, setting.high)
    if low is None or high is None:
        raise ValueError(f"the item of {setting.name} needs bounds. Give it a page=(low, high).")
    return Item(
        "number", setting.title, setting.description, setting.default, call=call, low=low,
        high=high, whole=setting.kind == "whole", **more,
    )  # fmt: skip


Rows = tuple[list[SettingRow], list[SettingRow]]
"""Settings in sight, and folded ones."""


def rows_of(kind: type[Any], wanted: Callable[[Setting], bool] = lambda _: True) -> Rows:
    """Return the rows of the `wanted` settings of a class: in sight, and under "More settings"."""
    declared = sorted(filter(wanted, schema(kind)), key=lambda setting: setting.place)
    sight, more = (
        [row for setting in declared if setting.form == form for row in rows_for(setting)]
        for form in ("sight", "more")
    )
    return sight, more


def rows_for(setting: Setting) -> list[SettingRow]:
    """Return one setting as a row; widths as two rows: number of layers, and their width."""
    if setting.kind != "wholes" or setting.page is None:
        return [row_of(setting)]
    layers = choice(
        "hidden layers", "One less than layers of weights", *((str(k), k) for k in range(1, 5))
    )
    width = whole(setting.title, setting.description, *map(int, setting.page))

    def widths(_: int) -> tuple[int, ...]:
        return (int(width.value),) * int(layers.value)

    return [
        SettingRow(setting.name, layers, widths, len),
        SettingRow(setting.name, width, widths, lambda v: v[0]),
    ]


def row_of(setting: Setting) -> SettingRow:
    """Return one setting as a row. On the page 0 stands for None, and its name says what that is.

    Raises:
        ValueError: for a setting that no widget shows, or a number without bounds.
    """
    name, tip = setting.title, setting.description
    none = re.search("; 0: ([^.,]+)", tip)
    if setting.optional and none:
        name = f"{name} (0: {none[1]})"
    if setting.choices:
        same = all(words == value for words, value in setting.choices)
        options = [value for _, value in setting.choices] if same else setting.choices
        return SettingRow(setting.name, choice(name, tip, *options))
    if setting.kind not in ("real", "whole"):
        raise ValueError(f"no widget shows {setting.name}, {setting.words}. Give it labels.")
    low, high = setting.page or (setting.low, setting.high)
    if low is None or high is None:
        raise ValueError(f"the widget of {setting.name} needs bounds. Give it a page=(low, high).")
    make = real if setting.kind == "real" else whole
    widget = make(name, tip, low, high)  # type: ignore[arg-type]
    if setting.optional:
        return SettingRow(setting.name, widget, lambda v: v or None, lambda v: v or 0)
    return SettingRow(setting.name, widget)
