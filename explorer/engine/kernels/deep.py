"""The stationarity loss of two layers and many inputs: see `batched`; few: see `small`."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from explorer.engine.kernels.prepared import Alpha, Fit, Pass, Prepared, total


class TwoLayers(Pass):
    """With r = alpha relu(z): v / alpha takes the place of v wherever r stands."""

    def __init__(self, net: Prepared, x: Tensor, alpha: Alpha) -> None:
        self.a, self.d = net.layer_input(0, x), x.shape[-1]
        self.alpha = net.alpha(0, alpha)
        self.first, self.v = net.blocks[0].T, net.blocks[1][0]
        self.steep = self.first * self.alpha
        self.z = self.a @ self.steep  # alpha times the values before the ReLU
        self.s = torch.sigmoid(self.z)
        self.r = self.z.clamp_min(0)

    @cached_property
    def phi(self) -> Tensor:
        """Phi (..., m)."""
        return self.r @ (self.v / self.alpha)

    def normal(self) -> tuple[Tensor, Tensor]:
        """See `Pass`."""
        back, relu = self.s * self.v, self.r / self.alpha
        gram = (back @ back.mT) * (self.a @ self.a.mT) + relu @ relu.mT
        return gram, rows(self.s * (self.v / self.alpha), self.z) + self.phi

    def slope(self) -> Tensor:
        """See `Pass`."""
        return self.s @ (self.first[: self.d] * self.v).T

    def fit(self, c: Tensor, share: float = 1.0) -> Fit:
        """See `Pass`."""
        left, left_v = self._left(c)
        loss = total(left.square(), (-1, -2)) + total(left_v.square(), (-1,))
        return Fit((loss * share).to(c.dtype), *self._gradients(c, left, left_v, share))

    def pull(self, c: Tensor, share: float = 1.0) -> tuple[Tensor, Tensor]:
        """See `Pass`."""
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
        grad = add_product(s @ linear.mT, t, self.steep[:d].T)
        return grad.mul_((c * (-2 * share)).unsqueeze(-1)), along


def _times(a: Tensor, v: Tensor) -> Tensor:
    """A v, start by start: a (..., m, k), v (..., k)."""
    return a.mv(v) if v.ndim == 1 else (a @ v.unsqueeze(-1)).squeeze(-1)


def rows(a: Tensor, b: Tensor) -> Tensor:
    """<a_i, b_i> for every row, in one pass."""
    return (a.unsqueeze(-2) @ b.unsqueeze(-1)).squeeze(-1).squeeze(-1)


def add_product(total: Tensor, a: Tensor, w: Tensor) -> Tensor:
    """`total` + a w, in place; a (..., m, k) against one w (k, k')."""
    if total.ndim == 2:
        return total.addmm_(a, w)
    total.view(-1, total.shape[-1]).addmm_(a.reshape(-1, a.shape[-1]), w)
    return total


# --- The stationarity loss of three layers and more; see `batched` ------------------------------


class Deeper(Pass):
    """The signals of every layer."""

    def __init__(self, net: Prepared, x: Tensor, alpha: Alpha) -> None:
        self.net, self.d = net, x.shape[-1]
        self.alphas = [net.alpha(layer, alpha) for layer in range(len(net.blocks) - 1)]
        self.inputs, self.slopes = [net.layer_input(0, x)], list[Tensor]()
        self.values: list[Tensor] = []
        for layer, block in enumerate(net.blocks[:-1]):
            z = self.inputs[-1] @ block.T
            self.values.append(z)
            self.slopes.append((self.alphas[layer] * z).sigmoid_())
            self.inputs.append(net.layer_input(layer + 1, z.clamp_min(0)))
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


# --- The stationarity loss of three layers and more, one start, on work arrays that are kept ----
# The mathematics is that of `deeper`; here rows are neurons and columns candidates, so that each
# product is a network's weights times an (k, m) array: the processor's fast case, with the weights
# kept both ways round. Everything is made in place, for a fresh array costs as much as a pass.
#
# What a layer with a bias takes ends in a row of ones. Where alpha is one number, x and that row
# are multiplied by it, `scale`, and so are all z and a, for relu is homogeneous: sigmoid(alpha z)
# and its derivative then take no pass more. `above` carries it too.

STRIP = 64  # columns of a Gram matrix at once; measured at m = 100, 200, 400 against 48 and 96
TALL = 128  # rows; below it one product is faster, measured at 64 and 300


class _Layer:
    """The arrays of one hidden layer; `above` and `pulled` may lie in those that are used up."""

    def __init__(self, net: Prepared, layer: int, m: int) -> None:
        self.w, self.wt, self.block = net.weights[layer], net.transposes[layer], net.blocks[layer]
        k, below = self.block.shape
        self.square = net.squares[layer]
        plain = self.block is self.w
        self.by_gram = bool(layer) and plain and 2 * m * (k + below) <= 3 * k * below
        self.z, self.s, self.b, self.outer = (self.w.new_empty(k, m) for _ in range(4))
        self.layer_input = self.w.new_empty(net.blocks[layer + 1].shape[1], m)  # to the next layer
        self.a = self.layer_input[:k]
        if not self.by_gram:
            self.above, self.left = self.w.new_empty(k, m), torch.empty_like(self.block)
            self.made, self.transposes = (self.w.new_empty(below, m) for _ in range(2))
            self.pulled = self.transposes[: self.w.shape[1]]

    def up(self, below: Tensor, alpha: Tensor | None, scale: float) -> None:
        """Values, slopes and outputs."""
        torch.mm(self.block, below, out=self.z)
        if alpha is None:
            torch.sigmoid(self.z, out=self.s)
        else:
            torch.mul(self.z, alpha, out=self.s).sigmoid_()
        torch.clamp_min(self.z, 0, out=self.a)
        self.layer_input[len(self.z) :] = scale

    def explain(
        self, below: Tensor, c: Tensor, under: _Layer | None, scale: float
    ) -> tuple[Tensor, Tensor]:
        """Of its r: r' b into `pulled`, r a into `above`; -> ||r||^2 and <r, b_i a_i'> (m,).

        `below` (k', m) is what the layer takes; `under`, the layer that gave it, has carried what
        the layers below add to `above`. Both r' b and r a take the place of what is used up.
        """
        if self.by_gram and under is not None:  # W' b and W a are there already
            gram_a, gram_b = gram(below), gram(self.b)
            both = torch.dot(c, torch.mv(gram_a * gram_b, c)) / scale**2
            self.pulled = under.outer.addmm_(below, gram_b.mul_(c.unsqueeze(-1)), alpha=-1 / scale)
            self.above = self.z.addmm_(self.b, gram_a.mul_(c.unsqueeze(-1)), alpha=-1 / scale)
            self.above.addmm_(self.w, under.b)
            along = torch.mul(self.pulled, below, out=under.b).sum(0).div_(scale)
            return self.square - 2 * torch.dot(c, along) - both, along
        torch.mul(below, c, out=self.made)
        torch.addmm(self.block, self.b, self.made.T, alpha=-1 / scale, out=self.left)
        torch.mm(self.left.T, self.b, out=self.transposes)
        torch.mm(self.left, below, out=self.above)
        if under is not None:
            self.above.addmm_(self.w, under.b)
        along = torch.mul(self.transposes, below, out=self.made).sum(0).div_(scale)
        return torch.dot(self.left.view(-1), self.left.view(-1)), along

    def turn(self, last: bool) -> None:
        """Carry `above` on, and turn it into the gradient on the slopes, times s."""
        if last:
            self.above.mul_(self.b)  # which is outer s yet
        else:
            torch.mul(self.above, self.s, out=self.b)
            torch.mul(self.b, self.outer, out=self.above)

    def down(self, grad: Tensor, alpha: Tensor | None) -> Tensor:
        """From the gradient on a (k, m) or (k, 1) to that on the layer's inputs.

        With `above` the gradient on the slopes times s, that on z is (1 - s) above + s grad.
        """
        onto_z = self.above if alpha is None else self.above.mul_(alpha)
        return self.pulled.addmm_(self.wt, onto_z.lerp_(grad, self.s))


class Columns(Pass):
    """The signals of every layer; `lay` fills them."""

    def __init__(self, net: Prepared, m: int) -> None:
        """One start of m candidates."""
        self.net = net
        self.layers = [_Layer(net, i, m) for i in range(len(net.blocks) - 1)]
        self.numbers = 7 * m * sum(len(layer.w) for layer in self.layers)  # about
        self.x = net.weights[0].new_empty(net.blocks[0].shape[1], m)
        self.v, self.top = net.weights[-1][0], net.blocks[-1][0]

    def lay(self, x: Tensor, alpha: Alpha) -> Columns:
        """Go through the network. x (m, d)."""
        alphas = [self.net.alpha(i, alpha) for i in range(len(self.layers))]
        self.alphas = [v.unsqueeze(-1) if isinstance(v, Tensor) else None for v in alphas]
        self.scale = 1.0 if isinstance(alphas[0], Tensor) else alphas[0]
        d = x.shape[1]
        torch.mul(x.mT, self.scale, out=self.x[:d])
        self.x[d:] = self.scale
        below = self.x
        for layer, own in zip(self.layers, self.alphas, strict=True):
            layer.up(below, own, self.scale)
            below = layer.layer_input
        last = self.layers[-1]
        torch.mul(last.s, self.v.unsqueeze(-1), out=last.b)
        for layer, over in zip(self.layers[-2::-1], self.layers[:0:-1], strict=True):
            torch.mm(over.wt, over.b, out=layer.outer)
            torch.mul(layer.outer, layer.s, out=layer.b)
        self._phi = torch.mv(last.layer_input.T, self.top).div_(self.scale)
        return self

    @property
    def phi(self) -> Tensor:
        """Phi (m,)."""
        return self._phi

    def normal(self) -> tuple[Tensor, Tensor]:
        """See `Pass`."""
        square = self.scale**2
        whole, inner = gram(self.layers[-1].layer_input) / square, self.phi
        below = self.x
        for layer in self.layers:
            whole = whole + gram(layer.b).mul_(gram(below)).div_(square)
            inner = inner + (layer.b * layer.z).sum(0).div_(self.scale)  # <b, z> of each layer
            below = layer.layer_input
        return whole, inner

    def inner(self) -> Tensor:
        """<theta, grad Phi(x_i)> (m,)."""
        own = [(layer.b * layer.z).sum(0) for layer in self.layers]  # <b, z> of each layer
        return self.phi + torch.stack(own).sum(0).div_(self.scale)

    def sizes(self) -> Tensor:
        """||grad Phi(x_i)||^2 (m,)."""
        whole, below = self.layers[-1].layer_input.square().sum(0), self.x
        for layer in self.layers:
            whole += layer.b.square().sum(0) * below.square().sum(0)
            below = layer.layer_input
        return whole / self.scale**2

    def cross(self, at: Tensor) -> Tensor:
        """<grad Phi(x_i), grad Phi(x_j)> of all i and of j in `at` (p,) -> (m, p)."""
        top, below = self.layers[-1].layer_input, self.x
        whole = top.T @ top[:, at]
        for layer in self.layers:
            b, a = layer.b, below
            whole += (b.T @ b[:, at]).mul_(a.T @ a[:, at])
            below = layer.layer_input
        return whole.div_(self.scale**2)

    def only(self, at: Tensor) -> Columns:
        """The same at the candidates `at` (p,) alone, on arrays of its own."""
        some = Columns(self.net, len(at))
        some.scale, some.alphas, some._phi = self.scale, self.alphas, self._phi[at]
        some.x = self.x[:, at]
        for ours, whole in zip(some.layers, self.layers, strict=True):
            names = ("z", "s", "b", "layer_input") if whole is self.layers[-1] else None
            for name in names or ("z", "s", "b", "outer", "layer_input"):
                torch.index_select(getattr(whole, name), 1, at, out=getattr(ours, name))
        return some

    def slope(self) -> Tensor:
        """See `Pass`."""
        return (self.layers[0].wt @ self.layers[0].b).T.contiguous()

    def fit(self, c: Tensor, share: float = 1.0) -> Fit:
        """See `Pass`."""
        last = self.layers[-1]
        top = torch.addmv(self.top, last.layer_input, c, alpha=-1 / self.scale)
        loss, along = torch.dot(top, top), torch.mv(last.layer_input.T, top).div_(self.scale)
        below, under = self.x, None
        for layer in self.layers:  # up: b_l depends on b_{l+1} and on its own slopes
            part, own = layer.explain(below, c, under, self.scale)
            loss, along = loss + part, along + own
            layer.turn(layer is last)
            below, under = layer.layer_input, layer
        grad = top[: len(self.v)].unsqueeze(-1)
        for layer, alpha in zip(self.layers[::-1], self.alphas[::-1], strict=True):
            grad = layer.down(grad, alpha)  # a_l and its slopes depend on z_l
        twice = -2 * share
        return Fit(loss * share, grad.T * (twice * c).unsqueeze(-1), along.mul_(twice))


def gram(a: Tensor) -> Tensor:
    """<a_i, a_j> of columns, (m, m); of tall ones each product but those in strips is made once."""
    m = a.shape[1]
    if len(a) < TALL or m < STRIP:
        return a.T @ a
    out, starts = a.new_empty(m, m), range(0, m - STRIP // 2, STRIP)
    for j, end in zip(starts, [*starts[1:], m], strict=True):
        torch.mm(a[:, j:].T, a[:, j:end], out=out[j:, j:end])
        out[j:end, end:] = out[end:, j:end].T
    return out
