r"""Nonnegative least squares over cones, for thousands of them that share most of their rays.

    E = min || theta - sum_f c_f g_f - sum_v c_v h_v ||^2,    c >= 0,

where the g_f are the same in every problem and the few h_v are its own. Only Gram matrices are
needed. Block principal pivoting on the shared rays (Kim and Park 2011), all problems with the same
guess at once: one factorisation serves them, and the own rays, up to four, are solved for exactly
by trying their subsets. What has more, or has not ended after a few rounds, is solved whole, from
the set of the rays that all problems share (`nonnegative`).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray

from explorer.engine.energy.rays import PointRays
from explorer.engine.nonnegative import nonnegative

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

ROUNDS = 2  # of pivoting; of 1 to 6 the fastest on trained moons, within a tenth of it on circles
FEWEST = 6  # problems with one guess, below which a factorisation of their own does not pay
MOST_OWN = 4  # own rays whose subsets are tried: 15 of them
RIDGE_OF_CONE = 1e-12  # of the mean diagonal; arbitrary, keeps rays that repeat one another apart
SINGULAR = 1e-13  # of the product of squared norms: a volume below it is rounding; arbitrary
TOLERANCE = 1e-9  # of the largest number of its kind; arbitrary


def residual(gram: Array, inner: Array) -> tuple[Array, float]:
    """Coefficients (r,) and how much of ||theta||^2 they explain. gram (r, r), inner (r,)."""
    c = nonnegative(gram, inner)
    return c, float(2 * inner @ c - c @ gram @ c)


def _in_full(
    shared: Array, shared_inner: Array, cross: Array, own: Array, own_inner: Array, first: Array
) -> Array:
    """Coefficients (p, f + v) of problems as in `explained_shares`, from `first` (f,) on."""
    f = len(first)
    size = f + own.shape[1]
    gram, start = np.empty((size, size)), np.concatenate([first, np.zeros(own.shape[1])])
    gram[:f, :f] = shared
    out = np.empty((len(own), size))
    for i in range(len(own)):
        gram[f:, :f], gram[:f, f:], gram[f:, f:] = cross[i], cross[i].T, own[i]
        out[i] = nonnegative(gram, np.concatenate([shared_inner, own_inner[i]]), start)
    return out


def explained_shares(
    shared: Array, shared_inner: Array, cross: Array, own: Array, own_inner: Array
) -> tuple[Array, Array]:
    """Return how much of ||theta||^2 each of p problems explains at best (p,), and how: (p, f + v).

    Args:
        shared: Gram matrix of the shared rays (f, f).
        shared_inner: <theta, g_f> (f,).
        cross: <h_v, g_f> (p, v, f).
        own: Gram matrices of the own rays (p, v, v); v <= 4 is fastest.
        own_inner: <theta, h_v> (p, v).
    """
    p, f = len(own), len(shared_inner)
    first = residual(shared, shared_inner)[0]
    active = np.tile(first > 0, (p, 1))
    out, c = np.full(p, np.nan), np.zeros((p, f + own.shape[1]))
    todo = np.arange(p)
    for _ in range(ROUNDS if own.shape[1] <= MOST_OWN else 0):
        if not len(todo):
            return out, c
        for at in _alike(active, todo):
            if len(at) < FEWEST < p:
                continue
            found, wrong = _pivot(
                shared, shared_inner, active[at[0]], cross[at], own[at], own_inner[at]
            )
            ended = ~wrong.any(axis=1)
            c[at[ended]] = found[ended]
            out[at[ended]] = _gain(
                shared, shared_inner, cross[at[ended]], own[at[ended]], own_inner[at[ended]],
                found[ended],
            )  # fmt: skip
            active[at] ^= wrong
        todo = todo[np.isnan(out[todo])]
    if len(todo):
        c[todo] = _in_full(shared, shared_inner, cross[todo], own[todo], own_inner[todo], first)
        out[todo] = _gain(shared, shared_inner, cross[todo], own[todo], own_inner[todo], c[todo])
    return out, c


def _alike(active: Flags, todo: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the problems `todo`, grouped by their guess."""
    if not active.shape[1]:
        return [todo]
    codes = np.packbits(active[todo], axis=1)
    codes = np.ascontiguousarray(codes).view(f"V{codes.shape[1]}").ravel()
    _, group = np.unique(codes, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    return np.split(todo[order], np.flatnonzero(np.diff(group.ravel()[order])) + 1)


def _gain(
    shared: Array, shared_inner: Array, cross: Array, own: Array, own_inner: Array, c: Array
) -> Array:
    """2 <theta, sum> - ||sum||^2, which errs only by the square of what c errs. (p,)."""
    f = len(shared_inner)
    a, b = c[:, :f], c[:, f:]
    square = np.einsum("pf,pf->p", a @ shared, a)
    # Two factors at a time: to look for the best order takes einsum longer than the sums.
    square += 2 * np.einsum("pv,pv->p", b, np.matmul(cross, a[:, :, None])[..., 0])
    square += np.einsum("pv,pv->p", b, np.matmul(own, b[:, :, None])[..., 0])
    out: Array = 2 * (a @ shared_inner + np.einsum("pv,pv->p", b, own_inner)) - square
    return out


def _pivot(
    shared: Array, shared_inner: Array, active: Flags, cross: Array, own: Array, own_inner: Array
) -> tuple[Array, Flags]:
    """Coefficients of problems with one guess, and which shared rays contradict it: (p, f)."""
    on, off = np.flatnonzero(active), np.flatnonzero(~active)
    p = len(own_inner)
    near = cross[:, :, on]
    if len(on):
        block = shared[np.ix_(on, on)]
        ridge = RIDGE_OF_CONE * max(float(np.trace(block)), 1e-300) / len(on)
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
    wrong[~np.isfinite(weights).all(axis=1)] = len(on) > 0  # no factor: leave it to the descent
    found = np.zeros((p, len(active) + c.shape[1]))
    found[:, on], found[:, len(active) :] = np.maximum(weights, 0), c
    return found, wrong


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


# --- Cones of many places at once: those with equally many rays side by side --------------------

Index = NDArray[np.int64]


def frozen_gains(fixed: PointRays, kept: Array, moved: PointRays) -> Array:
    """Return what each place adds where the others' contribution stays: (p,)."""
    left = moved.inner.numpy() - moved.gram(fixed).numpy() @ kept
    out = np.zeros(len(moved.kinks))
    for points, own, rows in _by_count([moved]):
        if own.shape[1] <= MOST_OWN:
            c = few(own, left[rows], np.einsum("pvv->pv", own))
        else:
            c = np.array([nonnegative(*each) for each in zip(own, left[rows], strict=True)])
        out[points] = np.einsum("pv,pv->p", c, left[rows])
    return out


def refitted_gains(fixed: PointRays, shared: Array, inner: Array, parts: list[PointRays]) -> Array:
    """Return what each place explains together with the fixed rays (p,)."""
    out = np.zeros(len(parts[0].kinks))
    cross = np.concatenate([part.gram(fixed).numpy() for part in parts])
    own_inner = np.concatenate([part.inner.numpy() for part in parts])
    for points, own, rows in _by_count(parts):
        out[points] = explained_shares(shared, inner, cross[rows], own, own_inner[rows])[0]
    return out


def _by_count(
    parts: list[PointRays],
) -> list[tuple[Index, Array, Index]]:
    """Places with equally many rays: their indices, Gram matrices, rows of their rays."""
    counts = np.stack([part.counts.numpy() for part in parts])
    starts = np.cumsum(counts, axis=1) - counts
    starts += np.cumsum([0, *(len(part.owner) for part in parts[:-1])])[:, None]
    out = []
    for kind in np.unique(counts, axis=1).T:
        points = np.flatnonzero((counts == kind[:, None]).all(axis=0))
        rows = np.concatenate(
            [s[points][:, None] + np.arange(k) for s, k in zip(starts, kind, strict=True)], axis=1
        )
        out.append((points, _own(parts, points, rows), rows))
    return out


def _own(parts: list[PointRays], points: Index, rows: Index) -> Array:
    """Return gram matrices of the own rays of each place (p, v, v)."""
    owner = np.concatenate([part.owner.numpy() for part in parts])[rows]
    which = np.concatenate([np.full(len(part.owner), i) for i, part in enumerate(parts)])[rows]
    total = np.zeros((len(points), rows.shape[1], rows.shape[1]))
    for layer in range(len(parts[0].back)):
        b = np.concatenate([part.back[layer].numpy() for part in parts])[rows]
        a = np.stack([part.inputs[layer].numpy() for part in parts])[which, owner]
        total += (b @ b.transpose(0, 2, 1)) * (a @ a.transpose(0, 2, 1))
    return total
