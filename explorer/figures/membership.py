"""The trained experiment on membership as files: a table of trials and three figures."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from explorer.engine.membership_runs import Trial
from explorer.inference.rates import Interval, roc, summary
from explorer.style import CURVES, INK

FIGURES = ("on-margin.png", "fresh-points.png", "roc.png")
TABLE = "trials.csv"
SHOWN = (
    ("beyond_signed", "y Φ ≥ m"),
    ("beyond", "|Φ| ≥ m"),
    ("beyond_half", "|Φ| ≥ m / 2"),
)
MOST_CURVES = 6  # arbitrary: dimensions in the ROC figure

Row = dict[str, float | int]


def write(folder: Path, trials: Sequence[Trial], rows: Sequence[Row]) -> list[Path]:
    """The CSV of all trials and the three figures, in `folder`, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / TABLE).open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    found = summary(rows)
    paths = [folder / name for name in FIGURES]
    for path, draw in zip(paths, (_on_margin, _fresh), strict=False):
        _figure(path, lambda axes, draw=draw: draw(axes, found))
    _figure(paths[2], lambda axes: _roc(axes, trials))
    return [folder / TABLE, *paths]


def _figure(path: Path, draw: Any) -> None:  # noqa: ANN401
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    draw(axes)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def _band(axes: Any, found: dict[int, dict[str, Interval]], name: str, label: str, i: int) -> None:  # noqa: ANN401
    d = np.array(list(found))
    mean = np.array([v[name].mean for v in found.values()])
    low, high = (
        np.array([getattr(v[name], side) for v in found.values()]).clip(0, 1)
        for side in ("low", "high")
    )
    axes.plot(d, mean, "o-", color=CURVES[i], label=label, markersize=4)
    axes.fill_between(d, low, high, color=CURVES[i], alpha=0.2, linewidth=0)


def _shares(axes: Any, what: str) -> None:  # noqa: ANN401
    axes.set(xscale="log", ylim=(-0.02, 1.02), xlabel="dimension d", ylabel=what)


def _on_margin(axes: Any, found: dict[int, dict[str, Interval]]) -> None:  # noqa: ANN401
    _band(axes, found, "on_margin", "mean over trials, 95% interval", 0)
    _shares(axes, "share of training points within 10% of the margin")


def _fresh(axes: Any, found: dict[int, dict[str, Interval]]) -> None:  # noqa: ANN401
    for i, (name, label) in enumerate(SHOWN):
        _band(axes, found, name, label, i)
    _shares(axes, "share of fresh points")


def _roc(axes: Any, trials: Sequence[Trial]) -> None:  # noqa: ANN401
    usable = [t for t in trials if t.margin == t.margin]
    dims = list(dict.fromkeys(t.d for t in usable))
    picked = [dims[i] for i in np.unique(np.linspace(0, len(dims) - 1, MOST_CURVES).astype(int))]
    colours = (*CURVES, "#56B4E9", "#E69F00")
    least = 1.0
    for d, colour in zip(picked, colours, strict=False):
        mine = [t for t in usable if t.d == d]
        curve = roc(torch.cat([t.members for t in mine]), torch.cat([t.fresh for t in mine]))
        one = 1 / sum(len(t.fresh) for t in mine)  # below one false positive nothing is known
        least = min(least, one)
        axes.plot(np.maximum(curve.fpr, one), curve.tpr, color=colour, label=f"d = {d}")
    axes.plot([least, 1], [least, 1], color=INK, linestyle=":", label="a guess")
    axes.set(xscale="log", ylim=(-0.02, 1.02), xlabel="false positive rate",
             ylabel="true positive rate")  # fmt: skip
