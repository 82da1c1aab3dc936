"""Training on a device, in blocks: every number of a step stays there until the block is over.

The steps are those of `training.step`, to rounding, with one output or several, with weight decay
or without it. Where a step cannot be taken, or no gradient is left, the run stands still from there
on; how many were taken is read with the other numbers at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from explorer.engine import backprop
from explorer.engine.classes import margins, soft_contrast
from explorer.engine.kernels.steps import TrainRule
from explorer.engine.kernels.training_loops import CompiledRun
from explorer.engine.margin import Loss, log_each, slopes_of
from explorer.engine.network import Network
from explorer.engine.optim import batch_masks


def serves(x: Tensor) -> bool:
    """Whether points x (n, d), n > 0, lie on a device with float64 that is not the CPU."""
    return x.device.type not in ("cpu", "mps") and x.shape[0] > 0


@dataclass(frozen=True, eq=False)
class Held:
    """What a step moves: theta, velocity and grads (P,), q (n,), and numbers ().

    `now` (5,) is log_scale, log_loss, log_pull, kappa and rho; `alive` whether the run goes on.
    """

    theta: Tensor
    velocity: Tensor
    grads: Tensor
    q: Tensor
    now: Tensor
    alive: Tensor
    taken: Tensor


@dataclass(eq=False)
class DeviceRun(CompiledRun):
    """The same for a device: its steps are calls of torch that read nothing back."""

    def advance(self, net: Network, x: Tensor, y: Tensor, rule: TrainRule, steps: int) -> DeviceRun:
        """So many steps on, as of `CompiledRun`."""
        now = torch.from_numpy(self.now).to(x.device)
        alive = torch.ones_like(now[0], dtype=torch.bool)
        held = Held(
            self.theta, self.velocity, self.grads, self.q, now, alive, torch.zeros_like(now[0])
        )
        masks = None
        if self.batch is not None:
            drawn = batch_masks(len(self.q), self.batch, self.t, steps + 1, self.seed)
            masks = torch.as_tensor(drawn, dtype=x.dtype).to(x.device)
        for turn in range(1, steps + 1):
            mask = None if masks is None else masks[turn]
            held = moved(net, x, y, rule, held, self.t + turn, mask)
        *numbers, taken = torch.cat([held.now, held.taken.unsqueeze(0)]).tolist()
        return replace(
            self, theta=held.theta, velocity=held.velocity, grads=held.grads, q=held.q,
            now=np.array(numbers), t=self.t + int(taken),
        )  # fmt: skip


def moved(
    net: Network, x: Tensor, y: Tensor, rule: TrainRule, held: Held, t: int, mask: Tensor | None
) -> Held:
    """One step, to iterate t; no number is read. The same where it cannot be taken."""
    sound, move = (_decayed if rule.weight_decay else _pulled)(net.depth, rule, held)
    velocity = rule.momentum * held.velocity + move
    theta = held.theta + velocity
    rho = torch.dot(theta, theta).double().sqrt()
    log_scale = held.now[0]
    if net.homogeneous:
        norm_range = rule.norm_range
        far = (rho > 0) & ((rho < 1 / norm_range) | (rho > norm_range))
        power = torch.where(far, torch.frexp(rho).exponent - 1, 0).double()
        factor = torch.exp2(-power)
        theta, velocity = theta * factor.to(theta), velocity * factor.to(theta)
        rho, log_scale = rho * factor, log_scale + power * math.log(2)
    net = net.with_theta(theta)
    inputs, outputs = backprop.forward(net, x)
    q = margins(outputs, y, known=True)
    if rule.ascent:
        log_scale = _ascent_scale(
            q, net.depth, min(1.0, t / rule.ascent_steps) * rule.log_beta, log_scale
        )
    gain = (net.depth * log_scale).clamp_max(rule.max_gain).exp()
    smooth, cover = soft_contrast(outputs, y, gain.to(outputs), known=True)
    values = backprop.backward(net, inputs, outputs, cover)
    norms = backprop.squared_norms(net, values).double()
    loss: Loss = "logistic" if rule.logistic else "exponential"
    p, pulled = _pull(smooth, norms, loss, gain)
    coef = p.to(q) if mask is None else p.to(q) * mask
    now = torch.stack([log_scale, *pulled, rho])
    grads = backprop.combined_gradient(net, values, coef)
    alive = held.alive & (held.now[3] != 0) & sound & now.isfinite().all()
    old = (held.theta, held.velocity, held.grads, held.q, held.now)
    new = (theta, velocity, grads, q, now)
    theta, velocity, grads, q, now = (
        torch.where(alive, a, b) for a, b in zip(new, old, strict=True)
    )  # fmt: skip
    return Held(theta, velocity, grads, q, now, alive, held.taken + alive)


def _pulled(order: int, rule: TrainRule, held: Held) -> tuple[Tensor, Tensor]:
    """Whether the next displacement (P,) is finite, and the displacement, without weight decay."""
    rate = _rate(order, rule, held)
    return rate.isfinite(), rate.to(held.grads) * held.grads


def _decayed(order: int, rule: TrainRule, held: Held) -> tuple[Tensor, Tensor]:
    """The same with weight decay: see `optim.constant_decay` and `optim.scaled_decay`."""
    log_scale, _, log_pull, kappa, rho = held.now.unbind()
    rate, mu, most = rule.rate, rule.weight_decay, rule.max_decay
    if rule.constant:
        pull = (log_pull + (order - 2) * log_scale).clamp_max(most).exp()
        move = (rate * pull).to(held.grads) * held.grads - rate * mu * held.theta
        return torch.ones_like(held.alive), move
    curvature = log_pull + kappa.log() + 2 * (order - 1) * log_scale
    share = -torch.log1p((math.log(mu) - curvature).clamp_max(most).exp())
    pull = (share - kappa.log() - order * log_scale).clamp_max(most).exp()
    move = (rate * pull).to(held.grads) * held.grads
    move = move + (rate * torch.expm1(share)).to(held.grads) * held.theta
    length = torch.dot(move, move).double().sqrt()
    reach = rule.trust * (1 - rule.momentum) * rho
    move = torch.where(length <= reach, move, move * (reach / length).to(move))
    return torch.ones_like(held.alive), torch.where(kappa == 0, 0.0, move)


def _rate(order: int, rule: TrainRule, held: Held) -> Tensor:
    """The factor of the gradient in the next displacement: see `training`."""
    log_scale, _, log_pull, kappa, rho = held.now.unbind()
    if rule.constant:
        exponent = log_pull + (order - 2) * log_scale
        return torch.where(exponent < rule.max_exponent, rule.rate * exponent.exp(), torch.inf)
    gain = (order * log_scale).clamp_max(rule.max_exponent).exp()
    length = torch.dot(held.grads, held.grads).double().sqrt()
    most = rule.trust * (1 - rule.momentum) * rho / length
    none = (kappa == 0) | (gain == 0) | (length == 0)
    return torch.where(none, 0.0, torch.minimum(rule.rate / (kappa * gain), most))


def _ascent_scale(q: Tensor, order: int, log_beta: float, log_scale: Tensor) -> Tensor:
    """The scale at which the mean margin is at least exp(log_beta); never a smaller one."""
    wanted = (log_beta - q.mean().double().log()) / order
    return torch.where(q.min() <= 0, log_scale, torch.maximum(log_scale, wanted))


def _pull(
    q: Tensor, norms: Tensor, loss: Loss, gain: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
    """The share p (n,) of each point in the gradient; log of the loss, of its pull, and kappa."""
    true = gain * q.double()
    slopes = torch.where(norms == 0, -torch.inf, slopes_of(true, loss))
    total, dead = torch.logsumexp(slopes, 0), (norms == 0).all()
    p = torch.where(dead, 0.0, (slopes - total).exp())
    log_pull = torch.where(dead, 0.0, total - math.log(len(q)))
    return p, (torch.logsumexp(log_each(true, loss), 0), log_pull, torch.dot(p, norms))
