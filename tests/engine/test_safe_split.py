"""The safe split over training: the frozen direction, the box, refusals."""

from __future__ import annotations

import pytest

from explorer.engine.data import preset
from explorer.engine.explanations.safe_split import (
    SafeSplitConfig,
    free_directions,
    in_space,
    safe_splits,
)


def test_what_is_frozen_becomes_small_and_the_box_bounds_the_split() -> None:
    config = SafeSplitConfig(width=10, steps=200, low=-2.0, high=2.0)
    rows = list(safe_splits(in_space(preset("moons", n=6)), config))
    assert rows[0].t == 0 and rows[-1].t == 200
    assert rows[-1].frozen < 0.2 * rows[0].frozen
    separated = [row for row in rows if row.q_min == row.q_min]
    assert separated and all(row.boxed <= min(row.safe, 2.0) + 1e-12 for row in separated)


def test_points_that_span_everything_and_wrong_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="no direction is free"):
        free_directions(preset("moons").x)
    for wrong in ({"width": 0}, {"init_scale": 0.0}, {"low": 1.0}, {"share": 1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong)) if "low" not in wrong else "box"):
            SafeSplitConfig(**wrong)
