"""The closed-form forward and backward pass of training, any depth, without autograd.

On networks this small the time goes into the calls, not the arithmetic; a hand-written pass is
several times faster than building and traversing a graph. The slope of the ReLU at 0 is 0, as in
torch; whatever needs the other choices at the kinks uses `tangent`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.network import Network


@dataclass(frozen=True, eq=False)
class Pass:
    """All values of one pass; the layer-l block of grad Phi(x_i) is B_l[i] (x) A_l[i].

    Attributes:
        phi: outputs (n,), or with several outputs their product with a covector per point.
        inputs: A_l (n, k_{l-1}), what layer l reads.
        signals: B_l (n, k_l), the derivative of the output by the layer's pre-activation.
    """

    phi: Tensor
    inputs: tuple[Tensor, ...]
    signals: tuple[Tensor, ...]


def forward(net: Network, x: Tensor) -> tuple[list[Tensor], Tensor]:
    """Return what every layer reads, and the outputs. x (n, d) -> [(n, k_{l-1}), ...], (n, C)."""
    inputs, z = [x], x
    for layer, (w, b) in enumerate(zip(net.weights, net.biases, strict=True)):
        if layer:
            inputs.append(z.clamp_min(0))
        z = inputs[-1] @ w.T if b is None else torch.addmm(b, inputs[-1], w.T)
    return inputs, z


def backward(net: Network, inputs: Sequence[Tensor], z: Tensor, cover: Tensor) -> Pass:
    """Return the pass of <cover_i, Phi(x_i)>, from what `forward` gave. cover (n, C)."""
    signals = [cover]
    for w, a in zip(reversed(net.weights[1:]), reversed(inputs[1:]), strict=True):
        # One fused call for "times the slope": the signal where a > 0, else 0.
        signals.append(torch.ops.aten.threshold_backward(signals[-1] @ w, a, 0))
    phi = (cover * z).sum(1) if z.shape[1] > 1 else (cover * z).squeeze(1)
    return Pass(phi, tuple(inputs), tuple(reversed(signals)))


def squared_norms(net: Network, values: Pass) -> Tensor:
    """Return K(x_i, x_i) = || grad Phi(theta; x_i) ||^2, from the factors. -> (n,)."""
    total = torch.zeros_like(values.phi)
    for a, s, b in zip(values.inputs, values.signals, net.biases, strict=True):
        size = torch.linalg.vector_norm(a, dim=1).square_()
        if b is not None:
            size += 1
        total.addcmul_(size, torch.linalg.vector_norm(s, dim=1).square_())
    return total


def combined_gradient(net: Network, values: Pass, coef: Tensor) -> Tensor:
    """Return sum_i coef_i grad Phi(theta; x_i) (P,) in the order of `theta`. coef (n,)."""
    column, blocks = coef[:, None], []
    for b, a, s in zip(net.biases, values.inputs, values.signals, strict=True):
        weighted = s * column
        blocks.append((weighted.T @ a).view(-1))
        if b is not None:
            blocks.append(weighted.sum(0))
    return torch.cat(blocks)
