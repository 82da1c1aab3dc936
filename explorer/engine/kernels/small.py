r"""The stationarity loss of two layers and few inputs, on work arrays that are kept; see `batched`.

With z~ = alpha z, r = relu(z~), s = sigmoid(z~) and a = (x, 1), rows being neurons and columns
candidates, everything large is a (k, m) array:

    made_s = c a s',  made_r = c r'
    left   = (W, b)' - v made_s       left_v = v - made_r / alpha            what is left of theta
    p      = v left                   t = (p' a) s,  u = t (1 - s)
    dl/da  = -2 c (alpha (W, b)' u + (p + (W, b)' left_v) s)                 one product of [u; s]
    dl/dc  = -2 (sum_k t + (left_v / alpha) r)                               one product of [r; t]

u, s, r and t lie in one array (4k, m): five products and five passes a step, the sigmoid among
them. A batch has a leading axis everywhere.
"""

from __future__ import annotations

import torch
from torch import Tensor

from explorer.engine.kernels.prepared import Alpha, Fit, Pass, Prepared, total

FEW = (
    64  # inputs; measured at k = 154 and 1000, m = 40 and 200: `two_layers` takes 0.97 to 1.7 times
)
# as long up to 64, 0.93 to 1.09 times at 196


class Workspace(Pass):
    """The arrays of one network and one shape of candidates; `lay` fills them.

    `a` (..., d + 1, m) holds the candidates, one per column, over a row of ones.
    """

    def __init__(self, net: Prepared, lead: tuple[int, ...], m: int) -> None:
        """`lead`: the batch axes, () for one start."""
        w, block, v = net.weights[0], net.blocks[0], net.blocks[1]
        (k, d), bias = w.shape, block is not w
        size = d + 1
        self.now: Alpha = 0.0
        self.slopes = None if net.slopes is None else net.slopes[0]
        self.d, self.v = d, v
        self.first = (block.T if bias else torch.cat([w.T, w.new_zeros(1, k)])).contiguous()
        self.times = v.repeat(size, 1)
        if not bias:
            self.times[d] = 0  # there is no such weight to explain
        self.first_of_all = self.first.expand(*lead, size, k)
        self.pulling, self.square = self.first * self.times, self.times.square()
        work = w.new_empty(*lead, 4 * k, m)
        self.numbers = work.numel() + 10 * work.numel() // (4 * m) * size  # about
        self.u, self.s, self.r, self.t = (work[..., i * k : (i + 1) * k, :] for i in range(4))
        self.us, self.sr, self.rt = (work[..., i * k : (i + 2) * k, :] for i in range(3))
        self.bias = bias
        self.take(w.new_ones(*lead, size, m))
        self.ca, self.left = w.new_empty(*lead, size, m), w.new_empty(*lead, size + 1, k)
        self.left_first, self.left_last = self.left[..., :size, :], self.left[..., size:, :]
        self.made, self.pulled = w.new_empty(*lead, size, 2 * k), w.new_empty(*lead, size, k)
        self.made_s, self.made_r = self.made[..., :k], self.made[..., d:, k:]
        # Factors of [u; s], for the gradient on a and for that of Phi below it, and of [r; t].
        self.both = w.new_zeros(*lead, 2 * size, 2 * k)
        self.both[..., size:, k:] = self.pulling
        self.plain = self.both[..., :size, :]
        self.steep, self.linear = self.plain[..., :k], self.plain[..., k:]
        self.along = w.new_ones(*lead, 1, 2 * k)
        self.left_v = self.along[..., :k]
        self.sums, self.sum_c = w.new_empty(*lead, 2 * size, m), w.new_empty(*lead, 1, m)
        self.onto_a, self.onto_c = self.sums[..., :size, :], self.sum_c.squeeze(-2)
        self.onto_x, self.slopes_x = self.sums[..., :d, :], self.sums[..., size:-1, :]
        self.phi_of, self.less = torch.empty_like(self.v), torch.empty_like(self.v)

    def take(self, a: Tensor) -> None:
        """Read the candidates from `a` from now on: its last row is of ones."""
        self.a, self.x = a, a[..., : self.d, :]
        self.layer_input = a if self.bias else self.x

    def lay(self, x: Tensor | None, alpha: Alpha) -> Workspace:
        """Go through the network at x (..., m, d), or at what `a` holds."""
        if x is not None:
            self.x.copy_(x.mT)
        if isinstance(alpha, Tensor) or alpha != self.now:
            self._turn(alpha)
        torch.matmul(self.steep.mT, self.a, out=self.r)
        torch.sigmoid(self.r, out=self.s)
        self.r.clamp_min_(0)
        return self

    def _turn(self, alpha: Alpha) -> None:
        """Take another alpha into the factors."""
        self.now = alpha
        self.alpha = alpha if self.slopes is None else self.slopes * alpha
        torch.mul(self.first_of_all, self.alpha, out=self.steep)
        torch.div(self.v, self.alpha, out=self.phi_of)
        self.less.fill_(-1.0).div_(self.alpha).div_(self.alpha)

    @property
    def phi(self) -> Tensor:
        """Phi (..., m)."""
        return (self.phi_of @ self.r).squeeze(-2)

    def normal(self) -> tuple[Tensor, Tensor]:
        """See `Pass`."""
        back = torch.mul(self.s, self.v.mT, out=self.u)
        gram = (back.mT @ back).mul_(self.layer_input.mT @ self.layer_input)
        inner = ((self.first @ back) * self.a).sum(-2) + self.phi  # <b, z>, layer by layer
        relu = torch.mul(self.r, self.less.neg().sqrt_().mT, out=self.u)
        return gram.add_(relu.mT @ relu), inner

    def slope(self) -> Tensor:
        """See `Pass`."""
        return (self.pulling[: self.d] @ self.s).mT

    def explain(self, c: Tensor) -> None:
        """What c makes of the first weights and of v, and what is left, as it pulls."""
        torch.mul(self.a, c.unsqueeze(-2), out=self.ca)
        torch.matmul(self.ca, self.sr.mT, out=self.made)
        torch.addcmul(self.pulling, self.made_s, self.square, value=-1, out=self.pulled)
        torch.addcmul(self.phi_of, self.made_r, self.less, out=self.left_v)

    def loss(self) -> Tensor:
        """The loss (...,), once explained."""
        torch.addcmul(self.first, self.made_s, self.times, value=-1, out=self.left_first)
        torch.mul(self.left_v, self.alpha, out=self.left_last)
        return square(self.left, (-1, -2))

    def sweep(self, sloped: bool = False) -> None:
        """Fill `onto_x` (..., d, m) and `onto_c`, the gradients without -2 c and without -2.

        If `sloped`, `slopes_x` too, dPhi/dx (..., d, m).
        """
        torch.addcmul(self.pulled, self.steep, self.left_v, out=self.linear)
        torch.matmul(self.pulled.mT, self.a, out=self.t)
        self.t.mul_(self.s)
        torch.addcmul(self.t, self.t, self.s, value=-1, out=self.u)
        if sloped:
            torch.matmul(self.both, self.us, out=self.sums)
        else:
            torch.matmul(self.plain, self.us, out=self.onto_a)
        torch.matmul(self.along, self.rt, out=self.sum_c)

    def fit(self, c: Tensor, share: float = 1.0) -> Fit:
        """See `Pass`."""
        self.explain(c)
        loss = self.loss().mul_(share)
        self.sweep()
        return Fit(loss.to(c.dtype), *self.gradients(c, -2.0 * share))

    def pull(self, c: Tensor, share: float = 1.0) -> tuple[Tensor, Tensor]:
        """See `Pass`."""
        self.explain(c)
        self.sweep()
        return self.gradients(c, -2.0 * share)

    def gradients(self, c: Tensor, share: float) -> tuple[Tensor, Tensor]:
        """On x and on c, times `share` / -2, once swept."""
        grad_x = c.new_empty(*c.shape, self.d)
        torch.mul(self.onto_x.mT, (c * share).unsqueeze(-1), out=grad_x)
        return grad_x, self.onto_c * share


def square(values: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The sum of their squares over the last dimensions `dims`."""
    if values.ndim == len(dims) and values.dtype == torch.float64:
        flat = values.reshape(-1)
        return torch.dot(flat, flat)
    return total(values.square(), dims)
