r"""The cell of a point: where no ReLU switches, so that Phi and its gradient are affine in x.

With the slopes s_l of all layers fixed, the values before the ReLUs move along a line x + t u as

    z_l(x + t u) = z_l(x) + t (J_l u),    J_1 = W_1,    J_l = W_l diag(s_{l-1}) J_{l-1},

as long as no neuron leaves its side: z >= 0 where s = 1, z <= 0 where s = 0, and z as it is where
the slope is a free one, 0 < s < 1 (a kink). This closed polytope is the cell, at any depth. On it
Phi(theta; .) and grad_theta Phi(theta; .) are affine in x: all that splitting and merging rest on
(Refael et al., "No Prior, No Leakage", lemmas 2 to 4, restated; see the paper for the original).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.explanations.places import cut, whole
from explorer.engine.gradients import forward_signals, hard
from explorer.engine.network import Network, one_output

KINK = 1e-6  # |z| up to this share of |w~| |a| is a kink; measured: exactly built networks
TIED = 1e-6  # arbitrary: a margin over another class so little above 1 is on the margin, too
_STILL = 1e-9  # arbitrary: |J u| up to this share of |J| |u| is rounding
_FREE = 1e-6  # arbitrary: singular values below this share of the largest are zeros


@dataclass(frozen=True, eq=False)
class Cell:
    """The cell of one point, one row per hidden neuron of all layers, first layer first.

    With several outputs Phi is the difference of the two that the point's margin is of, Phi_y -
    Phi_c, and the point stays clear of the other classes c' as well: Phi_y - Phi_c' >= 1.

    Attributes:
        z: values before the ReLU (K,).
        jacobian: dz/dx on the cell (K, d).
        slopes: (K,) in [0, 1].
        gradient: grad_x Phi on the cell (d,).
        sizes: |w~| |a| of each neuron (K,), the unit in which z is counted as a kink.
        widths: hidden widths, to tell the layer of a row.
        spare: by how much the margin over each other class exceeds 1 (r,).
        spare_gradients: how that changes with x on the cell (r, d).
    """

    z: Tensor
    jacobian: Tensor
    slopes: Tensor
    gradient: Tensor
    sizes: Tensor
    widths: tuple[int, ...]
    spare: Tensor
    spare_gradients: Tensor

    @property
    def kinks(self) -> Tensor:
        """Return rows whose slope is strictly between 0 and 1 and that move with x at all (r,)."""
        free = (self.slopes > 1e-9) & (self.slopes < 1 - 1e-9)
        rows: Tensor = (free & (self.jacobian.norm(dim=1) > 0)).nonzero().squeeze(1)
        return rows

    def neuron(self, row: int) -> tuple[int, int]:
        """Return (layer, index) of a row, both from 0."""
        for layer, width in enumerate(self.widths):
            if row < width:
                return layer, row
            row -= width
        raise ValueError(f"no neuron at row {row} beyond the widths {self.widths}")


@dataclass(frozen=True, eq=False)
class Extent:
    """How far a line through a point stays in its cell.

    Attributes:
        plus: largest a >= 0 with x + a u in the closed cell; infinite where nothing stops it.
        minus: largest b >= 0 with x - b u in it.
        walls_plus: (layer, neuron) of all that switch at x + plus u; none at infinity, nor where
            another class stops it.
        walls_minus: the same at x - minus u.
        kinks: how many free slopes the line would break: with any, both extents are 0.
    """

    plus: float
    minus: float
    walls_plus: tuple[tuple[int, int], ...]
    walls_minus: tuple[tuple[int, int], ...]
    kinks: int

    def within_box(self, x: Tensor, u: Tensor, low: float, high: float) -> Extent:
        """Return the extent within the box [low, high]^d as well: what an attacker's prior leaves.

        A point outside the box has no extent in it: 0 both ways.
        """
        if not low < high:
            raise ValueError(f"a box needs low < high; got low={low}, high={high}. Try 0 and 1.")
        if bool(((x < low) | (x > high)).any()):
            return Extent(0.0, 0.0, (), (), self.kinks)
        moving = u.abs() > _STILL * u.norm()
        up = torch.where(u > 0, high - x, x - low)[moving] / u.abs()[moving]
        down = torch.where(u > 0, x - low, high - x)[moving] / u.abs()[moving]
        plus, minus = (float(v.min()) if len(v) else math.inf for v in (up, down))
        return Extent(
            min(self.plus, plus), min(self.minus, minus),
            self.walls_plus if self.plus <= plus else (),
            self.walls_minus if self.minus <= minus else (), self.kinks,
        )  # fmt: skip


def slopes_at(net: Network, x: Tensor) -> tuple[Tensor, ...]:
    """Return torch's own slopes, 1 where z > 0 and else 0. x (m, d) -> (m, k_l) of each layer."""
    return tuple(forward_signals(net, x, hard)[2])


