r"""The arrangement of the hyperplanes u . x~_i = 0, on whose faces the dual function h can peak.

    x~ = (x, 1),   h(u) = sum_i lam_i y_i relu(u . x~_i)

The cones of the plane (d = 1) and of space (d = 2) are listed by going along each hyperplane,
which also holds for points on a common line, where pairwise tricks lose cones.

Far from the origin, or close together, all x~ point nearly the same way, and the small angles
between them drown in rounding. So the x~ are turned (h knows inner products alone) until the first
axis points at their centre and the others hold differences only, formed before any rounding; and
the cones are listed after each axis is stretched to size one, which changes no side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from explorer.engine.arrays import Array, Flags
from explorer.engine.progress import Progress, no_progress
from explorer.engine.tables import Rowwise

Index = NDArray[np.intp]

# Two corners closer than this angle are one, and |u . x~|/|x~| below it is a kink. Arbitrary:
# far above rounding (1e-16), far below any gap that a hand-drawn or random set shows.
COINCIDENT = 1e-10
EPS = float(np.finfo(np.float64).eps)
_TURN = 8 * EPS  # the rounding of an angle below 2 pi, of its sine and of its cosine, with room


@dataclass(frozen=True, eq=False)
class Faces:
    """The arrangement of the hyperplanes u . x~_i = 0, i < n, in D = d + 1 dimensions.

    Attributes:
        xt: augmented points (n, D), turned, no two equal.
        unit: the same at length one (n, D).
        turn: its rows are the axes of `xt`: u here is the direction u @ turn of (w, b) (D, D).
        centre: the middle of the points as given (d,).
        apart: the points from there (n, d).
        stretch: the size of each axis (D,); hyperplanes are told apart by xt / stretch.
        blur: by how much the angle of a corner may be off, after stretching; those that count as
            one make it larger.
        cells: on which side of each hyperplane a cone lies (C, n).
        edge_cell: for each piece of a hyperplane (d = 2 only), a cone it bounds (E,).
        edge_kink: the index of that hyperplane (E,).
        corners: unit vectors where the arrangement has a ray (V, D).
        corner_cell: for each, a cone it bounds (V,).
    """

    xt: Array
    unit: Array
    turn: Array
    centre: Array
    apart: Array
    stretch: Array
    blur: float
    cells: Flags
    edge_cell: Index
    edge_kink: Index
    corners: Array
    corner_cell: Index

    @cached_property
    def projectors(self) -> Array:
        """Return the projectors onto the hyperplanes (n, D, D)."""
        return _projectors(self.unit)

    @cached_property
    def onto(self) -> Array:
        """Return the projectors onto the pieces of the hyperplanes (E, D, D)."""
        return self.projectors[self.edge_kink]

    @cached_property
    def flat(self) -> Array:
        """Return the stretched points at length one (n, D)."""
        return directions(self.xt / self.stretch)

    @cached_property
    def spread(self) -> Array:
        """Return the length of each stretched point (n,)."""
        lengths: Array = np.linalg.norm(self.xt / self.stretch, axis=1)
        return lengths


def arrange(x: Array, progress: Progress = no_progress) -> Faces:
    """List the faces for distinct points x (n, d), d in {1, 2}, one hyperplane after the other."""
    xt, turn, centre, apart = turned_points(x)
    stretch = np.abs(xt).max(axis=0)
    stretch[stretch == 0] = 1.0
    flat = directions(xt / stretch)
    listed = _arrange_plane(flat) if x.shape[1] == 1 else _arrange_space(flat, progress)
    found = Faces(xt, directions(xt), turn, centre, apart, stretch, *listed)
    return replace(found, corners=directions(found.corners / stretch))


def turned_points(x: Array) -> tuple[Array, Array, Array, Array]:
    """Return the points (x, 1) on axes of their own, x (n, d): xt (n, D), turn, centre and apart.

    They are those of `Faces`.
    """
    centre = x.mean(axis=0)
    turn = _axes(centre)
    apart = x - centre  # exact where x is far from 0: the other axes hold these alone
    xt = apart @ turn[:, :-1].T
    xt[:, 0] += float(np.hypot(1.0, np.linalg.norm(centre)))
    return xt, turn, centre, apart


def _axes(centre: Array) -> Array:
    """Return orthonormal rows (D, D): the first at (centre, 1), and all of the bias in two."""
    r = float(np.linalg.norm(centre))
    far = float(np.hypot(1.0, r))
    ahead = centre / r if r > 0 else np.eye(len(centre))[0]
    rows = [np.append(centre, 1.0) / far, np.append(ahead, -r) / far]
    if len(centre) == 2:
        rows.append(np.array([-ahead[1], ahead[0], 0.0]))
    elif len(centre) > 2:
        across = np.linalg.svd(ahead[None, :])[2][1:]
        rows.extend(np.append(row, 0.0) for row in across)
    return np.stack(rows)


def affine(faces: Faces, slope: Array, value: Array) -> Array:
    """Return u (M, D), of any length, of slope.(x - centre) + value: slope (M, d), value (M,)."""
    r = float(np.linalg.norm(faces.centre))
    far = float(np.hypot(1.0, r))
    # (slope, value - slope.centre) on the axes, with what cancels taken out by hand
    u = slope @ faces.turn[:, :-1].T
    u[:, 0] = value / far
    u[:, 1] = u[:, 1] * far**2 - r * value / far
    return u


def distinct_points(points: Array, labels: Array) -> tuple[Array, Array, Index]:
    """Return each place once (k, d) with its label (k,), and the place of each point (n,).

    Raises:
        ValueError: where points (n, d) coincide whose labels (n,) differ.
    """
    distinct, first, group = np.unique(points, axis=0, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    clash = np.flatnonzero(labels != labels[first][group])
    if len(clash):
        i, j = sorted((int(clash[0]), int(first[group[clash[0]]])))
        raise ValueError(
            f"points {i} and {j} coincide but carry opposite labels, so no network separates "
            "them. Move or erase one of the two."
        )
    return distinct, labels[first], group


def directions(vectors: Array) -> Array:
    """Return each row at length one; rows of zeros stay."""
    length: Array = np.linalg.norm(vectors, axis=1, keepdims=True)
    length[length == 0] = 1.0
    return vectors / length


def _cuts(phase: Array) -> tuple[Array, float]:
    """Return the angles at right angles to phases, sorted, and how far apart equal ones were.

    Modulo 2 pi; coincident ones stand once.
    """
    angles = np.sort(np.mod(np.concatenate([phase + np.pi / 2, phase - np.pi / 2]), 2 * np.pi))
    gaps = np.diff(angles, append=angles[:1] + 2 * np.pi)
    apart = gaps > COINCIDENT
    return angles[apart], _TURN + float(gaps[~apart].sum())


def _on_circle(angles: Array) -> Array:
    """Return the unit vectors at angles (k,). -> (k, 2)."""
    return np.stack([np.cos(angles), np.sin(angles)], 1)


def _halves(angles: Array) -> Array:
    """Return the middle of the arc after each of the sorted angles."""
    return angles + np.diff(angles, append=angles[:1] + 2 * np.pi) / 2


# The last fields of `Faces`; its corners as they are before stretching.
_Listed = tuple[float, Flags, Index, Index, Array, Index]


def _arrange_plane(unit: Array) -> _Listed:
    phase = np.arctan2(unit[:, 1], unit[:, 0])
    cuts, blur = _cuts(phase)
    cells = _on_circle(_halves(cuts)) @ unit.T > 0
    none = np.zeros(0, dtype=np.intp)
    return blur, cells, none, none, _on_circle(cuts), np.arange(len(cuts))


def _arrange_space(unit: Array, progress: Progress) -> _Listed:
    sides, kinks, corners, corner_edge, edges, blur = [], [], [], [], 0, 0.0
    p = directions(np.cross(unit, np.eye(3)[np.argmin(np.abs(unit), axis=1)]))
    planes = np.stack([p, np.cross(unit, p)], axis=1)
    for i, plane in enumerate(planes):
        progress(i / len(unit))
        along, across = plane @ np.delete(unit, i, axis=0).T
        phase = np.arctan2(across, along)
        cuts, merged = _cuts(phase)
        blur = max(blur, merged)
        halves = _halves(cuts) if len(cuts) else np.zeros(1)
        side = _on_circle(halves) @ plane @ unit.T > 0
        side[:, i] = False
        corner = _on_circle(cuts) @ plane
        # A corner lies on several circles; the lowest of its hyperplanes reports it.
        new = ~(np.abs(corner @ unit[:i].T) < 10 * COINCIDENT).any(axis=1)
        sides.append(side)
        kinks.append(np.full(len(side), i))
        corners.append(corner[new])
        corner_edge.append(edges + np.flatnonzero(new))
        edges += len(side)
    progress(1.0)
    off, kink = np.concatenate(sides), np.concatenate(kinks)
    on = off.copy()
    on[np.arange(len(on)), kink] = True
    both = np.concatenate([off, on])
    progress(1.0)
    _, first, where = np.unique(
        np.packbits(both, axis=1), axis=0, return_index=True, return_inverse=True
    )
    progress(1.0)
    edge_cell = where.reshape(-1)[: len(off)]
    corner_cell = edge_cell[np.concatenate(corner_edge)]
    return blur, both[first], edge_cell, kink, np.concatenate(corners), corner_cell


# --- Where the dual function h of the maximum-margin problem can peak: the faces of an arrangement
# h(u) = sum_i w_i relu(u . x~_i),   w_i = lam_i y_i,   x~ = (x, 1),   |u| = 1
#
# is linear on each cone cut out by the hyperplanes u . x~_i = 0. On a cone with linear part g its
# extremum over the sphere is +-g/|g|, or it lies on the boundary: on a hyperplane (project g onto
# it) or on a corner. So finitely many candidates hold the maximum of |h| exactly.

CORNER, INSIDE = -2, -1  # the kinds of Peaks.kink that are no index
_LEVEL = 1e-9  # arbitrary: a slope that counts as none
_LOW = 1e-5  # arbitrary: peaks that much below 1 stay below 1 whatever the rounding


@dataclass(frozen=True, eq=False)
class Peaks(Rowwise):
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


def evaluate(faces: Faces, weight: Array, u: Array) -> Array:
    """Return h(u) for directions u (M, D) and weights lam_i y_i (n,) -> (M,)."""
    live = np.flatnonzero(weight)
    # In pieces that stay in cache: a table of all directions would be 200 MB at 200 points.
    return np.concatenate([
        np.maximum(u[start : start + 2048] @ faces.xt[live].T, 0) @ weight[live]
        for start in range(0, max(len(u), 1), 2048)
    ])  # fmt: skip


def rounding(faces: Faces, weight: Array, u: Array) -> Array:
    """Return by how much h(u) may be off its computed value, for directions u (M, D) -> (M,).

    Half an eps of what is summed for each of n + D additions, and as much for each of the steps
    that make a coordinate of a point; a corner lies within the angle `blur` of u.
    """
    mass = np.abs(weight)
    share = (len(weight) + 2 * u.shape[1] + 4) * EPS / 2
    spread = faces.spread @ mass
    blurred = faces.blur * spread * np.linalg.norm(u * faces.stretch, axis=1)
    bound: Array = share * (np.abs(u) @ (mass @ np.abs(faces.xt))) + blurred
    return bound


def _projectors(unit: Array) -> Array:
    """Return the projectors 1 - n n^T (M, D, D), without 1 - n^2, which loses digits."""
    square = unit**2
    made: Array = -unit[:, :, None] * unit[:, None, :]
    index = np.arange(unit.shape[1])
    made[:, index, index] = square @ (1 - np.eye(unit.shape[1]))
    return made


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Where h may be extremal: `pull` is its linear part on the face, `u` a direction there."""

    u: Array
    h: Array
    size: Array
    cell: Index
    kink: Index


