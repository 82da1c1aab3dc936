r"""How close the weights are to a KKT point of the maximum-margin problem, in numbers.

    (P)  min 1/2 ||theta||^2  subject to  y_i Phi(theta; x_i) >= 1
    theta = sum_i lam_i y_i g_i,   g_i in dPhi(x_i),   lam_i >= 0,   lam_i (q_i - 1) = 0

With several outputs q_i = Phi_{y_i} - max_{c != y_i} Phi_c takes the place of y_i Phi, and grad q_i
that of y_i g_i; rivals that tie within `tau` are free like slopes at a kink (`classes`).

Gradient flow on the exponential or logistic loss converges in direction to such a point (Lyu and
Li 2020; Ji and Telgarsky 2020). What the light must not be read as: a KKT point need not be the
maximum margin; multipliers need not be unique; a point with lam_i = 0 leaves no trace in theta;
and slopes are free within `tau` of a kink. Where a neuron passes a point at a distance below tau,
that grants it a slope which it does not have, and a network far from any KKT point may be explained
whole. So "exact" is said only where slopes free within `TAU_EXACT` explain the weights as well,
and the two identities hold that need no slope (`balance`, `norm_identity`). Of two layers with one
output a linear program asks for those slopes (`exact_multipliers`), and its kinks are in units of
the data: the verdict is the same wherever the points lie and however large they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from explorer.engine.classes import contrast
from explorer.engine.even_multipliers import EXACT, even_multipliers
from explorer.engine.gradients import gram, inner_theta
from explorer.engine.margin import Loss, gamma_bar, log_slopes, q_of
from explorer.engine.multipliers import Fit, exact_multipliers, fit_multipliers
from explorer.engine.network import Network, phi_all, scaled_network
from explorer.engine.rounding import at_edge
from explorer.engine.threads import few_threads

TAU_TRAINED = 1e-2  # measured: trained networks need 1e-3 to 3e-2
TAU_EXACT = 1e-6  # measured: exactly built networks, after rounding

# Relative size of the larger of residual and slackness, up to which each light shows; arbitrary.
# Both lie far from the first at exact networks (1e-10); at the others a fit is good to 1% only.
NEAR, _APPROACHING = 0.05, 0.3
_EVEN = 1e-7  # arbitrary: far above what even multipliers leave (1e-10), below EXACT
ON_MARGIN = 0.01  # arbitrary: a point within 1% of q_min counts as on the margin
SLACK_PRICE = 1e-3  # arbitrary: breaks ties between multipliers in favour of points on the margin
SUPPORT = 1e-3  # arbitrary: multipliers below this share of the largest are not counted


class Light(Enum):
    """How close the weights are to a KKT point of the margin problem.

    EXACT, NEAR and APPROACHING bound the larger of residual and slackness by 1e-6, 0.05 and 0.3;
    these bounds are arbitrary.

    Example:
        >>> from explorer import Light
        >>> [light.value for light in Light]
        ['not separated', 'separated', 'approaching', 'near', 'exact']
    """

    NOT_SEPARATED = "not separated"
    SEPARATED = "separated"
    APPROACHING = "approaching"
    NEAR = "near"
    EXACT = "exact"


@dataclass(frozen=True, eq=False)
class Certificate:
    """How well the weights fulfil the conditions of the margin problem (P).

    The relative numbers are shares of |theta|, or as stated.

    Attributes:
        q: margins (n,) of the network as given.
        q_min: their minimum; 0 for no points.
        on_margin: (n,) bool, within 1% of q_min.
        lam: multipliers (n,) of the network rescaled to margin 1.
        residual_strict: |theta - sum| / |theta| with torch's own slopes, 0 at 0.
        residual: the same with free slopes at the kinks; attained by lam and some slopes, and
            never above the strict one. Both fits weigh slackness a little (see `certify`).
        tau: relative distance below which a slope was free.
        n_kinks: how many (neuron, point) pairs that freed.
        slackness: sum_i lam_i (q_i / q_min - 1) / sum_i lam_i.
        primal_violation: max_i (1 - q_i)_+ after rescaling to margin 1; before it if not separated.
        norm_identity: | |theta|^2 - order sum_i lam_i q_i | / |theta|^2.
        balance: max_j | |in_j|^2 - |out_j|^2 | / max_j (|in_j|^2 + |out_j|^2), over hidden neurons.
        gamma_bar: q_min / rho^order.
        light: the verdict.
        residual_exact: the residual with slopes free within `TAU_EXACT` alone; None where the
            light did not ask for it.
        at_edge: whether rounding may decide on the light, before that was asked.
        fit: the multipliers with the slopes that attain `residual`; None where not separated.

    Source: Lyu and Li 2020, section 2 and appendix C; the kinks and the light are our own.

    Example:
        >>> import torch
        >>> from explorer import certify, maximum_margin
        >>> x, y = torch.tensor([[-1.0], [1.0]]).double(), torch.tensor([-1.0, 1.0]).double()
        >>> made = certify(maximum_margin(x, y).net, x, y)
        >>> made.light.value, made.n_support, round(made.q_min, 4)
        ('exact', 2, 1.0)
    """

    q: Tensor
    q_min: float
    on_margin: Tensor
    lam: Tensor
    residual_strict: float
    residual: float
    tau: float
    n_kinks: int
    slackness: float
    primal_violation: float
    norm_identity: float
    balance: float
    gamma_bar: float
    light: Light
    residual_exact: float | None = None
    at_edge: bool = False
    fit: Fit | None = None

    @property
    def n_support(self) -> int:
        """Return the number of points whose multiplier is above `SUPPORT` of the largest."""
        return int(carries(self.lam).sum())


def carries(lam: Tensor) -> Tensor:
    """Return which multipliers (n,) are above `SUPPORT` of the largest (n,) bool."""
    return lam > SUPPORT * lam.max() if len(lam) else lam > 0


def holds_margin(q: Tensor) -> Tensor:
    """Return which points (n,) bool hold the margin: within `ON_MARGIN` of the least of q (n,).

    None does while a point is on the wrong side: then there is no margin.

    Example:
        >>> import torch
        >>> holds_margin(torch.tensor([2.0, 2.01, 3.0])).tolist()
        [True, True, False]
    """
    low = q.min() if len(q) else q.new_zeros(())
    return (q <= (1 + ON_MARGIN) * low) & (low > 0) & low.isfinite()


def in_reach(made: Certificate | None, n: int) -> Tensor | None:
    """Return the points (n,) bool on the margin or with a multiplier.

    At a KKT point only these leave a trace.

    None where that is not known: without a certificate of n points, or far from a KKT point, as
    after short training or training with weight decay, where every point carries a multiplier.
    """
    if made is None or not n or len(made.lam) != n or made.light not in (Light.NEAR, Light.EXACT):
        return None
    return made.on_margin | carries(made.lam)


def balance(net: Network) -> float:
    """Return max_j | |in_j|^2 - |out_j|^2 | / max_j (|in_j|^2 + |out_j|^2) over hidden neurons.

    Zero at every KKT point; each difference is constant along the gradient flow (Du et al. 2018).
    """
    worst, size = 0.0, 0.0
    for w, b, after in zip(net.weights[:-1], net.biases[:-1], net.weights[1:], strict=True):
        incoming = w.square().sum(dim=1)
        if b is not None:
            incoming = incoming + b.square()
        outgoing = after.square().sum(dim=0)
        worst = max(worst, float((incoming - outgoing).abs().max()))
        size = max(size, float((incoming + outgoing).max()))
    return worst / size if size > 0 else 0.0


def gradient_multipliers(
    net: Network, x: Tensor, y: Tensor, loss: Loss = "exponential", log_gain: float = 0.0
) -> tuple[Tensor, float] | None:
    """Return the multipliers that the gradient of the loss itself gives, and beta.

    lam_i = q_min^(1 - 2/order) rho |l'(q_i)| / |theta'|, for the network rescaled to margin 1, with
    theta' = sum_i |l'(q_i)| y_i grad Phi(x_i) and beta = <theta, theta'> / (rho |theta'|). Exactly
    |theta - sum_i lam_i y_i grad Phi| = sqrt(2 (1 - beta)) gamma_bar^(-1/order) at margin 1 (Lyu
    and Li 2020, appendix C, restated; see the paper for the original).

    x (n, d), y (n,) -> (lam (n,), beta); None where theta' = 0 or the points are not separated.
    `log_gain`: see `margin`.
    """
    q = q_of(net, x, y)
    if not len(q) or not float(q.min()) > 0:
        return None
    pull = torch.softmax(log_slopes(q, loss, log_gain), 0).to(q)
    cover = contrast(phi_all(net, x), y)
    speed = float((pull @ gram(net, x, cover=cover) @ pull).clamp_min(0).sqrt())
    rho = float(net.rho)
    if speed == 0:
        return None
    lam = float(q.min()) ** (1 - 2 / net.order) * rho * pull / speed
    return lam, float(pull @ inner_theta(net, x, cover=cover)) / (rho * speed)


def _light(off: float) -> Light:
    if off <= EXACT:
        return Light.EXACT
    if off <= NEAR:
        return Light.NEAR
    return Light.APPROACHING if off <= _APPROACHING else Light.SEPARATED


@dataclass(frozen=True, eq=False)
class _Priced:
    """A fit of the network at margin 1, and what follows from its multipliers."""

    lam: Tensor
    n_kinks: int
    residual: float
    slackness: float
    norm_identity: float
    fit: Fit | None = None

    @property
    def off(self) -> float:
        return max(self.residual, self.slackness)

    @property
    def exact(self) -> bool:
        return max(self.off, self.norm_identity) <= EXACT


def _fit_at(one: Network, x: Tensor, y: Tensor, ratio: Tensor, tau: float) -> _Priced:
    """Return the fit at `tau`, for the network at margin 1 and ratio = q / q_min (n,)."""
    # With order * sum lam = rho^2 this is 1/2 residual^2 + SLACK_PRICE * slackness, times rho^2.
    price = SLACK_PRICE * one.order * (ratio - 1)
    fit = fit_multipliers(one, x, y, tau=tau, price=price)
    found = _measure(fit, one, ratio)
    if tau < 0:
        return found
    even = _measure(even_multipliers(one, x, y, tau, fit, price), one, ratio)
    return even if even.off <= _EVEN else found  # points of very different size leave it none


def _measure(fit: Fit, one: Network, ratio: Tensor) -> _Priced:
    mass, norm2 = float(fit.lam.sum()), float(one.rho) ** 2
    slackness = float(fit.lam @ (ratio - 1)) / mass if mass > 0 else 0.0
    identity = abs(norm2 - one.order * float(fit.lam @ ratio)) / norm2
    return _Priced(fit.lam, fit.n_kinks, fit.residual, slackness, identity, fit)


def _whole(one: Network, x: Tensor, y: Tensor, ratio: Tensor, tau: float) -> _Priced | None:
    """Return what explains two layers of one output whole, up to `EXACT`; None if nothing does."""
    if len(one.weights) != 2 or one.outputs != 1:
        return None
    found = exact_multipliers(one, x, y, min(tau, TAU_EXACT))
    made = None if found is None else _measure(found, one, ratio)
    return made if made is not None and made.exact else None


def _verdict(
    one: Network, x: Tensor, y: Tensor, ratio: Tensor, tau: float, fits: tuple[_Priced, _Priced],
    uneven: float,
) -> tuple[_Priced, Light, float | None]:  # fmt: skip
    """Return the fit that holds, the light, and the residual at `TAU_EXACT` if it was asked for."""
    fit, strict = fits
    if uneven <= EXACT:
        whole = strict if strict.exact else _whole(one, x, y, ratio, tau)
        if whole is not None:
            asked = tau > TAU_EXACT and fit is not strict
            return (
                fit if fit.off <= EXACT else whole,
                Light.EXACT,
                whole.residual if asked else None,
            )
    light = _light(fit.off)
    if light is not Light.EXACT:
        return fit, light, None
    sharp = fit
    if tau > TAU_EXACT and fit is not strict:
        sharp = _fit_at(one, x, y, ratio, TAU_EXACT)
    known = len(one.weights) != 2 or one.outputs != 1  # else `_whole` was asked
    exact = known and sharp.exact and uneven <= EXACT
    return fit, light if exact else Light.NEAR, None if sharp is fit else sharp.residual


def _certificate(
    net: Network, q: Tensor, q_min: float, tau: float, fits: tuple[_Priced, _Priced], light: Light,
    violation: float, **more: Any,  # noqa: ANN401 - what only separated points have
) -> Certificate:  # fmt: skip
    fit, strict = fits
    return Certificate(
        q=q, q_min=q_min, lam=fit.lam.to(q), residual_strict=strict.residual,
        on_margin=holds_margin(q),
        residual=fit.residual, tau=tau, n_kinks=fit.n_kinks, slackness=fit.slackness,
        primal_violation=max(0.0, violation), norm_identity=fit.norm_identity, balance=balance(net),
        gamma_bar=gamma_bar(q_min, net.rho, net.order), light=light, fit=fit.fit, **more,
    )  # fmt: skip


@few_threads()
def certify(net: Network, x: Tensor, y: Tensor, tau: float = TAU_TRAINED) -> Certificate:
    """Return the certificate of the network, rescaled to margin 1, on labelled points.

    It is of the weights as they are: neurons are not merged first, because merging balances them
    and would hide how far the weights themselves are from a KKT point. Multipliers are seldom
    unique: of near-equal fits the one of least slackness is taken, at a residual that may exceed
    the least possible by about sqrt(2 * 1e-3 * slackness saved) of |theta|, at worst. Weights and
    points of any device are taken; the certificate is made on the CPU, in the network's unit.

    Args:
        net: a homogeneous network, with one output or one per class.
        x: points (n, d); n may be 0.
        y: labels (n,); see `Dataset`.
        tau: a slope is free where |z_ij| <= tau |w~_j| |a_i|, a pure number. `TAU_TRAINED` for
            trained weights, `TAU_EXACT` for exactly built ones.

    Returns:
        The numbers; unseparated points get the light NOT_SEPARATED, lam = 0 and residual 1.

    Raises:
        ValueError: where `tau` is negative, shapes do not fit, or the network is not homogeneous
            and so has no margin.

    Source: Lyu and Li 2020, section 2 and appendix C; free slopes at the kinks are our own.

    Example:
        >>> from explorer import certify, maximum_margin, preset
        >>> data = preset("alternating-circle", n=8)
        >>> exact = maximum_margin(data.x, data.y)
        >>> made = certify(exact.net, data.x, data.y)
        >>> made.light, made.residual < 1e-8
        (<Light.EXACT: 'exact'>, True)
    """
    if not tau >= 0:
        raise ValueError(f"tau must be at least 0; got {tau}. Try 0.01, or 1e-6 for exact nets.")
    net = net.with_parameters([p.detach().cpu() for p in net.parameters])
    x, y = x.cpu() / net.unit, y.cpu()
    net = net.in_unit()
    q = q_of(net, x, y).detach()
    q_min = float(q.min()) if len(q) else 0.0
    if not (q_min > 0 and math.isfinite(q_min)):
        none, short = _Priced(torch.zeros_like(q), 0, 1.0, 0.0, 1.0), 1 - q_min if len(q) else 0.0
        return _certificate(net, q, q_min, tau, (none, none), Light.NOT_SEPARATED, short)
    one = scaled_network(net, q_min ** (-1 / net.order))
    ratio = (q / q_min).cpu().double()
    strict = _fit_at(one, x, y, ratio, -1.0)
    fit = _fit_at(one, x, y, ratio, tau)
    if fit.residual > strict.residual:  # both are attained; a capped search may end above
        fit = strict
    fit, light, sharp = _verdict(one, x, y, ratio, tau, (fit, strict), balance(net))
    return _certificate(
        net, q, q_min, tau, (fit, strict), light, 1 - float(q_of(one, x, y).min()),
        residual_exact=sharp,
        at_edge=any(at_edge(fit.off, limit) for limit in (EXACT, NEAR, _APPROACHING)),
    )  # fmt: skip
