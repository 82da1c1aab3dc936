"""What a headline is made of, and how it writes counts and shares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from explorer.research.words.numbers import share

ON_THE_WAY = "on the way to a KKT point, not there yet"  # of weights whose light is APPROACHING


@dataclass(frozen=True)
class Action:
    """The next sensible thing: its key in `page.play.ACTIONS`, and the words of its button."""

    key: str
    label: str


@dataclass(frozen=True)
class Headline:
    """What a page says of a frame.

    Attributes:
        title: the result in plain words.
        words: a sentence or two under it.
        tone: "", "good", "warn" or "bad".
        fold: names and values of the numbers for experts.
        action: the next sensible thing, or None.
    """

    title: str
    words: str
    tone: str = ""
    fold: tuple[tuple[str, str], ...] = ()
    action: Action | None = None


def folded(words: str) -> str:
    """Return an answer as HTML: its first sentence in sight, the numbers of experts in a fold.

    >>> folded("Two points are free. They leave 3% of the norm.").count("<details")
    1
    """
    first, _, rest = words.partition(". ")
    if not rest:
        return escape(words)
    fold = f"<summary>Numbers</summary>{escape(rest)}"
    return f"{escape(first)}. <details class='mx-more'>{fold}</details>"


def count(n: int, noun: str) -> str:
    """Return so many of a thing, such as "1 point" or "2 points"."""
    return f"{n} {noun}" + ("" if n == 1 else "s")


def explained(residual: float) -> str:
    """Return the share explained where `residual` of the norm is left, rounded down."""
    return f"{math.floor(1000 * (1 - min(residual, 1.0))) / 10:g}%"


def left(residual: float) -> str:
    """Return the share left unexplained."""
    return share(residual)
