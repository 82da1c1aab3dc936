r"""Steps of training with weight decay: gradient descent on mean loss + mu/2 |theta|^2.

A stationary point satisfies theta = (1 / (n mu)) sum_i (-l'(q_i)) y_i grad Phi(x_i) exactly, at any
margin and on networks that are not homogeneous (Buzaglo et al. 2023, restated; see the paper for
the original). At any other theta || theta - sum || = || gradient || / mu.

Training carries theta as exp(s) theta_c with |theta_c| near 1 (`training`). The decay of theta is
that of theta_c, whatever s is, so a step in carried units is

    constant:     rate (pull e^{(order - 2) s} g - mu theta_c)
    loss-scaled:  rate (share e^{-order s} g / kappa - (1 - share) theta_c)

with g, kappa and pull of `TrainState`. The second is the gradient divided by c + mu, where
c = pull kappa e^{2 (order - 1) s} bounds the curvature that comes from the margins, mu is that of
the decay, and share = c / (c + mu). Where mu goes to 0 it is the step without decay. Both are held
to the trust region of the step without decay.

The normalised ascent has no such form: it climbs the direction of theta alone, on which a decay of
its norm has no effect. `TrainConfig` refuses the two together.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from explorer.engine.training_config import TrainConfig

_MAX_EXPONENT = 300.0  # arbitrary: e^300 squared is still a double, and far beyond any trust region


def decayed(
    theta: Tensor, grads: Tensor, order: int, log_scale: float, log_pull: float, kappa: float,
    reach: float, config: TrainConfig,
) -> Tensor:  # fmt: skip
    """The displacement (P,) of the carried weights `theta` (P,) before momentum.

    Args:
        theta: carried weights.
        grads: sum_i p_i y_i grad Phi at them (P,).
        order: degree of homogeneity, or depth where there is none.
        log_scale: the true weights are exp(log_scale) theta.
        log_pull: log of the mean of -l'(q_i) at the true weights.
        kappa: sum_i p_i ||grad Phi||^2 at the carried weights.
        reach: the longest displacement allowed by the loss-scaled rule.
        config: with weight_decay above 0.
    """
    mu, rate = config.weight_decay, config.rate
    if config.rule == "constant":
        pull = math.exp(min(log_pull + (order - 2) * log_scale, _MAX_EXPONENT))
        return rate * pull * grads - (rate * mu) * theta
    if kappa == 0:
        return theta * 0
    log_curvature = log_pull + math.log(kappa) + 2 * (order - 1) * log_scale
    log_share = -math.log1p(math.exp(min(math.log(mu) - log_curvature, _MAX_EXPONENT)))
    pull = math.exp(min(log_share - math.log(kappa) - order * log_scale, _MAX_EXPONENT))
    move = rate * pull * grads - rate * -math.expm1(log_share) * theta
    length = math.sqrt(float(torch.dot(move, move)))
    return move if length <= reach else move * (reach / length)
