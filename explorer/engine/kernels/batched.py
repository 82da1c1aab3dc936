r"""The stationarity loss with its gradients, of one start or many at once, at the least cost.

    l = || theta - sum_i c_i grad_theta Phi(theta; x_i) ||^2,  c_i = lam_i y_i

(Haim et al. 2022, eq. 5) under their modified ReLU: forward relu(z), backward sigmoid(alpha z). It
is the loss of `reference.stationarity`, equal to rounding, for one output, on any device. Rows are
neurons and columns candidates, so that each product is a network's weights times a (k, m) array:
the processor's fast case, with the weights kept both ways round. A batch has an axis before them.
Everything is made in place, for a fresh array costs as much as a pass.

What a layer with a bias takes ends in a row of ones. Where alpha is one number, x and that row are
multiplied by it, `scale`, and so are all z and a, for relu is homogeneous: sigmoid(alpha z) and its
derivative then take no pass more. `above` carries it too.

With r = W - sum_i c_i b_i a_i' the products r' b and r a come from the two (m, m) Gram matrices of
a and b wherever that is cheaper than forming r (k, k'): four products of the size m k k' are left
of the nine that a double backward takes. There the loss is good to about 1e-16 ||theta||^2;
elsewhere to rounding of itself.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from explorer.engine.network import Network

Alpha = float | Tensor  # a number, () on the device, or (k,) one per neuron
STRIP = 64  # columns of a Gram matrix at once; measured at m = 100, 200, 400 against 48 and 96
TALL = 128  # rows; below it one product is faster, measured at 64 and 300
_LARGEST = 2**23  # numbers that a thread keeps in work arrays, 64 MB; arbitrary
_local = threading.local()


@dataclass(frozen=True, eq=False)
class LossFit:
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
        portable: whether the CPU runs what other devices run, and keeps no work arrays: for tests
            and benchmarks.
    """

    weights: tuple[Tensor, ...]
    blocks: tuple[Tensor, ...]
    squares: tuple[float, ...]
    slopes: tuple[Tensor, ...] | None = None
    portable: bool = False

    @classmethod
    def of(cls, net: Network, slopes: tuple[Tensor, ...] | None = None) -> Prepared:
        """ValueError for several outputs: `stationarity` serves those."""
        if net.weights[-1].shape[0] != 1:
            raise ValueError(f"expected one output; got {net.weights[-1].shape[0]}")
        blocks = net.blocks
        return cls(net.weights, blocks, tuple(float(square(b, (-1, -2))) for b in blocks), slopes)

    @cached_property
    def transposes(self) -> tuple[Tensor, ...]:
        """Return the weights of each layer, transposed in memory."""
        return tuple(w.T.contiguous() for w in self.weights)

    @property
    def on_cpu(self) -> bool:
        """Return whether the kernels of the CPU serve."""
        return not self.portable and self.weights[0].device.type == "cpu"

    @property
    def square(self) -> float:
        """Return the squared norm ||theta||^2 of the weights."""
        return sum(self.squares)

    @property
    def two_layers(self) -> bool:
        """Return whether there is one hidden layer, and no bias at the output."""
        return len(self.blocks) == 2 and self.blocks[1] is self.weights[1]

    def alpha(self, layer: int, alpha: Alpha) -> Alpha:
        """Alpha of a hidden layer, a number or one per neuron."""
        return alpha if self.slopes is None else self.slopes[layer] * alpha


