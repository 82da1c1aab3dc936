"""A step of training as calls of torch that read no number.

On the CPU one is taken and looked at. On a device many are taken in a block: where one cannot be
taken, or no gradient is left, the run stands still from there on, and how many were taken is read
with the other numbers at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from explorer.engine import backprop
from explorer.engine.classes import margins, soft_contrast
from explorer.engine.kernels.steps import TrainRule
from explorer.engine.margin import Loss, log_each, slopes_of
from explorer.engine.network import Network

Masks = Callable[[int, int], Tensor] | None  # of mini-batches (steps, n), from a step and how many


@dataclass(frozen=True, eq=False)
class Iterate:
    """What a step moves.

    Attributes:
        theta: carried weights (P,).
        velocity: (P,).
        grads: (P,).
        q: margins (n,).
        now: log_scale, log_loss, log_pull, kappa and rho (5,), float64.
    """

    theta: Tensor
    velocity: Tensor
    grads: Tensor
    q: Tensor
    now: Tensor

    @property
    def kappa(self) -> Tensor:
        """See `TrainState`, ()."""
        return self.now[3]


def serves(x: Tensor) -> bool:
    """Return whether points x (n, d), n > 0, lie on a device with float64 that is not the CPU."""
    return x.device.type not in ("cpu", "mps") and x.shape[0] > 0


def advance(
    net: Network, x: Tensor, y: Tensor, rule: TrainRule, at: Iterate, t: int, steps: int,
    masks: Masks,
) -> tuple[Iterate, int]:  # fmt: skip
    """So many steps after iterate t; fewer where none is left to take. One number is read."""
    alive = torch.ones_like(at.now[0], dtype=torch.bool)
    taken = torch.zeros_like(at.now[0])
    drawn = None if masks is None else masks(t + 1, steps).to(x)
    for turn in range(steps):
        mask = None if drawn is None else drawn[turn]
        sound, new = step(net, x, y, rule, at, t + turn + 1, mask)
        alive = alive & sound & (at.kappa != 0)
        pairs = [(getattr(new, f.name), getattr(at, f.name)) for f in fields(Iterate)]
        at, taken = Iterate(*(torch.where(alive, a, b) for a, b in pairs)), taken + alive
    return at, t + int(taken)


def step(
    net: Network, x: Tensor, y: Tensor, rule: TrainRule, at: Iterate, t: int, mask: Tensor | None
) -> tuple[Tensor, Iterate]:
    """Return one step, to iterate t, and whether all its numbers are finite."""
    move = (_decay_move if rule.weight_decay else _gradient_move)(net.depth, rule, at)
    velocity = rule.momentum * at.velocity + move
    new = iterate_at(net, x, y, rule, at.theta + velocity, velocity, at.now[0], t, mask)
    return new.now.isfinite().all(), new


def iterate_at(
    net: Network, x: Tensor, y: Tensor, rule: TrainRule, theta: Tensor, velocity: Tensor,
    log_scale: Tensor, t: int, mask: Tensor | None,
) -> Iterate:  # fmt: skip
    """Return the iterate t at these weights.

    `net` gives the architecture, `mask` (n,) the mini-batch.
    """
    theta, velocity, log_scale, rho = scaled_weights(net, rule, theta, velocity, log_scale)
    net = net.with_theta(theta)
    inputs, outputs = backprop.forward(net, x)
    q = margins(outputs, y, known=True)
    if rule.ascent:
        log_beta = min(1.0, t / rule.ascent_steps) * rule.log_beta
        log_scale = _ascent_scale(q, net.depth, log_beta, log_scale)
    gain = (net.depth * log_scale).clamp_max(rule.max_gain).exp()
    # With several classes the cross-entropy sees all rivals: a smooth margin and its covector.
    smooth, cover = soft_contrast(outputs, y, gain.to(outputs), known=True)
    values = backprop.backward(net, inputs, outputs, cover)
    loss: Loss = "logistic" if rule.logistic else "exponential"
    p, pulled = _pull(smooth, wide(backprop.squared_norms(net, values)), loss, gain)
    # Weights from the full loss, the sum over a part: an unbiased estimate of the gradient.
    coef = p.to(q) if mask is None else p.to(q) * mask.to(q)
    grads = backprop.combined_gradient(net, values, coef)
    return Iterate(theta, velocity, grads, q, torch.stack([log_scale, *pulled, rho]))


def scaled_weights(
    net: Network, rule: TrainRule, theta: Tensor, velocity: Tensor, log_scale: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the same with the norm back in [1, 2) where it left its range; and the norm."""
    rho = wide(torch.dot(theta, theta)).sqrt()
    if not net.homogeneous:
        return theta, velocity, log_scale, rho
    far = (rho > 0) & ((rho < 1 / rule.norm_range) | (rho > rule.norm_range))
    power = torch.where(far, torch.frexp(rho).exponent - 1, 0).double()
    factor = torch.exp2(-power)
    theta, velocity = theta * factor.to(theta), velocity * factor.to(theta)
    return theta, velocity, log_scale + power * math.log(2), rho * factor


