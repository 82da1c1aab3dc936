r"""The two models of the bilevel attack, with every derivative that it needs in closed form.

    affine   z(theta; x) = w.x + b                                      P = d + 1
    hidden   z(theta; x) = sum_j v_j s(w_j.x + b_j) + c                 P = k (d + 2) + 1
    s(a) = softplus(beta a) / beta -> relu(a) for beta -> inf

Runkel et al. train with ReLU; the implicit step needs z twice differentiable in theta, so the
hidden layer is smooth here. All layers have biases: these networks are not homogeneous, and no
margin is asked for. theta is one vector (P,): (w, b), or (w_1, b_1, ..., w_k, b_k, v, c).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import softplus

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


class Hidden:
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
        """The inverse of `parts`."""
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


@dataclass(frozen=True)
class Shape:
    """Which model, and its size: the attacker knows it, as the published attack assumes.

    Attributes:
        model: "affine" or "hidden".
        d: dimension of the input.
        width: hidden neurons k, of "hidden".
        beta: sharpness of the softplus, of "hidden".
    """

    model: str
    d: int
    width: int = 0
    beta: float = 20.0

    @property
    def size(self) -> int:
        """P, the length of theta."""
        return self.d + 1 if self.model == "affine" else self.width * (self.d + 2) + 1

    def at(self, theta: Tensor, x: Tensor) -> Model:
        """The model at theta (P,) and x (m, d)."""
        if self.model == "affine":
            return Affine(theta, x)
        return Hidden(theta, x, self.width, self.beta)

    def draw(self, generator: torch.Generator) -> Tensor:
        """A first theta, U(-1/sqrt(fan in), 1/sqrt(fan in)) per layer (torch's Linear). (P,)."""
        u = 2 * torch.rand(self.size, generator=generator, dtype=torch.float64) - 1
        if self.model == "affine":
            return u / math.sqrt(self.d)
        inner = self.width * (self.d + 1)
        return torch.cat([u[:inner] / math.sqrt(self.d), u[inner:] / math.sqrt(self.width)])

    def network(self, theta: Tensor) -> Network:
        """The same weights as a ReLU network with biases in all layers: the limit of large beta."""
        if self.model == "affine":
            return Network((theta[None, :-1],), (theta[-1:],))
        inner = self.width * (self.d + 1)
        w = theta[:inner].view(self.width, -1)
        return Network((w[:, :-1], theta[None, inner:-1]), (w[:, -1], theta[-1:]))