def _candidates(faces: Faces, weight: Array, floor: float) -> _Candidates:
    """Return all of cones, hyperplanes and corners where |h| may reach floor, and h there."""
    live = np.flatnonzero(weight)
    g = faces.cells[:, live] @ (weight[live, None] * faces.xt[live])
    onto = faces.onto
    along = np.einsum("eij,ej->ei", onto, g[faces.edge_cell])
    high, steep = (np.flatnonzero(np.linalg.norm(a, axis=1) >= floor) for a in (g, along))
    at_corner = (faces.corners * g[faces.corner_cell]).sum(1)
    top = np.flatnonzero(np.abs(at_corner) >= floor)
    # Values below floor cannot be extrema of a face: there |h| is the length of the projection.
    # Projected once more: g reaches 1e7, and a trace of it lifts u off its hyperplane.
    pull = np.concatenate([g[high], np.einsum("eij,ej->ei", onto[steep], along[steep])])
    size = np.linalg.norm(pull, axis=1)
    u = pull / np.maximum(size, 1e-300)[:, None]
    ahead = evaluate(faces, weight, u)
    behind = ahead - u @ (weight @ faces.xt)  # relu(-z) = relu(z) - z
    cell = np.concatenate([high, faces.edge_cell[steep]])
    kink = np.concatenate([np.full(len(high), INSIDE), faces.edge_kink[steep]])
    corner = np.full(len(top), CORNER)
    return _Candidates(
        np.concatenate([faces.corners[top], u, -u]),
        np.concatenate([at_corner[top], ahead, behind]),
        np.concatenate([at_corner[top], size, -size]),
        np.concatenate([faces.corner_cell[top], cell, cell]),
        np.concatenate([corner, kink, kink]),
    )


