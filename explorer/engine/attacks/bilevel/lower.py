r"""H p = g for the implicit step: exactly, by conjugate gradients, or by quasi-Newton steps.

H (P, P) is symmetric and, at a strict minimum, positive definite. "exact" factors it; the others
see only products H p. Both of those minimise p^T H p / 2 - g^T p: conjugate gradients (Hestenes and
Stiefel 1952), or L-BFGS with the two-loop recursion (Nocedal 1980) and an exact line search, which
keeps `memory` pairs (s, H s) and is the estimate that Runkel et al. take of the inverse Hessian.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from explorer.engine.attacks.bilevel.models import Shape
from explorer.engine.network import with_one

Product = Callable[[Tensor], Tensor]
Method = Literal["exact", "cg", "quasi-newton"]


@dataclass(frozen=True, eq=False)
class Solved:
    """p (P,) with || H p - g || = residual, and how many products H p it took."""

    p: Tensor
    residual: float
    products: int


def exact(hessian: Tensor, g: Tensor) -> Solved:
    """Solve by Cholesky's factors; where H is not positive definite, by LU."""
    factor, failed = torch.linalg.cholesky_ex(hessian)
    if int(failed):
        p = torch.linalg.solve(hessian, g)
    else:
        p = torch.cholesky_solve(g[:, None], factor)[:, 0]
    return Solved(p, float((hessian @ p - g).norm()), 0)


def conjugate_gradients(product: Product, g: Tensor, tol: float, most: int) -> Solved:
    """Solve to || H p - g || <= tol || g ||, a direction of no curvature, or `most` products."""
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
    """Solve along directions of the two-loop recursion over `memory` pairs; else as above."""
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
    """Return the product of the L-BFGS inverse Hessian of pairs (s, y = H s) with r (P,)."""
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


# --- The lower level: training, as a function of the data (Runkel et al., eq. (1)) --------------
# E(x, y; theta) = (1/m) sum_i l(z_i, y_i) + (mu/2) ||theta||^2,   theta(x) = argmin_theta E
#     ridge     l(z, y) = (z - y)^2 / 2            affine: (X^T X / m + mu I)^-1 X^T y / m
#     logistic  l(z, y) = log(1 + exp(-y z))       affine: Newton's method
#
# mu is ours: separable data have no minimiser of the logistic loss without it, and it makes the
# Hessian of the affine model at least mu. With hidden layers E is not convex: theta(x) is then
# the minimum that L-BFGS (scipy) and Newton's method with conjugate gradients reach from where they
# begin, which the attack sets to the weights it knows, then to the last ones found.

TOL = 1e-10  # arbitrary: theta(x) is then right to 1e-10 / mu
_NEWTON = 60  # arbitrary: Newton steps before the search is called off
_NEAR = 0.1  # measured: from a gradient this small Newton takes a third of the time of L-BFGS


@dataclass(frozen=True)
class Lower:
    """How the weights were trained.

    Attributes:
        shape: the model.
        loss: "ridge" or "logistic".
        mu: weight of the norm.
    """

    shape: Shape
    loss: Literal["ridge", "logistic"]
    mu: float

    def point(self, theta: Tensor, x: Tensor, y: Tensor) -> LowerPoint:
        """Return E and its derivatives at theta (P,), x (m, d), y (m,)."""
        return LowerPoint(self, theta, x, y)


class LowerPoint:
    """E(x, y; theta) with its derivatives.

    Attributes:
        model: derivatives of z.
        r: l'(z_i) / m (m,).
        h: l''(z_i) / m (m,).
    """

    def __init__(self, lower: Lower, theta: Tensor, x: Tensor, y: Tensor) -> None:
        self.lower, self.theta, self.y = lower, theta, y
        self.model = lower.shape.at(theta, x)
        z = self.model.z
        if lower.loss == "ridge":
            self.r, self.h = (z - y) / len(y), torch.full_like(z, 1 / len(y))
        else:
            wrong = torch.sigmoid(-y * z)
            self.r, self.h = -y * wrong / len(y), wrong * (1 - wrong) / len(y)

    @property
    def energy(self) -> Tensor:
        """Return E, ()."""
        z, y = self.model.z, self.y
        if self.lower.loss == "ridge":
            loss = (z - y).square() / 2
        else:
            loss = torch.nn.functional.softplus(-y * z)
        return loss.mean() + self.lower.mu / 2 * self.theta.square().sum()

    @property
    def gradient(self) -> Tensor:
        """Return dE/dtheta (P,)."""
        return self.model.pull(self.r) + self.lower.mu * self.theta

    def product(self, p: Tensor) -> Tensor:
        """Return the Hessian of E in theta times p. (..., P) -> (..., P)."""
        return self.model.product(self.r, self.h, p) + self.lower.mu * p

    @property
    def hessian(self) -> Tensor:
        """Return the Hessian of E in theta (P, P)."""
        out = self.model.hessian(self.r, self.h)
        out.diagonal().add_(self.lower.mu)
        return out

    def mixed_derivative(self, p: Tensor) -> Tensor:
        """Return d<dE/dtheta, p>/dx with p (P,) held fixed. -> (m, d)."""
        return self.model.mixed_derivative(self.r, self.h, p)


