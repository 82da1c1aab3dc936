"""A small chart on a canvas, one message a frame; and a table whose rows have bars.

The browser makes ticks and places the names at the ends of the lines. A chart (`engine.charts`)
that did not change, or that nobody sees, is not sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import numpy as np
from traitlets import Dict, List, Unicode

from explorer.engine.charts import NOTHING, Chart
from explorer.page.view.base import HERE, POPUP, CanvasView, script
from explorer.page.view.export import Export, of_chart


class ChartView(CanvasView):
    """Draws the newest chart it was given, at the size of its parent.

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
        self._calls: dict[str, list[Callable[[Any], None]]] = {}

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

    def on_handle(self, call: Callable[[float], None]) -> None:
        """Call `call(x)` while the line is dragged."""
        self._calls.setdefault("handle", []).append(call)

    def on_hover(self, call: Callable[[int], None]) -> None:
        """Call `call(id)` when the pointer comes to a dot, and `call(-1)` when it leaves."""
        self._calls.setdefault("hover", []).append(call)

    def on_choose(self, call: Callable[[int], None]) -> None:
        """Call `call(id)` when a dot is clicked, or chosen by keys."""
        self._calls.setdefault("choose", []).append(call)

    def _pay(self) -> None:
        if self._owed and self._eyes:
            self._owed = False
            data, ends = self.shown.numbers
            self.show({"data": data, "ends": ends}, **self.shown.values)

    def _answer(self, view: Any, content: Any, buffers: Any) -> None:  # noqa: ANN401 - a browser's
        kind = content.get("kind") if isinstance(content, dict) else None
        if kind == "sight" and isinstance(eye := content.get("view"), float | int):
            (self._eyes.add if content.get("seen") else self._eyes.discard)(float(eye))
            self._pay()
        elif kind == "handle" and isinstance(at := content.get("at"), float | int):
            if self.shown.handle is not None:
                at = float(np.clip(at, self.shown.x.low, self.shown.x.high))
                self._tell("handle", at)
        elif kind in ("hover", "choose") and isinstance(index := content.get("id"), int):
            if index in self._ids() or (kind == "hover" and index == -1):
                self._tell(kind, index)
        else:
            super()._answer(view, content, buffers)

    def _ids(self) -> set[int]:
        return {int(i) for s in self.shown.series for i in s.rows[:, 3] if i >= 0}

    def _tell(self, kind: str, value: Any) -> None:  # noqa: ANN401 - a number
        for call in self._calls.get(kind, ()):
            call(value)


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

    _esm = f"{POPUP}\n{(HERE / 'table.js').read_text()}"
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
