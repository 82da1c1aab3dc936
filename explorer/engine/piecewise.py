r"""A two-layer network of one input as what it is: a piecewise linear function of the line.

    Phi(x) = sum_j v_j relu(w_j x + b_j) = a_i x + c_i  on  I_i = [beta_i, beta_{i+1}]

Neuron j with w_j != 0 breaks the graph at beta_j = -b_j / w_j and is active to the right of it
(w_j > 0) or to the left (w_j < 0); with w_j = 0 it adds the constant v_j relu(b_j). The distinct
breakpoints beta_1 < ... < beta_N cut the line into N + 1 intervals, the outer two unbounded
(Smorodinsky, Vardi and Safran, section 3, restated; see the paper for the original).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.engine.arrays import Array, Flags, as_array
from explorer.engine.network import Network

UPRIGHT = 1e-9  # arbitrary: |w| below this share of |(w, b)| breaks nowhere within 1e9
NO_KINK = 1e-9  # arbitrary: a change of slope below this share of the steepest is rounding


@dataclass(frozen=True, eq=False)
class Piecewise:
    """Phi on the line.

    Attributes:
        breaks: breakpoints (N,), ascending and distinct.
        right: whether a neuron that is active to the right breaks there (N,).
        left: likewise to the left (N,).
        slope: a_i (N + 1,).
        intercept: c_i (N + 1,).
    """

    breaks: Array
    right: Flags
    left: Flags
    slope: Array
    intercept: Array

    def __len__(self) -> int:
        """Return the number of intervals, N + 1."""
        return len(self.slope)

    def ends(self, i: int) -> tuple[float, float]:
        """Return the ends of I_i, infinite for the outer ones."""
        low = -np.inf if i == 0 else float(self.breaks[i - 1])
        high = np.inf if i == len(self) - 1 else float(self.breaks[i])
        return low, high

    def middle(self, i: int) -> float:
        """Return a place inside I_i: its middle, or one unit beyond the outermost breakpoint."""
        return float(_middles(self.breaks)[i])

    def value(self, x: float) -> float:
        """Return Phi(x)."""
        i = int(np.searchsorted(self.breaks, x))
        return float(self.slope[i] * x + self.intercept[i])

    def on_margin(self, i: int, level: float, flat: float) -> bool:
        """Return whether Phi is constant on I_i, at +level or -level.

        `flat` bounds both the rise of Phi over I_i (the slope itself, where I_i has no end) and
        the distance from the level, as shares of the level.
        """
        low, high = self.ends(i)
        rise = abs(float(self.slope[i])) * (high - low if np.isfinite(high - low) else 1.0)
        off = abs(abs(self.slope[i] * self.middle(i) + self.intercept[i]) - level)
        return bool(rise <= flat * level and off <= flat * level)

    def crossings(
        self, i: int, level: float, reach: float, flat: float = 0.0
    ) -> list[tuple[float, float]]:
        """Return (x, label) with Phi(x) = label * level on I_i, at most one per label.

        A solution of the line up to `reach` beyond an end of I_i counts as that end: rounding, or
        in trained weights a peak that stays a little below its level. One beside a peak that is
        off its level by at most `flat`, a share of the level, counts as that peak, which its two
        sides would otherwise name twice. A level line is not crossed.
        """
        low, high = self.ends(i)
        slope, found = float(self.slope[i]), []
        for label in (1.0, -1.0):
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                x = float(np.divide(label * level - self.intercept[i], slope))
            if np.isfinite(x) and low - reach <= x <= high + reach:
                x = min(max(x, low), high)
                found.append((self._peak(i, x, label * level, flat * level), label))
        return sorted(found)

    def _peak(self, i: int, x: float, level: float, off: float) -> float:
        """Return the end of I_i nearest to x where Phi turns, within `off` of the level; else x."""
        ends = [
            end
            for end, j in zip(self.ends(i), (i - 1, i + 1), strict=True)
            if np.isfinite(end)
            and self.slope[i] * self.slope[j] < 0
            and abs(self.slope[i] * end + self.intercept[i] - level) <= off
        ]
        return min(ends, key=lambda end: abs(end - x), default=x)


def _middles(breaks: Array) -> Array:
    if not len(breaks):
        return np.zeros(1)
    inner = (breaks[1:] + breaks[:-1]) / 2
    return np.concatenate([breaks[:1] - 1, inner, breaks[-1:] + 1])


def refusal(net: Network) -> str:
    """Return why a network has no description here, or an empty string."""
    if net.d != 1 or len(net.weights) != 2 or net.outputs != 1 or not net.homogeneous:
        return (
            f"this needs one input, one hidden layer and one output without a bias; got "
            f"{net.shape}. Draw points on a line (a 1-D preset) and train one hidden layer."
        )
    if net.biases[0] is None:
        return (
            "this needs a bias in the first layer: without it Phi breaks at 0 alone. "
            "Train with bias=True."
        )
    return ""


def neurons(net: Network) -> tuple[Array, Array, Array]:
    """Return w, b and v (k,) of a network of one input. ValueError where there is no such thing."""
    why = refusal(net)
    if why:
        raise ValueError(why)
    bias = net.biases[0]
    assert bias is not None
    parts = (net.weights[0][:, 0], bias, net.weights[1][0])
    w, b, v = (as_array(part) for part in parts)
    return w, b, v


def describe(net: Network, same: float = 1e-7) -> Piecewise:
    """Return breakpoints, orientations, slopes and intercepts.

    Breakpoints within `same` max(1, |beta|) of the first of a bunch are one, at their mean weighted
    by |v w|; where the slopes cancel there is no breakpoint, and the intervals are one. Without any
    breakpoint there is one interval, the line.
    """
    w, b, v = neurons(net)
    bends = np.abs(w) > UPRIGHT * np.hypot(w, b)
    breaks, right, left = _distinct_breaks(
        -b[bends] / w[bends], w[bends], np.abs((v * w)[bends]), same
    )
    at = _middles(breaks)
    active = at[:, None] * w + b > 0
    slope, intercept = (active * (v * w)).sum(1), (active * (v * b)).sum(1)
    steepest = np.abs(v * w).sum()
    kink = np.abs(np.diff(slope)) > NO_KINK * steepest
    kept = np.concatenate([[True], kink])
    return Piecewise(breaks[kink], right[kink], left[kink], slope[kept], intercept[kept])


def _distinct_breaks(at: Array, w: Array, weight: Array, same: float) -> tuple[Array, Flags, Flags]:
    """Return distinct breakpoints, and whether neurons open to the right and to the left there."""
    order = np.argsort(at)
    bunches: list[list[int]] = []
    for j in order:
        if bunches and at[j] - at[bunches[-1][0]] <= same * max(1.0, abs(at[j])):
            bunches[-1].append(j)
        else:
            bunches.append([j])
    tiny = np.finfo(np.float64).tiny
    mean = [np.average(at[g], weights=weight[g] + tiny) for g in bunches]
    right = [bool((w[g] > 0).any()) for g in bunches]
    left = [bool((w[g] < 0).any()) for g in bunches]
    return np.array(mean, dtype=float), np.array(right, dtype=bool), np.array(left, dtype=bool)
