"""Results as figures of bqplot, for notebooks: to zoom, to brush, to put marks of one's own into.

    figure = explorer.figure(result)
    figure.marks = [*figure.marks, my_mark]

The page itself draws on canvases, which take one message a frame.
"""

from __future__ import annotations

from typing import Any

import bqplot as bq
import numpy as np

from explorer.engine.charts import FEW_CELLS, Axis, Chart, Guide, HeatMap, Series
from explorer.research.pictures.results import charts_of
from explorer.style import PAPER_INKS

THEMED = {"ink": 1, "ink2": 2, "ink3": 2}  # words of the theme, so that dark pages stay readable
SHAPES = {"triangle": "triangle-up", "square": "square", "diamond": "diamond", "cross": "cross",
          "tick": "cross", "bar": "rectangle"}  # fmt: skip
MARGINS = {"top": 48, "bottom": 56, "right": 24}  # px
AREA = 4.0  # of a dot, by the square of its size
LOWEST, HIGHEST = "#440154", "#fde725"  # ends of viridis, as on paper
MIDDLE = "#21918c"
MOST_NAMES = 8  # in a legend; arbitrary


def figure(result: Any, part: str = "", **traits: Any) -> bq.Figure:  # noqa: ANN401 - of every kind
    """Return a result as a `bqplot.Figure`, with the numbers that page and paper draw.

    Args:
        result: what training, audit, sweep, arena, grid or tuning returned; see `charts_of`.
        part: which of its charts; "" for the first.
        traits: of the figure, such as `title`.

    Returns:
        A widget. Its `marks` are a list to be extended; the scales of the first mark fit the axes.

    Raises:
        TypeError: for what is no result.
        ValueError: for a part that it has not, or where there is nothing to show.

    Example:
        >>> from explorer import certify, figure, maximum_margin, preset
        >>> data = preset("alternating-circle", n=6)
        >>> made = certify(maximum_margin(data.x, data.y).net, data.x, data.y)
        >>> figure(made).axes[1].label
        'multiplier'
    """
    known = charts_of(result)
    if part and part not in known:
        raise ValueError(
            f"this result has the parts {', '.join(known)}; got {part!r}. Leave it away for the "
            "first."
        )
    shown = known[part or next(iter(known))]
    return bq.Figure(**{**parts_of(shown), **traits})


def parts_of(shown: Chart | HeatMap) -> dict[str, Any]:
    """Return the traits of a figure of a chart: its marks and axes, title, margins and legend.

    On a page its colours follow the theme at once; elsewhere they are those of paper.
    """
    scales = {"x": _scale(shown.x), "y": _scale(shown.y)}
    drawn = _cells(shown, scales) if isinstance(shown, HeatMap) else _marks(shown, scales)
    axes = [_axis(shown.x, scales["x"], "bottom"), _axis(shown.y, scales["y"], "left")]
    note = "" if isinstance(shown, HeatMap) or not shown.note else f" ({shown.note})"
    return {
        "marks": drawn, "axes": axes, "title": f"{shown.title}{note}",
        "fig_margin": _margins(shown.y), "legend_location": "top-right",
        "title_style": {"font-size": "14px"}, "padding_y": 0.0,
    }  # fmt: skip


def colour_of(name: str) -> str:
    """Return a colour of the page, where one is around it; words follow a notebook's theme."""
    plain = PAPER_INKS[name]
    if name in THEMED:
        return f"var(--jp-ui-font-color{THEMED[name]}, {plain})"
    return f"var(--mx-{name}, {plain})"


def _scale(axis: Axis) -> bq.Scale:
    kind = bq.LogScale if axis.log else bq.LinearScale
    return kind(min=float(axis.low), max=float(axis.high))


def _axis(axis: Axis, scale: bq.Scale, side: str) -> bq.Axis:
    given = [t if isinstance(t, tuple | list) else (t, None) for t in axis.ticks or ()]
    words = {_number(at): said for at, said in given if said is not None}
    form = {"tick_format": "~%"} if axis.percent else {"tick_format": "~r"} if axis.log else {}
    where = {"tick_values": [float(at) for at, _ in given]} if given else {}
    offset = "44px" if side == "bottom" else f"{_margins(axis)['left'] - 18}px"
    return bq.Axis(scale=scale, side=side, label=axis.name or axis.short,
                   grid_lines="none", visible=not axis.hidden, tick_labels=words or None,
                   label_offset=offset, **where, **form)  # fmt: skip


def _number(value: float) -> str:
    """Return a number as a browser writes it, which knows the words of a tick by that."""
    return f"{value:.0f}" if value == int(value) else repr(float(value))


def _margins(upright: Axis) -> dict[str, int]:
    """Return the px around a figure: words at the ticks have room."""
    words = [str(t[1]) for t in upright.ticks or () if isinstance(t, tuple | list)]
    return {**MARGINS, "left": min(56 + round(5.5 * max(map(len, [*words, "   "]))), 220)}


