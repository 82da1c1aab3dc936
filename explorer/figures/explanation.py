"""Explanations as files: the truth beside another set, and the safe split over training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from explorer.engine.determined import forced_points
from explorer.engine.explanations import Explanation
from explorer.engine.network import phi
from explorer.engine.safe_split import SafeSplit, SafeSplitConfig
from explorer.stages.explained import Explained
from explorer.style import COLOURS, CURVES, INK, PROVEN

MARKERS = {1: "o", -1: "^"}
FINE = 200  # arbitrary: pixels a side behind the points


def sets(path: Path, state: Explained, other: Explanation, mass: Tensor, extent: float) -> None:
    """The truth, hollow, and another set that explains the weights, filled; forced ones ringed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 5.2), layout="constrained")
    axes = figure.subplots()
    at = torch.linspace(-extent, extent, FINE, dtype=torch.float64)
    if state.net.d == 2:
        grid = torch.stack(torch.meshgrid(at, at, indexing="xy"), -1).reshape(-1, 2)
        values = phi(state.net, grid).reshape(FINE, FINE).numpy()
        axes.contour(
            at.numpy(), at.numpy(), values, [-1, 0, 1], colors=[COLOURS[-1], INK, COLOURS[1]],
            linewidths=1,
        )  # fmt: skip
    else:
        axes.plot(at.numpy(), phi(state.net, at[:, None]).numpy(), color=PROVEN)
    for label in (1, -1):
        for e, filled in ((other, True), (state.truth, False)):
            mine = (e.y == label).numpy()
            x, y = _place(e)
            size = 20 + 160 * (e.lam / e.lam.max()).numpy()
            axes.scatter(
                x[mine], y[mine], size[mine] if filled else 60, marker=MARKERS[label],
                facecolor=COLOURS[label] if filled else "none", edgecolor=COLOURS[label],
                label=f"{'explains the weights too' if filled else 'the truth'}, {label:+d}",
            )  # fmt: skip
    forced = forced_points(mass, state.target.mass)[0].numpy()
    x, y = _place(state.truth)
    axes.scatter(
        x[forced], y[forced], 260, facecolor="none", edgecolor=PROVEN, linewidth=2, label="forced"
    )
    axes.set(xlim=(-extent, extent), ylim=(-extent, extent), xlabel="x₁", ylabel="x₂")
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


def _place(e: Explanation) -> tuple[np.ndarray, np.ndarray]:
    x = e.x.numpy()
    return x[:, 0], x[:, 1] if x.shape[1] > 1 else e.y.numpy()


def longer(path: Path, rows: Sequence[SafeSplit], config: SafeSplitConfig, label: str) -> None:
    """Extents of the cells along a free direction over the training steps."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    t = np.array([max(row.t, 1) for row in rows])
    for name, words, colour in (
        ("safe", f"safe split: misses under {config.share:g} of |θ|", CURVES[0]),
        ("wall", "nearest wall of any neuron", CURVES[1]),
        ("boxed", f"safe split within [{config.low:g}, {config.high:g}]", CURVES[2]),
    ):
        axes.plot(t, [getattr(row, name) for row in rows], "o-", color=colour, label=words,
                  markersize=3)  # fmt: skip
    axes.plot(t, [row.frozen for row in rows], ":", color=INK, label="|Wν| / |W|")
    axes.set(
        xscale="log", xlabel="training step", ylabel="length along ν",
        title=f"{label}: safe split over training",
    )  # fmt: skip
    axes.set_yscale("symlog", linthresh=1e-3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)
