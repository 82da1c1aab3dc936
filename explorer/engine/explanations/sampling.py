r"""Points of the set {x : |Phi(theta; x)| = 1} of a network at margin 1, on the line or the plane.

Every explanation that keeps the margin has its points there. In two layers Phi is linear between
the neurons' lines, so that the roots along a line are exact, and the set is made of segments (and
of whole cells where Phi is constant). A mass on a segment has the moments of two masses at its
ends, and so the same sum of gradients: for the question how much mass must lie within a radius of
a point, the ends of the segments suffice, cut at that circle. They are the roots on the neurons'
lines, on the edge of the box and on the circle. Where Phi is constant on the margin, and in deeper
networks, whose cells have walls of their own, everything here is a sample.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from explorer.engine.network import Network, one_output, phi, preactivations
from explorer.engine.progress import Progress, between, no_progress, with_progress

Array = NDArray[np.float64]
GRID = 80  # lines each way: 160 in all; arbitrary, as in the figures of docs/explanations.md
_NODES = 400  # arbitrary: evaluations along a line before bisection, in deeper networks
_TURNS = 720  # arbitrary: places on a circle between which a root is looked for
_HALVINGS = 45  # of a bracket: to rounding
_LEVEL = 1e-9  # arbitrary: | |Phi| - 1 | up to this counts as on the margin
_APART = 1e-7  # arbitrary: samples nearer than this share of the box are one


def check_plane(net: Network) -> None:
    """ValueError where there is no plane to sample, or no margin."""
    one_output(net)
    if net.d not in (1, 2) or net.depth < 2:
        raise ValueError(
            f"margin points are sampled on the line or the plane of a network with hidden layers; "
            f"got d={net.d} and {net.depth} layers"
        )
    net.order  # noqa: B018 - refuses biases beyond the first layer


def margin_points(
    net: Network,
    extent: float,
    grid: int = GRID,
    around: Tensor | None = None,
    radius: float = 0.0,
    progress: Progress = no_progress,
) -> Tensor:
    """Points with |Phi| = 1 in [-extent, extent]^d: ends of segments, and roots along grid lines.

    Args:
        net: one output, margin 1; d = 1 or 2.
        extent: half width of the box.
        grid: lines each way; 0 leaves the vertices alone. On the line it adds nothing but, where
            Phi is constant on the margin, that many points of the box.
        around: centres (c, d) of circles; the roots on each are among the points.
        radius: of these circles.
        progress: told the lines and circles that are done.

    Returns:
        (m, d), without repetitions.
    """
    check_plane(net)
    if not extent > 0:
        raise ValueError(f"extent must be positive; got {extent}")
    lines = _grid_lines(net.d, extent, grid) + _neuron_lines(net, extent)
    centres = np.zeros((0, net.d)) if around is None or radius <= 0 else around.numpy()
    total = len(lines) + len(centres)
    here = between(progress, 0.0, len(lines) / max(total, 1))
    found = [_roots(net, p, u, extent) for p, u in with_progress(lines, len(lines), here)]
    here = between(progress, len(lines) / max(total, 1), 1.0)
    found += [_circle(net, c, radius) for c in with_progress(centres, len(centres), here)]
    spots = np.concatenate([*found, _corners(net, extent), _flat(net, extent, grid)])
    if not len(spots):
        return torch.zeros(0, net.d, dtype=torch.float64)
    spots = spots[_values_off(net, spots) <= 1e-6]
    return torch.from_numpy(_distinct(spots, _APART * extent))


def _value(net: Network, x: Array) -> Array:
    values: Array = phi(net, torch.from_numpy(np.ascontiguousarray(x))).numpy()
    return values


def _values_off(net: Network, x: Array) -> Array:
    off: Array = np.abs(np.abs(_value(net, x)) - 1)
    return off


def _grid_lines(d: int, extent: float, grid: int) -> list[tuple[Array, Array]]:
    """Lines (a point, a unit direction); the four edges of the box are among those of the plane."""
    if d == 1:
        return [(np.zeros(1), np.ones(1))]
    at = np.linspace(-extent, extent, max(grid, 2))
    right, up = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    return [line for t in at for line in ((t * right, up), (t * up, right))]


def _first_layer(net: Network) -> tuple[Array, Array]:
    w = net.weights[0].numpy()
    b = net.biases[0]
    return w, np.zeros(len(w)) if b is None else b.numpy()


def _neuron_lines(net: Network, extent: float) -> list[tuple[Array, Array]]:
    if net.d == 1:
        return []
    w, b = _first_layer(net)
    size = np.linalg.norm(w, axis=1)
    out = []
    for row, bias, norm in zip(w, b, size, strict=True):
        if norm > 0 and abs(bias) / norm < 1.5 * extent:
            out.append((-bias * row / norm**2, np.array([-row[1], row[0]]) / norm))
    return out


def _roots(net: Network, p: Array, u: Array, extent: float) -> Array:
    """Places p + t u of the box with |Phi| = 1."""
    inside = np.abs(u) > 1e-12
    if np.any(np.abs(p[~inside]) > extent * (1 + 1e-12)):
        return np.zeros((0, len(p)))
    ends = np.sort(np.stack([(s * extent - p[inside]) / u[inside] for s in (-1, 1)]), axis=0)
    low, high = float(ends[0].max()), float(ends[1].min())
    if not low < high:
        return np.zeros((0, len(p)))
    nodes = _nodes(net, p, u, low, high)
    values = _value(net, p + nodes[:, None] * u)
    found = []
    for level in (-1.0, 1.0):
        f = values - level
        found.append(nodes[np.abs(f) <= _LEVEL])
        crossing = np.nonzero(f[:-1] * f[1:] < 0)[0]
        found.append(_roots_between(net, p, u, nodes[crossing], nodes[crossing + 1], level))
    t = np.concatenate(found)
    places: Array = p + t[:, None] * u
    return places


def _nodes(net: Network, p: Array, u: Array, low: float, high: float) -> Array:
    """Ends of the linear pieces along the line; deeper networks add an even grid to them."""
    w, b = _first_layer(net)
    speed = w @ u
    moving = np.abs(speed) > 1e-12 * np.linalg.norm(w, axis=1)
    breaks = -(w[moving] @ p + b[moving]) / speed[moving]
    breaks = breaks[(breaks > low) & (breaks < high)]
    even = np.linspace(low, high, _NODES) if net.depth > 2 else np.array([low, high])
    return np.unique(np.concatenate([breaks, even]))


def _roots_between(
    net: Network, p: Array, u: Array, low: Array, high: Array, level: float
) -> Array:
    """The root in each bracket: the chord where Phi is linear, after bisection elsewhere."""
    if not len(low):
        return low

    def f(t: Array) -> Array:
        return _value(net, p + t[:, None] * u) - level

    at_low, at_high = f(low), f(high)
    for _ in range(_HALVINGS if net.depth > 2 else 0):
        middle = (low + high) / 2
        at = f(middle)
        left = at_low * at <= 0
        high, at_high = np.where(left, middle, high), np.where(left, at, at_high)
        low, at_low = np.where(left, low, middle), np.where(left, at_low, at)
    slope = at_high - at_low
    safe = np.where(slope == 0, 1.0, slope)
    return np.where(slope == 0, low, low - at_low * (high - low) / safe)


def _circle(net: Network, centre: Array, radius: float) -> Array:
    """Places on the circle with |Phi| = 1, by bisection over the angle; both ends on the line."""
    if net.d == 1:
        ends = centre + radius * np.array([[-1.0], [1.0]])
        kept: Array = ends[_values_off(net, ends) <= _LEVEL]
        return kept

    def place(turn: Array) -> Array:
        return centre + radius * np.stack([np.cos(turn), np.sin(turn)], axis=1)

    turns = np.linspace(0, 2 * np.pi, _TURNS + 1)
    values = _value(net, place(turns))
    found = []
    for level in (-1.0, 1.0):
        f = values - level
        crossing = np.nonzero(f[:-1] * f[1:] <= 0)[0]
        low, high, at_low = turns[crossing], turns[crossing + 1], f[crossing]
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            at = _value(net, place(middle)) - level
            left = at_low * at <= 0
            high = np.where(left, middle, high)
            low, at_low = np.where(left, low, middle), np.where(left, at_low, at)
        found.append((low + high) / 2)
    return place(np.concatenate(found))


def _corners(net: Network, extent: float) -> Array:
    """Crossings of two neurons' lines, and corners of the box, where |Phi| = 1 (flat cells)."""
    if net.d == 1:
        return np.zeros((0, 1))
    w, b = _first_layer(net)
    i, j = np.triu_indices(min(len(w), 60), 1)  # arbitrary: 60 lines have 1770 crossings
    det = w[i, 0] * w[j, 1] - w[i, 1] * w[j, 0]
    size = np.linalg.norm(w, axis=1)
    ok = np.abs(det) > 1e-9 * size[i] * size[j]
    i, j, det = i[ok], j[ok], det[ok]
    cross = np.stack(
        [(w[i, 1] * b[j] - w[j, 1] * b[i]) / det, (w[j, 0] * b[i] - w[i, 0] * b[j]) / det], axis=1
    )
    box = extent * np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    spots = np.concatenate([cross, box])
    spots = spots[np.all(np.abs(spots) <= extent, axis=1)]
    kept: Array = spots[_values_off(net, spots) <= _LEVEL]
    return kept


