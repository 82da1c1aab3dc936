"""An audit in words: the verdict, and which assumptions of the theory the model meets."""

from __future__ import annotations

import math
from typing import NamedTuple

from explorer.engine.certificate import Light
from explorer.engine.controls import Origin
from explorer.engine.explanations.assumptions import THRESHOLD
from explorer.engine.explanations.cone import refusal
from explorer.engine.images import ImageVerdict
from explorer.engine.ranks import FEW_COORDINATES, FOUND_SHARE, LEAST, RankVerdict
from explorer.engine.scoring import LEVEL, Unknowable, Verdict
from explorer.research.audit.result import Audit, AuditAttack
from explorer.research.words import explanations, verdicts, weights

NEAR_TARGETS = 0.25  # arbitrary: of outputs to the targets 0 and 1 of a training


class Assumption(NamedTuple):
    """One assumption of the theory: its name, whether it is met (None: not known), and why."""

    name: str
    met: bool | None
    words: str

    @property
    def standing(self) -> str:
        """Return "met", "not met" or "not known"."""
        return {True: "met", False: "not met", None: "not known"}[self.met]


def sentence(made: Audit) -> str:
    """Return what the weights give away, with the numbers."""
    wrong = int((made.q <= 0).sum())
    errors = (
        f"The model gets {wrong} of {made.data.n} training points wrong: no theorem leads such "
        "weights to a KKT point, and attacks took the median margin of the others. "
        f"{_order(made)}. {_remedy(made, wrong)}"
        if wrong and made.tried
        else ""
    )
    repeats = _repeats(made) if made.repeats else ""
    return " ".join(filter(None, (_verdict(made), errors, repeats)))


def _repeats(made: Audit) -> str:
    """Return how many of the points given are repeats."""
    return (
        f"{made.repeats} of the {made.data.n + made.repeats} points given are repeats of others; "
        "each point counts once."
    )


def _verdict(made: Audit) -> str:
    """Return what the weights give away of the points that are no repeats."""
    wrong, n = int((made.q <= 0).sum()), made.data.n
    if wrong and not made.tried:
        return (
            f"The model gets {wrong} of {n} training points wrong, so there is no margin and no "
            f"attack was run. {_order(made)}. {_remedy(made, wrong)}"
        )
    best = made.best
    if best is None or best.verdict is None:
        why = next((one.message for one in made.tried if one.message), "none fits this model.")
        return f"No attack has run: {why}"
    verdict, count = best.verdict, sum(one.verdict is not None for one in made.tried)
    if verdict.why_not is not None:
        return f"Cannot know. {_unknown(made, verdict)}{determination(made)}"
    several = f" for the best of {count} attacks" if count > 1 else ""
    p_value = f"{verdicts.controls(verdict)}, p = {made.p_value:.2g}{several}"
    if isinstance(verdict, ImageVerdict):
        return _by_images(made, best, verdict, count)
    if isinstance(verdict, RankVerdict):
        return _by_ranks(made, best, verdict, p_value)
    numbers = (
        f"{best.title} recovers {verdict.found} within {length(made)}, and {verdict.found} of its "
        f"{verdict.claims} claims are right; {chance(verdict)} ({p_value})."
    )
    known = determination(made)
    if made.p_value <= LEVEL:
        return f"The weights give away {verdict.found} of {n} training points. {numbers}{known}"
    if made.data.d > FEW_COORDINATES:
        return (
            f"Cannot know. {numbers} In {made.data.d} coordinates claims may know points and lie "
            f"farther away: give held-out points, {LEAST} or more of each class, and distances to "
            "them are compared."
        )
    if verdict.origin is Origin.POOLED and not verdict.chance and verdict.found:
        least = held_out_needed(verdict.found, n, LEVEL / count)
        return (
            f"Cannot know. {numbers} None of the held-out points is recovered, and yet there are "
            f"too few of them for a p of {LEVEL:g}: with {verdict.found} of {n} recovered it takes "
            f"about {least}. Give as many, or none.{known}"
        )
    begin = "Nothing more than chance was found."
    sure = sum(way in (CERTIFIED, MISSED) for way in standings(made))
    if sure and made.determined is not None and made.determined.allowed <= explanations.VOID:
        begin = (
            f"The weights determine {sure} of {n} training points, and yet no attack found more "
        )
        begin += "than chance would."
    return (
        f"{begin} {numbers}{known} That does not show that the points are safe: another attack may "
        "find more."
    )


