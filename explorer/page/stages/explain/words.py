"""What the explain stage says of points, of the one in hand, and of which are certified."""

from __future__ import annotations

import numpy as np

from explorer.engine.classes import label_of
from explorer.engine.explanations.certainty import Certainty, RadiusMap
from explorer.engine.explanations.cone import scope
from explorer.engine.explanations.others import RADIUS, Rivals
from explorer.engine.network import Network
from explorer.engine.number_words import PLAIN, digits_above, plain, share
from explorer.research.explained import Explained
from explorer.research.words import explanations
from explorer.style import CLASSES

LIKELY = "How certain is a point here?"
FARTHEST, CERTIFIED = "Farthest other set", "Which points are certified?"
SPLIT = "Which can become two?"
OTHERS = "Other questions"
TITLE, NOTE = "Can this point become two?", "a dot for each point that carries weight"
NOTE_OF_CLASSES = "a dot per point and class beside it"
CARRIED, MULTIPLIER = "Multiplier λ of each point", "how strongly it carries the weights"
DRAG, WALL = "While you drag", "wall"
UP_TO_WALL = "up to the wall both halves explain the weights as well"


def signs(state: Explained) -> str:
    """Return what the signs of points mean that are there."""
    still = int(state.pinned.sum())
    both = ("◉ can become two", state.now.n - still), ("⊖ cannot be split", still)
    return "   ".join(sign for sign, count in both if count)


def points(state: Explained) -> list[str]:
    """Return of each point whether it can be split, and its multiplier."""
    return [
        f"point {i + 1}{_beside(state, i)}: {'cannot be split' if fixed else 'can become two'}, "
        f"λ = {float(lam):.3g}"
        for i, (fixed, lam) in enumerate(zip(state.pinned, state.now.lam, strict=True))
    ]


def note(state: Explained) -> str:
    """Return what each dot stands for."""
    return NOTE if state.net.outputs == 1 else NOTE_OF_CLASSES


def _beside(state: Explained, i: int) -> str:
    """Return the class that point i borders on, where there are several."""
    if state.net.outputs == 1:
        return ""
    return f", beside {CLASSES[label_of(int(state.now.cover[i].argmin()))].sign}"


def hand(state: Explained) -> str:
    """Return what is known of the point in hand; "" for none."""
    if state.slide is not None:
        slide = state.slide
        ends = [
            f"{v:.2f}" if np.isfinite(v) else "∞" for v in (slide.extent.minus, slide.extent.plus)
        ]
        by = f"{slide.at:+.2f}".replace("-", "−")
        if ends == ["0.00", "0.00"]:
            return f"Dragged by {by}. Any move makes a neuron switch."
        clear = "" if state.net.outputs == 1 else " and no third class comes nearer"
        return f"Dragged by {by}: no neuron switches{clear} from −{ends[0]} to +{ends[1]}."
    if state.selected is None:
        return ""
    i = state.selected
    if state.free:
        return f"Point {i + 1} is in hand: drag it anywhere."
    if bool(state.pinned[i]):
        return f"Point {i + 1} cannot be split: {_freedom(state.net, state.kinks(i))}."
    return f"Point {i + 1} is in hand: drag it along its thick line."


def cannot(net: Network, kinks: int) -> str:
    """Return why a point with so many kinks is not split."""
    return (
        f"This point cannot be split: {_freedom(net, kinks)}. Drag it anywhere (Shift) to see what "
        "breaks."
    )


def _freedom(net: Network, kinks: int) -> str:
    if net.d == 1:
        return "on a line the margin is made of points"
    if kinks > 1:
        return f"{kinks} neurons stand on it"
    if kinks == 1:
        return "a neuron stands on it, across the level line"
    third = "" if net.outputs == 1 else ", or a third class is as near"
    return f"a neuron’s line runs through it, across the level line{third}"


def radii(drawn: RadiusMap) -> str:
    """Return what the colours of a map of radii mean."""
    near = digits_above(drawn.half + drawn.reach)
    return (
        f"Share of the weights that a set with {scope(drawn.box, drawn.top)} leaves unexplained "
        f"without a point within {near} of here, at least. Without colour: a point there is not "
        "needed."
    )


def forced_words(rivals: Rivals, count: int, of: int) -> str:
    """Return how many points all sets on the margin share that are as good, over which sets."""
    tolerance = plain(f"{rivals.allowed:.0e}")
    which = f"{count or 'none'} {'are' if count > 1 else 'is'}"
    return (
        f"Nothing is certified of these weights. Of {of} points {which} in every set that was "
        f"bounded. These sets are on the margin, within ±{rivals.extent:g}, explain the "
        f"weights to {tolerance}, and have a point within {RADIUS:g} of it, with at least "
        "the share of λ written there."
    )


def certified_words(count: int, of: int, made: Certainty, left: float) -> tuple[str, str]:
    """Return how many points are certified; and over which sets: box, band, reach, residual."""
    near = digits_above(made.half + made.reach)
    told = f"{explanations.certified_count(count, of)} to within {near}"
    if not count:
        some = f"For each there is a set with {scope(made.box, made.top)} that does without it."
        sure = made.tight and made.limit <= explanations.VOID
        return told, some if sure else "That does not say that they could be missing."
    each = "it" if count == 1 else "each"
    little = f", {share(left)}," if left >= PLAIN else ""
    return told, (
        f"Every set with {scope(made.box, made.top)} that leaves as little of the weights "
        f"unexplained as these points{little} has a point within {near} of {each}, with at least "
        "the share of λ written there."
    )