def _flat(net: Network, extent: float, grid: int) -> Array:
    """Even points of the box where Phi is constant on the margin: room to move in all ways."""
    if not grid:
        return np.zeros((0, net.d))
    at = np.linspace(-extent, extent, max(grid // 2, 2))
    spots = at[:, None] if net.d == 1 else np.stack(np.meshgrid(at, at), -1).reshape(-1, 2)
    kept: Array = spots[_values_off(net, spots) <= _LEVEL]
    return kept


def _distinct(spots: Array, apart: float) -> Array:
    _, first = np.unique(np.rint(spots / apart), axis=0, return_index=True)
    kept: Array = spots[np.sort(first)]
    return kept


def kinks_of(net: Network, x: Tensor, tau: float) -> tuple[list[Tensor], list[Tensor]]:
    """Slopes 1 where z > 0 and no kink within `tau`; the kinks. -> one (m, k_l) per layer each."""
    on, kinks, a = [], [], x
    values = preactivations(net, x)[:-1]
    for z, w, b in zip(values, net.weights[:-1], net.biases[:-1], strict=True):
        size = a.norm(dim=1, keepdim=True) * w.norm(dim=1) + (0 if b is None else b.abs())
        near = z.abs() <= tau * size
        kinks.append(near & (size > 0))
        on.append(((z > 0) & ~near).to(x))
        a = z.clamp_min(0)
    return on, kinks
