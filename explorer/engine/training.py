r"""Training to the maximum margin: gradient descent on an exponential-type loss, never overflowing.

    Loss(theta) = sum_i l(q_i),  q_i = y_i Phi(theta; x_i),  l(q) = e^{-q} or log(1 + e^{-q})

With C > 2 classes and outputs q_i is the smooth margin -log sum_{c != y_i} e^{Phi_c - Phi_{y_i}}
(`classes`): l(q_i) = log(1 + e^{-q_i}) is then the cross-entropy.

Once the points are separated the norm of theta grows without bound while its direction converges
to a KKT point of the margin problem (Lyu and Li 2020). So theta is carried as (net, log_scale),
the true weights being exp(log_scale) net.theta: the norm of `net` stays near 1 by factors of two,
which round nothing, and everything that is exponential stays a logarithm. A network with biases
beyond its first layer is not homogeneous: there log_scale stays 0.

Three ways to choose the step along g = sum_i p_i y_i grad Phi(x_i), p = softmax(log -l'(q)):

- gradient, constant: theta += rate * (-grad of the mean loss). Slows down as 1/t: the loss, and
  with it the gradient, goes to 0.
- gradient, loss-scaled: theta += rate * g / kappa, kappa = sum_i p_i ||grad Phi(x_i)||^2. For the
  exponential loss g is the gradient of -log Loss (a loss-based rate, as in the experiments of Lyu
  and Li 2020), and kappa bounds the curvature of log Loss that comes from the margins, so that
  rate = 1 needs no tuning: each margin changes by about 1 per step, the direction by less and
  less. Two layers of width 100 end 0.1 to 20% below the largest possible gamma_bar (presets).
- ascent: the same step, but once the points are separated the scale runs ahead of the gradient:
  p = softmax(-beta_t q / mean q) with beta_t at least geometric in t (theory 1.7). Levels the
  margins several times sooner, at a slightly smaller gamma_bar on hard sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from explorer.engine import backprop
from explorer.engine.classes import check_labels, margins, soft_contrast
from explorer.engine.data import Dataset
from explorer.engine.decay import decayed
from explorer.engine.margin import gain_of, log_loss
from explorer.engine.network import Network, init_network, rescaled
from explorer.engine.optim import momentum_step
from explorer.engine.pulls import batch_mask, weights
from explorer.engine.revival import revived
from explorer.engine.status import Status, iterated
from explorer.engine.training_config import TrainConfig
from explorer.engine.training_state import MAX_EXPONENT, TrainState

__all__ = ["TrainConfig", "TrainState", "init", "iterate", "refresh", "step", "terminate"]

TRUST = 0.1  # measured: at 0.3 hard 1-D sets lose their neurons early, at 0.03 they get stuck
NORM_RANGE = 16.0  # arbitrary: the carried norm is brought back to [1, 2) when it leaves 16^+-1
COOLED = 1.0  # arbitrary: p is then neither uniform nor all on the worst point


def init(
    target: Dataset,
    config: TrainConfig,
    generator: torch.Generator,
    net: Network | None = None,
) -> TrainState:
    """A random network, or the given one, on its first iterate.

    Weights take the type and device of target.x. ValueError where `net` has another input
    dimension than the points, or the ascent meets biases beyond its first layer.
    """
    if net is None:
        net = init_network(
            target.d,
            config.widths,
            generator=generator,
            first_scale=config.init_scale if config.init == "small" else None,
            bias=config.bias,
            all_biases=config.all_biases,
            outputs=target.outputs,
        )
    if net.d != target.d:
        raise ValueError(
            f"the network takes points of dimension {net.d}; the set has dimension {target.d}"
        )
    check_labels(target.y, net.outputs)
    if not net.homogeneous and config.method == "ascent":
        raise ValueError("the ascent needs a homogeneous network; take method='gradient'")
    seed = int(torch.randint(2**31, (), generator=generator))
    net = net.to(dtype=target.x.dtype, device=target.x.device)
    state = _evaluate(target, config, 0, net, 0.0, torch.zeros_like(net.theta), seed)
    if state is None:
        raise ValueError("these weights give outputs that are not finite; give smaller ones")
    return state


def step(target: Dataset, state: TrainState, config: TrainConfig) -> TrainState:
    """One update. Where it would not be finite: the same state, marked as diverged."""
    if state.diverged or not target.n:
        return state if state.diverged else replace(state, t=state.t + 1)
    lr, pull = 1.0, state.grads
    if config.weight_decay:
        pull = _decayed(state, config)
    else:
        lr = _rate(state, config)
    if not math.isfinite(lr):
        return replace(state, diverged=True)
    (theta,), (velocity,) = momentum_step(
        (state.net.theta,), (state.velocity,), (pull,), -lr, config.momentum
    )
    net = state.net.with_theta(theta)
    following = _evaluate(
        target, config, state.t + 1, net, state.log_scale, velocity, state.batch_seed
    )
    return replace(state, diverged=True) if following is None else following


def refresh(target: Dataset, state: TrainState, config: TrainConfig) -> TrainState:
    """The same weights and time on other points: training goes on from where it is.

    Where the points are still separated nothing else changes. Where they are not, three things
    stand in the way of a network of large norm: the worst point would outweigh all others until
    every neuron that serves them is gone, so the scale, a mere temperature, is lowered until the
    worst margin is -COOLED; the velocity still serves the old points, so it is forgotten; and
    with `config.revive` the neurons that are off on every point are drawn anew.
    """
    net, scale, velocity = state.net, state.log_scale, state.velocity
    following = _evaluate(target, config, state.t, net, scale, velocity, state.batch_seed)
    if following is not None and following.q_min < 0:
        if config.revive:
            seed = (state.batch_seed + state.t) % 2**63
            net = revived(following.net, target.x, torch.Generator().manual_seed(seed))
        if net.homogeneous:  # only then is the scale a mere temperature
            worst = (math.log(COOLED) - math.log(-following.q_min)) / net.order
            scale = min(worst, following.log_scale)
        velocity = torch.zeros_like(velocity)
        following = _evaluate(target, config, state.t, net, scale, velocity, state.batch_seed)
    if following is None:
        raise ValueError("a point lies so far out that the margins are not finite; move it closer")
    return following


def terminate(state: TrainState, config: TrainConfig) -> Status:
    """How the run stands."""
    if state.diverged:
        return Status.DIVERGED
    if state.q.shape[0] and state.kappa == 0:
        return Status.DEAD
    return Status.FINISHED if state.t >= config.steps else Status.RUNNING


def iterate(target: Dataset, state: TrainState, config: TrainConfig) -> Iterator[TrainState]:
    """The states after `state`, until `terminate` says that the run is over."""
    return iterated(step, terminate, target, state, config)


def _rate(state: TrainState, config: TrainConfig) -> float:
    """The factor of `grads` in the next displacement, in the units of the carried weights."""
    order = state.net.depth
    if config.rule == "constant":
        exponent = state.log_pull + (order - 2) * state.log_scale
        return config.rate * math.exp(exponent) if exponent < MAX_EXPONENT else math.inf
    if state.kappa == 0:
        return 0.0
    gain = math.exp(min(order * state.log_scale, MAX_EXPONENT))
    fade = 1 - config.momentum
    length = math.sqrt(float(torch.dot(state.grads, state.grads)))
    if gain == 0 or length == 0:
        return 0.0
    # The second is the trust region: 1/fade such steps add up to TRUST times the norm.
    return min(config.rate / (state.kappa * gain), TRUST * fade * state.rho / length)


def _decayed(state: TrainState, config: TrainConfig) -> Tensor:
    """The next displacement with weight decay, in the units of the carried weights."""
    reach = TRUST * (1 - config.momentum) * state.rho
    return decayed(
        state.net.theta, state.grads, state.net.depth, state.log_scale, state.log_pull,
        state.kappa, reach, config,
    )  # fmt: skip


def _evaluate(
    target: Dataset,
    config: TrainConfig,
    t: int,
    net: Network,
    log_scale: float,
    velocity: Tensor,
    batch_seed: int,
) -> TrainState | None:
    """The state at these weights, or None where a number of it is not finite."""
    theta = net.theta
    rho = math.sqrt(float(torch.dot(theta, theta)))  # one call; net.rho takes one per tensor
    if not math.isfinite(rho):
        return None
    if net.homogeneous and rho and not 1 / NORM_RANGE <= rho <= NORM_RANGE:
        power = math.frexp(rho)[1] - 1
        net, velocity = rescaled(net, 2.0**-power), velocity * 2.0**-power
        rho, log_scale = rho * 2.0**-power, log_scale + power * math.log(2)
    if not target.n:
        none = torch.zeros_like(velocity)
        return TrainState(
            t, net, log_scale, target.y, 0.0, none, 0.0, 0.0, rho, none, batch_seed, config.loss
        )
    inputs, outputs = backprop.forward(net, target.x)
    q = margins(outputs, target.y)
    if config.method == "ascent":
        log_scale = _ascent_scale(q, net.depth, t / config.ascent_steps, log_scale, config)
    gain = net.depth * log_scale
    # With several classes the cross-entropy sees all rivals: a smooth margin and its covector.
    smooth, cover = soft_contrast(outputs, target.y, gain_of(gain))
    values = backprop.backward(net, inputs, outputs, cover)
    total = log_loss(smooth, config.loss, gain)
    p, log_pull, kappa = weights(smooth, backprop.squared_norms(net, values), config.loss, gain)
    if not (math.isfinite(total) and math.isfinite(kappa)):
        return None
    coef = p.to(q)
    if config.batch is not None and config.batch < target.n:
        # Weights from the full loss, the sum over a part: an unbiased estimate of the gradient.
        coef = coef * batch_mask(target.n, config.batch, t, batch_seed).to(coef)
    grads = backprop.combined_gradient(net, values, coef)
    return TrainState(
        t, net, log_scale, q, total, grads, log_pull, kappa, rho, velocity, batch_seed, config.loss
    )


def _ascent_scale(
    q: Tensor, order: int, part: float, log_scale: float, config: TrainConfig
) -> float:
    """The log_scale at which the mean margin is at least beta_end^part; never a smaller one."""
    if float(q.min()) <= 0:
        return log_scale
    log_beta = min(1.0, part) * math.log(config.beta_end)
    return max(log_scale, (log_beta - math.log(float(q.mean()))) / order)
