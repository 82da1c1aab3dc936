"""A small chart on a canvas, one message a frame; and a table whose rows have bars.

The browser makes ticks and places the names at the ends of the lines. A chart (`engine.charts`)
that did not change, or that nobody sees, is not sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from traitlets import Dict, List, Unicode

from explorer.engine.charts import NOTHING, Chart
from explorer.engine.settings import is_number
from explorer.page.view.base import HERE, POPUP, CanvasView, script
from explorer.page.view.bundle import View
from explorer.page.view.export import Export, of_chart


class ChartView(CanvasView):
    """Draws the newest chart it was given, at the size of its parent.

    It tells of "handle": the x to which the line is dragged; of "hover": the id of the dot under
    the pointer, -1 when it leaves; of "choose": the id of a dot that is clicked, or chosen by keys.

    Attributes:
        shown: the chart it was given last.
    """

    _esm = script("chart.js")
    _css = (HERE / "chart.css").read_text()

    def __init__(self, **traits: Any) -> None:  # noqa: ANN401 - traits of the view
        """Show nothing."""
        super().__init__(**traits)
        self.shown = NOTHING
        self._given: tuple[Any, ...] = ()
        self._eyes: set[float] = set()
        self._owed = False

    def draw(self, chart: Chart) -> None:
        """Show `chart`; one equal to the last is not sent again, nor one that nobody sees."""
        data, ends = chart.numbers
        given = (chart.values, data.tobytes(), ends.tobytes())
        self.shown = chart
        if given != self._given:
            self._given, self._owed = given, True
            self._pay()

    def export(self) -> Export:
        """Return the numbers of the chart on screen, and its figure."""
        return of_chart(self.shown)

    def _pay(self) -> None:
        if self._owed and self._eyes:
            self._owed = False
            data, ends = self.shown.numbers
            self.show({"data": data, "ends": ends}, **self.shown.values)

    def hear(self, kind: str, content: dict[str, Any], buffers: Sequence[Any]) -> None:
        """Note who sees it, and tell what a hand does."""
        if kind == "sight" and is_number(eye := content.get("view")):
            (self._eyes.add if content.get("seen") else self._eyes.discard)(float(eye))
            self._pay()
        elif kind == "handle" and is_number(at := content.get("at")):
            if self.shown.handle is not None:
                at = float(np.clip(at, self.shown.x.low, self.shown.x.high))
                self.tell("handle", at)
        elif kind in ("hover", "choose") and isinstance(index := content.get("id"), int):
            if index in self._ids() or (kind == "hover" and index == -1):
                self.tell(kind, index)
        else:
            super().hear(kind, content, buffers)

    def _ids(self) -> set[int]:
        return {int(i) for s in self.shown.series for i in s.rows[:, 3] if i >= 0}


class TableView(View):
    """Rows of one kind. A row is a dictionary; what it lacks is not shown.

    It tells of "choose": the key of a row that is clicked; of "tick": the key of a row whose box is
    ticked or not any more, and which of the two.

    Attributes:
        title: above the table.
        note: beside it, in grey.
        head: names of the columns after the first; the first of them has the bars.
        rows: key, title, tip; ticked (a box to tick), off (cannot be ticked), drawn (False:
            cannot be chosen); share and chance, each value, low and high in [0, 1]; count (the
            number of the bar, before it) and said (the rest of it in words); cells (the other
            columns), or words in their place, or nothing: whole (the title spans all columns).
        chosen: key of the marked row.
    """

    _esm = f"{POPUP}\n{(HERE / 'table.js').read_text()}"
    _css = HERE / "table.css"
    title = Unicode("").tag(sync=True)
    note = Unicode("").tag(sync=True)
    head = List(Unicode()).tag(sync=True)
    rows = List(Dict()).tag(sync=True)
    chosen = Unicode("").tag(sync=True)

    def hear(self, kind: str, content: dict[str, Any], buffers: Sequence[Any]) -> None:
        """Tell what a hand does to a row that is there."""
        row = next((row for row in self.rows if row["key"] == content.get("key")), None)
        if row is None:
            return
        if kind == "choose" and row.get("drawn") is not False:
            self.tell(kind, row["key"])
        elif kind == "tick" and not row.get("off"):
            self.tell(kind, row["key"], bool(content.get("ticked")))
