r"""Where a training point can lie, from the weights alone: the vertices of the margin set.

Phi is piecewise affine in x, and on one closed piece x -> y grad_theta Phi(theta; x) is affine too.
So a point of {|Phi| = 1} inside a piece explains theta no better than the two ends of the
segment in which the piece meets that set: every explanation of theta by points of the margin set
is one by its vertices, which are finitely many. In 2-D they are

- crossings of two kink sets at which |Phi| = 1 (doubly kinked points), and
- points of one kink set at which |Phi| crosses 1 (exact roots on affine pieces),

where the kink set of a first-layer neuron is its line w.x + b = 0, and that of a second-layer
neuron a piecewise linear curve, with its vertices on the lines. In 1-D there is one line, the
axis, and the vertices are all crossings of |Phi| = 1 and the breakpoints at which |Phi| = 1.
Unbounded pieces have segments with one end only: what lies out there beyond `reach` is not seen.

Training leaves weights only near a KKT point: Phi misses 1 a little at the training points and the
lines of one point form a thin pencil. Hence `tolerance` on |Phi| and `spacing` between candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.arrays import greedy_groups, near_head
from explorer.engine.network import Network, phi, preactivations
from explorer.engine.tables import Rowwise

CROSSING, LEVEL = 0, 1  # of two kink sets; of one kink set with |Phi| = 1
_FLAT = 1e-9  # arbitrary: neurons with |w| below this share of |(w, b)| have no line
_PARALLEL = 0.01  # arbitrary: lines that meet at a smaller angle (radians) have no sharp crossing


@dataclass(frozen=True, eq=False)
class Lines:
    """Kink sets of first-layer neurons: normal . x + offset = 0.

    Attributes:
        normal: unit vectors (K, d).
        offset: (K,).
        weight: path weight |(w, b)| |outgoing| (K,).
    """

    normal: Tensor
    offset: Tensor
    weight: Tensor


@dataclass(frozen=True, eq=False)
class Vertices(Rowwise):
    """Candidates x (N, d), and `kind` (N,): CROSSING or LEVEL."""

    x: Tensor
    kind: Tensor

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.x)


def lines(net: Network) -> Lines:
    """Return the lines of the first layer's neurons, heaviest first.

    Neurons without a line are left out.

    In 1-D a "line" is the breakpoint -b/w.
    """
    w, b = net.weights[0], net.biases[0]
    b = w.new_zeros(len(w)) if b is None else b
    size = w.norm(dim=1)
    whole = size.hypot(b)
    weight = whole * net.weights[1].norm(dim=0)
    order = torch.argsort(weight, descending=True, stable=True)
    order = order[(size > _FLAT * whole)[order] & (weight > 0)[order]]
    return Lines(w[order] / size[order, None], b[order] / size[order], weight[order])


def _none(like: Tensor) -> Vertices:
    """Return no candidate, of the type and dimension of `like` (., d)."""
    return Vertices(like.new_zeros(0, like.shape[1]), torch.zeros(0, dtype=torch.long))


def line_crossings(found: Lines, reach: float) -> Vertices:
    """Return where two lines meet within `reach` of the origin, in 2-D; in 1-D the breakpoints."""
    n, b = found.normal, found.offset
    if n.shape[1] == 1:
        x = -b[:, None] / n
    else:
        i, j = torch.triu_indices(len(b), len(b), 1)
        det = n[i, 0] * n[j, 1] - n[i, 1] * n[j, 0]
        sharp = det.abs() > _PARALLEL
        i, j, det = i[sharp], j[sharp], det[sharp]
        x = torch.stack([n[i, 1] * b[j] - n[j, 1] * b[i], n[j, 0] * b[i] - n[i, 0] * b[j]], 1)
        x = x / det[:, None]
    x = x[x.norm(dim=1) <= reach]
    return Vertices(x, torch.full((len(x),), CROSSING))


def line_vertices(
    net: Network, origin: Tensor, direction: Tensor, reach: float
) -> tuple[Vertices, Tensor]:
    """Return vertices on one straight line that are not crossings of first-layer lines.

    Layer by layer the line is cut where a neuron's value changes sign; between two cuts everything
    is affine, so that each root is exact. origin, direction (d,), the latter a unit vector.

    Returns:
        Kinks of deeper layers (CROSSING) and crossings of |Phi| = 1 (LEVEL); and, for each kink,
        its layer and neuron (N, 2), -1 for the levels.
    """
    half = float((reach**2 - origin.square().sum()).clamp_min(0).sqrt())
    w, b = net.weights[0], net.biases[0]
    start = w @ origin if b is None else w @ origin + b
    cuts = -start / (w @ direction)
    ends = origin.new_tensor([-half, half])
    t = torch.cat([ends, cuts[cuts.abs() < half]]).sort().values
    kept, kinds, owners = [], [], []
    for layer in range(1, len(net.weights)):
        z = preactivations(net, origin + t[:, None] * direction)[layer]
        last = layer == len(net.weights) - 1
        values = torch.cat([z - 1, z + 1], dim=1) if last else z
        roots, unit = _roots(t, values)
        kept.append(roots)
        kinds.append(torch.full((len(roots),), LEVEL if last else CROSSING))
        owner = torch.stack([torch.full_like(unit, layer), unit], dim=1)
        owners.append(torch.full_like(owner, -1) if last else owner)
        t = torch.cat([t, roots]).sort().values
    places = origin + torch.cat(kept)[:, None] * direction
    return Vertices(places, torch.cat(kinds)), torch.cat(owners)


def _roots(t: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Return roots between neighbours of t (T,) of functions affine there, (T, k), and their k."""
    low, high = values[:-1], values[1:]
    row, unit = torch.nonzero(low * high < 0, as_tuple=True)
    share = low[row, unit] / (low[row, unit] - high[row, unit])
    return t[row] + share * (t[row + 1] - t[row]), unit


