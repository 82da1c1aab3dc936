r"""Networks trained with weight decay to a stationary point, and the multipliers of their points.

    Loss(theta) = (1/n) sum_i l(Phi(theta; x_i), y_i) + (mu/2) ||theta||^2

At any theta, with lam_i = -grad l(Phi(x_i), y_i) / (n mu) in R^C,

    theta - sum_i sum_c lam_ic grad Phi_c(theta; x_i) = grad Loss(theta) / mu,

so that at a stationary point the weights are exactly this sum of the points' gradients (Buzaglo et
al. 2023, restated; see the paper for the original). No homogeneity is needed: biases may be in all
layers. Losses: "squared" (Phi - y)^2 summed over outputs, "logistic" log(1 + e^{-y Phi}) with one
output and the cross-entropy with several.

Weights are found by L-BFGS and polished by Newton's method. A ReLU network has stationary points on
kinks, where a preactivation is 0 and the gradient jumps: there no run reaches a small gradient, and
`settle` takes the next initialisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor
from torch.nn.functional import softplus

from explorer.engine import backprop
from explorer.engine.classes import check_labels, class_numbers
from explorer.engine.gradients import residual
from explorer.engine.network import Network, init_network
from explorer.engine.settings import setting, settings

DecayLoss = Literal["squared", "logistic"]

_SMALL = 1e-10  # gradient norm at which a run counts as settled; measured: most runs reach 1e-13
ZERO_NORM = 1e-4  # arbitrary: weights whose norm is less are zero but for rounding
_ITERATIONS = 200  # of L-BFGS; arbitrary
_KINKED = (
    1e-4  # a gradient above it after L-BFGS: the run sits on a kink; measured, those are 1e-3 up
)
_NEWTON = 25  # steps of the polish; arbitrary, it doubles the digits at each


@settings
class DecayConfig:
    """A training with weight decay."""

    # fmt: off
    widths: Annotated[tuple[Annotated[int, setting("Of one layer", ge=1)], ...], setting(
        "Hidden widths, first layer first", unit="neurons", strict=False, min_length=1,
        note="Two neurons on 30 points settle from about half of the initialisations; the more "
        "neurons for the points, the more end on kinks.",
    )] = (2,)
    loss: Annotated[DecayLoss, setting(
        "The squared error, or the logistic loss: the cross-entropy with several classes",
    )] = "logistic"
    weight_decay: Annotated[float, setting(
        "Weight decay mu, of mean loss + mu/2 |theta|^2", gt=0,
        note="That of torch's SGD on the mean loss (published: 7.5e-4).",
    )] = 0.003
    all_biases: Annotated[bool, setting(
        "Whether every layer has a bias; else the first alone",
    )] = True
    init_scale: Annotated[float, setting("Standard deviation of the first layer", gt=0)] = 0.7
    tries: Annotated[int, setting("Initialisations before giving up", ge=1)] = 20
    # fmt: on


@dataclass(frozen=True, eq=False)
class Decayed:
    """A network trained with weight decay.

    Attributes:
        net: the weights.
        loss: the value of Loss.
        gradient_norm: || grad Loss ||.
        lam: multipliers (n, C) of the training points.
        residual: || theta - sum_i sum_c lam_ic grad Phi_c(x_i) ||.
        attempt: which initialisation this is, from 0.
    """

    net: Network
    loss: float
    gradient_norm: float
    lam: Tensor
    residual: float
    attempt: int


def pulls(values: Tensor, y: Tensor, loss: DecayLoss) -> tuple[Tensor, Tensor]:
    """Return each point's l (n,) and -grad l (n, C) at outputs (n, C).

    y: labels (n,); for "squared" also targets (n, C) of a regression. Labels become the targets
    -1 and 1, or one-hot rows with several outputs.
    """
    if loss == "squared":
        apart = _targets(values, y) - values
        return apart.square().sum(1), 2 * apart
    if values.shape[1] == 1:
        margin = y * values[:, 0]
        return softplus(-margin), (y * torch.sigmoid(-margin))[:, None]
    one_hot = _targets(values, y)
    log_p = torch.log_softmax(values, 1)
    return -(one_hot * log_p).sum(1), one_hot - log_p.exp()


def _targets(values: Tensor, y: Tensor) -> Tensor:
    if y.ndim == 2 or values.shape[1] == 1:
        return y.reshape(values.shape).to(values)
    check_labels(y, values.shape[1])
    return torch.eye(values.shape[1], dtype=values.dtype)[class_numbers(y) - 1]


def multipliers(net: Network, x: Tensor, y: Tensor, loss: DecayLoss, weight_decay: float) -> Tensor:
    """Return lam_i = -grad l(Phi(x_i), y_i) / (n mu). x (n, d) -> (n, C)."""
    _, outputs = backprop.forward(net, x)
    return pulls(outputs, y, loss)[1] / (len(x) * weight_decay)


def fitted_decay(net: Network, x: Tensor, y: Tensor) -> float:
    """Return the only mu at which homogeneous weights can be stationary on these points.

    <theta, theta> = sum_i <lam_i, order Phi(x_i)> by Euler's identity, with lam_i as in
    `multipliers` of the logistic loss: mu = order mean_i <-grad l, Phi(x_i)> / |theta|^2. It is
    negative where errors weigh more than the rest. 0 for weights that are not homogeneous.
    """
    if not net.homogeneous:
        return 0.0
    _, outputs = backprop.forward(net, x)
    pull = pulls(outputs, y, "logistic")[1]
    return net.order * float((pull * outputs).sum(1).mean()) / float(net.rho) ** 2


def stationarity_remainder(net: Network, x: Tensor, lam: Tensor) -> Tensor:
    """Return theta - sum_i sum_c lam_ic grad Phi_c(x_i). x (n, d), lam (n, C) -> (P,)."""
    return residual(net, x, torch.ones(len(x), dtype=x.dtype), cover=lam)


def objective(
    net: Network, x: Tensor, y: Tensor, loss: DecayLoss, weight_decay: float
) -> tuple[float, Tensor]:
    """Return the loss and its gradient (P,), by the closed-form pass of training."""
    inputs, outputs = backprop.forward(net, x)
    each, pull = pulls(outputs, y, loss)
    values = backprop.backward(net, inputs, outputs, pull)
    coef = torch.full_like(each, -1 / len(x))
    theta = net.theta
    total = float(each.mean()) + weight_decay / 2 * float(theta @ theta)
    return total, backprop.combined_gradient(net, values, coef) + weight_decay * theta


def settle(
    x: Tensor, y: Tensor, config: DecayConfig, generator: torch.Generator, outputs: int = 1
) -> Decayed:
    """Train until || grad Loss || < 1e-10, from one initialisation after another.

    Args:
        x: points (n, d), float64.
        y: labels (n,), or targets (n, C) for "squared".
        config: what to train.
        generator: of the initialisations.
        outputs: C.

    Raises:
        ValueError: where every try ended on a kink, or at weights of zero: these are stationary,
            and tell nothing of the points.
    """
    best, zero = float("inf"), 0
    for attempt in range(config.tries):
        net = _begin(x.shape[1], config, generator, outputs)
        net = _descend(net, x, y, config)
        if float(objective(net, x, y, config.loss, config.weight_decay)[1].norm()) < _KINKED:
            net = _polish(net, x, y, config)
        loss, grad = objective(net, x, y, config.loss, config.weight_decay)
        if float(net.rho) < ZERO_NORM:
            zero += 1
            continue
        best = min(best, float(grad.norm()))
        if float(grad.norm()) < _SMALL:
            lam = multipliers(net, x, y, config.loss, config.weight_decay)
            left = float(stationarity_remainder(net, x, lam).norm())
            return Decayed(net, loss, float(grad.norm()), lam, left, attempt)
    if zero == config.tries:
        raise ValueError(
            f"all of {zero} initialisations ended at weights of zero, which tell nothing of the "
            f"points. Take a smaller weight decay than {config.weight_decay:g}."
        )
    raise ValueError(
        f"none of {config.tries} initialisations settled: {config.tries - zero} ended on a kink, "
        f"the least gradient being {best:.1e}, and {zero} at weights of zero. Take another seed, "
        "fewer neurons or another weight decay."
    )


def _begin(d: int, config: DecayConfig, generator: torch.Generator, outputs: int) -> Network:
    net = init_network(
        d, config.widths, generator=generator, first_scale=config.init_scale, outputs=outputs
    )
    if not config.all_biases:
        return net
    rest = [torch.zeros(len(w), dtype=w.dtype) for w in net.weights[1:]]
    return Network(net.weights, (net.biases[0], *rest))


def _descend(net: Network, x: Tensor, y: Tensor, config: DecayConfig) -> Network:
    def value(theta: np.ndarray) -> tuple[float, np.ndarray]:
        at = net.with_theta(torch.from_numpy(theta))
        loss, grad = objective(at, x, y, config.loss, config.weight_decay)
        return loss, grad.numpy()

    found = minimize(
        value, net.theta.numpy(), jac=True, method="L-BFGS-B",
        options={"maxiter": _ITERATIONS, "maxfun": 2 * _ITERATIONS, "ftol": 0.0, "gtol": 1e-9,
                 "maxcor": 30},
    )  # fmt: skip
    return net.with_theta(torch.from_numpy(np.ascontiguousarray(found.x)))


def _polish(net: Network, x: Tensor, y: Tensor, config: DecayConfig) -> Network:
    """Take Newton steps on the gradient as long as it shrinks; smooth if no kink is crossed."""
    mu = config.weight_decay

    def grad(theta: Tensor) -> Tensor:
        return objective(net.with_theta(theta), x, y, config.loss, mu)[1]

    theta = net.theta
    for _ in range(_NEWTON):
        now = grad(theta)
        if float(now.norm()) < 1e-3 * _SMALL:
            break
        step = 1e-6 * (1 + theta.abs())  # arbitrary: central differences of a smooth function
        rows = [
            (grad(theta + h * e) - grad(theta - h * e)) / (2 * h)
            for h, e in zip(step, torch.eye(len(theta), dtype=theta.dtype), strict=True)
        ]
        hessian = torch.stack(rows)
        # Flat directions (neurons that are off, permuted copies) have no say in the step.
        moved = (
            theta
            - torch.linalg.lstsq(
                (hessian + hessian.T) / 2, now[:, None], rcond=1e-9, driver="gelsd"
            ).solution[:, 0]
        )
        if not float(grad(moved).norm()) < float(now.norm()):
            break
        theta = moved
    return net.with_theta(theta)