def _marks(chart: Chart, scales: dict[str, bq.Scale]) -> list[bq.Mark]:
    """Return a mark for each rule and each series that has a point, in the order of painting."""
    known = [s for s in chart.series if np.isfinite(np.asarray(s.y, dtype=np.float64)).any()]
    made = [_series(one, chart, scales) for one in known]
    if sum(bool(one.name) for one in known) > MOST_NAMES:
        for mark in made:
            mark.display_legend = False
    return [*(_rule(one, chart, scales) for one in chart.rules), *made]


def _series(one: Series, chart: Chart | HeatMap, scales: dict[str, bq.Scale]) -> bq.Mark:
    x, y = (np.asarray(v, dtype=np.float64).reshape(-1) for v in (one.x, one.y))
    z = np.zeros(len(x)) if one.z is None else np.asarray(one.z, dtype=np.float64).reshape(-1)
    colour, look = colour_of(one.colour), one.look
    shared = {"scales": scales, "display_legend": bool(one.name), "labels": [one.name]}
    alpha = float(look.get("opacity", 1.0))
    if one.kind == "dots" and isinstance(chart, Chart):
        return _dots(one, x, y, chart, shared)
    if one.kind == "band":
        return bq.Lines(x=x, y=np.stack([z, y]), scales=scales, fill="between",
                        colors=[colour] * 2, opacities=[0.0, 0.0], fill_colors=[colour],
                        fill_opacities=[0.18], labels=[one.name] * 2)  # fmt: skip
    if one.kind == "stems":  # a line that has a gap after each
        gap = np.full(len(x), np.nan)
        x, y = np.stack([x, x, x], 1).ravel(), np.stack([z, y, gap], 1).ravel()
    held = np.flatnonzero(np.isfinite(y))[-1] + 1  # a line has a name at its end, which has a place
    width = min(float(look.get("width", 3 if one.kind == "stems" else 2)), 12.0)
    return bq.Lines(x=x[:held], y=y[:held], colors=[colour], stroke_width=width, opacities=[alpha],
                    line_style="dashed" if look.get("dashed") else "solid",
                    interpolation="step-after" if look.get("steps") else "linear",
                    **shared)  # fmt: skip


def _dots(one: Series, x: Any, y: Any, chart: Chart, shared: dict[str, Any]) -> bq.Scatter:  # noqa: ANN401
    """Return dots; a pointer on one reads what the chart says of it, or its place."""
    tips = {}
    if one.ids is not None and chart.tips:
        tips = {"names": np.array([chart.tips[int(i)] for i in np.ravel(one.ids)]),
                "display_names": False}  # fmt: skip
    fields = ["name"] if tips else ["x", "y"]
    labels = [""] if tips else [chart.x.short or chart.x.name, chart.y.short or chart.y.name]
    return bq.Scatter(
        x=x, y=y, colors=[colour_of(one.colour)], fill=not one.look.get("hollow"),
        marker=SHAPES.get(one.look.get("shape", ""), "circle"), stroke=colour_of(one.colour),
        default_size=round(AREA * float(one.look.get("size", 4)) ** 2),
        tooltip=bq.Tooltip(fields=fields, labels=labels, show_labels=not tips), **tips, **shared,
    )  # fmt: skip


def _rule(one: Guide, chart: Chart, scales: dict[str, bq.Scale]) -> bq.Lines:
    across = chart.y if one.axis == "x" else chart.x
    ends, at = [across.low, across.high], [one.at, one.at]
    x, y = (at, ends) if one.axis == "x" else (ends, at)
    return bq.Lines(x=x, y=y, scales=scales, colors=[colour_of(one.colour)], stroke_width=1,
                    line_style="dashed", labels=[one.name],
                    display_legend=bool(one.name))  # fmt: skip


def _cells(table: HeatMap, scales: dict[str, bq.Scale]) -> list[bq.Mark]:
    """Return the table of colours; a click tells rowNum and columnNum (`on_element_click`)."""
    shades = bq.ColorScale(min=0.0, max=table.top, colors=[LOWEST, MIDDLE, HIGHEST])
    columns, rows = (
        np.append(np.asarray(v) - step / 2, v[-1] + step / 2)
        for v in (np.asarray(table.columns), np.asarray(table.rows))
        for step in [float(v[1] - v[0])]
    )
    return [bq.GridHeatMap(
        color=table.values, row=rows, column=columns,
        scales={"row": scales["y"], "column": scales["x"], "color": shades},
        display_format=".2f" if len(table.values) <= FEW_CELLS else None,
        font_style={"font-size": "11px", "fill": "white"}, stroke="transparent",
        tooltip=bq.Tooltip(fields=["color"], labels=[table.title]),
    ), *(_series(one, table, scales) for one in table.lines)]  # fmt: skip
