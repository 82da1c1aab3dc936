"""Results of commands as picture files: charts, planes and triangles, painted on paper."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.attacks.target import Target
from explorer.engine.attacks.univariate import UnivariateState, shapes
from explorer.engine.attacks.univariate.panel import bars_chart
from explorer.engine.data import Dataset
from explorer.engine.energy.questions import Picture
from explorer.engine.energy.starts import NAMES
from explorer.engine.explanations.masses import forced_points
from explorer.engine.explanations.safe_split import SafeSplit, SafeSplitConfig
from explorer.engine.explanations.splitting import Explanation
from explorer.engine.files import write_file
from explorer.engine.membership.experiment import MembershipTrial
from explorer.research.explained import Explained
from explorer.research.grid import Maps
from explorer.research.pictures import painting
from explorer.research.pictures.axes import Axes, axes_for
from explorer.research.pictures.charts import (
    EDGES,
    FRESH,
    LIMIT,
    MEMBER,
    TRAINED,
    arena_charts,
    curve_chart,
    distance_map,
    edge_chart,
    front_chart,
    has_lowest_mark,
    split_chart,
    sweep_chart,
    sweep_maps,
    trained_chart,
    trials_chart,
)
from explorer.research.pictures.fields import graph, places_of, shape_arrays, text_rows
from explorer.research.pictures.painting import SMALL, Plot
from explorer.research.pictures.planes import plane_frame
from explorer.research.pictures.shades import shades, span_of
from explorer.research.rates import summary
from explorer.research.records import table_of
from explorer.research.sweep.arena import ArenaLine
from explorer.research.tuning import Trial, front
from explorer.research.words import energy, grid
from explorer.research.words.grid import SETS
from explorer.style import SHADES

TALL = (3.4, 3.8)  # a square with its names below


def arena_figure(path: Path, lines: Sequence[ArenaLine], title: str) -> None:
    """Write a picture with one part per radius. ImportError without matplotlib."""
    first, *others = arena_charts(lines)
    charts = [first, *(replace(one, y=replace(one.y, ticks=())) for one in others)]  # named once
    height = 1.6 + 0.4 * sum(bool(line.runs) for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    painting.save_figure(path, painting.charts_figure(charts, (8.0, height), title))


def energy_picture(path: Path, picture: Picture, x: Array, y: Array, index: int) -> None:
    """Write the map of a picture with the points x (n, d), or its curve."""
    words = energy.picture(picture)
    if picture.curve is not None:
        charts = [curve_chart(picture, float(x[index, 0]), float(x[index, 0]))]
        figure = painting.charts_figure(charts, painting.COLUMN, words)
    elif picture.kind == "starts":
        lowest = {"lowest": picture.lowest} if has_lowest_mark(picture) else {}
        figure = painting.triangle_figure(lowest, picture.values, words)
    else:
        figure = painting.plane_figure(_energy_frame(picture, x, y, index), title=words)
    painting.save_figure(path, figure)


def _energy_frame(picture: Picture, x: Array, y: Array, index: int) -> dict[str, Any]:
    """Return the map of an energy as a frame of the plane, with points where the axes are."""
    left, right, bottom, top = picture.box
    axes = Axes(((left + right) / 2, (right - left) / 2), ((bottom + top) / 2, (top - bottom) / 2))
    low, high = span_of(picture.values, picture.reference)
    marks = [(at, f"{low ** (1 - at) * high**at:.2g}") for at in (0.0, 0.5, 1.0)]
    frame: dict[str, Any] = {
        "view": [axes.x[0], axes.y[0], axes.x[1], axes.y[1]], "axes": picture.names,
        "energy": shades(picture.values, False, (low, high)), "energyBox": (-1, -1, 1, 1),
        "bar": ("share of the weights not explained", marks),
    }  # fmt: skip
    if picture.kind in ("point", "ridge", "last"):
        plain = np.column_stack([axes.shares(x), y, np.ones((len(y), 2))])
        frame |= {"points": plain, "hands": plain[index : index + 1, :2]}
    if has_lowest_mark(picture):
        frame["diamonds"] = axes.shares([picture.lowest])
    return frame


# --- explanations ---


def sets(path: Path, state: Explained, other: Explanation, mass: Tensor, extent: float) -> None:
    """Write the truth, hollow, and another set that explains the weights; forced ones ringed."""
    truth = Dataset(state.truth.x, state.truth.y)
    axes = Axes((0.0, extent), (0.0, extent))
    frame = plane_frame(truth, state.net, other, axes=axes)
    forced = forced_points(mass, state.target.mass)[0]
    frame["rings"] = axes.shares(places_of(state.truth.x, state.truth.y)[forced.numpy()])
    frame["names"] = {"points": "the truth", "candidates": "another set", "rings": "forced"}
    painting.save_figure(path, painting.plane_figure(frame, TALL))


def longer(path: Path, rows: Sequence[SafeSplit], config: SafeSplitConfig, label: str) -> None:
    """Write extents of the cells along a free direction over the training steps."""
    painting.save_figure(path, painting.chart_figure(split_chart(rows, config, label)))


def other_figure(path: Path, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Write the first row that knows another set in the plane; False for none.

    ImportError without matplotlib.
    """
    told: list[Any] = [(row.get("result") or {}).get("other") for row in rows]
    told = [other for other in told if other and other["x"] and len(other["x"][0]) == 2]
    if not told:
        return False
    other = told[0]
    truth, another = (
        Dataset(torch.tensor(other[f"{name}x"]), torch.tensor(other[f"{name}y"]))
        for name in ("truth_", "")
    )
    frame = plane_frame(truth, None, another, axes=axes_for(Axes(), another))
    frame["names"]["candidates"] = "another set"
    path.parent.mkdir(parents=True, exist_ok=True)
    painting.save_figure(path, painting.plane_figure(frame, TALL, other["sentence"]))
    return True


