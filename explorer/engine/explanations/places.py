r"""The places of all explanations of weights, as convex polygons, and what a hole leaves of them.

Two layers, d = 1 or 2. A support point of label y lies where 1 <= y Phi(x) <= 1 + band. Between the
lines of the neurons Phi and its gradient are affine in x, so these places are convex pieces, and
the gradients on each are spanned by those at its corners. On the line a piece has two corners.

Neurons of nearly one direction are seen as one group, at no loss of proof. For any p_j >= 0 of sum
1 the map theta_j -> sum_j sqrt(p_j) theta_j is a projection: what explains theta up to r explains
the groups up to r. Only their slopes differ, near the line of the group, in its *zone*:

    z_j = alpha_j Z + eps_j,   |eps_j| <= e_j on the box,   so sign z_j = sign Z where alpha_j |Z| > e_j.

In the zone the group's slope is free, its value is off by sum_j sqrt(p_j) e_j at most, and Phi by
sum_j |v_j| e_j. The slopes of all neurons are free within `tau` of their lines as well. So nothing
is said of merged weights: all is said of the given ones.
"""  # noqa: E501

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from explorer.engine.arrays import Array, Flags, Index, as_array, greedy_groups
from explorer.engine.network import Network

ROUND = 1e-12  # of the box: corners so near to a wall stand on it; a wider piece proves less
SIDES = 16  # of the polygon that stands for a disc; arbitrary
FAR = 1e12  # a margin that stands for any, however large
STEEP = 1e-9  # arbitrary: |w| below this share of |(w, b)| has no line within reach


@dataclass(frozen=True, eq=False)
class Neurons:
    """The neurons of a network of two layers as groups of nearly one direction.

    Attributes:
        w: (k, d + 1), sum_j sqrt(p_j) (w_j, b_j) of each group.
        v: (k,), sum_j sqrt(p_j) v_j.
        part: (k, d + 1), sum_j v_j (w_j, b_j): what an active group adds to Phi.
        zone: (k,), in the group's |Z| up to this its slope is free; 0: on its line alone.
        off_value: (k,), how far the group's value can be off in its zone.
        off_phi: (k,), how far Phi can be off there.
        rho: norm of all weights.
        slack: how far Phi can be off anywhere: what neurons add that stand in no group.
        box: half width of the box of all places.
    """

    w: Array
    v: Array
    part: Array
    zone: Array
    off_value: Array
    off_phi: Array
    rho: float
    slack: float
    box: float

    @property
    def d(self) -> int:
        """Return the dimension of the input."""
        return int(self.w.shape[1]) - 1

    @property
    def order(self) -> int:
        """Return the degree of homogeneity, the number of layers."""
        return 2

    @property
    def theta(self) -> Array:
        """Return the groups' weights as one vector (k (d + 2),): all (w, b), then all v."""
        return np.concatenate([self.w.reshape(-1), self.v])

    @property
    def pivots(self) -> tuple[Array, ...]:
        """Return vectors with <pivot, y g> about 2 y Phi or y Phi: theta, and the last layer.

        Free slopes of lines that may lie elsewhere change the first by much, the second hardly.
        """
        theta = self.theta
        return theta, np.concatenate([np.zeros(self.w.size), theta[self.w.size :]])


def first_layer(net: Network) -> Array:
    """Return (w, b) of the first layer's neurons (k, d + 1) in float64, 0 for no bias."""
    w = as_array(net.blocks[0])
    return w if net.biases[0] is not None else np.pad(w, ((0, 0), (0, 1)))


def parts_of(net: Network) -> tuple[Array, Array]:
    """Return (w, b) (k, d + 1) and v (k,) in float64, without neurons that do nothing.

    Of several outputs v is the norm of what a neuron sends to them.
    """
    w = first_layer(net)
    v = as_array(net.weights[1])
    v = v[0] if net.outputs == 1 else np.linalg.norm(v, axis=0)
    kept = (np.abs(w).sum(1) > 0) & (v != 0)
    return w[kept], v[kept]


