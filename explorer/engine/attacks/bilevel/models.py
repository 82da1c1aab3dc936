r"""The models of the bilevel attack, with every derivative that it needs in closed form.

    affine   z(theta; x) = w.x + b                                      P = d + 1
    hidden   z(theta; x) = sum_j v_j s(w_j.x + b_j) + c                 P = k (d + 2) + 1
    deep     the same over a second hidden layer of k neurons           P = k (d + k + 3) + 1
    s(a) = softplus(beta a) / beta -> relu(a) for beta -> inf

Runkel et al. train with ReLU; the implicit step needs z twice differentiable in theta, so the
hidden layer is smooth here. All layers have biases: these networks are not homogeneous, and no
margin is asked for. theta is one vector (P,): (w, b), or (w_1, b_1, ..., w_k, b_k) of each hidden
layer, then (v, c).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

from explorer.engine.network import Network


class Model(Protocol):
    """Derivatives of z(theta; x_i), i = 1..m, at one theta (P,) and x (m, d)."""

    z: Tensor  # (m,)

    def pull(self, r: Tensor) -> Tensor:
        """sum_i r_i dz_i/dtheta. (m,) -> (P,)."""

    def push(self, p: Tensor) -> Tensor:
        """<dz_i/dtheta, p>. (P,) -> (m,)."""

    def bend(self, r: Tensor, p: Tensor) -> Tensor:
        """sum_i r_i (d2z_i/dtheta2) p. (m,), (P,) -> (P,)."""

    def hessian(self, r: Tensor, h: Tensor) -> Tensor:
        """sum_i h_i dz_i dz_i^T + r_i d2z_i, all in theta. (m,), (m,) -> (P, P)."""

    def slope(self) -> Tensor:
        """dz_i/dx_i. -> (m, d)."""

    def slope_push(self, p: Tensor) -> Tensor:
        """d<dz_i/dtheta, p>/dx_i. (P,) -> (m, d)."""


def with_one(x: Tensor) -> Tensor:
    """(x, 1): the input with its bias. (m, d) -> (m, d + 1)."""
    return torch.cat([x, x.new_ones(len(x), 1)], 1)


class Affine:
    """z = w.x + b."""

    def __init__(self, theta: Tensor, x: Tensor) -> None:
        self.theta, self.one = theta, with_one(x)
        self.z = self.one @ theta

    def pull(self, r: Tensor) -> Tensor:
        """See `Model`."""
        return r @ self.one

    def push(self, p: Tensor) -> Tensor:
        """See `Model`."""
        return self.one @ p

    def bend(self, r: Tensor, p: Tensor) -> Tensor:
        """Zero: z is linear in theta."""
        return torch.zeros_like(p)

    def hessian(self, r: Tensor, h: Tensor) -> Tensor:
        """See `Model`."""
        return (self.one * h[:, None]).T @ self.one

    def slope(self) -> Tensor:
        """See `Model`."""
        return self.theta[:-1].expand(len(self.one), -1)

    def slope_push(self, p: Tensor) -> Tensor:
        """See `Model`."""
        return p[:-1].expand(len(self.one), -1)


class Shallow:
    """z = sum_j v_j s(w_j.x + b_j) + c, s a softplus of sharpness beta."""

    def __init__(self, theta: Tensor, x: Tensor, width: int, beta: float) -> None:
        self.one, self.width = with_one(x), width
        self.w, self.v, c = self.parts(theta)
        a = self.one @ self.w.T
        self.s = softplus(a, beta, threshold=30.0)  # e^-30 is 1e-13: below it softplus is linear
        self.s1 = torch.sigmoid(beta * a)
        self.s2 = beta * self.s1 * (1 - self.s1)
        self.z = self.s @ self.v + c

    def parts(self, p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Views of a vector (P,): (k, d + 1), (k,), ()."""
        inner = self.width * self.one.shape[1]
        return p[:inner].view(self.width, -1), p[inner:-1], p[-1]

    @staticmethod
    def union(w: Tensor, v: Tensor, c: Tensor) -> Tensor:
        """Return the inverse of `parts`."""
        return torch.cat([w.reshape(-1), v, c.reshape(1)])

    def pull(self, r: Tensor) -> Tensor:
        """See `Model`."""
        inner = (r[:, None] * self.s1 * self.v).T @ self.one
        return self.union(inner, r @ self.s, r.sum())

    def push(self, p: Tensor) -> Tensor:
        """See `Model`."""
        w, v, c = self.parts(p)
        return self.s @ v + (self.s1 * (self.one @ w.T)) @ self.v + c

    def bend(self, r: Tensor, p: Tensor) -> Tensor:
        """See `Model`."""
        w, v, c = self.parts(p)
        da = self.one @ w.T
        inner = (r[:, None] * (self.s1 * v + self.s2 * da * self.v)).T @ self.one
        return self.union(inner, r @ (self.s1 * da), torch.zeros_like(c))

    def hessian(self, r: Tensor, h: Tensor) -> Tensor:
        """See `Model`."""
        (m, inputs), k = self.one.shape, self.width
        jac = torch.cat(
            [
                ((self.s1 * self.v)[:, :, None] * self.one[:, None]).reshape(m, k * inputs),
                self.s,
                self.one[:, -1:],
            ],
            1,
        )
        out = (jac * h[:, None]).T @ jac
        block = torch.einsum("ik,ia,ib->kab", r[:, None] * self.s2 * self.v, self.one, self.one)
        cross = (r[:, None] * self.s1).T @ self.one
        for j in range(k):
            at = slice(j * inputs, (j + 1) * inputs)
            out[at, at] += block[j]
            out[at, k * inputs + j] += cross[j]
            out[k * inputs + j, at] += cross[j]
        return out

    def slope(self) -> Tensor:
        """See `Model`."""
        return (self.s1 * self.v) @ self.w[:, :-1]

    def slope_push(self, p: Tensor) -> Tensor:
        """See `Model`."""
        w, v, _ = self.parts(p)
        da = self.one @ w.T
        along = (self.s1 * v + self.s2 * da * self.v) @ self.w[:, :-1]
        return along + (self.s1 * self.v) @ w[:, :-1]


