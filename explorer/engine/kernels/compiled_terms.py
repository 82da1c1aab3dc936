"""What all compiled loops of the attacks share: the sigmoid, a step, and the terms of the loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

from explorer.engine.kernels.jit import INNER, compile_inner
from explorer.engine.kernels.steps import RATE, SECOND, DescentRule, LossTerms

Array = npt.NDArray[Any]
_LOG2_E, _LN2_HIGH, _LN2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
_LARGEST = 708.0  # exp of it is finite


@intrinsic
def _as_float(_typing: Any, bits: Any) -> Any:  # noqa: ANN401 - numba's own types
    """Bits read as a number of as many."""
    short = bits == types.int32

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        return builder.bitcast(args[0], ir.FloatType() if short else ir.DoubleType())

    return types.float32(types.int32) if short else types.float64(types.int64), codegen


@njit(inline="always", **INNER)
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


_ONE, _HALF = np.float32(1), np.float32(0.5)
_LARGEST_SINGLE, _LOG2_E_SINGLE = np.float32(87), np.float32(_LOG2_E)
_LN2_HIGH_SINGLE, _LN2_LOW_SINGLE = np.float32(0.693359375), np.float32(-2.12194440e-4)
_SERIES = tuple(np.float32(1 / math.factorial(n)) for n in (7, 6, 5, 4, 3))


@njit(inline="always", **INNER)
def sigmoid_single(z: float) -> float:
    """Return the same in float32: the series to r^7."""
    x = _LARGEST_SINGLE if z < -_LARGEST_SINGLE else -z
    x = -_LARGEST_SINGLE if x < -_LARGEST_SINGLE else x
    n = np.floor(x * _LOG2_E_SINGLE + _HALF)
    r = (x - n * _LN2_HIGH_SINGLE) - n * _LN2_LOW_SINGLE
    e = _SERIES[0]
    e = e * r + _SERIES[1]
    e = e * r + _SERIES[2]
    e = e * r + _SERIES[3]
    e = e * r + _SERIES[4]
    e = e * r + _HALF
    e = (e * r + _ONE) * r + _ONE
    return _ONE / (_ONE + e * _as_float(np.int32((np.int32(n) + np.int32(127)) << np.int32(23))))


def slope_of(z: float) -> float:
    """sigmoid(z) in the type of z; in loops alone."""
    raise NotImplementedError(z)


@overload(slope_of, jit_options=INNER, inline="always")
def _slope_of(z) -> Callable[..., float]:  # type: ignore[no-untyped-def] # noqa: ANN001
    if z == types.float32:
        return lambda z: sigmoid_single(z)
    return lambda z: sigmoid(z)


@compile_inner
def put(v: Array, out: Array) -> None:
    """Write v into out (n,); assigning a slice would compile for seconds."""
    for i in range(len(v)):
        out[i] = v[i]


@compile_inner
def move(
    p: Array, mean: Array, square: Array, grad: Array, columns: int, rate: float, row: Array,
    rule: DescentRule, live: bool,
) -> None:  # fmt: skip
    """One step of the optimiser in place, of the first columns; `live`: else on a gradient of 0.

    A row of rate 0 moves nothing: what is made of it are the losses and gradients where all is.
    """
    for i in range(len(p) if row[RATE] > 0 else 0):
        for j in range(columns):
            g = grad[i, j] if live else 0.0
            if rule.adam:
                mean[i, j] += (g - mean[i, j]) * (1 - rule.momentum)
                square[i, j] = square[i, j] * rule.beta + g * g * (1 - rule.beta)
                p[i, j] -= rate * mean[i, j] / (np.sqrt(square[i, j]) * row[SECOND] + rule.eps)
            else:
                mean[i, j] = mean[i, j] * rule.momentum - rate * g
                p[i, j] += mean[i, j]


@compile_inner
def on_box(x: float, terms: LossTerms) -> float:
    """Return the gradient of the weighted box on a coordinate."""
    far = x - terms.prior if x > terms.prior else x + terms.prior if x < -terms.prior else 0.0
    return 2 * terms.weight_prior * far


@compile_inner
def on_floor(share: float, terms: LossTerms) -> float:
    """Return the gradient of the weighted floor on a multiplier over its mean."""
    low = share - terms.lam_min
    return 0.0 if low > 0 else 2 * terms.weight_dual * low


@compile_inner
def on_margin(phi: float, signed: float, weight: float, terms: LossTerms) -> float:
    """Return the gradient of the weighted margin on Phi of a candidate with this label."""
    off = phi - (terms.level if signed > 0 else -terms.level)
    return off * (2 * weight / (terms.level * terms.level))
