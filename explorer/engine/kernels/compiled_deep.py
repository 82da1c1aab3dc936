"""The projected attack's steps on three layers and more as compiled loops.

Loaded by `loading.compiled_module`. Rows are neurons and columns candidates, as in `batched`.
Products of matrices are calls of BLAS; whatever lies between them goes through each array once.
Gram matrices are made of the candidates that were active at the step before, and of those that the
residual asks for; all but the pass through the network is made of those with a multiplier.

What has the size of a layer is in the type of the weights, float64 or float32; candidates,
multipliers and all sums that are subtracted from each other are in float64.

Shapes: x, mean, square, grad (b, d + 2, m), rows as in `compiled`; signed (b, m). A network is its
layers' weights with the bias, where there is one, as last column, one layer after another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, types
from numba.extending import overload

from explorer.engine.kernels.compiled import (
    move,
    on_box,
    on_margin,
    sigmoid,
    sigmoid_single,
)
from explorer.engine.kernels.compiled_nonnegative import active_set
from explorer.engine.kernels.jit import FAST, kept
from explorer.engine.kernels.steps import ALPHA, MARGIN, DescentRule, LossTerms, SolverTolerances

Array = npt.NDArray[Any]
# Weights; neurons (L,) and inputs (L,); slopes; squared norm of all but the last layer.
Net = tuple[Array, Array, Array, Array, float]


def slope_of(z: float) -> float:
    """sigmoid(z) in the type of z; in loops alone."""
    raise NotImplementedError(z)


@overload(slope_of, jit_options=FAST, inline="always")
def _slope_of(z) -> Callable[..., float]:  # type: ignore[no-untyped-def] # noqa: ANN001
    if z == types.float32:
        return lambda z: sigmoid_single(z)
    return lambda z: sigmoid(z)


@njit(**FAST)
def _layers(net: Net) -> list[Array]:
    """Return the weights of each layer (k, e)."""
    theta, outs, ins = net[:3]
    at, made = 0, []
    for k, e in zip(outs, ins):  # noqa: B905 - numba knows no strict
        made.append(theta[at : at + k * e].reshape(k, e))
        at += k * e
    return made


@njit(**FAST)
def _put(out: Array, v: Array) -> None:
    """Write the first rows of v into those of out; assigning a slice would compile for seconds."""
    for i in range(min(len(out), len(v))):
        for j in range(out.shape[1]):
            out[i, j] = v[i, j]


@njit(**FAST)
def _lay(
    x: Array, alpha: float, ws: list[Array], slopes: Array, a: list[Array], z: list[Array],
    s: list[Array], b: list[Array], outer: list[Array],
) -> None:  # fmt: skip
    """Go up and down: what each layer reads, and of hidden ones z, s and dPhi by z and by a."""
    _put(a[0], x)
    first, depth, m, zero = 0, len(z), x.shape[1], slopes.dtype.type(0)
    for layer in range(depth):
        np.dot(ws[layer], a[layer], z[layer])
        zl, sl, out = z[layer], s[layer], a[layer + 1]
        for i in range(len(zl)):
            steep = slopes.dtype.type(alpha * slopes[first + i])
            row, slope, value = zl[i], sl[i], out[i]
            for j in range(m):
                slope[j] = slope_of(steep * row[j])
                value[j] = max(row[j], zero)
        first += len(zl)
    for layer in range(depth - 1, -1, -1):
        ol, sl, bl = outer[layer], s[layer], b[layer]
        if layer == depth - 1:
            for i in range(len(ol)):
                ol[i] = ws[depth][0, i]
        else:
            np.dot(ws[layer + 1].T, b[layer + 1], ol)
        for i in range(len(bl)):
            for j in range(m):
                bl[i, j] = ol[i, j] * sl[i, j]


@njit(**FAST)
def _known(
    ws: list[Array], a: list[Array], z: list[Array], b: list[Array], phi: Array, inner: Array,
    size: Array,
) -> None:  # fmt: skip
    """Phi, <theta, grad Phi> and || grad Phi ||^2 of each candidate (m,)."""
    depth, m = len(z), len(phi)
    made = np.dot(ws[depth], a[depth])
    for j in range(m):
        phi[j] = inner[j] = made[0, j]
    size[:] = 0.0
    own, read = np.empty(m, made.dtype), np.empty(m, made.dtype)
    for layer in range(depth + 1):
        own[:] = 1.0 if layer == depth else 0.0
        read[:] = 0.0
        for i in range(len(z[layer]) if layer < depth else 0):
            bi, zi = b[layer][i], z[layer][i]
            for j in range(m):
                inner[j] += bi[j] * zi[j]
                own[j] += bi[j] * bi[j]
        al = a[layer]
        for i in range(len(al)):
            for j in range(m):
                read[j] += al[i, j] * al[i, j]
        for j in range(m):
            size[j] += own[j] * read[j]


@njit(**FAST)
def _columns(v: Array, at: Array) -> Array:
    """Return columns `at` of v."""
    out = np.empty((len(v), len(at)), v.dtype)
    for i in range(len(v)):
        for j in range(len(at)):
            out[i, j] = v[i, at[j]]
    return out


@njit(**FAST)
def _products(
    a: list[Array], b: list[Array], at: Array, before: int, reads: list[Array], sends: list[Array],
    cross: Array,
) -> None:  # fmt: skip
    """Rows of candidates `at` (p,) beside all: <a_i, a_j> and <b_i, b_j> of each hidden layer.

    They go into `reads` and `sends` from row `before` on, <grad Phi(x_i), grad Phi(x_j)> likewise
    into `cross`.
    """
    depth, end = len(b), before + len(at)
    _put(cross[before:end], np.dot(_columns(a[depth], at).T, a[depth]))
    for layer in range(depth):
        read, sent = reads[layer][before:end], sends[layer][before:end]
        np.dot(_columns(a[layer], at).T, a[layer], read)
        np.dot(_columns(b[layer], at).T, b[layer], sent)
        for i in range(len(at)):
            for j in range(cross.shape[1]):
                cross[before + i, j] += np.float64(read[i, j]) * sent[i, j]


@njit(**FAST)
def _multipliers(
    a: list[Array], b: list[Array], right: Array, signed: Array, share: Array,
    near: SolverTolerances, reads: list[Array], sends: list[Array],
) -> tuple[bool, Array, Array]:  # fmt: skip
    """Put the multipliers in place of `share`, and in place of `right` what they leave to ask for.

    Returns whether there are any, and of those above 0 the candidates and their rows in `reads`.
    """
    m, tol, most = len(right), 0.0, 0
    for j in range(m):
        tol = max(tol, near.gain * abs(right[j]))
    known, at = np.zeros(m, np.bool_), np.empty(m, np.int64)
    cross, gram, low = np.empty((m, m)), np.empty((m, m)), np.empty((m, m))
    asked, above, gain = np.empty(m), np.empty(m), right.copy()
    wanted = share > 0
    if not wanted.any():
        wanted = right > tol
    while wanted.any():
        before = most
        for j in range(m):
            if wanted[j]:
                known[j], at[most], asked[most], above[most] = True, j, right[j], share[j]
                most += 1
        _products(a, b, at[before:most], before, reads, sends, cross)
        for i in range(before, most):
            for j in range(m):
                cross[i, j] *= signed[at[i]] * signed[j]
            for j in range(i + 1):
                gram[i, j] = gram[j, i] = cross[i, at[j]]
            gram[i, i] *= 1 + near.rounding
        if not active_set(gram, asked, most, above, near.ridge, tol, low):
            return False, at[:0], at[:0]
        for j in range(m):
            gain[j] = right[j]
        for i in range(most):
            for j in range(m):
                gain[j] -= above[i] * cross[i, j]
        for j in range(m):
            wanted[j] = gain[j] > tol and not known[j]
    share[:] = 0.0
    for i in range(most):
        share[at[i]] = above[i]
    for j in range(m):
        right[j] = gain[j]
    rows = np.nonzero(above[:most] > 0)[0]
    return True, at[rows], rows


@njit(**FAST)
def _square(rows: Array, at: Array, of: Array) -> Array:
    """Entries [rows_i, at_j] of a matrix."""
    out = np.empty((len(rows), len(at)), of.dtype)
    for i in range(len(rows)):
        for j in range(len(at)):
            out[i, j] = of[rows[i], at[j]]
    return out


@njit(**FAST)
def _pull(
    at: Array, rows: Array, c: Array, alpha: float, net: Net, ws: list[Array], a: list[Array],
    z: list[Array], s: list[Array], b: list[Array], outer: list[Array], reads: list[Array],
    sends: list[Array], onto: Array,
) -> float:  # fmt: skip
    """Return what c (p,) leaves of ||theta||^2.

    Its gradient on x over 2 c into the columns of onto.
    """
    slopes, depth, n, left = net[3], len(z), len(at), net[4]
    pulled, steep, slope = [], [], []
    carried = np.zeros((ws[0].shape[1], n), slopes.dtype)
    for layer in range(depth):
        w, below, signal = ws[layer], _columns(a[layer], at), _columns(b[layer], at)
        value, own = _columns(z[layer], at), _columns(s[layer], at)
        read, sent = _square(rows, at, reads[layer]), _square(rows, at, sends[layer])
        along = np.zeros(n)
        for r in range(len(value)):
            for i in range(n):
                along[i] += np.float64(signal[r, i]) * value[r, i]
        for i in range(n):
            left -= 2 * c[i] * along[i]
            for j in range(n):
                left += c[i] * c[j] * read[i, j] * sent[i, j]
                read[i, j] *= c[i]
                sent[i, j] *= c[i]
        up = value - np.dot(signal, read)
        down = -np.dot(below, sent)
        if layer:
            up += np.dot(w, carried)
            own_down = _columns(outer[layer - 1], at)
            for i in range(len(own_down)):
                for j in range(n):
                    down[i, j] += own_down[i, j]
        else:
            down += np.dot(w.T, signal)
        carried = np.zeros((ws[layer + 1].shape[1], n), slopes.dtype)
        _put(carried, up * own)
        pulled.append(down)
        steep.append(up * signal)
        slope.append(own)
    top = ws[depth][0] - np.dot(_columns(a[depth], at), c.astype(slopes.dtype))
    for i in range(len(top)):
        left += np.float64(top[i]) * top[i]
    grad, first = np.empty((len(z[depth - 1]), n), slopes.dtype), len(slopes)
    for i in range(len(grad)):
        grad[i] = top[i]
    for layer in range(depth - 1, -1, -1):
        first -= len(z[layer])
        steeps, own = steep[layer], slope[layer]
        for i in range(len(grad)):
            rate = slopes.dtype.type(alpha * slopes[first + i])
            for j in range(n):
                turn = rate * steeps[i, j]
                grad[i, j] = turn + own[i, j] * (grad[i, j] - turn)
        k = len(z[layer - 1]) if layer else len(onto)
        grad = (pulled[layer] + np.dot(ws[layer].T, grad))[:k].copy()
    for i in range(len(onto)):
        for j in range(n):
            onto[i, at[j]] = grad[i, j] * c[j]
    return left


@njit(**FAST)
def _to_margin(
    p: Array,
    grad: Array,
    slope: Array,
    phi: Array,
    signed: Array,
    margin: float,
    terms: LossTerms,
) -> None:
    """Add the gradients on x of the margin and of the box."""
    for i in range(len(p)):
        for j in range(len(phi)):
            grad[i, j] += on_box(p[i, j], terms)
            if margin > 0:
                grad[i, j] += slope[i, j] * on_margin(phi[j], signed[j], margin, terms)


@kept
def project(
    held: tuple[Array, Array, Array, Array], signed: Array, table: Array, net: Net,
    terms: LossTerms, rule: DescentRule, near: SolverTolerances, outs: tuple[Array, Array, Array],
) -> bool:  # fmt: skip
    """As `compiled.project`, for any depth and any number of inputs, with a floor of 0."""
    p, mean, square, grad = held
    left, phi, on_share = outs
    m, d, ws, of = p.shape[2], p.shape[1] - 2, _layers(net), net[0].dtype
    a = [np.ones((w.shape[1], m), of) for w in ws]
    outer = [np.empty((w.shape[1], m), of) for w in ws[1:]]
    z = [np.empty((len(w), m), of) for w in ws[:-1]]
    s, b = [np.empty_like(v) for v in z], [np.empty_like(v) for v in z]
    reads, sends = [np.empty((m, m), of) for _ in z], [np.empty((m, m), of) for _ in z]
    inner, size, slope = np.empty(m), np.empty(m), np.zeros((1, 1), of)
    for i in range(len(p)):
        share = p[i, d + 1]
        for row in table:
            move(p[i], mean[i], square[i], grad[i], row, rule)
            _lay(p[i, :d], row[ALPHA], ws, net[3], a, z, s, b, outer)
            _known(ws, a, z, b, phi[i], inner, size)
            trace = 0.0
            for j in range(m):
                inner[j] *= signed[i, j]
                trace += size[j] * signed[i, j] * signed[i, j]
            own = SolverTolerances(near.ridge * trace, near.rounding, near.gain)
            solved, at, rows = _multipliers(a, b, inner, signed[i], share, own, reads, sends)
            if not solved:
                return False
            onto = grad[i, :d]
            onto[:] = 0.0
            c = share[at] * signed[i][at]
            left[i] = _pull(at, rows, c, row[ALPHA], net, ws, a, z, s, b, outer, reads, sends, onto)
            if not abs(left[i]) < np.inf:
                return False
            onto *= -2 / terms.square
            if row[MARGIN] > 0:
                slope = np.dot(ws[0].T, b[0])
            _to_margin(p[i, :d], onto, slope, phi[i], signed[i], row[MARGIN], terms)
            for j in range(m):
                on_share[i, j] = inner[j] * (-2 / terms.square)
            grad[i, d + 1] = 0.0
    return True
