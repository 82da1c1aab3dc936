r"""The stationarity loss of three layers and more, one start, on work arrays that are kept.

The mathematics is that of `deeper`; here rows are neurons and columns candidates, so that each
product is a network's weights times an (k, m) array: the processor's fast case, with the weights
kept both ways round. Everything is made in place, for a fresh array costs as much as a pass.
"""

from __future__ import annotations

import torch
from torch import Tensor

from explorer.engine.attacks.prepared import Alpha, Fit, Pass, Prepared

HALVES = 128  # candidates; arbitrary, measured at 100 (no gain) and 200 (a fifth)


class _Layer:
    """The arrays of one hidden layer; `above` and `pulled` may lie in those that are used up."""

    def __init__(self, net: Prepared, layer: int, m: int) -> None:
        self.w = net.weights[layer]
        self.wt = net.turned[layer]
        k, below = self.w.shape
        plain = net.blocks[layer] is self.w
        self.bias = None if plain else net.blocks[layer][:, -1].contiguous()
        self.square = net.squares[layer]
        self.by_gram = bool(layer) and plain and 2 * m * (k + below) <= 3 * k * below
        self.z, self.s, self.a, self.b = (self.w.new_empty(k, m) for _ in range(4))
        self.outer = self.w.new_empty(k, m)
        if not self.by_gram:
            self.above, self.pulled = self.w.new_empty(k, m), self.w.new_empty(below, m)
            self.left, self.made = torch.empty_like(self.w), self.w.new_empty(below, m)

    def up(self, below: Tensor, alpha: Alpha) -> None:
        """Values, slopes and outputs."""
        torch.mm(self.w, below, out=self.z)
        if self.bias is not None:
            self.z.add_(self.bias.unsqueeze(-1))
        torch.mul(self.z, alpha, out=self.s).sigmoid_()
        torch.clamp_min(self.z, 0, out=self.a)

    def explain(self, below: Tensor, c: Tensor, under: _Layer | None) -> tuple[Tensor, Tensor]:
        """Of its r: r' b into `pulled`, r a into `above`; -> ||r||^2 and <r, b_i a_i'> (m,).

        `below` (k', m) is what the layer takes; `under`, the layer that gave it, has carried what
        the layers below add to `above`. Both r' b and r a take the place of what is used up.
        """
        if self.by_gram and under is not None:  # W' b and W a are there already
            gram_a, gram_b = gram(below), gram(self.b)
            both = torch.dot(c, torch.mv(gram_a * gram_b, c))
            self.pulled = under.outer.addmm_(below, gram_b.mul_(c.unsqueeze(-1)), alpha=-1)
            self.above = self.z.addmm_(self.b, gram_a.mul_(c.unsqueeze(-1)), alpha=-1)
            self.above.addmm_(self.w, under.b)
            along = torch.mul(self.pulled, below, out=under.b).sum(0)
            return self.square - 2 * torch.dot(c, along) - both, along
        torch.mul(below, c, out=self.made)
        torch.addmm(self.w, self.b, self.made.T, alpha=-1, out=self.left)
        torch.mm(self.left.T, self.b, out=self.pulled)
        torch.mm(self.left, below, out=self.above)
        loss = torch.dot(self.left.view(-1), self.left.view(-1))
        along = torch.mul(self.pulled, below, out=self.made).sum(0)
        if self.bias is not None:
            left = torch.addmv(self.bias, self.b, c, alpha=-1)
            loss, along = loss + torch.dot(left, left), along + torch.mv(self.b.T, left)
            self.above.add_(left.unsqueeze(-1))
        if under is not None:
            self.above.addmm_(self.w, under.b)
        return loss, along

    def turn(self, outer: Tensor, last: bool) -> None:
        """Carry `above` on, and turn it into the gradient on the slopes, times s (1 - s)."""
        if not last:
            torch.mul(self.above, self.s, out=self.b)
        self.above.mul_(outer)
        torch.ops.aten.sigmoid_backward.grad_input(self.above, self.s, grad_input=self.above)

    def down(self, grad: Tensor, alpha: Alpha) -> Tensor:
        """From the gradient on a (k, m) or (k, 1) to that on the layer's inputs."""
        if isinstance(alpha, Tensor):
            onto_z, share = self.above.mul_(alpha).addcmul_(grad, self.s), 1.0
        else:  # one pass less
            onto_z, share = self.above.addcmul_(grad, self.s, value=1 / alpha), alpha
        return self.pulled.addmm_(self.wt, onto_z, alpha=share)


