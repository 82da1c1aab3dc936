"""A chart as plain numbers with their names: what the canvas of a page paints, and a figure.

An attack may bring one of its own (`explorer.engine.attack_panel`), so it stands in the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float32]
FEW_CELLS = 6  # a side, of a table whose rows, columns and values each have their number; arbitrary


@dataclass(frozen=True, eq=False)
class Series:
    """Points (x, y) of one kind and colour.

    Attributes:
        x: (n,).
        y: (n,); nan leaves a gap.
        name: in words; "" for what is not read off by itself.
        kind: a line, the band between y and z, dots, stems from z up to y, or a mark: an upright
            dash on a bar, with its name at it.
        z: (n,) the other end of a band or of stems; 0 where it is not given.
        ids: (n,) what a pointer on a dot or stem gives back, from 0; -1 for nothing.
        colour: name of a colour of the page: "ink", "ink3", "good" ...
        value: newest value in words, beside the name at the end of a line.
        look: what else the painter knows: dashed, steps, measured, width, opacity,
            shape, size, hollow, core; above, of a mark whose name stands above its bar.
        end: whether the name stands at the end of the line.
    """

    x: ArrayLike
    y: ArrayLike
    name: str = ""
    kind: Literal["line", "band", "dots", "stems", "mark"] = "line"
    z: ArrayLike | None = None
    ids: ArrayLike | None = None
    colour: str = "ink"
    value: str = ""
    look: dict[str, Any] = field(default_factory=dict)
    end: bool = False

    @property
    def rows(self) -> Floats:
        """Return the numbers as the browser reads them: x, y, z, id (n, 4), float32."""
        x = np.asarray(self.x, dtype=np.float32).reshape(-1)
        other = np.zeros(len(x)) if self.z is None else self.z
        ids = np.full(len(x), -1) if self.ids is None else self.ids
        columns = [np.asarray(v, dtype=np.float32).reshape(-1) for v in (self.y, other, ids)]
        return np.column_stack([x, *columns])

    @property
    def words(self) -> dict[str, Any]:
        """Return all but the numbers."""
        return {
            "name": self.name, "kind": self.kind, "colour": self.colour, "value": self.value,
            "end": self.end, **self.look,
        }  # fmt: skip


@dataclass(frozen=True)
class Axis:
    """One axis.

    Attributes:
        low: its lower end.
        high: its upper end.
        name: under the axis; "" for none.
        short: the name in a table and beside a value.
        log: whether equal steps are equal ratios.
        whole: whether what is counted is whole, and so are the ticks.
        percent: whether 1 is written as 100%.
        hidden: whether nothing of it is drawn.
        ticks: where ticks stand, as values or as (value, words); made to fit if None.
    """

    low: float
    high: float
    name: str = ""
    short: str = ""
    log: bool = False
    whole: bool = False
    percent: bool = False
    hidden: bool = False
    ticks: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class Guide:
    """A dashed line across the chart, at a value of the axis "x" or "y", with its name."""

    at: float
    name: str = ""
    axis: Literal["x", "y"] = "y"
    colour: str = "ink2"


@dataclass(frozen=True, eq=False)
class Chart:
    """What a chart shows at one moment.

    Attributes:
        series: in the order of painting.
        x: the level axis.
        y: the upright axis.
        title: what is shown, in a few words.
        note: beside the title, in grey.
        foot: a line below.
        label: what a screen reader says of the picture; the title by default.
        rules: dashed lines.
        handle: where on x the line stands that can be dragged; None for no such line.
        handle_name: what stands before its value.
        picks: whether dots and stems answer a pointer with their ids.
        tips: what is said of the dot or stem of each id.
        lit: id of the dot that is marked; -1 for none.
    """

    series: Sequence[Series]
    x: Axis
    y: Axis
    title: str = ""
    note: str = ""
    foot: str = ""
    label: str = ""
    rules: Sequence[Guide] = ()
    handle: float | None = None
    handle_name: str = ""
    picks: bool = False
    tips: Sequence[str] = ()
    lit: int = -1

    @property
    def values(self) -> dict[str, Any]:
        """Return the plain values of the message."""
        handle = None if self.handle is None else {"at": self.handle, "name": self.handle_name}
        return {
            "series": [s.words for s in self.series], "x": asdict(self.x), "y": asdict(self.y),
            "title": self.title, "note": self.note, "foot": self.foot, "label": self.label,
            "rules": [asdict(r) for r in self.rules], "handle": handle, "picks": self.picks,
            "tips": list(self.tips), "lit": self.lit,
        }  # fmt: skip

    @property
    def numbers(self) -> tuple[Floats, NDArray[np.int32]]:
        """Return the rows of all series below each other (N, 4), and where each ends in them."""
        rows = [s.rows for s in self.series]
        data = np.concatenate(rows) if rows else np.zeros((0, 4), dtype=np.float32)
        return data, np.cumsum([len(r) for r in rows], dtype=np.int32)


@dataclass(frozen=True, eq=False)
class HeatMap:
    """A table of values, each a cell of its colour: what is low is dark.

    Attributes:
        values: (h, w), lowest row first; nan for a cell that is not known.
        columns: middles of the columns on x (w,), evenly apart.
        rows: middles of the rows on y (h,), likewise.
        x: the level axis, from edge to edge.
        y: the upright axis.
        top: the value of the brightest colour; 0 is the darkest.
        title: what is shown, in a few words.
        lines: drawn over the cells.
    """

    values: NDArray[np.float64]
    columns: ArrayLike
    rows: ArrayLike
    x: Axis
    y: Axis
    top: float
    title: str = ""
    lines: Sequence[Series] = ()


NOTHING = Chart((), Axis(0, 1, hidden=True), Axis(0, 1, hidden=True))


A_ROW = 25  # dots of a chart that has one for each point; arbitrary


def dot_rows(count: int) -> tuple[NDArray[Any], NDArray[Any], float, float]:
    """Return where dots stand in rows of `A_ROW`: columns and rows (count,), both ends of the axes.

    >>> column, row, right, below = dot_rows(30)
    >>> int(column[29]), int(row[29]), right, below
    (4, -1, 25.0, -1.0)
    """
    at, below = np.arange(count), max(count - 1, 0) // A_ROW
    return at % A_ROW, -(at // A_ROW), float(max(min(count, A_ROW), 10)), -float(below)


def next_step(value: float) -> float:
    """Return the next of 1, 2, 5 or 10 times a power of ten: an axis' end that moves in jumps.

    >>> next_step(3.2), next_step(0.05)
    (5.0, 0.05)
    """
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(f * power for f in (1, 2, 5, 10) if f * power >= value * (1 - 1e-9)))


def decades(low: float, high: float) -> tuple[float, float]:
    """Return the powers of ten around two values, a decade apart or more.

    >>> decades(0.02, 0.5)
    (0.01, 1.0)
    """
    bottom = 10.0 ** np.floor(np.log10(low) + 1e-9)
    return float(bottom), float(max(10.0 ** np.ceil(np.log10(high) - 1e-9), 10 * bottom))
