"""Settings of the hinge attack."""

from __future__ import annotations

from explorer.parts.settings import Row, Rows, choice, real, whole


def rows() -> Rows:
    """What is claimed, and what counts as needed, in sight."""
    shown = [
        Row("claim", choice("claims", "Only places that no other explanation can do without, or "
                            "all places of the explanation found",
                            ("needed places", "proven"), ("all fitted places", "fitted"))),
        Row("rise", real("rise", "A place is needed if without its neighbourhood the residual "
                         "rises by at least this share", 0, 10)),
        Row("floor", real("and by", "… and by at least this share of the norm of the weights",
                          0, 1)),
        Row("tolerance", real("tolerance of |Φ|", "A crossing is kept if |Φ| is this near to 1",
                              1e-9, 1)),
    ]  # fmt: skip
    folded = [
        Row("radius", real("left-out radius", "The neighbourhood without which the weights are "
                           "explained again", 1e-3, 2)),
        Row("merge_radius", real("merge radius", "Fitted candidates of one label this near to "
                                 "each other become one", 1e-3, 2)),
        Row("merge_angle", real("merge angle", "Two layers: neurons closer than this many "
                                "radians are merged before the attack; 0: none", 0, 1)),
        Row("tau", real("kink τ", "Slopes are free within this relative distance of a kink",
                        0, 0.5)),
        Row("spacing", real("spacing", "Candidates of one label are at least so far apart",
                            1e-4, 1)),
        Row("reach", real("reach", "No candidate lies farther from the origin", 0.1, 100)),
        Row("grid", whole("grid lines", "Lines each way on which the margin is sampled besides",
                          0, 400)),
        Row("batch", whole("batch", "Candidates that join the explanation at each step", 1, 100)),
        Row("apart", real("apart", "How far apart those must be", 1e-3, 2)),
        Row("rounds", whole("rounds", "At most so many batches", 1, 1000)),
        Row("lam_share", real("least λ", "Places below this share of the mean multiplier are "
                              "not asked about", 0, 1)),
    ]  # fmt: skip
    return shown, folded
