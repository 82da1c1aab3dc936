"""Settings of the model inversion."""

from __future__ import annotations

from explorer.parts.settings import Row, Rows, choice, real, whole


def rows() -> Rows:
    """What is wanted of the output, and the box, in sight."""
    shown = [
        Row("goal", choice("goal", "The largest output y Φ, or a wanted one",
                           ("largest output", "extreme"), ("a wanted output", "value"))),
        Row("value", real("wanted output", "y Φ in units of the margin: 1 is the margin. Used by "
                          "the goal “a wanted output”", -100, 100)),
        Row("box", real("box", "Half width of the box that candidates stay in; 0: none. Without "
                        "one the output has no largest value", 0, 100),
            lambda v: v or None, lambda v: v or 0.0),
        Row("m", whole("candidates m", "Half of them per class", 2, 400)),
    ]  # fmt: skip
    folded = [
        Row("lr_x", real("rate of x", "Adam's rate, in units of the data", 1e-8, 10)),
        Row("decay", real("last rate", "Last rate as a share of the first", 1e-6, 1)),
        Row("sigma_x", real("noise σ_x", "Standard deviation of the start", 0, 5)),
        Row("steps", whole("steps", "Length of the attack", 1, 1_000_000)),
    ]  # fmt: skip
    return shown, folded
