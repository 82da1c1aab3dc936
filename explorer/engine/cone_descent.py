r"""Non-negative least squares by descent, many problems side by side.

    min || theta - sum_r c_r g_r ||^2,    c >= 0

The active-set method of Lawson and Hanson (1974): take up the ray of steepest descent, solve on the
rays in use, go there as far as no coefficient turns negative, drop those that reach zero. Every
step goes down, so it ends where rays repeat one another, which makes pivoting cycle. All problems
take their steps at once; their systems are padded to one size. They begin at the optimum of the
rays they share, which is mostly a few steps from theirs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

MOST_BYTES = 32 * 2**20  # of Gram matrices at once; arbitrary
RIDGE = 1e-13  # of a unit ray's square: keeps a padded system solvable; arbitrary
STEEP = 1e-10  # of |theta|: the least descent per unit ray that counts; arbitrary
MOST = 6  # steps per ray before a problem is given up as done; arbitrary, about 1 is usual


def descend(
    shared: Array, shared_inner: Array, cross: Array, own: Array, own_inner: Array, first: Array
) -> Array:
    """Coefficients (p, f + v) of problems as in `cone.explained`, from `first` (f,) on."""
    p, f = len(own), len(shared_inner)
    size = f + own.shape[1]
    out = np.zeros((p, size))
    step = max(1, MOST_BYTES // (8 * size * size))
    for low in range(0, p, step):
        mine = slice(low, min(low + step, p))
        count = mine.stop - low
        gram = np.empty((count, size, size))
        gram[:, :f, :f] = shared
        gram[:, f:, :f], gram[:, f:, f:] = cross[mine], own[mine]
        gram[:, :f, f:] = cross[mine].transpose(0, 2, 1)
        inner = np.concatenate([np.tile(shared_inner, (count, 1)), own_inner[mine]], axis=1)
        start = np.concatenate([np.tile(first, (count, 1)), np.zeros_like(own_inner[mine])], axis=1)
        out[mine] = batch(gram, inner, start)
    return out


def batch(gram: Array, inner: Array, start: Array) -> Array:
    """Coefficients (p, r) of p problems: gram (p, r, r), inner (p, r), start (p, r) >= 0."""
    norm = np.sqrt(np.maximum(np.einsum("prr->pr", gram), 1e-300))
    gram = gram / (norm[:, :, None] * norm[:, None, :])
    inner = inner / norm
    c = start * norm
    steep = STEEP * np.abs(inner).max(axis=1, initial=1e-300)
    barred = np.zeros(c.shape, dtype=bool)  # taken up in vain: rounding
    live = np.arange(len(c))
    for _ in range(MOST * gram.shape[1]):
        slope = inner[live] - np.einsum("prs,ps->pr", gram[live], c[live])
        slope[(c[live] > 0) | barred[live]] = -np.inf
        best = slope.argmax(axis=1)
        going = slope[np.arange(len(live)), best] > steep[live]
        live, best = live[going], best[going]
        if not len(live):
            break
        _take_up(gram, inner, c, barred, live, best)
    out: Array = c / norm
    return out


def _take_up(
    gram: Array, inner: Array, c: Array, barred: Flags, live: NDArray[np.int64],
    best: NDArray[np.int64],
) -> None:  # fmt: skip
    """One step of the problems `live`, in place: ray `best` comes in, others may go."""
    used = c[live] > 0
    used[np.arange(len(live)), best] = True
    todo = np.arange(len(live))
    while len(todo):
        at = live[todo]
        aim = _solved(gram, inner, at, used[todo])
        below = used[todo] & (aim <= 0)
        fresh = below[np.arange(len(todo)), best[todo]] & (c[at, best[todo]] <= 0)
        barred[at[fresh], best[todo[fresh]]] = True
        stuck = below.any(axis=1)
        here = c[at]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(below, here / (here - aim), np.inf)
        share = np.minimum(ratio.min(axis=1), 1.0)
        here = here + share[:, None] * (aim - here)
        # Those that set the length of the step are zero, whatever rounding says.
        gone = below & (ratio <= share[:, None] * (1 + 1e-12))
        here[gone | ~used[todo]] = 0.0
        c[at] = np.maximum(here, 0.0)
        used[todo] &= ~gone
        todo = todo[stuck]


def _solved(gram: Array, inner: Array, at: NDArray[np.int64], used: Flags) -> Array:
    """Least squares on the rays in use, zero elsewhere. (q, r)."""
    size = int(used.sum(axis=1).max(initial=0))
    which = np.argsort(~used, axis=1, kind="stable")[:, :size]
    real = np.take_along_axis(used, which, axis=1)
    block = gram[at[:, None, None], which[:, :, None], which[:, None, :]]
    block *= real[:, :, None] & real[:, None, :]
    block[:, np.arange(size), np.arange(size)] += RIDGE + (~real)
    right = np.where(real, np.take_along_axis(inner[at], which, axis=1), 0.0)
    found = np.linalg.solve(block, right[:, :, None])[:, :, 0]
    out = np.zeros(used.shape)
    np.put_along_axis(out, which, np.where(real, found, 0.0), axis=1)
    return out