def _by_ranks(made: Audit, best: AuditAttack, verdict: RankVerdict, p_value: str) -> str:
    """Return the verdict by ranks; the p-value is that of the best attack, corrected."""
    met = f"than to {verdict.held_out} held-out points of the same classes and margins"
    ranks = f"(mean logarithm of the ranks; {p_value})"
    if made.p_value <= LEVEL:
        return (
            "The weights give away something of the training points: claims of "
            f"{best.title} lie nearer to them {met} {ranks}. {_near(verdict)}"
        )
    return (
        f"Nothing more than chance was found. Claims of {best.title} lie no nearer to the training "
        f"points {met}, as far as ranks tell {ranks}. {_near(verdict)} That does not show that the "
        "points are safe: another attack may find more."
    )


def _by_images(made: Audit, best: AuditAttack, verdict: ImageVerdict, count: int) -> str:
    """Return the verdict on images, counted by rank."""
    begin, end = (
        "Nothing more than chance was found.",
        (" That does not show that the images are safe: another attack may find more."),
    )
    if made.p_value <= LEVEL:
        begin, end = f"The weights give away {verdict.found} of {verdict.n} training images.", ""
    several = f" For the best of {count} attacks p is {made.p_value:.2g}." if count > 1 else ""
    return f"{begin} {best.title}: {verdicts.verdict(verdict)}{several}{end}"


def _near(verdict: RankVerdict) -> str:
    """Return how many points are found by their ranks."""
    return (
        f"{verdict.found} of {verdict.n} are nearer to a claim than {1 - FOUND_SHARE:.0%} of the "
        f"held-out points of their class; chance alone brings {verdict.chance:.2g}."
    )


def held_out_needed(found: int, n: int, level: float) -> int:
    """Return of how many held-out points none must be met for a p of `level`.

    The chance that `found` recovered points, drawn from n and these, all are among the n.
    """
    rest = 0
    while math.prod((n - k) / (n + rest - k) for k in range(found)) > level:
        rest += 1
    return rest


def chance(verdict: Verdict) -> str:
    """Return how many points that stand for chance are recovered."""
    if verdict.origin is Origin.POOLED:
        return f"of as many held-out points they recover {verdict.chance:.2g}"
    return f"chance recovers {verdict.chance:.2g}"


def _unknown(made: Audit, verdict: Verdict) -> str:
    """Return why nothing can be said, lengths as shares of the spread."""
    if isinstance(verdict, RankVerdict) and verdict.why_not is Unknowable.NO_CONTROLS:
        return _no_ranks(verdict)
    if verdict.why_not is not Unknowable.CROWDED:
        return verdicts.verdict(verdict)
    return (
        f"{verdict.chance:.2g} of {verdict.n} points have one of as many "
        f"{verdicts.whence(verdict.origin)} points within {length(made)}: too near for this "
        "radius. Take a smaller one."
    )


def _no_ranks(verdict: RankVerdict) -> str:
    """Return why held-out points do not stand for chance."""
    if verdict.fewest < LEAST:
        return (
            "Claims are ranked by their distances to training and to held-out points of one class "
            f"and margin, which takes {LEAST} held-out points or more of each class that have the "
            f"margin of the training points; of one class there are {verdict.fewest}. Give more."
        )
    return (
        "The held-out points are not of the source of the training points: distances between "
        f"points tell the two apart (p = {verdict.source_p:.2g}). Give points of the same source."
    )


