r"""The stationarity loss of three layers and more, one start, on work arrays that are kept.

The mathematics is that of `deeper`; here rows are neurons and columns candidates, so that each
product is a network's weights times an (k, m) array: the processor's fast case, with the weights
kept both ways round. Everything is made in place, for a fresh array costs as much as a pass.

What a layer with a bias takes ends in a row of ones. Where alpha is one number, x and that row are
multiplied by it, `scale`, and so are all z and a, for relu is homogeneous: sigmoid(alpha z) and its
derivative then take no pass more. `above` carries it too.
"""

from __future__ import annotations

import torch
from torch import Tensor

from explorer.engine.attacks.prepared import Alpha, Fit, Pass, Prepared

STRIP = 64  # columns of a Gram matrix at once; measured at m = 100, 200, 400 against 48 and 96
TALL = 128  # rows; below it one product is faster, measured at 64 and 300


class _Layer:
    """The arrays of one hidden layer; `above` and `pulled` may lie in those that are used up."""

    def __init__(self, net: Prepared, layer: int, m: int) -> None:
        self.w, self.wt, self.block = net.weights[layer], net.turned[layer], net.blocks[layer]
        k, below = self.block.shape
        self.square = net.squares[layer]
        plain = self.block is self.w
        self.by_gram = bool(layer) and plain and 2 * m * (k + below) <= 3 * k * below
        self.z, self.s, self.b, self.outer = (self.w.new_empty(k, m) for _ in range(4))
        self.fed = self.w.new_empty(net.blocks[layer + 1].shape[1], m)  # to the next layer
        self.a = self.fed[:k]
        if not self.by_gram:
            self.above, self.left = self.w.new_empty(k, m), torch.empty_like(self.block)
            self.made, self.turned = (self.w.new_empty(below, m) for _ in range(2))
            self.pulled = self.turned[: self.w.shape[1]]

    def up(self, below: Tensor, alpha: Tensor | None, scale: float) -> None:
        """Values, slopes and outputs."""
        torch.mm(self.block, below, out=self.z)
        if alpha is None:
            torch.sigmoid(self.z, out=self.s)
        else:
            torch.mul(self.z, alpha, out=self.s).sigmoid_()
        torch.clamp_min(self.z, 0, out=self.a)
        self.fed[len(self.z) :] = scale

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
        torch.mm(self.left.T, self.b, out=self.turned)
        torch.mm(self.left, below, out=self.above)
        if under is not None:
            self.above.addmm_(self.w, under.b)
        along = torch.mul(self.turned, below, out=self.made).sum(0).div_(scale)
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
            below = layer.fed
        last = self.layers[-1]
        torch.mul(last.s, self.v.unsqueeze(-1), out=last.b)
        for layer, over in zip(self.layers[-2::-1], self.layers[:0:-1], strict=True):
            torch.mm(over.wt, over.b, out=layer.outer)
            torch.mul(layer.outer, layer.s, out=layer.b)
        self._phi = torch.mv(last.fed.T, self.top).div_(self.scale)
        return self

    @property
    def phi(self) -> Tensor:
        """Phi (m,)."""
        return self._phi

    def normal(self) -> tuple[Tensor, Tensor]:
        """See `Pass`."""
        square = self.scale**2
        whole, inner = gram(self.layers[-1].fed) / square, self.phi
        below = self.x
        for layer in self.layers:
            whole = whole + gram(layer.b).mul_(gram(below)).div_(square)
            inner = inner + (layer.b * layer.z).sum(0).div_(self.scale)  # <b, z> of each layer
            below = layer.fed
        return whole, inner

    def slope(self) -> Tensor:
        """See `Pass`."""
        return (self.layers[0].wt @ self.layers[0].b).T.contiguous()

    def fit(self, c: Tensor, share: float = 1.0) -> Fit:
        """See `Pass`."""
        last = self.layers[-1]
        top = torch.addmv(self.top, last.fed, c, alpha=-1 / self.scale)
        loss, along = torch.dot(top, top), torch.mv(last.fed.T, top).div_(self.scale)
        below, under = self.x, None
        for layer in self.layers:  # up: b_l depends on b_{l+1} and on its own slopes
            part, own = layer.explain(below, c, under, self.scale)
            loss, along = loss + part, along + own
            layer.turn(layer is last)
            below, under = layer.fed, layer
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
