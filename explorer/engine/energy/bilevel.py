r"""The bilevel loss of one moving point, with ridge regression on fixed features f as training.

      theta(x) = (F^T F / m + mu I)^{-1} F^T y / m,    l = || theta(x) - theta* ||^2 / 2,

where only one row of F changes: Sherman and Morrison give all inverses from one. The surrogate
s = || dE/dtheta(theta*) ||^2 bounds it, l <= s / (2 mu^2), as E is mu-strongly convex.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from explorer.engine.attacks.bilevel.models import with_one
from explorer.engine.network import Network

Array = NDArray[np.float64]

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
    """(x, 1), or the last hidden layer of `net` and 1: what the ridge regression sees. (m, P)."""
    if net is None:
        return with_one(x)
    a = x
    for w, b in zip(net.weights[:-1], net.biases[:-1], strict=True):
        a = (a @ w.T if b is None else a @ w.T + b).clamp_min(0)
    return with_one(a)


def ridge(f: Tensor, y: Tensor, mu: float) -> Tensor:
    """Theta of least squares with weight decay, f (m, P), y (m,) -> (P,)."""
    eye = torch.eye(f.shape[1], dtype=f.dtype)
    out: Tensor = torch.linalg.solve(f.T @ f / len(f) + mu * eye, f.T @ y / len(f))
    return out


def bilevel(
    truth: tuple[Tensor, Tensor], x: Tensor, index: int, places: Tensor, mu: float = MU,
    net: Network | None = None,
) -> Bilevel:  # fmt: skip
    """The bilevel loss of candidates x (m, d) with point `index` at each place (p, d).

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