def height(faces: Faces, weight: Array) -> float:
    """Return what no |h| over the sphere is above, at least 1, for weights lam_i y_i (n,).

    Every face is looked at, and each value counts with the rounding that it may carry. That a
    direction is off by the rounding of its linear part matters in second order only.
    """
    made = _candidates(faces, weight, 1 - _LOW)
    h = evaluate(faces, weight, made.u)
    return float((np.abs(h) + rounding(faces, weight, made.u)).max(initial=1.0))


def peaks(faces: Faces, weight: Array, floor: float) -> Peaks:
    """Return every extremum of h on a face with |h| >= floor, for weights lam_i y_i (n,).

    The largest |h| among them is the maximum of |h| over the sphere when that is >= floor.
    """
    made = _candidates(faces, weight, floor)
    # Inside its own cone u gives exactly the length; elsewhere it is no extremum.
    off = np.abs(made.h - made.size) - rounding(faces, weight, made.u)
    at = np.flatnonzero(off <= 1e-9 * (1 + np.abs(made.size)))
    at = at[np.argsort(-np.abs(made.h[at]), kind="stable")]
    u, kink = made.u[at], made.kink[at]
    projector = np.broadcast_to(np.eye(u.shape[1]), (len(u), *[u.shape[1]] * 2)).copy()
    projector[kink >= 0] = faces.projectors[kink[kink >= 0]]
    corner = u[kink == CORNER]
    projector[kink == CORNER] = corner[:, :, None] * corner[:, None, :]
    return Peaks(u, made.h[at], made.cell[at], kink, projector)


