r"""Moving the points of an explanation: splits, merges, and the jump of the residual at a wall.

The laws are those of `explanations`: inside the closed cell a split along any direction keeps the
sum, and along the level line the margin too; beyond a wall the slope of one neuron changes at one
child, and the sum misses theta by lam |v_j| |(x, 1)|, to be divided by |theta|.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from explorer.engine.cells import Extent, cell_extent, cell_of, level_directions, slopes_at
from explorer.engine.explanations import Explanation
from explorer.engine.network import Network, phi
from explorer.engine.tangent import gradient

ROUNDING = 1e-9  # arbitrary: a point that slid along a wall may be so far beyond it, relative


def settled(net: Network, x: Tensor, old: Tensor, slopes: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The slopes of a point that moved from `old` to x: its cell's, but at the walls it crossed.

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
    """How far z is off the side that the slope s stands for."""
    one_sided = torch.where(s < 0.5, z, -z).clamp_min(0)
    return torch.where((s < 1e-9) | (s > 1 - 1e-9), one_sided, z.abs())


def moved(net: Network, e: Explanation, i: int, x: Tensor) -> Explanation:
    """Point i at another place, with its label and multiplier; no law holds this one."""
    slopes = settled(net, x, e.x[i], e.at(i))
    places = e.x.clone()
    places[i] = x
    out = []
    for old, new in zip(e.slopes, slopes, strict=True):
        rows = old.clone()
        rows[i] = new
        out.append(rows)
    return replace(e, x=places, slopes=tuple(out))


def split(net: Network, e: Explanation, i: int, u: Tensor, a: float, b: float) -> Explanation:
    """Point i replaced by x + a u and x - b u with lam b / (a + b) and lam a / (a + b).

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
    other = e.keep(torch.tensor([i]))
    places = (e.x[i] + a * u, e.x[i] - b * u)
    second = moved(net, other, 0, places[1])
    second = replace(second, lam=other.lam * (a / (a + b)))
    first = moved(net, e, i, places[0])
    lam = e.lam.clone()
    lam[i] = e.lam[i] * (b / (a + b))
    return replace(first, lam=lam).joined(second)


@dataclass(frozen=True, eq=False)
class Merging:
    """What a merge gave.

    Attributes:
        explanation: the set with one point less.
        signed: whether the two had opposite labels: stationarity stays, slackness does not.
        sentence: what was done and what it cost.
    """

    explanation: Explanation
    signed: bool
    sentence: str


def merge(net: Network, e: Explanation, i: int, j: int) -> Merging:
    """Points i and j of one closed cell as one; it takes the place of i.

    Equal labels: the centroid by multiplier with lam_i + lam_j. Opposite labels: the point
    (lam_i x_i - lam_j x_j) / (lam_i - lam_j) with the difference, which keeps stationarity while it
    is in the cell, and is off the margin unless Phi vanishes.

    Raises:
        ValueError: for one point twice, different cells, or opposite labels of equal multipliers.
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
    li, lj = float(e.lam[i]), -float(e.lam[j]) if signed else float(e.lam[j])
    total = li + lj
    if abs(total) <= 1e-9 * (li + abs(lj)):
        raise ValueError("equal multipliers of opposite labels cancel; nothing is left to place")
    place = (li * e.x[i] + lj * e.x[j]) / total
    out = moved(net, e, i, place)
    lam, y = e.lam.clone(), e.y.clone()
    lam[i], y[i] = abs(total), e.y[i] if total > 0 else e.y[j]
    kept = torch.arange(e.n) != j
    merged = replace(out, lam=lam, y=y).keep(kept)
    if not signed:
        return Merging(merged, False, "Merged to their centroid; nothing in the sum changed.")
    q = float(y[i] * phi(net, place[None])[0])
    return Merging(
        merged, True,
        f"A signed merge: the sum keeps its value, but the point has y Φ = {q:.3g} instead of 1, "
        "so complementary slackness is broken and no max-margin training would leave it so.",
    )  # fmt: skip


def predicted_jump(net: Network, x: Tensor, lam: float, walls: Sequence[tuple[int, int]],
                   slopes: Sequence[Tensor] | None = None) -> float:  # fmt: skip
    r"""By how much |sum - theta| / |theta| jumps when a point at x crosses these walls.

    Two layers: lam (sum_j v_j^2 |(x, 1)|^2)^(1/2) / |theta|, the point being on the walls. Deeper:
    the length of the change of its gradient. Right for a residual that was 0 before; else the
    two add as vectors.
    """
    if not walls:
        return 0.0
    if net.depth == 2:
        size = float(x.square().sum()) + (net.biases[0] is not None)
        v2 = sum(float(net.weights[1][0, j]) ** 2 for _, j in walls)
        return lam * math.sqrt(v2 * size) / float(net.rho)
    near = [s[None] for s in (slopes or [s[0] for s in slopes_at(net, x[None])])]
    far = [s.clone() for s in near]
    for layer, j in walls:
        far[layer][0, j] = 1 - far[layer][0, j]
    rows = [gradient(net, x[None], chosen)[0] for chosen in (near, far)]
    return lam * float((rows[0] - rows[1]).norm() / net.rho)


def pinned(net: Network, e: Explanation) -> Tensor:
    """Points that no split moves while it keeps stationarity and margin. -> (n,) bool.

    A point is pinned where its kinks and the gradient of Phi leave no direction: in the plane one
    kink across the level line, or two kinks; on the line any point where Phi is not flat.
    """
    return torch.tensor(
        [not level_directions(net, e.x[i], e.at(i)).shape[1] for i in range(e.n)], dtype=torch.bool
    )


def kinks_at(net: Network, e: Explanation, i: int) -> int:
    """How many neurons stand on point i with a slope strictly between 0 and 1."""
    return len(cell_of(net, e.x[i], e.at(i)).kinks)


def extent_at(net: Network, e: Explanation, i: int, u: Tensor) -> Extent:
    """`cell_extent` of point i with the slopes of the explanation."""
    return cell_extent(net, e.x[i], u, e.at(i), ROUNDING)


def widest_split(
    net: Network, e: Explanation, i: int, u: Tensor, reach: float, share: float = 1.0
) -> Explanation:
    """Point i split to `share` of its extent along u, at most `reach` each way.

    Raises:
        ValueError: where the cell ends at the point on either side.
    """
    extent = extent_at(net, e, i, u)
    a, b = (min(v, reach) * share for v in (extent.plus, extent.minus))
    if min(a, b) <= 0:
        raise ValueError("this point cannot be split along this direction: its cell ends here")
    return split(net, e, i, u, a, b)