def neuron_groups(
    net: Network, angle: float, tau: float, box: float, light: float = 0.0, doubt: float = 0.0,
    rounded: float = 0.0,
) -> Neurons:  # fmt: skip
    """Return the neurons of `net` as groups.

    Args:
        net: two layers, one output.
        angle: neurons of one sign within it of a heavier one join that one's group; radians.
        tau: slopes are free within this distance of a line, in units of x.
        box: half width of the box of all places.
        light: neurons below this share of sum_j |v_j| |(w_j, b_j)| stand in no group: nothing is
            asked of their weights, and Phi is off by what they can add.
        doubt: each weight may be off by this, and a line by what that moves it.
        rounded: each weight may be off by this share of it.
    """
    w, v = parts_of(net)
    rho = float(net.rho)
    size = np.linalg.norm(w, axis=1)
    path = size * np.abs(v)
    corners = np.array([[*c, 1.0] for c in product((-box, box), repeat=w.shape[1] - 1)])
    kept = path > light * path.sum()
    reach = np.maximum(corners @ w[~kept].T, 0).max(axis=0, initial=0)
    slack = float(reach @ np.abs(v[~kept]))
    w, v, size, path = w[kept], v[kept], size[kept], path[kept]
    shift = doubt * float(np.linalg.norm(corners[0])) + rounded * np.abs(w) @ np.abs(corners[0])
    groups = _clusters(w / size[:, None], v, path, angle)
    rows = [_group(w[g], v[g], corners, tau, shift[g]) for g in groups]
    both, out, part, zone, value, phi = (np.array(column) for column in zip(*rows, strict=True))
    return Neurons(both, out, part, zone, value, phi, rho, slack, box)


def _clusters(u: Array, v: Array, path: Array, angle: float) -> list[Index]:
    def near(left: Index) -> Flags:
        apart = np.linalg.norm(u[left] - u[left[0]], axis=1)
        return np.asarray((apart < angle) & (v[left] * v[left[0]] > 0))

    return list(greedy_groups(np.argsort(-path, kind="stable"), near))


def _group(
    w: Array, v: Array, corners: Array, tau: float, shift: Array
) -> tuple[Array, float, Array, float, float, float]:
    """Return one row of `Neurons`, P_j the share of |theta_j|^2, which leaves the longest sum."""
    share = np.sqrt((w**2).sum(1) + v**2)
    share /= np.linalg.norm(share)
    both = share @ w
    steep = np.linalg.norm(both[:-1])
    if len(v) == 1:
        return both, float(share @ v), v @ w, tau * float(steep) + float(shift[0]), 0.0, 0.0
    alpha = (w @ both) / (both @ both)
    away = np.abs((w - alpha[:, None] * both) @ corners.T).max(axis=1)
    width = np.linalg.norm(w[:, :-1], axis=1)
    zone = float(((away + tau * width + shift) / alpha).max())
    return both, float(share @ v), v @ w, zone, float(share @ away), float(np.abs(v) @ away)


# --- Convex pieces of the line and of the plane, cut all at once --------------------------------
# Pieces (p, c, d) hold their corners in order, the last one repeated where one has fewer.


def whole(box: float, d: int) -> Array:
    """Return the box [-box, box]^d as one piece: (1, 2, 1) or (1, 4, 2)."""
    return _boxes([[-box] * d], [[box] * d])


def frame(inner: float, outer: float, d: int) -> Array:
    """Return what the box of half width `outer` has beyond that of `inner`: two pieces, or four."""
    a, b = inner, outer
    if d == 1:
        return _boxes([[-b], [a]], [[-a], [b]])
    return _boxes([[-b, -b], [a, -b], [-a, -b], [-a, a]], [[-a, b], [b, b], [a, -a], [a, b]])


def _boxes(low: list[list[float]], high: list[list[float]]) -> Array:
    ends = np.array([low, high]).transpose(1, 0, 2)  # (p, 2, d)
    if ends.shape[2] == 1:
        return ends
    x, y = [0, 1, 1, 0], [0, 0, 1, 1]
    return np.stack([ends[:, x, 0], ends[:, y, 1]], axis=2)


def corners_of(pieces: Array) -> tuple[Array, Index]:
    """Return all corners once, with a 1 at the end (r, d + 1), and of which piece each is (r,)."""
    p, c = pieces.shape[:2]
    fresh = np.ones((p, c), dtype=bool)
    fresh[:, 1:] = (pieces[:, 1:] != pieces[:, :-1]).any(axis=2)
    piece = np.repeat(np.arange(p), c).reshape(p, c)[fresh]
    return np.concatenate([pieces[fresh], np.ones((len(piece), 1))], axis=1), piece


