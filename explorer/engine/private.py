r"""Differentially private gradient descent: its noise, its epsilon, its bound on reconstruction.

A step adds up the points' gradients, each cut to the length C, and Gaussian noise of standard
deviation sigma C (DP-SGD, Abadi et al. 2016, with all points in every step). Adding or removing a
point changes the sum by C or less, so T steps are no easier to tell apart, with the point and
without, than N(mu, 1) and N(0, 1), whoever sees all weights on the way (Dong, Roth and Su 2022):

    mu = sqrt(T) / sigma
    delta(epsilon) = N(mu/2 - epsilon/mu) - e^epsilon N(-mu/2 - epsilon/mu)

with the normal distribution function N (Balle and Wang 2018). This is exact, where an accountant of
mini-batches bounds it. Who knows all points but one, of which a prior puts at most kappa within
eta of any place, comes within eta of it with probability at most

    N(N^-1(kappa) + mu)

(Hayes, Mahloujifar and Balle 2023, theorem 2, for these steps; restated, see the papers for the
originals). It is of noise that nobody knows: a seed tells it. What is drawn or chosen from the
points themselves is not covered: a unit of length, a number of steps, the margin to which an attack
scales the weights.
"""

from __future__ import annotations

import math

import torch
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri
from torch import Tensor

from explorer.engine import backprop
from explorer.engine.classes import soft_contrast
from explorer.engine.margin import Loss, slopes_of
from explorer.engine.network import Network

DELTA = 1e-5  # of every epsilon that is named; as in most papers


def clipped_gradient(net: Network, x: Tensor, y: Tensor, loss: Loss, clip: float) -> Tensor:
    """Return the sum of -grad l(q_i), each cut to the length `clip`. x (n, d), y (n,) -> (P,)."""
    inputs, outputs = backprop.forward(net, x)
    q, cover = soft_contrast(outputs, y, torch.ones_like(outputs[0, 0]), known=True)
    values = backprop.backward(net, inputs, outputs, cover)
    length = backprop.squared_norms(net, values).sqrt()
    pull = torch.minimum(slopes_of(q, loss).exp(), clip / length)
    return backprop.combined_gradient(net, values, torch.where(length > 0, pull, 0.0))


def noise_like(theta: Tensor, seed: int, t: int) -> Tensor:
    """Return the standard normal noise of step t of a run (P,), the same on every device."""
    # 2654435761 is Knuth's multiplicative hash: nearby steps get unrelated generators.
    generator = torch.Generator().manual_seed((seed + 2654435761 * (t + 1)) % 2**63)
    return torch.randn(len(theta), generator=generator, dtype=torch.float64).to(theta)


def separation(noise: float, steps: int) -> float:
    """Return mu of so many steps with noise of standard deviation `noise` C; 0 before the first."""
    return math.sqrt(steps) / noise if steps else 0.0


def delta_of(epsilon: float, mu: float) -> float:
    """Return the least delta with which mu is (epsilon, delta)-private.

    Example:
        >>> from explorer.engine.private import delta_of
        >>> f"{delta_of(1.0, 1 / 3.7306):.1e}"  # Balle and Wang 2018: sigma 3.73
        '1.0e-05'
    """
    if not mu:
        return 0.0
    far = math.exp(min(epsilon + float(log_ndtr(-mu / 2 - epsilon / mu)), 0.0))
    return max(float(ndtr(mu / 2 - epsilon / mu)) - far, 0.0)


def epsilon_of(mu: float, delta: float = DELTA) -> float:
    """Return the least epsilon for mu at this delta."""
    if delta_of(0.0, mu) <= delta:
        return 0.0
    most = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta))  # by zCDP: Bun and Steinke 2016
    return float(brentq(lambda epsilon: delta_of(epsilon, mu) - delta, 0.0, most, xtol=1e-9))


def noise_for(epsilon: float, steps: int, delta: float = DELTA) -> float:
    """Return the noise with which so many steps are (epsilon, delta)-private.

    Raises:
        ValueError: for an epsilon or a number of steps that is not positive.
    """
    if not (epsilon > 0 and steps > 0):
        raise ValueError(f"epsilon and steps must be positive; got {epsilon} and {steps}")
    most = math.sqrt(2 * epsilon) + 1.0
    mu = brentq(lambda mu: delta_of(epsilon, mu) - delta, 1e-9, 2 * most, xtol=1e-12)
    return math.sqrt(steps) / float(mu)


def reconstruction_bound(mu: float, kappa: float) -> float:
    """Return the largest probability of coming within eta of the one unknown point.

    Args:
        mu: of the training.
        kappa: the most that the prior of the point puts within eta of any one place; of several
            guesses their sum.

    Returns:
        The probability; `kappa` where mu is 0.
    """
    return float(ndtr(ndtri(min(kappa, 1.0)) + mu)) if kappa > 0 else 0.0
