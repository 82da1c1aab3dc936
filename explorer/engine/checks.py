"""Checks of settings, each a ValueError that says the field, what it must be, and what it is."""

from __future__ import annotations

import math


def one_of(config: object, name: str, *allowed: str) -> None:
    """The field is one of these words."""
    if getattr(config, name) not in allowed:
        raise ValueError(
            f"{name} must be one of {', '.join(allowed)}; got {getattr(config, name)!r}"
        )


def positive(config: object, *names: str) -> None:
    """The fields are finite and above 0, or None."""
    for name in names:
        value = getattr(config, name)
        if value is not None and not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be positive; got {value}")


def not_negative(config: object, *names: str) -> None:
    """The fields are finite and at least 0."""
    for name in names:
        value = getattr(config, name)
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must not be negative; got {value}")


def even_candidates(m: int) -> None:
    """M is even and at least 2: half the candidates of each of two labels."""
    if m < 2 or m % 2:
        raise ValueError(
            f"m must be even (half the candidates per label); got m={m}. Try m={max(2, m + 1)}."
        )