@dataclass(frozen=True, eq=False)
class Minimum:
    """theta (P,) where the search ended, with the norm of dE/dtheta there."""

    theta: Tensor
    gradient: float


def solve(lower: Lower, x: Tensor, y: Tensor, theta: Tensor, tol: float = TOL) -> Minimum:
    """Return the minimum of E reached from `theta` (P,).

    That itself where its gradient is within tol.

    x (m, d), y (m,). A search that gets no closer returns the best it found: look at `gradient`.
    """
    here = lower.point(theta, x, y)
    size = float(here.gradient.norm())
    if size <= tol:
        return Minimum(theta, size)
    if lower.shape.model == "affine" and lower.loss == "ridge":
        theta = ridge(with_one(x), y, lower.mu)
        return Minimum(theta, float(lower.point(theta, x, y).gradient.norm()))
    if lower.shape.model != "affine" and size > _NEAR:
        return _newton(lower, x, y, _lbfgs(lower, x, y, theta), tol)
    found = _newton(lower, x, y, theta, tol)
    if found.gradient > tol and lower.shape.model != "affine":  # lost between two minima
        found = _newton(lower, x, y, _lbfgs(lower, x, y, found.theta), tol)
    return found


def ridge(f: Tensor, y: Tensor, mu: float) -> Tensor:
    """Return (F^T F / m + mu I)^-1 F^T y / m for features f (m, P) and y (m,). -> (P,)."""
    gram = f.T @ f / len(y)
    gram.diagonal().add_(mu)
    found: Tensor = torch.linalg.solve(gram, f.T @ y / len(y))
    return found


def _newton(lower: Lower, x: Tensor, y: Tensor, theta: Tensor, tol: float) -> Minimum:
    """Take Newton steps, halved until energy or gradient falls (both round off at the end)."""
    here = lower.point(theta, x, y)
    g = here.gradient
    size, energy = float(g.norm()), float(here.energy)
    for _ in range(_NEWTON):
        if size <= tol or not math.isfinite(size):
            break
        if lower.shape.model == "affine":
            p = exact(here.hessian, g).p
        else:  # inexact Newton: the forcing term makes it converge superlinearly
            p = conjugate_gradients(here.product, g, min(0.1, size), 2 * len(g)).p
        share = 1.0
        while share > 1e-8:  # arbitrary: shorter steps change nothing
            there = lower.point(theta - share * p, x, y)
            size_there, energy_there = float(there.gradient.norm()), float(there.energy)
            if energy_there < energy - 1e-4 * share * float(g @ p) or size_there < 0.5 * size:
                break
            share /= 2
        else:
            break
        theta, here, size, energy = there.theta, there, size_there, energy_there
        g = here.gradient
    return Minimum(theta, size)


def _lbfgs(lower: Lower, x: Tensor, y: Tensor, theta: Tensor) -> Tensor:
    """Return where scipy's L-BFGS-B ends without bounds: Newton's method is then a step away."""

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        here = lower.point(torch.from_numpy(flat), x, y)
        return float(here.energy), here.gradient.numpy()

    options = {"maxiter": 5000, "maxfun": 10_000, "maxcor": 20, "ftol": 0.0, "gtol": 1e-7}
    found = minimize(value, theta.numpy().copy(), jac=True, method="L-BFGS-B", options=options)
    return torch.from_numpy(np.ascontiguousarray(found.x))
