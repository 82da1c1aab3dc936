"""What reconstructions by descent share: schedules, one optimiser step, projected multipliers."""

from __future__ import annotations

import math
from typing import Literal

import torch
from scipy.optimize import nnls
from torch import Tensor

from explorer.engine.optim import Moments, Tensors, adam_step, momentum_step

_RIDGE = 1e-10  # arbitrary, of the trace: the Gram matrix of close candidates stays definite
EPS = 1e-12  # arbitrary: below Adam's usual 1e-8, as gradients of a share of ||theta||^2 are small


def geometric(start: float, end: float, part: float) -> float:
    """From `start` to `end` by equal factors; part in [0, 1], and `end` beyond."""
    return start * math.pow(end / start, min(part, 1.0))


def half_cosine(last: float, part: float) -> float:
    """From 1 to `last` along half a cosine; part in [0, 1], and `last` beyond."""
    return last + (1 - last) * (1 + math.cos(math.pi * min(part, 1.0))) / 2


def check_positive(config: object, *names: str) -> None:
    """ValueError naming the first of these fields that is not positive; None passes."""
    for name in names:
        value = getattr(config, name)
        if value is not None and not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be positive; got {value}")


def check_not_negative(config: object, *names: str) -> None:
    """ValueError naming the first of these fields that is negative."""
    for name in names:
        value = getattr(config, name)
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must not be negative; got {value}")


def moved(
    optimizer: Literal["sgd", "adam"],
    params: tuple[Tensor, Tensor],
    moments: Moments,
    grads: tuple[Tensor, Tensor],
    rates: tuple[float, float],
    momentum: float,
) -> tuple[Tensors, Moments]:
    """One step on candidates and multipliers; under "sgd" the moments' mean is the velocity."""
    if optimizer == "adam":
        return adam_step(params, moments, grads, rates, beta_mean=momentum, eps=EPS)
    (v_x, v_share), square = moments.mean, moments.square
    (x,), (v_x,) = momentum_step(params[:1], (v_x,), grads[:1], rates[0], momentum)
    (share,), (v_share,) = momentum_step(params[1:], (v_share,), grads[1:], rates[1], momentum)
    return (x, share), Moments(moments.t + 1, (v_x, v_share), square)


def projected(gram: Tensor, inner: Tensor, floor: float, signed: bool = False) -> Tensor:
    """The coefficients of least || theta - sum_j c_j g_j ||, c >= floor unless signed.

    Args:
        gram: <g_i, g_j> (..., r, r).
        inner: <theta, g_i> (..., r).
        floor: the least coefficient.
        signed: any sign, no floor.

    Returns:
        (..., r); nan where the equations are not finite. The smallest norm among near-equal ones,
        by a ridge of 1e-10 of the trace.
    """
    if inner.ndim > 1:
        each = zip(gram.flatten(0, -3), inner.flatten(0, -2), strict=True)
        return torch.stack([projected(g, i, floor, signed) for g, i in each]).view_as(inner)
    full, inner_of = gram.to("cpu", torch.float64), inner.to("cpu", torch.float64)
    eye = torch.eye(len(full), dtype=full.dtype)
    factor = torch.linalg.cholesky_ex(full + _RIDGE * full.trace() * eye)[0]
    right = inner_of if signed else inner_of - floor * full.sum(1)
    right = torch.linalg.solve_triangular(factor, right[:, None], upper=False)
    if not bool(torch.isfinite(right).all() and torch.isfinite(factor).all()):
        return torch.full_like(inner, math.nan)
    if signed:
        solved: Tensor = torch.linalg.solve_triangular(factor.T, right, upper=True)
        return solved[:, 0].to(inner)
    above, _ = nnls(factor.T.numpy(), right[:, 0].numpy())
    return torch.from_numpy(above + floor).to(inner)


def losses(state: object) -> dict[str, float]:
    """The parts of a state's loss by name, for curves."""
    names = ("l_stationary", "l_margin", "l_dual", "l_prior", "loss")
    return {name: float(getattr(state, name)) for name in names}
