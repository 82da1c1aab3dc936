"""A search for settings in words: a trial, and whether its settings find more than the defaults."""

from __future__ import annotations

from explorer.research.runs import RADIUS, Attacked
from explorer.research.tuning import Trial


def trial(made: Trial) -> str:
    """Return what the weights tell of a trial."""
    return f"{made.number}: residual {made.residual:.3g}, agreement {made.agreement:.3g}"


def comparison(tuned: Attacked, usual: Attacked) -> str:
    """Return whether tuning found more, or why that is not known without the truth."""
    if tuned.scores is None or usual.scores is None:
        return (
            "Without the points nobody can say whether the tuned settings find more of them than "
            "the defaults."
        )
    at = tuned.scores[0].radii.index(RADIUS)
    a, b = (int(done.scores[0].found[at]) for done in (tuned, usual) if done.scores)
    word = "more than" if a > b else "fewer than" if a < b else "as many as"
    n = len(tuned.scores[0].distances)
    return (
        f"From a fresh noise the tuned settings found {a} of {n} points within {RADIUS:g}, {word} "
        f"the defaults, which found {b}."
    )
