"""A picture of the page to take away: on paper by matplotlib, and its numbers as CSV and NPZ."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from explorer.engine.energy.starts import CORNERS, outline
from explorer.research import planes
from explorer.research.planes import plain
from explorer.style import PAPER_INKS

if TYPE_CHECKING:
    from explorer.engine.charts import Axis, Chart, Series

Kind = Literal["pdf", "csv", "npz"]
TYPES: dict[Kind, str] = {
    "pdf": "application/pdf", "csv": "text/csv", "npz": "application/octet-stream",
}  # fmt: skip
COLUMN = (3.4, 2.5)  # inches: a column of a two-column page
SQUARE = (3.4, 3.4)
SMALL = 7  # points, of words in a figure
THIN = 0.6  # of a width in pixels of the screen, in points
MARKS = {"circle": "o", "triangle": "^", "square": "s", "diamond": "D", "cross": "x", "tick": "$✓$",
         "bar": "_"}  # fmt: skip
# How the kinds of `page.parts.marks.MARKS` look on paper: number, then shape, area and colour.
KINDS = (
    (0, ("x", 30.0, "ink")), (1, ("o", 70.0, "good")), (2, ("o", 70.0, "good")),
    (2, ("$✓$", 40.0, "good")), (3, ("8", 70.0, "good")), (4, ("_", 30.0, "ink3")),
    (5, ("$?$", 40.0, "ink2")), (6, ("_", 50.0, "ink")),
)  # fmt: skip
STROKES = ("x", "+", "_", "$✓$", "$?$")
SETS = ("truth", "unseen", "noise", "running")  # of the end of a run on the triangle
CLASSES = {1: ("pos", "o"), -1: ("neg", "^"), 3: ("third", "s"), 4: ("fourth", "D")}
Frame = Mapping[str, Any]  # arrays and values of a view, as it was given them


@dataclass(frozen=True)
class Export:
    """What can be taken away of a picture.

    Attributes:
        name: what is shown; the name of the file is made of it.
        head: names of the columns of the table.
        rows: the table, one line a number that is drawn.
        arrays: the same numbers as arrays, by name.
        figure: draws it by matplotlib. It raises ImportError without that.
    """

    name: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    arrays: Mapping[str, NDArray[Any]]
    figure: Callable[[], Any]

    def file_name(self, kind: Kind) -> str:
        """Return the name of the file of a kind."""
        return f"{slug(self.name, '-') or 'picture'}.{kind}"

    def as_bytes(self, kind: Kind) -> bytes:
        """Return the file of a kind: PDF, CSV or NPZ."""
        if kind == "pdf":
            return planes.as_bytes(self.figure(), "pdf")
        if kind == "npz":
            packed = io.BytesIO()
            held: dict[str, Any] = {name: np.asarray(array) for name, array in self.arrays.items()}
            np.savez_compressed(packed, **held)
            return packed.getvalue()
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerows([self.head, *self.rows])
        return text.getvalue().encode()


def slug(words: str, gap: str = "_") -> str:
    """Return words as a name: small letters and digits.

    >>> slug("Recovered, by how close counts")
    'recovered_by_how_close_counts'
    """
    return gap.join(re.findall(r"\w+", words.lower()))[:60]


# --- A chart -------------------------------------------------------------------------------------


def of_chart(chart: Chart) -> Export:
    """Return what can be taken away of a chart: rows of series, x, y and the other end, if any."""
    x, y = ((a.short or a.name or which) for a, which in ((chart.x, "x"), (chart.y, "y")))
    ended = any(s.z is not None for s in chart.series)
    rows: list[list[Any]] = []
    arrays: dict[str, NDArray[Any]] = {}
    for k, one in enumerate(chart.series):
        parts = [one.x, one.y] if one.z is None else [one.x, one.y, one.z]
        columns = np.column_stack([np.asarray(v, dtype=np.float64).reshape(-1) for v in parts])
        told = [chart.tips[int(i)] if 0 <= i < len(chart.tips) else "" for i in one.rows[:, 3]]
        for row, words in zip(columns.tolist(), told, strict=True):
            other = [repr(row[2]) if len(row) > 2 else ""] * ended
            rows.append([one.name, *map(repr, row[:2]), *other, *([words] * bool(chart.tips))])
        name = slug(one.name) or f"series_{k + 1}"
        arrays[name if name not in arrays else f"{name}_{k + 1}"] = columns
    head = ["series", x, y, *["other end"] * ended, *["says"] * bool(chart.tips)]
    name = chart.title or chart.label.partition(":")[0]
    return Export(name, head, rows, arrays, lambda: chart_figure(chart))


def chart_figure(chart: Chart, size: tuple[float, float] = COLUMN) -> Any:  # noqa: ANN401
    """Return a `Chart` as a figure of matplotlib, a column wide.

    Raises:
        ImportError: without matplotlib.
    """
    figure = planes.new_figure(*size)
    axes = figure.subplots()
    for one in chart.series:
        _series(axes, one)
    for which in ("x", "y"):
        _axis(axes, which, getattr(chart, which))
    for rule in chart.rules:
        (axes.axvline if rule.axis == "x" else axes.axhline)(
            rule.at, color=ink(rule.colour), lw=0.7, ls=(0, (4, 3)), label=plain(rule.name)
        )
    if chart.handle is not None and chart.handle_name:
        axes.axvline(chart.handle, color=ink("accent"), lw=0.9, ls=":",
                     label=plain(f"{chart.handle_name} {chart.handle:.4g}"))  # fmt: skip
    if chart.title:
        axes.set_title(plain(chart.title), fontsize=SMALL + 1)
    _legend(axes)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _series(axes: Any, one: Series) -> None:  # noqa: ANN401
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
        axes.scatter(x, y, area, marker=MARKS[shape], label=label, linewidths=0.9,
                     facecolors="none" if hollow else colour,
                     **({} if stroke else {"edgecolors": colour}))  # fmt: skip


def _axis(axes: Any, which: str, axis: Axis) -> None:  # noqa: ANN401
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


def _legend(axes: Any) -> None:  # noqa: ANN401
    """Name what has a name, once, under the axes."""
    named = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    named = {words: mark for words, mark in named.items() if words and not words.startswith("_")}
    if named:
        axes.figure.legend(named.values(), named.keys(), fontsize=SMALL, frameon=False,
                           loc="outside lower center", ncols=2)  # fmt: skip


def ink(name: str) -> str:
    """Return a colour of the page on paper."""
    return PAPER_INKS.get(name, PAPER_INKS["ink"])


# --- The plane -----------------------------------------------------------------------------------

# Arrays of a frame of the plane that hold places: what they are, and their other columns.
PLACED = {
    "points": ("point", ("class", "share", "no trace")),
    "candidates": ("candidate", ("class", "share", "in use")),
    "claims": ("claim", ("kind",)), "marks": ("mark", ("kind",)),
    "other": ("other set", ("class",)),
    "rings": ("ring", ()), "likely": ("dashed ring", ()), "diamonds": ("diamond", ()),
    "dots": ("cross", ()), "hands": ("square", ()), "graph": ("graph of Phi over the margin", ()),
    "lines": ("line", ()), "strong": ("strong line", ()),
}  # fmt: skip


def of_plane(frame: Frame) -> Export:
    """Return what can be taken away of the plane: all places in units of the data, and the map."""
    cx, cy, hx, hy = frame.get("view", (0.0, 0.0, 1.0, 1.0))
    centre, half = np.array([cx, cy]), np.array([hx, hy])
    head = ("what", "x1", "x2", "class", "share", "no trace", "in use", "kind")
    rows: list[list[Any]] = []
    arrays: dict[str, NDArray[Any]] = {"view": np.array([cx, cy, hx, hy])}
    for name, (what, more) in PLACED.items():
        if name not in frame:
            continue
        held = np.array(frame[name], dtype=np.float64)
        held[:, :2] = centre + held[:, :2] * half
        arrays[name] = held
        for place in held.tolist():
            told = dict(zip(more, place[2:], strict=False))
            rows.append([what, *map(repr, place[:2]), *(_short(told.get(c)) for c in head[3:])])
    for name in ("map", "energy", "neurons", "breakpoints"):
        if name in frame:
            arrays[name] = np.asarray(frame[name])
    return Export("plane", head, rows, arrays, lambda: plane_figure(frame))


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def plane_figure(frame: Frame, size: tuple[float, float] = SQUARE) -> Any:  # noqa: ANN401
    """Return a frame of the plane as a figure of matplotlib: what `plane.js` draws, for paper.

    Raises:
        ImportError: without matplotlib.
    """
    from matplotlib.transforms import Affine2D

    figure = planes.new_figure(*size)
    axes = figure.subplots()
    cx, cy, hx, hy = frame.get("view", (0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(cx - hx, cx + hx), ylim=(cy - hy, cy + hy), aspect=hx / hy)
    shares = Affine2D().scale(hx, hy).translate(cx, cy) + axes.transData
    _behind(axes, frame, shares)
    _paths(axes, frame, shares)
    _places(axes, frame, shares)
    flat = frame.get("flat")
    axes.set_xlabel("$x$" if flat else "$x_1$", fontsize=SMALL + 1)
    axes.set_ylabel("Φ / margin" if flat else "$x_2$", fontsize=SMALL + 1)
    axes.tick_params(labelsize=SMALL)
    return figure


def _behind(axes: Any, frame: Frame, shares: Any) -> None:  # noqa: ANN401
    """The map of the network or of an energy, the level lines, the lines of the neurons."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import ListedColormap

    held = {"transform": shares, "rasterized": True, "interpolation": "bilinear", "zorder": 0}
    if "energy" in frame:
        left, bottom, right, top = frame["energyBox"]
        bytes_ = np.asarray(frame["energy"])
        axes.imshow(np.where(bytes_ == 0, np.nan, bytes_.astype(float)), cmap="viridis",
                    vmin=1, vmax=255, extent=(left, right, bottom, top), aspect="auto",
                    **held)  # fmt: skip
    elif "map" in frame:
        values = np.asarray(frame["map"], dtype=float)
        names = [CLASSES[c][0] for c in (1, -1, 3, 4)]
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


