r"""Slices through the energy: the plane, the line, a point split in two.

- The plane and the line: `MovingPoint` at many places. On the line the breakpoints of Phi and the
  places with |Phi| = 1 are among the places, so that no needle falls between two of them.
- A point split in two: z -> E({z, 2 x - z} and the rest). Halves in the point's cell keep its
  gradient, so there it is zero, if it is zero at z = x; the margin stays along a level direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Array, Flags
from explorer.engine.attacks.bilevel.lower import ridge
from explorer.engine.attacks.target import Target
from explorer.engine.energy.points import Energies, Through, at_once, moving_point, pairs
from explorer.engine.explanations.splitting import free_direction, training_explanation
from explorer.engine.network import Network, preactivations, with_one
from explorer.engine.piecewise import describe

# --- The bilevel loss of one moving point, with ridge regression on fixed features f as training
# theta(x) = (F^T F / m + mu I)^{-1} F^T y / m,    l = || theta(x) - theta* ||^2 / 2,
#
# where only one row of F changes: Sherman and Morrison give all inverses from one. The surrogate
# s = || dE/dtheta(theta*) ||^2 bounds it, l <= s / (2 mu^2), as E is mu-strongly convex.


MU = 0.01  # weight decay of the map's training; arbitrary
NOTHING = 1e-6  # of the largest theta* of these features: less is taken for rounding; arbitrary


@dataclass(frozen=True, eq=False)
class Bilevel:
    """Ridge regression with one point that moves.

    Attributes:
        values: l over ||theta*||^2 / 2 at each place (p,): 1 is what weights of zero would give.
        surrogate: || dE/dtheta(theta*) ||^2 over ||theta*||^2, at each place (p,).
        here: l where the point is.
    """

    values: Array
    surrogate: Array
    here: float


def features(net: Network | None, x: Tensor) -> Tensor:
    """Return (x, 1), or the last hidden layer of `net` and 1: the features. (m, P)."""
    return with_one(x if net is None else preactivations(net, x)[-2].clamp_min(0))


def bilevel(
    truth: tuple[Tensor, Tensor], x: Tensor, index: int, places: Tensor, mu: float = MU,
    net: Network | None = None,
) -> Bilevel:  # fmt: skip
    """Return the bilevel loss of candidates x (m, d) with point `index` at each place (p, d).

    Args:
        truth: points (n, d) and labels (n,) on which theta* was trained; the candidates carry the
            same labels, so m = n.
        x: the candidates.
        index: which one moves.
        places: where to.
        mu: weight decay.
        net: a network whose last hidden layer are the features; None for the points themselves.

    Raises:
        ValueError: where the arguments do not fit, or theta* is zero but for rounding.
    """
    y = truth[1]
    if x.shape != truth[0].shape or not mu > 0 or not 0 <= index < len(x):
        raise ValueError(
            f"expected candidates {tuple(truth[0].shape)}, mu > 0 and a point of them; "
            f"got {tuple(x.shape)}, mu={mu} and {index}"
        )
    seen = features(net, truth[0])
    star = ridge(seen, y, mu)
    _checked_star(star, seen, mu)
    m = len(x)
    f = features(net, x)
    rest = torch.arange(m) != index
    base = f[rest].T @ f[rest] / m + mu * torch.eye(f.shape[1], dtype=f.dtype)
    right = f[rest].T @ y[rest] / m
    inverse = torch.linalg.inv(base)
    rows = features(net, torch.cat([places, x[index : index + 1]]))
    turned = rows @ inverse
    denominator = m + (turned * rows).sum(1, keepdim=True)
    sides = right + rows * (y[index] / m)
    theta = sides @ inverse - turned * ((turned * sides).sum(1, keepdim=True) / denominator)
    size = float(star.square().sum())
    loss = ((theta - star).square().sum(1) / size).numpy()
    slope = base @ star - sides + rows * ((rows @ star) / m)[:, None]
    surrogate = (slope.square().sum(1) / size).numpy()
    return Bilevel(loss[:-1], surrogate[:-1], float(loss[-1]))


def _checked_star(star: Tensor, f: Tensor, mu: float) -> None:
    """Refuse weights beside which every other is infinitely far. f (m, P).

    With f = U S V^T, theta* = V S (S^2 + m mu)^{-1} U^T y: the labels that the features tell best
    would give it the largest norm.
    """
    s = torch.linalg.svdvals(f)
    most = math.sqrt(len(f)) * float((s / (s.square() + len(f) * mu)).max())
    got = float(star.norm())
    if got <= NOTHING * most:
        raise ValueError(
            "The bilevel loss compares weights with those of ridge regression on the training set, "
            f"which must not be zero; got ‖θ*‖ = {got:.1g}, where these features could give "
            f"{most:.2g}: no affine function of them tells the classes apart. Take the bilevel "
            "loss of other features, or other points."
        )


AS_LOW = 1e-6  # of ||theta||^2: up to this a split explains the weights; that of `REDUNDANT`
SAME = 1e-9  # of the half width: places nearer to each other than that are one; arbitrary
BANDS = 3  # of a kink on the line, each 2 tau |(x, 1)| wide, are no fan yet; arbitrary


def grid(extent: float, size: int) -> Tensor:
    """Return the centres of size^2 pixels over [-extent, extent]^2, first row on top.

    (size^2, 2), float64.
    """
    g = ((torch.arange(size, dtype=torch.float64) + 0.5) / size * 2 - 1) * extent
    yy, xx = torch.meshgrid(g.flip(0), g, indexing="ij")
    return torch.stack([xx.reshape(-1), yy.reshape(-1)], 1)


def tau_of(extent: float, size: int, pixels: float) -> float:
    """Return the relative distance of a kink that frees it within so many pixels at least.

    A neuron's line is |z| / |w| away, and |z| / (|w~| |x~|), which tau bounds, is never more.
    """
    return pixels * 2 * extent / size


@dataclass(frozen=True, eq=False)
class MapLine:
    """The energy of a point that moves on a line.

    Attributes:
        z: places (p,), ascending.
        seen: their energies.
        breaks: breakpoints of Phi in view.
        candidates: places with y Phi = 1 in view, for the label of the point.
    """

    z: Array
    seen: Energies
    breaks: Array
    candidates: Array


def line(
    net: Network, x: Tensor, y: Tensor, index: int, extent: float, size: int, tau: float,
    frozen: bool = False, kappa: float = 0.0, through: Through = at_once,
) -> MapLine:  # fmt: skip
    """Return the curve over [-extent, extent], of a network of one input (else ValueError).

    `through`: as of `split`.
    """
    graph = describe(net)
    breaks = graph.breaks[np.abs(graph.breaks) <= extent]
    label = float(y[index])
    found = [
        at
        for i in range(len(graph))
        for at, sign in graph.crossings(i, 1.0, 1e-9)
        if sign == label and abs(at) <= extent
    ]
    candidates = np.unique(np.round(found, 9))
    even = np.linspace(-extent, extent, size)
    z = np.sort(np.concatenate([even, breaks, candidates, x[index].numpy()]))
    z = z[np.diff(z, prepend=-np.inf) > SAME * extent]
    ends = np.concatenate([z[:1], (z[1:] + z[:-1]) / 2, z[-1:]])
    sizes = np.diff(ends) / max(ends[-1] - ends[0], 1e-300)
    moving = moving_point(net, x, y, index, tau, frozen, kappa)
    seen = moving.energies_at(torch.from_numpy(z)[:, None], through, sizes)
    band = BANDS * max(tau, 0.0) * float(x[index].square().sum().add(1).sqrt()) / extent
    return MapLine(z, replace(seen, band=band), breaks, candidates)


@dataclass(frozen=True, eq=False)
class Split:
    """Where the two halves of a point may be: one at each place, the other opposite it.

    Attributes:
        u: a direction (d,) of length 1 along which the point splits; zeros where there is none.
        free: how far both halves can go along u and stay in the cell, and on the margin; infinite
            where nothing stops them.
        values: energies (p,) with a half at each place z and the other at 2 x - z.
        here: the energy with the point in one piece.
        carries: whether the point has a multiplier to be split.
    """

    u: Tensor
    free: float
    values: Array
    here: float
    carries: bool = True

    @property
    def explains(self) -> Flags:
        """Return which places leave no more of ‖θ‖² than the whole point does (p,)."""
        found: Flags = self.values <= self.here + AS_LOW
        return found

    @property
    def pinned(self) -> bool:
        """Return whether the point cannot be split; `splitting.free_direction` says so."""
        return self.free == 0


def split(
    net: Network, x: Tensor, y: Tensor, index: int, places: Tensor, tau: float,
    whole: Network | None = None, through: Through = at_once,
) -> Split:  # fmt: skip
    """Return the energies with point `index` split in two, a half at each of the places (p, d).

    The other half is opposite it, as far from the point; both masses are fitted.

    Args:
        net: a homogeneous network of one output.
        x: the points (n, d).
        y: their labels (n,).
        index: which point is split.
        places: of one half.
        tau: relative distance of a kink.
        whole: the weights that tell whether the point can be split, before neurons were merged.
        through: goes through the splits (p, 2 d), both halves in a row, by a function of some.
    """
    merged, e, _ = training_explanation(Target(net if whole is None else whole), x, y)
    mine = (e.origin == index).nonzero().flatten().tolist()
    found = free_direction(merged, e, mine[0]) if mine else None
    u, free = torch.zeros_like(e.x[0]), 0.0
    if found is not None:
        u, free = found[0], min(found[1].plus, found[1].minus)
    halves = torch.cat([places, 2 * x[index] - places], 1)

    def shares(some: Tensor) -> Array:
        return pairs(net, x, y, index, some[:, : net.d], some[:, net.d :], tau)

    here = moving_point(net, x, y, index, tau).here  # by the rays that the halves are fitted with
    return Split(u, free, through(halves, shares), here, bool(mine))
