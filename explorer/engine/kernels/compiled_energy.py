r"""The energy of candidate sets under smooth slopes, with its gradient, as compiled loops.

Loaded by `loading.compiled_module`. With a = (x, 1), z = w.a, s = sigmoid(alpha z) and
r = softplus(alpha z) / alpha, of which s is the derivative, a candidate's column is g = (v s a, r)
and

    E = min || theta - sum_j c_j g_j ||^2 + ridge sum_j c_j^2 |g_j|^2,    c_j y_j >= 0,

so that E has a gradient everywhere, and this is it.
"""

from __future__ import annotations

import numpy as np

from explorer.engine.arrays import Array
from explorer.engine.kernels.compiled_nonnegative import active_set
from explorer.engine.kernels.compiled_terms import put, sigmoid
from explorer.engine.kernels.jit import compile_inner, keep_compiled

_TOLERANCE = 1e-12  # arbitrary: of the largest product with theta, a gain that is rounding
_FAR = 36.0  # e^-36 is below the rounding of 1


@compile_inner
def _columns(
    a: Array, y: Array, w: Array, v: Array, alpha: float, s: Array, r: Array, vs: Array,
    right: Array,
) -> None:  # fmt: skip
    """Slopes, values, slopes times v of candidates a (m, d): (m, k) each; <theta, y g> (m,)."""
    z = np.empty(len(v))
    for j in range(len(a)):
        z[:] = 0.0
        for i in range(a.shape[1]):
            at, row = a[j, i], w[i]
            for k in range(len(v)):
                z[k] += at * row[k]
        sj, rj, vj, total = s[j], r[j], vs[j], 0.0
        for k in range(len(v)):
            sj[k] = sigmoid(alpha * z[k])
            vj[k] = v[k] * sj[k]
            rj[k] = z[k] if z[k] > 0 else 0.0
        for k in range(len(v)):
            if abs(alpha * z[k]) < _FAR:
                rj[k] -= np.log(max(sj[k], 1 - sj[k])) / alpha
        for k in range(len(v)):
            total += vj[k] * z[k] + v[k] * rj[k]
        right[j] = total * y[j]


@compile_inner
def _gram(a: Array, y: Array, r: Array, vs: Array, right: Array, gram: Array, size: Array) -> None:
    """Products of the columns at length one (m, m), and their lengths; `right` goes with them."""
    for j in range(len(a)):
        for q in range(j + 1):
            inner, slopes, values = 0.0, 0.0, 0.0
            for i in range(a.shape[1]):
                inner += a[j, i] * a[q, i]
            vj, vq, rj, rq = vs[j], vs[q], r[j], r[q]
            for k in range(vs.shape[1]):
                slopes += vj[k] * vq[k]
                values += rj[k] * rq[k]
            gram[j, q] = (slopes * inner + values) * y[j] * y[q]
        size[j] = max(np.sqrt(gram[j, j]), 1e-150)
        right[j] /= size[j]
        for q in range(j + 1):
            gram[j, q] /= size[j] * size[q]
            gram[q, j] = gram[j, q]


@compile_inner
def _remainder(
    a: Array, w: Array, v: Array, r: Array, vs: Array, c: Array, left: Array, left_v: Array
) -> float:
    """What c leaves of theta: of w into left (d, k), of v into left_v (k,); its squared norm."""
    for i in range(len(w)):
        put(w[i], left[i])
    put(v, left_v)
    for j in range(len(a)):
        if c[j] == 0:
            continue
        for k in range(len(v)):
            left_v[k] -= c[j] * r[j, k]
        for i in range(a.shape[1]):
            row, by = left[i], c[j] * a[j, i]
            for k in range(len(v)):
                row[k] -= by * vs[j, k]
    return np.sum(left_v * left_v) + np.sum(left * left)


@keep_compiled
def energies(
    x: Array, y: Array, w: Array, v: Array, alpha: float, ridge: float, guess: Array,
    value: Array, grad: Array,
) -> None:  # fmt: skip
    """Energies of b sets as shares of ||theta||^2 (b,), their gradients (b, m, d), into the arrays.

    x (b, m, d), y (m,), w (d + 1, k), v (k,). `guess`: multipliers (b, m) >= 0 to begin at, and
    those found. nan where no multipliers are found.
    """
    b, m, d = x.shape
    n = len(v)
    a, s, r, vs = np.ones((m, d + 1)), np.empty((m, n)), np.empty((m, n)), np.empty((m, n))
    gram, low, left, left_v = np.empty((m, m)), np.empty((m, m)), np.empty((d + 1, n)), np.empty(n)
    right, size, above, c, t = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(n)
    square = np.sum(v * v) + np.sum(w * w)
    for e in range(b):
        for j in range(m):
            put(x[e, j], a[j])
        _columns(a, y, w, v, alpha, s, r, vs, right)
        _gram(a, y, r, vs, right, gram, size)
        tol = 0.0
        for j in range(m):
            above[j] = guess[e, j] * size[j]
            tol = max(tol, _TOLERANCE * abs(right[j]))
        grad[e], value[e] = np.nan, np.nan
        if not active_set(gram, right, m, above, ridge, tol, low, 0):
            continue
        for j in range(m):
            guess[e, j] = above[j] / size[j]
            c[j] = guess[e, j] * y[j]
        total = _remainder(a, w, v, r, vs, c, left, left_v)
        for j in range(m):
            total += ridge * above[j] * above[j]
            price = ridge * c[j]
            grad[e, j] = 0.0
            if c[j] == 0:
                continue
            t[:] = 0.0
            for i in range(d + 1):
                for k in range(n):
                    t[k] += (left[i, k] - price * vs[j, k] * a[j, i]) * a[j, i]
            for k in range(n):
                t[k] *= alpha * vs[j, k] * (1 - s[j, k])
                t[k] += (left_v[k] - price * r[j, k]) * s[j, k]
            for i in range(d):
                on = 0.0
                for k in range(n):
                    on += t[k] * w[i, k] + vs[j, k] * (left[i, k] - price * vs[j, k] * a[j, i])
                grad[e, j, i] = -2 * c[j] * on / square
        value[e] = total / square
