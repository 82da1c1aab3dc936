"""A run as a picture on paper: truth and claims on the plane, and the margins beside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from explorer.engine.attacks.claims import Report
from explorer.engine.classes import labels
from explorer.engine.data import PLANE, Dataset
from explorer.engine.margin import q_of
from explorer.engine.network import Network, phi, phi_all
from explorer.style import COLOURS, NEGATIVE, POSITIVE

GRID = 160  # arbitrary: pixels of the decision map along one side


def picture(path: Path, data: Dataset, net: Network, claims: Report | None, title: str) -> None:
    """Write a PNG: the plane (or the graph over the axis) with truth and claims, and q per point.

    Truth hollow, claims filled, their area by multiplier; the margin at its level lines.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    # Not pyplot: no window system is asked, and no figure outlives this call.
    figure = Figure(figsize=(10, 4.6), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    plane, bars = figure.subplots(1, 2, width_ratios=(1.1, 1))
    q = q_of(net, data.x, data.y)
    margin = float(q.min())
    (_level_lines if data.d == 2 else _graph)(plane, net, margin)
    _marks(plane, data, claims)
    order = torch.argsort(q)
    colours = [COLOURS[int(y)] for y in data.y[order].tolist()]
    bars.bar(range(data.n), (q[order] / margin).tolist(), color=colours)
    bars.axhline(1, color="black", linewidth=0.8)
    bars.xaxis.set_major_locator(MaxNLocator(integer=True))
    bars.set_xlabel("point, by margin")
    bars.set_ylabel("q / smallest q")
    figure.suptitle(title, fontsize=9, wrap=True)
    figure.savefig(path, format="png")


def _level_lines(axes: Any, net: Network, margin: float) -> None:  # noqa: ANN401
    """The decision map, pale, and the lines where Phi is 0 and +-margin."""
    side = torch.linspace(-PLANE, PLANE, GRID, dtype=net.dtype)
    grid = torch.stack(torch.meshgrid(side, side, indexing="xy"), -1).reshape(-1, 2)
    if net.outputs > 1:
        return _several(axes, phi_all(net, grid).T.reshape(-1, GRID, GRID) / margin, side)
    values = phi(net, grid).reshape(GRID, GRID) / margin
    sides = torch.where(values > 0, 1.0, -1.0)
    at = side.numpy()
    axes.pcolormesh(at, at, sides.numpy(), cmap=_two_colours(), vmin=-1, vmax=1, alpha=0.15)
    # matplotlib warns of levels that no value reaches.
    inside = [v for v in (-1, 0, 1) if float(values.min()) < v < float(values.max())]
    if inside:
        widths = [1.2 if v == 0 else 0.6 for v in inside]
        axes.contour(at, at, values.numpy(), levels=inside, colors="black", linewidths=widths)
    axes.set(ylim=(-PLANE, PLANE), aspect="equal", xlabel="$x_1$", ylabel="$x_2$")


def _several(axes: Any, values: Tensor, side: Tensor) -> None:  # noqa: ANN401
    """The same for outputs (C, h, w): the winner's colour, the borders, its lead at the margin."""
    from matplotlib.colors import ListedColormap

    at, best = side.numpy(), values.argmax(0)
    top = values.topk(2, 0).values
    colours = ListedColormap([COLOURS[label] for label in labels(len(values))])
    axes.pcolormesh(at, at, best.numpy(), cmap=colours, vmin=0, vmax=len(values) - 1, alpha=0.15)
    for k, one in enumerate(values):
        rest = torch.where(best == k, top[1], top[0])
        lead = (one - rest).numpy()
        inside = [v for v in (0, 1) if lead.min() < v < lead.max()]
        if inside:
            widths = [1.2 if v == 0 else 0.6 for v in inside]
            axes.contour(at, at, lead, levels=inside, colors="black", linewidths=widths)
    axes.set(ylim=(-PLANE, PLANE), aspect="equal", xlabel="$x_1$", ylabel="$x_2$")


def _two_colours() -> Any:  # noqa: ANN401 (a class of an untyped library)
    from matplotlib.colors import ListedColormap

    return ListedColormap([NEGATIVE, POSITIVE])


def _graph(axes: Any, net: Network, margin: float) -> None:  # noqa: ANN401
    """The graph of Phi over the axis, at margin 1, with the levels that points must reach."""
    side = torch.linspace(-PLANE, PLANE, 8 * GRID, dtype=net.dtype)
    axes.plot(side.numpy(), (phi(net, side[:, None]) / margin).numpy(), color="black", linewidth=1)
    for level in (-1, 0, 1):
        axes.axhline(level, color="grey", linewidth=0.5)
    axes.set(xlabel="$x$", ylabel="Φ / margin")


def _marks(axes: Any, data: Dataset, claims: Report | None) -> None:  # noqa: ANN401
    """Truth hollow, claims filled; in 1-D at the height of their label."""
    shapes = zip(labels(data.outputs), "o^sD", strict=False)
    for label, colour, marker in ((k, COLOURS[k], shape) for k, shape in shapes):
        at = _places(data.x, data.y, label)
        axes.scatter(*at, 60, facecolors="none", edgecolors=colour, marker=marker,
                     linewidths=1.5, label=f"truth {label:+d}")  # fmt: skip
        if claims is not None and bool((claims.y == label).any()):
            lam = claims.lam[claims.y == label]
            areas = (8 + 37 * lam / claims.lam.max()).tolist()  # within the marks of the truth
            axes.scatter(*_places(claims.x, claims.y, label), areas, color=colour, marker=marker,
                         linewidths=0, label=f"claim {label:+d}")  # fmt: skip
    axes.set(xlim=(-PLANE, PLANE))
    axes.legend(fontsize=7, loc="upper right")


def _places(x: Tensor, y: Tensor, label: int) -> tuple[list[float], list[float]]:
    own = x[y == label]
    height = own[:, 1] if x.shape[1] == 2 else torch.full_like(own[:, 0], label)
    return own[:, 0].tolist(), height.tolist()
