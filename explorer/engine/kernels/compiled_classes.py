"""The steps of DecoReco on two layers as compiled loops: several outputs, multipliers of any kind.

Loaded by `loading.compiled_module`. The formulas are those of `reference`, the results equal to
rounding. Products of matrices are calls of BLAS; what lies between them goes through each array
once. Multipliers under a floor are solved for as in `compiled`: Gram matrices are made of those
alone that were above it at the step before, and of those that the residual asks for.

Shapes: x (m, D) with a last column of ones where the first layer has a bias; first (D, k), second
(C, k) the weights; a candidate has q multipliers, each with a covector: basis (m, q, C).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from explorer.engine.kernels.compiled import on_box, on_floor, sigmoid
from explorer.engine.kernels.compiled_nonnegative import active_set, factored, solved
from explorer.engine.kernels.jit import FAST, kept
from explorer.engine.kernels.steps import (
    ALPHA,
    MARGIN,
    RATE_LAM,
    RATE_X,
    SECOND,
    DescentRule,
    LossTerms,
    Multipliers,
)

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Net = tuple[Array, Array, Array]  # first, second, the biases of the second or none
# What is left of theta: its squared norm, its products with grad Phi_c(x_i) (m, C), both layers of
# it, the first times x, and the slopes times pull V (m, k).
Left = tuple[float, Array, Array, Array, Array, Array]

_TOLERANCE = 1e-13  # as in `compiled`
_ROUNDS = 3  # as in `decoreco`


@njit(**FAST)
def _move(held: Array, inner: int, rate: float, row: Array, rule: DescentRule, live: bool) -> None:
    """One step of the optimiser, in place: of held (4, m, .) the first columns; see `compiled`.

    `live`: whether the gradient is more than rounding.
    """
    p, mean, square, grad = held[0], held[1], held[2], held[3]
    for i in range(len(p)):
        for j in range(inner):
            g = grad[i, j] if live else 0.0
            if rule.adam:
                mean[i, j] += (g - mean[i, j]) * (1 - rule.momentum)
                square[i, j] = square[i, j] * rule.beta + g * g * (1 - rule.beta)
                p[i, j] -= rate * mean[i, j] / (np.sqrt(square[i, j]) * row[SECOND] + rule.eps)
            else:
                mean[i, j] = mean[i, j] * rule.momentum - rate * g
                p[i, j] += mean[i, j]


@njit(**FAST)
def _lay(x: Array, alpha: float, net: Net, s: Array, r: Array) -> tuple[Array, Array]:
    """Slopes and values behind the ReLU into s and r (m, k); z (m, k) and the outputs (m, C)."""
    z = np.dot(x, net[0])
    for i in range(len(z)):
        for j in range(z.shape[1]):
            s[i, j] = sigmoid(alpha * z[i, j])
            r[i, j] = z[i, j] if z[i, j] > 0 else 0.0
    phi = np.dot(r, net[1].T)
    for i in range(len(phi)):
        for c in range(len(net[2])):
            phi[i, c] += net[2][c]
    return z, phi


@njit(**FAST)
def _runner_up(values: Array, own: int) -> int:
    """Return the largest output of another class."""
    best = 0 if own else 1
    for c in range(len(values)):
        if c != own and values[c] > values[best]:
            best = c
    return best


@njit(**FAST)
def _pull(coef: Array, basis: Array) -> Array:
    """Return the covector with which each candidate pulls, (m, C)."""
    pull = np.zeros((len(coef), basis.shape[2]))
    for i in range(len(pull)):
        for q in range(coef.shape[1]):
            for c in range(pull.shape[1]):
                pull[i, c] += coef[i, q] * basis[i, q, c]
    return pull


@njit(**FAST)
def _less(out: Array, v: Array) -> float:
    """Write v - out into out; its squared norm."""
    square = 0.0
    for i in range(len(out)):
        for j in range(out.shape[1]):
            out[i, j] = v[i, j] - out[i, j]
            square += out[i, j] * out[i, j]
    return square


@njit(**FAST)
def _left(pull: Array, x: Array, s: Array, r: Array, net: Net) -> Left:
    """Return what is left of theta, and what it answers; see `Left`."""
    back = np.dot(pull, net[1])
    for i in range(len(s)):
        for j in range(s.shape[1]):
            back[i, j] *= s[i, j]
    first, second = np.dot(x.T, back), np.dot(pull.T, r)
    square = _less(first, net[0]) + _less(second, net[1])
    t, onto = np.dot(x, first), np.dot(r, second.T)
    for i in range(len(s)):
        for j in range(s.shape[1]):
            for c in range(len(net[1])):
                onto[i, c] += t[i, j] * s[i, j] * net[1][c, j]
    for c in range(len(net[2])):
        bias = net[2][c]
        for i in range(len(pull)):
            bias -= pull[i, c]
        square += bias * bias
        for i in range(len(pull)):
            onto[i, c] += bias
    return square, onto, first, second, t, back


@njit(**FAST)
def _gain(onto: Array, basis: Array) -> Array:
    """<what is left, the gradient of each multiplier> (m q,)."""
    q = basis.shape[1]
    gain = np.zeros(len(onto) * q)
    for p in range(len(gain)):
        for c in range(onto.shape[1]):
            gain[p] += onto[p // q, c] * basis[p // q, p % q, c]
    return gain


@njit(**FAST)
def _fill(
    at: Whole, before: int, most: int, back: Array, basis: Array, x: Array, r: Array,
    biased: bool, gram: Array,
) -> None:  # fmt: skip
    """Rows and columns of the Gram matrix of at[before:most] beside all of at[:most]."""
    q = basis.shape[1]
    for a in range(before, most):
        i, b_i, u_i = at[a] // q, back[at[a]], basis[at[a] // q, at[a] % q]
        for b in range(a + 1):
            j, b_j, u_j = at[b] // q, back[at[b]], basis[at[b] // q, at[b] % q]
            inputs, signals, covers, values = 0.0, 0.0, 0.0, 0.0
            for e in range(x.shape[1]):
                inputs += x[i, e] * x[j, e]
            for e in range(len(b_i)):
                signals += b_i[e] * b_j[e]
            for c in range(len(u_i)):
                covers += u_i[c] * u_j[c]
            if covers != 0:
                values = 1.0 if biased else 0.0
                for e in range(r.shape[1]):
                    values += r[i, e] * r[j, e]
            gram[a, b] = gram[b, a] = inputs * signals + covers * values


@njit(**FAST)
def _equations(
    x: Array, s: Array, r: Array, z: Array, phi: Array, basis: Array, net: Net
) -> tuple[Array, Array, float]:
    """dg/dz of each multiplier's gradient g (m q, k), <theta, g> (m q,), and all ||g||^2."""
    q, biased, trace = basis.shape[1], 1.0 if len(net[2]) else 0.0, 0.0
    back = np.dot(basis.reshape(-1, basis.shape[2]), net[1])
    inner = np.zeros(len(back))
    for p in range(len(back)):
        i, row, of = p // q, back[p], basis[p // q, p % q]
        inputs, signals, covers, values = 0.0, 0.0, 0.0, biased
        for e in range(x.shape[1]):
            inputs += x[i, e] * x[i, e]
        for j in range(len(row)):
            row[j] *= s[i, j]
            inner[p] += row[j] * z[i, j]
            signals += row[j] * row[j]
            values += r[i, j] * r[i, j]
        for c in range(len(of)):
            inner[p] += of[c] * phi[i, c]
            covers += of[c] * of[c]
        trace += inputs * signals + covers * values
    return back, inner, trace


