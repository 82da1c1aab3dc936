"""The stationarity loss of three layers and more; see `batched`."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from explorer.engine.attacks.prepared import Alpha, Fit, Pass, Prepared, total
from explorer.engine.attacks.two_layers import add_product, rows


class Deeper(Pass):
    """The signals of every layer."""

    def __init__(self, net: Prepared, x: Tensor, alpha: Alpha) -> None:
        self.net, self.d = net, x.shape[-1]
        self.alphas = [net.alpha(layer, alpha) for layer in range(len(net.blocks) - 1)]
        self.inputs, self.slopes = [net.fed(0, x)], list[Tensor]()
        self.values: list[Tensor] = []
        for layer, block in enumerate(net.blocks[:-1]):
            z = self.inputs[-1] @ block.T
            self.values.append(z)
            self.slopes.append((self.alphas[layer] * z).sigmoid_())
            self.inputs.append(net.fed(layer + 1, z.clamp_min(0)))
        self.outer: list[Tensor] = [net.weights[-1]]  # signals back, before the slopes
        self.back: list[Tensor] = [net.weights[-1] * self.slopes[-1]]  # and with them
        for layer in range(len(net.blocks) - 2, 0, -1):
            self.outer.insert(0, self.back[0] @ net.weights[layer])
            self.back.insert(0, self.outer[0] * self.slopes[layer - 1])

    @cached_property
    def phi(self) -> Tensor:
        """Phi (..., m)."""
        return (self.inputs[-1] @ self.net.blocks[-1][0].unsqueeze(-1)).squeeze(-1)

    def normal(self) -> tuple[Tensor, Tensor]:
        """See `Pass`."""
        top = self.inputs[-1]
        gram, inner = top @ top.mT, self.phi  # <theta, grad Phi> of a layer is <b, z>
        for a, b, z in zip(self.inputs[:-1], self.back, self.values, strict=True):
            gram = gram + (b @ b.mT).mul_(a @ a.mT)
            inner = inner + rows(b, z)
        return gram, inner

    def slope(self) -> Tensor:
        """See `Pass`."""
        return self.back[0] @ self.net.weights[0]

    def fit(self, c: Tensor, share: float = 1.0) -> Fit:
        """See `Pass`."""
        weights, top_input = self.net.weights, self.inputs[-1]
        top = self.net.blocks[-1][0] - (c.unsqueeze(-2) @ top_input).squeeze(-2)
        loss = total(top.square(), (-1,))
        along = (top_input @ top.unsqueeze(-1)).squeeze(-1)
        grad_inputs, grad_slopes = [], []
        carried = top_input
        for layer in range(len(weights) - 1):  # up: b_l depends on b_{l+1} and on its own slopes
            below, above, own, part = self._block(layer, c)
            loss, along = loss + part, along + own
            if layer:
                add_product(above, carried, weights[layer].T)
            if layer < len(weights) - 2:
                carried = above * self.slopes[layer]
            grad_inputs.append(below)
            grad_slopes.append(above.mul_(self.outer[layer]))
        grad = top[..., : weights[-1].shape[1]].unsqueeze(-2)
        for layer in range(len(weights) - 2, -1, -1):  # down: a_l and its slopes depend on z_l
            s, steep = self.slopes[layer], grad_slopes[layer]
            steep.addcmul_(steep, s, value=-1)
            alpha = self.alphas[layer]
            if isinstance(alpha, Tensor):
                grad_z = steep.mul_(alpha).add_(grad).mul_(s)
            else:  # one pass less
                grad_z = torch.add(grad, steep, alpha=alpha).mul_(s)
            grad = add_product(grad_inputs[layer], grad_z, weights[layer])
        loss, twice = (loss * share).to(c.dtype), -2 * share
        return Fit(loss, grad * (twice * c).unsqueeze(-1), twice * along)

    def _block(self, layer: int, c: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of one layer's r: b r (..., m, k'), a r' (..., m, k), <r, b_i a_i'> and ||r||^2."""
        w, a, b = self.net.blocks[layer], self.inputs[layer], self.back[layer]
        m, (k, below) = a.shape[-2], w.shape
        plain = w is self.net.weights[layer]
        if not (layer and plain) or 2 * m * (k + below) > 3 * k * below:
            r = w - b.mT @ (c.unsqueeze(-1) * a)
            pulled = b @ r
            share, loss = rows(pulled, a), total(r.square(), (-1, -2))
            inner = pulled if plain else pulled[..., :-1].contiguous()
            return inner, a @ r.mT, share, loss
        # The same from the Gram matrices: W' b and W a are there already.
        gram_a, gram_b = a @ a.mT, b @ b.mT
        row = c.unsqueeze(-2)
        both = (row @ (gram_a * gram_b) @ c.unsqueeze(-1)).squeeze(-1).squeeze(-1)
        pulled = _less_product(self.outer[layer - 1], gram_b.mul_(row), a)
        share = rows(pulled, a)
        loss = self.net.squares[layer] - 2 * total(c * share, (-1,)) - both
        return pulled, _less_product(self.values[layer], gram_a.mul_(row), b), share, loss


def _less_product(total: Tensor, gram: Tensor, a: Tensor) -> Tensor:
    """Total - gram a, start by start, in one pass."""
    if total.ndim == 2:
        return torch.addmm(total, gram, a, alpha=-1)
    flat = (-1, *total.shape[-2:])
    out = torch.baddbmm(total.reshape(flat), gram.reshape(-1, *gram.shape[-2:]),
                        a.reshape(-1, *a.shape[-2:]), alpha=-1)  # fmt: skip
    return out.view(total.shape)