def cell_of(
    net: Network, x: Tensor, slopes: Sequence[Tensor] | None = None, cover: Tensor | None = None
) -> Cell:
    """Return the cell of a point x (d,) with given slopes, (k_l,) of each layer, or torch's own.

    `cover` (C,): of which margin the point is, +-1 of one output, e_y - e_c of several.

    Raises:
        ValueError: for a point of another dimension, no hidden layer, or no covector where there
            are several outputs.
    """
    if cover is None:
        one_output(net)
        cover = torch.ones(1, dtype=x.dtype)
    if x.shape != (net.d,):
        raise ValueError(f"a point of this network is ({net.d},); got {tuple(x.shape)}")
    if net.depth < 2:
        raise ValueError("a network without a hidden layer has no cells; got one layer")
    given = hard if slopes is None else [s[None] for s in slopes]
    inputs, values, used = forward_signals(net, x[None], given)
    jacobian = net.weights[0]
    rows, sizes = [], []
    for layer, w in enumerate(net.blocks[:-1]):
        if layer:
            jacobian = net.weights[layer] @ (used[layer - 1][0][:, None] * jacobian)
        rows.append(jacobian)
        sizes.append(w.norm(dim=1) * inputs[layer][0].norm())
    outputs = net.weights[-1] @ (used[-1][0][:, None] * jacobian)
    others = (cover > 0).to(cover) - torch.eye(len(cover), dtype=cover.dtype)[cover == 0]
    return Cell(
        torch.cat([v[0] for v in values[:-1]]), torch.cat(rows),
        torch.cat([s[0] for s in used]), cover @ outputs, torch.cat(sizes), net.widths,
        others @ values[-1][0] - 1, others @ outputs,
    )  # fmt: skip


def cell_extent(
    net: Network, x: Tensor, u: Tensor, slopes: Sequence[Tensor] | None = None, tau: float = KINK,
    cover: Tensor | None = None,
) -> Extent:  # fmt: skip
    """Return how far x + a u and x - b u stay in the closed cell of x, and clear of other classes.

    a = min_j { -z_j / (J_j u) : z_j (J_j u) < 0 }, likewise b; both 0 where the line would leave
    a kink of free slope. A neuron within `tau` of its line whose slope is 0 or 1 counts as on it.

    Args:
        net: two layers or more.
        x: a point (d,).
        u: a direction (d,), not zero; the extents are counted in its length.
        slopes: the slopes of x, one (k_l,) per layer; None takes torch's own, and counts a neuron
            within `tau` of its line as a kink of free slope.
        tau: relative distance of a kink.
        cover: of which margin the point is (C,); see `cell_of`.

    Raises:
        ValueError: for a direction of another dimension, or a zero one.
    """
    if u.shape != x.shape or not float(u.norm()) > 0:
        raise ValueError(
            f"expected a direction {tuple(x.shape)} that is not zero; "
            f"got {tuple(u.shape)} of norm {float(u.norm()):g}"
        )
    cell = cell_of(net, x, slopes, cover)
    speed, passing = (_speeds(rows, u) for rows in (cell.jacobian, cell.spare_gradients))
    on = cell.z.abs() <= tau * cell.sizes
    free = torch.zeros_like(on)
    free[cell.kinks] = True
    if slopes is None:
        free = on & (cell.sizes > 0)
    broken = (free & (speed != 0)).nonzero().flatten().tolist()
    if broken:
        rows = tuple(cell.neuron(row) for row in broken)
        return Extent(0.0, 0.0, rows, rows, len(broken))
    side = torch.where(cell.slopes > 0.5, 1.0, -1.0).to(speed)  # the sign z must keep
    depth = torch.where(on, torch.zeros_like(side), (side * cell.z).clamp_min(0))
    found: list[tuple[float, tuple[tuple[int, int], ...]]] = []
    for sign in (1.0, -1.0):
        leaving = (sign * side * speed < 0) & ~free
        limits = torch.where(leaving, depth / speed.abs(), torch.inf)
        ends = (cell.spare.clamp_min(0) / passing.abs())[sign * passing < 0]
        limit = min([float(limits.min()), *ends.tolist()])
        near = limits <= limit * (1 + _STILL)
        rows = tuple(cell.neuron(row) for row in near.nonzero().flatten().tolist())
        found.append((limit, rows if math.isfinite(limit) else ()))
    (plus, walls_plus), (minus, walls_minus) = found
    return Extent(plus, minus, walls_plus, walls_minus, 0)


