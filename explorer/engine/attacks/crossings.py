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

from explorer.engine.network import Network, phi, preactivations

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
class Vertices:
    """Candidates x (N, d), and `kind` (N,): CROSSING or LEVEL."""

    x: Tensor
    kind: Tensor

    def __len__(self) -> int:
        """How many there are."""
        return len(self.x)

    def take(self, kept: Tensor) -> Vertices:
        """Those of an index or a mask."""
        return Vertices(self.x[kept], self.kind[kept])


def lines(net: Network) -> Lines:
    """The lines of the first layer's neurons, heaviest first; neurons without a line are left out.

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


def joined(vertices: list[Vertices], like: Tensor) -> Vertices:
    """All in one; `like` gives type and dimension where there are none."""
    if not vertices:
        return Vertices(like.new_zeros(0, like.shape[1]), torch.zeros(0, dtype=torch.long))
    return Vertices(torch.cat([v.x for v in vertices]), torch.cat([v.kind for v in vertices]))


def line_crossings(found: Lines, reach: float) -> Vertices:
    """Where two lines meet within `reach` of the origin, in 2-D; in 1-D the breakpoints."""
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


def along(net: Network, origin: Tensor, direction: Tensor, reach: float) -> tuple[Vertices, Tensor]:
    """Vertices on one straight line that are not crossings of first-layer lines.

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
    """Roots between neighbours of t (T,) of functions affine there, values (T, k), with k."""
    low, high = values[:-1], values[1:]
    row, unit = torch.nonzero(low * high < 0, as_tuple=True)
    share = low[row, unit] / (low[row, unit] - high[row, unit])
    return t[row] + share * (t[row + 1] - t[row]), unit


def vertices(net: Network, found: Lines, reach: float) -> tuple[Vertices, Vertices, Tensor]:
    """All vertices of the lines, whatever |Phi| is there.

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
            on_line, owner = along(net, origin, direction, reach)
            made.append(on_line)
            owners.append(owner)
    empty = torch.zeros(0, 2, dtype=torch.long)
    return line_crossings(found, reach), joined(made, n), torch.cat([empty, *owners])


def on_margin(net: Network, found: Vertices, tolerance: float) -> Vertices:
    """Those with | |Phi| - 1 | <= tolerance."""
    return found.take((phi(net, found.x).abs() - 1).abs() <= tolerance)


def thinned(net: Network, found: Vertices, spacing: float) -> Vertices:
    """At most one candidate per `spacing` and label; crossings, and where most meet, come first."""
    x, label = found.x, phi(net, found.x).sign()
    crowd = torch.zeros(len(x), dtype=x.dtype)
    for part in torch.arange(len(x)).split(1000):  # memory: 1000 x N distances at a time
        near = torch.cdist(x[part], x) <= spacing / 2
        crowd[part] = (near & (found.kind == CROSSING)).sum(1).to(x.dtype)
    left = torch.argsort(crowd, descending=True, stable=True)
    kept = []
    while len(left):
        head, left = left[0], left[1:]
        kept.append(head)
        apart = (x[left] - x[head]).norm(dim=1) > spacing
        left = left[apart | (label[left] != label[head])]
    return found.take(torch.stack(kept)) if kept else found


def sampled(net: Network, grid: int, reach: float) -> Vertices:
    """Points with |Phi| = 1 on `grid` lines each way, or on the edge of the region for 0.

    They stand for explanations by points on no kink, and for the far ends of unbounded pieces.
    In 1-D the margin set is finite and already listed.
    """
    like = torch.zeros(1, net.d, dtype=net.dtype)
    if net.d == 1:
        return joined([], like)
    found = []
    places = torch.linspace(-reach, reach, grid).tolist() if grid > 1 else [-reach, reach]
    for axis in (0, 1):
        direction = torch.eye(2, dtype=net.dtype)[1 - axis]
        for place in places:
            origin = torch.eye(2, dtype=net.dtype)[axis] * place
            some, _ = along(net, origin, direction, reach * 2**0.5)
            found.append(some.take(some.kind == LEVEL))
    return joined(found, like)