def summits(faces: Faces, weight: Array, found: Peaks) -> Peaks:
    """Return those of `found` where |h| is locally highest among all directions.

    The derivative of h along t is linear in t between the hyperplanes through u: it is enough to
    look along those hyperplanes and, where there is one only, across it.
    """
    highest = np.ones(len(found.h), dtype=bool)
    on_edge = np.flatnonzero(found.kink >= 0)
    edge, signs = found.kink[on_edge], np.sign(found.h[on_edge])
    pull = (faces.cells[found.cell[on_edge]] * weight) @ faces.xt
    back = signs * (pull * faces.unit[edge]).sum(1)
    lift = signs * weight[edge] * np.linalg.norm(faces.xt[edge], axis=1)
    level = _level(faces, weight)
    highest[on_edge] = (back + lift <= level) & (-back <= level)
    at = np.flatnonzero(found.kink == CORNER)
    beside = directions(found.u[at] * faces.stretch) @ faces.flat.T
    for i, side in zip(at, beside, strict=True):
        sign = float(np.sign(found.h[i]))
        highest[i] = _corner_is_highest(faces, weight, found.u[i], side, sign, level)
    return found.take(highest)


def _level(faces: Faces, weight: Array) -> float:
    """Return a slope of h that counts as none: more where more is summed."""
    return _LEVEL + 16 * EPS * float(np.abs(weight) @ np.linalg.norm(faces.xt, axis=1))


def _corner_is_highest(
    faces: Faces, weight: Array, u: Array, side: Array, sign: float, level: float
) -> bool:
    """Return whether |h| falls from corner u on; `side` (n,): u . x~ of the points, stretched."""
    kink = np.abs(side) <= 100 * COINCIDENT
    rays = faces.unit[kink]
    if len(u) == 3:
        rays = rays @ np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
    rays = np.concatenate([rays, -rays])
    on = (weight * (side > 0) * ~kink) @ faces.xt
    slope = rays @ on + np.maximum(rays @ faces.xt[kink].T, 0) @ weight[kink]
    return bool((sign * slope <= level).all())
