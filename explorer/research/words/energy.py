"""Energy maps in words: what a map shows, and what stands at a place of it."""

from __future__ import annotations

import numpy as np

from explorer.engine.energy.maps import Split
from explorer.engine.energy.points import LOW, Archetype, Energies
from explorer.engine.energy.questions import Picture, RidgeSummary, StartsSummary
from explorer.engine.number_words import digits
from explorer.engine.rounding import NOTHING

_ARCHETYPES = {
    Archetype.NEEDLE: "a needle: with the others where they are, one place, or a few isolated "
    "ones, explain the weights as well",
    Archetype.FAN: "a fan: with the others where they are, a whole set of places explains the "
    "weights as well",
    Archetype.REDUNDANT: "redundant: it explains nothing that the other points do not",
}


def archetype(made: Archetype) -> str:
    """Return what a map of this archetype means, as the end of a sentence."""
    return _ARCHETYPES[made]


def energies(seen: Energies) -> str:
    """Return what a map of one point shows, with its numbers."""
    return f"This point is {archetype(seen.archetype)}. {_numbers(seen)}"


def _numbers(seen: Energies) -> str:
    home = "" if seen.home is None else f" here and {digits(seen.home)} at its training place"
    return (
        f"Without it {digits(seen.without)} of ‖θ‖² stays unexplained, with it "
        f"{digits(seen.here)}{home}; {100 * seen.low:.3g}% of the places on the map come within "
        f"{LOW:.0%} of that, {100 * seen.below(LOW / 10):.3g}% within {LOW / 10:.1%} (kinks freed "
        f"within {seen.tau:.2g}; below {NOTHING:.0e} is 0)."
        f"{' It stands at the edge of another name.' if seen.at_edge else ''}"
    )


def split(made: Split) -> str:
    """Return what a map of a point split in two shows."""
    share = f"{100 * float(made.explains.mean()):.3g}% of the splits drawn"
    left = f"leave no more of ‖θ‖² than the whole point does ({made.here:.2g})"
    if not made.carries:
        return (
            "This point carries no multiplier, so that nothing of it is to be split. With the "
            f"other points refitted {share} {left}."
        )
    if made.pinned:
        return (
            "This point cannot be split: along no line do both halves stay in its cell and on the "
            f"margin. With the other points refitted {share} {left}."
        )
    far = f"{made.free:.2f}" if np.isfinite(made.free) else "any distance"
    return (
        f"Up to {far} along the line both halves stay on the margin and explain the weights as "
        f"well as the whole point. In that cell they {left}; of all, {share} do, and elsewhere the "
        f"energy is up to {made.values.max():.2g}."
    )


def of_starts(made: StartsSummary) -> str:
    """Return what a map of the starts of an attack shows."""
    return (
        f"The start at the truth leaves {made.truth:.2g} of ‖θ‖² unexplained, unseen points "
        f"{made.heldout:.2g}, noise {made.noise:.2g}. {100 * made.low:.3g}% of {made.count} starts "
        "lie below a hundredth of the highest."
    )


def of_ridge(made: RidgeSummary) -> str:
    """Return what a map of the bilevel loss shows."""
    features = "the last hidden layer" if made.last else "the points themselves"
    return (
        f"Ridge regression on {features}, trained on these candidates: with the point where it is "
        f"the weights are {made.here:.2g} of ‖θ*‖² off, elsewhere up to {made.most:.2g}; "
        f"{100 * made.low:.3g}% of the places lie below a hundredth of that."
    )


def picture(made: Picture) -> str:
    """Return what a map shows; "" for a sketch, of which nothing is to be read."""
    if isinstance(made.about, Energies):
        return _of_point(made.about, made.forced)
    if isinstance(made.about, Split):
        return split(made.about)
    if isinstance(made.about, StartsSummary):
        return of_starts(made.about)
    return "" if made.about is None else of_ridge(made.about)


def _of_point(seen: Energies, forced: float) -> str:
    """Return a map of one point beside what must be there, which has the last word on a name."""
    if forced <= 0:
        return f"{energies(seen)}{_bounds(seen)}"
    amount = "all" if forced > 0.995 else f"{forced:.0%} or more"
    must = (
        f"all sets on the margin that explain the weights as well have {amount} of this point's "
        "multiplier at its place. That certifies nothing."
    )
    if seen.archetype is Archetype.NEEDLE:
        return f"{energies(seen)}{_bounds(seen)} And {must}"
    return (
        f"This point is a needle: {must} The energy alone does not show it, for it asks for no "
        "margin: elsewhere it needs multipliers off the margin, which no KKT point has. "
        f"{_numbers(seen)}{_bounds(seen)}"
    )


def _bounds(seen: Energies) -> str:
    """Return where the point would be better off, and which energies are upper bounds."""
    text = ""
    if seen.least < 0.9 * seen.here and seen.here > 1e-6:
        text += f" The lowest place leaves less than the point where it is now: {seen.least:.2g}."
    if seen.cut:
        text += (
            f" {seen.cut} of the points lie on more neurons than can all be freed: energies are "
            "upper bounds."
        )
    if seen.crowded and seen.cut:
        text += (
            f" So do {seen.crowded} of the places on the map, where what is drawn is an upper "
            "bound."
        )
    elif seen.crowded:
        text += (
            f" {seen.crowded} of the places lie on more neurons than can all be freed: what is "
            "drawn there is an upper bound."
        )
    return text