def _paths(axes: Any, frame: Frame, shares: Any) -> None:  # noqa: ANN401
    """Graphs, lines, areas, bands, links."""
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
    if "area" in frame:
        axes.fill(*np.asarray(frame["area"], dtype=float).T, color=ink("good"), alpha=0.15,
                  transform=shares, zorder=1)  # fmt: skip
    for low, high in np.asarray(frame.get("spans", np.zeros((0, 2))), dtype=float):
        axes.fill([low, high, high, low], [-1, -1, 1, 1], color=ink("good"), alpha=0.12,
                  transform=shares, zorder=1)  # fmt: skip
    for x, y, a, b in np.asarray(frame.get("links", np.zeros((0, 4))), dtype=float):
        axes.plot([x, a], [y, b], color=ink("good"), lw=0.6, transform=shares, zorder=3)
    for x, y, words in frame.get("texts", ()):
        axes.text(x, y, plain(words), transform=shares, fontsize=SMALL, ha="center")


def _places(axes: Any, frame: Frame, shares: Any) -> None:  # noqa: ANN401
    """Points, candidates, claims and marks; the truth of an attack is hollow."""
    hollow = bool(frame.get("hollow"))
    layers = (("other", 16.0, False), ("points", 26.0, hollow), ("candidates", 9.0, False))
    for name, area, empty in layers:
        rows = np.asarray(frame.get(name, np.zeros((0, 5))), dtype=float)
        for label, (colour, marker) in CLASSES.items():
            mine = rows[rows[:, 2] == label]
            used = mine[:, 4] > 0 if name == "candidates" else np.ones(len(mine), dtype=bool)
            inks = {"facecolors": "none" if empty else ink(colour), "edgecolors": ink(colour)}
            for kept, alpha in ((mine[~used], 0.15), (mine[used], 1.0)):
                axes.scatter(*kept.T[:2], area, marker=marker, linewidths=1.0, transform=shares,
                             alpha=alpha, zorder=4, **inks)  # fmt: skip
    claims, beside = (
        np.asarray(frame.get(name, np.zeros((0, 3))), dtype=float) for name in ("claims", "marks")
    )
    marks = (
        *((told[told[:, 2] == kind], *look) for kind, look in KINDS for told in (claims, beside)),
        (frame.get("rings", ()), "o", 70.0, "good"), (frame.get("likely", ()), "o", 70.0, "good"),
        (frame.get("diamonds", ()), "D", 60.0, "good"),
        (frame.get("dots", ()), "+", 26.0, "ink"), (frame.get("hands", ()), "s", 60.0, "accent"),
    )  # fmt: skip
    for held, marker, area, colour in marks:
        places = np.asarray(held, dtype=float).reshape(-1, np.shape(held)[1] if len(held) else 2)
        if len(places):
            inks = {"color": ink(colour)} if marker in STROKES else {
                "facecolors": "none", "edgecolors": ink(colour)}  # fmt: skip
            dashed = "--" if held is frame.get("likely") else "-"
            axes.scatter(*places.T[:2], area, marker=marker, linewidths=1.0, transform=shares,
                         linestyles=dashed, zorder=5, **inks)  # fmt: skip


