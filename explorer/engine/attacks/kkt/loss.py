"""The KKT attack's loss with its gradients, of one start or of many at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor

from explorer.engine.attacks.descent import DescentState, steepness
from explorer.engine.attacks.kkt.config import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.kernels.batched import Alpha, LossPass, Prepared, reused_pass, square
from explorer.engine.kernels.reference import denormals_flushed
from explorer.engine.nonnegative import coefficients
from explorer.engine.optim import Moments
from explorer.engine.sizes import Size

Group = Any  # of starts: an index, a slice, or ... for all
CACHED = 2**15  # numbers of an (m, k) array of which four stay near the processor; measured at
# k = 154, m = 40 with 2 MB of cache: 26 us a start for 5 together, 30 for 3, 27 for 10, 37 for 25


@dataclass(frozen=True, eq=False)
class KKTState(DescentState):
    """One iterate of the KKT attack; the other attributes are those of `DescentState`.

    A leading batch axis holds many starts: x (b, m, d), the losses (b,).

    Attributes:
        grad_lam: gradient of `loss` (m,).

    Example:
        >>> import torch
        >>> from explorer import KKTConfig, Target, kkt, maximum_margin, preset
        >>> data = preset("alternating-line", n=3)
        >>> target = Target.of(maximum_margin(data.x, data.y).net, 1.0)
        >>> state = kkt.init(target, KKTConfig(m=6), torch.Generator().manual_seed(0))
        >>> state.t, state.x.shape, state.lam.shape
        (0, torch.Size([6, 1]), torch.Size([6]))
    """

    grad_lam: Annotated[Tensor, Size("m")]


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
    """Return the state at these candidates: losses and gradients.

    Lam is solved for if projected.
    """
    net, m = target.prepared_network(config.merge_angle, config.same_slopes), x.shape[-2]
    mean = target.mass / m
    floor = config.lam_min * mean if config.multipliers == "projected" else None
    weight_margin = config.weight_margin * min(t / config.steps, 1.0)
    alpha, labels = config.alpha(t, steepness(target, config)), y.expand(x.shape[:-1])
    l_stationary, grad_x, grad_c, fit_lam, phi, *along = _by_group(
        net, x, lambda i: _share_left(net, x[i], labels[i], lam[i], alpha, floor, weight_margin > 0)
    )
    off = phi - (y if target.level == 1 else y * target.level)  # y times the distance to the margin
    low = torch.clamp_min(config.lam_min - fit_lam * (1 / mean), 0)
    l_dual, l_margin = (square(v, (-1,)).to(x.dtype) for v in (low, off))
    grad_lam = (y * grad_c).add_(low, alpha=-2 * config.weight_dual / mean)
    loss = torch.add(l_stationary, l_dual, alpha=config.weight_dual)
    if target.level != 1:
        l_margin = l_margin / target.level**2
    l_prior = x.new_zeros(loss.shape)
    if math.isfinite(config.half_width):
        outside = x - x.clamp(-config.half_width, config.half_width)
        l_prior = square(outside, (-1, -2)).to(x.dtype)
        loss = torch.add(loss, l_prior, alpha=config.weight_prior)
        grad_x.add_(outside, alpha=2 * config.weight_prior)
    if along:
        loss = torch.add(loss, l_margin, alpha=weight_margin)
        grad_x.addcmul_(off.unsqueeze(-1), *along, value=2 * weight_margin / target.level**2)
    return KKTState(
        t, x, y, fit_lam, l_stationary, l_dual, l_prior, l_margin, loss, grad_x, moments, grad_lam
    )


def pulls(
    net: Prepared,
    config: KKTConfig,
    scale: Scale,
    at: tuple[Tensor, Tensor, Tensor],
    alpha: Alpha,
    weight_margin: Alpha,
    project: Callable[[LossPass], None] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the gradients of `evaluate` alone, on x and on lam / mean.

    For programs that read no number back: alpha and the weight may be tensors on the device.

    Args:
        net: the network.
        config: the settings.
        scale: see there.
        at: candidates x (..., m, d), labels y (m,) or (..., m), shares lam / mean (..., m).
        alpha: of the modified ReLU.
        weight_margin: of this iterate.
        project: makes the shares anew, in place, of a pass at x; None: they are as they are.
    """
    x, y, share = at
    labels = y.expand(x.shape[:-1])

    def pull(i: Group) -> tuple[Tensor, Tensor]:
        some = x[i], labels[i], share[i]
        return _pulls(net, config, scale, some, alpha, weight_margin, project)

    grad_x, grad_share = _by_group(net, x, pull)
    return grad_x, grad_share


def _pulls(
    net: Prepared, config: KKTConfig, scale: Scale, at: tuple[Tensor, Tensor, Tensor],
    alpha: Alpha, weight_margin: Alpha, project: Callable[[LossPass], None] | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`pulls` of starts that are gone through together."""
    x, y, share = at
    run = reused_pass(net, x, alpha)
    if config.weight_margin:
        off = (y * run.phi / scale.level - 1).mul_(y * (2 / scale.level)) * weight_margin
        along = off.unsqueeze(-1) * run.slope()
    if project is not None:
        project(run)
    signed = y * scale.mean
    fit = run.fit(share * signed, 1 / net.square)
    grad_x, grad_share = fit.grad_x, fit.grad_c.mul_(signed)
    low = (config.lam_min - share).clamp_min_(0)
    grad_share.add_(low, alpha=-2 * config.weight_dual)
    if config.weight_margin:
        grad_x.add_(along)
    if math.isfinite(config.half_width):
        outside = (x.abs() - config.half_width).clamp_min_(0)
        grad_x.addcmul_(outside, x.sign(), value=2 * config.weight_prior)
    return grad_x, grad_share


def _by_group(
    net: Prepared, x: Tensor, call: Callable[[Group], Sequence[Tensor]]
) -> Sequence[Tensor]:
    """Return what `call` makes of the starts x[i], all in one go, or in groups near the processor.

    In place: results kept one by one, each behind the large arrays of its group, would leave holes
    in memory of an (m, k) array per start.
    """
    size = max(1, CACHED // (x.shape[-2] * max(len(w) for w in net.weights)))
    if x.ndim < 3 or size >= len(x) or not net.on_cpu:
        return call(...)
    outs: list[Tensor] = []
    for first in range(0, len(x), size):
        i = first if size == 1 else slice(first, first + size)
        made = call(i)
        if not outs:
            outs = [v.new_empty(len(x), *v.shape[size > 1 :]) for v in made]
        for out, v in zip(outs, made, strict=True):
            out[i] = v
    return outs


def _share_left(
    net: Prepared, x: Tensor, y: Tensor, lam: Tensor, alpha: float, floor: float | None,
    sloped: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Share of ||theta||^2 left, its gradients on x and c, lam, Phi and, if `sloped`, dPhi/dx."""
    run = reused_pass(net, x, alpha)
    if floor is not None:
        gram, inner = run.normal()
        gram, inner = gram * (y.unsqueeze(-1) * y.unsqueeze(-2)), inner * y
        lam = coefficients(gram, inner, floor, lam > floor)
    along = (run.slope(),) if sloped else ()
    fit = run.fit(lam * y, 1 / net.square)
    return fit.loss, fit.grad_x, fit.grad_c, lam, run.phi, *along
