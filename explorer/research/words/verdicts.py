"""Verdicts in words: how many points claims recover, and how many would by chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from explorer.engine.controls import Origin, least_p
from explorer.engine.images import MEASURES, ImageVerdict, Measure
from explorer.engine.number_words import count as plural
from explorer.engine.number_words import plain
from explorer.engine.scoring import LEVEL, MIN_POINTS, Doubt, Kind, Unknowable, Verdict
from explorer.engine.scoring import doubt as doubt_of
from explorer.research.words import explanations

_KINDS = {
    Kind.FOUND: "Recovered: half of the points in reach or more, half of the claims right, chance "
    "ruled out.",
    Kind.AMBIGUOUS: "Ambiguous: too few points are matched, or too many claims match no point.",
    Kind.NOT_RECOVERABLE: "Not recoverable: most points lie off the margin and leave no trace to "
    "find.",
    Kind.CANNOT_KNOW: "Cannot know: this comparison would say the same of a good and a bad attack.",
}
_MADE = {
    Origin.HELD_OUT: "of unseen points",
    Origin.RESAMPLED: "resampled around the points",
    Origin.TURNED: "made by turning the points about their centre",
    Origin.SHIFTED: "made by shifting the points as one",
    Origin.POOLED: "drawn from the training and the unseen points together",
    Origin.REPHASED: "made by moving the points along their outline",
    Origin.SLID: "made by moving each point towards its neighbours",
    Origin.FOLLOWED: "made by moving the points along their strokes",
}


def kind(made: Kind) -> str:
    """Return what a kind of verdict means."""
    return _KINDS[made]


def is_sure(made: Verdict | None) -> bool:
    """Return whether chance is ruled out for the points that are recovered, if any are."""
    return made is None or made.beyond_chance or not made.found


def sets(origin: Origin, count: int) -> str:
    """Return how many controls there are and whence, such as "99 sets of unseen points"."""
    noun = "set" if count == 1 else "sets"
    if origin in _MADE:
        return f"{count} {noun} {_MADE[origin]}"
    return f"{count} {origin.value} {noun}"


def controls(made: Verdict) -> str:
    """Return what stood for chance."""
    return sets(made.origin, made.controls)


def verdict(made: Verdict) -> str:
    """Return what may be said of claims, with the numbers."""
    if isinstance(made, ImageVerdict):
        return images({made.measure: made}, made.measure)
    if made.why_not is not None:
        return _why_not(made, made.why_not)
    text = (
        f"{made.found} of {made.n} points recovered within {made.radius:g}; "
        f"chance recovers {made.chance:.2g} ({controls(made)}, p = {made.p_value:.2g}). "
        f"{made.found} of {made.claims} claims match a point."
    )
    if made.certified is not None and made.found:
        text += f" {explanations.certified_count(made.certified, made.n)}"
        why = (
            "no explanation of the weights in the box and margins of the certificate, as good as "
            "that by the true points, does without a point there"
        )
        text += f": {why}." if made.certified else "."
    if made.undecided:
        text += f" Rounding decides on {made.undecided}, at the edge of the radius."
    if made.in_reach is not None and made.reached is not None and made.in_reach < made.n:
        met = made.found - made.reached
        missed = f", and {met} of them lie at claims by chance" if met else ""
        text += (
            f" {made.in_reach} lie on the margin or carry a multiplier; the other "
            f"{made.n - made.in_reach} leave no trace for this attack{missed}."
        )
    return text + doubt(made.p_value, made.controls)


def starts(count: int, together: int, diverged: int) -> str:
    """Return how many starts came to an end, and how they went."""
    how = f"{together} at once, as many as the memory takes"
    if together >= count + diverged:
        how = "all at once"
    text = f"{count}, {how if together > 1 else 'one after another'}"
    return text if not diverged else f"{text}; {diverged} more diverged and claim nothing"


def union(made_by: Sequence[int], count: int) -> str:
    """Return how many places so many starts claim, and how many of these most starts claim.

    `made_by`: by how many starts each place is claimed.
    """
    often = sum(2 * number >= count for number in made_by)
    return f"{len(made_by)} places, {often} of them claimed by half of the starts or more"


def best_start(seed: int, found: int, n: int, count: int, p_value: float) -> str:
    """Return how many points the best of so many starts recovers, with the p-value of the best."""
    return (
        f"{found} of {n}, by the start of seed {seed} (p = {p_value:.2g}, as the best of {count} "
        "starts)"
    )


def on_cpu(title: str) -> str:
    """Return that an attack has no program for a device."""
    return f"{title} has no program for a device: it ran on the CPU."


def doubt(p_value: float, count: int) -> str:
    """Return why so many controls do not rule chance out, after a space; "" where they do."""
    why = doubt_of(p_value, count)
    if why is Doubt.FEW_CONTROLS:
        return (
            f" With {plural(count, 'control')} p cannot be below "
            f"{least_p(count):.2g}: too few to rule chance out, which takes {round(1 / LEVEL) - 1} "
            "or more."
        )
    return "" if why is None else " That is not shown to be better than chance."


def _why_not(made: Verdict, why: Unknowable) -> str:
    if why is Unknowable.NO_CLAIMS:
        return (
            "Nothing is claimed: no candidate passes the attack's own test (on the margin with a "
            "multiplier of its own, or needed by the threshold)."
        )
    if why is Unknowable.FEW_POINTS:
        return (
            f"No comparison with chance: it takes {MIN_POINTS} points or more, and there "
            f"{'is' if made.n == 1 else 'are'} {made.n}. A proof needs none."
        )
    if why is Unknowable.NO_CONTROLS:
        return "There are no controls, so chance is not measured: take `control_sets(truth)`."
    return (
        f"{whence(made.origin).capitalize()} points alone recover {made.chance:.2g} of {made.n} "
        f"points within {made.radius:g}: the points lie too close for this radius. Take a smaller "
        "one."
    )


def whence(origin: Origin) -> str:
    """Return what controls of an origin are made of, in a word."""
    return "unseen" if origin is Origin.HELD_OUT else origin.value


def images(made: Mapping[Measure, ImageVerdict], measure: Measure) -> str:
    """Return what may be said of images by the measure that was named, and the others beside it."""
    main = made[measure]
    if main.why_not is not None:
        return "There are no unseen images, so chance is not measured."
    others = "; ".join(
        f"{MEASURES[name]}: {one.found} of {one.n}, {_unseen(one)}"
        for name, one in made.items()
        if name != measure
    )
    text = f"{_match_words(main)}, {main.share:.0%}; {_unseen(main)}.{_image_doubt(main)}"
    return f"{text} By other measures: {others}." if others else text


def image_rule(made: ImageVerdict) -> str:
    """Return in a plain sentence which images count as found, and what is in doubt."""
    if made.measure == "rank":
        rule = f"Recovered: of {made.n + made.unseen} images the nearest to one the attack made"
    else:
        rule = f"Recovered: alike to one the attack made, {MEASURES[made.measure]}"
    return f"{rule}.{_image_doubt(made)}"


def _match_words(made: ImageVerdict) -> str:
    """Return how many images are matched, and what that means."""
    if made.measure == "rank":
        return f"{made.found} of {made.n} training images are the nearest of all to a candidate"
    return f"{made.found} of {made.n} training images are matched ({MEASURES[made.measure]})"


def _unseen(made: ImageVerdict) -> str:
    """Return how many unseen images are matched."""
    most = f"at most {made.most} in a set, " if made.controls > 1 else ""
    p = plain(f"{made.p_value:.2g}")
    return f"of {made.unseen} unseen images {made.of_controls:.1%} ({most}p = {p})"


def _image_doubt(made: ImageVerdict) -> str:
    """Return why chance is not ruled out, or what is missing otherwise, after a space."""
    if made.doubt is Doubt.FEW_CONTROLS:
        sets = plural(made.controls, "set")
        return f" With {sets} of unseen images p cannot be below {made.least:.2g}."
    if made.doubt is not None:
        return " That is not shown to be better than chance."
    if made.kind is Kind.AMBIGUOUS:
        return " The candidates know this training set, and yet most images were not found."
    return ""
