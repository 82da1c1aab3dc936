r"""Nonnegative least squares over cones, for thousands of them that share most of their rays.

    E = min || theta - sum_f c_f g_f - sum_v c_v h_v ||^2,    c >= 0,

where the g_f are the same in every problem and the few h_v are its own. Only Gram matrices are
needed; each problem is solved from the set of the rays that all problems share (`nonnegative`).
"""

from __future__ import annotations

import numpy as np

from explorer.engine.arrays import Array, Index
from explorer.engine.energy.rays import PointRays
from explorer.engine.nonnegative import nonnegative, nonnegative_all


def residual(gram: Array, inner: Array) -> tuple[Array, float]:
    """Return coefficients (r,), and what they explain of ||theta||^2. gram (r, r), inner (r,)."""
    c = nonnegative(gram, inner)
    return c, float(2 * inner @ c - c @ gram @ c)


def explained_shares(
    shared: Array, shared_inner: Array, cross: Array, own: Array, own_inner: Array
) -> Array:
    """Return how much of ||theta||^2 each of p problems explains at best (p,).

    Args:
        shared: Gram matrix of the shared rays (f, f).
        shared_inner: <theta, g_f> (f,).
        cross: <h_v, g_f> (p, v, f).
        own: Gram matrices of the own rays (p, v, v).
        own_inner: <theta, h_v> (p, v).
    """
    f, first = len(shared_inner), nonnegative(shared, shared_inner)
    c = nonnegative_all(shared, shared_inner, cross, own, own_inner, first)
    a, b = c[:, :f], c[:, f:]
    # 2 <theta, sum> - ||sum||^2, which errs only by the square of what c errs. Two factors at a
    # time: to look for the best order takes einsum longer than the sums.
    square = np.einsum("pf,pf->p", a @ shared, a)
    square += 2 * np.einsum("pv,pv->p", b, np.matmul(cross, a[:, :, None])[..., 0])
    square += np.einsum("pv,pv->p", b, np.matmul(own, b[:, :, None])[..., 0])
    out: Array = 2 * (a @ shared_inner + np.einsum("pv,pv->p", b, own_inner)) - square
    return out


# --- Cones of many places at once: those with equally many rays side by side --------------------


def frozen_gains(fixed: PointRays, kept: Array, moved: PointRays) -> Array:
    """Return what each place adds where the others' contribution stays: (p,)."""
    left = moved.inner.numpy() - moved.gram(fixed).numpy() @ kept
    out, nothing = np.zeros(len(moved.kinks)), np.zeros(0)
    for points, own, rows in _by_count([moved]):
        c = nonnegative_all(np.zeros((0, 0)), nothing, own[:, :, :0], own, left[rows], nothing)
        out[points] = np.einsum("pv,pv->p", c, left[rows])
    return out


def refitted_gains(fixed: PointRays, shared: Array, inner: Array, parts: list[PointRays]) -> Array:
    """Return what each place explains together with the fixed rays (p,)."""
    out = np.zeros(len(parts[0].kinks))
    cross = np.concatenate([part.gram(fixed).numpy() for part in parts])
    own_inner = np.concatenate([part.inner.numpy() for part in parts])
    for points, own, rows in _by_count(parts):
        out[points] = explained_shares(shared, inner, cross[rows], own, own_inner[rows])
    return out


def _by_count(
    parts: list[PointRays],
) -> list[tuple[Index, Array, Index]]:
    """Return places with equally many rays: their indices, Gram matrices, rows of their rays."""
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
