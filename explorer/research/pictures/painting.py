"""Pictures on paper by matplotlib: the one painter of charts, of the plane, of the triangle.

What a canvas of the page paints is painted here for files, for the page's PDF and for commands.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from explorer.engine.charts import FEW_CELLS, Axis, Chart, HeatMap, Series
from explorer.engine.energy.starts import CORNERS, outline
from explorer.engine.extras import library
from explorer.engine.files import write_file
from explorer.style import CLASSES, PAPER_INKS

COLUMN = (3.4, 2.5)  # inches: a column of a two-column page
SQUARE = (3.4, 3.4)
SMALL = 7  # points, of words in a figure
DPI = 300  # of a picture of pixels
LETTERS, LINE = 15, 0.14  # of a title: letters an inch, inches a line
THIN = 0.6  # of a width in pixels of the screen, in points
MARKS = {"circle": "o", "triangle": "^", "square": "s", "diamond": "D", "cross": "x", "tick": "$✓$",
         "bar": "_"}  # fmt: skip
# How the kinds of `page.plane.marks.MARKS` look on paper: number, then shape, area and colour.
KINDS = (
    (0, ("x", 30.0, "ink")), (1, ("o", 70.0, "good")), (2, ("o", 70.0, "good")),
    (2, ("$✓$", 40.0, "good")), (3, ("8", 70.0, "good")), (4, ("o", 12.0, "good")),
    (5, ("$?$", 40.0, "ink2")), (6, ("_", 50.0, "ink")),
)  # fmt: skip
STROKES = ("x", "+", "_", "$✓$", "$?$", "$[ ]$")
SETS = ("truth", "unseen", "noise", "running")  # of the end of a run on the triangle
Sheet = Any  # matplotlib is untyped: a figure,
Plot = Any  # its axes,
Drawn = Any  # what was drawn on them,
Transform = Any  # and where
Frame = Mapping[str, Any]  # arrays and values of a plane or a triangle, as a view takes them


def new_figure(width: float, height: float, dpi: float = 100) -> Sheet:
    """Return an empty figure, in inches. ImportError without matplotlib.

    It is not pyplot's: it needs no window system, and is freed after its drawing.
    """
    agg = library("matplotlib.backends.backend_agg", "pictures need matplotlib", "cli")
    figure = library("matplotlib.figure", "pictures need matplotlib", "cli")
    made = figure.Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    agg.FigureCanvasAgg(made)
    return made


def plain(words: str) -> str:
    """Return words of others, in which matplotlib sees no formula."""
    return words.replace("$", r"\$")


def save_figure(path: Path, figure: Sheet, **more: object) -> None:
    """Write a figure as the picture that the end of the name asks for, else as a PNG."""
    out, ending = io.BytesIO(), path.suffix.lower().removeprefix(".")
    known = ending in figure.canvas.get_supported_filetypes()
    figure.savefig(out, format=ending if known else "png", **({"dpi": DPI} | more))
    write_file(path, out.getvalue())


def as_bytes(figure: Sheet, kind: str) -> bytes:
    """Return the figure as "pdf" with fonts that publishers take, as "svg" or as "png"."""
    from matplotlib import rc_context

    # No date and no random names: the same run gives the same bytes.
    dates = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": None}
    out = io.BytesIO()
    with rc_context({"pdf.fonttype": 42, "svg.hashsalt": "margin-explorer"}):
        figure.savefig(out, format=kind, dpi=DPI, metadata=dates[kind])
    return out.getvalue()


# --- A chart ---


def chart_figure(chart: Chart, size: tuple[float, float] = COLUMN) -> Sheet:
    """Return a `Chart` as a figure of matplotlib, a column wide.

    Raises:
        ImportError: without matplotlib.
    """
    return charts_figure([chart], size)


def charts_figure(charts: Sequence[Chart], size: tuple[float, float], title: str = "") -> Sheet:
    """Return charts beside each other, with one legend below; ImportError without matplotlib."""
    figure = new_figure(*size)
    for axes, chart in zip(figure.subplots(1, len(charts), squeeze=False)[0], charts, strict=True):
        paint_chart(axes, chart)
    add_title(figure, title)
    add_legend(figure)
    return figure


def paint_chart(axes: Plot, chart: Chart) -> None:
    """Paint a chart on axes of matplotlib; what has a name is found by `add_legend`."""
    for one in chart.series:
        _series(axes, one, chart)
    paint_axes(axes, chart)
    for rule in chart.rules:
        (axes.axvline if rule.axis == "x" else axes.axhline)(
            rule.at, color=ink(rule.colour), lw=0.7, ls=(0, (4, 3)), label=plain(rule.name)
        )
    if chart.handle is not None and chart.handle_name:
        axes.axvline(chart.handle, color=ink("accent"), lw=0.9, ls=":",
                     label=plain(f"{chart.handle_name} {chart.handle:.4g}"))  # fmt: skip
    axes.spines[["top", "right"]].set_visible(False)


def paint_axes(axes: Plot, chart: Chart | HeatMap) -> None:
    """Paint both axes of a chart, and its title."""
    for which in ("x", "y"):
        _axis(axes, which, getattr(chart, which))
    if chart.title:
        axes.set_title(plain(chart.title), fontsize=SMALL + 1)


def paint_heat_map(axes: Plot, chart: HeatMap) -> Drawn:
    """Paint a table of cells on axes of matplotlib, few of them with their values.

    Returns:
        The image, for a bar of its colours.
    """
    extent = (chart.x.low, chart.x.high, chart.y.low, chart.y.high)
    image = axes.imshow(chart.values, origin="lower", cmap="viridis", vmin=0, vmax=chart.top,
                        extent=extent)  # fmt: skip
    for one in chart.lines:
        _series(axes, one, chart)
    paint_axes(axes, chart)
    if len(chart.values) <= FEW_CELLS:
        for row, b in zip(chart.values, np.asarray(chart.rows), strict=True):
            for value, a in zip(row, np.asarray(chart.columns), strict=True):
                shade = "white" if value < 0.6 * chart.top else "black"
                axes.text(a, b, f"{value:.2f}" if np.isfinite(value) else "", ha="center",
                          va="center", color=shade, fontsize=SMALL - 1)  # fmt: skip
    return image


def _series(axes: Plot, one: Series, chart: Chart | HeatMap) -> None:
    x, y = (np.asarray(v, dtype=np.float64).reshape(-1) for v in (one.x, one.y))
    z = np.zeros(len(x)) if one.z is None else np.asarray(one.z, dtype=np.float64).reshape(-1)
    look, colour, label = one.look, ink(one.colour), plain(one.name)
    alpha = np.asarray(look.get("opacity", 0.18 if one.kind == "band" else 1.0))
    if one.kind == "line":
        axes.plot(x, y, color=colour, lw=THIN * min(look.get("width", 2), 12), alpha=float(alpha),
                  ls="--" if look.get("dashed") else "-", label=label,
                  drawstyle="steps-post" if look.get("steps") else "default")  # fmt: skip
    elif one.kind == "band":
        axes.fill_between(x, y, z, color=colour, alpha=float(alpha), lw=0, label=label)
    elif one.kind == "stems":
        axes.vlines(x, z, y, color=colour, lw=THIN * look.get("width", 3), alpha=float(alpha),
                    label=label)  # fmt: skip
    else:
        area, shape = (1.3 * look.get("size", 4)) ** 2, look.get("shape", "circle")
        stroke = shape in ("cross", "tick", "bar")
        hollow = look.get("hollow") and not stroke
        beyond = [(v < axis.low) | (v > axis.high) for v, axis in ((x, chart.x), (y, chart.y))]
        axes.scatter(x, y, area, marker=MARKS[shape], label=label, linewidths=0.9,
                     facecolors="none" if hollow else colour,
                     clip_on=bool(np.any(beyond)),  # a dot on an axis is whole
                     **({} if stroke else {"edgecolors": colour}))  # fmt: skip


def _axis(axes: Plot, which: str, axis: Axis) -> None:
    from matplotlib import ticker

    shown = getattr(axes, f"{which}axis")
    if axis.log:
        getattr(axes, f"set_{which}scale")("log")
    elif axis.whole:
        shown.set_major_locator(ticker.MaxNLocator(nbins=5, integer=True))
    getattr(axes, f"set_{which}lim")(axis.low, axis.high)
    if axis.percent:
        shown.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    if axis.ticks is not None:
        told = [t if isinstance(t, tuple | list) else (t, None) for t in axis.ticks]
        shown.set_major_locator(ticker.FixedLocator([at for at, _ in told]))
        shown.set_minor_locator(ticker.NullLocator())
        if any(words is not None for _, words in told):
            shown.set_major_formatter(
                ticker.FixedFormatter(["" if words is None else plain(words) for _, words in told])
            )
    getattr(axes, f"set_{which}label")(plain(axis.name or axis.short), fontsize=SMALL + 1)
    shown.set_tick_params(labelsize=SMALL)
    shown.set_visible(not axis.hidden)
    axes.spines["bottom" if which == "x" else "left"].set_visible(not axis.hidden)


def add_legend(figure: Sheet) -> None:
    """Name what has a name on any axes, once, below them."""
    named: dict[str, Any] = {}
    for axes in figure.axes:
        for mark, words in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(words, mark)
    if named:
        across = round(LETTERS * figure.get_figwidth()) // (max(map(len, named)) + 6)
        figure.legend(named.values(), named.keys(), fontsize=SMALL, frameon=False,
                      loc="outside lower center", ncols=min(max(across, 1), 3))  # fmt: skip


def add_title(figure: Sheet, words: str) -> None:
    """Write words over a figure, in lines as wide as it is; it grows by their height."""
    if words:
        lines = textwrap.wrap(plain(words), round(LETTERS * figure.get_figwidth()))
        figure.set_figheight(figure.get_figheight() + LINE * len(lines))
        figure.suptitle("\n".join(lines), fontsize=SMALL)


def ink(name: str) -> str:
    """Return a colour of the page on paper."""
    return PAPER_INKS[name]


# --- The plane ---


def plane_figure(frame: Frame, size: tuple[float, float] = SQUARE, title: str = "") -> Sheet:
    """Return a frame of the plane as a figure of matplotlib: what `plane.js` draws, for paper.

    Raises:
        ImportError: without matplotlib.
    """
    figure = new_figure(*size)
    paint_plane(figure.subplots(), frame)
    add_title(figure, title)
    add_legend(figure)
    return figure


def paint_plane(axes: Plot, frame: Frame) -> None:
    """Paint a frame of the plane on axes of matplotlib.

    Beside what `plane.js` knows a frame for paper may hold `axes`, names of the two axes; `names`,
    words for the legend by the name of an array; `bar`, (name, marks) of the energy's colours,
    each mark a share of them and its words.
    """
    from matplotlib.transforms import Affine2D

    cx, cy, hx, hy = frame.get("view", (0.0, 0.0, 1.0, 1.0))
    axes.set(
        xlim=(cx - hx, cx + hx),
        ylim=(cy - hy, cy + hy),
        aspect="auto" if frame.get("flat") else hx / hy,
    )
    shares = Affine2D().scale(hx, hy).translate(cx, cy) + axes.transData
    _behind(axes, frame, shares)
    _paths(axes, frame, shares)
    _places(axes, frame, shares)
    x, y = frame.get("axes", ("$x$", "Φ / margin") if frame.get("flat") else ("$x_1$", "$x_2$"))
    axes.set_xlabel(x, fontsize=SMALL + 1)
    axes.set_ylabel(y, fontsize=SMALL + 1)
    axes.tick_params(labelsize=SMALL)


def _behind(axes: Plot, frame: Frame, shares: Transform) -> None:
    """Paint the map of the network or of an energy, the level lines, the lines of the neurons."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import ListedColormap

    held = {"transform": shares, "rasterized": True, "interpolation": "bilinear", "zorder": 0}
    if "energy" in frame:
        left, bottom, right, top = frame["energyBox"]
        bytes_ = np.asarray(frame["energy"])
        drawn = axes.imshow(np.where(bytes_ == 0, np.nan, bytes_.astype(float)), cmap="viridis",
                            vmin=1, vmax=255, extent=(left, right, bottom, top), aspect="auto",
                            **held)  # fmt: skip
        if "bar" in frame:
            name, marks = frame["bar"]
            _colour_bar(axes, drawn, name, [(255 - 254 * at, words) for at, words in marks])
    elif "map" in frame:
        values = np.asarray(frame["map"], dtype=float)
        names = [shown.ink for shown in CLASSES.values()]
        if values.ndim == 2:
            best, leads = np.where(values > 0, 0, 1), [values]
        else:
            best, leads = values.argmax(0), list(values)
        colours = ListedColormap([ink(name) for name in names])
        axes.imshow(best, cmap=colours, vmin=0, vmax=3, alpha=0.2, extent=(-1, 1, -1, 1),
                    aspect="auto", **{**held, "interpolation": "nearest"})  # fmt: skip
        at = np.linspace(-1, 1, values.shape[-1])
        levels = (-1, 0, 1) if frame.get("margins") and len(leads) == 1 else (0,)
        for lead in leads:
            inside = [v for v in levels if np.nanmin(lead) < v < np.nanmax(lead)]
            if inside:
                axes.contour(at, at[::-1], lead, levels=inside, colors=ink("ink"), zorder=1,
                             transform=shares, negative_linestyles="solid",
                             linewidths=[1.1 if v == 0 else 0.5 for v in inside])  # fmt: skip
    if "neurons" in frame:
        rows = np.asarray(frame["neurons"], dtype=float)
        axes.add_collection(LineCollection(
            list(rows[:, :4].reshape(-1, 2, 2)), transform=shares, colors=ink("ink2"), zorder=1,
            linewidths=0.4 + 0.5 * rows[:, 4], alpha=0.08 + 0.5 * rows[:, 4],
        ), autolim=False)  # fmt: skip


