"""The claims of an attack judged: what they meet of the truth, and of the sets of chance."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.engine.attacks.claims import Report
from explorer.engine.certificate import Certificate, in_reach
from explorer.engine.controls import Controls
from explorer.engine.data import Dataset
from explorer.engine.roster import by_key
from explorer.engine.scoring import RADII, Score, Verdict, judge, score

RADIUS = RADII[1]  # 0.03, the radius of the measured figures


@dataclass(frozen=True, eq=False)
class Judgement:
    """What may be said of claims.

    Attributes:
        scores: of the truth, and of the first control.
        verdict: at `RADIUS`, against all controls.
    """

    scores: tuple[Score, Score]
    verdict: Verdict


def judgement(
    name: str, claims: Report, truth: Dataset, controls: Controls, made: Certificate | None
) -> Judgement:
    """The claims of the attack of this key, against the truth and the controls.

    Args:
        name: the attack's key in the roster.
        claims: what it claims.
        truth: the points that the attacked network was trained on.
        controls: sets that stand for chance.
        made: the certificate of the attacked network on the truth, or None. It says nothing of an
            attack with a victim of its own, which was trained otherwise.
    """
    known = None if by_key(name).victim is not None else in_reach(made, truth.n)
    verdict = judge(truth, controls, claims.x, claims.y, RADIUS, known)
    first, control = (score(data, claims.x, claims.y) for data in (truth, controls.sets[0]))
    return Judgement((first, control), verdict)