def wide(v: Tensor) -> Tensor:
    """In float64, on the CPU where the device has none."""
    return (v.cpu() if v.device.type == "mps" else v).double()


def _gradient_move(order: int, rule: TrainRule, at: Iterate) -> Tensor:
    """Return the next displacement (P,) before momentum, without weight decay; see `training`."""
    log_scale, _, log_pull, kappa, rho = at.now.unbind()
    if rule.constant:
        exponent = log_pull + (order - 2) * log_scale
        rate = torch.where(exponent < rule.max_exponent, rule.rate * exponent.exp(), torch.inf)
        return rate.to(at.grads) * at.grads
    gain = (order * log_scale).clamp_max(rule.max_exponent).exp()
    length = wide(torch.dot(at.grads, at.grads)).sqrt()
    # The trust region: 1 / (1 - momentum) such steps add up to `trust` times the norm.
    most = rule.trust * (1 - rule.momentum) * rho / length
    none = (kappa == 0) | (gain == 0) | (length == 0)
    rate = torch.where(none, 0.0, torch.minimum(rule.rate / (kappa * gain), most))
    return rate.to(at.grads) * at.grads


# --- Gradient descent on mean loss + mu/2 |theta|^2 ----------------------------------------------
# A stationary point satisfies theta = (1 / (n mu)) sum_i (-l'(q_i)) y_i grad Phi(x_i) exactly, at
# any margin and on networks that are not homogeneous (Buzaglo et al. 2023, restated; see the paper
# for the original). At any other theta || theta - sum || = || gradient || / mu.
#
# Training carries theta as exp(s) theta_c with |theta_c| near 1 (`training`). The decay of theta is
# that of theta_c, whatever s is, so a step in carried units is
#
#     constant:     rate (pull e^{(order - 2) s} g - mu theta_c)
#     loss-scaled:  rate (share e^{-order s} g / kappa - (1 - share) theta_c)
#
# with g, kappa and pull of `TrainState`. The second is the gradient divided by c + mu, where c =
# pull kappa e^{2 (order - 1) s} bounds the curvature that comes from the margins, mu is that of the
# decay, and share = c / (c + mu). Where mu goes to 0 it is the step without decay, held to the same
# trust region.
#
# The normalised ascent has no such form: it climbs the direction of theta alone, on which a decay
# of its norm has no effect. `TrainConfig` refuses the two together.


def _decay_move(order: int, rule: TrainRule, at: Iterate) -> Tensor:
    """Return the next displacement (P,) before momentum, with weight decay."""
    log_scale, _, log_pull, kappa, rho = at.now.unbind()
    rate, mu, most = rule.rate, rule.weight_decay, rule.max_decay
    if rule.constant:
        pull = (log_pull + (order - 2) * log_scale).clamp_max(most).exp()
        return (rate * pull).to(at.grads) * at.grads - rate * mu * at.theta
    curvature = log_pull + kappa.log() + 2 * (order - 1) * log_scale
    share = -torch.log1p((math.log(mu) - curvature).clamp_max(most).exp())
    pull = (share - kappa.log() - order * log_scale).clamp_max(most).exp()
    move = (rate * pull).to(at.grads) * at.grads
    move = move + (rate * torch.expm1(share)).to(at.grads) * at.theta
    length = wide(torch.dot(move, move)).sqrt()
    reach = rule.trust * (1 - rule.momentum) * rho
    held = torch.where(length <= reach, 1.0, reach / length).to(move)
    return torch.where((kappa == 0).to(move.device), 0.0, held * move)


def _ascent_scale(q: Tensor, order: int, log_beta: float, log_scale: Tensor) -> Tensor:
    """Return the scale at which the mean margin is at least exp(log_beta); never a smaller one."""
    wanted = (log_beta - wide(q.mean()).log()) / order
    return torch.where(wide(q.min()) <= 0, log_scale, torch.maximum(log_scale, wanted))


def _pull(
    q: Tensor, norms: Tensor, loss: Loss, gain: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
    """Return the share p (n,) of each point in the gradient.

    Log of the loss, of its pull, and kappa.

    A point on which no neuron is active has no gradient. Left in, its constant loss would freeze
    all others once theirs is far below it.
    """
    true = gain * wide(q)
    slopes = torch.where(norms == 0, -torch.inf, slopes_of(true, loss))
    total, dead = torch.logsumexp(slopes, 0), (norms == 0).all()
    p = torch.where(dead, 0.0, (slopes - total).exp())
    log_pull = torch.where(dead, 0.0, total - math.log(len(q)))
    return p, (torch.logsumexp(log_each(true, loss), 0), log_pull, torch.dot(p, norms))
