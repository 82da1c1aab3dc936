r"""The steps of the KKT attack as compiled loops, for two layers and two inputs.

Loaded by `loading.compiled_module`. With z~ = alpha z, r = relu(z~), s = sigmoid(z~), a = (x, 1),
and v for the weight of a neuron whose first weights and bias are w:

    left = w - v sum_j c_j s_j a_j      left_v = v / alpha - sum_j c_j r_j / alpha^2
    t_j  = v <left, a_j> s_j,  u_j = t_j (1 - s_j)
    dl/dx_j = -2 c_j sum over neurons of alpha w u_j + (v left + alpha w left_v) s_j
    dl/dc_j = -2     sum over neurons of t_j + left_v r_j

A step goes through the neurons once, two at a time: of each, the row of m candidates stays in the
processor's first cache from z~ to its share of the gradients.

Shapes: p, mean, square, grad (b, 3, m), rows being the coordinates of x and lam / mean; w,
times = v (k, 3), the last column that of the bias, 0 where there is none; v, slopes (k,); signed
(b, m) the labels times the mean multiplier; a row of the table as in `descent.step_table`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from explorer.engine.arrays import Array
from explorer.engine.kernels.compiled_nonnegative import active_set
from explorer.engine.kernels.compiled_terms import (
    move,
    on_box,
    on_floor,
    on_margin,
    put,
    sigmoid,
)
from explorer.engine.kernels.jit import INNER, compile_inner, keep_compiled
from explorer.engine.kernels.steps import (
    ALPHA,
    MARGIN,
    RATE_LAM,
    RATE_X,
    DescentRule,
    LossTerms,
)

SHARE = 2  # the row of lam / mean


class TwoLayers(NamedTuple):
    """The weights as the loops want them; (3, k) instead of (k, 3) for projected multipliers.

    For joint ones k is even: a neuron of zeros may be the last.

    Attributes:
        w: of the first layer, the last column that of the bias, 0 where there is none (k, 3).
        times: v in each of these columns that there is (k, 3).
        v: of the second layer (k,).
        slopes: factors on alpha (k,).
        bias: whether there is one, as 0 or 1.
    """

    w: Array
    times: Array
    v: Array
    slopes: Array
    bias: float


class Held(NamedTuple):
    """What a run moves, each (b, 3, m)."""

    p: Array
    mean: Array
    square: Array
    grad: Array


class RunOutcome(NamedTuple):
    """What is left of ||theta||^2 (b,), Phi (b, m) and the gradient on lam / mean (b, m)."""

    left: Array
    phi: Array
    on_share: Array


class Sums(NamedTuple):
    """Rows (m,): c, r and s of two neurons, then sums over all.

    These are the gradient on x and on c, Phi and its slopes.
    """

    c: Array
    r: Array
    s: Array
    r_next: Array
    s_next: Array
    on_1: Array
    on_2: Array
    on_c: Array
    phi: Array
    phi_1: Array
    phi_2: Array


@compile_inner
def _sums(m: int) -> Sums:
    """Return room for the sums of m candidates."""
    v = np.empty((11, m))
    return Sums(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10])


@compile_inner
def _move(held: Held, b: int, row: Array, rule: DescentRule) -> None:
    """Take one step of a start, in place."""
    p, mean, square, grad = held.p[b], held.mean[b], held.square[b], held.grad[b]
    x, to, m = slice(0, SHARE), slice(SHARE, SHARE + 1), p.shape[1]
    move(p[x], mean[x], square[x], grad[x], m, row[RATE_X], row, rule, True)
    move(p[to], mean[to], square[to], grad[to], m, row[RATE_LAM], row, rule, True)


@compile_inner
def _lay_row(net: TwoLayers, k: int, alpha: float, p: Array, r: Array, s: Array) -> None:
    """Write relu(z~) of a neuron into r (m,), its slopes into s (m,)."""
    w1, w2, w0 = alpha * net.w[k, 0], alpha * net.w[k, 1], alpha * net.w[k, 2]
    x1, x2 = p[0], p[1]
    for j in range(len(r)):
        z = w1 * x1[j] + w2 * x2[j] + w0
        r[j] = 0.0 if z < 0 else z
        s[j] = sigmoid(z)


@compile_inner
def _left_of(
    net: TwoLayers, k: int, alpha: float, made: tuple[float, float, float, float]
) -> tuple[float, float, float, float, float]:
    """Return v left and left_v of a neuron, `made` being its sums; and what is left, squared."""
    w, times, v = net.w, net.times, net.v
    left1, left2 = w[k, 0] - made[0] * times[k, 0], w[k, 1] - made[1] * times[k, 1]
    left0, left_v = w[k, 2] - made[2] * times[k, 2], v[k] / alpha - made[3] / (alpha * alpha)
    square = left1 * left1 + left2 * left2 + left0 * left0 + (left_v * alpha) * (left_v * alpha)
    return left1 * times[k, 0], left2 * times[k, 1], left0 * times[k, 2], left_v, square


@compile_inner
def _pull(p: Array, signed: Array, row: Array, net: TwoLayers, work: Sums, margin: bool) -> float:
    """Return what is left of ||theta||^2; what the neurons pull into `work`, Phi if `margin`."""
    w, x1, x2, c, total = net.w, p[0], p[1], work.c, 0.0
    r, s, q, o, on1, on2, on_c = work.r, work.s, work.r_next, work.s_next, *work[5:8]
    for j in range(len(c)):
        c[j] = p[SHARE, j] * signed[j]
        on1[j] = on2[j] = on_c[j] = work.phi[j] = work.phi_1[j] = work.phi_2[j] = 0.0
    for k in range(0, len(w), 2):
        alpha, beta = row[ALPHA] * net.slopes[k], row[ALPHA] * net.slopes[k + 1]
        _lay_row(net, k, alpha, p, r, s)
        _lay_row(net, k + 1, beta, p, q, o)
        a1, a2, a0, a, b1, b2, b0, b = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(len(c)):  # sums alone: beside a row that is written, their order would vary
            cs, co = c[j] * s[j], c[j] * o[j]
            a1, a2, a0, a = a1 + cs * x1[j], a2 + cs * x2[j], a0 + cs, a + c[j] * r[j]
            b1, b2, b0, b = b1 + co * x1[j], b2 + co * x2[j], b0 + co, b + c[j] * q[j]
        a1, a2, a0, a, square = _left_of(net, k, alpha, (a1, a2, a0, a))
        b1, b2, b0, b, more = _left_of(net, k + 1, beta, (b1, b2, b0, b))
        total += square + more
        w1, w2, v1, v2 = alpha * w[k, 0], alpha * w[k, 1], beta * w[k + 1, 0], beta * w[k + 1, 1]
        d1, d2, e1, e2 = a1 + w1 * a, a2 + w2 * a, b1 + v1 * b, b2 + v2 * b
        for j in range(len(c)):
            t, f = (a1 * x1[j] + a2 * x2[j] + a0) * s[j], (b1 * x1[j] + b2 * x2[j] + b0) * o[j]
            u, g = t - t * s[j], f - f * o[j]
            on1[j] += (w1 * u + d1 * s[j]) + (v1 * g + e1 * o[j])
            on2[j] += (w2 * u + d2 * s[j]) + (v2 * g + e2 * o[j])
            on_c[j] += (t + a * r[j]) + (f + b * q[j])
        if margin:
            _add_phi(net, k, alpha, beta, work)
    return total


@compile_inner
def _add_phi(net: TwoLayers, k: int, alpha: float, beta: float, work: Sums) -> None:
    """Add what two neurons give to Phi and its slopes."""
    r, s, q, o, phi, phi1, phi2 = work.r, work.s, work.r_next, work.s_next, *work[8:]
    w, times, a, b = net.w, net.times, net.v[k] / alpha, net.v[k + 1] / beta
    a1, a2 = w[k, 0] * times[k, 0], w[k, 1] * times[k, 1]
    b1, b2 = w[k + 1, 0] * times[k + 1, 0], w[k + 1, 1] * times[k + 1, 1]
    for j in range(len(phi)):
        phi[j] += a * r[j] + b * q[j]
        phi1[j] += a1 * s[j] + b1 * o[j]
        phi2[j] += a2 * s[j] + b2 * o[j]


@compile_inner
def _gather(
    p: Array, grad: Array, signed: Array, margin: float, terms: LossTerms, work: Sums
) -> None:
    """The gradients of `kkt.loss.pulls` from `work`: loss, margin, floor of lam, box of x."""
    share_of = -2 / terms.square
    for j in range(p.shape[1]):
        pull = work.c[j] * share_of
        grad[0, j] = work.on_1[j] * pull + on_box(p[0, j], terms)
        grad[1, j] = work.on_2[j] * pull + on_box(p[1, j], terms)
        if margin > 0:
            onto_phi = on_margin(work.phi[j], signed[j], margin, terms)
            grad[0, j] += work.phi_1[j] * onto_phi
            grad[1, j] += work.phi_2[j] * onto_phi
        grad[SHARE, j] = work.on_c[j] * signed[j] * share_of + on_floor(p[SHARE, j], terms)


@keep_compiled
def descend(
    held: Held, signed: Array, table: Array, net: TwoLayers, terms: LossTerms, rule: DescentRule,
    outs: RunOutcome,
) -> bool:  # fmt: skip
    """Return a step of each start for each row of the table, in place; `outs` are of the last.

    Values with names come in as plain tuples, whose types numba sees a hundred times as fast.
    Returns whether all that is left is finite.
    """
    held, net, outs = Held(*held), TwoLayers(*net), RunOutcome(*outs)
    terms, rule = LossTerms(*terms), DescentRule(*rule)
    work, last = _sums(held.p.shape[2]), len(table) - 1
    for b in range(len(held.p)):
        p, grad = held.p[b], held.grad[b]
        for t, row in enumerate(table):
            _move(held, b, row, rule)
            margin = row[MARGIN] > 0 or t == last
            outs.left[b] = _pull(p, signed[b], row, net, work, margin)
            _gather(p, grad, signed[b], row[MARGIN], terms, work)
        put(grad[SHARE], outs.on_share[b])
        put(work.phi, outs.phi[b])
        if not outs.left[b] < np.inf:
            return False
    return True


# --- Projected multipliers -----------------------------------------------------------------------
# least || theta - sum_j c_j g_j ||^2 + ridge |c - floor|^2, c >= floor, as `descent` says, with the
# candidates as rows: of each the k neurons lie side by side, and one that no multiplier carries is
# passed over. Gram matrices are made of the candidates alone that were active at the step before
# and of those that the residual asks for; the active ones among them are found as by Lawson and
# Hanson, from those of the step before, one row of the factor for each that enters.

_TOLERANCE = 1e-13  # arbitrary: of the largest gain, above which a candidate becomes active


@njit(inline="always", **INNER)
def _lay(
    p: Array, row: Array, net: TwoLayers, s: Array, r: Array, work: Sums, size: Array,
    inner: Array,
) -> None:  # fmt: skip
    """Slopes s and values r (m, k) behind the ReLU; Phi and its slopes into work.

    ||g_j||^2 into size and <theta, g_j> into inner (m,).
    """
    first, times, v, slopes = net.w, net.times, net.v, net.slopes
    w1, w2, w0, t1, t2 = first[0], first[1], first[2], times[0], times[1]
    for j in range(p.shape[1]):
        x1, x2, sj, rj = p[0, j], p[1, j], s[j], r[j]
        phi, on1, on2, square_s, square_r, steep = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(len(v)):
            z = w1[k] * x1 + w2[k] * x2 + w0[k]
            slope = sigmoid(row[ALPHA] * slopes[k] * z)
            steep += v[k] * z * slope
            z = 0.0 if z < 0 else z
            sj[k], rj[k] = slope, z
            phi += v[k] * z
            square_r += z * z
            square_s += v[k] * v[k] * slope * slope
        for k in range(len(v) if row[MARGIN] > 0 else 0):
            on1 += w1[k] * t1[k] * sj[k]
            on2 += w2[k] * t2[k] * sj[k]
        work.phi[j], work.phi_1[j], work.phi_2[j], inner[j] = phi, on1, on2, phi + steep
        size[j] = square_s * (net.bias + x1 * x1 + x2 * x2) + square_r


@compile_inner
def _remainder(c: Array, p: Array, net: TwoLayers, s: Array, r: Array, left: Array) -> float:
    """Return what c leaves of theta, as it pulls, into left (4, k); its squared norm."""
    first, times, v = net.w, net.times, net.v
    w1, w2, w0, t1, t2, t0 = first[0], first[1], first[2], times[0], times[1], times[2]
    left[:] = 0.0
    l1, l2, l0, lv, at = left[0], left[1], left[2], left[3], np.nonzero(c)[0]
    for a in range(0, len(at) - 3, 4):  # four candidates at a time: the sums are written once
        i, j, m, n = at[a], at[a + 1], at[a + 2], at[a + 3]
        ci, cj, cm, cn = c[i], c[j], c[m], c[n]
        xi, xj, xm, xn = p[0, i], p[0, j], p[0, m], p[0, n]
        yi, yj, ym, yn = p[1, i], p[1, j], p[1, m], p[1, n]
        si, sj, sm, sn, ri, rj, rm, rn = s[i], s[j], s[m], s[n], r[i], r[j], r[m], r[n]
        for k in range(len(v)):
            f, g, h, o = ci * si[k], cj * sj[k], cm * sm[k], cn * sn[k]
            l1[k] += (f * xi + g * xj) + (h * xm + o * xn)
            l2[k] += (f * yi + g * yj) + (h * ym + o * yn)
            l0[k] += (f + g) + (h + o)
            lv[k] += (ci * ri[k] + cj * rj[k]) + (cm * rm[k] + cn * rn[k])
    for j in at[len(at) - len(at) % 4 :]:
        cj, x1, x2, sj, rj = c[j], p[0, j], p[1, j], s[j], r[j]
        for k in range(len(v)):
            cs = cj * sj[k]
            l1[k] += cs * x1
            l2[k] += cs * x2
            l0[k] += cs
            lv[k] += cj * rj[k]
    total = 0.0
    for k in range(len(v)):
        a, b, d = w1[k] - l1[k] * t1[k], w2[k] - l2[k] * t2[k], w0[k] - l0[k] * t0[k]
        e = v[k] - lv[k]
        total += a * a + b * b + d * d + e * e
        l1[k], l2[k], l0[k], lv[k] = a * t1[k], b * t2[k], d * t0[k], e
    return total


@compile_inner
def _gains(
    p: Array, s: Array, r: Array, left: Array, signed: Array, known: Array, gain: Array
) -> None:
    """<what is left, g_j> times `signed`, for each candidate that is not known."""
    l1, l2, l0, lv = left[0], left[1], left[2], left[3]
    for j in range(len(gain)):
        if known[j]:
            continue
        x1, x2, sj, rj, total = p[0, j], p[1, j], s[j], r[j], 0.0
        for k in range(len(lv)):
            total += (l1[k] * x1 + l2[k] * x2 + l0[k]) * sj[k] + lv[k] * rj[k]
        gain[j] = total * signed[j]


@njit(inline="always", **INNER)
def _onto(
    p: Array, row: Array, net: TwoLayers, s: Array, r: Array, left: Array, work: Sums
) -> None:
    """The gradient on x of the candidates that carry a multiplier, into work."""
    first, v, slopes = net.w, net.v, net.slopes
    w1, w2 = first[0], first[1]
    l1, l2, l0, lv = left[0], left[1], left[2], left[3]
    for j in range(p.shape[1]):
        on1, on2 = 0.0, 0.0
        if work.c[j] != 0:
            x1, x2, sj = p[0, j], p[1, j], s[j]
            for k in range(len(v)):
                t = (l1[k] * x1 + l2[k] * x2 + l0[k]) * sj[k]
                u = (t - t * sj[k]) * row[ALPHA] * slopes[k] + lv[k] * sj[k]
                on1 += w1[k] * u + l1[k] * sj[k]
                on2 += w2[k] * u + l2[k] * sj[k]
        work.on_1[j], work.on_2[j] = on1, on2


@compile_inner
def _inner(rows: Array, at: Array, before: int, most: int, out: Array) -> None:
    """<rows of at[before:most], rows of at[:most]> into out[before:most].

    Of four by four rows at a time, 16 sums stay in registers.
    """
    for a in range(before, most, 4):
        a0, a1, a2, a3 = (
            rows[at[a]], rows[at[min(a + 1, most - 1)]], rows[at[min(a + 2, most - 1)]],
            rows[at[min(a + 3, most - 1)]],
        )  # fmt: skip
        for b in range(0, min(a + 4, most), 4):
            b0, b1, b2, b3 = (
                rows[at[b]], rows[at[min(b + 1, most - 1)]], rows[at[min(b + 2, most - 1)]],
                rows[at[min(b + 3, most - 1)]],
            )  # fmt: skip
            s00, s10, s20, s30, s01, s11, s21, s31 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            s02, s12, s22, s32, s03, s13, s23, s33 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for k in range(rows.shape[1]):
                x0, x1, x2, x3, y = a0[k], a1[k], a2[k], a3[k], b0[k]
                s00, s10, s20, s30 = s00 + x0 * y, s10 + x1 * y, s20 + x2 * y, s30 + x3 * y
                y = b1[k]
                s01, s11, s21, s31 = s01 + x0 * y, s11 + x1 * y, s21 + x2 * y, s31 + x3 * y
                y = b2[k]
                s02, s12, s22, s32 = s02 + x0 * y, s12 + x1 * y, s22 + x2 * y, s32 + x3 * y
                y = b3[k]
                s03, s13, s23, s33 = s03 + x0 * y, s13 + x1 * y, s23 + x2 * y, s33 + x3 * y
            sums = (
                (s00, s01, s02, s03), (s10, s11, s12, s13), (s20, s21, s22, s23),
                (s30, s31, s32, s33),
            )  # fmt: skip
            for u in range(min(4, most - a)):
                for v in range(min(4, most - b)):
                    out[a + u, b + v] = sums[u][v]


@njit(inline="always", **INNER)
def _fill(
    p: Array, at: Array, before: int, most: int, back: Array, r: Array, bias: float,
    signed: Array, gram: Array, values: Array,
) -> None:  # fmt: skip
    """Rows and columns of the Gram matrix of at[before:most] beside all of at[:most].

    One kind of rows after the other: each lies in the first cache. `back`: v times the slopes;
    `values`: as large as gram, to work in.
    """
    _inner(back, at, before, most, gram)
    _inner(r, at, before, most, values)
    for a in range(before, most):
        i = at[a]
        for b in range(a + 1):
            j = at[b]
            inner = bias + p[0, i] * p[0, j] + p[1, i] * p[1, j]
            value = (gram[a, b] * inner + values[a, b]) * signed[i] * signed[j]
            gram[a, b] = gram[b, a] = value


@njit(inline="always", **INNER)
def _solve(
    p: Array, signed: Array, row: Array, net: TwoLayers, terms: LossTerms, work: Sums,
    active: Array, ridge: float,
) -> float:  # fmt: skip
    """Return multipliers into p[2], what they leave and its pull into work.

    Nan where none are found.
    """
    m, width, floor = p.shape[1], len(net.v), terms.lam_min
    s, r, left = np.empty((m, width)), np.empty((m, width)), np.empty((4, width))
    size, right, c, gain = np.empty(m), np.empty(m), work.c, work.on_c
    known = np.zeros(m, np.bool_)
    _lay(p, row, net, s, r, work, size, right)
    trace, tol, before_it = 0.0, 0.0, np.zeros(m)
    for j in range(m):
        if active[j]:
            before_it[j] = max(p[SHARE, j] - floor, 0.0)
        trace += size[j] * signed[j] * signed[j]
        c[j] = floor * signed[j]
        p[SHARE, j] = floor
        right[j] *= signed[j]
    loss = _remainder(c, p, net, s, r, left)
    if floor:
        _gains(p, s, r, left, signed, known, right)
    for j in range(m):
        tol = max(tol, _TOLERANCE * abs(right[j]))
    at, most = np.empty(m, np.int64), 0
    back, gram, low = np.empty((m, width)), np.empty((m, m)), np.empty((m, m))
    above, asked = np.empty(m), np.empty(m)
    put(right, gain)
    wanted = active.copy() if active.any() else right > tol
    while wanted.any():
        before = most
        for j in range(m):
            if wanted[j]:
                known[j], at[most], asked[most], above[most] = True, j, right[j], before_it[j]
                for k in range(width):
                    back[j, k] = net.v[k] * s[j, k]
                most += 1
        _fill(p, at, before, most, back, r, net.bias, signed, gram, low)
        if not active_set(gram, asked, most, above, ridge * trace, tol, low, 0):
            return np.nan
        for a in range(most):
            p[SHARE, at[a]] = floor + above[a]
            c[at[a]] = p[SHARE, at[a]] * signed[at[a]]
        loss = _remainder(c, p, net, s, r, left)
        _gains(p, s, r, left, signed, known, gain)
        for a in range(most):
            gain[at[a]] = asked[a]
            for b in range(most):
                gain[at[a]] -= gram[a, b] * above[b]
        for j in range(m):
            wanted[j] = gain[j] > tol and not known[j]
    for j in range(m):
        active[j] = p[SHARE, j] > floor
        gain[j] = gain[j] / signed[j]
    _onto(p, row, net, s, r, left, work)
    return loss


@keep_compiled
def project(
    held: Held, signed: Array, table: Array, net: TwoLayers, terms: LossTerms, rule: DescentRule,
    ridge: float, outs: RunOutcome,
) -> bool:  # fmt: skip
    """Return a step of each start for each row of the table, in place, its multipliers solved for.

    As in `descend`, but w and times are (3, k). Returns False where a number is not finite or no
    multipliers are found: the arrays are then spoilt.
    """
    held, net, outs = Held(*held), TwoLayers(*net), RunOutcome(*outs)
    terms, rule = LossTerms(*terms), DescentRule(*rule)
    work = _sums(held.p.shape[2])
    for b in range(len(held.p)):
        p, grad = held.p[b], held.grad[b]
        active = p[SHARE] > terms.lam_min
        for row in table:
            _move(held, b, row, rule)
            outs.left[b] = _solve(p, signed[b], row, net, terms, work, active, ridge)
            if not abs(outs.left[b]) < np.inf:
                return False
            _gather(p, grad, signed[b], row[MARGIN], terms, work)
            put(grad[SHARE], outs.on_share[b])
            put(work.phi, outs.phi[b])
            grad[SHARE] = 0.0
    return True
