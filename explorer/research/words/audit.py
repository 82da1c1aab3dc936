"""An audit in words: the verdict, and which assumptions of the theory the model meets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from explorer.engine.certificate import Light
from explorer.engine.explanations.cone import refusal
from explorer.engine.scoring import LEVEL
from explorer.research.words import explanations, verdicts, weights

if TYPE_CHECKING:
    from explorer.research.audit import Audit, Tried


class Assumption(NamedTuple):
    """One assumption of the theory: its name, whether it is met (None: not known), and why."""

    name: str
    met: bool | None
    words: str


def audited(made: Audit) -> str:
    """Return what the weights give away, with the numbers."""
    wrong, n = int((made.q <= 0).sum()), made.data.n
    if wrong:
        return (
            f"The model gets {wrong} of {n} training points wrong, so there is no margin and no "
            "attack was run. Train until all are right, or check which class is which: "
            f"{_order(made)}."
        )
    best = made.best
    if best is None or best.verdict is None:
        why = next((one.message for one in made.tried if one.message), "none fits this model.")
        return f"No attack has run: {why}"
    verdict, count = best.verdict, sum(one.verdict is not None for one in made.tried)
    if verdict.why_not is not None:
        return f"Cannot know. {verdicts.verdict(verdict)}"
    several = f" for the best of {count} attacks" if count > 1 else ""
    numbers = (
        f"{best.title} meets {verdict.found} within {length(made)}, and {verdict.found} of its "
        f"{verdict.claims} claims are right; chance meets {verdict.chance:.2g} "
        f"({verdicts.controls(verdict)}, p = {made.p_value:.2g}{several})."
    )
    numbers += determination(made)
    if made.p_value <= LEVEL:
        return f"The weights give away {verdict.found} of {n} training points. {numbers}"
    return (
        f"Nothing more than chance was found. {numbers} That does not show that the points are "
        "safe: another attack may find more."
    )


PROVEN, LIKELY = "proven", "likely"
MISSED, OPEN = "proven, but not found", "other data explain the weights as well"


def standings(made: Audit) -> list[str]:
    """Return of each point whether every explanation as good as that by the points needs it.

    Empty where that is not known.
    """
    if made.determined is None:
        return []
    found = made.found
    return [
        (PROVEN if here else MISSED) if sure else LIKELY if here else OPEN
        for sure, here in zip(made.determined.certainty.certain.tolist(), found, strict=True)
    ]


def determination(made: Audit) -> str:
    """Return how many points are proven, how many likely, and how far other data can be."""
    told, unit = made.determined, made.spread
    if told is None:
        return ""
    if told.allowed > explanations.VOID:
        return f" {explanations.unfit(told.allowed)}"
    ways = standings(made)
    sure, likely = sum(w in (PROVEN, MISSED) for w in ways), ways.count(LIKELY)
    rest, far = len(ways) - sure - likely, min(told.farthest.at_most / unit, 9.99)
    verb = "is" if sure == 1 else "are"
    text = (
        f" {sure} of {len(ways)} {verb} proven: no data explain the weights as well as these "
        f"points do ({told.allowed:.2%} unexplained) without a point near each."
    )
    if not sure:
        text = " None is proven."
    if likely:
        text += f" {likely} found {'is' if likely == 1 else 'are'} likely, not proven."
    if rest:
        text += f" Without {rest} of them other data explain the weights as well."
    return f"{text} Data that do are at most {far:.2g} spreads away from these points on average."


def tried(made: Audit, one: Tried) -> str:
    """Return what one attack found."""
    verdict = one.verdict
    if verdict is None:
        return one.message
    if verdict.why_not is not None:
        text = verdicts.verdict(verdict)
    else:
        text = (
            f"{verdict.found} of {verdict.n} found within {length(made)}; chance finds "
            f"{verdict.chance:.2g} ({verdicts.controls(verdict)}, p = {verdict.p_value:.2g}). "
            f"{verdict.found} of {verdict.claims} claims match a point."
        )
    return f"{text} The attack was ended after {one.seconds:.0f} s." if one.ended else text


def length(made: Audit) -> str:
    """Return the radius within which a point counts as found."""
    return f"{100 * made.radius:.3g}% of the spread of the points"


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
            else f"All {made.data.n} training points are on their side; {_order(made)}.",
        ),
    ]  # fmt: skip
    if made.certificate is not None:
        near = made.certificate.light in (Light.NEAR, Light.EXACT)
        found.append(Assumption("KKT point", near, weights.certificate(made.certificate)))
    elif not wrong and made.net.homogeneous:
        words = "The certificate of so many points and outputs takes minutes and was left out."
        found.append(Assumption("KKT point", None, words))
    where = "The points explain the weights best in the coordinates as given."
    if made.coordinates.name != "as given":
        where = (
            "The points explain the weights best in other coordinates "
            f"({made.coordinates.name}): there the attacks ran. Claims are in those as given."
        )
    found.append(Assumption("coordinates", True, where))
    why = refusal(made.net)
    return [*found, Assumption("certified radius", False, why)] if why else found


def _order(made: Audit) -> str:
    """Return which class is which output of the model."""
    names = [str(name) for name in made.classes]
    if made.net.outputs == 1:
        return f"{names[0]} is where the output is negative, {names[-1]} where it is positive"
    return "the outputs are " + ", ".join(names)
