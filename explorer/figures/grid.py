"""The grid as a picture: three maps of distances, the nearest set, two edges, the triangle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from explorer.engine.lambda_grid import NAMES
from explorer.grids.maps import WORDS, Maps, band
from explorer.style import CONTROL, CURVES, INK, PROVEN

SHADES = {"truth": PROVEN, "heldout": CONTROL, "noise": CURVES[3]}
TITLES = {
    "data": "λ₂ = 1: from held-out data to the truth",
    "noise": "λ₁ = 1: from noise to the truth",
}
CORNERS = np.array([[0.5, 0.9], [0.0, 0.0], [1.0, 0.0]])  # truth, held-out, noise


def picture(path: Path, found: Maps, rows: Iterable[Mapping[str, Any]], title: str) -> None:
    """Write the figure. `rows` as `maps` takes them: their trajectories are drawn."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 7), layout="constrained")
    axes = figure.subplots(2, 4)
    mean = found.mean
    top = float(np.nanmax(mean)) if np.isfinite(mean).any() else 1.0
    for k, name in enumerate(NAMES):
        axis = axes[0, k]
        image = axis.imshow(
            mean[k], origin="lower", cmap="viridis", vmin=0, vmax=top, extent=_box(found)
        )
        axis.set_title(f"distance to {WORDS[name]}", fontsize=10)
        _numbers(axis, found, mean[k], top)
    figure.colorbar(image, ax=list(axes[0, :3]), shrink=0.8)
    _nearest(axes[0, 3], found)
    for axis in axes[0]:
        axis.set_xlabel("λ₁ (truth against held-out)")
        axis.set_ylabel("λ₂ (data against noise)")
        if len(found.values) <= 6:
            axis.set_xticks(found.values)
            axis.set_yticks(found.values)
    for axis, which in zip(axes[1, :2], ("data", "noise"), strict=True):
        _edge(axis, found, which)
    _triangle(axes[1, 2], rows)
    axes[1, 3].axis("off")
    axes[1, 3].text(0, 0.9, f"{title}\n\n{_wrapped(found.sentence())}", va="top", fontsize=10)
    figure.savefig(path, dpi=110)


def _box(found: Maps) -> tuple[float, float, float, float]:
    half = 0.5 / (len(found.values) - 1)
    return (-half, 1 + half, -half, 1 + half)


def _numbers(axis: Any, found: Maps, values: Any, top: float) -> None:  # noqa: ANN401
    if len(found.values) > 6:
        return
    for i, b in enumerate(found.values):
        for j, a in enumerate(found.values):
            if np.isfinite(values[i, j]):
                shade = "white" if values[i, j] < 0.6 * top else "black"
                axis.text(a, b, f"{values[i, j]:.2f}", ha="center", va="center",
                          color=shade, fontsize=8)  # fmt: skip


def _nearest(axis: Any, found: Maps) -> None:  # noqa: ANN401
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    colours = ["white", *(SHADES[name] for name in NAMES)]
    axis.imshow(
        found.nearest + 1, origin="lower", cmap=ListedColormap(colours), vmin=0, vmax=3,
        extent=_box(found), interpolation="nearest",
    )  # fmt: skip
    axis.set_title("nearest set", fontsize=10)
    marks = [Patch(color=SHADES[name], label=WORDS[name]) for name in NAMES]
    axis.legend(handles=marks, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.25), ncol=3)


def _edge(axis: Any, found: Maps, which: str) -> None:  # noqa: ANN401
    end, start = found.edge(which)
    other = 1 if which == "data" else 2
    for k in (0, other):
        mean, low, high = band(end[:, k])
        name = NAMES[k]
        axis.fill_between(found.values, low, high, color=SHADES[name], alpha=0.2, linewidth=0)
        axis.plot(found.values, mean, color=SHADES[name], label=f"to {WORDS[name]}")
        axis.plot(found.values, band(start[:, k])[0], color=SHADES[name], ls=":", lw=1)
    axis.set_title(TITLES[which], fontsize=10)
    axis.set_xlabel("λ₁" if which == "data" else "λ₂")
    axis.set_ylabel("mean distance")
    axis.set_ylim(bottom=0)
    axis.legend(fontsize=8, title="dotted: at the start", title_fontsize=8)


def _triangle(axis: Any, rows: Iterable[Mapping[str, Any]]) -> None:  # noqa: ANN401
    closed = CORNERS[[0, 1, 2, 0]]
    axis.plot(closed[:, 0], closed[:, 1], color=INK, lw=1)
    for row in rows:
        path = np.asarray(row["result"]["trail"]) @ CORNERS
        axis.plot(path[:, 0], path[:, 1], color=INK, lw=0.8, alpha=0.7)
        axis.plot(*path[-1], "o", color=INK, ms=3)
    for (x, y), name in zip(CORNERS, NAMES, strict=True):
        axis.annotate(WORDS[name], (x, y), xytext=(0, 6 if y else -12), ha="center",
                      textcoords="offset points", fontsize=9)  # fmt: skip
    axis.set_title("runs on the triangle of starts", fontsize=10, pad=18)
    axis.set_aspect("equal")
    axis.axis("off")


def _wrapped(text: str, width: int = 38) -> str:
    from textwrap import fill

    return fill(text, width)
