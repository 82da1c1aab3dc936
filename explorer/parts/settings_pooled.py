"""Settings of the pooled attack: its starts, then those of the hinge attack."""

from __future__ import annotations

from explorer.parts import settings_hinge
from explorer.parts.settings import Row, Rows, whole


def rows() -> Rows:
    """The starts in sight, before what the hinge attack shows."""
    shown, folded = settings_hinge.rows()
    starts = [
        Row("starts", whole("starts", "KKT reconstructions from independent noise, one per step",
                            1, 100)),
        Row("m", whole("candidates m", "Candidates of each start, half of each label", 2, 2000)),
        Row("descent", whole("descent", "Steps of each reconstruction", 1, 100_000)),
    ]  # fmt: skip
    return starts + shown, folded