class Columns(Pass):
    """The signals of every layer; `lay` fills them."""

    def __init__(self, net: Prepared, m: int) -> None:
        """One start of m candidates."""
        self.net, w = net, net.weights[0]
        self.layers = [_Layer(net, i, m) for i in range(len(net.blocks) - 1)]
        self.numbers = 7 * m * sum(len(layer.w) for layer in self.layers)  # about
        self.x = w.new_empty(w.shape[1], m)
        self.v, block = net.weights[-1][0], net.blocks[-1]
        self.v0 = None if block is net.weights[-1] else block[0, -1]

    def lay(self, x: Tensor, alpha: Alpha) -> Columns:
        """Go through the network. x (m, d)."""
        self.x.copy_(x.mT)
        below, self.alphas = self.x, list[Alpha]()
        for i, layer in enumerate(self.layers):
            now = self.net.alpha(i, alpha)
            self.alphas.append(now.unsqueeze(-1) if isinstance(now, Tensor) else now)
            layer.up(below, self.alphas[-1])
            below = layer.a
        last = self.layers[-1]
        torch.mul(last.s, self.v.unsqueeze(-1), out=last.b)
        for layer, over in zip(self.layers[-2::-1], self.layers[:0:-1], strict=True):
            torch.mm(over.wt, over.b, out=layer.outer)
            torch.mul(layer.outer, layer.s, out=layer.b)
        self._phi = torch.mv(last.a.T, self.v)
        if self.v0 is not None:
            self._phi.add_(self.v0)
        return self

    @property
    def phi(self) -> Tensor:
        """Phi (m,)."""
        return self._phi

    def normal(self) -> tuple[Tensor, Tensor]:
        """See `Pass`."""
        whole, inner = gram(self.layers[-1].a), self.phi  # <theta, grad Phi> of a layer is <b, z>
        if self.v0 is not None:
            whole = whole + 1
        below = self.x
        for layer in self.layers:
            inputs = gram(below)
            whole = whole + gram(layer.b).mul_(inputs if layer.bias is None else inputs + 1)
            inner = inner + (layer.b * layer.z).sum(0)
            below = layer.a
        return whole, inner

    def slope(self) -> Tensor:
        """See `Pass`."""
        return (self.layers[0].wt @ self.layers[0].b).T.contiguous()

    def fit(self, c: Tensor, share: float = 1.0) -> Fit:
        """See `Pass`."""
        last = self.layers[-1]
        top = torch.addmv(self.v, last.a, c, alpha=-1)
        loss, along = torch.dot(top, top), torch.mv(last.a.T, top)
        if self.v0 is not None:
            left = self.v0 - c.sum()
            loss, along = loss + left.square(), along + left
        below, under = self.x, None
        for layer in self.layers:  # up: b_l depends on b_{l+1} and on its own slopes
            part, own = layer.explain(below, c, under)
            loss, along = loss + part, along + own
            layer.turn(self.v.unsqueeze(-1) if layer is last else layer.outer, layer is last)
            below, under = layer.a, layer
        grad = top.unsqueeze(-1)
        for layer, alpha in zip(self.layers[::-1], self.alphas[::-1], strict=True):
            grad = layer.down(grad, alpha)  # a_l and its slopes depend on z_l
        twice = -2 * share
        return Fit(loss * share, grad.T * (twice * c).unsqueeze(-1), along.mul_(twice))


def gram(a: Tensor) -> Tensor:
    """<a_i, a_j> of columns; of many, three quarters of the products give it."""
    m = a.shape[1]
    if m < HALVES:
        return a.T @ a
    out, half = a.new_empty(m, m), m // 2
    one, two = a[:, :half], a[:, half:]
    torch.mm(one.T, one, out=out[:half, :half])
    torch.mm(two.T, two, out=out[half:, half:])
    torch.mm(one.T, two, out=out[:half, half:])
    out[half:, :half] = out[:half, half:].T
    return out
