"""A picture of the page to take away: on paper, and its numbers as CSV and NPZ."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from explorer.engine.charts import Chart
from explorer.research.pictures import painting
from explorer.research.pictures.painting import SETS, Frame

Kind = Literal["pdf", "csv", "npz"]
TYPES: dict[Kind, str] = {
    "pdf": "application/pdf", "csv": "text/csv", "npz": "application/octet-stream",
}  # fmt: skip


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
            return painting.as_bytes(self.figure(), "pdf")
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

    >>> slug("Points recovered, by distance")
    'points_recovered_by_distance'
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
    return Export(name, head, rows, arrays, lambda: painting.chart_figure(chart))


# --- The plane -----------------------------------------------------------------------------------

# Arrays of a frame of the plane that hold places: what they are, and their other columns.
PLACED = {
    "points": ("point", ("class", "share", "no trace")),
    "candidates": ("candidate", ("class", "share", "in use")),
    "claims": ("claim", ("kind",)), "marks": ("mark", ("kind",)),
    "other": ("other set", ("class",)),
    "rings": ("square", ()), "likely": ("dashed ring", ()), "diamonds": ("triangle down", ()),
    "dots": ("cross", ()), "hands": ("corners", ()), "graph": ("graph of Phi over the margin", ()),
    "lines": ("line", ()), "strong": ("strong line", ()),
    "curve": ("known curve", ()),
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
    return Export("plane", head, rows, arrays, lambda: painting.plane_figure(frame))


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


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
            rows.append(
                ["energy", *map(repr, map(float, shares)), "", repr(float(arrays["energy"][k, i]))]
            )
    for name in ("trails", "ends"):
        if name in frame:
            arrays[name] = np.asarray(frame[name])
    ends = np.asarray(frame.get("ends", ()), dtype=int)
    for run, (trail, end) in enumerate(zip(frame.get("trails", ()), ends, strict=False)):
        rows += [["run", *map(repr, place), run + 1, SETS[end]]
                 for place in np.asarray(trail, dtype=float).tolist()]  # fmt: skip
    head = ("what", "truth", "unseen", "noise", "run", "energy, or nearest at the end")
    return Export(
        "triangle of starts", head, rows, arrays, lambda: painting.triangle_figure(frame, values)
    )
