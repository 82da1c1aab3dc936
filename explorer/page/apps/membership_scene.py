"""What the membership page shows: an exact network, a rule, its rates, one sentence.

The attacker makes the rule from values of Phi. The rates need to know who was a member; they are
measured on unseen points that no rule has seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from scipy import stats
from torch import Tensor

from explorer.engine.data.highdim import TITLES, HighDimDraw, Labels, Law, sample
from explorer.engine.membership import law as attack
from explorer.engine.membership.experiment import generator_of
from explorer.engine.membership.law import Isolation, MemberRule
from explorer.engine.membership.two_neuron import TwoNeuron, two_neuron
from explorer.engine.network import phi
from explorer.engine.settings import setting, settings

RuleName = Literal["known", "leaked", "bounded"]
RULES: dict[RuleName, str] = {
    "known": "known margin",
    "leaked": "leaked point",
    "bounded": "bounded margin",
}
DIMS = (
    *(2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 35, 40, 50, 60, 70, 80, 100, 120, 150, 170, 200),
    *(250, 300, 350, 400, 500, 600, 700, 800, 1000, 1200, 1400, 1600, 1800, 2000),
)
LABEL_TITLES: dict[Labels, str] = {
    "parity": "parity of signs",
    "random": "random",
    "component": "component",
}
HELD_OUT = 2000  # arbitrary: unseen points that measure the false positive rate
QUERIES = 500  # arbitrary: unseen points of the attacker's own, for the bounded rule
WORKS_TPR, WORKS_FPR = 0.95, 0.01  # arbitrary: from when the sentence says that the attack works


def label_options(law: Law) -> tuple[tuple[str, Labels], ...]:
    """Return the labels that points of a law can have: words and name."""
    return tuple(
        (words, name)
        for name, words in LABEL_TITLES.items()
        if name != "component" or law == "mixture"
    )


@settings
class MembershipScene:
    """What the page's controls say."""

    # fmt: off
    d: Annotated[int, setting(
        "Dimension of the points; the network is solved anew at every move", title="dimension d",
        form="sight", labels=tuple((f"{d}", d) for d in DIMS), step=1,
    )] = 200
    n: Annotated[int, setting(
        "Number of training points", title="points n", form="sight", page=(1, 50), step=1,
    )] = 20
    law: Annotated[Law, setting(
        "Of members and unseen points", title="distribution", form="sight",
        labels=tuple((words, law) for law, words in TITLES.items()),
    )] = "sphere"
    labels: Annotated[Labels, setting(
        "How points are labelled", form="sight", labels=label_options("mixture"),
    )] = "parity"
    seed: Annotated[int, setting("Of all points", form="sight", page=(0, 2**31 - 1))] = 0
    rule: Annotated[RuleName, setting(
        "Which rule the attacker uses", labels=tuple((words, key) for key, words in RULES.items()),
    )] = "known"
    share: Annotated[float, setting(
        "Share of the margin that |Φ(x)| must reach; the paper takes ½",
        title="threshold, in margins", form="sight", page=(0.05, 1), step=0.05,
    )] = 0.5
    suspects: Annotated[int, setting(
        "Points of which one is a member; the largest |Φ| of them stands for m", form="sight",
        page=(1, 100), step=1,
    )] = 10
    low: Annotated[float, setting(
        "What the attacker knows: m is at least this share of itself",
        title="lower bound, in margins", form="sight", page=(0.1, 1), step=0.05,
    )] = 0.8
    # fmt: on

    @property
    def points(self) -> tuple[int, int, Law, Labels, int]:
        """Return the settings that determine points and network."""
        return self.d, self.n, self.law, self.labels, self.seed


# Rows to open the page on: what is to be seen, and the settings.
SCENES: dict[str, tuple[str, MembershipScene]] = {
    "few dimensions": (
        "In 20 dimensions most unseen points look like members.",
        MembershipScene(d=20, n=8),
    ),
    "threshold": (
        "At d = 200 the threshold m/2 errs on a few unseen points; a larger one does not.",
        MembershipScene(d=200, n=20),
    ),
    "vacuous certificate": (
        "At d = 2000 no point is misjudged, though nothing is proved.",
        MembershipScene(d=2000, n=20),
    ),
    "certified": (
        "Three points in 2000 dimensions: here an error is impossible.",
        MembershipScene(d=2000, n=3),
    ),
}


def scene(name: str) -> MembershipScene:
    """Return the settings of a row. ValueError for an unknown name."""
    if name not in SCENES:
        raise ValueError(f"scenario must be one of {', '.join(SCENES)}; got {name!r}")
    return SCENES[name][1]


@dataclass(frozen=True, eq=False)
class World:
    """Points, their exact network of margin 1, and |Phi| on members, held-out and own points."""

    made: TwoNeuron
    members: Tensor
    held_out: Tensor
    queries: Tensor
    proof: Isolation


def world(d: int, n: int, law: Law, labels: Labels, seed: int) -> World:
    """Draw the points and solve for their network.

    Raises:
        NotSeparableError: two neurons cannot separate the points.
    """
    draw = HighDimDraw(d, law, labels)
    generator = generator_of(seed, d, n)
    x, y = sample(draw, n, generator)
    made = two_neuron(x, y)
    fresh, _ = sample(draw, HELD_OUT + QUERIES, generator, torch.float32)
    values = phi(made.net.to(dtype=torch.float32), fresh).abs()
    proof = attack.isolation(x.float(), fresh[:HELD_OUT])
    return World(made, phi(made.net, x).abs(), values[:HELD_OUT], values[HELD_OUT:], proof)


def rule_of(settings: MembershipScene, there: World) -> MemberRule:
    """Return the rule that the attacker makes from what they know."""
    if settings.rule == "leaked":
        return attack.leaked_point(
            torch.cat([there.members[:1], there.queries[: settings.suspects - 1].double()]),
            settings.share,
        )
    if settings.rule == "bounded":
        return attack.bounded_margin(settings.low, float(there.queries.max()))
    return attack.known_margin(1.0, settings.share)


@dataclass(frozen=True, eq=False)
class Outcome:
    """The rule's hits: members called members of n, held-out points called members of m."""

    rule: MemberRule
    hits: int
    n: int
    alarms: int
    m: int

    @property
    def tpr(self) -> float:
        """Return the true positive rate."""
        return self.hits / self.n

    @property
    def fpr(self) -> float:
        """Return the false positive rate."""
        return self.alarms / self.m

    @property
    def fpr_interval(self) -> tuple[float, float]:
        """Return Clopper and Pearson's 95% interval of the false positive rate."""
        found = stats.binomtest(self.alarms, self.m).proportion_ci(0.95)
        return float(found.low), float(found.high)

    @property
    def works(self) -> bool:
        """Return whether nearly all members and nearly no other points are called members."""
        return self.tpr >= WORKS_TPR and self.fpr <= WORKS_FPR


def outcome(settings: MembershipScene, there: World) -> Outcome:
    """Return the outcome of the rule on the members and on the held-out points."""
    rule = rule_of(settings, there)
    hits, alarms = (
        int(attack.decide(values, rule).sum()) for values in (there.members, there.held_out)
    )
    return Outcome(rule, hits, len(there.members), alarms, len(there.held_out))
