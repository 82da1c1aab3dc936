"""The steps of KKT and DecoReco as compiled loops, for layers of any number and any outputs.

Loaded by `loading.compiled_module`. The formulas are those of `reference`, the results equal to
rounding. Rows are candidates and columns neurons. Products of matrices are calls of BLAS; whatever
lies between them goes through each array once.

A candidate has q multipliers, each with a covector u (C,) on the outputs: together they pull with
sum_q c_q u_q. Multipliers that are solved for are as in `compiled_two_inputs`: Gram matrices are
made of those that were above the floor at the step before, and of those that the residual asks for;
all but the pass through the network is made of candidates that have one.

With r = W - sum_i b_i a_i' of a layer, where b_i are the signals of what candidate i pulls with,
the products r' b_i and r a_i come from r itself, or where that is cheaper from the Gram matrices of
a and b: there the loss is good to about 1e-16 ||theta||^2.

What has the size of a layer is in the type of the weights, float64 or float32; candidates,
multipliers and all sums that are subtracted from each other are in float64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from explorer.engine.kernels.compiled_nonnegative import active_set, factor, solve
from explorer.engine.kernels.compiled_terms import move, on_box, on_floor, put, slope_of
from explorer.engine.kernels.jit import INNER, compile_inner, keep_compiled
from explorer.engine.kernels.steps import (
    ALPHA,
    MARGIN,
    RATE_LAM,
    RATE_X,
    DescentRule,
    LossTerms,
    Multipliers,
)

Array = npt.NDArray[Any]
_ROUNDS = 3  # as in `decoreco`
_TALL, _STRIP = 128, 64  # rows from which a Gram matrix is made in strips, and of a strip


class LayerArrays(NamedTuple):
    """A network as the loops want it.

    Attributes:
        theta: the weights of each layer (k, e) with the bias, where there is one, as last column,
            one layer after another.
        outs: k of each layer.
        ins: e of each layer.
        squares: squared norm of each layer.
        slopes: factors on alpha of all hidden neurons.
    """

    theta: Array
    outs: Array
    ins: Array
    squares: Array
    slopes: Array


class CandidateArrays(NamedTuple):
    """What the candidates are.

    Attributes:
        d: coordinates of a point.
        own: numbers of the classes (m,), 0 of one output.
        y: labels (m,).
    """

    d: int
    own: Array
    y: Array


class LayerPass(NamedTuple):
    """What each layer reads (m, e), and of hidden ones z (m, k) and their slopes s (m, k)."""

    a: list[Array]
    z: list[Array]
    s: list[Array]


class LayerSignals(NamedTuple):
    """d<u, Phi> of covectors u (p, C): by what each layer hands on (p, e), and by its z (p, k)."""

    cover: Array
    outer: list[Array]
    b: list[Array]


class Work(NamedTuple):
    """Arrays that every step writes anew: the pages of fresh ones cost as much as a pass.

    Attributes:
        left: of each layer (k, e).
        up: what goes to each hidden layer's slopes (m, k).
        down: and to what it reads (m, e).
        carried: and to what the next one reads (m, e).
        read: room for a Gram matrix (m m,).
        sent: the same.
        onto: what goes to the points (m, e).
    """

    left: list[Array]
    up: list[Array]
    down: list[Array]
    carried: list[Array]
    read: Array
    sent: Array
    onto: Array


class Residual(NamedTuple):
    """What is left of theta, and what the candidates `on` (n,) read of it; in arrays of `Work`.

    Attributes:
        square: its squared norm.
        onto: <it, grad Phi_c(x_i)> (n, C).
        top: the gradient on what the last layer reads, over -2 (n, e).
        pulled: the same on what each hidden layer reads, of its own weights (n, e).
        turned: the gradient on its slopes, times them (n, k).
        beside: signals of the first layer (n, k) from whose product with its weights `pulled` is
            still to be taken; (0, k) where it is whole.
    """

    square: float
    onto: Array
    top: Array
    pulled: list[Array]
    turned: list[Array]
    beside: Array


@compile_inner
def _weights(net: LayerArrays) -> list[Array]:
    """Return the weights of each layer (k, e)."""
    at, made = 0, []
    for i in range(len(net.outs)):
        k, e = net.outs[i], net.ins[i]
        made.append(net.theta[at : at + k * e].reshape(k, e))
        at += k * e
    return made


@compile_inner
def _take(room: Array, used: Array, rows: int, columns: int) -> Array:
    """Return the next (rows, columns) of the room."""
    first = used[0]
    used[0] += rows * columns
    return room[first : first + rows * columns].reshape(rows, columns)


@compile_inner
def _arrays(ws: list[Array], m: int, p: int, room: Array) -> tuple[LayerPass, LayerSignals, Work]:
    """Return arrays for a pass of m candidates, signals of p covectors, and the residual."""
    at = np.zeros(1, np.int64)
    a = [_take(room, at, m, w.shape[1]) for w in ws]
    z = [_take(room, at, m, len(w)) for w in ws[:-1]]
    s = [_take(room, at, m, len(w)) for w in ws[:-1]]
    outer = [_take(room, at, p, w.shape[1]) for w in ws[1:]]
    b = [_take(room, at, p, len(w)) for w in ws[:-1]]
    cover = _take(room, at, p, len(ws[-1]))
    left = [_take(room, at, len(w), w.shape[1]) for w in ws]
    up = [_take(room, at, m, len(w)) for w in ws[:-1]]
    down = [_take(room, at, m, w.shape[1]) for w in ws[:-1]]
    carried = [_take(room, at, m, w.shape[1]) for w in ws[1:]]
    read, sent = _take(room, at, 1, m * m)[0], _take(room, at, 1, m * m)[0]
    work = Work(left, up, down, carried, read, sent, _take(room, at, m, ws[0].shape[1]))
    return LayerPass(a, z, s), LayerSignals(cover, outer, b), work


@compile_inner
def _lay(x: Array, alpha: float, ws: list[Array], slopes: Array, at: LayerPass, phi: Array) -> None:
    """Go up: fill the pass, and the outputs phi (m, C)."""
    first, zero = 0, slopes.dtype.type(0)
    _copy(x, at.a[0])
    for layer in range(len(at.z)):
        z, s, out = at.z[layer], at.s[layer], at.a[layer + 1]
        np.dot(at.a[layer], ws[layer].T, z)
        steep = _steep(alpha, slopes, first, z.shape[1])
        for i in range(len(z)):
            row, slope, value = z[i], s[i], out[i]
            for j in range(len(steep)):
                slope[j] = slope_of(steep[j] * row[j])
                value[j] = max(row[j], zero)
            for j in range(len(steep), len(value)):
                value[j] = 1.0
        first += len(steep)
    _copy(np.dot(at.a[-1], ws[-1].T), phi)


@compile_inner
def _steep(alpha: float, slopes: Array, first: int, k: int) -> Array:
    """Return alpha of k neurons from the first one on."""
    steep = np.empty(k, slopes.dtype)
    for j in range(k):
        steep[j] = alpha * slopes[first + j]
    return steep


@compile_inner
def _copy(v: Array, out: Array) -> None:
    """Write v into out, of the same shape."""
    for i in range(len(v)):
        put(v[i], out[i])


@compile_inner
def _send(ws: list[Array], at: LayerPass, signals: LayerSignals) -> None:
    """Go down: fill the signals of the covectors there, of each candidate one after another."""
    depth = len(signals.b)
    q = len(signals.cover) // len(at.a[0])
    for layer in range(depth - 1, -1, -1):
        outer, b, s = signals.outer[layer], signals.b[layer], at.s[layer]
        np.dot(signals.cover if layer == depth - 1 else signals.b[layer + 1], ws[layer + 1], outer)
        for p in range(len(b)):
            slope = s[p // q]
            for j in range(b.shape[1]):
                b[p, j] = outer[p, j] * slope[j]


@compile_inner
def _inner_products(at: LayerPass, signals: LayerSignals, phi: Array, inner: Array) -> float:
    """Write <theta, g> of each multiplier's gradient g (p,); return the sum of all ||g||^2."""
    depth, q, total = len(at.z), len(inner) // len(phi), 0.0
    for p in range(len(inner)):
        inner[p] = 0.0
        for c in range(phi.shape[1]):
            inner[p] += signals.cover[p, c] * phi[p // q, c]
    for layer in range(depth + 1):
        a = at.a[layer]
        b = signals.cover if layer == depth else signals.b[layer]
        z = at.a[0] if layer == depth else at.z[layer]
        for p in range(len(inner)):
            i, read, sent, along = p // q, 0.0, 0.0, 0.0
            for j in range(a.shape[1]):
                read += np.float64(a[i, j] * a[i, j])
            for j in range(b.shape[1]):
                sent += np.float64(b[p, j] * b[p, j])
            for j in range(b.shape[1] if layer < depth else 0):
                along += np.float64(b[p, j] * z[i, j])
            inner[p] += along
            total += read * sent
    return total


@compile_inner
def _rows(v: Array, at: Array) -> Array:
    """Return rows `at` of v, which are v itself where they are all in order."""
    whole = len(at) == len(v)
    for i in range(len(at)):
        whole = whole and at[i] == i
    if whole:
        return v
    out = np.empty((len(at), v.shape[1]), v.dtype)
    for i in range(len(at)):
        for j in range(v.shape[1]):
            out[i, j] = v[at[i], j]
    return out


@compile_inner
def _products(at: LayerPass, signals: LayerSignals, some: Array, beside: Array, out: Array) -> None:
    """Write <g_i, g_j> of the multipliers `some`, in rows, and those `beside`."""
    depth, q = len(at.z), len(signals.cover) // len(at.a[0])
    for layer in range(depth + 1):
        a, b = at.a[layer], signals.cover if layer == depth else signals.b[layer]
        read = np.dot(_rows(a, some // q), _rows(a, beside // q).T)
        sent = np.dot(_rows(b, some), _rows(b, beside).T)
        for i in range(len(some)):
            for j in range(len(beside)):
                value = np.float64(read[i, j]) * sent[i, j]
                out[i, j] = value if layer == 0 else out[i, j] + value


@njit(inline="always", **INNER)
def _solve(
    coef: Array, floor: float, ridge: float, kind: Multipliers, basis: Array, at: LayerPass,
    signals: LayerSignals, ws: list[Array], squares: Array, work: Work, right: Array,
) -> tuple[bool, Array, Array]:  # fmt: skip
    """Write the multipliers of least loss into coef (p,), and into `right` what they leave to gain.

    `right`: <theta less what the floor explains, g> of each. Returns whether they are found, and
    of those that were in question the numbers and the Gram matrix. Gains come from all of theta
    where the solution may be improved, and else from products beside all multipliers.
    """
    n, tol, most, exact = len(coef), 0.0, 0, kind.fine > 0
    known, some = np.zeros(n, np.bool_), np.empty(n, np.int64)
    every, each = np.arange(n), np.arange(len(basis))
    gram, low, cross = np.empty((n, n)), np.empty((n, n)), np.empty((0, n) if exact else (n, n))
    above, asked, wanted = np.empty(n), np.empty(n), np.zeros(n, np.bool_)
    for p in range(n):
        tol = max(tol, kind.least_gain * abs(right[p]))
        wanted[p], above[p] = kind.signed or coef[p] > floor, max(coef[p] - floor, 0.0)
        coef[p] = floor
    gain, first = right.copy(), above.copy()
    if not wanted.any():
        wanted = right > tol
    while wanted.any():
        before = most
        for p in range(n):
            if wanted[p]:
                known[p], some[most], asked[most], above[most] = True, p, right[p], first[p]
                most += 1
        fresh, new = some[before:most], np.empty((most - before, most if exact else n))
        _products(at, signals, fresh, some[:most] if exact else every, new)
        for i in range(before, most):
            for j in range(i + 1):
                gram[i, j] = gram[j, i] = new[i - before, j if exact else some[j]]
            gram[i, i] *= 1 + kind.rounding
        if kind.signed:
            if not factor(gram, every, 0, n, ridge, low):
                return False, some[:0], gram
            solve(right, every, n, low, above)
        elif not active_set(gram, asked, most, above, ridge, tol, low, 0):
            return False, some[:0], gram
        for i in range(most):
            coef[some[i]] = floor + above[i]
        if kind.signed:
            break
        if exact:
            pull = _pulls(coef, each, signals, len(coef) // len(each), True)
            _gain(_residual(each, pull, at, ws, squares, True, work), each, basis, gain)
        else:
            _copy(new, cross[before:most])
            for p in range(n):
                gain[p] = right[p]
            for i in range(most):
                for p in range(n):
                    gain[p] -= above[i] * cross[i, p]
        for p in range(n):
            wanted[p] = gain[p] > tol and not known[p]
    for p in range(n):
        right[p] = gain[p]
    return True, some[:most], gram


@compile_inner
def _pulls(coef: Array, on: Array, signals: LayerSignals, q: int, exact: bool) -> LayerSignals:
    """Return the signals of what the candidates `on` pull with: coef (p,) times their own.

    `exact`: without `outer`, which is not asked for then.
    """
    cover, outer, b = _weighted_sums(coef, on, signals.cover, q), [], []
    for layer in range(len(signals.b)):
        own = signals.outer[layer]
        outer.append(own if exact else _weighted_sums(coef, on, own, q))
        b.append(_weighted_sums(coef, on, signals.b[layer], q))
    return LayerSignals(cover, outer, b)


@compile_inner
def _weighted_sums(coef: Array, on: Array, v: Array, q: int) -> Array:
    """Return the sums of rows of v, q of each candidate, times coef."""
    out = np.zeros((len(on), v.shape[1]), v.dtype)
    for i in range(len(on)):
        for p in range(on[i] * q, on[i] * q + q):
            c = v.dtype.type(coef[p])
            if c != 0:
                for j in range(v.shape[1]):
                    out[i, j] += c * v[p, j]
    return out


@compile_inner
def _less(out: Array, v: Array) -> float:
    """Write v - out into out; its squared norm."""
    square = 0.0
    for i in range(len(out)):
        for j in range(out.shape[1]):
            out[i, j] = v[i, j] - out[i, j]
            square += np.float64(out[i, j] * out[i, j])
    return square


@compile_inner
def _dot_rows(a: Array, b: Array) -> float:
    """Return the sum of all products of entries."""
    total = 0.0
    for i in range(len(a)):
        for j in range(a.shape[1]):
            total += np.float64(a[i, j]) * b[i, j]
    return total


@compile_inner
def _residual(
    on: Array, pull: LayerSignals, at: LayerPass, ws: list[Array], squares: Array, exact: bool,
    work: Work,
) -> Residual:  # fmt: skip
    """Return what is left of theta; `exact`: to rounding of itself, however little it is."""
    n, square, carried, beside = len(on), 0.0, pull.cover, pull.b[0][:0]
    pulled, turned = [carried], [carried]  # numba learns the types from these
    pulled.pop()
    turned.pop()
    for layer in range(len(at.z)):
        w, below, signal = ws[layer], _rows(at.a[layer], on), pull.b[layer]
        up, down, r = work.up[layer][:n], work.down[layer][:n], work.left[layer]
        k, e = w.shape
        if exact or 3 * k * e <= (2.0 if n < _TALL else 1.5) * n * (k + e):
            np.dot(signal.T, below, r)
            square += _less(r, w)
            np.dot(below, r.T, up)
            np.dot(signal, r, down)
        else:
            value = _rows(at.z[layer], on)
            read, sent = _gram(below, work.read), _gram(signal, work.sent)
            square += squares[layer] - 2 * _dot_rows(signal, value) + _dot_rows(read, sent)
            np.dot(read, signal, up)
            np.dot(sent, below, down)
            _less(up, value)
            if layer:
                _less(down, pull.outer[layer - 1])
            else:
                beside = signal
        if layer:
            _add(np.dot(carried, w.T), up)
        carried, own = work.carried[layer][:n], _rows(at.s[layer], on)
        for i in range(n):
            for j in range(k):
                carried[i, j] = up[i, j] * own[i, j]
                up[i, j] *= signal[i, j]
            for j in range(k, carried.shape[1]):
                carried[i, j] = 0.0
        pulled.append(down)
        turned.append(up)
    read, r = _rows(at.a[-1], on), work.left[-1]
    np.dot(pull.cover.T, read, r)
    square += _less(r, ws[-1])
    onto = np.dot(read, r.T)
    _add(np.dot(carried, ws[-1].T), onto)
    return Residual(square, onto, np.dot(pull.cover, r), pulled, turned, beside)


@compile_inner
def _gram(v: Array, room: Array) -> Array:
    """Return v v' (n, n) in `room`; of many rows each product but those in strips is made once."""
    n = len(v)
    out = room[: n * n].reshape(n, n)
    if n < _TALL:
        np.dot(v, v.T, out)
        return out
    for first in range(0, n, _STRIP):
        end = min(first + _STRIP, n)
        made = np.dot(v[first:end], v[:end].T)
        for i in range(first, end):
            for j in range(end):
                out[i, j] = out[j, i] = made[i - first, j]
    return out


@compile_inner
def _add(v: Array, out: Array) -> None:
    """Add v to out."""
    for i in range(len(v)):
        for j in range(v.shape[1]):
            out[i, j] += v[i, j]


@compile_inner
def _gain(left: Residual, on: Array, basis: Array, gain: Array) -> None:
    """Write <what is left, g> of the multipliers of the candidates `on`."""
    q = basis.shape[1]
    for i in range(len(on)):
        for k in range(q):
            total = 0.0
            for c in range(basis.shape[2]):
                total += left.onto[i, c] * basis[on[i], k, c]
            gain[on[i] * q + k] = total


@njit(inline="always", **INNER)
def _improve(
    coef: Array, floor: float, some: Array, gram: Array, ridge: float, basis: Array, at: LayerPass,
    signals: LayerSignals, ws: list[Array], squares: Array, work: Work,
) -> bool:  # fmt: skip
    """`decoreco._improvement` of coef (p,), in place, on multipliers `some` above the floor."""
    n, size, least, q = len(some), 0, np.inf, basis.shape[1]
    low, each, inside = np.empty((n, n)), np.arange(len(basis)), np.empty(n, np.int64)
    for a in range(n):
        if coef[some[a]] > floor:
            inside[size] = a
            size += 1
    if not factor(gram, inside, 0, size, ridge, low):
        return False
    best, more, right, gain = coef.copy(), np.empty(n), np.empty(n), np.empty(len(coef))
    for turn in range(_ROUNDS + 1):
        pull = _pulls(coef, each, signals, q, True)
        left = _residual(each, pull, at, ws, squares, True, work)
        if not left.square < least:
            break
        least = left.square
        put(coef, best)
        if turn < _ROUNDS:
            _gain(left, each, basis, gain)
            for a in range(n):
                right[a] = gain[some[a]]
            solve(right, inside, size, low, more)
            for a in range(size):
                p = some[inside[a]]
                coef[p] = max(coef[p] + more[a], floor)
    put(best, coef)
    return True


@compile_inner
def _down(
    on: Array, left: Residual, at: LayerPass, ws: list[Array], slopes: Array, alpha: float,
    work: Work,
) -> Array:  # fmt: skip
    """Return what the first layer's weights hand on to the candidates `on`, over -2 (n, k)."""
    grad, first = left.top, len(slopes)
    for layer in range(len(at.z) - 1, -1, -1):
        turned, own = left.turned[layer], _rows(at.s[layer], on)
        first -= turned.shape[1]
        rate = _steep(alpha, slopes, first, turned.shape[1])
        for i in range(len(on)):
            for j in range(len(rate)):
                turn = rate[j] * turned[i, j]
                turned[i, j] = turn + own[i, j] * (grad[i, j] - turn)
        if layer:
            grad = work.carried[layer - 1][: len(on)]
            np.dot(turned, ws[layer], grad)
            _add(left.pulled[layer], grad)
    _add(left.beside, left.turned[0])
    return left.turned[0]


@compile_inner
def _runner_up(values: Array, own: int) -> int:
    """Return the largest output of another class."""
    best = 0 if own else 1
    for c in range(len(values)):
        if c != own and values[c] > values[best]:
            best = c
    return best


@compile_inner
def _rivals(phi: Array, own: Array, basis: Array) -> None:
    """Write the covectors to the runner-up of each candidate."""
    for i in range(len(phi)):
        for c in range(phi.shape[1]):
            basis[i, 0, c] = 1.0 if c == own[i] else 0.0
        basis[i, 0, _runner_up(phi[i], own[i])] = -1.0


@compile_inner
def _margins(
    phi: Array, seen: CandidateArrays, weight: float, terms: LossTerms, push: Array, contrast: Array
) -> float:
    """Write the margin's gradient on q_i into push (m,), and dq_i/dPhi (m, C); return l_margin.

    The sum has a loop of its own: where a loop writes too, LLVM takes whole vectors only if its
    arrays are far enough apart, so the order of a sum in it would hang on where they lie.
    """
    contrast[:] = 0.0
    for i in range(len(phi)):
        if phi.shape[1] == 1:
            contrast[i, 0] = seen.y[i]
            margin = seen.y[i] * phi[i, 0]
        else:
            best = _runner_up(phi[i], seen.own[i])
            contrast[i, seen.own[i]], contrast[i, best] = 1.0, -1.0
            margin = phi[i, seen.own[i]] - phi[i, best]
        push[i] = margin / terms.level - 1
    total = 0.0
    for i in range(len(push)):
        total += push[i] * push[i]
    for i in range(len(push)):
        push[i] *= 2 * weight / terms.level
    return total


@compile_inner
def _push_all(push: Array, contrast: Array, ws: list[Array], scale: float, top: Array) -> None:
    """Add the margin's gradient on what the last layer reads to that of all candidates."""
    last = ws[-1]
    for i in range(len(push)):
        for c in range(len(last)):
            along = top.dtype.type(push[i] * contrast[i, c] * scale)
            if along != 0:
                for j in range(top.shape[1]):
                    top[i, j] += along * last[c, j]


@compile_inner
def _margin_signals(push: Array, contrast: Array, basis: Array, b: Array) -> Array:
    """Return push times the first layer's signals of the margins (m, k); may overwrite b (p, k)."""
    q, rows = basis.shape[1], np.empty(len(push), np.int64)
    for i in range(len(rows)):
        rows[i] = i * q
        for k in range(q):
            alike = True
            for c in range(basis.shape[2]):
                alike = alike and basis[i, k, c] == contrast[i, c]
            if alike:
                rows[i] = i * q + k
    out = _rows(b, rows)
    for i in range(len(out)):
        along = b.dtype.type(push[i])
        for j in range(out.shape[1]):
            out[i, j] *= along
    return out


@compile_inner
def _onto_points(
    on: Array, left: Residual, turned: Array, pushed: Array, w: Array, scale: float, work: Work,
    grad: Array, d: int,
) -> None:  # fmt: skip
    """Write the gradient on x (m, d): scale times that of the candidates `on`, and the margins'.

    Both are signals of the first layer, turned (n, k) and pushed (m, k) or (0, k): one product with
    its weights hands them on.
    """
    share = turned.dtype.type(scale)
    for i in range(len(turned)):
        for j in range(turned.shape[1]):
            turned[i, j] *= share
    for i in range(len(on) if len(pushed) else 0):
        row, more = pushed[on[i]], turned[i]
        for j in range(len(row)):
            row[j] += more[j]
    given = pushed if len(pushed) else turned
    onto = work.onto[: len(given)]
    np.dot(given, w, onto)
    rest = scale if len(left.beside) == 0 else -scale
    for i in range(len(grad)):
        for e in range(d):
            grad[i, e] = onto[i, e] if len(pushed) else 0.0
    for i in range(len(on)):
        for e in range(d):
            own = grad[on[i], e] if len(pushed) else onto[i, e]
            grad[on[i], e] = own + rest * left.pulled[0][i, e]


@compile_inner
def _finish(
    x: Array, coef: Array, gain: Array, seen: CandidateArrays, terms: LossTerms, kind: Multipliers,
    grad: Array, shares: Array, grad_coef: Array, losses: Array,
) -> None:  # fmt: skip
    """Write shares, gradients on the multipliers, floor and box; of x what the box adds.

    Sums have loops of their own, as in `_margins`.
    """
    l_dual, l_prior, q = 0.0, 0.0, grad_coef.shape[1]
    for i in range(len(x)):
        for k in range(q):
            share = coef[i * q + k] / kind.mean
            shares[0, i, k] = share
            grad_coef[i, k] = -2 / terms.square * gain[i * q + k]
            if not kind.signed:
                grad_coef[i, k] += on_floor(share, terms) / kind.mean
            shares[3, i, k] = 0.0 if kind.projected else grad_coef[i, k] * kind.mean
        for e in range(seen.d):
            grad[i, e] += on_box(x[i, e], terms)
    for i in range(len(x)):
        for k in range(0 if kind.signed else q):
            l_dual += max(terms.lam_min - shares[0, i, k], 0.0) ** 2
        for e in range(seen.d):
            l_prior += max(abs(x[i, e]) - terms.prior, 0.0) ** 2
    losses[1], losses[2] = l_dual, l_prior


@njit(inline="always", **INNER)
def _step(
    points: Array, shares: Array, basis: Array, seen: CandidateArrays, row: Array, net: LayerArrays,
    ws: list[Array], at: LayerPass, signals: LayerSignals, work: Work, terms: LossTerms,
    kind: Multipliers, grad_coef: Array, losses: Array,
) -> bool:  # fmt: skip
    """Fill the state at the candidates in points[0]; False where no multipliers are found."""
    x, grad, scale = points[0], points[3], -2 / terms.square
    m, q, floor = len(x), basis.shape[1], terms.lam_min * kind.mean
    each, exact = np.arange(m), kind.fine > 0
    phi, coef, gain = np.empty((m, basis.shape[2])), np.empty(m * q), np.empty(m * q)
    _lay(x, row[ALPHA], ws, net.slopes, at, phi)
    if kind.runner_up:
        _rivals(phi, seen.own, basis)
    for i in range(m):
        for k in range(q):
            coef[i * q + k] = shares[0, i, k] * kind.mean
    on = each
    if kind.projected:
        _copy(basis.reshape(m * q, basis.shape[2]), signals.cover)
        _send(ws, at, signals)
        ridge = kind.ridge * _inner_products(at, signals, phi, gain)
        if floor > 0 and not kind.signed:
            low = _pulls(np.full(m * q, floor), each, signals, q, exact)
            _gain(_residual(each, low, at, ws, net.squares, exact, work), each, basis, gain)
        sound, some, gram = _solve(
            coef, floor, ridge, kind, basis, at, signals, ws, net.squares, work, gain
        )
        if not sound:
            return False
        on = each if exact else _carriers(coef, m)
        pull = _pulls(coef, on, signals, q, exact)
        left = _residual(on, pull, at, ws, net.squares, exact, work)
        if left.square < kind.fine * terms.square:
            least = -np.inf if kind.signed else floor
            if not _improve(
                coef, least, some, gram, ridge, basis, at, signals, ws, net.squares, work
            ):
                return False
            pull = _pulls(coef, on, signals, q, True)
            left = _residual(on, pull, at, ws, net.squares, True, work)
    else:
        _pull_with(coef, basis, signals.cover)
        _send(ws, at, signals)
        left = _residual(each, signals, at, ws, net.squares, exact, work)
    _gain(left, on, basis, gain)
    losses[3] = 0.0
    push, contrast = np.zeros(m), np.empty((m, phi.shape[1]))
    if not kind.signed:
        losses[3] = _margins(phi, seen, row[MARGIN], terms, push, contrast)
    pushed = row[MARGIN] > 0 and not kind.signed
    if pushed and not kind.projected:
        _push_all(push, contrast, ws, 1 / scale, left.top)
    turned, along = _down(on, left, at, ws, net.slopes, row[ALPHA], work), signals.b[0][:0]
    if pushed and kind.projected:
        along = _margin_signals(push, contrast, basis, signals.b[0])
    _onto_points(on, left, turned, along, ws[0], scale, work, grad, seen.d)
    losses[0] = left.square / terms.square
    _finish(x, coef, gain, seen, terms, kind, grad, shares, grad_coef, losses)
    losses[4] = losses[0] + terms.weight_dual * losses[1] + terms.weight_prior * losses[2]
    if not kind.signed:
        losses[4] += row[MARGIN] * losses[3]
    return True


@compile_inner
def _carriers(coef: Array, m: int) -> Array:
    """Return the candidates with a multiplier."""
    q, n, on = len(coef) // m, 0, np.empty(m, np.int64)
    for i in range(m):
        carries = False
        for p in range(i * q, i * q + q):
            carries = carries or coef[p] != 0
        if carries:
            on[n] = i
            n += 1
    return on[:n]


@compile_inner
def _pull_with(coef: Array, basis: Array, cover: Array) -> None:
    """Write the covector with which each candidate pulls, (m, C)."""
    q = basis.shape[1]
    cover[:] = 0.0
    for i in range(len(cover)):
        for k in range(q):
            for c in range(cover.shape[1]):
                cover[i, c] += coef[i * q + k] * basis[i, k, c]


@keep_compiled
def descend(
    points: Array, shares: Array, basis: Array, seen: CandidateArrays, table: Array,
    net: LayerArrays, terms: LossTerms, kind: Multipliers, rule: DescentRule, grad_coef: Array,
    losses: Array, room: Array,
) -> bool:  # fmt: skip
    """Return a step for each row of the table, in place; False where it cannot be taken.

    The arrays are then spoilt. Values with names come in as plain tuples, as in
    `compiled_two_inputs`.

    Args:
        points: x, and mean, square and gradient (4, m, e), with a last column of ones in x where
            the first layer has a bias.
        shares: the same of multipliers over their mean (4, m, q).
        basis: the covectors (m, q, C); written here where they belong to the runner-up.
        seen: see there.
        table: of `descent.step_table`.
        net: see there.
        terms: of the loss.
        kind: of the multipliers.
        rule: of the optimiser.
        grad_coef: the gradient on the multipliers (m, q), written at the end.
        losses: stationarity, floor, box, margin and their weighted sum (5,), as they are.
        room: to work in, of the type of theta, as long as `descent_loops.room_length` says.
    """
    seen, net, terms = CandidateArrays(*seen), LayerArrays(*net), LossTerms(*terms)
    kind, rule = Multipliers(*kind), DescentRule(*rule)
    ws, x = _weights(net), points[0]
    covers = basis.shape[0] * (basis.shape[1] if kind.projected else 1)
    at, signals, work = _arrays(ws, len(x), covers, room)
    for row in table:
        live = losses[4] > kind.least_loss
        rates = row[RATE_X], row[RATE_LAM]
        move(x, points[1], points[2], points[3], seen.d, rates[0], row, rule, live)
        move(shares[0], shares[1], shares[2], shares[3], basis.shape[1], rates[1], row, rule, live)
        sound = _step(
            points, shares, basis, seen, row, net, ws, at, signals, work, terms, kind, grad_coef,
            losses,
        )  # fmt: skip
        if not sound or not abs(losses[4]) < np.inf:
            return False
    return True
