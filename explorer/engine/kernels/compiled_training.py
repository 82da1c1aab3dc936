"""The steps of `training` as compiled loops, for two layers, one output and few inputs.

Loaded by `loading.compiled_module`. A step goes through the neurons twice, forward and back, each
time over the row of n points; the formulas are those of `training`, the results equal to rounding.

Shapes: theta, velocity, grads (P,) in the order of `Network.theta`; a (D, n) the points, one per
column, over a row of ones where there is a bias; y (n,). Columns beyond the last point are zero, so
that loops take whole vectors; their y is 0. What is compiled is kept on disk and made anew when
this file changes: all that comes from other files is an argument.
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
_FAR, _STEEP = 36.0, 20.0  # of `margin._log_each`; where torch's softplus is the identity
_LN2 = math.log(2.0)


@njit(**FAST)
def _forward(w: Array, v: Array, a: Array, z: Array, q: Array, norms: Array) -> None:
    """Write relu of each neuron into z (k, n), Phi into q, || grad Phi ||^2 into norms (n,)."""
    size, n = a.shape
    q[:] = 0.0
    norms[:] = 0.0
    lengths = np.zeros(n)
    for i in range(size):
        for j in range(n):
            lengths[j] += a[i, j] * a[i, j]
    for k in range(len(v)):
        row, vk = z[k], v[k]
        v2 = vk * vk
        if size == 3:
            w0, w1, w2 = w[k, 0], w[k, 1], w[k, 2]
            for j in range(n):
                value = w0 * a[0, j] + w1 * a[1, j] + w2 * a[2, j]
                on = value > 0
                value = value if on else 0.0
                row[j] = value
                q[j] += vk * value
                norms[j] += value * value + (v2 * lengths[j] if on else 0.0)
        else:
            row[:] = 0.0
            for i in range(size):
                wi = w[k, i]
                for j in range(n):
                    row[j] += wi * a[i, j]
            for j in range(n):
                value = row[j]
                on = value > 0
                value = value if on else 0.0
                row[j] = value
                q[j] += vk * value
                norms[j] += value * value + (v2 * lengths[j] if on else 0.0)


@njit(**FAST)
def _backward(pull: Array, v: Array, a: Array, z: Array, onto_w: Array, onto_v: Array) -> None:
    """sum_i pull_i grad Phi(x_i), by layer."""
    size, n = a.shape
    for k in range(len(v)):
        row, vk, g = z[k], v[k], 0.0
        if size == 3:
            s0, s1, s2 = 0.0, 0.0, 0.0
            for j in range(n):
                on = pull[j] if row[j] > 0 else 0.0
                s0 += on * a[0, j]
                s1 += on * a[1, j]
                s2 += on * a[2, j]
                g += pull[j] * row[j]
            onto_w[k, 0], onto_w[k, 1], onto_w[k, 2] = vk * s0, vk * s1, vk * s2
        else:
            for j in range(n):
                g += pull[j] * row[j]
            for i in range(size):
                s = 0.0
                for j in range(n):
                    s += (pull[j] if row[j] > 0 else 0.0) * a[i, j]
                onto_w[k, i] = vk * s
        onto_v[k] = g


@njit(**FAST)
def _softplus(t: float) -> float:
    return t if t > _STEEP else math.log1p(math.exp(t))


@njit(**FAST)
def _log_sum(values: Array, n: int) -> float:
    most = -np.inf
    for i in range(n):
        most = max(most, values[i])
    if not abs(most) < np.inf:
        return most
    total = 0.0
    for i in range(n):
        total += math.exp(values[i] - most)
    return most + math.log(total)


@njit(**FAST)
def _pulls(q: Array, norms: Array, y: Array, pull: Array, n: int, rule: Rule, now: Array) -> None:
    """log_loss, log_pull and kappa of margins q into `now`; p_i y_i into pull. See `training`."""
    logistic, gain = rule[2], math.exp(min(2 * now[LOG_SCALE], rule[12]))
    each = np.empty(n)
    for i in range(n):
        t = gain * q[i]
        each[i] = math.log(_softplus(-t)) if logistic and t <= _FAR else -t
    now[LOG_LOSS] = _log_sum(each, n)
    active = False
    for i in range(n):
        t = gain * q[i]
        each[i] = -_softplus(t) if logistic and t <= _FAR else -t
        if norms[i] == 0:
            each[i] = -np.inf
        else:
            active = True
    now[KAPPA], now[LOG_PULL] = 0.0, 0.0
    if not active:
        pull[:] = 0.0
        return
    total = _log_sum(each, n)
    now[LOG_PULL] = total - math.log(n)
    for i in range(n):
        p = math.exp(each[i] - total)
        now[KAPPA] += p * norms[i]
        pull[i] = p * y[i]


@njit(**FAST)
def _factors(theta: Array, grads: Array, rule: Rule, now: Array) -> tuple[float, float]:
    """By how much the next displacement follows grads, and by how much theta decays."""
    constant, rate, mu = rule[1], rule[3], rule[5]
    kappa, log_scale = now[KAPPA], now[LOG_SCALE]
    reach = rule[8] * (1 - rule[4]) * now[RHO]
    if mu == 0 and constant:
        return (rate * math.exp(now[LOG_PULL]) if now[LOG_PULL] < rule[10] else np.inf), 0.0
    if constant:
        return rate * math.exp(min(now[LOG_PULL], rule[11])), rate * mu
    if kappa == 0:
        return 0.0, 0.0
    square = 0.0
    if mu == 0:
        for g in grads:
            square += g * g
        gain = math.exp(min(2 * log_scale, rule[10]))
        if gain == 0 or square == 0:
            return 0.0, 0.0
        return min(rate / (kappa * gain), reach / math.sqrt(square)), 0.0
    log_curvature = now[LOG_PULL] + math.log(kappa) + 2 * log_scale
    log_share = -math.log1p(math.exp(min(math.log(mu) - log_curvature, rule[11])))
    follow = rate * math.exp(min(log_share - math.log(kappa) - 2 * log_scale, rule[11]))
    decay = -rate * math.expm1(log_share)
    for i in range(len(grads)):
        square += (follow * grads[i] - decay * theta[i]) ** 2
    length = math.sqrt(square)
    share = 1.0 if length <= reach else reach / length
    return follow * share, decay * share


@njit(**FAST)
def _move(held: Arrays, rule: Rule, now: Array) -> bool:
    """Heavy ball, in place; the norm comes back to [1, 2) where it left its range."""
    theta, velocity, grads = held
    follow, decay = _factors(theta, grads, rule, now)
    if not abs(follow) < np.inf:
        return False
    momentum, square = rule[4], 0.0
    for i in range(len(theta)):
        velocity[i] = momentum * velocity[i] + (follow * grads[i] - decay * theta[i])
        theta[i] += velocity[i]
        square += theta[i] * theta[i]
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
def _heat(q: Array, n: int, t: int, rule: Rule, now: Array) -> None:
    """The log_scale of the ascent at margins q; see `training._ascent_scale`."""
    mean = 0.0
    for i in range(n):
        if not q[i] > 0:
            return
        mean += q[i] / n
    log_beta = min(1.0, t / rule[7]) * rule[6]
    now[LOG_SCALE] = max(now[LOG_SCALE], (log_beta - math.log(mean)) / 2)


@njit(cache=True, **FAST)
def walk(
    held: Arrays, q: Array, now: Array, a: Array, y: Array, n: int, k: int, biased: bool,
    t: int, steps: int, rule: Rule,
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
    """
    theta, _, grads = held
    d = (len(theta) - k) // k - (1 if biased else 0)
    size = a.shape[0]
    z, pull, norms = np.empty((k, len(y))), np.zeros(len(y)), np.empty(len(y))
    w, onto_w = np.zeros((k, size)), np.zeros((k, size))
    for step in range(steps):
        if not _move(held, rule, now):
            return step, False
        for j in range(k):
            for i in range(d):
                w[j, i] = theta[j * d + i]
            if biased:
                w[j, size - 1] = theta[k * d + j]
        v = theta[len(theta) - k :]
        _forward(w, v, a, z, q, norms)
        for i in range(n):
            q[i] *= y[i]
        if rule[0]:
            _heat(q, n, t + step + 1, rule, now)
        _pulls(q, norms, y, pull, n, rule, now)
        if not (abs(now[LOG_LOSS]) < np.inf and now[KAPPA] < np.inf):
            return step, False
        _backward(pull, v, a, z, onto_w, grads[len(theta) - k :])
        for j in range(k):
            for i in range(d):
                grads[j * d + i] = onto_w[j, i]
            if biased:
                grads[k * d + j] = onto_w[j, size - 1]
        if now[KAPPA] == 0:
            return step + 1, True
    return steps, True