# --- The triangle of starts ----------------------------------------------------------------------


def of_triangle(frame: Frame, values: ArrayLike | None) -> Export:
    """Return what can be taken away of the triangle: energies by their shares, and the runs.

    Args:
        frame: what the view was given.
        values: the energies of its colours (side, side), row noise and column truth; None for none.
    """
    rows: list[list[Any]] = []
    arrays: dict[str, NDArray[Any]] = {}
    if values is not None:
        arrays["energy"] = np.asarray(values, dtype=np.float64)
        last = len(arrays["energy"]) - 1
        for k, i in zip(*np.nonzero(np.isfinite(arrays["energy"])), strict=True):
            shares = (i / last, (last - k - i) / last, k / last)
            rows.append(["energy", *map(repr, map(float, shares)), "",
                         repr(float(arrays["energy"][k, i]))])  # fmt: skip
    for name in ("trails", "ends"):
        if name in frame:
            arrays[name] = np.asarray(frame[name])
    ends = np.asarray(frame.get("ends", ()), dtype=int)
    for run, (trail, end) in enumerate(zip(frame.get("trails", ()), ends, strict=False)):
        rows += [["run", *map(repr, place), run + 1, SETS[end]]
                 for place in np.asarray(trail, dtype=float).tolist()]  # fmt: skip
    head = ("what", "truth", "unseen", "noise", "run", "energy, or nearest at the end")
    return Export("triangle of starts", head, rows, arrays, lambda: triangle_figure(frame, values))


def triangle_figure(frame: Frame, values: ArrayLike | None) -> Any:  # noqa: ANN401
    """Return the triangle of starts as a figure of matplotlib; bright is low, by logarithms.

    Raises:
        ImportError: without matplotlib.
    """
    from matplotlib.colors import LogNorm

    figure = planes.new_figure(*COLUMN)
    axes = figure.subplots()
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
        bar = figure.colorbar(drawn, ax=axes, shrink=0.8)
        bar.set_label("energy", fontsize=SMALL)
        bar.ax.tick_params(labelsize=SMALL)
    for trail in frame.get("trails", ()):
        path = np.asarray(trail, dtype=float) @ CORNERS
        axes.plot(*path.T, color="white", lw=1.8)
        axes.plot(*path.T, color=ink("ink"), lw=0.7)
        axes.plot(*path[-1], "o", color=ink("ink"), ms=3, mec="white", mew=0.5)
    for (x, y), name in zip(CORNERS, SETS, strict=False):
        axes.annotate(name, (x, y), ha="center",
                      xytext=(0, 4 if y > 0.5 else -10), textcoords="offset points",
                      fontsize=SMALL + 1)  # fmt: skip
    axes.set_aspect("equal")
    axes.axis("off")
    return figure
