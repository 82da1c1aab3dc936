"""The steps of `training` as compiled loops: any depth, several outputs, biases in every layer.

Loaded by `loading.compiled_module`. Products of matrices, but of the gradient no more than some
rows at a time, which move their weights while they lie near the processor; so a step reads and
writes theta and the velocity once.

`a` and `b` hold, one layer after another, what each layer reads (n, k_{l-1}) and the derivative
of <cover, Phi> by its pre-activations (n, k_l), as in `backprop`; n is a multiple of 4, and rows of
b are filled up to one. The last rows of b are the covectors: 1 of one output, that of the smooth
margin of several (`classes.soft_contrast`). Products go four neurons by four points: 16 sums stay
in registers. The few points lie near the processor and each weight is read once, which a call of
BLAS does not use. Of few weights the gradient is kept from one step to the next. That of many is
made four rows at a time when they move; its length, which the step needs before, comes from all
pairs of points.

What is compiled is kept on disk and made anew when this file changes or `compiled_training`, whose
time is part of what numba looks for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from numba import njit

from explorer.engine.kernels import compiled_training
from explorer.engine.kernels.compiled_training import (
    FAST,
    KAPPA,
    LOG_LOSS,
    LOG_SCALE,
    Arrays,
    Rule,
    choose,
    factors,
    heat,
    normed,
    pulls,
    push,
)

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
FEW = 8  # inputs; below it no vector is filled by a product's row; arbitrary, 4 at least


@njit(**FAST)
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


@njit(**FAST)
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


@njit(**FAST)
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


@njit(**FAST)
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


@njit(**FAST)
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


@njit(**FAST)
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


@njit(**FAST)
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


@njit(**FAST)
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


@njit(**FAST)
def _lengths(
    a: Array, b: Array, widths: Array, biased: Flags, phi: Array, pairs: bool
) -> tuple[Array, Array, Array]:
    """Squared lengths (n,) of the gradients g_i of <cover, Phi>, and <theta, g_i> (n,).

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


@njit(**FAST)
def _on_shift(b: Array, pull: Array, r: int, g: Array) -> None:
    """The gradient on the biases of the neurons from r on, into g."""
    for i in range(len(g)):
        g[i] = 0.0
        for j in range(len(b)):
            g[i] += pull[j] * b[j, r + i]


@njit(**FAST)
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


@njit(**FAST)
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
            square += np.sum(made * made)
            at += k
        read, sent = read + below * n, sent + filled * n
    return square


def _made(stamp: int) -> Callable[..., tuple[int, bool]]:
    @njit(cache=True, **FAST)
    def train_deep(
        held: Arrays, q: Array, now: Array, x: Array, y: Array, n: int, widths: Array,
        biased: Flags, t: int, steps: int, rule: Rule, kept: bool, masks: Array,
    ) -> tuple[int, bool]:  # fmt: skip
        """As `train`, for any depth: x (N, d), q and y (N,), N >= n, widths from d to C.

        y: labels of one output, numbers of classes from 0 of several. `biased`: which layers have a
        bias. `kept`: whether to keep the gradient from one step to the next, see above.
        """
        theta, many, order, reads, sends, most = held[0], len(y), len(widths) - 1, 0, 0, stamp * 0
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
                how = (move, kept, follow, decay, rule[4])
                square, phi = _each_layer(held, widths, biased, (old, new), b, pull, g, how)
                if move and not normed(theta, held[1], square, rule, now):
                    return step - 1, False
                move = False
                if now[LOG_SCALE] == scale:
                    break
                scale = now[LOG_SCALE]  # other weights: once more what they give
            old, new = new, old
            _margins(phi, y, n, q)
            if rule[0] and step:
                heat(q, n, t + step, order, rule, now)
            gain = math.exp(min(order * now[LOG_SCALE], rule[12]))
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

    return train_deep


train_deep = _made(Path(compiled_training.__file__).stat().st_mtime_ns)
