"""A table whose rows can be ticked and drawn: bars with intervals, beside a control."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
from traitlets import Dict, List, Unicode

from explorer.page.view.base import HERE


class TableView(anywidget.AnyWidget):
    """Rows of one kind. A row is a dictionary; what it lacks is not shown.

    Attributes:
        title: above the table.
        note: beside it, in grey.
        head: names of the columns after the first; the first of them has the bars.
        rows: key, title, tip; ticked (a box to tick), off (cannot be ticked), drawn (False: cannot
            be chosen); share and chance, each value, low and high in [0, 1]; said (the bars in
            words); cells (the other columns), or words in their place.
        chosen: key of the marked row.
    """

    _esm = HERE / "table.js"
    _css = HERE / "table.css"
    title = Unicode("").tag(sync=True)
    note = Unicode("").tag(sync=True)
    head = List(Unicode()).tag(sync=True)
    rows = List(Dict()).tag(sync=True)
    chosen = Unicode("").tag(sync=True)

    def __init__(self, **traits: Any) -> None:  # noqa: ANN401 - traits of the view
        """Show no rows."""
        super().__init__(**traits)
        self._chosen: list[Callable[[str], None]] = []
        self._ticked: list[Callable[[str, bool], None]] = []
        self.on_msg(self._answer)

    def on_choose(self, call: Callable[[str], None]) -> None:
        """Call `call(key)` when a row is clicked."""
        self._chosen.append(call)

    def on_tick(self, call: Callable[[str, bool], None]) -> None:
        """Call `call(key, ticked)` when the box of a row is ticked or not any more."""
        self._ticked.append(call)

    def _answer(self, _: Any, content: Any, __: Any) -> None:  # noqa: ANN401 - from a browser
        if not isinstance(content, dict):
            return
        rows = {row["key"]: row for row in self.rows}
        row = rows.get(content.get("key"))
        if row is None:
            return
        if content.get("kind") == "choose" and row.get("drawn") is not False:
            for call in self._chosen:
                call(row["key"])
        elif content.get("kind") == "tick" and not row.get("off"):
            for tell in self._ticked:
                tell(row["key"], bool(content.get("ticked")))
