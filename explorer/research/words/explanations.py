"""Explanations of the weights in words: what is determined, and which other points would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from explorer.engine.explanations.alternatives import BAND, FORCED, AsWell
from explorer.engine.explanations.cone import scope
from explorer.engine.explanations.programs import AS_WELL, COARSE, Farthest, Scope
from explorer.engine.explanations.splitting import Merging
from explorer.engine.numbers import digits

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


def as_well(made: AsWell) -> str:
    """Return which other set explains the weights as well as the true points, and how far it is."""
    scope = _sampling(made.scope)
    if not made.other:
        return (
            "No training set was found that explains the weights as well as the true points and "
            f"is over {made.distance:.2g} away from them on average; none is farther than "
            f"{made.at_most:.2g} (box {scope})."
        )
    within = "" if made.truth >= AS_WELL else f", up to {AS_WELL:.0e}"
    return (
        f"{made.explanation.n} other points explain the weights as well{within}, "
        f"{made.distance:.2g} from the nearest true one on average; no such set is farther than "
        f"{made.at_most:.2g} (box {scope})."
    )


def certified(count: int, of: int) -> str:
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
        f"{len(made.forced)} points. None is farther than {far.at_most:.2g} from them on "
        f"average{met}."
    )


def farthest(made: Farthest) -> str:
    """Return how far the points of another explanation are from the true ones."""
    scope = _sampling(made.scope)
    if not made.other:
        told = "the weights tell these points"
        if made.scope.tolerance > COARSE:
            told = "but even the true one explains them no better: train longer"
        return (
            "No training set was found that explains the weights and lies over "
            f"{made.distance:.1g} from the true one on average: {told}. It would be on the margin, "
            f"and explain them to {made.scope.tolerance:.0e} (the box is {scope})."
        )
    how, truly = "the same weights", ""
    if not made.as_well:
        how = "the weights, less well than the true ones"
        truly = f", the true ones {digits(made.truth, '.1e')}"
    return (
        f"{made.explanation.n} other points explain {how}: on average {made.distance:.2g} from the "
        f"nearest true one. In the program they miss {digits(made.residual, '.1e')}{truly} (the "
        f"box is {scope})."
    )


def merging(made: Merging) -> str:
    """Return what was done to two points, and what it cost."""
    if not made.signed:
        return "Merged to their centroid; nothing in the sum changed."
    return (
        f"A signed merge: the sum keeps its value, but the point has y Φ = {made.q:.3g} instead of "
        "1, so complementary slackness is broken and no max-margin training would leave it so."
    )


def _sampling(scope: Scope) -> str:
    return f"±{scope.extent:.3g}; {scope.points} margin points sampled"
