"""What the explain stage says of points, of the one in hand, and of what every set shares."""

from __future__ import annotations

import numpy as np

from explorer.engine.attacks.certified import fits
from explorer.engine.attacks.target import Target
from explorer.engine.explanations.certainty import RadiusMap
from explorer.engine.explanations.programs import Sample
from explorer.research.explained import Explained
from explorer.research.words.numbers import plain, share

TITLE, NOTE = "Can this point be somewhere else?", "each dot is one of the filled points"
DRAG, WALL = "While you drag", "wall: a neuron switches"
UP_TO_WALL = "up to the wall both halves explain the weights as well"


def counts(state: Explained) -> str:
    """Return how many points are free, and how many are pinned."""
    pinned = int(state.pinned.sum())
    return f"● free along a line: {state.now.n - pinned}   ✕ pinned where they are: {pinned}"


def points(state: Explained) -> list[str]:
    """Return of each point whether it can move, and its multiplier."""
    return [
        f"point {i + 1}: {'pinned' if fixed else 'free along a line'}, λ = {float(lam):.3g}"
        for i, (fixed, lam) in enumerate(zip(state.pinned, state.now.lam, strict=True))
    ]


def hand(state: Explained) -> str:
    """Return what is known of the point in hand, or how to take one."""
    if state.slide is not None:
        slide = state.slide
        ends = [
            f"{v:.2f}" if np.isfinite(v) else "∞" for v in (slide.extent.minus, slide.extent.plus)
        ]
        by = f"{slide.at:+.2f}".replace("-", "−")
        return f"Dragged by {by}: no neuron switches from −{ends[0]} to +{ends[1]}."
    if state.selected is None and bool(state.pinned.all()):
        return "No point has a line to go along: choose Anywhere, and drag a filled point."
    if state.selected is None:
        return "Click a filled point on the plane and drag it along its green line."
    i = state.selected
    if bool(state.pinned[i]):
        count = state.kinks(i)
        stand = "neuron stands" if count == 1 else "neurons stand"
        return f"Point {i + 1} is pinned: {count} {stand} on it."
    return f"Point {i + 1} is in hand: drag it along its green line."


def no_radii(target: Target) -> str:
    """Return why there is no map of radii for these weights, or an empty string."""
    return fits(target)


def radii(drawn: RadiusMap) -> str:
    """Return what the colours of a map of radii mean."""
    near = f"{drawn.half + drawn.reach:.2g}"
    return (
        f"Share of the weights that stays unexplained without a point within {near} of here, at "
        "least. Without colour: no point is proven there."
    )


def forced(sample: Sample, count: int, of: int) -> str:
    """Return how many points every training set has, over which sets."""
    tolerance = plain(f"{sample.tolerance:.0e}")
    sampled = "" if sample.exact else ", up to sampling"
    if not count:
        return (
            f"None of these {of} points is certain{sampled}. Training sets on the margin within "
            f"±{sample.extent:g} that explain the weights to {tolerance} were bounded."
        )
    return (
        f"{_certain(count, of)}: every training set on the margin that explains the weights has "
        f"a point within {sample.radius:g} of {_each(count)}{sampled}. Those within "
        f"±{sample.extent:g} that explain the weights to {tolerance} have at least the share of λ "
        "written there."
    )


def forced_exactly(count: int, of: int, allowed: float, near: float) -> str:
    """Return how many points every explanation has, over all explanations up to `allowed`."""
    if not count:
        return (
            f"None of these {of} points is proven certain. Of all sets that leave up to "
            f"{share(allowed)} of the weights unexplained, none is left out."
        )
    return (
        f"{_certain(count, of)}: every set that leaves up to {share(allowed)} of the weights "
        f"unexplained has a point within {near:.2g} of {_each(count)}. At least the share of λ "
        "written there lies there; no explanation is left out."
    )


def _certain(count: int, of: int) -> str:
    verb = "is" if count == 1 else "are"
    return f"{count} of {of} points {verb} certain (ringed)"


def _each(count: int) -> str:
    return "it" if count == 1 else "each"
