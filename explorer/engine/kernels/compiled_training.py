"""The steps of `training` as compiled loops, for one output.

Loaded by `loading.compiled_module`. The formulas are those of `training`, the results equal to
rounding. Two layers and few inputs (`train`): a step goes through the neurons twice, forward and
back, and what a neuron takes from a point is made twice rather than kept. Any
depth (`train_deep`): products of matrices, but of the gradient no more than some rows at a time,
which move their weights while they lie near the processor; so a step reads and writes theta and the
velocity once.

Shapes: theta, velocity, grads (P,) in the order of `Network.theta`; a (D, n) the points, one per
column, over a row of ones where there is a bias; y (n,). In `train` D and n are filled up with zeros
to multiples of 3 and 4. What is compiled is kept on disk and made anew when
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
        on0, on1, on2, on3 = z0[k] > 0, z1[k] > 0, z2[k] > 0, z3[k] > 0
        g0[k] += ((a0 if on0 else 0.0) + (a1 if on1 else 0.0)) + (
            (a2 if on2 else 0.0) + (a3 if on3 else 0.0)
        )
        g1[k] += ((b0 if on0 else 0.0) + (b1 if on1 else 0.0)) + (
            (b2 if on2 else 0.0) + (b3 if on3 else 0.0)
        )
        g2[k] += ((c0 if on0 else 0.0) + (c1 if on1 else 0.0)) + (
            (c2 if on2 else 0.0) + (c3 if on3 else 0.0)
        )


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
def _pulls(
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
        follow, decay = _factors(rule, now, 2, gg, gt)
        sound = abs(follow) < np.inf
        if sound:
            square = _push(w.ravel(), velocity.ravel(), g.ravel(), follow, decay, rule[4])
            sound = _normed(w, velocity, square, rule, now)
        if not sound:
            break
        _forward(w, a, lengths, z, q, norms)
        for i in range(n):
            q[i] *= y[i]
        if rule[0]:
            _heat(q, n, t + taken + 1, 2, rule, now)
        _pulls(q, norms, y, pull, n, 2, rule, now)
        sound = abs(now[LOG_LOSS]) < np.inf and now[KAPPA] < np.inf
        if sound:
            gg, gt = _backward(w, a, pull, z, g)
            taken += 1
            if now[KAPPA] == 0:
                break
    for i in range(3):
        _copy(held[i], rows[i], d, k, biased, True)
    return taken, sound


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
