"""The KKT attack's loss with its gradients, of one start or of many at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.attacks.batched import Alpha, Prepared, through, total
from explorer.engine.attacks.descent import losses, projected
from explorer.engine.attacks.kkt_config import KKTConfig
from explorer.engine.attacks.stationarity import denormals_flushed
from explorer.engine.attacks.target import Target
from explorer.engine.optim import Moments

_CACHED = 2**16  # numbers of an (m, k) array that stay near the processor; arbitrary


@dataclass(frozen=True, eq=False)
class KKTState:
    """One iterate, with the losses and gradients of this very iterate.

    A leading batch axis holds many starts: x (b, m, d), lam (b, m), the losses (b,).

    Attributes:
        t: iteration.
        x: candidates (m, d).
        y: their labels (m,), never changed.
        lam: multipliers (m,), those of the target at margin 1.
        l_stationary: share of ||theta||^2 left unexplained, ().
        l_dual: see `kkt`, ().
        l_prior: see `kkt`, ().
        l_margin: see `kkt`, ().
        loss: the weighted sum, ().
        grad_x: gradient of `loss` (m, d).
        grad_lam: gradient of `loss` (m,).
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
    grad_lam: Tensor
    moments: Moments
    diverged: bool = False

    def numbers(self) -> dict[str, float]:
        """The parts of the loss, for curves."""
        return losses(self)


@dataclass(frozen=True)
class Scale:
    """What a target at margin 1 counts in: `mean` multiplier and `level` of its margin."""

    mean: float
    level: float


@torch.no_grad()
@denormals_flushed()
def evaluate(
    target: Target,
    config: KKTConfig,
    t: int,
    x: Tensor,
    y: Tensor,
    lam: Tensor,
    moments: Moments,
) -> KKTState:
    """The state at these candidates: losses and gradients. lam is solved for if projected."""
    net, m = target.prepared(config.merge_angle, config.same_slopes), x.shape[-2]
    mean, share = target.mass / m, 1 / net.square
    floor = config.lam_min * mean if config.multipliers == "projected" else None
    weight_margin = config.weight_margin * min(t / config.steps, 1.0)
    pull, fit_lam, off, along = _explained(
        net, x, y, lam, config.alpha(t), floor, weight_margin > 0
    )
    off = y * off / target.level - 1
    low = (config.lam_min - fit_lam / mean).clamp_min_(0)
    l_stationary = pull[0] * share
    l_dual, l_margin = total(low.square(), (-1,)), total(off.square(), (-1,))
    grad_x, grad_lam = pull[1].mul_(share), (y * pull[2]).mul_(share)
    grad_lam.add_(low, alpha=-2 * config.weight_dual / mean)
    loss = torch.add(l_stationary, l_dual, alpha=config.weight_dual)
    l_prior = torch.zeros_like(loss)
    if config.prior is not None:
        outside = (x.abs() - config.prior).clamp_min_(0)
        l_prior = total(outside.square(), (-1, -2))
        loss = torch.add(loss, l_prior, alpha=config.weight_prior)
        grad_x.addcmul_(outside, x.sign(), value=2 * config.weight_prior)
    if along is not None:
        loss = torch.add(loss, l_margin, alpha=weight_margin)
        grad_x.addcmul_((off * y).unsqueeze(-1), along, value=2 * weight_margin / target.level)
    return KKTState(
        t, x, y, fit_lam, l_stationary, l_dual, l_prior, l_margin, loss, grad_x, grad_lam, moments
    )


def pulls(
    net: Prepared,
    config: KKTConfig,
    scale: Scale,
    at: tuple[Tensor, Tensor, Tensor],
    alpha: Alpha,
    weight_margin: Alpha,
) -> tuple[Tensor, Tensor]:
    """The gradients of `evaluate` alone, on x and on lam / mean, of the joint attack.

    For programs that read no number back: alpha and the weight may be tensors on the device.

    Args:
        net: the network.
        config: the settings.
        scale: see there.
        at: candidates x (..., m, d), labels y (m,) or (..., m), shares lam / mean (..., m).
        alpha: of the modified ReLU.
        weight_margin: of this iterate.
    """
    x, y, share = at
    if groups := apart(net, x):
        ys = y.expand(x.shape[:-1])
        each = [
            pulls(net, config, scale, (x[i], ys[i], share[i]), alpha, weight_margin) for i in groups
        ]
        joined = torch.stack if isinstance(groups[0], int) else torch.cat
        return joined([g for g, _ in each]), joined([g for _, g in each])
    run = through(net, x, alpha)
    if config.weight_margin:
        off = (y * run.phi / scale.level - 1).mul_(y * (2 / scale.level)) * weight_margin
        along = off.unsqueeze(-1) * run.slope()
    signed = y * scale.mean
    grad_x, grad_c = run.pull(share * signed, 1 / net.square)
    grad_share = grad_c.mul_(signed)
    low = (config.lam_min - share).clamp_min_(0)
    grad_share.add_(low, alpha=-2 * config.weight_dual)
    if config.weight_margin:
        grad_x.add_(along)
    if config.prior is not None:
        outside = (x.abs() - config.prior).clamp_min_(0)
        grad_x.addcmul_(outside, x.sign(), value=2 * config.weight_prior)
    return grad_x, grad_share


def apart(net: Prepared, x: Tensor) -> list[int] | list[slice]:
    """The starts, one by one or in groups, that fit near the processor; [] for all in one go."""
    if x.ndim < 3 or len(x) == 1 or x.device.type != "cpu":
        return []
    size = max(1, _CACHED // (x.shape[1] * max(len(w) for w in net.weights)))
    if size >= len(x):
        return []
    if size == 1:
        return list(range(len(x)))
    return [slice(i, i + size) for i in range(0, len(x), size)]


def _explained(
    net: Prepared,
    x: Tensor,
    y: Tensor,
    lam: Tensor,
    alpha: float,
    floor: float | None,
    sloped: bool,
) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor, Tensor, Tensor | None]:
    """(loss, its gradient on x, on c), lam, Phi and, if `sloped`, its gradient on x.

    Starts that would not fit near the processor together are gone through in groups.
    """
    if groups := apart(net, x):
        ys = y.expand(x.shape[:-1])
        parts = [_explained(net, x[i], ys[i], lam[i], alpha, floor, sloped) for i in groups]
        joined = torch.stack if isinstance(groups[0], int) else torch.cat
        pulled = [joined(column) for column in zip(*(p[0] for p in parts), strict=True)]
        slopes = [p[3] for p in parts if p[3] is not None]
        return (
            (pulled[0], pulled[1], pulled[2]), joined([p[1] for p in parts]),
            joined([p[2] for p in parts]), joined(slopes) if sloped else None,
        )  # fmt: skip
    run = through(net, x, alpha)
    if floor is not None:
        gram, inner = run.normal()
        lam = projected(gram * (y.unsqueeze(-1) * y.unsqueeze(-2)), inner * y, floor)
    along = run.slope() if sloped else None
    fit = run.fit(lam * y)
    return (fit.loss, fit.grad_x, fit.grad_c), lam, run.phi, along