@njit(**FAST)
def _improved(
    coef: Array, floor: float, at: Whole, n: int, gram: Array, ridge: float, low: Array,
    basis: Array, x: Array, s: Array, r: Array, net: Net,
) -> bool:  # fmt: skip
    """`decoreco._improvement` of coef (m, q), in place, on multipliers at[:n] above the floor."""
    flat, kept, size, least = coef.reshape(-1), np.empty(n, np.int64), 0, np.inf
    for a in range(n):
        if flat[at[a]] > floor:
            kept[size] = a
            size += 1
    if not factored(gram, kept, 0, size, ridge, low):
        return False
    best, more, right = flat.copy(), np.empty(n), np.empty(n)
    for turn in range(_ROUNDS + 1):
        left = _left(_pull(coef, basis), x, s, r, net)
        if not left[0] < least:
            break
        least, gain = left[0], _gain(left[1], basis)
        for p in range(len(flat)):
            best[p] = flat[p]
        if turn < _ROUNDS:
            for a in range(n):
                right[a] = gain[at[a]]
            solved(right, kept, size, low, more)
            for a in range(size):
                p = at[kept[a]]
                flat[p] = max(flat[p] + more[a], floor)
    for p in range(len(flat)):
        flat[p] = best[p]
    return True


@njit(**FAST)
def _solve(
    coef: Array, floor: float, terms: LossTerms, kind: Multipliers, basis: Array, x: Array,
    s: Array, r: Array, z: Array, phi: Array, net: Net,
) -> bool:  # fmt: skip
    """The multipliers of least loss into coef (m, q), from those of the step before there."""
    back, right, trace = _equations(x, s, r, z, phi, basis, net)
    n, ridge, flat, biased = len(right), kind.ridge * trace, coef.reshape(-1), len(net[2]) > 0
    at, gram, low, most = np.empty(n, np.int64), np.empty((n, n)), np.empty((n, n)), 0
    if kind.signed:
        for p in range(n):
            at[p] = p
        _fill(at, 0, n, back, basis, x, r, biased, gram)
        if not factored(gram, at, 0, n, ridge, low):
            return False
        solved(right, at, n, low, flat)
        most, floor = n, -np.inf
        square = _left(_pull(coef, basis), x, s, r, net)[0]
    else:
        above, asked, before, tol, square = np.empty(n), np.empty(n), np.zeros(n), 0.0, terms.square
        wanted, known, new = np.zeros(n, np.bool_), np.zeros(n, np.bool_), 0
        for p in range(n):
            wanted[p], before[p] = flat[p] > floor, max(flat[p] - floor, 0.0)
            flat[p] = floor
            new += wanted[p]
        if floor:
            right = _gain(_left(_pull(coef, basis), x, s, r, net)[1], basis)
        for p in range(n):
            tol = max(tol, _TOLERANCE * abs(right[p]))
        gain = right
        while True:
            for p in range(n if new == 0 else 0):
                wanted[p] = gain[p] > tol and not known[p]
                new += wanted[p]
            if not new:
                break
            new, fresh = 0, most
            for p in range(n):
                if wanted[p]:
                    known[p], at[most], asked[most], above[most] = True, p, right[p], before[p]
                    most += 1
            _fill(at, fresh, most, back, basis, x, r, biased, gram)
            if not active_set(gram, asked, most, above, ridge, tol, low):
                return False
            for a in range(most):
                flat[at[a]] = floor + above[a]
            left = _left(_pull(coef, basis), x, s, r, net)
            square, gain = left[0], _gain(left[1], basis)
    if square < kind.fine * terms.square:
        return _improved(coef, floor, at, most, gram, ridge, low, basis, x, s, r, net)
    return True


