"""A run on paper: its points, its network and what an attack claims, as picture or as film."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from explorer.engine.arrays import Array, as_array
from explorer.engine.attacks.claims import Report
from explorer.engine.data import Dataset
from explorer.engine.margin import q_of
from explorer.engine.network import Network
from explorer.engine.roster import AttackState
from explorer.engine.training import TrainState
from explorer.research.pictures.axes import Axes, axes_for
from explorer.research.pictures.charts import margins_chart
from explorer.research.pictures.fields import graph, margin_map, places_of
from explorer.research.pictures.painting import (
    Sheet,
    add_legend,
    add_title,
    new_figure,
    paint_chart,
    paint_plane,
    plane_figure,
)

GRID = 160  # arbitrary: pixels of the decision map along one side
PAPER = (6.9, 3.3)  # inches: the width of two columns
MOST_FRAMES = 60  # of a film; arbitrary
PIXELS, FILM_GRID, FRAME_MS, LAST_MS = 480, 80, 80, 2000  # arbitrary
VIDEO = 720  # pixels a side of a video, which takes less room than a GIF; arbitrary


class LabelledPoints(Protocol):
    """Points with labels."""

    @property
    def x(self) -> Tensor:
        """Return the points (k, d)."""

    @property
    def y(self) -> Tensor:
        """Return the labels (k,)."""


def plane_frame(
    data: Dataset,
    net: Network | None = None,
    claims: LabelledPoints | None = None,
    size: int = GRID,
    axes: Axes | None = None,
) -> dict[str, Any]:
    """Return a frame of the plane for `painting.paint_plane`: truth hollow, claims filled.

    Args:
        data: the training points, in one dimension or two.
        net: whose map or graph stands behind them, in units of its smallest margin.
        claims: of an attack, its candidates, or another set; larger marks have larger `lam`.
        size: samples of the map a side.
        axes: what is shown; that which shows the points by default.
    """
    axes = axes or axes_for(Axes(), data)
    frame: dict[str, Any] = {
        "view": [axes.x[0], axes.y[0], axes.x[1], axes.y[1]], "flat": data.d == 1,
        "hollow": True, "margins": True, "points": _rows(data.x, data.y, axes),
        "names": {"points": "training points"},
    }  # fmt: skip
    if net is not None:
        least = float(q_of(net, data.x, data.y).min()) if data.n else 1.0
        unit = least if least > 0 else 1.0  # points that are not separated have no margin
        if data.d == 1:
            frame["graph"] = graph(net, axes, unit)
        else:
            frame["map"] = margin_map(net, axes, unit, size)
    if claims is not None and len(claims.x):
        frame["candidates"] = _rows(claims.x, claims.y, axes, getattr(claims, "lam", None))
        frame["names"]["candidates"] = "claims"
    return frame


def _rows(x: Tensor, y: Tensor, axes: Axes, lam: Tensor | None = None) -> Array:
    """Return x, y, class, share of the largest multiplier, 1; on a line at the label's height."""
    share = np.ones(len(y))
    if lam is not None and lam.shape == y.shape and float(lam.max()) > 0:
        share = as_array((lam / lam.max()).clamp(0, 1))
    return np.column_stack([axes.shares(places_of(x, y)), as_array(y), share, np.ones(len(y))])


def run_figure(
    data: Dataset, net: Network | None, claims: Report | None = None, title: str = ""
) -> Sheet:
    """Return truth and claims on the plane, and q per point; the points alone without a network.

    ImportError without matplotlib.
    """
    if net is None:
        return plane_figure(plane_frame(data), PAPER, title)
    figure = new_figure(*PAPER)
    plane, bars = figure.subplots(1, 2, width_ratios=(1.1, 1))
    paint_plane(plane, plane_frame(data, net, claims))
    paint_chart(bars, margins_chart(q_of(net, data.x, data.y), data.y))
    add_title(figure, title)
    add_legend(figure)
    return figure


def film(
    data: Dataset, states: Sequence[TrainState] | Sequence[AttackState], net: Network | None = None,
    pixels: int = PIXELS,
) -> Iterator[Any]:  # fmt: skip
    """Yield frames of a film: networks of a training, or candidates of an attack on `net`.

    At most `MOST_FRAMES`, evenly chosen, each of `pixels` squared. ImportError without matplotlib
    and pillow.
    """
    from PIL import Image

    count = min(len(states), MOST_FRAMES)
    places = [round(i * (len(states) - 1) / max(count - 1, 1)) for i in range(count)]
    figure = new_figure(PIXELS / 100, PIXELS / 100, dpi=100 * pixels / PIXELS)
    axes = figure.subplots()
    for i in places:
        state = states[i]
        axes.clear()
        shown = state.net if net is None and isinstance(state, TrainState) else net
        found = None if isinstance(state, TrainState) else state
        paint_plane(axes, plane_frame(data, shown, found, FILM_GRID))
        axes.set_title(f"step {state.t:,}", fontsize=10)
        figure.canvas.draw()
        yield Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")


def gif(frames: Sequence[Any]) -> bytes:
    """Return the film of these frames; the last stands for `LAST_MS`, then it begins again."""
    out = io.BytesIO()
    frames[0].save(
        out, "GIF", save_all=True, append_images=frames[1:], duration=times(frames), loop=0,
        optimize=True,
    )  # fmt: skip
    return out.getvalue()


def times(frames: Sequence[Any]) -> list[int]:
    """Return how long each frame of a film stands, in milliseconds."""
    return [FRAME_MS] * (len(frames) - 1) + [LAST_MS]


def jpegs(frames: Sequence[Any]) -> list[bytes]:
    """Return the frames of a film one by one, for a browser that records a video of them."""
    made = []
    for frame in frames:
        out = io.BytesIO()
        frame.save(out, "JPEG", quality=95)
        made.append(out.getvalue())
    return made
