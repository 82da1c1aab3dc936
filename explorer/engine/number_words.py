"""Numbers as they stand in sentences: rounding is never shown as if it were a finding."""

from __future__ import annotations

import math

from explorer.engine.rounding import NOTHING

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
ROUNDING = 1e-9  # of a digit: what division adds to a number that has two
PLAIN = 1e-4  # arbitrary: below, a number is written by a power of ten


def plain(text: str) -> str:
    """Return a formatted number without E-notation.

    >>> plain("1.2e-03"), plain("1.2e-06"), plain("+1e-05"), plain("0.5")
    ('0.0012', '1.2 × 10⁻⁶', '+10⁻⁵', '0.5')
    """
    lead, mark, power = text.partition("e")
    if not mark:
        return text
    if PLAIN <= abs(float(text)) < 1:
        after = len(lead.partition(".")[2]) - int(power)
        return format(float(text), f"{'+' if text[0] == '+' else ''}.{after}f")
    raised = f"10{str(int(power)).translate(RAISED)}"
    sign = lead[0] if lead[0] in "+-" else ""
    return f"{sign}{raised}" if lead.strip("+-") == "1" else f"{lead} × {raised}"


def digits(value: float, form: str = ".2g") -> str:
    """Return a share by its digits in `form`, and "0" below `NOTHING`."""
    return "0" if abs(value) < NOTHING else plain(format(value, form))


def share(value: float) -> str:
    """Return a share in per cent, in plain digits unless it is tiny; rounding is called such.

    >>> share(0.5), share(0.0004), share(3e-7)
    ('50.0%', '0.04%', '3 × 10⁻⁷')
    """
    if value < NOTHING:
        return f"less than {plain(f'{NOTHING:.0e}')}"
    if value >= 1e-3:
        return f"{value:.1%}"
    return f"{plain(f'{100 * value:.0e}')}%" if value >= 1e-5 else plain(f"{value:.0e}")


def coarse_share(value: float) -> str:
    """Return a share in per cent for a headline, where what is tiny is as good as nothing.

    >>> coarse_share(0.21), coarse_share(5e-12)
    ('21.0%', 'less than 0.01%')
    """
    return share(value) if value >= PLAIN else "less than 0.01%"


def per_cent_above(value: float) -> str:
    """Return a share in per cent with two digits, never below it."""
    return f"{digits_above(100 * value)}%"


def digits_above(value: float) -> str:
    """Return a bound from above with two digits, never below it.

    >>> digits_above(0.0403), digits_above(0.07), digits_above(0.0)
    ('0.041', '0.07', '0')
    """
    if value == 0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return plain(format(math.ceil(value / step - ROUNDING) * step, ".2g"))


def percent(share: float) -> str:
    """Return a proven share in per cent, rounded down; a tiny one to its first digit.

    >>> percent(0.0549), percent(0.00062), percent(0.0)
    ('5.4%', '0.06%', '0%')
    """
    if share <= 0 or share >= 1e-3:
        return f"{math.floor(1000 * share) / 10:g}%"
    step = 10.0 ** math.floor(math.log10(100 * share))
    return f"{plain(f'{math.floor(100 * share / step) * step:.0e}')}%"


def count(n: int, noun: str) -> str:
    """Return so many of a thing, such as "1 point" or "2 points"."""
    return f"{n} {noun}" + ("" if n == 1 else "s")
