"""The settings of the hinge attack: each default says where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from explorer.engine import checks


@dataclass(frozen=True)
class HingeConfig:
    """A hinge attack. "Tuned" values were chosen on sets of seeds 100 to 109, see docs/hinge.md.

    Attributes:
        claim: "proven" claims what no other explanation can do without; "fitted" claims all of
            the explanation found.
        merge_angle: two layers: neurons closer than this (radians) are merged first; as KKTConfig.
        tolerance: a vertex is kept if | |Phi| - 1 | is at most this; arbitrary, far above the 0.01
            by which trained networks miss.
        spacing: candidates of one label are at least this far apart, in data units; arbitrary, a
            third of the radius 0.03 at which claims are scored.
        reach: no candidate lies farther from the origin, in data units: the corner of the plane,
            2 sqrt(2). The attacker is assumed to know the scale of the data.
        grid: lines each way on which the margin set is sampled besides; arbitrary. They stand for
            explanations by points that lie on no kink; 0 leaves only the ends of the region.
        tau: a slope is free within this relative distance of a kink; `certificate.TAU_TRAINED`.
        batch: candidates that join the explanation at each step; arbitrary.
        apart: how far apart these must be; arbitrary.
        rounds: at most so many of these steps; arbitrary, none of the tuned runs needed 30.
        merge_radius: fitted candidates of one label within this become one; arbitrary, above the
            width of the pencils of lines (0.01) and below the distances of points.
        radius: the neighbourhood that is left out to see whether a candidate is needed; arbitrary,
            three times the radius at which claims are scored.
        rise: a candidate is needed if without its neighbourhood the residual rises by this share,
        floor: and by this share of |theta|; both tuned.
        lam_share: candidates below this share of the mean multiplier are not tested; as in
            `claims`.
    """

    claim: Literal["proven", "fitted"] = "proven"
    merge_angle: float = 0.02
    tolerance: float = 0.1
    spacing: float = 0.01
    reach: float = 2.8
    grid: int = 60
    tau: float = 0.01
    batch: int = 6
    apart: float = 0.1
    rounds: int = 40
    merge_radius: float = 0.05
    radius: float = 0.1
    rise: float = 0.02
    floor: float = 0.002
    lam_share: float = 0.1

    def __post_init__(self) -> None:
        """Refuse settings with which no step could be taken."""
        checks.one_of(self, "claim", "proven", "fitted")
        checks.positive(self, "tolerance", "spacing", "reach", "apart", "merge_radius", "radius")
        checks.not_negative(self, "merge_angle", "tau", "rise", "floor", "lam_share", "grid")
        if self.batch < 1 or self.rounds < 1:
            raise ValueError(
                f"batch and rounds must be at least 1; got {self.batch} and {self.rounds}"
            )
