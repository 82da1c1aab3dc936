r"""Weighted training sets that explain the same weights: split, merge, residual, predicted jumps.

An explanation of theta (at margin 1) is a set {(x_i, y_i, lam_i)} with lam_i >= 0 and

    theta = sum_i lam_i y_i grad_theta Phi(theta; x_i),   y_i Phi(theta; x_i) = 1 where lam_i > 0.

On one cell (`cells`) grad Phi is affine in x. So a point may be replaced by two of its cell,

    x -> x + a u, x - b u   with multipliers   lam b / (a + b), lam a / (a + b),

and two points of one label and one cell by their centroid: the sum does not change. The margin
holds where <grad_x Phi, u> = 0, and else errs by a <grad_x Phi, u>. Beyond the wall of a neuron j
the sum jumps by lam |v_j| |(x, 1)|. With several outputs a point has a multiplier for each other
class c, and counts as one point for each: Phi_y - Phi_c takes the place of y Phi, and both halves
stay where Phi_y - Phi_c' >= 1 for the others. "No Prior, No Leakage" (Refael et al.), lemmas
2 to 4, restated, see the paper for the original; walls, kinks and jumps are derived in
docs/explanations.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from explorer.engine.attacks.target import Target
from explorer.engine.certificate import SLACK_PRICE, TAU_TRAINED
from explorer.engine.even_multipliers import EXACT, even_multipliers
from explorer.engine.explanations.cells import (
    KINK,
    Extent,
    cell_extent,
    cell_of,
    level_directions,
    null_space,
    slopes_at,
)
from explorer.engine.gradients import gradient
from explorer.engine.gradients import residual as residual_vector
from explorer.engine.margin import q_of
from explorer.engine.merging import MERGE_ANGLE
from explorer.engine.multipliers import fit_multipliers
from explorer.engine.network import Network, one_output, phi_all, scaled_network
from explorer.engine.tables import Rowwise

USED = 1e-6  # arbitrary: multipliers below this share of their sum are not points of an explanation
TRAINED_MARGIN = 0.05  # arbitrary: |y Phi - 1| up to this is on the margin of trained weights


@dataclass(frozen=True, eq=False)
class Explanation(Rowwise):
    """A weighted training set with the slopes of its gradients.

    Attributes:
        x: points (n, d).
        y: labels (n,); see `Dataset`.
        lam: multipliers (n,), not negative.
        slopes: one (n, k_l) per hidden layer, in [0, 1]: the cell that each point counts to.
        origin: (n,) index of the point each one descends from; -1 for none.
        cover: covector of each point's margin (n, C): y of one output, e_y - e_c of several.
    """

    x: Tensor
    y: Tensor
    lam: Tensor
    slopes: tuple[Tensor, ...]
    origin: Tensor
    cover: Tensor

    def __post_init__(self) -> None:
        """Refuse shapes that do not match, and negative multipliers."""
        n = len(self.x)
        shapes = [
            self.y.shape,
            self.lam.shape,
            self.origin.shape,
            *(s.shape[:1] for s in (self.cover, *self.slopes)),
        ]
        if self.x.ndim != 2 or any(shape != (n,) for shape in shapes):
            raise ValueError(
                f"expected x (n, d), y, lam and origin (n,), cover (n, C) and slopes (n, k_l); "
                f"got {tuple(self.x.shape)} and {[tuple(s) for s in shapes]}"
            )
        if n and not bool((self.lam >= 0).all() & torch.isfinite(self.lam).all()):
            raise ValueError(
                f"multipliers must be finite and not negative; got {float(self.lam.min()):g}"
            )

    @property
    def n(self) -> int:
        """Return number of points."""
        return len(self.x)

    @property
    def mass(self) -> float:
        """Return the sum of the multipliers."""
        return float(self.lam.sum())

    def at(self, i: int) -> tuple[Tensor, ...]:
        """Return slopes of point i, one (k_l,) per hidden layer."""
        if not 0 <= i < self.n:
            raise ValueError(f"no point {i}; the explanation holds points 0 to {self.n - 1}")
        return tuple(s[i] for s in self.slopes)


def explanation_of(net: Network, x: Tensor, y: Tensor, tau: float = KINK) -> Explanation:
    """Return the explanation by given points: multipliers and slopes of least residual.

    Where many multipliers explain the weights exactly, the most even ones (`even_multipliers`). Two
    layers: the slope of a neuron at a point is the mean over its columns, which attains the fit's
    residual. Deeper, gradients are products of slopes, and where one point has kinks in several
    layers the residual may be above the fit's; `residual` tells.

    Args:
        net: a homogeneous network at margin 1.
        x: points (n, d).
        y: labels (n,).
        tau: relative distance below which a slope is free; `certificate.TAU_TRAINED` for trained
            weights.

    Raises:
        ValueError: where no multiplier is positive: these points explain nothing.
    """
    return fitted_explanation(net, x, y, tau)[0]


def training_explanation(target: Target, x: Tensor, y: Tensor) -> tuple[Network, Explanation, bool]:
    """Return the explanation by the points trained on: network, explanation, whether it is exact.

    Exact where it can be. Else the network's parallel neurons are merged, points up to
    `TRAINED_MARGIN` above the least margin are taken, and kinks are as near as after training.

    Args:
        target: the weights.
        x: points (n, d).
        y: labels (n,).

    Raises:
        ValueError: as of `explanation_of`.
    """
    net = target.net.to(dtype=torch.float64, device="cpu")
    x, y = x.detach().cpu().double(), y.detach().cpu().double()
    e = explanation_of(net, x, y)
    if residual(net, e) < EXACT:
        return net, e, True
    net = target.merged(MERGE_ANGLE).to(dtype=torch.float64, device="cpu")
    low = float(q_of(net, x, y).min())
    net = scaled_network(net, low ** (-1 / net.order)) if low > 0 else net
    near = q_of(net, x, y) <= 1 + TRAINED_MARGIN  # a trained margin is never quite level
    e = explanation_of(net, x[near], y[near], TAU_TRAINED)
    e = replace(e, origin=near.nonzero().squeeze(1)[e.origin])  # in the whole set
    if net.depth > 2:
        e = replace(e, slopes=slopes_at(net, e.x))
    return net, e, False


def fitted_explanation(
    net: Network, x: Tensor, y: Tensor, tau: float = KINK
) -> tuple[Explanation, Tensor]:
    """Return `explanation_of`, and the gradients (n', P) of margins that attain the residual."""
    net = net.to(dtype=torch.float64)
    x, y = x.detach().cpu().double(), y.detach().cpu().double()
    # Multipliers are seldom unique: points off the margin pay, as in `certificate.certify`.
    price = SLACK_PRICE * net.order * (q_of(net, x, y) - 1).clamp_min(0)
    fit = fit_multipliers(net, x, y, tau, price=price)
    fit = even_multipliers(net, x, y, tau, fit, price)
    key = torch.cat([fit.point[:, None].to(x), fit.cover], dim=1)
    rows, of = key.unique(dim=0, return_inverse=True)
    lam = x.new_zeros(len(rows)).index_add(0, of, fit.weight)
    used = lam > USED * lam.sum()
    if not bool(used.any()):
        raise ValueError("these points explain no part of the weights: no multiplier is positive")

    def means(columns: Tensor) -> Tensor:  # of each point, by their weights
        total = columns.new_zeros(len(rows), columns.shape[1])
        total.index_add_(0, of, fit.weight[:, None] * columns)
        return (total / lam.clamp_min(1e-300)[:, None])[used]

    slopes, at = tuple(means(s).clamp(0, 1) for s in fit.slopes), rows[used, 0].long()
    made = Explanation(x[at], y[at], lam[used], slopes, at, rows[used, 1:])
    if net.depth == 2:
        return made, gradients(net, made)
    return made, means(gradient(net, x[fit.point], fit.slopes, fit.cover))


def gradients(net: Network, e: Explanation) -> Tensor:
    """Return rows y_i grad_theta Phi(x_i) with the slopes of the explanation. -> (n, P)."""
    return gradient(net, e.x, e.slopes, e.cover)


def residual(net: Network, e: Explanation) -> float:
    """Return |theta - sum_i lam_i y_i grad Phi(x_i)| / |theta|, with the explanation's slopes."""
    return float(remainder(net, e).norm() / net.rho)


def margins(net: Network, e: Explanation) -> Tensor:
    """Return y_i Phi(x_i), 1 on the margin. -> (n,)."""
    return (e.cover * phi_all(net, e.x)).sum(1)


def margin_error(net: Network, e: Explanation) -> float:
    """Return max_i |y_i Phi(x_i) - 1| over the points of positive multiplier; 0 for none.

    With several outputs the margin over any class counts where it is below 1.
    """
    e = e.take(e.lam > 0)
    off = torch.maximum((margins(net, e) - 1).abs(), 1 - q_of(net, e.x, e.y))
    return float(off.max()) if e.n else 0.0


def slackness(net: Network, e: Explanation) -> float:
    """Return sum_i lam_i (y_i Phi(x_i) - 1) / sum_i lam_i; negative inside the margin.

    With stationarity, sum_i lam_i y_i Phi(x_i) = rho^2 / order, whatever was split.
    """
    return float(e.lam @ (margins(net, e) - 1)) / max(e.mass, 1e-300)


# --- Moving the points of an explanation: splits, merges, and the jump of the residual at a wall
# The laws are those of `explanations`: inside the closed cell a split along any direction keeps the
# sum, and along the level line the margin too; beyond a wall the slope of one neuron changes at one
# child, and the sum misses theta by lam |v_j| |(x, 1)|, to be divided by |theta|.

ROOM = 1e-3  # of the farthest point: halves that go no farther are not seen apart; arbitrary
ROUNDING = 1e-9  # arbitrary: a point that slid along a wall may be so far beyond it, relative


def slopes_after(
    net: Network, x: Tensor, old: Tensor, slopes: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Return the slopes of a point that moved from `old` to x: its cell's, but at crossed walls.

    A slope stays while its neuron is on the side that it stands for, or no farther off than it was;
    else it becomes torch's own. x, old (d,) -> one (k_l,) per hidden layer.
    """
    out: list[Tensor] = []
    a, b = x, old
    for w, bias, s in zip(net.weights[:-1], net.biases[:-1], slopes, strict=True):
        z, z_old = (w @ p if bias is None else w @ p + bias for p in (a, b))
        size = w.norm(dim=1) * a.norm() + (0 if bias is None else bias.abs())
        stays = _off(z, s) <= _off(z_old, s) + ROUNDING * size
        out.append(torch.where(stays, s, (z > 0).to(z)))
        a, b = z.clamp_min(0), z_old.clamp_min(0)
    return tuple(out)


def _off(z: Tensor, s: Tensor) -> Tensor:
    """Return how far z is off the side that the slope s stands for."""
    one_sided = torch.where(s < 0.5, z, -z).clamp_min(0)
    return torch.where((s < 1e-9) | (s > 1 - 1e-9), one_sided, z.abs())


def with_point_at(net: Network, e: Explanation, i: int, x: Tensor) -> Explanation:
    """Return the set with point i at another place, label and multiplier kept; no law holds it."""
    slopes = slopes_after(net, x, e.x[i], e.at(i))
    places = e.x.clone()
    places[i] = x
    out = []
    for old, new in zip(e.slopes, slopes, strict=True):
        rows = old.clone()
        rows[i] = new
        out.append(rows)
    return replace(e, x=places, slopes=tuple(out))


def split(net: Network, e: Explanation, i: int, u: Tensor, a: float, b: float) -> Explanation:
    """Return point i replaced by x + a u and x - b u, with lam b / (a + b) and lam a / (a + b).

    Stationarity stays to rounding while both stay in the closed cell (`cell_extent`); beyond, each
    child takes the slopes of the place where it is. The first child keeps the index i, the other
    comes last.

    Raises:
        ValueError: for a or b that is not positive and finite, or a direction of another dimension.
    """
    if not (a > 0 and b > 0 and math.isfinite(a + b)):
        raise ValueError(
            f"a split needs two positive, finite lengths; got a={a}, b={b}. "
            "Where a cell has no end, choose where to stop."
        )
    if u.shape != e.x.shape[1:]:
        raise ValueError(f"expected a direction {tuple(e.x.shape[1:])}; got {tuple(u.shape)}")
    e.at(i)
    other = e.take(torch.tensor([i]))
    places = (e.x[i] + a * u, e.x[i] - b * u)
    second = with_point_at(net, other, 0, places[1])
    second = replace(second, lam=other.lam * (a / (a + b)))
    first = with_point_at(net, e, i, places[0])
    lam = e.lam.clone()
    lam[i] = e.lam[i] * (b / (a + b))
    return replace(first, lam=lam).union(second)


@dataclass(frozen=True, eq=False)
class Merging:
    """What a merge gave.

    Attributes:
        explanation: the set with one point less.
        signed: whether the two had opposite labels, or classes: stationarity stays, slackness
            does not.
        q: y Phi at the point that took their place; 1 on the margin.
    """

    explanation: Explanation
    signed: bool
    q: float


def merge(net: Network, e: Explanation, i: int, j: int) -> Merging:
    """Return points i and j of one closed cell as one; it takes the place of i.

    Equal labels: the centroid by multiplier with lam_i + lam_j. Opposite labels: the point
    (lam_i x_i - lam_j x_j) / (lam_i - lam_j) with the difference, which keeps stationarity while it
    is in the cell, and is off the margin unless Phi vanishes.

    Raises:
        ValueError: for one point twice, different cells, different pairs of classes, or opposite
            labels of equal multipliers.
    """
    if i == j:
        raise ValueError("a merge takes two different points")
    same = all(bool(((s - t).abs() <= 1e-6).all()) for s, t in zip(e.at(i), e.at(j), strict=True))
    if not same:
        raise ValueError(
            "these two points do not share a cell: a neuron is on for one and off for the other. "
            "Only points of one closed cell can be merged."
        )
    signed = bool(e.y[i] != e.y[j])
    if not torch.equal(e.cover[i], -e.cover[j] if signed else e.cover[j]):
        raise ValueError(
            "these two points are on the margins of different pairs of classes. Only points of one "
            "pair can be merged."
        )
    li, lj = float(e.lam[i]), -float(e.lam[j]) if signed else float(e.lam[j])
    total = li + lj
    if abs(total) <= 1e-9 * (li + abs(lj)):
        raise ValueError("equal multipliers of opposite labels cancel; nothing is left to place")
    place = (li * e.x[i] + lj * e.x[j]) / total
    out = with_point_at(net, e, i, place)
    lam, whose = e.lam.clone(), torch.arange(e.n)
    lam[i], whose[i] = abs(total), i if total > 0 else j
    merged = replace(out, lam=lam, y=e.y[whose], cover=e.cover[whose])
    q = float(margins(net, merged)[i])
    return Merging(merged.take(torch.arange(e.n) != j), signed, q)


def predicted_jump(
    net: Network, x: Tensor, lam: float, walls: Sequence[tuple[int, int]],
    slopes: Sequence[Tensor] | None = None, cover: Tensor | None = None,
) -> float:  # fmt: skip
    r"""Return by how much |sum - theta| / |theta| jumps when a point at x crosses these walls.

    Two layers: lam (sum_j v_j^2 |(x, 1)|^2)^(1/2) / |theta|, the point being on the walls. Deeper:
    the length of the change of its gradient. Right for a residual that was 0 before; else the
    two add as vectors.
    """
    if not walls:
        return 0.0
    if net.depth == 2:
        size = float(x.square().sum()) + (net.biases[0] is not None)
        v = net.weights[1][0] if cover is None else cover @ net.weights[1]
        v2 = sum(float(v[j]) ** 2 for _, j in walls)
        return lam * math.sqrt(v2 * size) / float(net.rho)
    near = [s[None] for s in (slopes or [s[0] for s in slopes_at(net, x[None])])]
    far = [s.clone() for s in near]
    for layer, j in walls:
        far[layer][0, j] = 1 - far[layer][0, j]
    of = None if cover is None else cover[None]
    rows = [gradient(net, x[None], chosen, of)[0] for chosen in (near, far)]
    return lam * float((rows[0] - rows[1]).norm() / net.rho)


def relative_change(net: Network, e: Explanation, left: Tensor) -> float:
    """Return by how much the sum of an explanation differs from another's, relative to |theta|.

    `left`: theta minus that other sum (P,), as `gradients.residual` gives it.
    """
    return float((remainder(net, e) - left).norm() / net.rho)


def remainder(net: Network, e: Explanation) -> Tensor:
    """Return theta - sum_i lam_i y_i grad Phi(x_i), with the slopes of the explanation. -> (P,)."""
    return residual_vector(net, e.x, e.lam, e.slopes, e.cover)


def free_direction(net: Network, e: Explanation, i: int) -> tuple[Tensor, Extent] | None:
    """Return the line along which point i splits and keeps sum and margin, and how far.

    None for none.

    It is the one answer to whether a point can be split: a level direction (d,) with room for both
    halves. A wall of the cell that runs through the point leaves none.
    """
    least = ROOM * float(e.x.abs().max())
    for u in level_directions(net, e.x[i], e.at(i), cover=e.cover[i]).T:
        extent = extent_at(net, e, i, u)
        if min(extent.plus, extent.minus) > least:
            return u, extent
    return None


def pinned_points(net: Network, e: Explanation) -> Tensor:
    """Return points that no split moves while it keeps stationarity and margin. -> (n,) bool.

    A point is pinned where its kinks and the gradient of Phi leave no direction: in the plane one
    kink across the level line, or two kinks; on the line any point where Phi is not flat. So is one
    through which a wall of its cell runs across that direction. Other sets may do without it all
    the same: what must be there is certified elsewhere (`certainty`).
    """
    return torch.tensor([free_direction(net, e, i) is None for i in range(e.n)], dtype=torch.bool)


def flat_directions(net: Network, e: Explanation) -> int:
    """Return in how many directions the points of an explanation can move with the same sum.

    On its points' cells a network of two layers knows of them, at each neuron j, the sum
    sum_i y_i s_ij u_i of u_i = lam_i (x_i, 1). Points on a neuron's line stay there. With 0 the
    points are isolated, but for splits of one in two.
    """
    one_output(net)
    n, d, slopes = e.n, net.d, e.slopes[0].double()
    alive = net.weights[1][0] != 0
    one = torch.eye(d + 1, dtype=torch.float64)
    rows = [torch.kron((e.y[:, None] * slopes)[:, alive].T.contiguous(), one)]
    for i, j in ((slopes > 0) & (slopes < 1) & alive).nonzero().tolist():
        row = torch.zeros(n, d + 1, dtype=torch.float64)
        row[i] = net.blocks[0][j].double()
        rows.append(row.reshape(1, -1))
    free = null_space(torch.cat(rows)).T.reshape(-1, n, d + 1)
    moves = free[..., :d] - free[..., d:] * e.x  # lam_i times the change of x_i
    return int(torch.linalg.matrix_rank(moves.flatten(1))) if len(moves) else 0


def kinks_at(net: Network, e: Explanation, i: int) -> int:
    """Return how many neurons stand on point i with a slope strictly between 0 and 1."""
    return len(cell_of(net, e.x[i], e.at(i), e.cover[i]).kinks)


def extent_at(net: Network, e: Explanation, i: int, u: Tensor) -> Extent:
    """Return `cell_extent` of point i with the slopes of the explanation."""
    return cell_extent(net, e.x[i], u, e.at(i), ROUNDING, e.cover[i])
