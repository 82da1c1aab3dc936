"""The state of the univariate attack."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from explorer.engine.attacks.univariate_config import CERTIFIED, EXACT, Tolerances
from explorer.engine.attacks.univariate_walk import Group, guarantee

FIRM = 1e-5  # of the mass; arbitrary, 100 times what HiGHS may be off: a least multiplier above 0

Phase = Literal["walk", "gather", "fit", "prove", "done"]


@dataclass(frozen=True, eq=False)
class UnivariateState:
    """Where the walk stands, and what it has found.

    Attributes:
        t: steps taken.
        x: candidates (m, 1), ascending.
        y: their labels (m,), the sign of Phi.
        lam: multipliers (m,); equal shares of the mass until they are fitted.
        least: least multiplier with which the weights can be explained (m,); nan until solved.
        most: the largest (m,); nan until solved.
        groups: the groups found so far.
        alone: intervals that no group covers.
        at: the interval that is looked at next, or in the proof the next candidate.
        looked: the first and last interval of the step just taken; (-1, -1) where none.
        phase: what the next step does.
        tol: the tolerances in force: those of rounding, or those of the settings.
        miss: the least possible miss of an equation, a share of |theta|; nan until fitted.
        eps: the miss allowed to explanations.
        residual: share of |theta| that the candidates leave unexplained by least squares, before
            neurons are merged; nan until fitted.
        sentence: what the step just taken did, and why.
        defect: how far the weights are from the nearest KKT point that they show, a share of
            |theta| (`univariate_view.defect`); nan, and nothing is proven, where a file of an
            earlier version does not say.
    """

    t: int
    x: Tensor
    y: Tensor
    lam: Tensor
    least: Tensor
    most: Tensor
    groups: tuple[Group, ...]
    alone: tuple[int, ...]
    at: int
    looked: tuple[int, int]
    phase: Phase
    tol: Tolerances
    miss: float
    eps: float
    residual: float
    sentence: str
    defect: float = math.nan

    @property
    def exact(self) -> bool:
        """Whether the tolerances are those of rounding."""
        return self.tol == EXACT

    @property
    def doubt(self) -> str:
        """Why nothing is proven on these weights; "" where they are an exact KKT point."""
        return doubt(self.defect, self.tol)

    @property
    def needed(self) -> Tensor:
        """Which candidates no explanation does without (m,) bool; `FIRM` of the mass or more."""
        return self.least > FIRM * self.lam.sum()

    @property
    def proven(self) -> Tensor:
        """Which candidates must be training points (m,) bool: needed by exact weights."""
        return self.needed & (not self.doubt)

    @property
    def likely(self) -> Tensor:
        """Which candidates are needed by weights that are no exact KKT point (m,) bool."""
        return self.needed & bool(self.doubt)

    @property
    def guaranteed(self) -> float:
        """The share of the candidates that the counted groups make training points; 0 in doubt."""
        return 0.0 if self.doubt else guarantee(self.groups, len(self.x))

    def numbers(self) -> dict[str, float]:
        """Counts and the miss, for curves."""
        miss = {} if math.isnan(self.miss) else {"miss": self.miss}
        return {
            "candidates": float(len(self.x)),
            "groups": float(len(self.groups)),
            "proven": float(self.proven.sum()),
            "likely": float(self.likely.sum()),
            **miss,
        }


def doubt(defect: float, tol: Tolerances) -> str:
    """Why nothing is proven on weights so far from a KKT point; "" where they are exact."""
    if not defect <= CERTIFIED:
        off = "nobody looked how far" if math.isnan(defect) else f"off by {defect:.1e} of |θ|"
        return (
            f"the weights are not an exact KKT point of this margin: {off}, and a proof needs "
            f"{CERTIFIED:.0e}"
        )
    return "" if tol == EXACT else "the tolerances in force are those of trained weights"
