"""What is said beside the curve of what was recovered, and of each point."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from explorer.engine.explanations.certainty import Certainty
from explorer.engine.number_words import digits_above, percent
from explorer.engine.scoring import RecallCurve
from explorer.research.image_runs import ImageComparison
from explorer.research.words.explanations import VOID

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
    return f"{truth}; unseen points on average {float(here.chance[0]):.2g}"


def points_found(here: RecallCurve, made: Certainty | None = None) -> list[str]:
    """Return of each point its nearest claim, whether it is recovered, and how certain."""
    said, matches = [], here.matches[0].tolist()
    for i, (away, match) in enumerate(zip(here.distances.tolist(), matches, strict=True)):
        near = f"nearest claim {away:.2g} away" if away < float("inf") else "no claim of its class"
        sure = "" if made is None else f"; {certainty(made, i)}"
        said.append(f"point {i + 1}: {'' if match >= 0 else 'not '}recovered, {near}{sure}")
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


def certainty_words(made: Certainty, met: NDArray[np.bool_]) -> str:
    """Return how many points are recovered, and how many of these are certified.

    Args:
        made: how certain the points are.
        met: which points (n,) are recovered.
    """
    many = int(met.sum())
    words = f"● recovered: {many}"
    sure = made.certain.numpy()
    both, alone = int((sure & met).sum()), int((sure & ~met).sum())
    within = f"certified within {digits_above(made.half + made.reach)}"
    if both:
        words += f", {both if both < many else 'all'} of them ✓ {within}"
    if alone:
        words += f"   ✓ {within}, not recovered: {alone}"
    return words if both or alone else f"{words}, none certified"


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
