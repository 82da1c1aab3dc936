"""What is said beside the curve of what was recovered, and of each point."""

from __future__ import annotations

import math

from explorer.engine.attacks.target import Target
from explorer.engine.explanations.assumptions import obstacle
from explorer.engine.explanations.certainty import Certainty
from explorer.engine.explanations.cone import refusal
from explorer.engine.number_words import digits_above, percent
from explorer.engine.scoring import RecallCurve
from explorer.research.image_runs import ImageComparison
from explorer.research.words.explanations import VOID

UNMET = "the points do not meet the assumptions that these weights suggest"

NOT_YET = "Not yet certified."
CERTIFY = "Certify"
CERTIFY_TIP = (
    "How certain is each recovered point? This takes ten seconds and more of a processor that the "
    "class shares, so it is done when you ask for it."
)


def within(here: RecallCurve) -> str:
    """Return how many points are recovered within the one radius, beside how many unseen ones."""
    truth = f"{int(here.found[0])} of {here.n}"
    if not here.controls:
        return f"{truth}; no unseen points to compare with"
    return f"{truth}; of as many unseen points {float(here.chance[0]):.2g}"


def points_found(
    here: RecallCurve, made: Certainty | None = None, word: str = "recovered"
) -> list[str]:
    """Return of each point its nearest claim, whether it is recovered, and how certain."""
    said, matches = [], here.matches[0].tolist()
    for i, (away, match) in enumerate(zip(here.distances.tolist(), matches, strict=True)):
        near = f"nearest claim {away:.2g} away" if away < float("inf") else "no claim of its class"
        sure = "" if made is None else f"; {certainty(made, i)}"
        said.append(f"point {i + 1}: {'' if match >= 0 else 'not '}{word}, {near}{sure}")
    return said


def certainty(made: Certainty, i: int) -> str:
    """Return how certain point i is, or claim i where nobody told the points."""
    if bool(made.certain[i]):
        return f"{made.word}: without it {percent(float(made.radius[i]))} or more is left"
    if made.limit > VOID or not made.tight:
        return "not certified"
    return f"not certified: {set_without(made)}"


def set_without(made: Certainty) -> str:
    """Return what is known of a point that is not certified, where the search was exact."""
    return f"a set as good has no point within {made.half + made.reach:.2g} of it"


def certainty_words(
    target: Target | None,
    share: float | None,
    met: int,
    sure: int | None,
    both: int = 0,
    word: str = "recovered",
    near: float = 0.0,
    placed: int | None = None,
) -> str:
    """Return what is to be said of how certain the points are.

    Args:
        target: the attacked weights; None where there are none.
        share: of the work that is done; None where no work goes on.
        met: how many points are recovered.
        sure: how many are certified, recovered or not; None where that is not known.
        both: how many are recovered and certified.
        word: "hit" where chance is not ruled out.
        near: how far from a certified point the point of another set may lie.
        placed: how many points must be in a place, of any width; None where nobody asked.
    """
    if target is None:
        return ""
    if share is not None:
        return f"● {word}: {met}   ✓ certified: {share:.0%} computed"
    if sure is None:
        return why_none(target)
    if placed and placed > sure:  # of which those certified are the narrow ones
        narrow = f", {sure} of them ✓ within {digits_above(near)}" if sure else ""
        return f"● {word}: {met}   must be in their place: {placed}{narrow}"
    alone, within = sure - both, f"certified within {digits_above(near)}"
    words = f"● {word}: {met}"
    if both:
        words += f", {both if both < met else 'all'} of them ✓ {within}"
    if alone:
        words += f"   ✓ {within}, not {word}: {alone}"
    return words if sure else f"{words}, none certified"


def why_none(target: Target) -> str:
    """Return in a few words why nothing is certified for these weights, or an empty string."""
    if not refusal(target.net) and obstacle(target):
        if target.decay is not None:
            return "Not certified: with weight decay points are on the line alone."
        several = len(target.net.weights) > 2 or target.net.outputs > 1
        many = "weights" if several else "neurons of different directions"
        return f"Not certified at once: too many {many}."
    return ""  # no theorem is spoken of here at all


def recovered_images(made: ImageComparison) -> str:
    """Return in plain words how many training images an attack recovered, and how many clearly."""
    clear = int(made.clear.sum()) if made.by_rank else None
    return images(made.verdict.found, made.verdict.n, made.chance, clear)


def images(found: int, n: int, chance: float, clear: int | None = None) -> str:
    """Return in plain words how many training images are recovered.

    Args:
        found: so many.
        n: of so many.
        chance: the share of unseen images that count too; nan where it is not known.
        clear: how many of them are alike to the eye; None where all that count are.
    """
    said = f"{found} of {n} training images recovered"
    if clear is not None and found:
        said += f", {clear if clear < found else 'all'} of them clearly"
    return said if math.isnan(chance) else f"{said}; chance gives {n * chance:.2g}"