def sweep_picture(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write tables over two settings that vary, three to a row; over one its chart.

    ValueError where no row is done.
    """
    chart, maps = sweep_chart(rows), list(sweep_maps(rows).values())
    if not maps:
        painting.save_figure(path, painting.chart_figure(chart, (5.2, 3.4)))
        return
    across = min(len(maps), len({one.title.split(",")[0] for one in maps}))
    down = -(-len(maps) // across)
    figure = painting.new_figure(2.6 * across + 0.6, 2.3 * down + 0.6)
    axes = figure.subplots(down, across, squeeze=False)
    for plot in axes.flat:
        plot.set_visible(False)
    for plot, one in zip(axes.flat, maps, strict=False):
        plot.set_visible(True)
        bar = figure.colorbar(painting.paint_heat_map(plot, one), ax=plot, shrink=0.8)
        bar.ax.tick_params(labelsize=SMALL)
    painting.add_legend(figure)
    painting.save_figure(path, figure)


# --- the grid of starts ---


def grid_picture(path: Path, found: Maps, rows: Iterable[Mapping[str, Any]], title: str) -> None:
    """Write maps of distances, the nearest set, two edges, and trajectories on the triangle.

    `rows` as `maps` takes them.
    """
    figure = painting.new_figure(9.6, 5.2)
    axes = figure.subplots(2, 4)
    images = [
        painting.paint_heat_map(axes[0, k], distance_map(found, k)) for k in range(len(NAMES))
    ]
    figure.colorbar(images[-1], ax=list(axes[0, :3]), shrink=0.8)
    _nearest(axes[0, 3], found)
    for axis, which in zip(axes[1, :2], EDGES, strict=True):
        painting.paint_chart(axis, edge_chart(found, which))
    painting.paint_triangle(axes[1, 2], {"trails": [row["result"]["trail"] for row in rows]})
    axes[1, 2].set_title("runs on the triangle of starts", fontsize=SMALL + 1, pad=18)
    axes[1, 3].axis("off")
    axes[1, 3].text(
        0,
        0.9,
        f"{title}\n\n{textwrap.fill(grid.sentence(found), 28)}",
        va="top",
        fontsize=SMALL + 1,
    )
    painting.add_legend(figure)
    painting.save_figure(path, figure)


def _nearest(axis: Plot, found: Maps) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    colours = ["white", *(SHADES[name] for name in NAMES)]
    frame = distance_map(found, 0)
    axis.imshow(
        found.nearest + 1, origin="lower", cmap=ListedColormap(colours), vmin=0, vmax=3,
        extent=(frame.x.low, frame.x.high, frame.y.low, frame.y.high), interpolation="nearest",
    )  # fmt: skip
    painting.paint_axes(axis, frame)
    axis.set_title("nearest set", fontsize=SMALL + 1)
    marks = [Patch(color=SHADES[name], label=SETS[name]) for name in NAMES]
    axis.legend(
        handles=marks, fontsize=SMALL - 1, loc="upper center", bbox_to_anchor=(0.5, -0.25), ncol=3
    )


# --- the trained experiment on membership: a table of trials and three figures ---

FIGURES = ("on-margin.png", "fresh-points.png", "roc.png")
TABLE = "trials.csv"
SHOWN = (
    ("beyond_signed", "unseen points with y Φ ≥ m", MEMBER),
    ("beyond", "unseen points with |Φ| ≥ m", FRESH),
    ("beyond_half", "unseen points with |Φ| ≥ m / 2", LIMIT),
)

Row = dict[str, float | int]


def write(folder: Path, trials: Sequence[MembershipTrial], rows: Sequence[Row]) -> list[Path]:
    """Write the CSV of all trials and the three figures, in `folder`, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / TABLE, table_of(rows))
    found = summary(rows)
    charts = trained_chart(found, TRAINED[:1]), trained_chart(found, SHOWN), trials_chart(trials)
    for name, chart in zip(FIGURES, charts, strict=True):
        painting.save_figure(folder / name, painting.chart_figure(chart))
    return [folder / TABLE, *(folder / name for name in FIGURES)]