def cut(pieces: Array, values: Array, near: float) -> tuple[Array, Index]:
    """Return what is left of pieces where values >= 0.

    Values (p, c) are affine on each, at its corners.

    Corners of a value above -near stay. Sutherland and Hodgman 1974, all pieces at once.

    Returns:
        The pieces that are left (q, c', d), and of which each is a part (q,).
    """
    inside = values >= -near
    after, behind = np.roll(pieces, -1, axis=1), np.roll(values, -1, axis=1)
    crossed = (values > near) & (behind < -near) | (values < -near) & (behind > near)
    gap = np.where(crossed, values - behind, 1.0)
    between = pieces + (after - pieces) * (np.where(crossed, values / gap, 0.0))[..., None]
    p, c, d = pieces.shape
    corners = np.stack([pieces, between], axis=2).reshape(p, 2 * c, d)
    inside[:, 1:] &= (pieces[:, 1:] != pieces[:, :-1]).any(axis=2)  # a repeated corner stays once
    kept = np.stack([inside, crossed], axis=2).reshape(p, 2 * c)
    left = np.flatnonzero(kept.any(axis=1))
    return _tight(corners[left], kept[left]), left


def _tight(corners: Array, kept: Flags) -> Array:
    """Return the kept corners of each piece first, without repetitions, then the last one again."""
    if not len(corners):
        return corners[:, :1]
    order = np.argsort(~kept, axis=1, kind="stable")
    count = kept.sum(axis=1)
    order = np.take_along_axis(order, np.minimum(np.arange(count.max()), count[:, None] - 1), 1)
    found = np.take_along_axis(corners, order[:, :, None], axis=1)
    if found.shape[2] == 1:
        return np.stack([found.min(axis=1), found.max(axis=1)], axis=1)
    return found


def split(pieces: Array, lines: Array, near: float) -> tuple[Array, Index]:
    """Return pieces cut along lines, one after the other; and of which each is a part (q,).

    Lines are (l, d + 1) for all pieces, or (p, l, d + 1) for pieces with lines of their own. Of a
    piece that a line crosses one half takes its place, the other joins at the end.
    """
    count, (_, corners, d) = len(pieces), pieces.shape
    held, of = pieces.copy(), np.arange(count)
    for line in lines if lines.ndim == 2 else lines.transpose(1, 0, 2):
        own = line if line.ndim == 1 else line[of[:count]]
        values = _line_values(held[:count], own)
        crossed = np.flatnonzero((values.min(axis=1) < -near) & (values.max(axis=1) > near))
        if not len(crossed):
            continue
        parts = [cut(held[crossed], sign * values[crossed], near)[0] for sign in (1.0, -1.0)]
        ends, most = count + len(crossed), max(corners, *(part.shape[1] for part in parts))
        if ends > len(held) or most > corners:
            room = np.empty((2 * ends if ends > len(held) else len(held), most, d))
            room[:count] = _with_corners(held[:count], most)
            held, corners = room, most
            of = np.concatenate([of[:count], np.zeros(len(held) - count, dtype=of.dtype)])
        held[crossed], held[count:ends] = (_with_corners(part, corners) for part in parts)
        of[count:ends] = of[crossed]
        count = ends
    return held[:count], of[:count]


def _line_values(pieces: Array, line: Array) -> Array:
    """Return the values (p, c) of an affine function (d + 1,), or of one a piece (p, d + 1)."""
    if line.ndim == 1:
        return np.asarray(pieces @ line[:-1] + line[-1])
    return np.asarray(np.einsum("pcd,pd->pc", pieces, line[:, :-1]) + line[:, -1:])


def _with_corners(pieces: Array, corners: int) -> Array:
    """Return pieces with their last corners repeated, so that each has so many."""
    more = np.repeat(pieces[:, -1:], corners - pieces.shape[1], axis=1)
    return np.concatenate([pieces, more], axis=1) if corners > pieces.shape[1] else pieces


