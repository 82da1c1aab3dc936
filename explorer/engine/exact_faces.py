r"""Where the dual function h of the maximum-margin problem can peak: the faces of an arrangement.

    h(u) = sum_i w_i relu(u . x~_i),   w_i = lam_i y_i,   x~ = (x, 1),   |u| = 1

is linear on each cone cut out by the hyperplanes u . x~_i = 0. On a cone with linear part g its
extremum over the sphere is +-g/|g|, or it lies on the boundary: on a hyperplane (project g onto
it) or on a corner. So finitely many candidates hold the maximum of |h| exactly.

The cones of the plane (d = 1) and of space (d = 2) are listed by walking along each hyperplane,
which also holds for points on a common line, where pairwise tricks lose cones.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

# Two corners closer than this angle are one, and |u . x~|/|x~| below it is a kink. Arbitrary:
# far above rounding (1e-16), far below any gap that a hand-drawn or random set shows.
COINCIDENT = 1e-10
CORNER, INSIDE = -2, -1  # the kinds of Peaks.kink that are no index
_LEVEL = 1e-9  # arbitrary: a slope that counts as none


@dataclass(frozen=True, eq=False)
class Faces:
    """The arrangement of the hyperplanes u . x~_i = 0, i < n, in D = d + 1 dimensions.

    Attributes:
        xt: augmented points (n, D), no two equal.
        unit: the same at length one (n, D).
        cells: on which side of each hyperplane a cone lies (C, n).
        edge_cell: for each piece of a hyperplane (d = 2 only), a cone it bounds (E,).
        edge_kink: the index of that hyperplane (E,).
        corners: unit vectors where the arrangement has a ray (V, D).
        corner_cell: for each, a cone it bounds (V,).
    """

    xt: Array
    unit: Array
    cells: Mask
    edge_cell: Index
    edge_kink: Index
    corners: Array
    corner_cell: Index


@dataclass(frozen=True, eq=False)
class Peaks:
    """Directions at which |h| is extremal on their face, highest first.

    Attributes:
        u: unit directions (M, D).
        h: values of h there (M,), of either sign.
        cell: the cone whose linear part holds at u (M,).
        kink: the hyperplane on which u lies, or INSIDE a cone, or CORNER (M,).
        projector: the projector onto the span of the face (M, D, D).
    """

    u: Array
    h: Array
    cell: Index
    kink: Index
    projector: Array

    def take(self, index: Index | Mask) -> Peaks:
        """The peaks at `index`, in that order."""
        return Peaks(self.u[index], self.h[index], self.cell[index], self.kink[index],
                     self.projector[index])  # fmt: skip


def arrange(x: Array) -> Faces:
    """List the faces for distinct points x (n, d), d in {1, 2}."""
    xt = np.hstack([x, np.ones((len(x), 1))])
    unit = xt / np.linalg.norm(xt, axis=1, keepdims=True)
    return _arrange_plane(xt, unit) if xt.shape[1] == 2 else _arrange_space(xt, unit)


def _cuts(angles: Array) -> Array:
    """Sorted angles modulo 2 pi, coincident ones once."""
    angles = np.sort(np.mod(angles, 2 * np.pi))
    gaps = np.diff(angles, append=angles[:1] + 2 * np.pi)
    return angles[gaps > COINCIDENT]


def _halves(angles: Array) -> Array:
    """The middle of the arc after each of the sorted angles."""
    return angles + np.diff(angles, append=angles[:1] + 2 * np.pi) / 2


def _arrange_plane(xt: Array, unit: Array) -> Faces:
    phase = np.arctan2(unit[:, 1], unit[:, 0])
    cuts = _cuts(np.concatenate([phase + np.pi / 2, phase - np.pi / 2]))
    halves = _halves(cuts)
    cells = np.stack([np.cos(halves), np.sin(halves)], 1) @ unit.T > 0
    none = np.zeros(0, dtype=np.intp)
    corners = np.stack([np.cos(cuts), np.sin(cuts)], 1)
    return Faces(xt, unit, cells, none, none, corners, np.arange(len(cuts)))


def _arrange_space(xt: Array, unit: Array) -> Faces:
    sides, kinks, corners, corner_edge, edges = [], [], [], [], 0
    for i, normal in enumerate(unit):
        p = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
        p /= np.linalg.norm(p)
        q = np.cross(normal, p)
        others = np.delete(unit, i, axis=0)
        phase = np.arctan2(others @ q, others @ p)
        cuts = _cuts(np.concatenate([phase + np.pi / 2, phase - np.pi / 2]))
        halves = _halves(cuts) if len(cuts) else np.zeros(1)
        side = np.stack([np.cos(halves), np.sin(halves)], 1) @ np.stack([p, q]) @ unit.T > 0
        side[:, i] = False
        corner = np.stack([np.cos(cuts), np.sin(cuts)], 1) @ np.stack([p, q])
        # A corner lies on several circles; the lowest of its hyperplanes reports it.
        new = ~(np.abs(corner @ unit[:i].T) < 10 * COINCIDENT).any(axis=1)
        sides.append(side)
        kinks.append(np.full(len(side), i))
        corners.append(corner[new])
        corner_edge.append(edges + np.flatnonzero(new))
        edges += len(side)
    off, kink = np.concatenate(sides), np.concatenate(kinks)
    on = off.copy()
    on[np.arange(len(on)), kink] = True
    both = np.concatenate([off, on])
    _, first, where = np.unique(
        np.packbits(both, axis=1), axis=0, return_index=True, return_inverse=True
    )
    edge_cell = where.reshape(-1)[: len(off)]
    return Faces(
        xt, unit, both[first], edge_cell, kink,
        np.concatenate(corners), edge_cell[np.concatenate(corner_edge)],
    )  # fmt: skip


def evaluate(faces: Faces, weight: Array, u: Array) -> Array:
    """h(u) for directions u (M, D) and weights lam_i y_i (n,) -> (M,)."""
    live = np.flatnonzero(weight)
    # In pieces that stay in cache: a table of all directions would be 200 MB at 200 points.
    return np.concatenate([
        np.maximum(u[start : start + 2048] @ faces.xt[live].T, 0) @ weight[live]
        for start in range(0, max(len(u), 1), 2048)
    ])  # fmt: skip


def peaks(faces: Faces, weight: Array, floor: float) -> Peaks:
    """Every extremum of h on a face with |h| >= floor, for weights lam_i y_i (n,).

    The largest |h| among them is the maximum of |h| over the sphere when that is >= floor.
    """
    live = np.flatnonzero(weight)
    g = faces.cells[:, live] @ (weight[live, None] * faces.xt[live])
    normal = faces.unit[faces.edge_kink]
    along = g[faces.edge_cell]
    along = along - (along * normal).sum(1, keepdims=True) * normal
    high, steep = (np.flatnonzero(np.linalg.norm(a, axis=1) >= floor) for a in (g, along))
    at_corner = (faces.corners * g[faces.corner_cell]).sum(1)
    top = np.flatnonzero(np.abs(at_corner) >= floor)
    # Values below floor cannot be extrema of a face: there |h| is the length of the projection.
    pull = np.concatenate([g[high], along[steep]])
    size = np.linalg.norm(pull, axis=1)
    u = pull / np.maximum(size, 1e-300)[:, None]
    eye = np.eye(g.shape[1])
    normal, corner = normal[steep], faces.corners[top]
    projector = np.concatenate([
        np.broadcast_to(eye, (len(high), *eye.shape)),
        eye - normal[:, :, None] * normal[:, None, :],
    ])  # fmt: skip
    cell = np.concatenate([high, faces.edge_cell[steep]])
    kink = np.concatenate([np.full(len(high), INSIDE), faces.edge_kink[steep]])
    parts = [Peaks(corner, at_corner[top], faces.corner_cell[top], np.full(len(top), CORNER),
                   corner[:, :, None] * corner[:, None, :])]  # fmt: skip
    ahead = evaluate(faces, weight, u)
    behind = ahead - u @ (weight @ faces.xt)  # relu(-z) = relu(z) - z
    for sign, value in ((1.0, ahead), (-1.0, behind)):
        # Inside its own cone u gives exactly the length; elsewhere it is no extremum.
        inside = np.abs(value - sign * size) <= 1e-9 * (1 + size)
        parts.append(
            Peaks(sign * u[inside], value[inside], cell[inside], kink[inside], projector[inside])
        )
    found = Peaks(*(
        np.concatenate([getattr(part, name.name) for part in parts]) for name in fields(Peaks)
    ))  # fmt: skip
    return found.take(np.argsort(-np.abs(found.h), kind="stable"))


def summits(faces: Faces, weight: Array, found: Peaks) -> Peaks:
    """Those of `found` where |h| is locally highest among all directions, not on its face only.

    The derivative of h along t is linear in t between the hyperplanes through u: it is enough to
    look along those hyperplanes and, where there is one only, across it.
    """
    highest = np.ones(len(found.h), dtype=bool)
    on_edge = np.flatnonzero(found.kink >= 0)
    edge, sign = found.kink[on_edge], np.sign(found.h[on_edge])
    pull = (faces.cells[found.cell[on_edge]] * weight) @ faces.xt
    back = sign * (pull * faces.unit[edge]).sum(1)
    lift = sign * weight[edge] * np.linalg.norm(faces.xt[edge], axis=1)
    highest[on_edge] = (back + lift <= _LEVEL) & (-back <= _LEVEL)
    for i in np.flatnonzero(found.kink == CORNER):
        highest[i] = _corner_is_highest(faces, weight, found.u[i], float(np.sign(found.h[i])))
    return found.take(highest)


def _corner_is_highest(faces: Faces, weight: Array, u: Array, sign: float) -> bool:
    side = faces.unit @ u
    kink = np.abs(side) <= 100 * COINCIDENT
    rays = faces.unit[kink]
    if len(u) == 3:
        rays = rays @ np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
    rays = np.concatenate([rays, -rays])
    on = (weight * (side > 0) * ~kink) @ faces.xt
    slope = rays @ on + np.maximum(rays @ faces.xt[kink].T, 0) @ weight[kink]
    return bool((sign * slope <= _LEVEL).all())