class Deep:
    """z = v.s_L + c with s_l = s(W_l s_(l-1) + b_l) and s_0 = x: two hidden layers, or more.

    A pass down carries g_l = dz/da_l, one up carries the change da_l along a change of theta, and
    a pass down along that change gives the second derivatives.
    """

    def __init__(self, theta: Tensor, x: Tensor, shape: Shape) -> None:
        self.shape = shape
        *self.w, self.v, c = self.parts(theta)
        self.one, self.s1, self.s2 = [with_one(x)], [], []
        for w in self.w:
            a = self.one[-1] @ w.T
            # e^-30 is 1e-13: below it softplus is linear
            self.one.append(with_one(softplus(a, shape.beta, threshold=30.0)))
            slope = torch.sigmoid(shape.beta * a)
            self.s1.append(slope)
            self.s2.append(shape.beta * slope * (1 - slope))
        self.s = self.one[-1][:, :-1]
        self.z = self.s @ self.v + c

    def parts(self, p: Tensor) -> list[Tensor]:
        """Views of a vector (P,): (W_l, b_l) of each layer, v (k,), c ()."""
        found, at = [], 0
        for rows, columns in self.shape.layers:
            found.append(p[at : at + rows * columns].view(rows, columns))
            at += rows * columns
        return [*found, p[at:-1], p[-1]]

    def _down(self, r: Tensor) -> list[Tensor]:
        """r_i dz_i/da_l of every layer, (m, k) each."""
        found = [r[:, None] * self.s1[-1] * self.v]
        for w, s1 in zip(self.w[:0:-1], self.s1[-2::-1], strict=True):
            found.append(found[-1] @ w[:, :-1] * s1)
        return found[::-1]

    def _up(self, p: Tensor) -> list[Tensor]:
        """Return the change of a_l of every layer along p, (m, k) each."""
        found: list[Tensor] = []
        for k, dw in enumerate(self.parts(p)[:-2]):
            change = self.one[k] @ dw.T
            if k:
                change = change + (self.s1[k - 1] * found[-1]) @ self.w[k][:, :-1].T
            found.append(change)
        return found

    def _turned(self, r: Tensor, p: Tensor, down: list[Tensor], up: list[Tensor]) -> list[Tensor]:
        """Return the change of `_down` along p, of every layer."""
        *dw, dv, _ = self.parts(p)
        found = [r[:, None] * (self.s1[-1] * dv + self.s2[-1] * up[-1] * self.v)]
        for k in range(len(self.w) - 1, 0, -1):
            w, back = self.w[k][:, :-1], down[k] @ self.w[k][:, :-1]
            own = (found[-1] @ w + down[k] @ dw[k][:, :-1]) * self.s1[k - 1]
            found.append(own + back * self.s2[k - 1] * up[k - 1])
        return found[::-1]

    def pull(self, r: Tensor) -> Tensor:
        """See `Model`."""
        inner = [(g.T @ one).reshape(-1) for g, one in zip(self._down(r), self.one, strict=False)]
        return torch.cat([*inner, r @ self.one[-1]])

    def push(self, p: Tensor) -> Tensor:
        """See `Model`."""
        *_, dv, dc = self.parts(p)
        return self.s @ dv + (self.s1[-1] * self._up(p)[-1]) @ self.v + dc

    def bend(self, r: Tensor, p: Tensor) -> Tensor:
        """See `Model`."""
        down, up = self._down(r), self._up(p)
        turned = self._turned(r, p, down, up)
        inner = [turned[0].T @ self.one[0]]
        for k in range(1, len(self.w)):
            moved = pad(down[k].T @ (self.s1[k - 1] * up[k - 1]), (0, 1))  # b_l has no input
            inner.append(turned[k].T @ self.one[k] + moved)
        last = r @ (self.s1[-1] * up[-1])
        return torch.cat([*(g.reshape(-1) for g in inner), last, torch.zeros_like(p[-1:])])

    def hessian(self, r: Tensor, h: Tensor) -> Tensor:
        """See `Model`."""
        m, down = len(self.z), self._down(torch.ones_like(self.z))
        inner = [
            (g[:, :, None] * one[:, None]).reshape(m, -1)
            for g, one in zip(down, self.one, strict=False)
        ]
        jac = torch.cat([*inner, self.one[-1]], 1)
        every: Tensor = torch.func.vmap(lambda p: self.bend(r, p))(torch.eye(jac.shape[1]).to(jac))
        return (jac * h[:, None]).T @ jac + every

    def slope(self) -> Tensor:
        """See `Model`."""
        return self._down(torch.ones_like(self.z))[0] @ self.w[0][:, :-1]

    def slope_push(self, p: Tensor) -> Tensor:
        """See `Model`."""
        ones = torch.ones_like(self.z)
        down = self._down(ones)
        turned = self._turned(ones, p, down, self._up(p))
        return turned[0] @ self.w[0][:, :-1] + down[0] @ self.parts(p)[0][:, :-1]


