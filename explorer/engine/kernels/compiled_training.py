"""The steps of `training` as compiled loops, for one output.

Loaded by `loading.compiled_module`. The formulas are those of `training`, the results equal to
rounding. Two layers and few inputs (`train`): a step goes through the neurons twice, forward and
back, each time over the row of n points. Any depth (`train_deep`): products of matrices, but of the
gradient no more than some rows at a time, which move their weights while they lie near the
processor; so a step reads and writes theta and the velocity once.

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
def _pulls(
    q: Array, norms: Array, y: Array, pull: Array, n: int, order: int, rule: Rule, now: Array
) -> None:
    """log_loss, log_pull and kappa of margins q into `now`; p_i y_i into pull. See `training`."""
    logistic, gain = rule[2], math.exp(min(order * now[LOG_SCALE], rule[12]))
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
def _factors(rule: Rule, now: Array, order: int, gg: float, gt: float) -> tuple[float, float]:
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
def _normed(theta: Array, velocity: Array, square: float, rule: Rule, now: Array) -> bool:
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
def _push(
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
def _move(held: Arrays, rule: Rule, now: Array) -> bool:
    """One step of two layers; False where it would not be finite."""
    theta, velocity, grads = held
    gg, gt = 0.0, 0.0
    for i in range(len(grads)):
        gg += grads[i] * grads[i]
        gt += grads[i] * theta[i]
    follow, decay = _factors(rule, now, 2, gg, gt)
    if not abs(follow) < np.inf:
        return False
    square = _push(theta, velocity, grads, follow, decay, rule[4])
    return _normed(theta, velocity, square, rule, now)


@njit(**FAST)
def _heat(q: Array, n: int, t: int, order: int, rule: Rule, now: Array) -> None:
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
            _heat(q, n, t + step + 1, 2, rule, now)
        _pulls(q, norms, y, pull, n, 2, rule, now)
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


# --- Any depth -----------------------------------------------------------------------------------
# Neurons are rows and points columns. `a` and `b` hold, one layer after another, what each layer
# reads (k_{l-1}, n) and the derivative of Phi by its pre-activations (k_l, n), as in `backprop`.

_ROWS = 2**15  # arbitrary: weights that move together with their gradient, 256 KB of each


@njit(**FAST)
def _up(theta: Array, widths: Array, biased: bool, a: Array, n: int) -> Array:
    """Fill `a` but for the points, which lie there; Phi (n,)."""
    at, start, depth = 0, 0, len(widths) - 1
    for layer in range(depth):
        below, k = widths[layer], widths[layer + 1]
        read = a[start : start + below * n].reshape(below, n)
        z = np.dot(theta[at : at + k * below].reshape(k, below), read)
        at, start = at + k * below, start + below * n
        if layer == depth - 1:
            return z[0]
        out = a[start : start + k * n].reshape(k, n)
        for j in range(k):
            shift = theta[at + j] if biased and layer == 0 else 0.0
            for i in range(n):
                value = z[j, i] + shift
                out[j, i] = value if value > 0 else 0.0
        at += k if biased and layer == 0 else 0
    return np.empty(n)


@njit(**FAST)
def _down(theta: Array, widths: Array, a: Array, b: Array, n: int) -> None:
    """Fill `b`, from the output down."""
    depth, at, read, sent = len(widths) - 1, len(theta), len(a), len(b)
    b[sent - n :] = 1.0
    above = b[sent - n :].reshape(1, n)
    sent -= n
    for layer in range(depth - 1, 0, -1):
        below, k = widths[layer], widths[layer + 1]
        at, read = at - k * below, read - below * n
        back = np.dot(theta[at : at + k * below].reshape(k, below).T, above)
        out, on = b[sent - below * n : sent].reshape(below, n), a[read : read + below * n]
        for j in range(below):
            for i in range(n):
                out[j, i] = back[j, i] if on[j * n + i] > 0 else 0.0
        sent, above = sent - below * n, out


@njit(**FAST)
def _lengths(a: Array, b: Array, widths: Array, biased: bool, n: int) -> tuple[Array, Array]:
    """Kernel <grad Phi(x_i), grad Phi(x_j)> (n, n), and its diagonal (n,)."""
    read, sent, kernel = 0, 0, np.zeros((n, n))
    for layer in range(len(widths) - 1):
        below, k = widths[layer], widths[layer + 1]
        u, v = a[read : read + below * n].reshape(below, n), b[sent : sent + k * n].reshape(k, n)
        inputs, signals = np.dot(u.T, u), np.dot(v.T, v)
        if biased and layer == 0:
            inputs += 1.0
        kernel += inputs * signals
        read, sent = read + below * n, sent + k * n
    return kernel, np.diag(kernel).copy()


@njit(**FAST)
def _push_all(
    held: Arrays, widths: Array, biased: bool, a: Array, b: Array, pull: Array, n: int,
    how: tuple[float, float, float],
) -> float:  # fmt: skip
    """Move all weights (`how`: follow, decay, momentum); or where momentum < 0 write grads."""
    theta, velocity, grads = held
    follow, decay, momentum = how
    at, read, sent, square = 0, 0, 0, 0.0
    for layer in range(len(widths) - 1):
        below, k = widths[layer], widths[layer + 1]
        u, v = a[read : read + below * n].reshape(below, n), b[sent : sent + k * n].reshape(k, n)
        weighted = v * pull
        rows = max(1, _ROWS // below)
        for first in range(0, k, rows):
            some = weighted[first : first + rows]
            g = np.dot(some, u.T).reshape(len(some) * below)
            here = slice(at + first * below, at + first * below + len(g))
            if momentum < 0:
                grads[here] = g
            else:
                square += _push(theta[here], velocity[here], g, follow, decay, momentum)
        at, read, sent = at + k * below, read + below * n, sent + k * n
        if biased and layer == 0:
            here = slice(at, at + k)
            if momentum < 0:
                grads[here] = weighted.sum(1)
            else:
                square += _push(
                    theta[here], velocity[here], weighted.sum(1), follow, decay, momentum
                )
            at += k
    return square


@njit(cache=True, **FAST)
def train_deep(
    held: Arrays, q: Array, now: Array, x: Array, y: Array, widths: Array, biased: bool,
    t: int, steps: int, rule: Rule,
) -> tuple[int, bool]:  # fmt: skip
    """As `train`, for any depth: x (d, n), q and y (n,), widths from d to 1."""
    theta, velocity, _ = held
    n, order = len(y), len(widths) - 1
    a, b, pull = np.empty(widths[:-1].sum() * n), np.empty(widths[1:].sum() * n), np.zeros(n)
    a[: x.size] = x.reshape(x.size)
    gg, gt = 0.0, 0.0
    for step in range(steps + 1):  # the first makes the gradient's factors where the run is
        if step:
            follow, decay = _factors(rule, now, order, gg, gt)
            if not abs(follow) < np.inf:
                return step - 1, False
            how = (follow, decay, rule[4])
            square = _push_all(held, widths, biased, a, b, pull, n, how)
            if not _normed(theta, velocity, square, rule, now):
                return step - 1, False
        phi = _up(theta, widths, biased, a, n)
        _down(theta, widths, a, b, n)
        kernel, norms = _lengths(a, b, widths, biased, n)
        for i in range(n):
            q[i] = phi[i] * y[i]
        if rule[0] and step:
            _heat(q, n, t + step, order, rule, now)
        _pulls(q, norms, y, pull, n, order, rule, now)
        if not (abs(now[LOG_LOSS]) < np.inf and now[KAPPA] < np.inf):
            return max(step - 1, 0), False
        gg = max(np.dot(pull, np.dot(kernel, pull)), 0.0)
        gt = order * np.dot(pull, phi)
        if step and (step == steps or now[KAPPA] == 0):
            _push_all(held, widths, biased, a, b, pull, n, (0.0, 0.0, -1.0))
            return step, True
    return steps, True
