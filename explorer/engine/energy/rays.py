r"""The cone of gradients that one point may contribute to theta, as its finitely many rays.

At a point x the Clarke subdifferential of y Phi(theta; x), of several outputs of Phi_y - Phi_c for
each rival c, is the hull of the gradients whose slopes are 0 or 1 at the kinks, so lam >= 0 times
it is the cone of 2^q rays, q being the number of kinks within tau (a neuron j of a layer with
|z_j| <= tau |w~_j| |a|). In two layers this is exact; deeper a gradient is a product of slopes, and
the rays span a larger cone: energies are then lower bounds.

Rays are never formed as vectors of theta: their inner products come from the tangent factors,
<g, g'> = sum_l (B_l . B'_l)(A_l . A'_l), and <theta, g> = sum_l B_l . z_l, which is order y Phi(x)
only where every freed slope belongs to a value of exactly zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.classes import rivals
from explorer.engine.gradients import backward_signals, forward_signals
from explorer.engine.multipliers import fit_multipliers, kinks_of
from explorer.engine.network import Network

MOST_KINKS = 3  # of a moving point: the nearest ones; arbitrary, 8 rays
FEW_NEURONS = 16  # up to so many, a moving point gets MOST_SET kinks too; arbitrary
MOST_SET = 6  # of a point at rest; arbitrary, 64 rays
MOST_RAYS = 120  # of a set, beyond which points with many kinks are given fewer; arbitrary


@dataclass(frozen=True, eq=False)
class PointRays:
    """Rays of p points.

    Attributes:
        owner: index of each ray's point (r,), ascending.
        back: B_l of each ray (r, k_l), times y.
        inputs: A_l of each point (p, k).
        inner: <theta, ray> (r,).
        kinks: kinks of each point (p,), before any was left out.
        most: kinks that a point was allowed.
    """

    owner: Tensor
    back: list[Tensor]
    inputs: list[Tensor]
    inner: Tensor
    kinks: Tensor
    most: int = MOST_KINKS

    @property
    def cut_count(self) -> int:
        """Return points with more kinks than were freed: energies are upper bounds."""
        return int((self.kinks > self.most).sum())

    @property
    def counts(self) -> Tensor:
        """Return rays of each point (p,)."""
        return torch.bincount(self.owner, minlength=len(self.kinks))

    def gram(self, other: PointRays | None = None) -> Tensor:
        """Return inner products with the rays of `other`, or with one another: (r, r')."""
        other = other or self
        total = self.inner.new_zeros(len(self.owner), len(other.owner))
        for b, a, b2, a2 in zip(self.back, self.inputs, other.back, other.inputs, strict=True):
            total += (b @ b2.T) * (a @ a2.T)[self.owner][:, other.owner]
        return total

    def of(self, points: Tensor) -> PointRays:
        """Return the rays of some points: a bool mask (p,)."""
        mine = points[self.owner]
        renumbered = torch.cumsum(points, 0) - 1
        return PointRays(
            renumbered[self.owner[mine]], [b[mine] for b in self.back],
            [a[points] for a in self.inputs], self.inner[mine], self.kinks[points], self.most,
        )  # fmt: skip


def rays(net: Network, x: Tensor, y: Tensor, tau: float, most: int = MOST_KINKS) -> PointRays:
    """Return the rays of points x (p, d) with labels y (p,), float64 on the CPU.

    Args:
        net: a homogeneous network.
        x: the points.
        y: their labels. Of several outputs a point has rays of each rival class that ties within
            tau, as in `fit_multipliers`.
        tau: relative distance below which a slope is free; negative for none.
        most: kinks of a point that are freed, the nearest ones.
    """
    inputs, values, slopes = forward_signals(net, x)
    near = kinks_of(net, inputs, values, tau)
    kinks = _kink_counts(near)
    of, cover = rivals(values[-1], y, tau)  # a margin a row: of a point and a rival
    near, values = [k[of] for k in near], [v[of] for v in values]
    kept = [k & (order < most) for k, order in zip(near, _order(near, values), strict=True)]
    counts = 2 ** _kink_counts(kept)
    margin = torch.repeat_interleave(torch.arange(len(of)), counts)
    starts = torch.cumsum(counts, 0) - counts
    expanded = [s[of][margin] for s in slopes]
    ranks = _order(kept, values)
    for layer, mask in enumerate(kept):
        point, unit = mask.nonzero(as_tuple=True)
        size = counts[point]
        which = torch.repeat_interleave(torch.arange(len(point)), size)
        within = torch.arange(len(which)) - torch.repeat_interleave(
            torch.cumsum(size, 0) - size, size
        )
        bit = (within >> ranks[layer][point, unit][which]) & 1
        expanded[layer][starts[point][which] + within, unit[which]] = bit.to(x.dtype)
    back, inner = _signals_of(net, expanded, margin, cover, values)
    return PointRays(of[margin], back, inputs, inner, kinks, most)


def _signals_of(
    net: Network, slopes: list[Tensor], owner: Tensor, cover: Tensor, values: list[Tensor]
) -> tuple[list[Tensor], Tensor]:
    """Return the signals of each ray, by the covector of its margin, and its product with theta."""
    back = backward_signals(net, slopes, len(owner), cover[owner])
    parts = [(b * z[owner]).sum(1) for b, z in zip(back, values, strict=True)]
    return back, torch.stack(parts).sum(0)


def place_rays(net: Network, places: Tensor, y: Tensor, tau: float) -> PointRays:
    """Return the rays of places for a moving point: fewer kinks each where neurons are many."""
    return rays(net, places, y, tau, _most(net))


def crowded_count(net: Network, places: Tensor, tau: float) -> int:
    """Return how many places have more kinks than are freed: there energies are upper bounds."""
    return int((_kinks_of(net, places, tau) > _most(net)).sum())


def _kinks_of(net: Network, x: Tensor, tau: float) -> Tensor:
    """Return how many kinks each point has (p,)."""
    inputs, values, _ = forward_signals(net, x)
    return _kink_counts(kinks_of(net, inputs, values, tau))


def _most(net: Network) -> int:
    return MOST_SET if sum(net.widths) <= FEW_NEURONS else MOST_KINKS


def set_rays(net: Network, x: Tensor, y: Tensor, tau: float) -> PointRays:
    """Return the rays of a whole candidate set, whose points may have more than MOST_KINKS kinks.

    Up to MOST_SET are freed while the set has no more than MOST_RAYS rays. Where that is not
    enough, the rays that `fit_multipliers` uses take the place of those of such points: each is of
    the cone of its point, so energies are upper bounds, and nearly exact at this very set. Of
    several outputs the kinks beyond are not freed.
    """
    kinks = _kinks_of(net, x, tau)
    allowed = range(MOST_SET, MOST_KINKS - 1, -1)
    fits = (k for k in allowed if int((2 ** kinks.clamp_max(k)).sum()) <= MOST_RAYS)
    most = next(fits, MOST_KINKS)
    made = rays(net, x, y, tau, most)
    if not made.cut_count or net.outputs > 1:
        return made
    fit = fit_multipliers(net, x, y, tau)
    used = fit.weight > 0
    point, slopes = fit.point[used], [s[used] for s in fit.slopes]
    back, own = _signals_of(net, slopes, point, y[:, None], forward_signals(net, x)[1])
    kept = (made.kinks <= most)[made.owner]
    owner = torch.cat([made.owner[kept], point])
    inner = torch.cat([made.inner[kept], own])
    order = owner.argsort(stable=True)
    whole = [torch.cat([b[kept], b2])[order] for b, b2 in zip(made.back, back, strict=True)]
    return PointRays(owner[order], whole, made.inputs, inner[order], made.kinks, most)


def _kink_counts(masks: list[Tensor]) -> Tensor:
    """Return how many kinks each point has, over all layers (p,)."""
    return torch.stack([mask.sum(1) for mask in masks]).sum(0)


def _order(masks: list[Tensor], values: list[Tensor]) -> list[Tensor]:
    """Return the rank of each kink among those of its point, nearest first, over all layers."""
    widths = [m.shape[1] for m in masks]
    flat = torch.cat(masks, dim=1)
    far = torch.cat([v.abs() for v in values[: len(masks)]], dim=1).masked_fill(~flat, torch.inf)
    rank = far.argsort(dim=1, stable=True).argsort(dim=1, stable=True)
    return list(rank.split(widths, dim=1))