@dataclass(frozen=True)
class Shape:
    """Which model, and its size: the attacker knows it, as the published attack assumes.

    Attributes:
        model: "affine", "hidden" with one hidden layer, or "deep" with two.
        d: dimension of the input.
        width: neurons k of a hidden layer.
        beta: sharpness of the softplus of hidden layers.
    """

    model: str
    d: int
    width: int = 0
    beta: float = 20.0

    @property
    def layers(self) -> list[tuple[int, int]]:
        """Return rows and columns of (W_l, b_l) of every hidden layer."""
        k = self.width
        first = [] if self.model == "affine" else [(k, self.d + 1)]
        return [*first, (k, k + 1)] if self.model == "deep" else first

    @property
    def size(self) -> int:
        """P, the length of theta."""
        if self.model == "affine":
            return self.d + 1
        return sum(rows * columns for rows, columns in self.layers) + self.width + 1

    def at(self, theta: Tensor, x: Tensor) -> Model:
        """Return the model at theta (P,) and x (m, d)."""
        if self.model == "affine":
            return Affine(theta, x)
        if self.model == "hidden":
            return Shallow(theta, x, self.width, self.beta)
        return Deep(theta, x, self)

    def draw(self, generator: torch.Generator) -> Tensor:
        """Return a first theta, U(-1/sqrt(fan in), 1/sqrt(fan in)) per layer (torch's Linear).

        (P,).
        """
        u = 2 * torch.rand(self.size, generator=generator, dtype=torch.float64) - 1
        found, at = [], 0
        for rows, columns in self.layers:
            found.append(u[at : at + rows * columns] / math.sqrt(columns - 1))
            at += rows * columns
        return torch.cat([*found, u[at:] / math.sqrt(len(u) - at - 1)])

    def network(self, theta: Tensor) -> Network:
        """The same weights as a ReLU network with biases in all layers: the limit of large beta."""
        if self.model == "affine":
            return Network((theta[None, :-1],), (theta[-1:],))
        *w, v, c = Deep(theta, theta.new_zeros(1, self.d), self).parts(theta)
        return Network(
            (*(one[:, :-1] for one in w), v[None]), (*(one[:, -1] for one in w), c[None])
        )