def vertices(net: Network, found: Lines, reach: float) -> tuple[Vertices, Vertices, Tensor]:
    """Return all vertices of the lines, whatever |Phi| is there.

    Returns:
        Line crossings; the vertices along the lines, kinks of deeper layers among them; and the
        layer and neuron of each of the latter (N, 2), -1 for crossings of |Phi| = 1.
    """
    n, b = found.normal, found.offset
    made, owners = [], []
    if n.shape[1] == 1:
        first = [(n.new_zeros(1), n.new_ones(1))]
    else:
        turned = torch.stack([-n[:, 1], n[:, 0]], dim=1)
        first = [(-c * v, u) for v, u, c in zip(n, turned, b, strict=True)]
    for origin, direction in first:
        if float(origin.norm()) < reach:
            on_line, owner = line_vertices(net, origin, direction, reach)
            made.append(on_line)
            owners.append(owner)
    empty = torch.zeros(0, 2, dtype=torch.long)
    return line_crossings(found, reach), _none(n).union(*made), torch.cat([empty, *owners])


def on_margin(net: Network, found: Vertices, tolerance: float) -> Vertices:
    """Return those with | |Phi| - 1 | <= tolerance."""
    return found.take((phi(net, found.x).abs() - 1).abs() <= tolerance)


def sparse_vertices(net: Network, found: Vertices, spacing: float) -> Vertices:
    """Return at most one candidate per `spacing` and label, those where most cross first."""
    x, label = found.x, phi(net, found.x).sign()
    crowd = torch.zeros(len(x), dtype=x.dtype)
    for part in torch.arange(len(x)).split(1000):  # memory: 1000 x N distances at a time
        near = torch.cdist(x[part], x) <= spacing / 2
        crowd[part] = (near & (found.kind == CROSSING)).sum(1).to(x.dtype)
    order = torch.argsort(crowd, descending=True, stable=True)
    heads = [int(group[0]) for group in greedy_groups(order, near_head(x, label, spacing))]
    return found.take(torch.tensor(heads, dtype=torch.long))


def level_vertices(net: Network, grid: int, reach: float) -> Vertices:
    """Return points with |Phi| = 1 on `grid` lines each way, or on the edge of the region for 0.

    They stand for explanations by points on no kink, and for the far ends of unbounded pieces.
    In 1-D the margin set is finite and already listed.
    """
    like = torch.zeros(1, net.d, dtype=net.dtype)
    if net.d == 1:
        return _none(like)
    found = []
    places = torch.linspace(-reach, reach, grid).tolist() if grid > 1 else [-reach, reach]
    for axis in (0, 1):
        direction = torch.eye(2, dtype=net.dtype)[1 - axis]
        for place in places:
            origin = torch.eye(2, dtype=net.dtype)[axis] * place
            some, _ = line_vertices(net, origin, direction, reach * 2**0.5)
            found.append(some.take(some.kind == LEVEL))
    return _none(like).union(*found)


# --- Kink sets of second-layer neurons: piecewise straight curves, bent at the lines of the first
# Their vertices join those of `crossings`.


def curve_vertices(
    net: Network, on_lines: Vertices, owners: Tensor, reach: float
) -> list[Vertices]:
    """Return crossings of second-layer curves with each other, and of |Phi| = 1 along them.

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
    """Return straight pieces of curves: ends a, b (S, 2), and a number for each one's cell (S,)."""
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
    """Return where two segments of one cell meet: the segment, and its share; each pair twice."""
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
