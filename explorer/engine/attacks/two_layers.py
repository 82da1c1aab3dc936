"""The stationarity loss of two layers and many inputs; see `batched`, and `desk` for few inputs."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from explorer.engine.attacks.prepared import Alpha, Fit, Pass, Prepared, total


class TwoLayers(Pass):
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
