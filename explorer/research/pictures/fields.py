"""What a network is on a plane, as arrays: its map, the lines of its neurons, its graph.

Pure numpy and torch. Places are shares of the plane's half sizes, as `research.pictures.axes` says.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from explorer.engine.arrays import Array, as_array
from explorer.engine.attacks.shapes import PLACES, Level, Shapes, joined_paths
from explorer.engine.network import Network, phi, phi_all
from explorer.research.pictures.axes import Axes

MAP_SIZE = 60  # samples a side: below 2 ms a frame for two hidden layers of 100
BLOCK = 300_000  # values of a layer at once, 1.2 MB: for width 1000 16 times as fast as all of them
FINE_SIZE = 150  # likewise, for a picture that stands still
GRAPH = 400  # points of the graph over a line; arbitrary
KEPT = 8  # grids, of 60 or 360 kB: each zoom and pan has its own; arbitrary
MOST_LINES = 60  # neuron lines on the plane; more cannot be told apart
WEAKEST = 0.02  # share of the largest path weight below which no line is drawn; arbitrary
TOGETHER = 0.015  # half widths, and half of it in radians: lines nearer than this are drawn once
FAR = 50.0  # half widths from 0 beyond which float32 could be seen to round; arbitrary


@lru_cache(maxsize=KEPT)
def samples(size: int, axes: Axes) -> torch.Tensor:
    """Return places (size^2, 2) float64 from edge to edge of the plane, first row on top."""
    g = torch.linspace(-1, 1, size, dtype=torch.float64)
    yy, xx = torch.meshgrid(g.flip(0), g, indexing="ij")
    shares = torch.stack([xx.reshape(-1), yy.reshape(-1)], 1)
    return torch.from_numpy(axes.centre) + shares * torch.from_numpy(axes.half)


def field(net: Network, axes: Axes, size: int = MAP_SIZE) -> Array:
    """Return Phi on a grid from edge to edge of the plane, (size, size), first row on top.

    Computed in float32 where rounding cannot be seen in a picture.
    """
    values: Array = _outputs(net, axes, size).reshape(size, size)
    return values


def class_field(net: Network, axes: Axes, size: int) -> Array:
    """Return all outputs on the grid of `field`, (C, size, size), first row on top."""
    values: Array = _outputs(net, axes, size).T.reshape(net.outputs, size, size)
    return values


def _outputs(net: Network, axes: Axes, size: int) -> Array:
    """Return all outputs (size^2, C) on the grid, computed in parts that the cache holds."""
    far = float(np.abs(axes.centre / axes.half).max()) > FAR
    kind = torch.float64 if far else torch.float32
    fast, grid = net.to(dtype=kind), samples(size, axes).to(device=net.device, dtype=kind)
    parts = grid.split(max(1, BLOCK // max(net.widths)))
    values: Array = torch.cat([phi_all(fast, part) for part in parts]).cpu().numpy()
    return values.astype(np.float64)


def margin_map(net: Network, axes: Axes, unit: float, size: int) -> Array:
    """Return Phi / unit on the grid of `field`; of several classes the leads, (C, size, size)."""
    if net.outputs == 1:
        return field(net, axes, size) / unit
    return leads(class_field(net, axes, size) / unit)


def leads(values: Array) -> Array:
    """Return each class's output less the best other, (C, h, w): positive where it wins."""
    best = values.argmax(0)
    top = values.max(0)
    rest = np.where(np.arange(len(values))[:, None, None] == best, -np.inf, values).max(0)
    lead: Array = np.where(np.arange(len(values))[:, None, None] == best, top - rest, values - top)
    return lead


def map_size(net: Network, moving: bool) -> int:
    """Return the samples a side: fewer while the picture moves, or if each costs much."""
    small = sum(w.numel() for w in net.weights) <= 20_000  # then the fine map takes under 30 ms
    return FINE_SIZE if small and not moving else MAP_SIZE


def path_weights(net: Network) -> Array:
    """Return |v_j| ||w_j|| of each first-layer neuron (k_1,); deeper: its column's norm above."""
    first = net.weights[0].square().sum(1)
    if net.biases[0] is not None:
        first = first + net.biases[0].square()
    above = net.weights[1].square().sum(0) if len(net.weights) > 1 else torch.ones_like(first)
    return (first * above).sqrt().cpu().numpy()


