"""One moment of a training run; `training` makes them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from explorer.engine.margin import Loss, gamma_bar, smoothed
from explorer.engine.network import Network

MAX_EXPONENT = 700.0  # exp(700) is still a double


@dataclass(frozen=True, eq=False)
class TrainState:
    """One iterate, with everything that belongs to it and nothing of the next.

    Attributes:
        t: steps taken.
        net: the carried weights, of finite norm.
        log_scale: the true weights are exp(log_scale) times those of `net`.
        q: margins of `net` (n,); those of the true weights are exp(order * log_scale) q.
        log_loss: log of the summed loss of the true weights; 0 for no points.
        grads: (P,) like net.theta: sum_i p_i y_i grad Phi(net; x_i). With a mini-batch, the
            unbiased estimate of it that this iterate's batch gives.
        log_pull: log of the mean of -l'(q_i) at the true weights; see `loss_gradient`.
        kappa: sum_i p_i ||grad Phi(net; x_i)||^2, 0 when no neuron is active on any point.
        rho: norm of net.theta.
        velocity: (P,) the last displacement, in the units of `net`.
        batch_seed: with t it fixes every mini-batch.
        loss: the loss that `log_loss` and `grads` are of.
        diverged: the step from here would not be finite and was not taken.
    """

    t: int
    net: Network
    log_scale: float
    q: Tensor
    log_loss: float
    grads: Tensor
    log_pull: float
    kappa: float
    rho: float
    velocity: Tensor
    batch_seed: int
    loss: Loss
    diverged: bool = False

    @cached_property
    def q_min(self) -> float:
        """The smallest margin of `net`; 0 for no points."""
        return float(self.q.min()) if self.q.shape[0] else 0.0

    @cached_property
    def gamma_bar(self) -> float:
        """The normalised margin q_min / rho^order, the same for `net` and the true weights."""
        return gamma_bar(self.q_min, self.rho, self.net.depth)

    @cached_property
    def gamma_tilde(self) -> float:
        """The smoothed normalised margin of the true weights."""
        gain = self.net.depth * self.log_scale
        if not self.q.shape[0]:
            return 0.0
        return smoothed(self.log_loss, self.rho, self.net.depth, self.loss, gain)

    @property
    def loss_gradient(self) -> Tensor:
        """The gradient (P,) of the mean loss at the true weights. May overflow far from 1."""
        exponent = self.log_pull + (self.net.depth - 1) * self.log_scale
        return -math.exp(min(exponent, MAX_EXPONENT)) * self.grads
