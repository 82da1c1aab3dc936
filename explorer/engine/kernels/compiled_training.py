"""The steps of `training` as compiled loops: two layers, few inputs and one output.

Loaded by `loading.compiled_module`. The formulas are those of `training`, the results equal to
rounding. A step goes through the neurons twice, forward and back, and what a neuron takes from a
point is made twice rather than kept. Other networks: `compiled_training_deep`.

Shapes: theta, velocity, grads (P,) in the order of `Network.theta`; a (D, n) the points, one per
column, over a row of ones where there is a bias; y (n,). D and n are filled up with zeros to
multiples of 3 and 4. What is compiled is kept on disk and made anew when this file changes: all
that comes from other files is an argument.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Array = npt.NDArray[np.float64]
Arrays = tuple[Array, Array, Array]
# Whether ascent, the constant rule, the logistic loss; rate, momentum, weight decay, log of
# beta_end, ascent_steps, trust, norm_range, largest exponents of the rate, the decay and the gain.
Rule = tuple[bool, bool, bool, float, float, float, float, float, float, float, float, float, float]

# See `compiled`.
FAST: Any = {
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
    "nogil": True,
}
LOG_SCALE, LOG_LOSS, LOG_PULL, KAPPA, RHO = range(5)  # of `numbers`
_FAR, _STEEP = 36.0, 20.0  # of `margin.log_each`; where torch's softplus is the identity
_LN2 = math.log(2.0)


# --- Two layers: neurons side by side, four points at a time -------------------------------------
# Rows (D + 1, K) hold a number for each weight: a row for each coordinate, the last one for v, the
# second layer. Neurons beyond the last are 0 and stay so. Loops run along a row, so that whatever
# belongs to four points alone stays in registers.


@njit(**FAST)
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


@njit(**FAST)
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


@njit(**FAST)
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


@njit(**FAST)
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


@njit(**FAST)
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


@njit(**FAST)
def _softplus(t: float) -> float:
    return t if t > _STEEP else math.log1p(math.exp(t))


@njit(**FAST)
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


@njit(**FAST)
def pulls(
    q: Array, norms: Array, y: Array, pull: Array, n: int, order: int, rule: Rule, now: Array
) -> None:
    """log_loss, log_pull and kappa of margins q into `now`; p_i y_i into pull. See `training`."""
    logistic, gain = rule[2], math.exp(min(order * now[LOG_SCALE], rule[12]))
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


@njit(**FAST)
def choose(pull: Array, masks: Array, row: int) -> None:
    """The share of a mini-batch in the pulls."""
    if len(masks):
        for i in range(len(pull)):
            pull[i] *= masks[row, i]


@njit(**FAST)
def factors(rule: Rule, now: Array, order: int, gg: float, gt: float) -> tuple[float, float]:
    """By how much the next displacement follows g = grads, and by how much theta decays.

    gg = <g, g> and gt = <g, theta>.
    """
    constant, rate, mu, scale = rule[1], rule[3], rule[5], now[LOG_SCALE]
    exponent, kappa = now[LOG_PULL] + (order - 2) * scale, now[KAPPA]
    reach = rule[8] * (1 - rule[4]) * now[RHO]
    if mu == 0 and constant:
        return (rate * math.exp(exponent) if exponent < rule[10] else np.inf), 0.0
    if constant:
        return rate * math.exp(min(exponent, rule[11])), rate * mu
    if kappa == 0:
        return 0.0, 0.0
    if mu == 0:
        gain = math.exp(min(order * scale, rule[10]))
        if gain == 0 or gg == 0:
            return 0.0, 0.0
        return min(rate / (kappa * gain), reach / math.sqrt(gg)), 0.0
    log_curvature = now[LOG_PULL] + math.log(kappa) + 2 * (order - 1) * scale
    log_share = -math.log1p(math.exp(min(math.log(mu) - log_curvature, rule[11])))
    follow = rate * math.exp(min(log_share - math.log(kappa) - order * scale, rule[11]))
    decay = -rate * math.expm1(log_share)
    square = follow * follow * gg - 2 * follow * decay * gt + (decay * now[RHO]) ** 2
    length = math.sqrt(max(square, 0.0))
    share = 1.0 if length <= reach else reach / length
    return follow * share, decay * share


@njit(**FAST)
def normed(theta: Array, velocity: Array, square: float, rule: Rule, now: Array) -> bool:
    """Bring the norm back to [1, 2) where it left its range; False where it is not finite."""
    rho = math.sqrt(square)
    if not rho < np.inf:
        return False
    if rho > 0 and not 1 / rule[9] <= rho <= rule[9]:
        power = math.frexp(rho)[1] - 1
        factor = 2.0**-power
        theta *= factor
        velocity *= factor
        rho *= factor
        now[LOG_SCALE] += power * _LN2
    now[RHO] = rho
    return True


@njit(**FAST)
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


@njit(**FAST)
def heat(q: Array, n: int, t: int, order: int, rule: Rule, now: Array) -> None:
    """The log_scale of the ascent at margins q; see `training._ascent_scale`."""
    mean = 0.0
    for i in range(n):
        if not q[i] > 0:
            return
        mean += q[i] / n
    log_beta = min(1.0, t / rule[7]) * rule[6]
    now[LOG_SCALE] = max(now[LOG_SCALE], (log_beta - math.log(mean)) / order)


@njit(cache=True, **FAST)
def train(
    held: Arrays, q: Array, now: Array, a: Array, y: Array, n: int, k: int, biased: bool,
    t: int, steps: int, rule: Rule, masks: Array,
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
        rule: see `Rule`.
        masks: factors of the points' pulls at t, t + 1, ...; of length 0 for none.
    """
    d, wide = (len(held[0]) - k) // k - (1 if biased else 0), -(-k // 8) * 8
    rows = np.zeros((3, len(a) + 1, wide))
    for i in range(3):
        _copy(held[i], rows[i], d, k, biased, False)
    w, velocity, g = rows[0], rows[1], rows[2]
    z, lengths = np.empty((4, wide)), (a * a).sum(0)
    pull, norms = np.zeros(len(y)), np.empty(len(y))
    gg, gt = np.sum(g * g), np.sum(g * w)
    taken, sound = 0, True
    while taken < steps and sound:
        follow, decay = factors(rule, now, 2, gg, gt)
        sound = abs(follow) < np.inf
        if sound:
            square = push(w.ravel(), velocity.ravel(), g.ravel(), follow, decay, rule[4])
            sound = normed(w, velocity, square, rule, now)
        if not sound:
            break
        _forward(w, a, lengths, z, q, norms)
        for i in range(n):
            q[i] *= y[i]
        if rule[0]:
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
