"""The settings of the hinge attack: each default says where it comes from."""

from __future__ import annotations

from typing import Annotated, Literal

from explorer.engine.settings import setting, settings


@settings
class HingeConfig:
    """A hinge attack. "Tuned" values were chosen on sets of seeds 100 to 109, see docs/hinge.md."""

    # fmt: off
    claim: Annotated[Literal["proven", "fitted"], setting(
        "Only places that no other explanation can do without, or all places of the explanation "
        "found", title="claims", form="sight", place=1,
        labels=(("needed places", "proven"), ("all fitted places", "fitted")),
    )] = "proven"
    merge_angle: Annotated[float, setting(
        "Two layers: neurons closer than this many radians are merged before the attack; 0: none",
        title="merge angle", unit="radians", form="more", place=3, page=(0, 1), ge=0,
        note="As of the KKT attack.",
    )] = 0.02
    tolerance: Annotated[float, setting(
        "A crossing is kept if |Φ| is this near to 1", title="tolerance of |Φ|", unit="margins",
        form="sight", place=4, page=(1e-9, 1), gt=0,
        note="Arbitrary, far above the 0.01 by which trained networks miss.",
    )] = 0.1
    spacing: Annotated[float, setting(
        "Candidates of one label are at least so far apart", title="spacing", unit="of the data",
        form="more", place=5, page=(1e-4, 1), gt=0,
        note="Arbitrary, a third of the radius 0.03 at which claims are scored.",
    )] = 0.01
    reach: Annotated[float, setting(
        "No candidate lies farther from the origin", title="reach", unit="of the data",
        form="more", place=6, page=(0.1, 100), gt=0,
        note="The corner of the plane, 2√2. The attacker is assumed to know the scale of the data.",
    )] = 2.8
    grid: Annotated[int, setting(
        "Lines each way on which the margin is sampled besides", title="grid lines", form="more",
        place=7, page=(0, 400), ge=0, note="Arbitrary. They stand for explanations by points that "
        "lie on no kink; 0 leaves only the ends of the region.",
    )] = 60
    tau: Annotated[float, setting(
        "Slopes are free within this relative distance of a kink", title="kink τ", form="more",
        place=4, page=(0, 0.5), ge=0, note="The certificate's for trained weights.",
    )] = 0.01
    batch: Annotated[int, setting(
        "Candidates that join the explanation at each step", title="batch", form="more", place=8,
        page=(1, 100), ge=1, note="Arbitrary.",
    )] = 6
    apart: Annotated[float, setting(
        "How far apart those must be", title="apart", unit="of the data", form="more", place=9,
        page=(1e-3, 2), gt=0, note="Arbitrary.",
    )] = 0.1
    rounds: Annotated[int, setting(
        "At most so many batches", title="rounds", form="more", place=10, page=(1, 1000), ge=1,
        note="Arbitrary: none of the tuned runs needed 30.",
    )] = 40
    merge_radius: Annotated[float, setting(
        "Fitted candidates of one label this near to each other become one", title="merge radius",
        unit="of the data", form="more", place=2, page=(1e-3, 2), gt=0,
        note="Arbitrary, above the width of the pencils of lines (0.01) and below the distances "
        "of points.",
    )] = 0.05
    radius: Annotated[float, setting(
        "The neighbourhood without which the weights are explained again",
        title="left-out radius", unit="of the data", form="more", place=1, page=(1e-3, 2), gt=0,
        note="Arbitrary, three times the radius at which claims are scored.",
    )] = 0.1
    rise: Annotated[float, setting(
        "A place is needed if without its neighbourhood the residual rises by at least this share",
        title="rise", unit="of the residual", form="sight", place=2, page=(0, 10), ge=0,
        note="Tuned.",
    )] = 0.02
    floor: Annotated[float, setting(
        "… and by at least this share of the norm of the weights", title="and by", unit="of ‖θ‖",
        form="sight", place=3, page=(0, 1), ge=0, note="Tuned.",
    )] = 0.002
    lam_share: Annotated[float, setting(
        "Places below this share of the mean multiplier are not asked about", title="least λ",
        unit="mean multipliers", form="more", place=11, page=(0, 1), ge=0,
        note="As for the claims of the KKT attack.",
    )] = 0.1
    # fmt: on
