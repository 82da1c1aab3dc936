r"""Least squares over cones, for thousands of them that share most of their rays.

    E = min || theta - sum_f c_f g_f - sum_v c_v h_v ||^2,    c >= 0,

where the g_f are the same in every problem and the few h_v are its own. Only Gram matrices are
needed. Block principal pivoting on the shared rays (Kim and Park 2011), all problems with the same
guess at once: one factorisation serves them, and the own rays, at most four, are solved for exactly
by trying their subsets. What has not ended after a few rounds goes to scipy one by one.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import nnls

Array = NDArray[np.float64]

ROUNDS = 25  # of pivoting; arbitrary
CAUTIOUS = 8  # rounds after which only one ray is exchanged at a time (Murty 1974); arbitrary
RIDGE = 1e-12  # of the mean diagonal; arbitrary, keeps rays that repeat one another apart
SINGULAR = 1e-13  # of the product of squared norms: a volume below it is rounding; arbitrary
TOLERANCE = 1e-9  # of the largest number of its kind; arbitrary


def residual(gram: Array, inner: Array) -> tuple[Array, float]:
    """Coefficients (r,) and how much of ||theta||^2 they explain. gram (r, r), inner (r,)."""
    if not len(inner):
        return np.zeros(0), 0.0
    ridge = RIDGE * float(np.trace(gram)) * np.eye(len(inner))
    try:
        factor = np.linalg.cholesky(gram + ridge)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(gram)
        factor = vectors * np.sqrt(np.clip(values, 1e-14 * values[-1], None))
        right = np.linalg.solve(factor, inner)
    else:
        right = np.linalg.solve(factor, inner)
    c = nnls(factor.T, right, maxiter=100 * len(inner))[0]
    return c, float(2 * inner @ c - c @ gram @ c)


def explained(
    shared: Array, shared_inner: Array, cross: Array, own: Array, own_inner: Array
) -> Array:
    """How much of ||theta||^2 each of p problems explains at best, (p,).

    Args:
        shared: Gram matrix of the shared rays (f, f).
        shared_inner: <theta, g_f> (f,).
        cross: <h_v, g_f> (p, v, f).
        own: Gram matrices of the own rays (p, v, v), v <= 4.
        own_inner: <theta, h_v> (p, v).
    """
    p, f = len(own), len(shared_inner)
    base = residual(shared, shared_inner)[0] > 0
    active = np.tile(base, (p, 1))
    out = np.full(p, np.nan)
    todo = np.arange(p)
    for turn in range(ROUNDS):
        if not len(todo):
            return out
        codes = np.packbits(active[todo], axis=1) if f else np.zeros((len(todo), 1), np.uint8)
        _, group = np.unique(codes, axis=0, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        for mine in np.split(order, np.flatnonzero(np.diff(group.ravel()[order])) + 1):
            at = todo[mine]
            gain, wrong = _pivot(
                shared, shared_inner, active[at[0]], cross[at], own[at], own_inner[at]
            )
            ended = ~wrong.any(axis=1)
            out[at[ended]] = gain[ended]
            if turn >= CAUTIOUS:
                last = f - 1 - np.argmax(wrong[:, ::-1], axis=1)
                wrong &= np.arange(f) == last[:, None]
            active[at] ^= wrong
        todo = todo[np.isnan(out[todo])]
    for i in todo:
        whole = np.block([[shared, cross[i].T], [cross[i], own[i]]])
        out[i] = residual(whole, np.concatenate([shared_inner, own_inner[i]]))[1]
    return out


def _pivot(
    shared: Array, shared_inner: Array, active: NDArray[np.bool_], cross: Array, own: Array,
    own_inner: Array,
) -> tuple[Array, NDArray[np.bool_]]:  # fmt: skip
    """What problems with one guess explain, and which shared rays contradict it: (p,), (p, f)."""
    on, off = np.flatnonzero(active), np.flatnonzero(~active)
    p = len(own_inner)
    near = cross[:, :, on]
    if len(on):
        block = shared[np.ix_(on, on)]
        ridge = RIDGE * max(float(np.trace(block)), 1e-300) / len(on)
        # torch's solver: scipy's would wake all threads for some thousands of right sides.
        factor = torch.linalg.cholesky_ex(torch.from_numpy(block + ridge * np.eye(len(on))))[0]
        sides = np.concatenate([shared_inner[on][None], near.reshape(-1, len(on))])
        solved = torch.cholesky_solve(torch.from_numpy(sides.T.copy()), factor).numpy().T
        alone, pulled = solved[0], solved[1:].reshape(near.shape)
        schur = own - np.einsum("pva,pwa->pvw", near, pulled)
        right = own_inner - near @ alone
    else:
        alone, pulled, schur, right = np.zeros(0), near, own, own_inner
    c = few(schur, right, np.einsum("pvv->pv", own))
    weights = alone - np.einsum("pva,pv->pa", pulled, c)
    slack = (
        weights @ shared[np.ix_(on, off)]
        + np.einsum("pvo,pv->po", cross[:, :, off], c)
        - shared_inner[off]
    )
    wrong = np.zeros((p, len(active)), dtype=bool)
    largest = np.abs(weights).max(axis=1, initial=1e-300)[:, None]
    wrong[:, on] = weights < -TOLERANCE * largest
    wrong[:, off] = slack < -TOLERANCE * np.abs(shared_inner).max(initial=1e-300)
    return weights @ shared_inner[on] + np.einsum("pv,pv->p", c, own_inner), wrong


def few(gram: Array, inner: Array, size: Array) -> Array:
    """Non-negative least squares of at most four rays, by trying every subset. (p, v) -> (p, v).

    Subsets whose Gram matrix is singular beside `size` (p, v), the squared norms before anything
    was projected out, are passed over: what such a ray adds, the others explain already.
    """
    p, v = inner.shape
    best, gain = np.zeros((p, v)), np.zeros(p)
    for count in range(1, v + 1):
        for subset in combinations(range(v), count):
            which = np.array(subset)
            block = gram[:, which[:, None], which]
            scale = size[:, which].prod(axis=1)
            sound = np.linalg.det(block) > SINGULAR * np.maximum(scale, 1e-300)
            block = np.where(sound[:, None, None], block, np.eye(count))
            c = np.linalg.solve(block, inner[:, which][..., None])[..., 0]
            value = np.einsum("pv,pv->p", c, inner[:, which])
            better = sound & (c >= 0).all(axis=1) & (value > gain)
            gain = np.where(better, value, gain)
            full = np.zeros((p, v))
            full[:, which] = c
            best = np.where(better[:, None], full, best)
    return best
