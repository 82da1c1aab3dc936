"""Kink sets of second-layer neurons: piecewise straight curves, bent at the lines of the first.

Their vertices join those of `crossings`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from explorer.engine.attacks.crossings import CROSSING, LEVEL, Vertices
from explorer.engine.network import Network, phi, preactivations


def curve_vertices(
    net: Network, on_lines: Vertices, owners: Tensor, reach: float
) -> list[Vertices]:
    """Crossings of second-layer curves with each other, and of |Phi| = 1 along them.

    Between the lines a curve is straight, so that two of its vertices with one cell between
    them are the ends of a segment. Cells are told apart by a hash of the signs of the first layer.
    `on_lines`, `owners`: from `vertices`. Two layers and 1-D have none.
    """
    if len(net.weights) != 3 or net.d != 2:
        return []
    ours = owners[:, 0] == 1
    a, b, cell = _segments(net, on_lines.x[ours], owners[ours, 1])
    if not len(a):
        return []
    first, share = _meetings(a, b, cell)
    met = a[first] + share[:, None] * (b - a)[first]
    ids = torch.cat([torch.arange(len(a)).repeat(2), first])
    ends = torch.cat([torch.zeros(len(a)), torch.ones(len(a))]).to(share)
    t = torch.cat([ends, share])
    order = torch.argsort(t, stable=True)
    order = order[torch.argsort(ids[order], stable=True)]
    ids, t = ids[order], t[order]
    values = phi(net, a[ids] + t[:, None] * (b - a)[ids])
    values = torch.stack([values - 1, values + 1], dim=1)
    crosses = (values[:-1] * values[1:] < 0) & (ids[:-1] == ids[1:])[:, None]
    row, level = crosses.nonzero(as_tuple=True)
    low, high = values[row, level], values[row + 1, level]
    at = t[row] + (t[row + 1] - t[row]) * low / (low - high)
    x = a[ids[row]] + at[:, None] * (b - a)[ids[row]]
    made = [Vertices(met, torch.full((len(met),), CROSSING)),
            Vertices(x, torch.full((len(x),), LEVEL))]  # fmt: skip
    return [v.take(v.x.norm(dim=1) <= reach) for v in made]


def _segments(net: Network, x: Tensor, unit: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Straight pieces of curves: their ends a, b (S, 2) and a number for each one's cell (S,)."""
    z = preactivations(net, x)[0]
    w = net.weights[0]
    on = (z.abs() / w.norm(dim=1).clamp_min(1e-300)).argmin(dim=1)  # the line it lies on
    codes = torch.randint(2**62, (z.shape[1],), generator=torch.Generator().manual_seed(0))
    signs = (z > 0).long()
    signs[torch.arange(len(x)), on] = 0
    base = (signs * codes).sum(1)  # wraps around, which a hash may
    cell = torch.cat([base, base + codes[on]])
    point = torch.arange(len(x)).repeat(2)
    key = cell * 1_000_003 + unit.repeat(2)
    order = torch.argsort(key, stable=True)
    key, cell, point = key[order], cell[order], point[order]
    _, count = torch.unique_consecutive(key, return_counts=True)
    start = torch.cumsum(count, 0) - count
    pair = start[count == 2]
    return x[point[pair]], x[point[pair + 1]], cell[pair]


def _meetings(a: Tensor, b: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Where two segments of one cell meet: the segment, and the share of it; each pair twice."""
    order = torch.argsort(cell, stable=True)
    _, count = torch.unique_consecutive(cell[order], return_counts=True)
    start = torch.cumsum(count, 0) - count
    first, second = [], []
    for s, c in zip(start.tolist(), count.tolist(), strict=True):
        if c > 1:
            i, j = torch.triu_indices(c, c, 1)
            first += [order[s + i], order[s + j]]
            second += [order[s + j], order[s + i]]
    if not first:
        none = torch.zeros(0, dtype=torch.long)
        return none, a.new_zeros(0)
    i, j = torch.cat(first), torch.cat(second)
    u, v, gap = (b - a)[i], (b - a)[j], a[j] - a[i]
    det = u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]
    safe = torch.where(det == 0, torch.ones_like(det), det)
    s = (gap[:, 0] * v[:, 1] - gap[:, 1] * v[:, 0]) / safe
    t = (gap[:, 0] * u[:, 1] - gap[:, 1] * u[:, 0]) / safe
    inside = (det != 0) & (s > 0) & (s < 1) & (t > 0) & (t < 1)
    return i[inside], s[inside]
