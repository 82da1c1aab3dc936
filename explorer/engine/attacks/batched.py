r"""The stationarity loss with its gradients, for any number of starts at once, at the least cost.

    l = || theta - sum_i c_i grad_theta Phi(theta; x_i) ||^2,  c_i = lam_i y_i

(Haim et al. 2022, eq. 5) under their modified ReLU: forward relu(z), backward sigmoid(alpha z). It
is the loss of `stationarity`, equal to rounding, for one output, written so that the work is little
more than the matrix products that cannot be avoided:

- a leading batch axis: x (..., m, d) holds as many starts as one likes, in one program, on the
  device of the network;
- two layers: alpha is folded into the first weights and v into the residual, so that the (m, k)
  arrays are gone through about ten times, the sigmoid included;
- deeper layers: with r = W - sum_i c_i b_i a_i' the products b r and a r' come from the two (m, m)
  Gram matrices a a' and b b' wherever that is cheaper than forming r (k, k'): four products of the
  size m k k' are left of the nine that a double backward takes.

Where Gram matrices are used the loss is good to about 1e-16 ||theta||^2; elsewhere to rounding of
itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from explorer.engine.network import Network

Alpha = float | Tensor  # a number, () on the device, or (k,) one per neuron


@dataclass(frozen=True, eq=False)
class Fit:
    """The loss (...,) with its gradients on x (..., m, d) and on c = lam y (..., m)."""

    loss: Tensor
    grad_x: Tensor
    grad_c: Tensor


@dataclass(frozen=True, eq=False)
class Prepared:
    """A network as the loss wants it.

    Attributes:
        weights: of each layer, without biases.
        blocks: the same with the bias, where there is one, as last column.
        squares: squared norm of each block.
        slopes: of each hidden layer (k,), factors on alpha, or None; see `merging`.
    """

    weights: tuple[Tensor, ...]
    blocks: tuple[Tensor, ...]
    squares: tuple[float, ...]
    slopes: tuple[Tensor, ...] | None = None

    @classmethod
    def of(cls, net: Network, slopes: tuple[Tensor, ...] | None = None) -> Prepared:
        """ValueError for several outputs: `stationarity` serves those."""
        if net.weights[-1].shape[0] != 1:
            raise ValueError(f"expected one output; got {net.weights[-1].shape[0]}")
        pairs = zip(net.weights, net.biases, strict=True)
        blocks = tuple(w if b is None else torch.cat([w, b[:, None]], dim=1) for w, b in pairs)
        return cls(
            net.weights, blocks, tuple(float(total(b.square(), (-1, -2))) for b in blocks), slopes
        )

    @property
    def square(self) -> float:
        """||theta||^2."""
        return sum(self.squares)

    def alpha(self, layer: int, alpha: Alpha) -> Alpha:
        """Alpha of a hidden layer, a number or one per neuron."""
        return alpha if self.slopes is None else self.slopes[layer] * alpha

    def fed(self, layer: int, a: Tensor) -> Tensor:
        """The input of a layer, with a column of ones where it has a bias."""
        if self.blocks[layer] is self.weights[layer]:
            return a
        return torch.cat([a, a.new_ones(*a.shape[:-1], 1)], dim=-1)


class Pass:
    """What the layers hold at candidates x (..., m, d)."""

    @property
    def phi(self) -> Tensor:
        """Phi (..., m)."""
        raise NotImplementedError

    def normal(self) -> tuple[Tensor, Tensor]:
        """<grad Phi(x_i), grad Phi(x_j)> (..., m, m) and <theta, grad Phi(x_i)> (..., m)."""
        raise NotImplementedError

    def slope(self) -> Tensor:
        """The gradient of Phi on x under the modified ReLU, (..., m, d)."""
        raise NotImplementedError

    def fit(self, c: Tensor) -> Fit:
        """The loss and its gradients at c (..., m). Uses the pass up: call it once, and last."""
        raise NotImplementedError

    def pull(self, c: Tensor, share: float = 1.0) -> tuple[Tensor, Tensor]:
        """The gradients alone, times `share`."""
        fit = self.fit(c)
        return fit.grad_x.mul_(share), fit.grad_c.mul_(share)


def through(net: Prepared, x: Tensor, alpha: Alpha) -> Pass:
    """Go through the network once. x (..., m, d)."""
    two = len(net.blocks) == 2 and net.blocks[1] is net.weights[1]
    return (_TwoLayers if two else _Deeper)(net, x, alpha)


class _TwoLayers(Pass):
    """With r = alpha relu(z): v / alpha takes the place of v wherever r stands."""

    def __init__(self, net: Prepared, x: Tensor, alpha: Alpha) -> None:
        self.a, self.d = net.fed(0, x), x.shape[-1]
        self.alpha = net.alpha(0, alpha)
        self.first, self.v = net.blocks[0].T, net.blocks[1][0]
        self.steep = self.first * self.alpha
        self.z = self.a @ self.steep  # alpha times the values before the ReLU
        self.s = torch.sigmoid(self.z)
        self.r = self.z.clamp_min(0)

    @cached_property
    def phi(self) -> Tensor:
        return self.r @ (self.v / self.alpha)

    def normal(self) -> tuple[Tensor, Tensor]:
        back, relu = self.s * self.v, self.r / self.alpha
        gram = (back @ back.mT) * (self.a @ self.a.mT) + relu @ relu.mT
        return gram, _rows(self.s * (self.v / self.alpha), self.z) + self.phi

    def slope(self) -> Tensor:
        return self.s @ (self.first[: self.d] * self.v).T

    def fit(self, c: Tensor) -> Fit:
        left, left_v = self._left(c)
        loss = total(left.square(), (-1, -2)) + total(left_v.square(), (-1,))
        return Fit(loss.to(c.dtype), *self._gradients(c, left, left_v))

    def pull(self, c: Tensor, share: float = 1.0) -> tuple[Tensor, Tensor]:
        return self._gradients(c, *self._left(c), share)

    def _left(self, c: Tensor) -> tuple[Tensor, Tensor]:
        """What is left of the first weights (..., D, k) and of v (..., k)."""
        made = (c.unsqueeze(-1) * self.a).mT @ self.s
        left = torch.addcmul(self.first, made, self.v, value=-1)
        made_v = _times(self.r.mT, c)
        return left, self.v - made_v / self.alpha

    def _gradients(
        self, c: Tensor, left: Tensor, left_v: Tensor, share: float = 1.0
    ) -> tuple[Tensor, Tensor]:
        s, d, first = self.s, self.d, self.first[: self.d]
        pulled = left * self.v
        t = (self.a @ pulled).mul_(s)
        along = t.sum(-1).add_(_times(self.r, left_v / self.alpha)).mul_(-2 * share)
        linear = torch.addcmul(pulled[..., :d, :], first, left_v.unsqueeze(-2))
        t.addcmul_(t, s, value=-1)
        grad = _add_product(s @ linear.mT, t, self.steep[:d].T)
        return grad.mul_((c * (-2 * share)).unsqueeze(-1)), along


class _Deeper(Pass):
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
        return (self.inputs[-1] @ self.net.blocks[-1][0].unsqueeze(-1)).squeeze(-1)

    def normal(self) -> tuple[Tensor, Tensor]:
        top = self.inputs[-1]
        gram, inner = top @ top.mT, self.phi  # <theta, grad Phi> of a layer is <b, z>
        for a, b, z in zip(self.inputs[:-1], self.back, self.values, strict=True):
            gram = gram + (b @ b.mT).mul_(a @ a.mT)
            inner = inner + _rows(b, z)
        return gram, inner

    def slope(self) -> Tensor:
        return self.back[0] @ self.net.weights[0]

    def fit(self, c: Tensor) -> Fit:
        weights, top_input = self.net.weights, self.inputs[-1]
        top = self.net.blocks[-1][0] - (c.unsqueeze(-2) @ top_input).squeeze(-2)
        loss = total(top.square(), (-1,))
        along = (top_input @ top.unsqueeze(-1)).squeeze(-1)
        grad_inputs, grad_slopes = [], []
        carried = top_input
        for layer in range(len(weights) - 1):  # up: b_l depends on b_{l+1} and on its own slopes
            below, above, share, part = self._block(layer, c)
            loss, along = loss + part, along + share
            if layer:
                _add_product(above, carried, weights[layer].T)
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
            grad = _add_product(grad_inputs[layer], grad_z, weights[layer])
        return Fit(loss.to(c.dtype), grad * (-2 * c).unsqueeze(-1), -2 * along)

    def _block(self, layer: int, c: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of one layer's r: b r (..., m, k'), a r' (..., m, k), <r, b_i a_i'> and ||r||^2."""
        w, a, b = self.net.blocks[layer], self.inputs[layer], self.back[layer]
        m, (k, below) = a.shape[-2], w.shape
        plain = w is self.net.weights[layer]
        if not (layer and plain) or 2 * m * (k + below) > 3 * k * below:
            r = w - b.mT @ (c.unsqueeze(-1) * a)
            pulled = b @ r
            share, loss = _rows(pulled, a), total(r.square(), (-1, -2))
            inner = pulled if plain else pulled[..., :-1].contiguous()
            return inner, a @ r.mT, share, loss
        # The same from the Gram matrices: W' b and W a are there already.
        gram_a, gram_b = a @ a.mT, b @ b.mT
        row = c.unsqueeze(-2)
        both = (row @ (gram_a * gram_b) @ c.unsqueeze(-1)).squeeze(-1).squeeze(-1)
        pulled = _less_product(self.outer[layer - 1], gram_b.mul_(row), a)
        share = _rows(pulled, a)
        loss = self.net.squares[layer] - 2 * total(c * share, (-1,)) - both
        return pulled, _less_product(self.values[layer], gram_a.mul_(row), b), share, loss


