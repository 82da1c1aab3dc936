r"""An exact maximum-margin network of few points in high dimension: one neuron per class.

    Phi(x) = relu(u_+ . x~) - relu(u_- . x~),    x~ = (x, 1),
    u_+ = argmin 1/2 |u|^2   s.t.   u . x~_i >= 1 where y_i = +1,   u . x~_i <= 0 where y_i = -1,

and u_- with the labels swapped. In balanced form w~ = u / sqrt|u|, v = +- sqrt|u|. With the duals
alpha of the two programs, lam_i = alpha_i^own / |u_own|, and on the other class's neuron the slope
s_i = (alpha_i^other / |u_other|) / lam_i. The network is an exact KKT point of margin 1 iff every
such slope is at most 1, as it is for nearly orthogonal points; `ok` says so. (Our own derivation;
the oracle for the high-dimensional part of Smorodinsky, Vardi and Safran 2024.)

Each program is a least-distance problem: with Z = diag(+-1) X~ and t the wanted values,
min |u| s.t. Z u >= t is the non-negative least squares problem min |E a - e| with E = [Z' ; t']
and e the last unit vector (Lawson and Hanson 1974, chapter 23). E enters only through its
triangular factor, the Cholesky factor of the Gram matrix of the points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from explorer.engine.arrays import Array, Flags, signed_points
from explorer.engine.network import Network

MOST_POINTS = 500  # arbitrary: non-negative least squares takes seconds beyond
_FEASIBLE = 1e-7  # arbitrary: constraints after rounding, relative to a margin of 1
_SLOPE = 1e-9  # arbitrary: slopes up to 1 + this count as at most 1


class NotSeparableError(ValueError):
    """No neuron per class meets the cone constraints; the message says what to change."""


@dataclass(frozen=True, eq=False)
class TwoNeuron:
    """The network with its multipliers.

    Attributes:
        net: two hidden neurons with bias (one where all labels are equal), margin 1, float64.
        lam: multipliers (n,).
        slopes: (n, k) slope of each neuron at each point, free where the point is on its kink.
        ok: whether (lam, slopes) make it an exact KKT point. When False, the network still has
            margin 1, but some slope would have to exceed 1; more neurons do better.
        norms: |u| of each neuron (k,).
    """

    net: Network
    lam: Tensor
    slopes: Tensor
    ok: bool
    norms: Tensor


def two_neuron(x: Tensor, y: Tensor) -> TwoNeuron:
    """Return the maximum-margin network with one neuron per class. x (n, d), y (n,) -> TwoNeuron.

    Raises:
        NotSeparableError: the classes cannot be separated by one cone each; surely so for general
            points only where n > d + 1.
        ValueError: shapes, labels other than +-1, no points or too many.
    """
    points, labels = signed_points(x, y)
    if not 1 <= len(x) <= MOST_POINTS:
        raise ValueError(f"expected 1 to {MOST_POINTS} points; got {len(x)}. Take fewer points.")
    xt = np.concatenate([points, np.ones((len(points), 1))], axis=1)
    # x~_i = q r_i: all that follows happens in the span of the points. By torch, which keeps to
    # its own number of threads: numpy on all cores took a second where this takes milliseconds.
    q, r = (part.numpy() for part in torch.linalg.qr(torch.from_numpy(xt.T.copy())))
    signs = [s for s in (1.0, -1.0) if (labels == s).any()]
    solved = [_least(r.T, labels * s, labels == s, len(points), x.shape[1]) for s in signs]
    norms = np.array([np.linalg.norm(u) for u, _ in solved])
    duals = np.stack([a / size for (_, a), size in zip(solved, norms, strict=True)], axis=1)
    own = np.stack([labels == s for s in signs], axis=1)
    lam = duals[own]
    other = np.where(own, 0.0, duals).sum(axis=1)
    slope = np.divide(other, lam, out=np.zeros_like(lam), where=lam > 0)
    ok = bool((other <= lam * (1 + _SLOPE) + 1e-15).all())
    slopes = np.where(own, 1.0, np.minimum(slope, 1.0)[:, None])
    wt = np.stack([q @ u for u, _ in solved]) / np.sqrt(norms)[:, None]
    v = np.array(signs) * np.sqrt(norms)
    first, bias, last, multipliers, free, sizes = (
        torch.from_numpy(np.ascontiguousarray(a))
        for a in (wt[:, :-1], wt[:, -1], v[None, :], lam, slopes, norms)
    )
    return TwoNeuron(Network((first, last), (bias, None)), multipliers, free, ok, sizes)


def _least(rows: Array, sign: Array, own: Flags, n: int, d: int) -> tuple[Array, Array]:
    """Return the shortest u (r,) with sign * (rows u) >= own, rows (n, r), and its duals (n,)."""
    z, t = sign[:, None] * rows, own.astype(np.float64)
    target = np.zeros(z.shape[1] + 1)
    target[-1] = 1.0
    try:
        a, _ = nnls(np.vstack([z.T, t]), target, maxiter=100 * n)
    except RuntimeError:  # it gave up: the check below says so
        a = np.zeros(n)
    left = 1.0 - float(t @ a)
    dual = a / left if left > 1e-12 else np.zeros(n)
    dual = _polish(z, t, dual)
    u = z.T @ dual
    if not (z @ u >= t - _FEASIBLE).all():
        raise NotSeparableError(
            f"{n} points with these labels in dimension {d} are not separated by one cone per "
            f"class: no u has u.(x, 1) >= 1 on one class and <= 0 on the other. Raise d to n "
            "or more, or take fewer points."
        )
    return u, dual


def _polish(z: Array, t: Array, dual: Array) -> Array:
    """Return the same active set, its equations solved to rounding; as given where that fails."""
    active = dual > 0
    if not active.any():
        return dual
    _, r = np.linalg.qr(z[active].T)
    if len(r) < active.sum() or np.abs(np.diag(r)).min() < 1e-10 * np.abs(r).max():
        return dual
    solved = np.zeros_like(dual)
    solved[active] = np.linalg.solve(r, np.linalg.solve(r.T, t[active]))
    return solved if (solved >= 0).all() else dual
