"""What reconstructions by descent share: settings, state, a step, projected multipliers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, Protocol

import torch
from scipy.optimize import nnls
from torch import Tensor

from explorer.engine import checks
from explorer.engine.factor import factored, held
from explorer.engine.optim import Moments, Tensors, adam_step, half_cosine, momentum_step
from explorer.engine.status import Status

RIDGE = 1e-10  # arbitrary, of the trace: the Gram matrix of close candidates stays definite
EPS = 1e-12  # arbitrary: below Adam's usual 1e-8, as gradients of a share of ||theta||^2 are small


@dataclass(frozen=True)
class DescentConfig:
    """Settings that reconstructions from the KKT conditions share; see `kkt` for the losses.

    Attributes:
        m: number of candidates.
        steps: planned steps.
        multipliers: "projected" solves lam at every step; "joint" descends on lam together with x,
            as published.
        optimizer: "adam", or "sgd" with momentum as published.
        lr_x: step size of x, on `loss`.
        lr_lam: step size of lam / mean, on `loss`; "joint" only.
        momentum: of either optimiser.
        decay: last step size as a share of the first (half a cosine); 1 keeps it constant.
        sigma_x: standard deviation of the first candidates, N(0, sigma_x^2).
        relu_alpha: slope sigmoid(alpha z) of the modified ReLU, at the last step.
        relu_alpha_start: the same at the first step, rising geometrically; None for no annealing.
        lam_start: the first lam / mean are U(0, lam_start).
        lam_min: floor of lam / mean.
        prior: half width of the box that candidates should stay in, or None.
        weight_dual: weight of l_dual (published: 5).
        weight_prior: weight of l_prior (published: 1).
        weight_margin: weight of l_margin at the last step, rising linearly from 0 (published: 0);
            from the first step on it would hold candidates where they happen to meet the margin.
        merge_angle: neurons closer than this (radians) are merged first; 0 for none.
    """

    m: int = 100
    steps: int = 2000
    multipliers: Literal["joint", "projected"] = "projected"
    optimizer: Literal["sgd", "adam"] = "adam"
    lr_x: float = 0.02
    lr_lam: float = 0.02
    momentum: float = 0.9
    decay: float = 0.01
    sigma_x: float = 0.7
    relu_alpha: float = 200.0
    relu_alpha_start: float | None = 5.0
    lam_start: float = 2.0
    lam_min: float = 0.0
    prior: float | None = None
    weight_dual: float = 5.0
    weight_prior: float = 1.0
    weight_margin: float = 0.4
    merge_angle: float = 0.02

    def __post_init__(self) -> None:
        """Refuse settings with which no step could be taken."""
        checks.one_of(self, "multipliers", "joint", "projected")
        checks.one_of(self, "optimizer", "sgd", "adam")
        checks.positive(
            self, "steps", "lr_x", "lr_lam", "decay", "relu_alpha", "relu_alpha_start", "prior"
        )
        checks.not_negative(
            self, "sigma_x", "lam_start", "lam_min", "weight_dual", "weight_prior", "weight_margin"
        )
        if not (0 <= self.momentum < 1 and self.decay <= 1 and self.merge_angle >= 0):
            raise ValueError(
                "expected 0 <= momentum < 1, decay <= 1 and merge_angle >= 0; got "
                f"{self.momentum}, {self.decay} and {self.merge_angle}"
            )

    def alpha(self, t: int) -> float:
        """The slope of the modified ReLU at iteration t."""
        start = self.relu_alpha if self.relu_alpha_start is None else self.relu_alpha_start
        return start * math.pow(self.relu_alpha / start, min(t / self.steps, 1.0))

    def rate(self, t: int) -> float:
        """The share of lr_x and lr_lam taken at iteration t: half a cosine from 1 to `decay`."""
        return half_cosine(t / self.steps, self.decay)


@dataclass(frozen=True, eq=False)
class DescentState:
    """One iterate, with the losses and gradients of this very iterate.

    Attributes:
        t: iteration.
        x: candidates (m, d).
        y: their labels (m,).
        lam: multipliers (m,), those of the target at margin 1.
        l_stationary: share of ||theta||^2 left unexplained, ().
        l_dual: see `kkt`, ().
        l_prior: see `kkt`, ().
        l_margin: see `kkt`, ().
        loss: the weighted sum, ().
        grad_x: gradient of `loss` (m, d).
        moments: of the optimiser, for x and for lam / mean; under "sgd" their mean is the velocity.
        diverged: whether the next step was not finite and was not taken; of a batch, by all.
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
    moments: Moments
    diverged: bool = field(default=False, kw_only=True)

    def numbers(self) -> dict[str, float]:
        """The parts of the loss, for curves."""
        names = ("l_stationary", "l_margin", "l_dual", "l_prior", "loss")
        return {name: float(getattr(self, name)) for name in names}


def moved(
    optimizer: str,
    params: Tensors,
    moments: Moments,
    grads: Tensors,
    rates: tuple[float, ...],
    momentum: float,
) -> tuple[Tensors, Moments]:
    """One step of "adam", or of the heavy ball: the moments' mean is then the velocity."""
    if optimizer == "adam":
        return adam_step(params, moments, grads, rates, beta_mean=momentum, eps=EPS)
    params, velocity = momentum_step(params, moments.mean, grads, rates, momentum)
    return params, Moments(moments.t + 1, velocity, moments.square)


class Descending(Protocol):
    """A state of a descent, as `ended` reads it."""

    @property
    def t(self) -> int:
        """Iteration."""

    @property
    def diverged(self) -> bool:
        """Whether the next step was not finite and was not taken."""


def ended(state: Descending, steps: int, *grads: Tensor) -> Status:
    """How a descent with these gradients stands, of which so many steps were planned."""
    if state.diverged:
        return Status.DIVERGED
    if not any(bool(grad.any()) for grad in grads):
        return Status.CONVERGED
    return Status.FINISHED if state.t >= steps else Status.RUNNING


def projected(gram: Tensor, inner: Tensor, floor: float, signed: bool = False) -> Tensor:
    """The coefficients of least || theta - sum_j c_j g_j ||, c >= floor unless signed.

    Args:
        gram: <g_i, g_j> (..., r, r).
        inner: <theta, g_i> (..., r).
        floor: the least coefficient.
        signed: any sign, no floor.

    Returns:
        (..., r); nan where the equations are not finite, or no ridge makes them definite. The
        smallest norm among near-equal ones, by a ridge of 1e-10 of the trace and, where the
        equations were not made in float64, of what their rounding takes (`factor.held`).
    """
    if inner.ndim > 1:
        each = zip(gram.flatten(0, -3), inner.flatten(0, -2), strict=True)
        return torch.stack([projected(g, i, floor, signed) for g, i in each]).view_as(inner)
    full, inner_of = gram.to("cpu", torch.float64), inner.to("cpu", torch.float64)
    factor = factored(full, RIDGE * full.trace() + held(full.diagonal(), gram.dtype))
    right = inner_of if signed else inner_of - floor * full.sum(1)
    right = torch.linalg.solve_triangular(factor, right[:, None], upper=False)
    if not bool(torch.isfinite(right).all() and torch.isfinite(factor).all()):
        return torch.full_like(inner, math.nan)
    if signed:
        solved: Tensor = torch.linalg.solve_triangular(factor.T, right, upper=True)
        return solved[:, 0].to(inner)
    above, _ = nnls(factor.T.numpy(), right[:, 0].numpy())
    return torch.from_numpy(above + floor).to(inner)
