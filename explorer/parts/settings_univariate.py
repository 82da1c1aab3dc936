"""Settings of the provable attack on the line."""

from __future__ import annotations

from explorer.parts.settings import Row, Rows, choice, real


def rows() -> Rows:
    """What is claimed in sight; tolerances folded."""
    shown = [
        Row("mode", choice("claims", "What is claimed: the union of the groups as published, all "
                           "places with |Φ| = 1, or those of them that the weights "
                           "cannot do without: proven, or likely where the weights are no exact "
                           "KKT point",
                           ("algorithm 1",) * 2, ("all crossings",) * 2,
                           ("needed places", "certified"))),
        Row("strict", choice("count", "Strict: leave out groups that share a candidate with the "
                             "one before: each stands for a point of its own",
                             ("as published", False), ("strict", True))),
        Row("weights", choice("tolerances", "Of rounding, of trained weights, or whichever the "
                              "weights themselves call for", "automatic", "exact", "trained")),
    ]  # fmt: skip
    folded = [
        Row("merge_angle", real("merge angle", "Trained neurons closer than this many radians "
                                "are one; 0: none", 0, 1)),
        Row("tau", real("kink distance τ", "Slopes are free within this relative distance of a "
                        "kink", 0, 1)),
        Row("slack", real("slack", "How many times the least possible miss is allowed to an "
                          "explanation; more is safer and names less", 1, 100)),
        Row("same_tol", real("same place", "Crossings this close are one", 0, 1)),
        Row("break_tol", real("same breakpoint", "Breakpoints within this share are one", 0, 1)),
        Row("flat_tol", real("flatness", "How far from constant counts as constant, a share of "
                             "the margin", 0, 1)),
        Row("largest_residual", real("largest residual", "Weights of which more is left "
                                     "unexplained are called nothing likely", 0, 1)),
        Row("largest_imbalance", real("largest imbalance", "Weights with neurons further out of "
                                      "balance are called nothing likely", 0, 1)),
    ]  # fmt: skip
    return shown, folded