@njit(**FAST)
def _onto_x(
    x: Array, d: int, alpha: float, weight: float, own: Whole, y: Array, phi: Array, pull: Array,
    left: Left, s: Array, net: Net, terms: LossTerms, grad: Array,
) -> tuple[float, float]:  # fmt: skip
    """Write the gradient on the coordinates of x; l_prior and l_margin.

    `weight`: that of the margin, below 0 where there is none.
    """
    _, _, first, second, t, back = left
    level, l_prior, l_margin = terms.level, 0.0, 0.0
    through, share = np.dot(pull, second), -2 / terms.square
    for i in range(len(x)):
        off, best, sign = 0.0, 0, 1.0
        if weight >= 0 and phi.shape[1] == 1:
            off, sign = y[i] * phi[i, 0] / level - 1, y[i]
        elif weight >= 0:
            best = _runner_up(phi[i], own[i])
            off = (phi[i, own[i]] - phi[i, best]) / level - 1
        l_margin += off * off
        pushed = 2 * weight / level * off * sign if weight > 0 else 0.0
        for j in range(s.shape[1]):
            turn = t[i, j] * back[i, j] * alpha * (1 - s[i, j])
            through[i, j] = share * (through[i, j] * s[i, j] + turn)
            if pushed != 0:
                v = net[1][own[i], j] - (net[1][best, j] if phi.shape[1] > 1 else 0.0)
                through[i, j] += pushed * s[i, j] * v
    down, along = np.dot(through, net[0].T), np.dot(back, first.T)
    for i in range(len(x)):
        for e in range(d):
            far = max(abs(x[i, e]) - terms.prior, 0.0)
            l_prior += far * far
            grad[i, e] = down[i, e] + share * along[i, e] + on_box(x[i, e], terms)
    return l_prior, l_margin


