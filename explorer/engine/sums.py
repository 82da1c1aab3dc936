r"""The weights as a sum over points: theta = sum_i lam_i y_i grad Phi(x_i; s) + what is left over.

At the first layer the term of point i is rank one: neuron j gets c_ij (x_i, 1), with

    c_ij = lam_i y_i B_ij,   B_ij = s_ij v_j in two layers,

B as in `gradients`. So a picture of the sum needs c (n, k) alone, no vector of the length of theta
for each point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from explorer.engine.gradients import residual, signals
from explorer.engine.margin import q_of
from explorer.engine.network import Network, in_double, scaled_network, with_one
from explorer.engine.nonnegative import nonnegative


class Columns(Protocol):
    """Weighted gradients: a `multipliers.Fit`, say."""

    @property
    def point(self) -> Tensor:
        """Index of each one's point (C,)."""

    @property
    def weight(self) -> Tensor:
        """Weight of each (C,), not negative."""

    @property
    def slopes(self) -> tuple[Tensor, ...]:
        """One (C, k_l) tensor of slopes per hidden layer."""


@dataclass(frozen=True, eq=False)
class Sum:
    """The weights of a network with one output as a sum over points, and the remainder.

    Attributes:
        net: whose weights, at margin 1.
        x: the points (n, d), in the network's unit.
        pull: c (n, k): the term of point i is c_ij (x_i, 1) at neuron j of the first layer.
        rest: theta minus the sum (P,), ordered like `net.theta`.

    Example:
        >>> from explorer import certify, maximum_margin, preset
        >>> from explorer.engine.sums import sum_of
        >>> data = preset("alternating-line", n=3)
        >>> net = maximum_margin(data.x, data.y).net
        >>> made = certify(net, data.x, data.y)
        >>> sum_of(net, data.x, data.y, made.fit).left < 1e-8
        True
    """

    net: Network
    x: Tensor
    pull: Tensor
    rest: Tensor

    @property
    def left(self) -> float:
        """Return |theta - sum| / |theta|, the `residual` of a certificate for its fit."""
        return float(self.rest.norm() / self.net.rho)

    @property
    def points(self) -> Tensor:
        """Return the points as the first layer sees them: (x, 1) (n, D), x without a bias."""
        if self.net.biases[0] is None:
            return self.x
        return with_one(self.x)

    def rests(self) -> tuple[Tensor, Tensor]:
        """Return what is left of each first neuron: into it (k, D), and out of it (k_2, k)."""
        left = self.net.with_theta(self.rest)
        return left.blocks[0], left.weights[1]


def sum_of(net: Network, x: Tensor, y: Tensor, columns: Columns | None) -> Sum:
    """Return the weights, rescaled to margin 1, as a sum over points x (n, d), y (n,).

    `columns`: a certificate's fit; None, and points that the network does not separate, leave all
    of theta over.
    """
    one, x, y = in_double(net, x, y)
    one, x = one.in_unit(), x / net.unit
    q = q_of(one, x, y)
    if columns is None or not len(q) or not float(q.min()) > 0:
        return Sum(one, x, x.new_zeros(len(x), len(one.weights[0])), one.theta)
    return sum_over(scaled_network(one, float(q.min()) ** (-1 / one.order)), x, y, columns)


def sum_over(net: Network, x: Tensor, y: Tensor, columns: Columns) -> Sum:
    """Return the weights of a network at margin 1 as a sum over points x (n, d), y (n,).

    Raises:
        ValueError: for a network of several outputs, or slopes of other shapes.
    """
    net, x, y = in_double(net, x, y)
    at, coef = x[columns.point], columns.weight * y[columns.point]
    back, _ = signals(net, at, columns.slopes)[0]
    pull = x.new_zeros(len(x), back.shape[1]).index_add_(0, columns.point, coef[:, None] * back)
    return Sum(net, x, pull, residual(net, at, coef, columns.slopes))


@dataclass(frozen=True, eq=False)
class OnePerPoint:
    """Columns of which each point has one: multipliers lam (n,) and slopes (n, k_l)."""

    weight: Tensor
    slopes: tuple[Tensor, ...]

    @property
    def point(self) -> Tensor:
        """Return 0 to n - 1."""
        return torch.arange(len(self.weight))


def best_sum(net: Network, x: Tensor, y: Tensor, slopes: Sequence[Tensor]) -> Sum:
    """Return the weights at margin 1 as a sum over points with the multipliers that leave least.

    x (m, d), y (m,); slopes (m, k_l) of each hidden layer.
    """
    net, x, y, *held = in_double(net, x, y, *slopes)
    gram, inner = x.new_zeros(len(x), len(x)), x.new_zeros(len(x))
    for (b, a), w in zip(signals(net, x, tuple(held)), net.blocks, strict=True):
        gram, inner = gram + (b @ b.T) * (a @ a.T), inner + ((b @ w) * a).sum(dim=1)
    signed = (y[:, None] * gram * y).numpy()
    lam = nonnegative(signed, (y * inner).numpy()) if len(x) else np.zeros(0)
    return sum_over(net, x, y, OnePerPoint(torch.from_numpy(lam), tuple(held)))
