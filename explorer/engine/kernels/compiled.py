"""The steps of `packed` as compiled loops, for two inputs.

Loaded by `loading.compiled_module`. A step goes through the neurons
once: of each, the row of m candidates stays in the processor's first cache from z~ = alpha z to its
share of the gradients. The formulas are those of `desk`, the results equal to rounding.

Shapes: p, mean, square, grad (b, 4, m), rows as in `packed`; w, times (k, 3), the last column that
of the bias; v, slopes (k,); signed (b, m); a row of the table as in `Replay`. What is compiled is
kept on disk and made anew when this file changes: all that comes from other files is an argument.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

Array = npt.NDArray[np.float64]
Net = tuple[Array, Array, Array, Array]  # w, times, v, slopes
How = tuple[float, ...]  # level, factor of the loss, floor, its weight, box, its weight
Rule = tuple[bool, float, float, float]  # whether Adam; momentum, beta of the squares, eps

# Sums in any order, and no branch for a division by zero, are what lets loops take whole vectors;
# nan and infinity keep their meaning.
FAST: Any = {
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
    "nogil": True,
}
_LOG2_E, _LN2_HIGH, _LN2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
_LARGEST = 708.0  # exp of it is finite


@intrinsic
def _as_float(_typing: Any, _bits: Any) -> Any:  # noqa: ANN401 - numba's own types
    def made(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), made


@njit(inline="always", **FAST)
def sigmoid(z: float) -> float:
    """1 / (1 + exp(-z)): exp = 2^n exp(r) with |r| <= ln 2 / 2, its series to r^13."""
    x = _LARGEST if z < -_LARGEST else -z
    x = -_LARGEST if x < -_LARGEST else x
    n = np.floor(x * _LOG2_E + 0.5)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    e = 1 / 6227020800
    e = e * r + 1 / 479001600
    e = e * r + 1 / 39916800
    e = e * r + 1 / 3628800
    e = e * r + 1 / 362880
    e = e * r + 1 / 40320
    e = e * r + 1 / 5040
    e = e * r + 1 / 720
    e = e * r + 1 / 120
    e = e * r + 1 / 24
    e = e * r + 1 / 6
    e = e * r + 0.5
    e = (e * r + 1.0) * r + 1.0
    return 1.0 / (1.0 + e * _as_float((np.int64(n) + 1023) << 52))


@njit(**FAST)
def _move(p: Array, mean: Array, square: Array, grad: Array, row: Array, rule: Rule) -> None:
    """One step of the optimiser, in place; the row of ones stays."""
    adam, momentum, beta, eps = rule
    for i in (0, 1, 3):
        rate = row[0] if i < 2 else row[1]
        for j in range(p.shape[1]):
            g = grad[i, j]
            if adam:
                mean[i, j] += (g - mean[i, j]) * (1 - momentum)
                square[i, j] = square[i, j] * beta + g * g * (1 - beta)
                p[i, j] -= rate * mean[i, j] / (np.sqrt(square[i, j]) * row[2] + eps)
            else:
                mean[i, j] = mean[i, j] * momentum - rate * g
                p[i, j] += mean[i, j]


@njit(**FAST)
def _pull(p: Array, signed: Array, row: Array, net: Net, work: Array) -> None:
    """What the neurons pull, into `work` (9, m): c, r and s of one neuron, then sums over all."""
    w, times, v, slopes = net
    m, margin = p.shape[1], row[5] > 0
    x1, x2, c, r, s = p[0], p[1], work[0], work[1], work[2]
    on1, on2, on_c, phi, phi1, phi2 = work[3], work[4], work[5], work[6], work[7], work[8]
    work[3:] = 0.0
    for j in range(m):
        c[j] = p[3, j] * signed[j]
    for k in range(len(v)):
        alpha = row[4] * slopes[k]
        w1, w2, w0 = alpha * w[k, 0], alpha * w[k, 1], alpha * w[k, 2]
        made1, made2, made0, made_r = 0.0, 0.0, 0.0, 0.0
        for j in range(m):
            z = w1 * x1[j] + w2 * x2[j] + w0
            r[j] = z
            s[j] = sigmoid(z)
        for j in range(m):
            cs = c[j] * s[j]
            made0 += cs
            made1 += cs * x1[j]
            made2 += cs * x2[j]
            r[j] = 0.0 if r[j] < 0 else r[j]
            made_r += c[j] * r[j]
        left1 = (w[k, 0] - made1 * times[k, 0]) * times[k, 0]
        left2 = (w[k, 1] - made2 * times[k, 1]) * times[k, 1]
        left0 = (w[k, 2] - made0 * times[k, 2]) * times[k, 2]
        left_v = v[k] / alpha - made_r / (alpha * alpha)
        line1, line2 = left1 + w1 * left_v, left2 + w2 * left_v
        for j in range(m):
            t = (left1 * x1[j] + left2 * x2[j] + left0) * s[j]
            u = t - t * s[j]
            on1[j] += w1 * u + line1 * s[j]
            on2[j] += w2 * u + line2 * s[j]
            on_c[j] += t + left_v * r[j]
        if margin:
            along1, along2, phi_of = w[k, 0] * times[k, 0], w[k, 1] * times[k, 1], v[k] / alpha
            for j in range(m):
                phi[j] += phi_of * r[j]
                phi1[j] += along1 * s[j]
                phi2[j] += along2 * s[j]


@njit(**FAST)
def _gather(p: Array, grad: Array, signed: Array, margin: float, how: How, work: Array) -> None:
    """The gradients of `kkt_loss.pulls` from `work`: loss, margin, floor of lam, box of x."""
    level, share_of, lam_min, weight_dual, prior, weight_prior = how
    for j in range(p.shape[1]):
        off = work[6, j] - (level if signed[j] > 0 else -level)
        for i in range(2):
            x = p[i, j]
            outside = x - prior if x > prior else x + prior if x < -prior else 0.0
            grad[i, j] = work[3 + i, j] * work[0, j] * share_of + 2 * weight_prior * outside
            if margin > 0:
                grad[i, j] += work[7 + i, j] * off * (2 * margin / (level * level))
        low = p[3, j] - lam_min
        grad[3, j] = work[5, j] * signed[j] * share_of
        grad[3, j] += 0.0 if low > 0 else 2 * weight_dual * low


@njit(cache=True, **FAST)
def walk(
    held: tuple[Array, Array, Array, Array],
    signed: Array,
    table: Array,
    net: Net,
    how: How,
    rule: Rule,
) -> None:
    """A step of each start for each row of the table, in place. `held`: p, mean, square, grad."""
    p, mean, square, grad = held
    work = np.empty((9, p.shape[2]))
    for b in range(len(p)):
        for row in table:
            _move(p[b], mean[b], square[b], grad[b], row, rule)
            _pull(p[b], signed[b], row, net, work)
            _gather(p[b], grad[b], signed[b], row[5], how, work)
