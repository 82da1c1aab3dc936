"""Explanations of the weights in words: what is determined, and which other points would do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from torch import Tensor

from explorer.engine.attacks.target import Target
from explorer.engine.certificate import Certificate
from explorer.engine.data import Dataset
from explorer.engine.explanations.cone import scope
from explorer.engine.explanations.masses import BAND, FORCED
from explorer.engine.explanations.others import COARSE, RADIUS, OtherSet
from explorer.engine.explanations.splitting import Merging
from explorer.engine.number_words import digits, plain, share

MOST_INPUTS = 2  # of a network with other sets: the margin is cut into pieces of the plane
NO_WEIGHTS = "No weights to explain: train a network first."
FLOOR = 1e-6  # arbitrary: what is left below it depends on how rounding went
VOID = 0.5  # arbitrary: where the points leave more of the weights, nothing follows from them

if TYPE_CHECKING:
    from explorer.research.determined import Determination


def edge(points: Tensor) -> str:
    """Return what is to be known of points at the edge (n,) bool, after a space; "" for none."""
    count = int(points.sum())
    if not count:
        return ""
    which = "1 more is" if count == 1 else f"{count} more are"
    return (
        f" {which} at the edge: the least mass there is within a factor {BAND:g} of {FORCED:.0e} "
        "of the whole, from which it would count."
    )


def certified_count(count: int, of: int) -> str:
    """Return how many points of a network are certified: one count, wherever it is said."""
    return f"{count} of {of} points {'is' if count == 1 else 'are'} certified"


def unfit(left: float) -> str:
    """Return that the points leave so much of the weights that nothing follows."""
    return (
        f"Under the assumptions of the certified radius no points near these explain more than "
        f"{max(0.0, 1 - left):.0%} of the weights, so nothing is proven."
    )


def over_all(made: Determination) -> str:
    """Return what holds of all explanations up to a residual, without sampling."""
    if made.allowed > VOID:
        return unfit(made.allowed)
    far, count = made.farthest, int(made.forced.sum())
    met = f"; one that is {far.distance:.2g} away was found" if made.certainty.tight else ""
    return (
        f"Of explanations with {scope(made.box, made.certainty.top)}, every one that leaves up to "
        f"{made.allowed:.2%} of the weights has mass within {made.within:.2g} of {count} of "
        f"{len(made.forced)} points."
        + (
            f" None is farther than {far.at_most:.2g} from them on average{met}."
            if math.isfinite(far.at_most)
            else ""
        )
    )


def no_other(target: Target, truth: Dataset, made: Certificate | None) -> str:
    """Return why no other set can be looked for; "" where one can."""
    if not truth.n:
        return "There are no points."
    if not target.net.homogeneous or made is None:
        return (
            "With biases beyond its first layer the network is not homogeneous: no theorem says "
            "that a training set explains its weights."
        )
    if not float(made.lam.max()) > 0:
        return "The points explain no part of these weights: no multiplier is positive."
    if truth.d > MOST_INPUTS:
        return f"Other sets are looked for on a line or a plane; got {truth.d} coordinates."
    return ""


def farthest_set(made: OtherSet) -> str:
    """Return how far from the true points those of another set are, and how far any can be."""
    box = f"the box is ±{made.extent:.3g}"
    if not made.other:
        told = "single points may lie further off"
        if made.truth > COARSE:
            told = "but even the true one explains them no better: train longer"
        elif made.at_most >= RADIUS:
            told = f"none lies over {made.at_most:.2g}"
        return (
            "No training set was found that explains the weights as well and lies over "
            f"{made.distance:.2g} from the true one on average: {told} ({box})."
        )
    how, truly = "the same weights", ""
    left = digits(made.residual, ".1e")
    if made.residual < FLOOR:
        left = f"less than {plain(f'{FLOOR:.0e}')}"
    if not made.as_well:
        how = "the weights, less well than the true ones"
        truly = f", the true ones {digits(made.truth, '.1e')}"
    return (
        f"{made.explanation.n} other points explain {how}: on average {made.distance:.2g} from the "
        f"nearest true one, and no such set is farther than {made.at_most:.2g}. They leave "
        f"{left}{truly} unexplained ({box})."
    )


def another(made: OtherSet) -> str:
    """Return whether there is another set, and how far off, in few words: numbers stand apart."""
    if not made.other:
        return "No set as good was found that lies elsewhere as a whole; single points may."
    how = "as well" if made.as_well else "less well"
    return (
        f"{made.explanation.n} other points explain the weights {how}, on average "
        f"{made.distance:.2g} from the nearest true one."
    )


def numbers(made: OtherSet) -> tuple[tuple[str, str], ...]:
    """Return the numbers of another set, each with its name; none where there is no such set."""
    if not made.other:
        return ()
    return (
        ("mean distance from the nearest true point", f"{made.distance:.2g}"),
        ("no such set is farther than", f"{made.at_most:.2g}"),
        ("unexplained by it", share(made.residual)),
        ("unexplained by the true points", share(made.truth)),
        ("looked for up to a coordinate of", f"±{made.extent:.3g}"),
    )


def alike(made: OtherSet) -> str:
    """Return that another set explains the weights as well, or that none does."""
    if not made.other:
        return farthest_set(made)
    return (
        f"{made.explanation.n} other points, on average {made.distance:.2g} from the nearest true "
        "one, explain these weights as well: the weights alone cannot tell the two sets apart."
    )


def merging(made: Merging) -> str:
    """Return what was done to two points, and what it cost."""
    if not made.signed:
        return "Merged to their centroid; nothing in the sum changed."
    return (
        f"A signed merge: the sum keeps its value, but the point has y Φ = {made.q:.3g} instead of "
        "1, so complementary slackness is broken and no max-margin training would leave it so."
    )
