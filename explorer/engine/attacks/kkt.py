r"""Reconstruction from the KKT conditions of the margin problem (Haim et al. 2022, section 4).

A trained network is nearly stationary: theta = sum_i lam_i y_i grad Phi(theta; x_i), lam_i >= 0.
The attack looks for candidates x (m, d) and multipliers lam (m,), of fixed labels, with which the
sum explains theta:

    loss = l_stationary + weight_dual l_dual + weight_prior l_prior + weight_margin l_margin
    l_stationary = || theta - sum_i lam_i y_i grad Phi(theta; x_i) ||^2 / ||theta||^2
    l_dual       = sum_i relu(lam_min - lam_i / mean)^2       mean = rho^2 / (order m)
    l_prior      = sum_i relu(|x_i| - prior)^2                over all coordinates
    l_margin     = sum_i (y_i Phi(x_i) / level - 1)^2           level = 1, see `Target`

The target is at margin 1, so the multipliers of any exact KKT point sum to rho^2 / order: all is
measured in these units, and one setting serves networks of any scale. The published code has the
raw loss with lam' = m lam: it is ||theta||^2 times ours with weight_dual = 5 mass^2 / rho^2,
weight_prior = 1 / rho^2, prior = 1, weight_margin = 0, lam_min = lam'_min / mass.

Three things beyond the paper, each off by one setting, each known to an attacker: neurons that
training made parallel are merged (`merge_angle`); alpha rises from `relu_alpha_start` (annealing,
as in Loo et al. 2023); support points lie on the margin (`weight_margin`, complementary slackness).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from scipy.optimize import nnls
from torch import Tensor

from explorer.engine.attacks.claims import Report, claims
from explorer.engine.attacks.kkt_config import KKTConfig
from explorer.engine.attacks.stationarity import (
    Signals,
    denormals_flushed,
    input_gradient,
    normal_equations,
    signals_at,
    stationarity,
)
from explorer.engine.attacks.target import Target
from explorer.engine.optim import Moments, adam_step, momentum_step
from explorer.engine.status import Status

__all__ = [
    "KKTConfig",
    "KKTState",
    "Report",
    "Start",
    "init",
    "iterate",
    "report",
    "step",
    "terminate",
]

NON_HOMOGENEOUS = True  # the loss needs no theorem, what it finds does: see `Target.caveat`

_RIDGE = 1e-10  # arbitrary, of the trace: the Gram matrix of close candidates stays definite
_EPS = 1e-12  # arbitrary: below Adam's usual 1e-8, as gradients of a share of ||theta||^2 are small


@dataclass(frozen=True, eq=False)
class Start:
    """Where to begin: candidates x (m, d) with their fixed labels y (m,) in {-1, +1}."""

    x: Tensor
    y: Tensor


@dataclass(frozen=True, eq=False)
class KKTState:
    """One iterate, with the losses and gradients of this very iterate.

    Attributes:
        t: iteration.
        x: candidates (m, d).
        y: their labels (m,), never changed.
        lam: multipliers (m,), those of the target at margin 1.
        l_stationary: share of ||theta||^2 left unexplained, ().
        l_dual: see the module, ().
        l_prior: see the module, ().
        l_margin: see the module, ().
        loss: the weighted sum, ().
        grad_x: gradient of `loss` (m, d).
        grad_lam: gradient of `loss` (m,).
        moments: of the optimiser, for x and for lam / mean; under "sgd" their mean is the velocity.
        diverged: whether the next step was not finite and was not taken.
    """

    t: int
    x: Tensor
    y: Tensor
    lam: Tensor
    l_stationary: Tensor
    l_dual: Tensor
    l_prior: Tensor
    l_margin: Tensor
    loss: Tensor
    grad_x: Tensor
    grad_lam: Tensor
    moments: Moments
    diverged: bool = False

    def numbers(self) -> dict[str, float]:
        """The parts of the loss, for curves."""
        names = ("l_stationary", "l_margin", "l_dual", "l_prior", "loss")
        return {name: float(getattr(self, name)) for name in names}


def init(
    target: Target, config: KKTConfig, generator: torch.Generator, start: Start | None = None
) -> KKTState:
    """The first iterate: x ~ N(0, sigma_x^2), half of each label, lam / mean ~ U(0, lam_start).

    With `start`, its candidates and labels are taken instead, however many they are. The published
    code draws lam' from U(0, 1) whatever the scale of the network; here the mean is known.
    """
    dtype = target.net.dtype
    if start is None:
        noise = torch.randn(config.m, target.net.d, generator=generator, dtype=torch.float64)
        x = (config.sigma_x * noise).to(dtype)
        y = torch.ones(config.m, dtype=dtype)
        y[config.m // 2 :] = -1
    else:
        x, y = start.x.detach().to(dtype).clone(), start.y.detach().to(dtype).clone()
        _check_start(target, x, y)
    uniform = torch.rand(len(x), generator=generator, dtype=torch.float64)
    share = (config.lam_start * uniform).to(dtype)
    lam = share * target.mass / len(x)
    state = _evaluate(target, config, 0, x, y, lam, Moments.zero((x, share)))
    if not _finite(state):
        raise ValueError("the loss is not finite at the start; take candidates closer to the data")
    return state


def step(target: Target, state: KKTState, config: KKTConfig) -> KKTState:
    """One full-batch step on x, and on lam by descent or by projection.

    A step that would not be finite is not taken: the same iterate comes back, `diverged`.
    """
    mean = target.mass / len(state.x)
    lr_x, lr_lam = (rate * config.rate(state.t) for rate in (config.lr_x, config.lr_lam))
    joint = config.multipliers == "joint"
    params = (state.x, state.lam / mean)
    grads = (state.grad_x, state.grad_lam * (mean if joint else 0.0))
    if config.optimizer == "adam":
        (x, share), moments = adam_step(
            params, state.moments, grads, (lr_x, lr_lam), beta_mean=config.momentum, eps=_EPS
        )
    else:
        (v_x, v_share), square = state.moments.mean, state.moments.square
        (x,), (v_x,) = momentum_step(params[:1], (v_x,), grads[:1], lr_x, config.momentum)
        (share,), (v_share,) = momentum_step(
            params[1:], (v_share,), grads[1:], lr_lam, config.momentum
        )
        moments = Moments(state.moments.t + 1, (v_x, v_share), square)
    if not (bool(torch.isfinite(x).all()) and bool(torch.isfinite(share).all())):
        return replace(state, diverged=True)
    after = _evaluate(target, config, state.t + 1, x, state.y, share * mean, moments)
    return after if _finite(after) else replace(state, diverged=True)


def terminate(state: KKTState, config: KKTConfig) -> Status:
    """How the run stands."""
    if state.diverged:
        return Status.DIVERGED
    if not (bool(state.grad_x.any()) or bool(state.grad_lam.any())):
        return Status.CONVERGED
    return Status.FINISHED if state.t >= config.steps else Status.RUNNING


def iterate(target: Target, state: KKTState, config: KKTConfig) -> Iterator[KKTState]:
    """Yield the states after `state`, until `terminate` says that the run is over."""
    while not terminate(state, config).over:
        state = step(target, state, config)
        yield state


def report(target: Target, state: KKTState, config: KKTConfig) -> Report:
    """What the attacker claims at this iterate; see `claims` for the thresholds."""
    return claims(target, state.x, state.y, state.lam)


def _check_start(target: Target, x: Tensor, y: Tensor) -> None:
    if x.ndim != 2 or x.shape[1] != target.net.d or not len(x) or y.shape != x.shape[:1]:
        raise ValueError(
            f"start needs x (m, {target.net.d}) and y (m,) with m >= 1; "
            f"got {tuple(x.shape)} and {tuple(y.shape)}"
        )
    if not bool((y.abs() == 1).all()):
        raise ValueError(f"labels must be -1 or 1; got {sorted(set(y.tolist()))}")


def _finite(state: KKTState) -> bool:
    parts = (state.loss, state.grad_x, state.grad_lam, state.lam)
    return all(bool(torch.isfinite(part).all()) for part in parts)


def _project(at: Signals, y: Tensor, floor: float) -> Tensor:
    """The lam >= floor of least stationarity loss at these candidates, (m,)."""
    gram, inner = normal_equations(at)
    gram = (gram * y * y[:, None]).double()
    factor = torch.linalg.cholesky_ex(
        gram + _RIDGE * gram.trace() * torch.eye(len(y), dtype=gram.dtype)
    )[0]
    right = (inner * y).double() - floor * gram.sum(1)
    right = torch.linalg.solve_triangular(factor, right[:, None], upper=False)[:, 0]
    if not bool(torch.isfinite(right).all()):
        return torch.full_like(y, math.nan)
    above, _ = nnls(factor.T.numpy(), right.numpy())
    return (torch.from_numpy(above) + floor).to(y.dtype)


@torch.no_grad()
@denormals_flushed()
def _evaluate(
    target: Target,
    config: KKTConfig,
    t: int,
    x: Tensor,
    y: Tensor,
    lam: Tensor,
    moments: Moments,
) -> KKTState:
    """The state at these candidates: losses and gradients. lam is solved for if projected."""
    net, alpha = target.merged(config.merge_angle), config.alpha(t)
    rho2, mean = float(net.rho) ** 2, target.mass / len(x)
    at = signals_at(net, x, alpha)
    if config.multipliers == "projected":
        lam = _project(at, y, config.lam_min * mean)
    fit = stationarity(net, at, y, lam, alpha)
    low = (config.lam_min - lam / mean).clamp_min(0)
    box = math.inf if config.prior is None else config.prior
    outside = (x.abs() - box).clamp_min(0)
    off = y * at.phi / target.level - 1
    l_stationary, l_dual = fit.loss / rho2, low.square().sum()
    l_prior, l_margin = outside.square().sum(), off.square().sum()
    loss = l_stationary + config.weight_dual * l_dual
    weight_margin = config.weight_margin * min(t / config.steps, 1.0)
    loss = loss + config.weight_prior * l_prior + weight_margin * l_margin
    grad_x = fit.grad_x / rho2 + config.weight_prior * 2 * outside * x.sign()
    along = input_gradient(net, at)
    grad_x = grad_x + weight_margin * (2 * off * y / target.level)[:, None] * along
    grad_lam = fit.grad_lam / rho2 - config.weight_dual * 2 * low / mean
    return KKTState(
        t, x, y, lam, l_stationary, l_dual, l_prior, l_margin, loss, grad_x, grad_lam, moments
    )
