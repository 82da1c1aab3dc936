"""Nonnegative least squares as compiled loops, from Gram matrices, one problem after another.

Loaded by `loading.compiled_module`; other loops call `active_set`. What to call from outside of
loops stands in `engine.nonnegative`.
"""

from __future__ import annotations

import numpy as np

from explorer.engine.arrays import Array
from explorer.engine.kernels.jit import compile_inner, keep_compiled

_NOTHING = 1e-14  # arbitrary: the share of a multiplier that is left of one that goes to 0


@compile_inner
def factor(gram: Array, at: Array, first: int, n: int, ridge: float, low: Array) -> bool:
    """Return rows `first` to n of the lower factor of gram[at, at] + ridge.

    False where there is none.
    """
    for a in range(first, n):
        for b in range(a):
            s = gram[at[a], at[b]]
            for q in range(b):
                s -= low[a, q] * low[b, q]
            low[a, b] = s / low[b, b]
        s = gram[at[a], at[a]] + ridge
        for q in range(a):
            s -= low[a, q] * low[a, q]
        if s <= 0:
            return False
        low[a, a] = np.sqrt(s)
    return True


@compile_inner
def solve(right: Array, at: Array, n: int, low: Array, best: Array) -> None:
    """What solves the equations of a factor, into best[:n]."""
    for a in range(n):
        s = right[at[a]]
        for q in range(a):
            s -= low[a, q] * best[q]
        best[a] = s / low[a, a]
    for a in range(n - 1, -1, -1):
        best[a] = s = best[a] / low[a, a]
        for q in range(a):
            best[q] -= low[a, q] * s


@compile_inner
def active_set(
    gram: Array, right: Array, n: int, above: Array, ridge: float, tol: float, low: Array,
    first: int,
) -> bool:  # fmt: skip
    """Return least 1/2 above' (gram + ridge) above - right' above, above >= 0, on from `above`.

    `first`: rows of `low` that hold the factor of what is positive in `above`.
    """
    at, best, refused = np.empty(n, np.int64), np.empty(n), np.zeros(n, np.bool_)
    size, entered = 0, -1
    for i in range(n):
        if above[i] > 0:
            at[size] = i
            size += 1
    for _ in range(20 * n + 20):
        if not factor(gram, at, first, size, ridge, low):
            return False
        solve(right, at, size, low, best)
        t = 1.0
        for a in range(size):
            if best[a] <= 0:
                t = min(t, above[at[a]] / (above[at[a]] - best[a]) if above[at[a]] > 0 else 0.0)
        first, kept = size, 0
        for a in range(size):
            i = at[a]
            value = above[i] + t * (best[a] - above[i])
            if best[a] <= 0 and value <= _NOTHING * above[i]:
                above[i], first = 0.0, min(first, a)
                refused[i] = refused[i] or i == entered
            else:
                above[i] = value
                at[kept] = i
                kept += 1
        if kept < size or t < 1:
            size = kept
            continue
        gain, entered = tol, -1
        for i in range(n):
            if above[i] == 0 and not refused[i]:
                s = right[i]
                for a in range(size):
                    s -= gram[i, at[a]] * above[at[a]]
                if s > gain:
                    gain, entered = s, i
        if entered < 0:
            return True
        at[size] = entered
        size += 1
    return False


@keep_compiled
def settle(
    gram: Array, cross: Array, own: Array, right: Array, tol: Array, factor: Array, above: Array
) -> None:
    """Put coefficients in place of p guesses `above` (p, f + v); nan where there is no factor.

    Columns have length one. The first f of all problems are the same: gram (f + v, f + v) holds
    their products, and takes those of each problem's own columns, cross (p, v, f), own (p, v, v).
    right (p, f + v), tol (p,). `factor`: of what is positive in all guesses.
    """
    p, v, f = cross.shape
    low = np.empty((f + v, f + v))
    for i in range(p):
        for a in range(v):
            for b in range(f):
                gram[f + a, b] = gram[b, f + a] = cross[i, a, b]
            for b in range(v):
                gram[f + a, f + b] = own[i, a, b]
        for a in range(len(factor)):
            for b in range(a + 1):
                low[a, b] = factor[a, b]
        if not active_set(gram, right[i], f + v, above[i], 0.0, tol[i], low, len(factor)):
            above[i] = np.nan


# --- Lawson and Hanson's inner loop, the factor kept while columns leave -------------------------


@compile_inner
def _without(low: Array, r: int, n: int, turns: Array) -> None:
    """The lower factor (n, n) without row and column r of what it is the factor of, in place."""
    for j in range(r, n - 1):
        row, above = low[j], low[j + 1]
        for c in range(j + 2):
            row[c] = above[c]
        for c in range(r, j):
            x, y = row[c], row[c + 1]
            row[c], row[c + 1] = (
                x * turns[c, 0] + y * turns[c, 1],
                y * turns[c, 0] - x * turns[c, 1],
            )
        x, y = row[j], row[j + 1]
        length = np.sqrt(x * x + y * y)
        turns[j, 0], turns[j, 1] = x / length, y / length
        row[j] = length


@keep_compiled
def positive(gram: Array, gains: Array, weight: Array, ridge: float) -> bool:
    """Lawson and Hanson's inner loop on `weight` (n,), in place: 0 for columns that leave.

    The ridge is that of columns at length one. False where it leaves no factor: nothing changes.
    """
    n, size = len(weight), np.empty(len(weight))
    whole, low, turns = np.empty((n, n)), np.empty((n, n)), np.empty((n, 2))
    g, w, step, kept = np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.int64)
    for i in range(n):
        size[i] = max(np.sqrt(gram[i, i]), 1e-300)
        g[i], w[i], kept[i] = gains[i] / size[i], weight[i] * size[i], i
    for i in range(n):
        for j in range(n):
            whole[i, j] = gram[i, j] / (size[i] * size[j])
    if not factor(whole, kept, 0, n, ridge, low):
        return False
    while n:
        solve(g, kept, n, low, step)
        t, first = np.inf, -1
        for a in range(n):
            until = w[kept[a]] / max(-step[a], 1e-300)
            if w[kept[a]] + step[a] <= 0 and until < t:
                t, first = until, a
        if not t < np.inf:
            for a in range(n):
                w[kept[a]] += step[a]
            break
        for a in range(n - 1, -1, -1):
            i, s = kept[a], step[a]
            g[i] -= t * (g[i] - ridge * s)  # the Gram matrix times the step is g - ridge step
            if a != first and (w[i] + s > 0 or w[i] > t * max(-s, 1e-300)):  # one leaves each time
                w[i] = max(w[i] + t * s, 0.0)
                continue
            _without(low, a, n, turns)
            n -= 1
            for b in range(a, n):
                kept[b] = kept[b + 1]
    for i in range(len(weight)):
        weight[i] = 0.0
    for a in range(n):
        weight[kept[a]] = w[kept[a]] / size[kept[a]]
    return True