def stack(parts: list[Array]) -> Array:
    """Return pieces of different numbers of corners as one array."""
    most = max(part.shape[1] for part in parts)
    return np.concatenate([_with_corners(part, most) for part in parts])


@dataclass(frozen=True, eq=False)
class Places:
    """Where points of an explanation can be: convex pieces, on each of which it is affine.

    Attributes:
        pieces: corners (p, c, d), the last one repeated where there are fewer.
        y: label of each piece (p,).
        on: which groups are active there (p, k).
        free: whose slopes are free there (p, k).
        off: how far the value of a group of free slope can be off there (p, k), or of none (p, 0).
        cover: of several outputs e_y - e_c of the margin that each piece is of (p, C); else None.
    """

    pieces: Array
    y: Array
    on: Flags
    free: Flags
    off: Array
    cover: Array | None = None

    def take(self, index: Index | Flags) -> Places:
        """Return some of the pieces, by index or mask."""
        return self.parts(self.pieces[index], index)

    def parts(self, pieces: Array, of: Index | Flags) -> Places:
        """Return parts of these pieces (q, c, d), and of which each is one (q,)."""
        cover = None if self.cover is None else self.cover[of]
        return Places(pieces, self.y[of], self.on[of], self.free[of], self.off[of], cover)

    @classmethod
    def union(cls, some: list[Places]) -> Places:
        """Return the pieces of all of them."""
        rows = zip(*((p.y, p.on, p.free, p.off) for p in some), strict=True)
        y, on, free, off = map(np.concatenate, rows)
        covers = [p.cover for p in some if p.cover is not None]
        cover = np.concatenate(covers) if covers else None
        return cls(stack([p.pieces for p in some]), y, on, free, off, cover)

    def without(self, hole: Hole) -> Places:
        """Return what a hole leaves of these pieces: up to as many parts each as it has walls."""
        near = ROUND * float(np.abs(self.pieces).max(initial=1.0))
        rest, of = self.pieces, np.arange(len(self.pieces))
        parts, owners = [], []
        for wall in hole.walls:
            found, left = cut(rest, -_line_values(rest, wall), near)
            parts.append(found)
            owners.append(of[left])
            rest, left = cut(rest, _line_values(rest, wall), near)
            of = of[left]
        return self.parts(stack(parts), np.concatenate(owners))

    def part_inside(self, hole: Hole) -> Places:
        """Return what lies in a hole or on its walls of these pieces."""
        parts, of = self.pieces, np.arange(len(self.pieces))
        for wall in hole.walls:
            parts, left = cut(parts, _line_values(parts, wall), 0.0)
            of = of[left]
        return self.parts(parts, of)

    def meet(self, hole: Hole, y: float | None = None) -> Flags:
        """Return which pieces (p,) of label y, or of any, may meet a hole: bounding boxes do."""
        above = (self.pieces.max(axis=1) > hole.low).all(axis=1)
        below = (self.pieces.min(axis=1) < hole.high).all(axis=1)
        found: Flags = above & below & ((self.y == y) | (y is None))
        return found


@dataclass(frozen=True, eq=False)
class Hole:
    """An open convex region that holds no point: where every wall is above 0.

    Attributes:
        walls: affine functions (s, d + 1).
        low: lower corner (d,) of a box around it.
        high: upper corner (d,).
    """

    walls: Array
    low: Array
    high: Array

    @classmethod
    def box(cls, low: Array, high: Array) -> Hole:
        """Return the box low < x < high, (d,) each."""
        ways = np.repeat(np.eye(len(low)), 2, axis=0) * np.tile([1.0, -1.0], len(low))[:, None]
        ends = np.stack([-low, high], axis=1).reshape(-1, 1)
        return cls(np.concatenate([ways, ends], axis=1), low, high)

    @classmethod
    def disc(cls, centre: Array, radius: float) -> Hole:
        """Return an interval of the line; in the plane a polygon with its corners on the circle.

        Who has a point in it has one in the disc.
        """
        if len(centre) == 1:
            return cls.box(centre - radius, centre + radius)
        inner = np.cos(np.pi / SIDES) * radius
        turns = 2 * np.pi * (np.arange(SIDES) + 0.5) / SIDES
        ways = -np.stack([np.cos(turns), np.sin(turns)], axis=1)
        walls = np.column_stack([ways, inner - ways @ centre])
        return cls(walls, centre - radius, centre + radius)

    def holds(self, x: Array) -> Flags:
        """Return which places x (r, d) lie in it; those on a wall, up to rounding, do not."""
        near = ROUND * float(np.abs([self.low, self.high]).max())
        return np.asarray((_values(x, self.walls) > near).all(axis=1))


