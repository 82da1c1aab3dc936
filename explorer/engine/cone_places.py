"""Cones of many places at once: those with equally many rays side by side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from explorer.engine.cone import MOST_OWN, explained, few
from explorer.engine.cone_descent import batch
from explorer.engine.rays import Rays

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def frozen_gains(fixed: Rays, kept: Array, moved: Rays) -> Array:
    """What each place adds where the others' contribution stays: (p,)."""
    left = moved.inner.numpy() - moved.gram(fixed).numpy() @ kept
    out = np.zeros(len(moved.kinks))
    for points, own, rows in _by_count([moved]):
        if own.shape[1] <= MOST_OWN:
            c = few(own, left[rows], np.einsum("pvv->pv", own))
        else:
            c = batch(own, left[rows], np.zeros(rows.shape))
        out[points] = np.einsum("pv,pv->p", c, left[rows])
    return out


def refitted_gains(fixed: Rays, shared: Array, inner: Array, parts: list[Rays]) -> Array:
    """What each place explains together with the fixed rays (p,)."""
    out = np.zeros(len(parts[0].kinks))
    cross = np.concatenate([part.gram(fixed).numpy() for part in parts])
    own_inner = np.concatenate([part.inner.numpy() for part in parts])
    for points, own, rows in _by_count(parts):
        out[points] = explained(shared, inner, cross[rows], own, own_inner[rows])[0]
    return out


def _by_count(
    parts: list[Rays],
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


def _own(parts: list[Rays], points: Index, rows: Index) -> Array:
    """Gram matrices of the own rays of each place (p, v, v)."""
    owner = np.concatenate([part.owner.numpy() for part in parts])[rows]
    which = np.concatenate([np.full(len(part.owner), i) for i, part in enumerate(parts)])[rows]
    total = np.zeros((len(points), rows.shape[1], rows.shape[1]))
    for layer in range(len(parts[0].back)):
        b = np.concatenate([part.back[layer].numpy() for part in parts])[rows]
        a = np.stack([part.inputs[layer].numpy() for part in parts])[which, owner]
        total += (b @ b.transpose(0, 2, 1)) * (a @ a.transpose(0, 2, 1))
    return total
