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
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

from explorer.engine.network import Network, with_one


class Affine:
    """z = w.x + b and its derivatives: `Smooth` says what they are; the second ones are 0."""

    def __init__(self, theta: Tensor, x: Tensor) -> None:
        self.theta, self.one = theta, with_one(x)
        self.z = self.one @ theta

    def pull(self, r: Tensor) -> Tensor:
        """See `Smooth`."""
        return r @ self.one

    def product(self, r: Tensor, h: Tensor, p: Tensor) -> Tensor:
        """See `Smooth`."""
        return (h * (self.one @ p)) @ self.one

    def hessian(self, r: Tensor, h: Tensor) -> Tensor:
        """See `Smooth`."""
        return (self.one * h[:, None]).T @ self.one

    def mixed_derivative(self, r: Tensor, h: Tensor, p: Tensor) -> Tensor:
        """See `Smooth`."""
        return (h * (self.one @ p))[:, None] * self.theta[:-1] + r[:, None] * p[:-1]


class Smooth:
    """z(theta; x_i), i = 1..m, with hidden layers, and its derivatives at theta (P,) and x (m, d).

    With a_l = (W_l, b_l) (s_(l-1), 1), s_0 = x, s_l = s(a_l) and z the last a, the blocks of
    dz/dtheta are g_l (x) (s_(l-1), 1) with g_l = dz/da_l. Along a change of theta a pass up carries
    the change of a_l, and a pass down that of g_l, which gives the second derivatives.

    Attributes:
        z: (m,).
    """

    def __init__(self, theta: Tensor, x: Tensor, shape: Shape) -> None:
        self._shape = shape
        *self._w, last = shape.blocks(theta)
        self._inputs, self._s1, self._beta = [with_one(x)], [], shape.beta
        for w in self._w:
            a = self._inputs[-1] @ w.T
            # e^-30 is 1e-13: below it softplus is linear
            self._inputs.append(with_one(softplus(a, shape.beta, threshold=30.0)))
            self._s1.append(torch.sigmoid(shape.beta * a))
        self.z = (self._inputs[-1] @ last.T)[:, 0]
        self._after = [w[:, :-1] for w in (*self._w[1:], last)]  # what reads each hidden layer

    @cached_property
    def _signals(self) -> tuple[list[Tensor], list[Tensor]]:
        """Return g_l of each hidden layer, and its derivative by a_l with the layers above held."""
        one, signals, bends = torch.ones_like(self.z)[:, None], list[Tensor](), list[Tensor]()
        for w, s1 in zip(self._after[::-1], self._s1[::-1], strict=True):
            signals.append(((signals[-1] if signals else one) @ w) * s1)
            bends.append(signals[-1] * (self._beta * (1 - s1)))
        return signals[::-1], bends[::-1]

    def _changes(self, blocks: list[Tensor]) -> tuple[list[Tensor], Tensor, list[Tensor]]:
        """Return the changes along a theta: of s_l, of z, of g_l, all (..., m, k_l)."""
        (signals, bends), moved, up = self._signals, list[Tensor](), list[Tensor]()
        for k, block in enumerate(blocks):
            change = self._inputs[k] @ block.mT
            if k:
                moved.append(self._s1[k - 1] * up[-1])
                change = change + moved[-1] @ self._after[k - 1].T
            up.append(change)
        down: list[Tensor] = []
        for k in range(len(signals) - 1, -1, -1):
            above = blocks[k + 1][..., :-1]
            if down:
                above = signals[k + 1] @ above + down[-1] @ self._after[k]
            down.append(above * self._s1[k] + bends[k] * up[k])
        return moved, up[-1], down[::-1]

    def pull(self, r: Tensor) -> Tensor:
        """Return sum_i r_i dz_i/dtheta. (m,) -> (P,)."""
        pairs = zip(self._signals[0], self._inputs, strict=False)
        blocks = [((r[:, None] * g).T @ a).flatten() for g, a in pairs]
        return torch.cat([*blocks, r @ self._inputs[-1]])

    def product(self, r: Tensor, h: Tensor, p: Tensor) -> Tensor:
        """Return sum_i (h_i dz_i dz_i^T + r_i d2z_i) p, all in theta. (..., P) -> (..., P)."""
        moved, z, down = self._changes(self._shape.blocks(p))
        weight, pull, out = h[:, None] * z, r[:, None], []
        signals = [*self._signals[0], None]
        for k, g in enumerate(signals):
            signal = weight if g is None else weight * g + pull * down[k]
            block = signal.mT @ self._inputs[k]
            if k:  # b_k has no input that could change
                weighed = pull if g is None else pull * g
                block = block + pad(weighed.T @ moved[k - 1], (0, 1))
            out.append(block.flatten(-2))
        return torch.cat(out, -1)

    def hessian(self, r: Tensor, h: Tensor) -> Tensor:
        """Return sum_i h_i dz_i dz_i^T + r_i d2z_i, all in theta (P, P)."""
        pairs = zip(self._signals[0], self._inputs, strict=False)
        blocks = [(g[:, :, None] * a[:, None]).flatten(1) for g, a in pairs]
        jac = torch.cat([*blocks, self._inputs[-1]], 1)
        bent = self.product(r, torch.zeros_like(h), torch.eye(jac.shape[1]).to(jac))
        return (jac * h[:, None]).T @ jac + bent

    def mixed_derivative(self, r: Tensor, h: Tensor, p: Tensor) -> Tensor:
        """Return d<sum_i r_i dz_i/dtheta, p>/dx where dr_i/dz_i = h_i. (P,) -> (m, d)."""
        blocks = self._shape.blocks(p)
        _, z, down = self._changes(blocks)
        first, g = self._w[0][:, :-1], self._signals[0][0]
        turned = down[0] @ first + g @ blocks[0][:, :-1]
        return h[:, None] * z * (g @ first) + r[:, None] * turned


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

    @cached_property
    def layers(self) -> list[tuple[int, int]]:
        """Return rows and columns of (W_l, b_l) of every layer, the last one with one row."""
        hidden = {"affine": 0, "hidden": 1, "deep": 2}[self.model]
        return [
            (rows, columns + 1) for columns, rows in pairwise([self.d, *[self.width] * hidden, 1])
        ]

    @property
    def size(self) -> int:
        """Return P, the length of theta."""
        return sum(rows * columns for rows, columns in self.layers)

    def blocks(self, p: Tensor) -> list[Tensor]:
        """Return a vector (..., P) as the blocks (W_l, b_l) (..., k_l, k_(l-1) + 1)."""
        pieces = p.split([rows * columns for rows, columns in self.layers], -1)
        shapes = [(*p.shape[:-1], *layer) for layer in self.layers]
        return [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)]

    def at(self, theta: Tensor, x: Tensor) -> Affine | Smooth:
        """Return the model at theta (P,) and x (m, d)."""
        return Affine(theta, x) if self.model == "affine" else Smooth(theta, x, self)

    def draw(self, generator: torch.Generator) -> Tensor:
        """Return a first theta, U(-1/sqrt(fan in), 1/sqrt(fan in)) per layer (torch's Linear).

        (P,).
        """
        u = 2 * torch.rand(self.size, generator=generator, dtype=torch.float64) - 1
        return torch.cat([w.flatten() / math.sqrt(w.shape[1] - 1) for w in self.blocks(u)])

    def network(self, theta: Tensor) -> Network:
        """Return the same weights as a ReLU network with all biases: the limit of large beta."""
        blocks = self.blocks(theta)
        return Network(tuple(w[:, :-1] for w in blocks), tuple(w[:, -1] for w in blocks))