class _HiddenLayer:
    """The arrays of one hidden layer; `above` and `pulled` may lie in those that are used up."""

    def __init__(self, net: Prepared, layer: int, lead: tuple[int, ...], m: int) -> None:
        self.w, self.wt, self.block = net.weights[layer], net.transposes[layer], net.blocks[layer]
        (k, below), d = self.block.shape, self.w.shape[1]
        self.square, new = net.squares[layer], self.w.new_empty
        self.by_gram = bool(layer) and below == d and 2 * m * (k + below) <= 3 * k * below
        self.z, self.s, self.b, self.outer = (new(*lead, k, m) for _ in range(4))
        self.layer_input = new(*lead, net.blocks[layer + 1].shape[1], m)  # to the next layer
        self.a, self.ones = self.layer_input[..., :k, :], self.layer_input[..., k:, :]
        if not self.by_gram:
            self.above, self.left = new(*lead, k, m), new(*lead, k, below)
            self.made, self.turned = (new(*lead, below, m) for _ in range(2))
            self.pulled = self.turned[..., :d, :]

    def up(self, below: Tensor, alpha: Tensor | None, scale: float) -> None:
        """Fill the values, slopes and outputs."""
        torch.matmul(self.block, below, out=self.z)
        if alpha is None:
            torch.sigmoid(self.z, out=self.s)
        else:
            torch.mul(self.z, alpha, out=self.s).sigmoid_()
        torch.clamp_min(self.z, 0, out=self.a)
        self.ones.fill_(scale)

    def explain(
        self, below: Tensor, c: Tensor, under: _HiddenLayer | None, scale: float
    ) -> tuple[Tensor, Tensor]:
        """Write r' b to `pulled` and r a to `above`; return ||r||^2 and <r, b_i a_i'> (..., m).

        `below` (k', m) is what the layer takes; `under`, the layer that gave it, has carried what
        the layers below add to `above`. Overwrites `z` here, and `b` and `outer` of `under`.
        """
        if self.by_gram and under is not None:  # W' b and W a are there already
            gram_a, gram_b = gram(below), gram(self.b)
            both = total(c * _times(gram_a * gram_b, c), (-1,)) / scale**2
            rows = c.unsqueeze(-1)
            self.pulled = _add_product(under.outer, below, gram_b.mul_(rows), -1 / scale)
            self.above = _add_product(self.z, self.b, gram_a.mul_(rows), -1 / scale)
            _add_product(self.above, self.w, under.b)
            along = torch.mul(self.pulled, below, out=under.b).sum(-2).div_(scale)
            return self.square - 2 * total(c * along, (-1,)) - both, along
        torch.mul(below, c.unsqueeze(-2), out=self.made)
        _add_product(self.block, self.b, self.made.mT, -1 / scale, self.left)
        torch.matmul(self.left.mT, self.b, out=self.turned)
        torch.matmul(self.left, below, out=self.above)
        if under is not None:
            _add_product(self.above, self.w, under.b)
        along = torch.mul(self.turned, below, out=self.made).sum(-2).div_(scale)
        return square(self.left, (-1, -2)), along

    def turn(self, last: bool) -> None:
        """Carry `above` on, and turn it into the gradient on the slopes, times s."""
        if last:
            self.above.mul_(self.b)  # which is outer s yet
        else:
            torch.mul(self.above, self.s, out=self.b)
            torch.mul(self.b, self.outer, out=self.above)

    def down(self, grad: Tensor, alpha: Tensor | None) -> Tensor:
        """Return the gradient on the layer's inputs; `grad` (k, m) or (k, 1) is that on a.

        With `above` the gradient on the slopes times s, that on z is (1 - s) above + s grad.
        """
        onto_z = self.above if alpha is None else self.above.mul_(alpha)
        return _add_product(self.pulled, self.wt, onto_z.lerp_(grad, self.s))


class LossPass:
    """What the layers hold at candidates, x (m, d) or (b, m, d); `lay` fills them."""

    def __init__(self, net: Prepared, lead: tuple[int, ...], m: int) -> None:
        """`lead`: the batch axis, () for one start."""
        self.net = net
        self.layers = [_HiddenLayer(net, i, lead, m) for i in range(len(net.blocks) - 1)]
        self.size = 7 * m * sum(len(layer.w) for layer in self.layers)  # numbers held, about
        for n in lead:
            self.size *= n
        self.x = net.weights[0].new_empty(*lead, net.blocks[0].shape[1], m)
        self.v, self.top = net.weights[-1][0], net.blocks[-1][0]

    def lay(self, x: Tensor, alpha: Alpha) -> LossPass:
        """Go through the network at x (..., m, d)."""
        alphas = [self.net.alpha(i, alpha) for i in range(len(self.layers))]
        self.alphas = [v.unsqueeze(-1) if isinstance(v, Tensor) else None for v in alphas]
        self.scale = 1.0 if isinstance(alphas[0], Tensor) else alphas[0]
        d = x.shape[-1]
        torch.mul(x.mT, self.scale, out=self.x[..., :d, :])
        self.x[..., d:, :] = self.scale
        below = self.x
        for layer, own in zip(self.layers, self.alphas, strict=True):
            layer.up(below, own, self.scale)
            below = layer.layer_input
        last = self.layers[-1]
        torch.mul(last.s, self.v.unsqueeze(-1), out=last.b)
        for layer, over in zip(self.layers[-2::-1], self.layers[:0:-1], strict=True):
            torch.matmul(over.wt, over.b, out=layer.outer)
            torch.mul(layer.outer, layer.s, out=layer.b)
        self.phi = (self.top @ last.layer_input).div_(self.scale)
        return self

    def normal(self) -> tuple[Tensor, Tensor]:
        """Return <grad Phi(x_i), grad Phi(x_j)> (..., m, m) and <theta, grad Phi(x_i)> (..., m)."""
        whole, inner, below = gram(self.layers[-1].layer_input), self.phi * self.scale, self.x
        for layer in self.layers:
            whole += gram(layer.b).mul_(gram(below))
            inner += (layer.b * layer.z).sum(-2)  # <b, z> of each layer
            below = layer.layer_input
        return whole.div_(self.scale**2), inner.div_(self.scale)

    def slope(self) -> Tensor:
        """Return the gradient of Phi on x under the modified ReLU, (..., m, d)."""
        return (self.layers[0].wt @ self.layers[0].b).mT.contiguous()

    def fit(self, c: Tensor, share: float = 1.0) -> LossFit:
        """Return the loss and its gradients at c (..., m), times `share`.

        Uses the pass up: call it once, and last.
        """
        read = self.layers[-1].layer_input
        top = self.top - _times(read, c).div_(self.scale)
        loss, along = square(top, (-1,)), _times(read.mT, top).div_(self.scale)
        below, under = self.x, None
        for layer in self.layers:  # up: b_l depends on b_{l+1} and on its own slopes
            part, own = layer.explain(below, c, under, self.scale)
            loss, along = loss + part, along + own
            layer.turn(layer is self.layers[-1])
            below, under = layer.layer_input, layer
        grad = top[..., : len(self.v)].unsqueeze(-1)
        for layer, alpha in zip(self.layers[::-1], self.alphas[::-1], strict=True):
            grad = layer.down(grad, alpha)  # a_l and its slopes depend on z_l
        twice = -2 * share
        grad_x = grad.mT * (twice * c).unsqueeze(-1)
        return LossFit((loss * share).to(c.dtype), grad_x, along.mul_(twice))