def total(values: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Their sum; that of float32 is made in float64 where the device has it."""
    wide = values.dtype == torch.float32 and values.device.type != "mps"
    return values.sum(dims, dtype=torch.float64 if wide else None)


def _times(a: Tensor, v: Tensor) -> Tensor:
    """A v, start by start: a (..., m, k), v (..., k)."""
    return a.mv(v) if v.ndim == 1 else (a @ v.unsqueeze(-1)).squeeze(-1)


def _rows(a: Tensor, b: Tensor) -> Tensor:
    """<a_i, b_i> for every row, in one pass."""
    return (a.unsqueeze(-2) @ b.unsqueeze(-1)).squeeze(-1).squeeze(-1)


def _add_product(total: Tensor, a: Tensor, w: Tensor) -> Tensor:
    """Total + a w, in place; a (..., m, k) against one w (k, k')."""
    if total.ndim == 2:
        return total.addmm_(a, w)
    total.view(-1, total.shape[-1]).addmm_(a.reshape(-1, a.shape[-1]), w)
    return total


def _less_product(total: Tensor, gram: Tensor, a: Tensor) -> Tensor:
    """Total - gram a, start by start, in one pass."""
    if total.ndim == 2:
        return torch.addmm(total, gram, a, alpha=-1)
    flat = (-1, *total.shape[-2:])
    out = torch.baddbmm(total.reshape(flat), gram.reshape(-1, *gram.shape[-2:]),
                        a.reshape(-1, *a.shape[-2:]), alpha=-1)  # fmt: skip
    return out.view(total.shape)