def neuron_lines(net: Network, axes: Axes) -> Array:
    """Return the first layer's lines w_j.x + b_j = 0 in the plane. -> (k, 5), weakest first.

    Equal lines are drawn once with the sum of their path weights, so that many weak neurons
    on one line look as strong as they are together.

    Returns:
        Ends x, y, x, y, and strength: the root of the share of the largest path weight.
    """
    w, b, weight = lines_of(net, axes)
    norm = np.maximum(np.hypot(w[:, 0], w[:, 1]), 1e-300)
    turn = np.arctan2(w[:, 1], w[:, 0]) % np.pi  # a line has no orientation
    side = np.where(np.arctan2(w[:, 1], w[:, 0]) % (2 * np.pi) >= np.pi, -1, 1)
    key = np.stack([np.rint(turn / (2 * TOGETHER)), np.rint(side * b / norm / TOGETHER)], 1)
    _, first, group = np.unique(key, axis=0, return_index=True, return_inverse=True)
    total = np.bincount(group.reshape(-1), weights=weight)
    heaviest = np.argsort(total)[-MOST_LINES:]
    share = total[heaviest] / max(total.max(initial=0.0), 1e-300)
    heaviest, share = heaviest[share > WEAKEST], share[share > WEAKEST]
    ends, seen = _clip(w[first[heaviest]], b[first[heaviest]])
    return np.column_stack([ends[seen].reshape(-1, 4), np.sqrt(share[seen])])


def lines_of(net: Network, axes: Axes) -> tuple[Array, Array, Array]:
    """Return direction and offset (shares of the plane) and path weight of first-layer neurons."""
    w = net.weights[0].double().cpu().numpy()
    b = np.zeros(len(w)) if net.biases[0] is None else net.biases[0].double().cpu().numpy()
    centre, half = axes.centre[: net.d], axes.half[: net.d]
    return w * half, b + w @ centre, path_weights(net)


def _clip(w: Array, b: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return the parts of the lines w.x + b = 0 inside [-1, 1]^2. -> ends (k, 2, 2), seen (k,).

    Slab method: the line foot + s along is inside one pair of edges for s between two bounds.
    """
    norm = np.maximum(np.hypot(w[:, 0], w[:, 1]), 1e-300)[:, None]
    foot, along = -b[:, None] * w / norm**2, np.stack([-w[:, 1], w[:, 0]], 1) / norm
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = np.sort(np.stack([(-1 - foot) / along, (1 - foot) / along]), axis=0)
    level = np.abs(along) < 1e-12  # parallel to these edges: inside for all s, or for none
    low = np.where(level, -np.inf, bounds[0]).max(1)
    high = np.where(level, np.inf, bounds[1]).min(1)
    inside = (~level | (np.abs(foot) <= 1)).all(1)
    seen = inside & (low < high) & np.isfinite(low) & np.isfinite(high)
    low, high = np.where(seen, low, 0.0), np.where(seen, high, 0.0)
    return np.stack([foot + low[:, None] * along, foot + high[:, None] * along], 1), seen


def graph(net: Network, axes: Axes, unit: float, points: int = GRAPH) -> Array:
    """Return the graph of Phi / unit of a univariate network, from edge to edge. -> (points, 2)."""
    shares = np.linspace(-1, 1, points)
    x = torch.from_numpy(axes.x[0] + shares * axes.x[1]).to(device=net.device, dtype=net.dtype)
    heights = phi(net, x[:, None]).double().cpu().numpy() / unit
    return np.column_stack([shares, (heights - axes.y[0]) / axes.y[1]])


def breakpoints(net: Network, axes: Axes) -> Array:
    """Return breakpoints -b_j / w_j of a univariate first layer, (k, 2): place, strength."""
    w, b, weight = lines_of(net, axes)
    slope = np.where(np.abs(w[:, 0]) < 1e-12 * axes.x[1], np.nan, w[:, 0])
    at, share = -b / slope, weight / max(weight.max(initial=0.0), 1e-300)
    shown = (np.abs(at) <= 1) & (share > WEAKEST)
    made: Array = np.column_stack([at, np.sqrt(share)])[shown]
    return made


# --- points, and what an attack or an explanation draws -------------------------------------------
def places_of(x: torch.Tensor, y: torch.Tensor) -> Array:
    """Return places (k, 2) of points; those of a line stand at the height of their label."""
    places = as_array(x)
    return places if x.shape[1] > 1 else np.column_stack([places, as_array(y)])


def shape_arrays(shapes: Shapes, axes: Axes) -> dict[str, Array]:
    """Return what shapes hold, by name, in shares of the half sizes."""
    made: dict[str, Array] = {name: axes.shares(getattr(shapes, name)) for name in PLACES}
    for name, strong in (("lines", False), ("strong", True)):
        zeros = [path for one in shapes.levels if one.strong == strong for path in _zero(one)]
        if zeros:
            own = getattr(shapes, name)
            made[name] = axes.shares(joined_paths([own, *zeros] if len(own) else zeros))
    if shapes.spans:
        made["spans"] = (np.array(shapes.spans) - axes.x[0]) / axes.x[1]
    return {name: places for name, places in made.items() if len(places)}


def text_rows(shapes: Shapes, axes: Axes) -> list[list[Any]]:
    """Return words with their places, in shares of the half sizes."""
    return [[*axes.shares([x, y])[0].tolist(), words] for x, y, words in shapes.texts]


def _zero(level: Level) -> list[Array]:
    """Return the paths (k, 2) on which the function is 0."""
    from contourpy import contour_generator  # of the extras that draw

    found = contour_generator(level.axis, level.axis, level.values).lines(0.0)
    return [np.asarray(path, dtype=float) for path in found]
