"""KKT reconstruction and DecoReco of a convolution: candidates that explain its shared weights.

    l = || theta - sum_i c_i grad Phi(theta; x_i) ||^2 / ||theta||^2

over candidates x (m, d), with c_i = lam_i y_i, lam_i >= 0 and labels y kept for KKT (Haim et al.
2022), and c_i of any sign for DecoReco's "outputs" (Buzaglo et al. 2023). Both are solved for at
each step. Phi is a sum over patches, so l is the loss of `kernels.reference` of all patches, whose
gradient on a candidate is the sum of those on its patches. As there, slopes are sigmoid(alpha z).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.attacks.descent import PUT_BACK, DescentConfig, descent_step
from explorer.engine.classes import fair_labels
from explorer.engine.convolution import Convolution
from explorer.engine.gradients import relaxed_slope
from explorer.engine.kernels.reference import denormals_flushed, input_gradient, stationarity
from explorer.engine.nonnegative import cone_coefficients, signed_coefficients
from explorer.engine.optim import Moments


@dataclass(frozen=True, eq=False)
class ConvolvedState:
    """One iterate.

    Attributes:
        t: iteration.
        x: candidates (m, d).
        y: their labels (m,); for coefficients of any sign those of the last step.
        lam: multipliers (m,), sizes of the coefficients.
        left: share of ||theta||^2 left unexplained, ().
        grad_x: gradient of the loss (m, d).
        moments: of the optimiser.
    """

    t: int
    x: Tensor
    y: Tensor
    lam: Tensor
    left: Tensor
    grad_x: Tensor
    moments: Moments


def iterate(
    made: Convolution, config: DescentConfig, box: tuple[Tensor, Tensor], signed: bool,
    generator: torch.Generator,
) -> Iterator[ConvolvedState]:  # fmt: skip
    """Yield the states of an attack from noise, the first included, `config.steps` and one.

    Args:
        made: the attacked weights, at margin 1.
        config: the settings; of these `m`, `steps`, the rates, the noise, the slope, `lam_min` and
            `weight_margin` count.
        box: the least and largest value of each coordinate (d,), which the attacker knows; every
            `PUT_BACK` steps candidates go back there.
        signed: whether coefficients have any sign, as of DecoReco.
        generator: draws the candidates.
    """
    d = len(made.places)
    x = config.sigma_x * torch.randn(config.m, d, generator=generator, dtype=torch.float64)
    y = fair_labels(config.m, 1)
    state = evaluate(made, config, 0, x.clamp(*box), y, Moments.zero((x,)), signed)
    yield state
    for t in range(1, config.steps + 1):
        (x,), moments = descent_step(
            config.optimizer, (state.x,), state.moments, (state.grad_x,),
            (config.lr_x * config.rate(state.t),), config.momentum,
        )  # fmt: skip
        if t % PUT_BACK == 0 or t == config.steps:
            x = x.clamp(*box)
        state = evaluate(made, config, t, x, y, moments, signed)
        yield state


@torch.no_grad()
@denormals_flushed()
def evaluate(
    made: Convolution, config: DescentConfig, t: int, x: Tensor, y: Tensor, moments: Moments,
    signed: bool = False,
) -> ConvolvedState:  # fmt: skip
    """Return the state at candidates x (m, d) with labels y (m,), its coefficients solved for."""
    net, alpha, places = made.net, config.alpha(t), len(made.places)
    at, theta = made.signals(x, relaxed_slope(alpha)), net.theta
    rows = y[:, None] * made.gradients(at)
    gram, inner, rho2 = rows @ rows.T, rows @ theta, theta.square().sum()
    if signed:
        lam = signed_coefficients(gram, inner)
    else:
        lam = cone_coefficients(gram, inner, config.lam_min * float(rho2) / (2 * len(x)))
    labels, weights = (v.repeat_interleave(places) for v in (y, lam))
    fit = stationarity(net, at, labels, weights, alpha)
    grad = fit.grad_x / rho2
    pull = 0.0 if signed else config.weight_margin * min(t / config.steps, 1.0)
    if pull:
        off = 2 * pull * y * (y * made.outputs(at) - 1)
        grad = grad + off.repeat_interleave(places)[:, None] * input_gradient(net, at)
    y = torch.where(lam < 0, -y, y)
    return ConvolvedState(t, x, y, lam.abs(), fit.loss / rho2, made.of_points(grad), moments)
