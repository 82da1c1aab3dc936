"""Numbers as they stand in sentences: rounding is never shown as if it were a finding."""

from __future__ import annotations

import math

from explorer.engine.rounding import NOTHING


def digits(value: float, form: str = ".2g") -> str:
    """Return a share by its digits in `form`, and "0" below `NOTHING`."""
    return "0" if abs(value) < NOTHING else format(value, form)


def share(value: float) -> str:
    """Return a share in per cent, in plain digits unless it is tiny; rounding is called such."""
    if value < NOTHING:
        return f"less than {NOTHING:.0e}"
    return f"{value:.1%}" if value >= 1e-3 else f"{value:.0e}"


def per_cent_above(value: float) -> str:
    """Return a share in per cent with two digits, never below it."""
    if value == 0:
        return "0%"
    step = 10.0 ** (math.floor(math.log10(100 * value)) - 1)
    return f"{math.ceil(100 * value / step) * step:.2g}%"