def _colour_bar(
    axes: Plot, drawn: Drawn, name: str, marks: Sequence[tuple[float, str]] = ()
) -> None:
    """Add the legend of colours, with words at these values if they are given."""
    bar = axes.figure.colorbar(drawn, ax=axes, shrink=0.8)
    bar.set_label(name, fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    if marks:
        bar.set_ticks([at for at, _ in marks], labels=[words for _, words in marks])


def _paths(axes: Plot, frame: Frame, shares: Transform) -> None:
    """Paint graphs, lines, areas, bands, links."""
    cy, hy = frame.get("view", (0, 0, 1, 1))[1::2]
    if frame.get("flat"):
        for level in (-1, 0, 1):
            if abs(level - cy) <= hy:
                axes.axhline(level, color=ink("ink3"), lw=0.5, ls="-" if level == 0 else "--")
    for name, width, colour in (("graph", 1.2, "ink"), ("lines", 0.7, "good"),
                                ("strong", 1.6, "good")):  # fmt: skip
        if name in frame:
            axes.plot(*np.asarray(frame[name], dtype=float).T[:2], color=ink(colour), lw=width,
                      transform=shares, zorder=2)  # fmt: skip
    if "curve" in frame:
        axes.plot(*np.asarray(frame["curve"], dtype=float).T, color=ink("accent"), lw=1.6,
                  ls=(0, (5, 2)), transform=shares, zorder=2)  # fmt: skip
    if "area" in frame:
        axes.fill(*np.asarray(frame["area"], dtype=float).T, color=ink("good"), alpha=0.15,
                  transform=shares, zorder=1)  # fmt: skip
    for low, high in np.clip(frame.get("spans", np.zeros((0, 2))), -1.1, 1.1):
        axes.fill([low, high, high, low], [-1, -1, 1, 1], color=ink("good"), alpha=0.12,
                  transform=shares, zorder=1)  # fmt: skip
    for x, y, a, b in np.asarray(frame.get("links", np.zeros((0, 4))), dtype=float):
        axes.plot([x, a], [y, b], color=ink("good"), lw=0.6, transform=shares, zorder=3)
    for x, y, words in frame.get("texts", ()):
        axes.text(x, y, plain(words), transform=shares, fontsize=SMALL, ha="center")


def _places(axes: Plot, frame: Frame, shares: Transform) -> None:
    """Paint points, candidates, claims and marks; the truth of an attack is hollow."""
    hollow, names = bool(frame.get("hollow")), frame.get("names", {})
    layers = (("other", 16.0, False), ("points", 26.0, hollow), ("candidates", 26.0, False))
    for name, area, empty in layers:
        words = names.get(name, "")
        rows = np.asarray(frame.get(name, np.zeros((0, 5))), dtype=float)
        for label in np.unique(rows[:, 2]):
            mine = rows[rows[:, 2] == label]
            shown = CLASSES.get(int(label))
            colour, marker = (shown.ink, MARKS[shown.shape]) if shown else ("ink2", "o")
            tried = name == "candidates"
            used = mine[:, 4] > 0 if tried else np.ones(len(mine), dtype=bool)
            sizes = np.full(len(mine), area)
            if tried:  # as in plane.js: of a hollow point's
                sizes *= (0.28 + 0.45 * np.sqrt(mine[:, 3])) ** 2
            inks = {"facecolors": "none" if empty else ink(colour), "edgecolors": ink(colour)}
            for kept, alpha in ((~used, 0.15), (used, 1.0)):
                if kept.any():
                    axes.scatter(*mine[kept].T[:2], sizes[kept], marker=marker, linewidths=1.0,
                                 transform=shares, alpha=alpha, zorder=4, label=words,
                                 **inks)  # fmt: skip
                    words = ""
    claims, beside = (
        np.asarray(frame.get(name, np.zeros((0, 3))), dtype=float) for name in ("claims", "marks")
    )
    marks = (
        *((told[told[:, 2] == kind], *look) for kind, look in KINDS for told in (claims, beside)),
        (frame.get("rings", ()), "s", 90.0, "good"), (frame.get("likely", ()), "o", 70.0, "good"),
        (frame.get("diamonds", ()), "v", 70.0, "good"),
        (frame.get("dots", ()), "+", 26.0, "ink"),
        (frame.get("hands", ()), "$[ ]$", 120.0, "accent"),
    )  # fmt: skip
    for held, marker, area, colour in marks:
        words = next((w for name, w in names.items() if held is frame.get(name)), "")
        places = np.asarray(held, dtype=float).reshape(-1, np.shape(held)[1] if len(held) else 2)
        if len(places):
            inks = {"color": ink(colour)} if marker in STROKES else {
                "facecolors": "none", "edgecolors": ink(colour)}  # fmt: skip
            dashed = "--" if held is frame.get("likely") else "-"
            axes.scatter(*places.T[:2], area, marker=marker, linewidths=1.0, transform=shares,
                         linestyles=dashed, zorder=5, label=words, **inks)  # fmt: skip


# --- The triangle of starts ---


def triangle_figure(frame: Frame, values: ArrayLike | None, title: str = "") -> Sheet:
    """Return the triangle of starts as a figure of matplotlib; see `paint_triangle`.

    Raises:
        ImportError: without matplotlib.
    """
    figure = new_figure(*COLUMN)
    paint_triangle(figure.subplots(), frame, values)
    add_title(figure, title)
    return figure


def paint_triangle(axes: Plot, frame: Frame, values: ArrayLike | None = None) -> None:
    """Paint energies by the shares of a start, bright is low, by logarithms, and runs.

    Args:
        axes: of matplotlib.
        frame: `trails`, paths (t, 3) of runs in shares of truth, unseen points and noise; `lowest`,
            the place (2,) of the lowest energy.
        values: energies (side, side), row noise and column truth; None for none.
    """
    from matplotlib.colors import LogNorm

    closed = outline()
    axes.plot(closed[:, 0], closed[:, 1], color=ink("ink2"), lw=0.8)
    if values is not None:
        held = np.asarray(values, dtype=np.float64)
        k, i = np.nonzero(np.isfinite(held))
        last = len(held) - 1
        places = np.column_stack([i, last - k - i, k]) / last @ CORNERS
        seen = np.maximum(held[k, i], max(float(held[k, i].max()), 1e-12) * 1e-4)
        drawn = axes.tripcolor(*places.T, seen, shading="gouraud", cmap="viridis_r",
                               norm=LogNorm(), rasterized=True)  # fmt: skip
        _colour_bar(axes, drawn, "energy")
    for trail in frame.get("trails", ()):
        path = np.asarray(trail, dtype=float) @ CORNERS
        axes.plot(*path.T, color="white", lw=1.8)
        axes.plot(*path.T, color=ink("ink"), lw=0.7)
        axes.plot(*path[-1], "o", color=ink("ink"), ms=3, mec="white", mew=0.5)
    if "lowest" in frame:
        axes.plot(*frame["lowest"], "D", mfc="none", mec=ink("accent"), ms=5)
    for (x, y), name in zip(CORNERS, SETS, strict=False):
        axes.annotate(name, (x, y), ha="center",
                      xytext=(0, 4 if y > 0.5 else -10), textcoords="offset points",
                      fontsize=SMALL + 1)  # fmt: skip
    axes.set_aspect("equal")
    axes.axis("off")
