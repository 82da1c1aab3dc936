"""Settings of the univariate attack, and the tolerances they stand for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from explorer.engine import checks

Mode = Literal["algorithm 1", "all crossings", "certified"]
Weights = Literal["automatic", "exact", "trained"]


@dataclass(frozen=True)
class Tolerances:
    """What counts as equal.

    Attributes:
        angle: neurons closer than this (radians) are merged; 0 merges none.
        breaks: breakpoints within this share of max(1, |beta|) are one.
        flat: how far Phi may be from constant at the margin, as a share of the margin.
        same: crossings of one label this close are one, and solutions of a line this far beyond
            the end of its interval count as that end; units of x.
        tau: a slope is free where |z| <= tau |(w, b)| |(x, 1)|.
        eps: least miss allowed to an equation of stationarity, as a share of |theta|.
    """

    angle: float
    breaks: float
    flat: float
    same: float
    tau: float
    eps: float


# Rounding of float64: breakpoints of exactly solved networks agree to 1e-12 (measured); arbitrary
# above that. No angle: exactly solved networks have one neuron per direction.
EXACT = Tolerances(angle=0.0, breaks=1e-7, flat=1e-6, same=1e-6, tau=1e-6, eps=1e-9)
# What exactness is asked with: a neuron that breaks 1e-6 beside the margin, as merged ones do that
# were trained, stands on no training point to rounding. Arbitrary between 1e-12 and that.
STRICT = Tolerances(angle=0.0, breaks=1e-9, flat=1e-9, same=1e-9, tau=1e-9, eps=1e-9)
NEARLY = 1e-7  # arbitrary: weights off by no more are looked at with the tolerances of rounding
# Weights off a KKT point by no more are exact. Measured by `benchmarks/bench_univariate.py`: solved
# networks are off by 4e-12 at most, moved by 1e-8 by 1e-9 at least, in float32 by 4e-9, trained by
# 1e-3, trained and merged by 2e-7.
CERTIFIED = 1e-10
SAFE = 100.0  # times the defect is allowed to an explanation: its places are off too; arbitrary


@dataclass(frozen=True)
class UnivariateConfig:
    """Settings; `benchmarks/bench_univariate.py` measures the defaults.

    Attributes:
        mode: what is claimed. "algorithm 1" claims the union of the groups, as published; "all
            crossings" every place where |Phi| = 1; "certified" the crossings that no explanation
            does without, which two linear programs for each decide: proven where the weights are an
            exact KKT point, likely training points elsewhere.
        strict: leave out groups that share a candidate with the one before, so that a quarter of
            the union is guaranteed; the published count takes closed intervals, which may share.
        weights: which tolerances: "exact" those of rounding, "trained" the fields below;
            "automatic" takes the first if the weights are off a KKT point by at most `NEARLY`.
            Nothing is proven with those of trained weights.
        merge_angle: neurons closer than this (radians) are one in trained weights. Measured: 100
            trained neurons give 50 breakpoints, and most groups would hold no candidate.
        break_tol: breakpoints within this share of max(1, |beta|) are one; arbitrary.
        flat_tol: how far from constant counts as constant; arbitrary.
        same_tol: crossings this close are one; units of x. The radius at which claims are merged.
        tau: a slope is free within this relative distance of a kink. Measured: trained networks
            need 1e-3 to 3e-2.
        slack: how many times the least possible miss is allowed to the equations of an
            explanation: more is safer and names less. Measured on twelve trained networks: with 1.5
            one of 52 likely points was false, with 3 none.
        largest_residual: weights of which the candidates leave a larger share of |theta|
            unexplained (least squares, before merging) are too far from a KKT point to call
            anything likely. Measured: false points began at 0.106.
        largest_imbalance: likewise where incoming and outgoing norms of a neuron differ more. The
            flow conserves the difference while the norms grow, so it tells how long the training
            was. Measured: false points began at 0.0105.
    """

    mode: Mode = "certified"
    strict: bool = False
    weights: Weights = "automatic"
    merge_angle: float = 0.05
    break_tol: float = 1e-3
    flat_tol: float = 1e-2
    same_tol: float = 0.03
    tau: float = 2e-2
    slack: float = 3.0
    largest_residual: float = 0.1
    largest_imbalance: float = 0.01

    def __post_init__(self) -> None:
        """Refuse unknown words and settings without a meaning."""
        checks.one_of(self, "mode", "algorithm 1", "all crossings", "certified")
        checks.one_of(self, "weights", "automatic", "exact", "trained")
        checks.not_negative(
            self, "merge_angle", "break_tol", "flat_tol", "same_tol", "tau", "largest_residual",
            "largest_imbalance",
        )  # fmt: skip
        if not (math.isfinite(self.slack) and self.slack >= 1):
            raise ValueError(
                f"slack must be at least 1 (the least possible miss); got {self.slack}. Try 3."
            )

    @property
    def trained(self) -> Tolerances:
        """The tolerances of trained weights."""
        return Tolerances(
            self.merge_angle, self.break_tol, self.flat_tol, self.same_tol, self.tau, EXACT.eps
        )
