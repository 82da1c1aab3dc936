r"""The multipliers of `decoreco` that leave least of the weights unexplained.

    min || theta - sum_ik c_ik g_ik ||^2,   g_ik = grad <basis_ik, Phi(x_i)>,   c >= floor or signed

`projected` solves the normal equations with a ridge of 1e-10, which leaves up to 6e-14 of
||theta||^2 where nothing need be left (measured on networks trained with weight decay, at their
training points). The gradient on the candidates is then rounding, up to 4e-8, but Adam divides a
gradient by its own size and walks away from the truth on it at full step. So where less than `FINE`
is left, the residual is formed itself and the multipliers are corrected by it: 2e-30 is left, and
a gradient of 1e-16, below Adam's eps of 1e-12.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from explorer.engine.attacks.descent import RIDGE, projected
from explorer.engine.attacks.stationarity import Signals, covered, normal_equations, stationarity
from explorer.engine.factor import factored, held
from explorer.engine.network import Network

FINE = (
    1e-10  # of ||theta||^2; arbitrary: well above what the ridge leaves, well below real residuals
)
_ROUNDS = 3  # corrections; measured: two are enough on ten networks trained with weight decay


def fitted(
    net: Network, at: Signals, basis: Tensor, floor: float, signed: bool, alpha: float
) -> Tensor:
    """The multipliers (m, k) of least stationarity loss at these candidates.

    Args:
        net: the weights to explain.
        at: the candidates' values under the modified ReLU.
        basis: the covector of every multiplier, (m, k, C).
        floor: the least multiplier.
        signed: any sign, no floor.
        alpha: of the modified ReLU.
    """
    m, k, _ = basis.shape
    rows = covered(net, at, basis.flatten(0, 1), torch.arange(m).repeat_interleave(k))
    gram, inner = normal_equations(rows)
    coef, rho2 = projected(gram, inner, floor, signed), float(net.rho) ** 2
    left = rho2 - 2 * float(coef @ inner) + float(coef @ gram @ coef)
    if left < FINE * rho2:  # not so where coef is nan
        coef = _corrected(net, at, basis, coef, gram, -math.inf if signed else floor, alpha)
    return coef.reshape(m, k)


def _corrected(
    net: Network, at: Signals, basis: Tensor, coef: Tensor, gram: Tensor, floor: float, alpha: float
) -> Tensor:
    """`coef` (m k,) improved on those above the floor, as long as the residual itself shrinks."""
    ones = basis.new_ones(len(basis))
    free = coef > floor
    kept = gram[free][:, free]
    factor = factored(kept, RIDGE * gram.trace() + held(kept.diagonal(), kept.dtype))
    best, least = coef, math.inf
    for turn in range(_ROUNDS + 1):
        pull = (coef.reshape(basis.shape[:2])[:, :, None] * basis).sum(1)
        now = stationarity(net, covered(net, at, pull), ones, ones, alpha)
        if not float(now.loss) < least:
            break
        best, least = coef, float(now.loss)
        if turn < _ROUNDS:
            slope = -(now.grad_cover[:, None, :] * basis).sum(2).flatten() / 2
            more = torch.cholesky_solve(slope[free][:, None], factor)[:, 0]
            coef = coef.index_put((free,), more, accumulate=True).clamp_min(floor)
    return best
