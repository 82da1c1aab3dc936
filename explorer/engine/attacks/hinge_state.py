"""What the hinge attack holds at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

Stage = Literal["starts", "lines", "cross", "fit", "prove", "weigh", "done"]


@dataclass(frozen=True, eq=False)
class HingeState:
    """One moment of the attack.

    Attributes:
        t: steps taken.
        stage: what the next step does.
        x: candidates (m, d) in sight: the pool, then those that carry, then the merged ones.
        y: their labels (m,).
        lam: their multipliers (m,), 0 before the fit.
        without: (m,) the residual without each one's neighbourhood; nan where not asked yet.
        residual: |theta - sum| / |theta| of the fit; 1 before it.
        limit: the residual from which on a place is needed; 1 before the questions.
        normal: unit normals of the lines (K, d).
        offset: of the lines (K,): normal . x + offset = 0.
        weight: path weights of the lines (K,).
        pool: all candidates (N, d).
        active: those that carry theta, as indices (A,) into the pool.
        mass: their multipliers (A,).
        left: what they leave of theta, block by block.
        sentence: what was done last, with its numbers.
    """

    moves: ClassVar[bool] = False  # candidates are chosen, they do not move: no trails
    t: int
    stage: Stage
    x: Tensor
    y: Tensor
    lam: Tensor
    without: Tensor
    residual: float
    limit: float
    normal: Tensor
    offset: Tensor
    weight: Tensor
    pool: Tensor
    active: Tensor
    mass: Tensor
    left: tuple[Tensor, ...]
    sentence: str

    @property
    def needed(self) -> Tensor:
        """Which places are needed, (m,) bool; one not asked about is not."""
        return self.without.nan_to_num(0.0) >= self.limit

    def numbers(self) -> dict[str, float]:
        """For the curves: the residual, candidates in sight, and how many were asked about."""
        return {
            "residual": self.residual,
            "candidates": float(len(self.x)),
            "asked": float((~self.without.isnan()).sum()),
        }
