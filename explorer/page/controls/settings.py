"""Settings as items of a row: what is declared of one says how it is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from explorer.engine.settings import Setting, schema
from explorer.page.controls.row import Item, choices

LAYERS = "layers"  # the item that stands beside the widths
MOST_LAYERS = 4  # hidden ones


def item_of(setting: Setting, call: Callable[[Any], None] | None = None, **more: Any) -> Item:  # noqa: ANN401
    """Return one setting as an item; `call` is told a new value, `more` are fields of the item.

    It is a choice, a text, or a number between bounds; a slider where a step is declared. On the
    page 0 stands for None, and its name says what that is.

    Raises:
        ValueError: for a setting that no item shows, or a number without bounds.
    """
    none = re.search("; 0: ([^.,]+)", setting.description) if setting.optional else None
    named: dict[str, Any] = {
        "label": f"{setting.title} (0: {none[1]})" if none else setting.title,
        "tip": setting.description, "value": setting.default, "call": call,
    }  # fmt: skip
    if setting.choices or more.get("options"):
        kind = "slider" if setting.step else "select"
        return Item(kind, **{**named, "options": choices(*setting.choices), **more})  # type: ignore[arg-type]
    if setting.kind == "word":
        return Item("text", **{**named, **more})
    if setting.kind not in ("real", "whole", "wholes"):
        raise ValueError(f"no widget shows {setting.name}, {setting.words}. Give it labels.")
    low, high = setting.page or (setting.low, setting.high)
    if low is None or high is None:
        raise ValueError(f"the widget of {setting.name} needs bounds. Give it a page=(low, high).")
    number: dict[str, Any] = {
        "low": low, "high": high, "step": setting.step, "whole": setting.kind != "real",
        "optional": setting.optional,
    }  # fmt: skip
    return Item("slider" if setting.step else "number", **{**named, **number, **more})


def in_form(kind: type[Any], wanted: Callable[[Setting], bool] = lambda _: True) -> list[Setting]:
    """Return the `wanted` settings of a class: those in sight, then those under "More settings"."""
    declared = sorted(filter(wanted, schema(kind)), key=lambda setting: setting.place)
    return [setting for form in ("sight", "more") for setting in declared if setting.form == form]


def items_of(declared: Iterable[Setting], put: Callable[[str, Any], None]) -> dict[str, Item]:
    """Return settings as items by name; `put` is called with the name of a changed one.

    Widths are two: the number of layers, and their width.
    """
    made = {}
    for setting in declared:
        name, call = setting.name, partial(put, setting.name)
        if setting.kind == "wholes":
            counts = choices(*((str(k), k) for k in range(1, MOST_LAYERS + 1)))
            tip = "One less than layers of weights"
            made[LAYERS] = Item("select", "hidden layers", tip, 1, counts, call)
        made[name] = item_of(setting, call)
    return made