@njit(**FAST)
def _rivals(phi: Array, own: Whole, basis: Array) -> None:
    """Write the covectors to the runner-up of each candidate."""
    for i in range(len(phi)):
        for c in range(phi.shape[1]):
            basis[i, 0, c] = 1.0 if c == own[i] else 0.0
        basis[i, 0, _runner_up(phi[i], own[i])] = -1.0


@kept
def reconstruct(
    points: Array, shares: Array, d: int, basis: Array, own: Whole, y: Array, table: Array,
    net: Net, terms: LossTerms, kind: Multipliers, rule: DescentRule, grad_coef: Array,
    losses: Array,
) -> bool:  # fmt: skip
    """Return a step for each row of the table, in place; False where it cannot be taken.

    The arrays are then spoilt.

    Args:
        points: x, and mean, square and gradient (4, m, D).
        shares: the same of multipliers over their mean (4, m, q).
        d: coordinates of a point; D without that of a bias.
        basis: the covectors; written here where they belong to the runner-up.
        own: numbers of the candidates' classes (m,), 0 of one output.
        y: labels (m,).
        table: of `descent.step_table`.
        net: see above.
        terms: of the loss.
        kind: of the multipliers.
        rule: of the optimiser.
        grad_coef: the gradient on the multipliers (m, q), written at the end.
        losses: stationarity, floor, box, margin and their weighted sum (5,), as they are.
    """
    x, share, unit, floor = points[0], shares[0], kind.mean, terms.lam_min * kind.mean
    coef, s = np.empty(share.shape), np.empty((len(x), net[0].shape[1]))
    r = np.empty(s.shape)
    for row in table:
        live = losses[4] > kind.rounding
        _move(points, d, row[RATE_X], row, rule, live)
        _move(shares, share.shape[1], row[RATE_LAM], row, rule, live)
        z, phi = _lay(x, row[ALPHA], net, s, r)
        if kind.runner_up:
            _rivals(phi, own, basis)
        for i in range(len(coef)):
            for q in range(coef.shape[1]):
                coef[i, q] = share[i, q] * unit
        if kind.projected and not _solve(coef, floor, terms, kind, basis, x, s, r, z, phi, net):
            return False
        pull = _pull(coef, basis)
        left = _left(pull, x, s, r, net)
        gain, l_dual = _gain(left[1], basis), 0.0
        weight = -1.0 if kind.signed else row[MARGIN]
        for i in range(len(coef)):
            for q in range(coef.shape[1]):
                share[i, q] = coef[i, q] / unit
                grad_coef[i, q] = -2 / terms.square * gain[i * coef.shape[1] + q]
                if not kind.signed:
                    l_dual += max(terms.lam_min - share[i, q], 0.0) ** 2
                    grad_coef[i, q] += on_floor(share[i, q], terms) / unit
                shares[3, i, q] = 0.0 if kind.projected else grad_coef[i, q] * unit
        l_prior, l_margin = _onto_x(
            x, d, row[ALPHA], weight, own, y, phi, pull, left, s, net, terms, points[3]
        )
        losses[0], losses[1], losses[2] = left[0] / terms.square, l_dual, l_prior
        losses[3] = l_margin
        losses[4] = losses[0] + terms.weight_dual * l_dual + terms.weight_prior * l_prior
        losses[4] += max(weight, 0.0) * l_margin
        if not abs(losses[4]) < np.inf:
            return False
    return True
