"""How a page writes what it has to say: a scale of colours, and answers with a fold."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from explorer.engine.certificate import Certificate

OFF_THE_MARGIN = "Points off the margin still carry part of the weights"
ENOUGH = 0.15  # unexplained share up to which weights on their way are attacked; arbitrary
ON_THE_WAY = "on the way to a KKT point, not there yet"  # of weights whose light is APPROACHING


def is_on_its_way(made: Certificate) -> bool:
    """Return whether the points explain enough of weights not near a KKT point to attack them."""
    return made.slackness <= made.residual <= ENOUGH


def scale_html(stops: Sequence[str], marks: Sequence[str], above: str = "") -> str:
    """Return a legend of colours as HTML: `stops` from left to right, below them `marks`."""
    words = "".join(f"<span>{escape(mark)}</span>" for mark in marks)
    bar = f"<div style='background:linear-gradient(to right, {', '.join(stops)})'></div>"
    return f"{above}<div class='mx-scale'>{bar}<div>{words}</div></div>"


def folded_html(words: str) -> str:
    """Return an answer as HTML: its first sentence in sight, the numbers of experts in a fold.

    >>> folded_html("Two points are free. They leave 3% of the norm.").count("<details")
    1
    """
    first, _, rest = words.partition(". ")
    if not rest:
        return escape(words)
    fold = f"<summary>Numbers</summary>{escape(rest)}"
    return f"{escape(first)}. <details class='mx-more'>{fold}</details>"
