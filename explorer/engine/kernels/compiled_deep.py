"""The projected attack's steps on three layers and more as compiled loops.

Loaded by `loading.compiled_module`. Rows are neurons and columns candidates, as in `deep`. Products
of matrices are calls of BLAS; whatever lies between them goes through each array once. Gram
matrices are made of the candidates that were active at the step before, and of those that the
residual asks for; all but the pass through the network is made of those with a multiplier.

Shapes: x, mean, square, grad (b, d + 2, m), rows as in `packed`; signed (b, m). A network is its
layers' weights with the bias, where there is one, as last column, one layer after another. What is
compiled is kept on disk and made anew when this file changes or `compiled`, whose time is part of
what numba looks for.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from numba import njit

from explorer.engine.kernels import compiled
from explorer.engine.kernels.compiled import FAST, active_set, move, sigmoid

Array = npt.NDArray[np.float64]
Net = tuple[Array, Array, Array, Array]  # weights; neurons (L,) and inputs (L,); slopes
How = tuple[float, ...]  # as in `compiled`
Rule = tuple[bool, float, float, float]

_TOLERANCE = 1e-13  # as in `compiled`


@njit(**FAST)
def _layers(net: Net) -> list[Array]:
    """The weights of each layer (k, e)."""
    theta, outs, ins, _ = net
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
    first, depth, m = 0, len(z), x.shape[1]
    for layer in range(depth):
        np.dot(ws[layer], a[layer], z[layer])
        zl, sl, out = z[layer], s[layer], a[layer + 1]
        for i in range(len(zl)):
            steep, row, slope, value = alpha * slopes[first + i], zl[i], sl[i], out[i]
            for j in range(m):
                slope[j] = sigmoid(steep * row[j])
                value[j] = row[j] if row[j] > 0 else 0.0
        first += len(zl)
    for layer in range(depth - 1, -1, -1):
        ol, sl, bl = outer[layer], s[layer], b[layer]
        if layer == depth - 1:
            for i in range(len(ol)):
                ol[i] = ws[depth][0, i]
        else:
            _put(ol, np.dot(ws[layer + 1].T, b[layer + 1]))
        for i in range(len(ol)):
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
    own, read = np.empty(m), np.empty(m)
    for layer in range(depth + 1):
        own[:] = 1.0 if layer == depth else 0.0
        read[:] = 0.0
        for i in range(len(z[layer]) if layer < depth else 0):
            bi, zi = b[layer][i], z[layer][i]
            for j in range(m):
                inner[j] += bi[j] * zi[j]
                own[j] += bi[j] * bi[j]
        for row in a[layer]:
            for j in range(m):
                read[j] += row[j] * row[j]
        for j in range(m):
            size[j] += own[j] * read[j]


@njit(**FAST)
def _columns(v: Array, at: Array) -> Array:
    """Columns `at` of v."""
    out = np.empty((len(v), len(at)))
    for i in range(len(v)):
        for j in range(len(at)):
            out[i, j] = v[i, at[j]]
    return out


@njit(**FAST)
def _products(a: list[Array], b: list[Array], at: Array) -> Array:
    """<grad Phi(x_i), grad Phi(x_j)> of i in `at` and all j, (p, m)."""
    depth = len(b)
    made = np.dot(_columns(a[depth], at).T, a[depth])
    for layer in range(depth):
        made += np.dot(_columns(b[layer], at).T, b[layer]) * np.dot(
            _columns(a[layer], at).T, a[layer]
        )
    return made


@njit(**FAST)
def _multipliers(
    a: list[Array], b: list[Array], right: Array, signed: Array, share: Array, ridge: float
) -> bool:
    """Put the multipliers in place of `share`, and in place of `right` what they leave to ask for.

    False where none are found.
    """
    m, tol, most = len(right), 0.0, 0
    for j in range(m):
        tol = max(tol, _TOLERANCE * abs(right[j]))
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
        made = _products(a, b, at[before:most])
        for i in range(before, most):
            for j in range(m):
                cross[i, j] = made[i - before, j] * signed[at[i]] * signed[j]
            for j in range(i + 1):
                gram[i, j] = gram[j, i] = cross[i, at[j]]
        if not active_set(gram, asked, most, above, ridge, tol, low):
            return False
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
    return True


@njit(**FAST)
def _pull(
    at: Array, c: Array, alpha: float, ws: list[Array], slopes: Array, a: list[Array],
    z: list[Array], s: list[Array], b: list[Array], outer: list[Array], onto: Array,
) -> float:  # fmt: skip
    """What c (p,) leaves of ||theta||^2; its gradient on x over 2 c into the columns of onto."""
    depth, n, left = len(z), len(at), 0.0
    pulled, steep, slope = [], [], []
    carried = np.zeros((ws[0].shape[1], n))
    for layer in range(depth):
        w, below, signal = ws[layer], _columns(a[layer], at), _columns(b[layer], at)
        value, own = _columns(z[layer], at), _columns(s[layer], at)
        reads, sends = np.dot(below.T, below), np.dot(signal.T, signal)
        for i in range(n):
            along = 0.0
            for r in range(len(value)):
                along += signal[r, i] * value[r, i]
            left -= 2 * c[i] * along
            for j in range(n):
                left += c[i] * c[j] * reads[i, j] * sends[i, j]
                reads[i, j] *= c[i]
                sends[i, j] *= c[i]
        up = value - np.dot(signal, reads)
        down = -np.dot(below, sends)
        if layer:
            up += np.dot(w, carried)
            own_down = _columns(outer[layer - 1], at)
            for i in range(len(own_down)):
                for j in range(n):
                    down[i, j] += own_down[i, j]
        else:
            down += np.dot(w.T, signal)
        for row in w:
            left += np.sum(row * row)
        carried = np.zeros((ws[layer + 1].shape[1], n))
        _put(carried, up * own)
        pulled.append(down)
        steep.append(up * signal)
        slope.append(own)
    top = ws[depth][0] - np.dot(_columns(a[depth], at), c)
    left += np.sum(top * top)
    grad, first = np.empty((len(z[depth - 1]), n)), len(slopes)
    for i in range(len(grad)):
        grad[i] = top[i]
    for layer in range(depth - 1, -1, -1):
        first -= len(z[layer])
        for i in range(len(grad)):
            rate = alpha * slopes[first + i]
            for j in range(n):
                up = rate * steep[layer][i, j]
                grad[i, j] = up + slope[layer][i, j] * (grad[i, j] - up)
        k = len(z[layer - 1]) if layer else len(onto)
        grad = (pulled[layer] + np.dot(ws[layer].T, grad))[:k].copy()
    for i in range(len(onto)):
        for j in range(n):
            onto[i, at[j]] = grad[i, j] * c[j]
    return left


@njit(**FAST)
def _to_margin(
    p: Array, grad: Array, slope: Array, phi: Array, signed: Array, margin: float, how: How
) -> None:
    """Add the gradients on x of the margin and of the box."""
    level, prior, weight_prior = how[0], how[4], how[5]
    for i in range(len(slope)):
        for j in range(len(phi)):
            x, off = p[i, j], phi[j] - (level if signed[j] > 0 else -level)
            outside = x - prior if x > prior else x + prior if x < -prior else 0.0
            grad[i, j] += 2 * weight_prior * outside
            if margin > 0:
                grad[i, j] += slope[i, j] * off * (2 * margin / (level * level))


def _made(stamp: int) -> Callable[..., bool]:
    @njit(cache=True, **FAST)
    def project(
        held: tuple[Array, Array, Array, Array], signed: Array, table: Array, net: Net, how: How,
        rule: Rule, ridge: float, outs: tuple[Array, Array, Array],
    ) -> bool:  # fmt: skip
        """As `compiled.project`, for any depth and any number of inputs, with a floor of 0."""
        if not stamp:
            return False
        p, mean, square, grad = held
        left, phi, on_share = outs
        m, d, ws, slopes = p.shape[2], p.shape[1] - 2, _layers(net), net[3]
        a = [np.ones((w.shape[1], m)) for w in ws]
        z, s = [np.empty((len(w), m)) for w in ws[:-1]], [np.empty((len(w), m)) for w in ws[:-1]]
        b = [np.empty((len(w), m)) for w in ws[:-1]]
        outer = [np.empty((len(w), m)) for w in ws[:-1]]
        inner, size = np.empty(m), np.empty(m)
        for i in range(len(p)):
            share = p[i, d + 1]
            for row in table:
                move(p[i], mean[i], square[i], grad[i], row, rule)
                _lay(p[i, :d], row[4], ws, slopes, a, z, s, b, outer)
                _known(ws, a, z, b, phi[i], inner, size)
                trace = 0.0
                for j in range(m):
                    inner[j] *= signed[i, j]
                    trace += size[j] * signed[i, j] * signed[i, j]
                if not _multipliers(a, b, inner, signed[i], share, ridge * trace):
                    return False
                at, onto = np.nonzero(share > 0)[0], grad[i, :d]
                onto[:] = 0.0
                c = share[at] * signed[i][at]
                left[i] = _pull(at, c, row[4], ws, slopes, a, z, s, b, outer, onto)
                if not abs(left[i]) < np.inf:
                    return False
                onto *= how[1]
                slope = np.dot(ws[0].T, b[0])[:d] if row[5] > 0 else p[i, :d]
                _to_margin(p[i, :d], onto, slope, phi[i], signed[i], row[5], how)
                for j in range(m):
                    on_share[i, j] = inner[j] * how[1]
                grad[i, d + 1] = 0.0
        return True

    return project


project = _made(Path(compiled.__file__).stat().st_mtime_ns)
