"""The steps of `training` as compiled loops.

`train` serves two layers, few inputs and one output; `train_deep` any depth and several outputs.
Loaded by `loading.compiled_module`. The formulas are those of `training`, the results equal to
rounding. A step goes through the neurons twice, forward and back, and what a neuron takes from a
point is made twice rather than kept.

Shapes: theta, velocity, grads (P,) in the order of `Network.theta`; a (D, n) the points, one per
column, over a row of ones where there is a bias; y (n,). D and n are filled up with zeros to
multiples of 3 and 4.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from explorer.engine.arrays import Array, Flags
from explorer.engine.kernels.jit import INNER, compile_inner, keep_compiled
from explorer.engine.kernels.steps import TrainRule

Arrays = tuple[Array, Array, Array]
LOG_SCALE, LOG_LOSS, LOG_PULL, KAPPA, RHO = range(5)  # of `numbers`
_FAR, _STEEP = 36.0, 20.0  # of `margin.log_each`; where torch's softplus is the identity
_LN2 = math.log(2.0)


# --- Two layers: neurons side by side, four points at a time -------------------------------------
# Rows (D + 1, K) hold a number for each weight: a row for each coordinate, the last one for v, the
# second layer. Neurons beyond the last are 0 and stay so. Loops run along a row, so that whatever
# belongs to four points alone stays in registers.


@compile_inner
def _copy(flat: Array, rows: Array, d: int, k: int, biased: bool, back: bool) -> None:
    """Weights in the order of `Network.theta` into rows, or back."""
    size = len(rows) - 1
    for i in range(size + 1):
        first, stride = i, d
        if i == size:
            first, stride = len(flat) - k, 1
        elif i >= d:
            first, stride = k * d, 1
            if not biased or i < size - 1:
                continue
        for j in range(k):
            if back:
                flat[first + j * stride] = rows[i, j]
            else:
                rows[i, j] = flat[first + j * stride]


@compile_inner
def _before_relu(w: Array, a: Array, j: int, z: Array) -> None:
    """What the neurons take from four points from j on, z (4, K)."""
    w0, w1, w2, z0, z1, z2, z3 = w[0], w[1], w[2], z[0], z[1], z[2], z[3]
    a0, a1, a2, a3 = a[0, j], a[0, j + 1], a[0, j + 2], a[0, j + 3]
    b0, b1, b2, b3 = a[1, j], a[1, j + 1], a[1, j + 2], a[1, j + 3]
    c0, c1, c2, c3 = a[2, j], a[2, j + 1], a[2, j + 2], a[2, j + 3]
    for k in range(len(w0)):
        x, y, o = w0[k], w1[k], w2[k]
        z0[k] = x * a0 + y * b0 + o * c0
        z1[k] = x * a1 + y * b1 + o * c1
        z2[k] = x * a2 + y * b2 + o * c2
        z3[k] = x * a3 + y * b3 + o * c3
    for i in range(3, len(a)):
        wi, a0, a1, a2, a3 = w[i], a[i, j], a[i, j + 1], a[i, j + 2], a[i, j + 3]
        for k in range(len(wi)):
            z0[k] += wi[k] * a0
            z1[k] += wi[k] * a1
            z2[k] += wi[k] * a2
            z3[k] += wi[k] * a3


@njit(inline="always", **INNER)
def _forward(w: Array, a: Array, lengths: Array, z: Array, q: Array, norms: Array) -> None:
    """Write Phi into q, || grad Phi ||^2 into norms (n,); lengths (n,) are those of the points."""
    v, z0, z1, z2, z3 = w[len(a)], z[0], z[1], z[2], z[3]
    for j in range(0, len(q), 4):
        _before_relu(w, a, j, z)
        q0, q1, q2, q3, s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
        for k in range(len(v)):
            r0, r1, r2, r3, vk = z0[k], z1[k], z2[k], z3[k], v[k]
            r0, r1 = r0 if r0 > 0 else 0.0, r1 if r1 > 0 else 0.0
            r2, r3 = r2 if r2 > 0 else 0.0, r3 if r3 > 0 else 0.0
            q0, q1, q2, q3 = q0 + vk * r0, q1 + vk * r1, q2 + vk * r2, q3 + vk * r3
            s0, s1, s2, s3 = s0 + r0 * r0, s1 + r1 * r1, s2 + r2 * r2, s3 + r3 * r3
            square = vk * vk
            t0 += square if r0 > 0 else 0.0
            t1 += square if r1 > 0 else 0.0
            t2 += square if r2 > 0 else 0.0
            t3 += square if r3 > 0 else 0.0
        q[j], q[j + 1], q[j + 2], q[j + 3] = q0, q1, q2, q3
        norms[j], norms[j + 1] = s0 + lengths[j] * t0, s1 + lengths[j + 1] * t1
        norms[j + 2], norms[j + 3] = s2 + lengths[j + 2] * t2, s3 + lengths[j + 3] * t3


@compile_inner
def _onto(z: Array, a: Array, pull: Array, j: int, first: int, g: Array) -> None:
    """Add what four points from j on pull on the coordinates first to first + 2, where on."""
    g0, g1, g2, z0, z1, z2, z3 = g[first], g[first + 1], g[first + 2], z[0], z[1], z[2], z[3]
    p0, p1, p2, p3 = pull[j], pull[j + 1], pull[j + 2], pull[j + 3]
    a0, b0, c0 = p0 * a[first, j], p0 * a[first + 1, j], p0 * a[first + 2, j]
    a1, b1, c1 = p1 * a[first, j + 1], p1 * a[first + 1, j + 1], p1 * a[first + 2, j + 1]
    a2, b2, c2 = p2 * a[first, j + 2], p2 * a[first + 1, j + 2], p2 * a[first + 2, j + 2]
    a3, b3, c3 = p3 * a[first, j + 3], p3 * a[first + 1, j + 3], p3 * a[first + 2, j + 3]
    for k in range(len(g0)):
        n0, n1, n2, n3, o = z0[k] > 0, z1[k] > 0, z2[k] > 0, z3[k] > 0, 0.0
        g0[k] += (a0 if n0 else o) + (a1 if n1 else o) + (a2 if n2 else o) + (a3 if n3 else o)
        g1[k] += (b0 if n0 else o) + (b1 if n1 else o) + (b2 if n2 else o) + (b3 if n3 else o)
        g2[k] += (c0 if n0 else o) + (c1 if n1 else o) + (c2 if n2 else o) + (c3 if n3 else o)


@njit(inline="always", **INNER)
def _backward(w: Array, a: Array, pull: Array, z: Array, g: Array) -> tuple[float, float]:
    """Write g = sum_i pull_i grad Phi(x_i), rows; return <g, g> and <g, theta>.

    A neuron is v relu(w x), so its gradient on v is <w, the one on w> / v.
    """
    size, gg, gt = len(a), 0.0, 0.0
    g[:] = 0.0
    for j in range(0, len(pull), 4):
        _before_relu(w, a, j, z)
        for first in range(0, size, 3):
            _onto(z, a, pull, j, first, g)
    v, onto_v = w[size], g[size]
    for i in range(size):
        onto, of = g[i], w[i]
        for k in range(len(v)):
            onto_v[k] += onto[k] * of[k]
            onto[k] *= v[k]
            gg += onto[k] * onto[k]
    for k in range(len(v)):
        gg += onto_v[k] * onto_v[k]
        gt += 2 * onto_v[k] * v[k]
    return gg, gt


@compile_inner
def _softplus(t: float) -> float:
    return t if t > _STEEP else math.log1p(math.exp(t))


@compile_inner
def _log_sum(values: Array, n: int) -> float:
    """Log of the sum of exp of the first n values, which become their shares of it."""
    most = -np.inf
    for i in range(n):
        most = max(most, values[i])
    if not abs(most) < np.inf:
        return most
    total = 0.0
    for i in range(n):
        values[i] = math.exp(values[i] - most)
        total += values[i]
    for i in range(n):
        values[i] /= total
    return most + math.log(total)


@compile_inner
def pulls(
    q: Array, norms: Array, y: Array, pull: Array, n: int, order: int, rule: TrainRule, now: Array
) -> None:
    """log_loss, log_pull and kappa of margins q into `now`; p_i y_i into pull. See `training`."""
    logistic, gain = rule.logistic, math.exp(min(order * now[LOG_SCALE], rule.max_gain))
    active, off = False, False
    for i in range(n):
        t = gain * q[i]
        pull[i] = math.log(_softplus(-t)) if logistic and t <= _FAR else -t
        active, off = active or norms[i] != 0, off or norms[i] == 0
    now[LOG_LOSS] = total = _log_sum(pull, n)
    now[KAPPA], now[LOG_PULL] = 0.0, 0.0
    if not active:
        pull[:] = 0.0
        return
    if logistic or off:  # else -l'(q) is l(q)
        for i in range(n):
            t = gain * q[i]
            pull[i] = -_softplus(t) if logistic and t <= _FAR else -t
            if norms[i] == 0:
                pull[i] = -np.inf
        total = _log_sum(pull, n)
    now[LOG_PULL] = total - math.log(n)
    for i in range(n):
        now[KAPPA] += pull[i] * norms[i]
        pull[i] *= y[i]


@compile_inner
def choose(pull: Array, masks: Array, row: int) -> None:
    """The share of a mini-batch in the pulls."""
    if len(masks):
        for i in range(len(pull)):
            pull[i] *= masks[row, i]


@compile_inner
def factors(rule: TrainRule, now: Array, order: int, gg: float, gt: float) -> tuple[float, float]:
    """By how much the next displacement follows g = grads, and by how much theta decays.

    gg = <g, g> and gt = <g, theta>.
    """
    constant, rate, mu, scale = rule.constant, rule.rate, rule.weight_decay, now[LOG_SCALE]
    exponent, kappa = now[LOG_PULL] + (order - 2) * scale, now[KAPPA]
    reach = rule.trust * (1 - rule.momentum) * now[RHO]
    if mu == 0 and constant:
        return (rate * math.exp(exponent) if exponent < rule.max_exponent else np.inf), 0.0
    if constant:
        return rate * math.exp(min(exponent, rule.max_decay)), rate * mu
    if kappa == 0:
        return 0.0, 0.0
    if mu == 0:
        gain = math.exp(min(order * scale, rule.max_exponent))
        if gain == 0 or gg == 0:
            return 0.0, 0.0
        return min(rate / (kappa * gain), reach / math.sqrt(gg)), 0.0
    log_curvature = now[LOG_PULL] + math.log(kappa) + 2 * (order - 1) * scale
    log_share = -math.log1p(math.exp(min(math.log(mu) - log_curvature, rule.max_decay)))
    follow = rate * math.exp(min(log_share - math.log(kappa) - order * scale, rule.max_decay))
    decay = -rate * math.expm1(log_share)
    square = follow * follow * gg - 2 * follow * decay * gt + (decay * now[RHO]) ** 2
    length = math.sqrt(max(square, 0.0))
    share = 1.0 if length <= reach else reach / length
    return follow * share, decay * share


@compile_inner
def rescale(theta: Array, velocity: Array, square: float, rule: TrainRule, now: Array) -> bool:
    """Bring the norm back to [1, 2) where it left its range; False where it is not finite."""
    rho = math.sqrt(square)
    if not rho < np.inf:
        return False
    if rho > 0 and not 1 / rule.norm_range <= rho <= rule.norm_range:
        power = math.frexp(rho)[1] - 1
        factor = 2.0**-power
        theta *= factor
        velocity *= factor
        rho *= factor
        now[LOG_SCALE] += power * _LN2
    now[RHO] = rho
    return True


@compile_inner
def _product(v: Array, w: Array) -> float:
    """Return <v, w>."""
    total = 0.0
    for i in range(len(v)):
        total += v[i] * w[i]
    return total


@compile_inner
def push(
    theta: Array, velocity: Array, g: Array, follow: float, decay: float, momentum: float
) -> float:
    """Heavy ball, in place; the squared norm of what theta becomes."""
    square = 0.0
    for i in range(len(theta)):
        velocity[i] = momentum * velocity[i] + (follow * g[i] - decay * theta[i])
        theta[i] += velocity[i]
        square += theta[i] * theta[i]
    return square


@compile_inner
def heat(q: Array, n: int, t: int, order: int, rule: TrainRule, now: Array) -> None:
    """The log_scale of the ascent at margins q; see `training._ascent_scale`."""
    mean = 0.0
    for i in range(n):
        if not q[i] > 0:
            return
        mean += q[i] / n
    log_beta = min(1.0, t / rule.ascent_steps) * rule.log_beta
    now[LOG_SCALE] = max(now[LOG_SCALE], (log_beta - math.log(mean)) / order)


@keep_compiled
def train(
    held: Arrays, q: Array, now: Array, a: Array, y: Array, n: int, k: int, biased: bool,
    t: int, steps: int, rule: TrainRule, masks: Array,
) -> tuple[int, bool]:  # fmt: skip
    """Take steps in place; return how many, and whether all is finite.

    They are fewer than asked where a step would not be finite, or once there is no gradient.

    Args:
        held: theta, velocity and grads (P,).
        q: margins, of the length of y.
        now: log_scale, log_loss, log_pull, kappa and rho.
        a: the points (D, n), see above.
        y: labels.
        n: number of points.
        k: number of neurons.
        biased: whether the last row of `a` belongs to a bias.
        t: steps taken before.
        steps: how many to take.
        rule: see `TrainRule`.
        masks: factors of the points' pulls at t, t + 1, ...; of length 0 for none.
    """
    d, wide = (len(held[0]) - k) // k - (1 if biased else 0), -(-k // 8) * 8
    rows = np.zeros((3, len(a) + 1, wide))
    for i in range(3):
        _copy(held[i], rows[i], d, k, biased, False)
    w, velocity, g = rows[0], rows[1], rows[2]
    z, lengths = np.empty((4, wide)), np.zeros(len(y))
    for i in range(len(a)):
        for j in range(len(y)):
            lengths[j] += a[i, j] * a[i, j]
    pull, norms = np.zeros(len(y)), np.empty(len(y))
    gg, gt = _product(g.ravel(), g.ravel()), _product(g.ravel(), w.ravel())
    taken, sound = 0, True
    while taken < steps and sound:
        follow, decay = factors(rule, now, 2, gg, gt)
        sound = abs(follow) < np.inf
        if sound:
            square = push(w.ravel(), velocity.ravel(), g.ravel(), follow, decay, rule.momentum)
            sound = rescale(w, velocity, square, rule, now)
        if not sound:
            break
        _forward(w, a, lengths, z, q, norms)
        for i in range(n):
            q[i] *= y[i]
        if rule.ascent:
            heat(q, n, t + taken + 1, 2, rule, now)
        pulls(q, norms, y, pull, n, 2, rule, now)
        choose(pull, masks, taken + 1)
        sound = abs(now[LOG_LOSS]) < np.inf and now[KAPPA] < np.inf
        if sound:
            gg, gt = _backward(w, a, pull, z, g)
            taken += 1
            if now[KAPPA] == 0:
                break
    for i in range(3):
        _copy(held[i], rows[i], d, k, biased, True)
    return taken, sound


# --- Any depth, several outputs, biases in every layer ------------------------------------------
# `a` and `b` hold, one layer after another, what each layer reads (n, k_{l-1}) and the derivative
# of <cover, Phi> by its pre-activations (n, k_l), as in `backprop`; n is a multiple of 4, and rows
# of b are filled up to one. The last rows of b are the covectors: 1 of one output, that of the
# smooth margin of several (`classes.soft_contrast`). Products go four neurons by four points: 16
# sums stay in registers. The few points lie near the processor and each weight is read once, which
# a call of BLAS does not use. Of few weights the gradient is kept from one step to the next. That
# of many is made four rows at a time when they move; its length, which the step needs before,
# comes from all pairs of points.

FEW = 8  # inputs; below it no vector is filled by a product's row; arbitrary, 4 at least


@compile_inner
def _up(w: Array, shift: Array, u: Array, r: int, relu: bool, out: Array) -> None:
    """What the neurons r to r + 3 give at all points, into their columns of out (n, k)."""
    k, last = len(w), len(w) - 1
    w0, w1, w2, w3 = w[r], w[min(r + 1, last)], w[min(r + 2, last)], w[min(r + 3, last)]
    for j in range(0, len(u), 4):
        u0, u1, u2, u3 = u[j], u[j + 1], u[j + 2], u[j + 3]
        s00, s01, s02, s03, s10, s11, s12, s13 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        s20, s21, s22, s23, s30, s31, s32, s33 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(len(u0)):
            x0, x1, x2, x3, y0, y1, y2, y3 = w0[i], w1[i], w2[i], w3[i], u0[i], u1[i], u2[i], u3[i]
            s00, s01, s02, s03 = s00 + x0 * y0, s01 + x0 * y1, s02 + x0 * y2, s03 + x0 * y3
            s10, s11, s12, s13 = s10 + x1 * y0, s11 + x1 * y1, s12 + x1 * y2, s13 + x1 * y3
            s20, s21, s22, s23 = s20 + x2 * y0, s21 + x2 * y1, s22 + x2 * y2, s23 + x2 * y3
            s30, s31, s32, s33 = s30 + x3 * y0, s31 + x3 * y1, s32 + x3 * y2, s33 + x3 * y3
        rows = (
            (s00, s01, s02, s03), (s10, s11, s12, s13), (s20, s21, s22, s23), (s30, s31, s32, s33),
        )  # fmt: skip
        for i in range(min(4, k - r)):
            for q in range(4):
                value = rows[i][q] + (shift[r + i] if len(shift) else 0.0)
                out[j + q, r + i] = value if value > 0 or not relu else 0.0


@compile_inner
def _gradient(b: Array, pull: Array, u: Array, r: int, g: Array) -> None:
    """The gradient on the weights of the neurons r to r + 3, into g (4, k')."""
    g0, g1, g2, g3 = g[0], g[1], g[2], g[3]
    g[:] = 0.0
    for j in range(0, len(u), 4):
        u0, u1, u2, u3 = u[j], u[j + 1], u[j + 2], u[j + 3]
        b0, b1, b2, b3 = b[j], b[j + 1], b[j + 2], b[j + 3]
        p0, p1, p2, p3 = pull[j], pull[j + 1], pull[j + 2], pull[j + 3]
        c00, c01, c02, c03 = b0[r] * p0, b1[r] * p1, b2[r] * p2, b3[r] * p3
        c10, c11, c12, c13 = b0[r + 1] * p0, b1[r + 1] * p1, b2[r + 1] * p2, b3[r + 1] * p3
        c20, c21, c22, c23 = b0[r + 2] * p0, b1[r + 2] * p1, b2[r + 2] * p2, b3[r + 2] * p3
        c30, c31, c32, c33 = b0[r + 3] * p0, b1[r + 3] * p1, b2[r + 3] * p2, b3[r + 3] * p3
        for i in range(len(u0)):
            y0, y1, y2, y3 = u0[i], u1[i], u2[i], u3[i]
            g0[i] += c00 * y0 + c01 * y1 + c02 * y2 + c03 * y3
            g1[i] += c10 * y0 + c11 * y1 + c12 * y2 + c13 * y3
            g2[i] += c20 * y0 + c21 * y1 + c22 * y2 + c23 * y3
            g3[i] += c30 * y0 + c31 * y1 + c32 * y2 + c33 * y3


@compile_inner
def _up_few(w: Array, shift: Array, u: Array, relu: bool, out: Array) -> None:
    """As `_up` for all neurons (k, k'), of few inputs: loops run along the neurons."""
    turned, least = np.empty((w.shape[1], len(w))), 0.0 if relu else -np.inf
    for c in range(len(turned)):
        for i in range(len(w)):
            turned[c, i] = w[i, c]
    for j in range(len(u)):
        row = out[j]
        for i in range(len(row)):
            row[i] = shift[i] if len(shift) else 0.0
        for c in range(len(turned)):
            x, of = u[j, c], turned[c]
            for i in range(len(row)):
                row[i] += x * of[i]
        for i in range(len(row)):
            row[i] = row[i] if row[i] > least else least


@compile_inner
def _gradient_few(b: Array, pull: Array, u: Array, k: int, g: Array) -> None:
    """As `_gradient` for all k neurons, of few inputs, into g (k k')."""
    some = np.zeros((u.shape[1], k))
    for j in range(len(u)):
        of = b[j]
        for c in range(len(some)):
            x, row = pull[j] * u[j, c], some[c]
            for i in range(k):
                row[i] += x * of[i]
    for c in range(len(some)):
        for i in range(k):
            g[i * len(some) + c] = some[c, i]


@compile_inner
def _down(w: Array, b: Array, on: Array, out: Array) -> None:
    """Write b w into the first columns of out where `on` (n, k') is not 0, and 0 elsewhere."""
    last, below = len(w) - 1, w.shape[1]
    out[:] = 0.0
    for r in range(0, len(w), 4):
        w0, w1, w2, w3 = w[r], w[min(r + 1, last)], w[min(r + 2, last)], w[min(r + 3, last)]
        for j in range(0, len(b), 4):
            o0, o1, o2, o3 = out[j], out[j + 1], out[j + 2], out[j + 3]
            b00, b01, b02, b03 = b[j, r], b[j, r + 1], b[j, r + 2], b[j, r + 3]
            b10, b11, b12, b13 = b[j + 1, r], b[j + 1, r + 1], b[j + 1, r + 2], b[j + 1, r + 3]
            b20, b21, b22, b23 = b[j + 2, r], b[j + 2, r + 1], b[j + 2, r + 2], b[j + 2, r + 3]
            b30, b31, b32, b33 = b[j + 3, r], b[j + 3, r + 1], b[j + 3, r + 2], b[j + 3, r + 3]
            for i in range(below):
                x0, x1, x2, x3 = w0[i], w1[i], w2[i], w3[i]
                o0[i] += b00 * x0 + b01 * x1 + b02 * x2 + b03 * x3
                o1[i] += b10 * x0 + b11 * x1 + b12 * x2 + b13 * x3
                o2[i] += b20 * x0 + b21 * x1 + b22 * x2 + b23 * x3
                o3[i] += b30 * x0 + b31 * x1 + b32 * x2 + b33 * x3
    for j in range(len(b)):
        for i in range(below):
            out[j, i] = out[j, i] if on[j, i] > 0 else 0.0


@compile_inner
def _margins(phi: Array, y: Array, n: int, q: Array) -> None:
    """The margins of the outputs phi (n, C); y holds labels, or numbers of classes from 0."""
    for i in range(n):
        if phi.shape[1] == 1:
            q[i] = phi[i, 0] * y[i]
            continue
        own, best = int(y[i]), -np.inf
        for c in range(phi.shape[1]):
            best = max(best, phi[i, c] if c != own else -np.inf)
        q[i] = phi[i, own] - best


@njit(inline="always", **INNER)
def _covers(phi: Array, y: Array, gain: float, q: Array, smooth: Array, cover: Array) -> None:
    """Covectors into the first columns of `cover`, and the margins that have them into `smooth`."""
    cover[:] = 0.0
    outputs = phi.shape[1]
    for i in range(len(smooth)):
        smooth[i] = q[i]
        if outputs == 1:
            cover[i, 0] = y[i]
            continue
        own, total = int(y[i]), 0.0
        best = phi[i, own] - q[i]
        for c in range(outputs):
            if c != own:
                cover[i, c] = math.exp(gain * (phi[i, c] - best))
                total += cover[i, c]
        for c in range(outputs):
            cover[i, c] /= -total
        cover[i, own] = 1.0
        smooth[i] -= math.log(total) / gain


@njit(inline="always", **INNER)
def _signals(theta: Array, widths: Array, biased: Flags, a: Array, b: Array, n: int) -> None:
    """Fill `b` from the covectors in its last rows down."""
    at, read, sent = len(theta), len(a), len(b) - -(-widths[-1] // 4) * 4 * n
    out = b[sent:].reshape(n, -(-widths[-1] // 4) * 4)
    for layer in range(len(widths) - 2, 0, -1):
        below, k = widths[layer], widths[layer + 1]
        filled = -(-below // 4) * 4
        at -= k if biased[layer] else 0
        at, read, sent = at - k * below, read - below * n, sent - filled * n
        w, on = theta[at : at + k * below].reshape(k, below), a[read : read + below * n]
        above, out = out, b[sent : sent + filled * n].reshape(n, filled)
        _down(w, above, on.reshape(n, below), out)


@njit(inline="always", **INNER)
def _lengths(
    a: Array, b: Array, widths: Array, biased: Flags, phi: Array, pairs: bool
) -> tuple[Array, Array, Array]:
    """Return squared lengths (n,) of the gradients g_i of <cover, Phi>, and <theta, g_i> (n,).

    With `pairs` all <g_i, g_j> (n, n) too.
    """
    read, sent, n = 0, 0, len(phi)
    norms, along, kernel = np.zeros(n), np.zeros(n), np.zeros((n, n) if pairs else (0, 0))
    for layer in range(len(widths) - 1):
        below, k, last = widths[layer], -(-widths[layer + 1] // 4) * 4, layer == len(widths) - 2
        one, above = 1.0 if biased[layer] else 0.0, widths[layer + 1]
        gives = phi if last else a[read + below * n : read + (below + above) * n].reshape(n, above)
        u, v = a[read : read + below * n].reshape(n, below), b[sent : sent + k * n].reshape(n, k)
        for j in range(n):
            inputs, signals = one, 0.0
            for i in range(below):
                inputs += u[j, i] * u[j, i]
            for i in range(k):
                signals += v[j, i] * v[j, i]
            for i in range(above):  # where the signal is not 0, relu(z) is z
                along[j] += v[j, i] * gives[j, i]
            norms[j] += inputs * signals
        if pairs:
            kernel += (np.dot(u, u.T) + one) * np.dot(v, v.T)
        read, sent = read + below * n, sent + k * n
    return norms, along, kernel


@compile_inner
def _on_shift(b: Array, pull: Array, r: int, g: Array) -> None:
    """The gradient on the biases of the neurons from r on, into g."""
    for i in range(len(g)):
        g[i] = 0.0
        for j in range(len(b)):
            g[i] += pull[j] * b[j, r + i]


@njit(inline="always", **INNER)
def _each_layer(
    held: Arrays, widths: Array, biased: Flags, reads_of: tuple[Array, Array], b: Array,
    pull: Array, g: Array, how: tuple[bool, bool, float, float, float],
) -> tuple[float, Array]:  # fmt: skip
    """Layer by layer, four neurons or all of few inputs: move the weights, then what they give.

    `reads_of`: what layers read before the move, and where to write what they read after it. `g`:
    room for those rows. `how`: whether to move, whether the gradient lies in `held`; follow, decay,
    momentum. Returns the squared norm of theta where it moved, and Phi (n, C).
    """
    theta, velocity, grads = held
    move, kept, follow, decay, momentum = how
    old, new = reads_of
    at, read, sent, square, depth, n = 0, 0, 0, 0.0, len(widths) - 1, len(pull)
    phi = np.empty((n, widths[-1]))
    for layer in range(depth):
        below, k = widths[layer], widths[layer + 1]
        filled, end, last = -(-k // 4) * 4, at + k * below, layer == depth - 1
        shift = theta[end : end + (k if biased[layer] else 0)]
        w, of = theta[at:end].reshape(k, below), b[sent : sent + filled * n].reshape(n, filled)
        reads = old[read : read + below * n].reshape(n, below)
        now = new[read : read + below * n].reshape(n, below)
        read, sent = read + below * n, sent + filled * n
        out = phi if last else new[read : read + k * n].reshape(n, k)
        some, few = g[: 4 * below].reshape(4, below), below < FEW
        for r in range(0, k, k if few else 4):
            rows = k if few else min(4, k - r)
            if move:
                here = slice(at + r * below, at + (r + rows) * below)
                if not kept and few:
                    _gradient_few(of, pull, reads, k, g)
                elif not kept:
                    _gradient(of, pull, reads, r, some)
                pushed = grads[here] if kept else g[: rows * below]
                square += push(theta[here], velocity[here], pushed, follow, decay, momentum)
                if len(shift):
                    here = slice(end + r, end + r + rows)
                    if not kept:
                        _on_shift(of, pull, r, g[:rows])
                    pushed = grads[here] if kept else g[:rows]
                    square += push(theta[here], velocity[here], pushed, follow, decay, momentum)
            if few:
                _up_few(w, shift, now, not last, out)
            else:
                _up(w, shift, now, r, not last, out)
        at = end + len(shift)
    return square, phi


@njit(inline="always", **INNER)
def _write(
    grads: Array, widths: Array, biased: Flags, a: Array, b: Array, pull: Array, g: Array
) -> float:
    """Write the gradient; its squared norm."""
    at, read, sent, square, n = 0, 0, 0, 0.0, len(pull)
    for layer in range(len(widths) - 1):
        below, k = widths[layer], widths[layer + 1]
        filled = -(-k // 4) * 4
        u, of = a[read : read + below * n].reshape(n, below), b[sent : sent + filled * n]
        some, v, few = g[: 4 * below].reshape(4, below), of.reshape(n, filled), below < FEW
        for r in range(0, k, k if few else 4):
            if few:
                _gradient_few(v, pull, u, k, g)
            else:
                _gradient(v, pull, u, r, some)
            made = grads[at : at + (k if few else min(4, k - r)) * below]
            for i in range(len(made)):
                made[i] = g[i]
                square += g[i] * g[i]
            at += len(made)
        if biased[layer]:
            made = grads[at : at + k]
            _on_shift(v, pull, 0, made)
            square += _product(made, made)
            at += k
        read, sent = read + below * n, sent + filled * n
    return square


@keep_compiled
def train_deep(
    held: Arrays, q: Array, now: Array, x: Array, y: Array, n: int, widths: Array,
    biased: Flags, t: int, steps: int, rule: TrainRule, kept: bool, masks: Array,
) -> tuple[int, bool]:  # fmt: skip
    """As `train`, for any depth: x (N, d), q and y (N,), N >= n, widths from d to C.

    y: labels of one output, numbers of classes from 0 of several. `biased`: which layers have a
    bias. `kept`: whether to keep the gradient from one step to the next, see above.
    """
    theta, many, order, reads, sends, most = held[0], len(y), len(widths) - 1, 0, 0, 0
    for layer in range(order):
        reads, most = reads + widths[layer], max(most, widths[layer])
        sends += -(-widths[layer + 1] // 4) * 4
    old, new, b = np.empty(reads * many), np.empty(reads * many), np.empty(sends * many)
    pull, g, gg, gt, follow, decay = np.zeros(many), np.empty(FEW * most), 0.0, 0.0, 0.0, 0.0
    points, smooth, ones, last = x.ravel(), np.empty(n), np.ones(n), -(-widths[-1] // 4) * 4
    cover = b[len(b) - last * many :].reshape(many, last)
    for i in range(len(points)):
        old[i] = new[i] = points[i]
    for step in range(steps + 1):  # the first makes the gradient's factors where the run is
        move, scale = step > 0, now[LOG_SCALE]
        if move:
            follow, decay = factors(rule, now, order, gg, gt)
            if not abs(follow) < np.inf:
                return step - 1, False
        while True:
            how = (move, kept, follow, decay, rule.momentum)
            square, phi = _each_layer(held, widths, biased, (old, new), b, pull, g, how)
            if move and not rescale(theta, held[1], square, rule, now):
                return step - 1, False
            move = False
            if now[LOG_SCALE] == scale:
                break
            scale = now[LOG_SCALE]  # other weights: once more what they give
        old, new = new, old
        _margins(phi, y, n, q)
        if rule.ascent and step:
            heat(q, n, t + step, order, rule, now)
        gain = math.exp(min(order * now[LOG_SCALE], rule.max_gain))
        _covers(phi, y, gain, q, smooth, cover)
        _signals(theta, widths, biased, old, b, many)
        norms, along, kernel = _lengths(old, b, widths, biased, phi, not kept)
        pulls(smooth, norms, ones, pull, n, order, rule, now)
        choose(pull, masks, step)
        if not (abs(now[LOG_LOSS]) < np.inf and now[KAPPA] < np.inf):
            return max(step - 1, 0), False
        ends = step and (step == steps or now[KAPPA] == 0)
        if kept or ends:
            gg = _write(held[2], widths, biased, old, b, pull, g)
        else:
            gg = max(np.dot(pull, np.dot(kernel, pull)), 0.0)
        gt = np.dot(pull, along)
        if ends:
            return step, True
    return steps, True
