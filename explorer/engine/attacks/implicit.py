r"""H p = g for the implicit step: exactly, by conjugate gradients, or by quasi-Newton steps.

H (P, P) is symmetric and, at a strict minimum, positive definite. "exact" factors it; the others
see only products H p. Both of those minimise p^T H p / 2 - g^T p: conjugate gradients (Hestenes and
Stiefel 1952), or L-BFGS with the two-loop recursion (Nocedal 1980) and an exact line search, which
keeps `memory` pairs (s, H s) and is the estimate that Runkel et al. take of the inverse Hessian.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Product = Callable[[Tensor], Tensor]
Method = Literal["exact", "cg", "quasi-newton"]


@dataclass(frozen=True, eq=False)
class Solved:
    """p (P,) with || H p - g || = residual, and how many products H p it took."""

    p: Tensor
    residual: float
    products: int


def exact(hessian: Tensor, g: Tensor) -> Solved:
    """By Cholesky's factors; where H is not positive definite, by LU."""
    factor, failed = torch.linalg.cholesky_ex(hessian)
    if int(failed):
        p = torch.linalg.solve(hessian, g)
    else:
        p = torch.cholesky_solve(g[:, None], factor)[:, 0]
    return Solved(p, float((hessian @ p - g).norm()), 0)


def conjugate_gradients(product: Product, g: Tensor, tol: float, most: int) -> Solved:
    """Until || H p - g || <= tol || g ||, `most` products, or a direction of no curvature."""
    p, r = torch.zeros_like(g), g.clone()
    d, rr = r.clone(), float(r @ r)
    goal = tol * tol * rr
    for count in range(most):
        if rr <= goal:
            return Solved(p, rr**0.5, count)
        hd = product(d)
        curvature = float(d @ hd)
        if curvature <= 0:  # no minimum along d: what is known so far is the answer
            return Solved(p if count else g.clone(), rr**0.5, count + 1)
        step = rr / curvature
        p, r = p + step * d, r - step * hd
        before, rr = rr, float(r @ r)
        d = r + (rr / before) * d
    return Solved(p, rr**0.5, most)


def quasi_newton(product: Product, g: Tensor, tol: float, most: int, memory: int) -> Solved:
    """As `conjugate_gradients`, along directions of the two-loop recursion over `memory` pairs."""
    p, r = torch.zeros_like(g), g.clone()
    pairs: deque[tuple[Tensor, Tensor]] = deque(maxlen=memory)
    goal = tol * float(g.norm())
    for count in range(most):
        size = float(r.norm())
        if size <= goal:
            return Solved(p, size, count)
        d = two_loop(r, pairs)
        hd = product(d)
        curvature = float(d @ hd)
        if curvature <= 0:
            return Solved(p if count else g.clone(), size, count + 1)
        step = float(d @ r) / curvature
        s, y = step * d, step * hd
        p, r = p + s, r - y
        pairs.append((s, y))
    return Solved(p, float(r.norm()), most)


def two_loop(r: Tensor, pairs: deque[tuple[Tensor, Tensor]]) -> Tensor:
    """The product of the L-BFGS inverse Hessian of pairs (s, y = H s) with r (P,)."""
    q, weights = r.clone(), []
    for s, y in reversed(pairs):
        weight = (s @ q) / (s @ y)
        weights.append(weight)
        q = q - weight * y
    if pairs:
        s, y = pairs[-1]
        q = q * (s @ y) / (y @ y)
    for (s, y), weight in zip(pairs, reversed(weights), strict=True):
        q = q + (weight - (y @ q) / (s @ y)) * s
    return q
