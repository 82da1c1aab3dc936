"""Settings of the univariate attack, and the tolerances they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from explorer.engine.settings import setting, settings

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


@settings
class UnivariateConfig:
    """Settings of the attack; `benchmarks/bench_univariate.py` measures the defaults."""

    # fmt: off
    mode: Annotated[Mode, setting(
        "What is claimed: the union of the groups as published, all places with |Φ| = 1, or those "
        "of them that the weights cannot do without: proven, or likely where the weights are no "
        "exact KKT point", title="claims", form="sight", place=1,
        labels=(("algorithm 1",) * 2, ("all crossings",) * 2, ("needed places", "certified")),
        note="Two linear programs decide for each place whether it is needed.",
    )] = "certified"
    strict: Annotated[bool, setting(
        "Strict: leave out groups that share a candidate with the one before: each stands for a "
        "point of its own", title="count", form="sight", place=2,
        labels=(("as published", False), ("strict", True)),
        note="The published count takes closed intervals, which may share a candidate. At an exact "
        "KKT point a quarter of the union is then guaranteed.",
    )] = False
    weights: Annotated[Weights, setting(
        "Of rounding, of trained weights, or whichever the weights themselves call for",
        title="tolerances", form="sight", place=3, note="Automatic takes those of rounding if "
        "the weights are off a KKT point by at most 1e-7. Nothing is proven with those of trained "
        "weights.",
    )] = "automatic"
    merge_angle: Annotated[float, setting(
        "Trained neurons closer than this many radians are one; 0: none", title="merge angle",
        unit="radians", form="more", place=1, page=(0, 1), ge=0,
        note="Measured: 100 trained neurons give 50 breakpoints, and most groups would hold no "
        "candidate.",
    )] = 0.05
    break_tol: Annotated[float, setting(
        "Breakpoints within this share are one", title="same breakpoint", unit="of max(1, |β|)",
        form="more", place=5, page=(0, 1), ge=0, note="Arbitrary.",
    )] = 1e-3
    flat_tol: Annotated[float, setting(
        "How far from constant counts as constant, a share of the margin", title="flatness",
        unit="margins", form="more", place=6, page=(0, 1), ge=0, note="Arbitrary.",
    )] = 1e-2
    same_tol: Annotated[float, setting(
        "Crossings this close are one", title="same place", unit="of the data", form="more",
        place=4, page=(0, 1), ge=0, note="The radius at which claims are merged.",
    )] = 0.03
    tau: Annotated[float, setting(
        "Slopes are free within this relative distance of a kink", title="kink distance τ",
        form="more", place=2, page=(0, 1), ge=0,
        note="Measured: trained networks need 1e-3 to 3e-2.",
    )] = 2e-2
    slack: Annotated[float, setting(
        "How many times the least possible miss is allowed to an explanation; more is safer and "
        "names less", title="slack", unit="least misses", form="more", place=3, page=(1, 100), ge=1,
        why="1 is the least possible miss", note="Measured on twelve trained networks: with "
        "1.5 one of 52 likely points was false, with 3 none.",
    )] = 3.0
    largest_residual: Annotated[float, setting(
        "Weights of which more is left unexplained are called nothing likely",
        title="largest residual", unit="of ‖θ‖", form="more", place=7, page=(0, 1), ge=0,
        note="By least squares over the candidates, before merging. Measured: false points began "
        "at 0.106.",
    )] = 0.1
    largest_imbalance: Annotated[float, setting(
        "Weights with neurons further out of balance are called nothing likely",
        title="largest imbalance", form="more", place=8, page=(0, 1), ge=0,
        note="Of incoming and outgoing norms. The flow conserves the difference while the norms "
        "grow, so it tells how long the training was. Measured: false points began at 0.0105.",
    )] = 0.01
    # fmt: on

    @property
    def trained_tolerances(self) -> Tolerances:
        """Return the tolerances of trained weights."""
        return Tolerances(
            self.merge_angle, self.break_tol, self.flat_tol, self.same_tol, self.tau, EXACT.eps
        )
