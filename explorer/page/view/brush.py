"""Charts of bqplot on the page, where a hand brushes or zooms.

What is drawn thirty times a second is a canvas. A chart that is brushed is made of bqplot's marks,
by the adapter of `explorer.figure`; bqplot is loaded when the first is drawn. The same numbers
stand below it in a table, for a screen reader and as a file.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any, Literal

import ipywidgets as w
import numpy as np

from explorer.engine.charts import NOTHING, Chart
from explorer.page.controls.row import Item, Row
from explorer.page.view.export import of_chart, slug
from explorer.research.report import table_html

UPRIGHT_TICKS = 4  # of a low chart; arbitrary
MARGIN = {"top": 10, "bottom": 38, "left": 64, "right": 12}  # px
BELOW = "32px"  # of the ticks: the name of the level axis
ZOOM_TIP = "Drag to move, turn the wheel to zoom; press again to choose"


class BrushView(w.VBox):  # type: ignore[misc]
    """A chart in which a hand sets a line on the level axis, or throws a lasso around dots.

    `brushed` is called with the x of the line, or with the ids of the dots in the lasso; with None
    where nothing is chosen any more, as after other dots are drawn.
    """

    def __init__(
        self, way: Literal["line", "lasso"], brushed: Callable[[Any], None], hint: str = ""
    ) -> None:
        """Show nothing, and load nothing, until a chart is drawn."""
        super().__init__(_dom_classes=["mx-brush"], layout=w.Layout(display="none"))
        self.way, self.brushed, self.hint = way, brushed, hint
        self.figure: Any = None
        self.choosing: Any = None  # the line or the lasso
        self.shown = NOTHING
        self.words = w.HTML(_dom_classes=["mx-brush-words"])
        self.tools = Row(
            ("mx-brush-tools",),
            zoom=Item("button", "Zoom", ZOOM_TIP, False, call=self._zoom),
            reset=Item("button", "Reset", "All of the chart, nothing chosen", call=self._reset),
            png=Item("button", "PNG", "As on screen", call=lambda _: self._save("png")),
            svg=Item("button", "SVG", "As on screen, to edit", call=lambda _: self._save("svg")),
        )
        self._drawn = b""
        self._parts: tuple[w.Widget, ...] = ()  # made with the first chart

    def draw(self, chart: Chart) -> None:
        """Show `chart`; one without a series is hidden, one of the same numbers stays as it is."""
        numbers = chart.numbers[0].tobytes()
        self.layout.display = "" if chart.series else "none"
        self.children = self._parts if chart.series else ()  # bqplot fails at what has no size
        before, changed = self.shown, numbers != self._drawn
        self.shown, self._drawn = chart, numbers
        if changed and self.way == "lasso":
            self.brushed(None)
        if not chart.series or not changed:
            return
        self.words.value = f"{names(chart)} <span>{escape(self.hint)}</span>{table(chart)}"
        if self.way == "line" and _alike(before, chart):  # the line stays where it is
            for mark, one in zip(self.figure.marks, chart.series, strict=True):
                with mark.hold_sync():
                    mark.x, mark.y = np.array(one.x, float), np.array(one.y, float)
                    mark.labels = [one.name]
            return
        self._build(chart)

    def _build(self, chart: Chart) -> None:
        """Put new marks into the figure."""
        from bqplot import Figure  # when the first is drawn

        from explorer.page.view.figure import parts_of

        made = {**parts_of(chart), "title": "", "fig_margin": MARGIN}
        made["axes"][0].label_offset, made["axes"][1].num_ticks = BELOW, UPRIGHT_TICKS
        for mark in made["marks"]:  # named in words below, where nothing is covered
            mark.display_legend = False
        old = [] if self.figure is None else [*parts(self.figure), self.choosing]
        self.choosing = self._line(made) if self.way == "line" else self._lasso(made, chart)
        made["interaction"] = self.choosing
        self.tools.put("zoom", value=False)
        if self.figure is None:
            self.figure = Figure(**made, display_toolbar=False)
            foot = w.HBox([self.words, self.tools]).add_class("mx-brush-foot")
            self.children = self._parts = (self.figure, foot)
            return
        with self.figure.hold_sync():
            for name in ("marks", "axes", "interaction"):
                self.figure.set_trait(name, made[name])
        for part in old:
            part.close()

    def _zoom(self, wanted: bool) -> None:
        """Let a hand move and zoom, a line chart along its level axis; or choose again."""
        from bqplot import PanZoom

        x, y = (axis.scale for axis in self.figure.axes)
        scales = {"x": [x]} if self.way == "line" else {"x": [x], "y": [y]}
        old = self.figure.interaction
        self.figure.interaction = PanZoom(scales=scales) if wanted else self.choosing
        if not wanted:
            old.close()

    def _reset(self, _: object) -> None:
        """Show all of the chart, with nothing chosen."""
        self._build(self.shown)
        self.brushed(None)

    def _save(self, kind: Literal["png", "svg"]) -> None:
        save = self.figure.save_png if kind == "png" else self.figure.save_svg
        save(f"{slug(of_chart(self.shown).name, '-')}.{kind}")

    def _line(self, made: dict[str, Any]) -> Any:  # noqa: ANN401 - of bqplot
        from bqplot.interacts import IndexSelector

        line = IndexSelector(scale=made["axes"][0].scale, color="var(--mx-accent)")
        line.observe(lambda told: self.brushed(_first(told["new"])), "selected")
        return line

    def _lasso(self, made: dict[str, Any], chart: Chart) -> Any:  # noqa: ANN401 - of bqplot
        from bqplot.interacts import LassoSelector

        marks = {mark.labels[0]: mark for mark in made["marks"]}
        known = [s for s in chart.series if s.ids is not None and s.name in marks]
        chosen: dict[str, list[int]] = {}

        def tell(name: str, ids: Any, told: dict[str, Any]) -> None:  # noqa: ANN401
            held = [] if told["new"] is None else np.ravel(ids)[np.asarray(told["new"], int)]
            chosen[name] = [int(i) for i in held]
            self.brushed(sorted({i for some in chosen.values() for i in some}) or None)

        for series in known:
            marks[series.name].observe(partial(tell, series.name, series.ids), "selected")
        return LassoSelector(marks=[marks[series.name] for series in known])


def _alike(before: Chart, now: Chart) -> bool:
    """Return whether two charts without bands and rules differ in the places of points alone."""
    known = [[(s.kind, s.colour) for s in chart.series] for chart in (before, now)]
    there = all(np.isfinite(s.rows[:, 1]).any() for one in (before, now) for s in one.series)
    plain = not now.rules and all(s.kind in ("line", "dots") for s in now.series)
    return there and plain and known[0] == known[1] and (before.x, before.y) == (now.x, now.y)


def _first(selected: Any) -> float | None:  # noqa: ANN401 - an array, or None
    return None if selected is None or not len(selected) else float(selected[0])


def names(chart: Chart) -> str:
    """Return the names of what is drawn, each in its colour."""
    kinds = {"line": "━", "band": "▬", "stems": "┃", "dots": "●", "diamond": "◆"}
    named = [
        (
            one.colour,
            "╌"
            if one.look.get("dashed")
            else kinds.get(str(one.look.get("shape")), kinds[one.kind]),
            escape(one.name),
        )
        for one in chart.series
        if one.name
    ]
    return " ".join(
        f"<b style='color: var(--mx-{ink})'>{key} {name}</b>" for ink, key, name in named
    )


def table(chart: Chart) -> str:
    """Return the numbers of a chart as a fold with a table and a link to them as CSV."""
    made = of_chart(chart)
    data = b64encode(made.as_bytes("csv")).decode()
    rows = ([_short(cell) for cell in row] for row in made.rows)
    return (
        f"<details><summary>Values</summary><a download='{made.file_name('csv')}' "
        f"href='data:text/csv;base64,{data}'>CSV</a>{table_html(rows, made.head)}</details>"
    )


def _short(cell: Any) -> str:  # noqa: ANN401 - a word, or a number as text
    try:
        return f"{float(cell):.4g}"
    except ValueError:
        return str(cell)


def parts(figure: Any) -> list[Any]:  # noqa: ANN401 - of bqplot
    """Return what a figure is made of."""
    scales = {id(s): s for m in figure.marks for s in m.scales.values()}
    return [*figure.marks, *figure.axes, *scales.values(), figure.interaction]
