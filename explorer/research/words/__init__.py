"""The English of results: each sentence is a function of the numbers it speaks of.

One module a subject: `weights`, `verdicts`, `explanations`, `energy`, `membership`. What the last
step of an attack did is in the words of the attack: `Attack.words`.
"""

from __future__ import annotations

from functools import singledispatch

from explorer.research.words import energy, explanations, membership, verdicts, weights


@singledispatch
def sentence(of: object) -> str:
    """Return what a result means, in English, with its numbers.

    Args:
        of: a certificate, a verdict, an exact solution, a finished run, an explanation, an energy
            map, a rule of membership, or one of the enums of these.

    Returns:
        One sentence or a few.

    Raises:
        TypeError: for what has no sentence.

    Example:
        >>> from explorer import Light, sentence
        >>> sentence(Light.NEAR)
        'Near a KKT point: most of the weights is explained by the points.'
    """
    raise TypeError(
        f"a {type(of).__name__} has no sentence; expected a certificate, a verdict, an exact "
        "solution, an explanation, an energy map or a rule. See explorer.research.words."
    )


for _function in (
    weights.status, weights.light, weights.certificate, weights.optimum,
    weights.end_of_training,
    verdicts.kind, verdicts.verdict,
    explanations.alike, explanations.farthest_set, explanations.merging,
    energy.archetype, energy.energies, energy.split, energy.of_starts, energy.of_ridge,
    energy.picture, membership.rule,
):  # fmt: skip
    sentence.register(_function)