def _remedy(made: Audit, wrong: int) -> str:
    """Return what to do about points on the wrong side."""
    one = made.net.outputs == 1
    if one and wrong == made.data.n:
        return "So they all are on the other side: name the classes the other way round (classes)."
    train = "Train until all are right, or name the classes in the order of the model (classes)."
    aims = (made.data.y > 0).double()
    if one and bool(((made.q * made.data.y - aims).abs() <= NEAR_TARGETS).all()):
        return (
            f"{train} All outputs lie within {NEAR_TARGETS:g} of 0 and 1: if those were the "
            "targets, without a sigmoid, the theory says nothing of such a training."
        )
    return train


CERTIFIED, UNCERTIFIED = "certified", "found, not certified"
MISSED, OPEN = "certified, but not found", "other data explain the weights as well"
UNKNOWN = "not known"  # of three layers and more, or weight decay: the radius is a lower bound


def standings(made: Audit) -> list[str]:
    """Return of each point whether every explanation as good as that by the points needs it.

    Empty where that is not known.
    """
    if made.determined is None:
        return []
    found, rest = made.found, OPEN if made.determined.certainty.tight else UNKNOWN
    return [
        (CERTIFIED if here else MISSED) if sure else UNCERTIFIED if here else rest
        for sure, here in zip(made.determined.certainty.certain.tolist(), found, strict=True)
    ]


def determination(made: Audit) -> str:
    """Return how many points are certified, and how far other data can be, in which box."""
    told, unit = made.determined, made.spread
    if told is None:
        return ""
    if told.allowed > explanations.VOID:
        return f" {explanations.unfit(told.allowed)}"
    ways = standings(made)
    sure, found = sum(w in (CERTIFIED, MISSED) for w in ways), ways.count(UNCERTIFIED)
    rest, far = len(ways) - sure - found, told.farthest.at_most / unit
    verb = "is" if sure == 1 else "are"
    text = f" Other data are those within ±{told.box / unit:.3g} spreads of 0, " + (
        f"of margins up to {told.certainty.top:.3g}."
        if math.isfinite(told.certainty.top)
        else "of all margins from the least of these points up, at the price of the weight decay."
    )
    if not sure:
        text += " No point is certified."
    else:
        text += (
            f" {sure} of {len(ways)} {verb} certified: no such data explain the weights as well as "
            f"these points do ({told.allowed:.2%} unexplained) without a point within "
            f"{told.within / unit:.2g} spreads of each."
        )
    if found:
        text += f" {found} found {'is' if found == 1 else 'are'} not certified."
    if rest and told.certainty.tight:
        text += f" Without {rest} of them other data explain the weights as well."
    elif rest:
        why = "weights trained with weight decay" if made.decay else "three layers"
        text += f" Of {rest} it is not known: the proof for {why} reaches only some points."
    if math.isfinite(far):
        end = f"at most {far:.3g} spreads away from these points on average."
        text += f" Such data that explain them so well are {end}"
    return text


def attack_sentence(made: Audit, one: AuditAttack) -> str:
    """Return what one attack found."""
    verdict = one.verdict
    if verdict is None:
        return one.message
    if verdict.why_not is not None:
        text = _unknown(made, verdict)
    elif isinstance(verdict, ImageVerdict):
        text = verdicts.verdict(verdict)
    elif isinstance(verdict, RankVerdict):
        text = (
            f"{_near(verdict)} All ranks: {verdicts.controls(verdict)}, p = {verdict.p_value:.2g}."
        )
    else:
        text = (
            f"{verdict.found} of {verdict.n} recovered within {length(made)}; {chance(verdict)} "
            f"({verdicts.controls(verdict)}, p = {verdict.p_value:.2g}). "
            f"{verdict.found} of {verdict.claims} claims match a point."
        )
    return f"{text} The attack was ended after {one.seconds:.0f} s." if one.ended else text


def length(made: Audit) -> str:
    """Return the radius within which a point counts as found."""
    return f"{100 * made.radius:.3g}% of the spread of the points"


def found_where(made: Audit) -> str:
    """Return where a point counts as found."""
    if made.best is not None and isinstance(made.best.verdict, ImageVerdict):
        return "where it is, of all training and held-out images, the nearest to a candidate"
    if made.best is not None and isinstance(made.best.verdict, RankVerdict):
        share = f"{1 - FOUND_SHARE:.0%}"
        return f"nearer to a claim of its class than {share} of the held-out points of that class"
    return f"within {length(made)}"