def places(neurons: Neurons, low: float, high: float, where: Array | None = None) -> Places:
    """Return all places with low <= y Phi <= high in the box, or in pieces of it, for both labels.

    The band is widened by as much as Phi can be off, and pieces are cut at both walls of each zone.
    """
    d, box = neurons.w.shape[1] - 1, neurons.box
    near = ROUND * box
    steep = np.linalg.norm(neurons.w[:, :-1], axis=1)
    lines = np.flatnonzero(steep > STEEP * np.linalg.norm(neurons.w, axis=1))
    walls = neurons.w[lines] / steep[lines, None]
    cells, _ = split(whole(box, d) if where is None else where, walls, near)
    on = _values(cells.mean(axis=1), neurons.w) > 0
    touched = np.abs(_nearest(cells, neurons.w)) <= neurons.zone
    band, level = (low, high), ROUND * float(np.abs(neurons.part).sum()) * max(box, 1.0)
    wide = touched @ neurons.off_phi + neurons.slack
    cells, y, of = band_parts(cells, on @ neurons.part, wide, level, band)
    on = on[of]
    zones = np.zeros((len(lines), d + 1))
    zones[:, -1] = neurons.zone[lines] / steep[lines]
    shifted = np.stack([walls + zones, walls - zones], axis=1)[neurons.zone[lines] > 0]
    cells, index = split(cells, shifted.reshape(-1, d + 1), near)
    y, on = y[index], on[index]
    size = np.maximum(neurons.zone, np.linalg.norm(neurons.w, axis=1) * near)
    free = np.abs(_values(cells.mean(axis=1), neurons.w)) <= size * (1 + 1e-9)
    free &= neurons.zone > 0
    plane, wide = on @ neurons.part, free @ neurons.off_phi + neurons.slack
    parts = []
    for label in (1.0, -1.0):
        mine = np.flatnonzero(y == label)
        found, _, of = band_parts(cells[mine], plane[mine], wide[mine], level, band, (label,))
        parts.append((found, mine[of]))
    at = np.concatenate([of for _, of in parts])
    pieces, off = (
        stack([found for found, _ in parts]),
        np.where(free[at], neurons.off_value, 0.0),
    )
    return Places(pieces, y[at], on[at], free[at], off)


def _values(x: Array, w: Array) -> Array:
    return x @ w[:, :-1].T + w[:, -1]


def _nearest(cells: Array, w: Array) -> Array:
    """Return the value nearest to 0 that a corner has, of each cell and group (p, k)."""
    best = np.full((len(cells), len(w)), np.inf)
    for corner in range(cells.shape[1]):
        np.minimum(best, np.abs(_values(cells[:, corner], w)), out=best)
    return best


def band_parts(
    cells: Array, plane: Array, wide: Array, near: float, band: tuple[float, float],
    labels: tuple[float, ...] = (1.0, -1.0),
) -> tuple[Array, Array, Index]:  # fmt: skip
    """Return the parts of cells where y Phi may lie in the band: pieces, labels, owners.

    Args:
        cells: pieces (p, c, d).
        plane: Phi on each as an affine function (p, d + 1).
        wide: how far Phi can be off on each (p,).
        near: values above -near count as 0.
        band: least and largest y Phi.
        labels: the labels y.
    """
    parts, ys, owners = [], [], []
    for label in labels:
        found, of = cells, np.arange(len(cells))
        for side, level in ((1.0, band[0]), (-1.0, min(band[1], FAR))):
            value = label * _line_values(found, plane[of])
            found, left = cut(found, side * (value - level) + wide[of, None], near)
            of = of[left]
        parts.append(found)
        ys.append(np.full(len(found), label))
        owners.append(of)
    return stack(parts), np.concatenate(ys), np.concatenate(owners)
