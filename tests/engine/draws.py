"""Seeded generators, points and networks, and Haim's modified ReLU: what many tests begin with."""

from __future__ import annotations

import torch

from explorer.engine.network import init_network


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def draw(*shape, seed=1):
    return torch.randn(*shape, generator=rng(seed), dtype=torch.float64)


def make(widths, seed=0, bias=True, scale=1.0):
    return init_network(2, widths, generator=rng(seed), first_scale=scale, bias=bias)


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
