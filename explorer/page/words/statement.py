"""How a page writes what it has to say: of weights on their way, and a scale of colours."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from explorer.engine.certificate import Certificate, Light
from explorer.engine.number_words import share

ENOUGH = 0.15  # unexplained share up to which weights on their way are attacked; arbitrary
NOT_AT_END = "training is not at its end yet"  # of weights whose light is APPROACHING


def is_on_its_way(made: Certificate) -> bool:
    """Return whether the points explain enough of weights not near a KKT point to attack them."""
    return not is_off_margin(made) and made.residual <= ENOUGH


def is_off_margin(made: Certificate) -> bool:
    """Return whether points off the margin keep weights from a KKT point, and not what is left."""
    return made.light not in (Light.EXACT, Light.NEAR) and made.slackness > made.residual


def what_is_left(made: Certificate, decay: bool = False) -> str:
    """Return what keeps weights from a KKT point; `decay`: every point leaves a trace there."""
    if is_off_margin(made) and not decay:  # a small share would contradict what follows
        off = share(made.slackness)
        return f"The points that carry the weights lie on average {off} beyond the margin"
    return f"The points leave {share(made.residual)} of the weights unexplained"


def scale_html(stops: Sequence[str], marks: Sequence[str], above: str = "") -> str:
    """Return a legend of colours as HTML: `stops` from left to right, below them `marks`."""
    words = "".join(f"<span>{escape(mark)}</span>" for mark in marks)
    bar = f"<div style='background:linear-gradient(to right, {', '.join(stops)})'></div>"
    return f"{above}<div class='mx-scale'>{bar}<div>{words}</div></div>"
