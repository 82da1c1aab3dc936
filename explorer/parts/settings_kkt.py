"""Settings of the KKT reconstruction."""

from __future__ import annotations

from explorer.parts.settings import Row, Rows, choice, real, whole


def rows() -> Rows:
    """Haim's four knobs in sight."""
    shown = [
        Row("m", whole("candidates m", "Half of them per class; at least 2n is usual", 2, 400)),
        Row("relu_alpha", real("ReLU α", "Slope sigmoid(αz) in the backward pass", 1, 10_000)),
        Row("lam_min", real("floor λ_min", "Multipliers below this share of their mean are "
                            "pulled up", 0, 10)),
        Row("lr_x", real("rate of x", "Learning rate of the candidates", 1e-8, 1e6)),
    ]  # fmt: skip
    folded = [
        Row("multipliers", choice("multipliers", "Stepped with the candidates, or solved for "
                                  "exactly at each step", "joint", "projected")),
        Row("optimizer", choice("optimiser", "SGD with momentum, or Adam", "sgd", "adam")),
        Row("relu_alpha_start", real("annealed from", "ReLU α at the first step; 0: "
                                     "constant, as published", 0, 10_000),
            lambda v: v or None, lambda v: v or 0.0),
        Row("lr_lam", real("rate of λ", "Learning rate of the multipliers", 1e-8, 1e6)),
        Row("sigma_x", real("noise σ_x", "Standard deviation of a start from noise", 0, 5)),
        Row("weight_margin", real("weight of margin", "Pull of the candidates onto |Φ| = 1: "
                                  "support points lie there; 0 as published", 0, 1000)),
        Row("merge_angle", real("merge angle", "Neurons closer than this many radians are "
                                "merged before the attack; 0: none", 0, 1)),
        Row("same_slopes", choice("merged slopes", "Of the merged neurons' modified ReLU: theirs, "
                                  "steeper, or the mean of those that they stand for; the latter "
                                  "leaves the loss that of the whole network",
                                  ("steeper", False), ("as before", True))),
        Row("prior", real("prior box", "Half width of the box that holds the data; 0: none",
                          0, 100), lambda v: v or None, lambda v: v or 0.0),
        Row("weight_prior", real("weight of box", "Pull back into the prior box", 0, 1e6)),
        Row("weight_dual", real("weight of floor", "Pull of the multipliers up to λ_min",
                                0, 1e6)),
        Row("lam_start", real("first λ up to", "The first multipliers are uniform up to this "
                              "many times their mean", 0, 1e6)),
        Row("momentum", real("momentum", "Of SGD or Adam, below 1", 0, 0.999)),
        Row("decay", real("last rate", "Last rates as a share of the first; 1: constant, as "
                          "published", 1e-6, 1)),
        Row("steps", whole("steps", "Length of the attack", 1, 1_000_000)),
    ]  # fmt: skip
    return shown, folded
