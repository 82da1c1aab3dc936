r"""Margins, raw, normalised and smoothed, in a domain where nothing overflows.

    q_i = y_i Phi(theta; x_i), or Phi_{y_i} - max_{c != y_i} Phi_c with several outputs (`classes`)
    gamma_bar = q_min / rho^order,    gamma_tilde = l^{-1}(Loss) / rho^order

with Loss = sum_i l(q_i) (Lyu and Li 2020, definitions 1 and 2; the logistic inverse is their
appendix A, restated; see the paper for the original). On the exponential loss
gamma_bar - log(n)/rho^order <= gamma_tilde <= gamma_bar, and gamma_tilde never falls along the
gradient flow once the points are separated.

A network whose norm has left the range of doubles is carried as (theta, log_scale), the true
weights being exp(log_scale) theta. The functions here then take the q of the carried theta and
`log_gain = order * log_scale`: the true outputs are exp(log_gain) q.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from explorer.engine.classes import margins
from explorer.engine.network import Network, phi_all, scaled_network

Loss = Literal["exponential", "logistic"]

MAX_LOG_GAIN = 600.0  # arbitrary, below log(1.8e308): beyond it gamma_tilde is gamma_bar anyway
_FAR = 36.0  # log1p(exp(-t)) = exp(-t) in float64 for t > 36
_TINY_LOG_LOSS = math.log(1e-12)  # below it log(expm1(loss)) = log(loss) to 1e-12


def q_of(net: Network, x: Tensor, y: Tensor) -> Tensor:
    """Return the margins q_i of labelled points.

    With one output q_i = y_i Phi(theta; x_i); with several q_i = Phi_{y_i} - max_{c != y_i} Phi_c.

    Args:
        net: a network.
        x: points (n, d).
        y: labels (n,); see `Dataset`.

    Returns:
        The margins (n,), in units of Phi. They are positive where a point is on its side.

    Raises:
        ValueError: where x and y do not fit each other or the network.

    Source: Lyu and Li 2020, section 2; Buzaglo et al. 2023 for several classes.

    Example:
        >>> import torch
        >>> from explorer import Network, q_of
        >>> net = Network((torch.tensor([[1.0]]), torch.tensor([[2.0]])), (None, None))
        >>> q_of(net, torch.tensor([[3.0], [1.0]]), torch.tensor([1.0, -1.0]))
        tensor([ 6., -2.])
    """
    if y.shape != x.shape[:1]:
        raise ValueError(f"y must be ({len(x)},), one label per point; got {tuple(y.shape)}")
    return margins(phi_all(net, x), y)


def usable_margin(q: Tensor) -> float:
    """Return the least of the margins (n,), or where some are 0 or less the median of the others.

    No theorem leads weights with training errors to a KKT point; attacks need a scale all the same.
    Raises ValueError where no margin is above 0.
    """
    right = q[q > 0]
    if not len(right):
        raise ValueError("no point is on its side, so there is no margin")
    return float(q.min() if len(right) == len(q) else right.median())


def gamma_bar(q_min: float | Tensor, rho: float | Tensor, order: int) -> float:
    """Return the normalised margin q_min / rho^order (Lyu and Li 2020, definition 1).

    0 when rho = 0.
    """
    rho = float(rho)
    return float(q_min) / rho**order if rho > 0 else 0.0


def gain_of(log_gain: float) -> float:
    """Return the factor between carried and true outputs; a log_gain above 600 counts as 600."""
    return math.exp(min(log_gain, MAX_LOG_GAIN))


def _true_margins(q: Tensor, log_gain: float) -> Tensor:
    """Return the true margins, in float64 on the CPU."""
    return gain_of(log_gain) * q.detach().cpu().double()


def log_each(t: Tensor, loss: Loss) -> Tensor:
    """Return Log-losses log l(t_i) of true margins t (n,), without ever forming l."""
    if loss == "exponential":
        return -t
    if loss == "logistic":
        return torch.where(t > _FAR, -t, softplus(-t.clamp_max(_FAR)).log())
    raise ValueError(f"loss must be 'exponential' or 'logistic'; got {loss!r}")


def log_loss(q: Tensor, loss: Loss, log_gain: float = 0.0) -> float:
    """Return the logarithm of sum_i l(q_i). q (n,) -> a float; -inf for no points (an empty sum).

    Finite for any finite q: a log_gain above 600 counts as 600.
    """
    each = log_each(_true_margins(q, log_gain), loss)
    return float(torch.logsumexp(each, 0)) if len(each) else -math.inf


def log_slopes(q: Tensor, loss: Loss, log_gain: float = 0.0) -> Tensor:
    """Return the logarithms log(-l'(q_i)) of each point's pull on the gradient. q (n,) -> (n,).

    Float64 on the CPU. Its softmax weighs the points in the direction of the gradient.
    """
    return slopes_of(_true_margins(q, log_gain), loss)


def slopes_of(t: Tensor, loss: Loss) -> Tensor:
    """Return the logarithms log(-l'(t_i)) at true margins t (n,), on their device."""
    if loss == "exponential":
        return -t
    if loss == "logistic":
        return -torch.where(t > _FAR, t, softplus(t.clamp_max(_FAR)))
    raise ValueError(f"loss must be 'exponential' or 'logistic'; got {loss!r}")


def smoothed_margin(
    log_total: float, rho: float | Tensor, order: int, loss: Loss, log_gain: float = 0.0
) -> float:
    """Return gamma_tilde = l^{-1}(sum_i l(q_i)) / rho^order (Lyu and Li 2020, definition 2).

    Args:
        log_total: the logarithm of the summed loss (`log_loss`).
        rho: norm of the carried theta.
        order: degree of homogeneity.
        loss: "exponential" or "logistic".
        log_gain: order * log_scale when the true weights are exp(log_scale) theta.

    Returns:
        A float; 0 for rho = 0.
    """
    rho = float(rho)
    if rho == 0:
        return 0.0
    gain = gain_of(log_gain)
    if loss == "exponential" or log_total < _TINY_LOG_LOSS:
        inverse = -log_total
    else:  # -log(expm1(t)) = -t - log1p(-exp(-t)) does not overflow for large t
        total = math.exp(log_total)
        inverse = -total - math.log(-math.expm1(-total))
    return inverse / gain / rho**order


def normalise(net: Network, x: Tensor, y: Tensor) -> tuple[Network, float]:
    """Return the network divided to margin 1, and the margin that was divided out.

    The new weights are q_min^(-1/order) theta. For two layers the multipliers do not change.

    Args:
        net: a homogeneous network; it is not changed.
        x: points (n, d), n >= 1.
        y: labels (n,); see `Dataset`.

    Returns:
        The network at margin 1 and the smallest margin q_min of `net`, in units of its Phi.

    Raises:
        ValueError: where a point is not on its side, there is no point, or the network is not
            homogeneous.

    Source: Lyu and Li 2020, section 2.

    Example:
        >>> import torch
        >>> from explorer import Network, normalise
        >>> net = Network((torch.tensor([[1.0]]), torch.tensor([[2.0]])), (None, None))
        >>> x, y = torch.tensor([[2.0], [3.0]]), torch.tensor([1.0, 1.0])
        >>> one, margin = normalise(net, x, y)
        >>> margin, one(x)
        (4.0, tensor([1.0000, 1.5000]))
    """
    if not len(x):
        raise ValueError("a margin needs at least one point; got none. Draw a point first.")
    q = q_of(net, x, y)
    q_min = float(q.min())
    if not q_min > 0:
        raise ValueError(
            f"not separated: {int((q <= 0).sum())} of {len(q)} points have q <= 0 "
            f"(q_min = {q_min:.3g}). Train until every point is on its side."
        )
    return scaled_network(net, q_min ** (-1 / net.order)), q_min