# --- attacks ---


def line_picture(
    path: Path, target: Target, state: UnivariateState, truth: Dataset | None, words: str = ""
) -> None:
    """Write the graph with groups as bands and their rule, candidates, what is proven; lambda.

    A ring means proven, a dashed one likely. The truth, if given, is hollow and larger than
    the candidates.
    """
    known = Dataset(state.x, state.y)
    if truth is not None:
        known = Dataset(torch.cat([known.x, truth.x.to(known.x)]), torch.cat([known.y, truth.y]))
    axes = axes_for(Axes(), known)
    frame = plane_frame(truth or known, None, state, axes=axes)
    if truth is None:
        del frame["points"]
    drawn = shapes(target, state)
    frame |= shape_arrays(drawn, axes) | {"graph": graph(target.net, axes, 1.0)}
    frame["texts"] = text_rows(drawn, axes)
    frame["names"] |= {
        "candidates": "candidates",
        "rings": "proven",
        "likely": "likely, not proven",
    }
    figure = painting.new_figure(5.2, 4.6)
    above, below = figure.subplots(2, 1, height_ratios=(2, 1))
    painting.paint_plane(above, frame)
    painting.paint_chart(below, bars_chart(state, not np.isnan(state.miss), axes.x))
    painting.add_title(figure, words)
    painting.add_legend(figure)
    painting.save_figure(path, figure)


def front_picture(path: Path, rows: Sequence[Trial], chosen: Trial | None) -> None:
    """Write every trial of a search, the front, and the one that was taken."""
    good = [trial for trial in rows if not trial.failure]
    chart = front_chart(good, front(rows), chosen)
    painting.save_figure(path, painting.chart_figure(chart))
