r"""The arrangement of the hyperplanes u . x~_i = 0, on whose faces the dual function h can peak.

    x~ = (x, 1),   h(u) = sum_i lam_i y_i relu(u . x~_i)

The cones of the plane (d = 1) and of space (d = 2) are listed by walking along each hyperplane,
which also holds for points on a common line, where pairwise tricks lose cones.

Far from the origin, or close together, all x~ point nearly the same way, and the small angles
between them drown in rounding. So the x~ are turned (h knows inner products alone) until the first
axis points at their centre and the others hold differences only, formed before any rounding; and
the cones are listed after each axis is stretched to size one, which changes no side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

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
    cells: Mask
    edge_cell: Index
    edge_kink: Index
    corners: Array
    corner_cell: Index


def arrange(x: Array) -> Faces:
    """List the faces for distinct points x (n, d), d in {1, 2}."""
    centre = x.mean(axis=0)
    turn = _axes(centre)
    far = float(np.hypot(1.0, np.linalg.norm(centre)))
    apart = x - centre  # exact where x is far from 0: the other axes hold these alone
    xt = apart @ turn[:, :-1].T
    xt[:, 0] += far
    stretch = np.abs(xt).max(axis=0)
    stretch[stretch == 0] = 1.0
    flat = directions(xt / stretch)
    listed = _arrange_plane(flat) if x.shape[1] == 1 else _arrange_space(flat)
    corners = directions(listed.corners / stretch)
    return Faces(
        xt, directions(xt), turn, centre, apart, stretch, listed.blur, listed.cells,
        listed.edge_cell, listed.edge_kink, corners, listed.corner_cell,
    )  # fmt: skip


def _axes(centre: Array) -> Array:
    """Orthonormal rows (D, D); the first points at (centre, 1), and all of the bias is in two."""
    r = float(np.linalg.norm(centre))
    far = float(np.hypot(1.0, r))
    ahead = centre / r if r > 0 else np.eye(len(centre))[0]
    rows = [np.append(centre, 1.0) / far, np.append(ahead, -r) / far]
    if len(centre) == 2:
        rows.append(np.array([-ahead[1], ahead[0], 0.0]))
    return np.stack(rows)


def affine(faces: Faces, slope: Array, value: Array) -> Array:
    """The u (M, D), not of length one, of slope.(x - centre) + value: slope (M, d), value (M,)."""
    r = float(np.linalg.norm(faces.centre))
    far = float(np.hypot(1.0, r))
    # (slope, value - slope.centre) on the axes, with what cancels taken out by hand
    u = slope @ faces.turn[:, :-1].T
    u[:, 0] = value / far
    u[:, 1] = u[:, 1] * far**2 - r * value / far
    return u


def directions(vectors: Array) -> Array:
    """Each row at length one."""
    unit: Array = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _cuts(angles: Array) -> tuple[Array, float]:
    """Sorted angles modulo 2 pi, coincident ones once, and how far apart those were."""
    angles = np.sort(np.mod(angles, 2 * np.pi))
    gaps = np.diff(angles, append=angles[:1] + 2 * np.pi)
    apart = gaps > COINCIDENT
    return angles[apart], _TURN + float(gaps[~apart].sum())


def _halves(angles: Array) -> Array:
    """The middle of the arc after each of the sorted angles."""
    return angles + np.diff(angles, append=angles[:1] + 2 * np.pi) / 2


@dataclass(frozen=True, eq=False)
class _Listed:
    """The part of `Faces` that stretching leaves as it is, and the corners before it."""

    blur: float
    cells: Mask
    edge_cell: Index
    edge_kink: Index
    corners: Array
    corner_cell: Index


def _arrange_plane(unit: Array) -> _Listed:
    phase = np.arctan2(unit[:, 1], unit[:, 0])
    cuts, blur = _cuts(np.concatenate([phase + np.pi / 2, phase - np.pi / 2]))
    halves = _halves(cuts)
    cells = np.stack([np.cos(halves), np.sin(halves)], 1) @ unit.T > 0
    none = np.zeros(0, dtype=np.intp)
    corners = np.stack([np.cos(cuts), np.sin(cuts)], 1)
    return _Listed(blur, cells, none, none, corners, np.arange(len(cuts)))


def _arrange_space(unit: Array) -> _Listed:
    sides, kinks, corners, corner_edge, edges, blur = [], [], [], [], 0, 0.0
    for i, normal in enumerate(unit):
        p = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
        p /= np.linalg.norm(p)
        q = np.cross(normal, p)
        others = np.delete(unit, i, axis=0)
        phase = np.arctan2(others @ q, others @ p)
        cuts, merged = _cuts(np.concatenate([phase + np.pi / 2, phase - np.pi / 2]))
        blur = max(blur, merged)
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
    return _Listed(
        blur, both[first], edge_cell, kink,
        np.concatenate(corners), edge_cell[np.concatenate(corner_edge)],
    )  # fmt: skip
