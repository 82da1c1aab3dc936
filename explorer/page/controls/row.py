"""Rows of buttons, choices, fields and words, each row one widget with a state in JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from explorer.page.controls.control import Control, script

Kind = Literal["button", "segments", "select", "number", "bar", "words"]
Call = Callable[[Any], None]


@dataclass(frozen=True)
class Item:
    """One thing in a row.

    Attributes:
        kind: what it is.
        label: what stands on it, or before it.
        tip: what is said of it when the pointer rests there.
        value: of a choice one of its options, of a number itself, of a bar its share, of words
            their HTML; of a button that stays pressed, whether it is, and of one that changes what
            it does, what that is now.
        options: of a choice: words, value and tooltip of each.
        call: called with the new value when a hand has changed it, or pressed it.
        low: least value of a number.
        high: largest value of a number.
        whole: whether a number is whole.
        filled: whether a button is the next thing to do.
        disabled: whether nothing can be done with it.
        hidden: whether it is out of sight.
    """

    kind: Kind
    label: str = ""
    tip: str = ""
    value: Any = None
    options: tuple[tuple[str, Any, str], ...] = ()
    call: Call | None = None
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    filled: bool = False
    disabled: bool = False
    hidden: bool = False

    @property
    def place(self) -> int:
        """Return where the value stands among the options; -1 for nowhere."""
        return next((i for i, (_, value, _) in enumerate(self.options) if value == self.value), -1)

    @property
    def shown(self) -> dict[str, Any]:
        """Return it as `row.js` takes it."""
        made = {"kind": self.kind, "label": self.label, "tip": self.tip, "value": self.value}
        if self.options:
            made |= {
                "value": self.place,
                "options": [[words, tip] for words, _, tip in self.options],
            }
        if self.kind == "number":
            made |= {"low": self.low, "high": self.high, "whole": self.whole}
        flags = ("filled", "disabled", "hidden")
        return made | {name: True for name in flags if getattr(self, name)}

    def taken(self, given: Any) -> Any:  # noqa: ANN401 - from a browser
        """Return the value that a browser asks for. ValueError for one that it cannot have."""
        if self.kind == "button" and isinstance(self.value, str):
            return str(given)  # what it did where it was pressed, which may be over by now
        if self.kind == "button":
            return None if self.value is None else not self.value
        number = isinstance(given, int | float) and not isinstance(given, bool)
        if self.options and number and given in range(len(self.options)):
            return self.options[int(given)][1]
        if self.kind == "number" and number and math.isfinite(given):
            near = min(max(given, self.low), self.high)
            return round(near) if self.whole else float(near)
        raise ValueError(f"{self.label or self.kind} takes no {given!r}")


class Row(Control):
    """Items side by side; the row wraps.

    >>> row = Row(price=Item("number", "price", value=0.0, high=5.0))
    >>> row.put("price", value=2.0)
    >>> row.value("price")
    2.0
    """

    _esm = script("row.js")

    def __init__(self, look: tuple[str, ...] = (), /, **items: Item) -> None:
        """Show these items, each by its name; `look`: style classes."""
        self.items = items
        super().__init__({"set": self._set}, look, items=self._rows())

    def value(self, name: str) -> Any:  # noqa: ANN401 - of any item
        """Return the value of an item."""
        return self.items[name].value

    def put(self, name: str, **changes: Any) -> None:  # noqa: ANN401 - fields of Item
        """Change an item; the browser is told if it differs. Nothing is called."""
        self.items[name] = replace(self.items[name], **changes)
        self.show(items=self._rows())

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Send all changes made meanwhile as one."""
        with self.hold_sync():
            yield

    def _rows(self) -> list[list[Any]]:
        return [[name, item.shown] for name, item in self.items.items()]

    def _set(self, given: Any) -> None:  # noqa: ANN401 - from a browser
        """Take over what a hand has done, unless the item cannot have that value."""
        if not isinstance(given, list) or len(given) != 2 or given[0] not in self.items:
            return
        name, item = given[0], self.items[given[0]]
        try:
            value = item.taken(given[1])
        except ValueError:
            return
        if item.disabled:
            return
        if value is not None and not (item.kind == "button" and isinstance(value, str)):
            self.put(name, value=value)
        if item.call is not None:
            item.call(value)


def choices(*pairs: tuple[str, Any], tips: Sequence[str] = ()) -> tuple[tuple[str, Any, str], ...]:
    """Return options of a choice from words and values."""
    told = [*tips, *[""] * (len(pairs) - len(tips))]
    return tuple((words, value, tip) for (words, value), tip in zip(pairs, told, strict=True))
