"""Seeded generators, points, networks and runs, and Haim's modified ReLU."""

from __future__ import annotations

import math

import torch

from explorer.engine import training
from explorer.engine.attacks.target import Target
from explorer.engine.exact import maximum_margin
from explorer.engine.network import init_network


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def draw(*shape, seed=1):
    return torch.randn(*shape, generator=rng(seed), dtype=torch.float64)


def uniform(*shape, seed=1):
    return torch.rand(*shape, generator=rng(seed), dtype=torch.float64)


def exact_set(d, n, seed, labels=50):
    """Random points, labels drawn with the seed beyond by `labels`, and the exact network."""
    x, y = 1.2 * draw(n, d, seed=seed), draw(n, seed=seed + labels).sign()
    return maximum_margin(x, y).net, x, y


def trained(data, config, seed=0, net=None):
    """The last state of a run. Compiled loops take thousands of steps in hundredths of a second."""
    first = training.init(data, config, rng(seed), net)
    return training.advance(data, first, config, config.steps)


def loss_gradient(state):
    """The gradient (P,) of the mean loss at the true weights."""
    return -math.exp(state.log_pull + (state.net.depth - 1) * state.log_scale) * state.grads


def aimed(state):
    """The target of a trained state."""
    return Target.of(state.net, state.q_min)


def attacked(attack, target, config, seed=0):
    """The last state of an attack, such as `kkt`, and its claims."""
    first = attack.init(target, config, rng(seed))
    last = attack.advance(target, first, config, config.steps)
    return last, attack.report(target, last, config)


def make(widths, seed=0, bias=True, scale=1.0, **more):
    return init_network(2, widths, generator=rng(seed), first_scale=scale, bias=bias, **more)


class ModifiedRelu(torch.autograd.Function):
    """The published trick: forward relu, backward sigmoid(alpha z), also when differentiated."""

    @staticmethod
    def forward(ctx, z, alpha):
        ctx.save_for_backward(z)
        ctx.alpha = alpha
        return z.clamp_min(0)

    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        return grad * torch.sigmoid(ctx.alpha * z), None


def published_phi(net, x, alpha):
    """Phi with the modified ReLU, by torch's own derivatives. x (m, d) -> (m,)."""
    a = x
    for layer, (w, b) in enumerate(zip(net.weights, net.biases, strict=True)):
        z = a @ w.T if b is None else a @ w.T + b
        a = ModifiedRelu.apply(z, alpha) if layer < len(net.weights) - 1 else z
    return a.squeeze(-1)
