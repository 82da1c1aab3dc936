"""What the map of one moving point shows: a needle, a fan, or a point that is not needed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from explorer.engine.rounding import EDGE, NOTHING, said

Array = NDArray[np.float64]

LOW = 0.01  # share of the energy without the point below which a place explains as well; arbitrary
NEEDLE = 0.003  # share of places: below, an isolated zero (measured: 0.0003 against a fan's 0.07)
FEW = 3.5  # places: up to so many are isolated too; arbitrary
BOWL = 0.5  # share of the low places that stays of a set of zeros at a tenth of LOW; arbitrary: of
# those around a single smooth minimum a tenth stays in the plane and a third on the line
REDUNDANT = 1e-6  # share of ||theta||^2: nothing is gained by the point; arbitrary


class Archetype(Enum):
    """What the map of a point looks like; the value is what a user reads."""

    NEEDLE = (
        "a needle: with the others where they are, one place, or a few isolated ones, explain the "
        "weights as well"
    )
    FAN = (
        "a fan: with the others where they are, a whole set of places explains the weights as well"
    )
    REDUNDANT = "redundant: it explains nothing that the other points do not"


@dataclass(frozen=True, eq=False)
class Energies:
    """Energies of one moving point, as shares of ||theta||^2.

    Attributes:
        values: at each place (p,).
        here: with the point where it is.
        without: with the point left out; refitted, no value lies above it.
        tau: relative distance of a kink.
        cut: points of the set with more kinks than can all be freed: values are upper bounds.
        crowded: places of which the same holds.
        sizes: share of the map that each place stands for (p,), or None for equal ones.
        band: share of the map up to which a set of zeros may come from the band of a kink alone.
        home: with the point at its place in the training set; None where it stands there.
    """

    values: Array
    here: float
    without: float
    tau: float
    cut: int = 0
    crowded: int = 0
    sizes: Array | None = None
    band: float = 0.0
    home: float | None = None

    @property
    def least(self) -> float:
        """The energy where the point explains most; less than at home on trained weights."""
        return min(float(self.values.min(initial=math.inf)), self.here, self.truly)

    @property
    def truly(self) -> float:
        """The energy with the point at home."""
        return self.here if self.home is None else self.home

    def below(self, share: float) -> float:
        """Share of the map where no more than this share of what the point does is left undone.

        In numbers: energies up to truly + share (without - truly).
        """
        low = self.values <= self.truly + share * max(self.without - self.truly, 0.0) + 1e-12
        return float(low.mean() if self.sizes is None else self.sizes[low].sum())

    @property
    def low(self) -> float:
        """Share of the places that explain the weights about as well as the training point."""
        return self.below(LOW)

    @property
    def archetype(self) -> Archetype:
        """Needle, fan or redundant: what the training point does, and the size of its low set."""
        return self._named(1.0)

    @property
    def at_edge(self) -> bool:
        """Whether limits that are moved by `EDGE` of themselves would give another name."""
        return len({self._named(1 - EDGE), self._named(1.0), self._named(1 + EDGE)}) > 1

    def _named(self, scale: float) -> Archetype:
        """The archetype by limits times `scale`."""
        if self.without - self.truly <= scale * REDUNDANT:
            return Archetype.REDUNDANT
        one = 1 / max(len(self.values), 1) if self.sizes is None else float(np.median(self.sizes))
        low = self.below(scale * LOW)
        isolated = low < max(NEEDLE, FEW * one, self.band)
        bowl = self.below(scale * LOW / 10) < BOWL * low
        return Archetype.NEEDLE if isolated or bowl else Archetype.FAN

    @property
    def sentence(self) -> str:
        """What is seen, with its numbers."""
        home = "" if self.home is None else f" here and {said(self.home)} at its training place"
        return (
            f"This point is {self.archetype.value}. Without it {said(self.without)} of ‖θ‖² stays "
            f"unexplained, with it {said(self.here)}{home}; {100 * self.low:.3g}% of the places on "
            f"the map come within {LOW:.0%} of that, {100 * self.below(LOW / 10):.3g}% within "
            f"{LOW / 10:.1%} (kinks freed within {self.tau:.2g}; below {NOTHING:.0e} is 0)."
            f"{' It stands at the edge of another name.' if self.at_edge else ''}"
        )