def assumptions(made: Audit) -> list[Assumption]:
    """Return the assumptions of the theory, and whether the model meets them."""
    wrong = int((made.q <= 0).sum())
    found = [
        Assumption(
            "ReLU", None if made.net.assumed_relu else True,
            weights.note(made.net) or "Every hidden layer ends in ReLU.",
        ),
        Assumption(
            "homogeneous", made.net.homogeneous,
            "No layer but the first has a bias."
            if made.net.homogeneous
            else "A layer beyond the first has a bias: no theorem leads training to a KKT point. "
            "Train with bias=False there for a certificate.",
        ),
        Assumption(
            "separated", not wrong,
            f"{wrong} of {made.data.n} training points are on the wrong side."
            if wrong
            else f"All {made.data.n} training points are on their side. {_order(made)}.",
        ),
    ]  # fmt: skip
    if made.certificate is not None:
        near = made.certificate.light in (Light.NEAR, Light.EXACT)
        found.append(Assumption("KKT point", near, weights.certificate(made.certificate)))
    elif not (wrong or made.decay) and made.net.homogeneous:
        words = "The certificate of so many points and outputs takes minutes and was left out."
        found.append(Assumption("KKT point", None, words))
    if made.folded:
        found.append(Assumption(
            "parameters", False,
            f"Folded into the weights: {', '.join(made.folded)}. Training moved other numbers than "
            "these weights, so no theorem leads it to a KKT point of them.",
        ))  # fmt: skip
    if made.repeats:
        found.append(Assumption("each once", False, _repeats(made)))
    if made.shared:
        found.append(Assumption(
            "held-out", False,
            f"{made.shared} held-out points are training points as well, which hides finds.",
        ))  # fmt: skip
    if not (wrong or made.decay):
        found.append(Assumption("coordinates", *_coordinates(made)))
    if made.decay:
        found.append(Assumption("weight decay", *_decay(made)))
    why = made.undetermined or refusal(made.net)
    if why:
        return [*found, Assumption("certified radius", False, why)]
    if made.decay:
        return found
    words = (
        "Weights do not say whether weight decay trained them. If it did, points off the margin "
        "leave a trace as well, and places claimed from the weights alone may hold no point."
    )
    return [*found, Assumption("no weight decay", None, words)]


def _decay(made: Audit) -> tuple[bool | None, str]:
    """Return whether the weights are a stationary point of a decay, and of which."""
    words = (
        f"mean logistic loss + {made.decay:.3g}/2 |θ|²: there every point leaves a trace, as large "
        "as its margin says."
    )
    left = None if made.determined is None else made.determined.allowed
    if left is None:
        return None, f"Taken for a stationary point of {words}"
    if left > THRESHOLD:
        why = "as after AdamW, which decays otherwise, or after unfinished training"
        return False, f"No stationary point, {why}: the points leave {left:.0%}. Asked of {words}"
    return True, f"The points leave {left:.2%} of a stationary point of {words}"


def _coordinates(made: Audit) -> tuple[bool | None, str]:
    """Return whether the coordinates of the attacks are the best that were tried, and which."""
    where = "The points explain the weights best in the coordinates as given."
    if made.coordinates.inner is not None:
        where = (
            "The model shifts and divides its input. The attacks ran in the coordinates that it "
            "makes so. Claims are in those as given."
        )
    elif not made.coordinates.compared:
        return None, (
            "In which coordinates so many points explain the weights best was not computed. The "
            f"attacks ran in these: {made.coordinates.name}. Claims are in those as given."
        )
    elif made.coordinates.name != "as given":
        where = (
            "The points explain the weights best in other coordinates "
            f"({made.coordinates.name}): there the attacks ran. Claims are in those as given."
        )
    return True, where


def _order(made: Audit) -> str:
    """Return which class is which output of the model."""
    names = [str(name) for name in made.classes]
    if made.net.outputs == 1:
        return f"Class {names[0]} is where the output is negative, {names[-1]} where it is positive"
    return f"The outputs are the classes {', '.join(names)}"