def through(net: Prepared, x: Tensor, alpha: Alpha) -> LossPass:
    """Return a pass through the network at x (m, d) or (b, m, d)."""
    return LossPass(net, tuple(x.shape[:-2]), x.shape[-2]).lay(x, alpha)


def reused_pass(net: Prepared, x: Tensor, alpha: Alpha) -> LossPass:
    """`through` on work arrays that this thread keeps: what it holds is lost at the next call.

    On the CPU alone: a graph captured on CUDA would go on using memory that others may be given.
    """
    if not net.on_cpu:
        return through(net, x, alpha)
    kept: dict[tuple[object, ...], LossPass] = _local.__dict__.setdefault("kept", {})
    key = (net, *x.shape[:-1])
    made = kept.get(key)
    if made is None:
        made = LossPass(net, tuple(x.shape[:-2]), x.shape[-2])
        if made.size <= _LARGEST:
            while made.size + sum(one.size for one in kept.values()) > _LARGEST:
                del kept[next(iter(kept))]
            kept[key] = made
    return made.lay(x, alpha)


def gram(a: Tensor) -> Tensor:
    """<a_i, a_j> of columns, (m, m); of tall ones each product but those in strips is made once."""
    m = a.shape[-1]
    if a.ndim > 2 or len(a) < TALL or m < STRIP:
        return a.mT @ a
    out, starts = a.new_empty(m, m), range(0, m - STRIP // 2, STRIP)
    for j, end in zip(starts, [*starts[1:], m], strict=True):
        torch.mm(a[:, j:].T, a[:, j:end], out=out[j:, j:end])
        out[j:end, end:] = out[end:, j:end].T
    return out


def total(values: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Their sum; that of float32 is made in float64 where the device has it."""
    wide = values.dtype == torch.float32 and values.device.type != "mps"
    return values.sum(dims, dtype=torch.float64 if wide else None)


def square(values: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Return the sum of their squares over the last dimensions `dims`; see `total`."""
    if values.ndim == len(dims) and values.dtype == torch.float64:
        flat = values.reshape(-1)
        return torch.dot(flat, flat)
    return total(values.square(), dims)


def _times(a: Tensor, v: Tensor) -> Tensor:
    """Return a v, start by start: a (..., m, k), v (..., k)."""
    return a.mv(v) if v.ndim == 1 else (a @ v.unsqueeze(-1)).squeeze(-1)


def _add_product(
    base: Tensor, a: Tensor, b: Tensor, factor: float = 1.0, out: Tensor | None = None
) -> Tensor:
    """Write base + factor a b to `out`, or to `base`; what has no batch is that of all starts."""
    out = base if out is None else out
    if out.ndim == 2:
        return torch.addmm(base, a, b, alpha=factor, out=out)
    base, a, b = (v.expand(len(out), *v.shape[-2:]) for v in (base, a, b))
    return torch.baddbmm(base, a, b, alpha=factor, out=out)