def _speeds(rows: Tensor, u: Tensor) -> Tensor:
    """Return rows (r, d) times u, 0 where that is rounding. -> (r,)."""
    speed = rows @ u
    still = speed.abs() <= _STILL * rows.norm(dim=1) * u.norm()
    return torch.where(still, torch.zeros_like(speed), speed)


def null_space(rows: Tensor) -> Tensor:
    """Return orthonormal directions orthogonal to all rows (r, d) -> (d, f), f may be 0."""
    if not len(rows):
        return torch.eye(rows.shape[1], dtype=rows.dtype)
    _, values, right = torch.linalg.svd(rows, full_matrices=True)
    rank = int((values > _FREE * values.max().clamp_min(1e-300)).sum()) if len(values) else 0
    free: Tensor = right[rank:].T
    return free


def level_directions(
    net: Network, x: Tensor, slopes: Sequence[Tensor] | None = None, margin: bool = True,
    cover: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return directions to split x along: orthogonal to grad_x Phi and every kink's normal.

    Without `margin` only the kinks count: stationarity survives, the margin does not. In two
    dimensions this is the level line through x, or nothing; in a cell where Phi is constant, all.
    With several outputs orthogonal to the gradients of the margins over classes that tie, too.

    x (d,) -> (d, f) with orthonormal columns; f = 0 is a pinned point.
    """
    cell = cell_of(net, x, slopes, cover)
    normals = cell.jacobian[cell.kinks]
    if margin:
        reach = float(cell.sizes.max()) * float(net.weights[-1].abs().max()) if net.depth else 0.0
        rows = torch.cat([cell.gradient[None], cell.spare_gradients[cell.spare <= TIED]])
        normals = torch.cat([normals, rows[rows.norm(dim=1) > _STILL * max(reach, 1e-300)]])
    return null_space(normals / normals.norm(dim=1, keepdim=True))


# --- The cell of a point in view: a polygon on the plane, an interval on the line ---------------

_THROUGH = 1e-9  # arbitrary: a wall that runs through the point itself does not cut it off


def cell_corners(cell: Cell, x: Tensor, extent: float) -> Array:
    """Return the corners of the closed cell of x within [-extent, extent]^d, in order. -> (c, d).

    On the plane they are those of a polygon, and c may be 0; on the line the two ends. Half-spaces
    are cut off one by one. A kink of free slope holds the point on its line, which is then the
    cell: two corners, or one.
    """
    piece, at = whole(extent, len(x)), x.detach().numpy()
    kinks = set(cell.kinks.tolist())
    normals = torch.cat([cell.jacobian, cell.spare_gradients]).numpy()
    values = torch.cat([cell.z, cell.spare.clamp_min(0)]).tolist()
    sides = torch.where(cell.slopes > 0.5, 1.0, -1.0).tolist() + [1.0] * len(cell.spare)
    for row, (normal, z, side) in enumerate(zip(normals, values, sides, strict=True)):
        size = float(np.linalg.norm(normal))
        if size == 0:
            continue
        for sign in (side, -side) if row in kinks else (side,):
            piece = cut(piece, sign * (z + (piece - at) @ normal) / size, _THROUGH)[0]
    return piece.reshape(-1, len(x))


def segment(x: Tensor, u: Tensor, minus: float, plus: float, extent: float) -> Array:
    """Return x - minus u to x + plus u, each way cut where the line leaves the view. -> (2, d)."""
    reach = 3 * extent  # past every corner of the view
    ends = torch.stack([x - min(minus, reach) * u, x + min(plus, reach) * u])
    ends_in_view: Array = ends.detach().numpy()
    return ends_in_view
