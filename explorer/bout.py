"""One attack on one network, judged: what a row of a sweep and of the arena holds.

Claims are matched one to one with the points (`scoring`), and with the sets that stand for chance.
`residual` is a yardstick that all attacks share, whatever they minimise themselves: the share
of |theta| that the claims leave unexplained with the best multipliers and free slopes at the kinks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from explorer import headless
from explorer.assess import RADIUS
from explorer.engine.as_well import AsWell, as_well
from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import SUPPORT, TAU_TRAINED, Certificate, in_reach
from explorer.engine.consistent import Stopped, sample_of
from explorer.engine.controls import Controls, met
from explorer.engine.data import Dataset
from explorer.engine.determined import determined
from explorer.engine.multipliers import fit_multipliers
from explorer.engine.roster import AttackConfig, AttackState, by_key
from explorer.engine.scoring import RADII, judge, score
from explorer.engine.settings import config_of

MERGE_ANGLE = 0.02  # radians: that of `KKTConfig.merge_angle`
PLANE = 2.0  # half width of the plane on the page: the other set is looked for in sight first
MOST_INPUTS = 2  # the margin is sampled along lines of the plane


@dataclass(frozen=True, eq=False)
class Ring:
    """Where attacks meet: attacked weights, and what only the judge may see.

    Attributes:
        target: the weights at margin 1.
        truth: the points they were trained on.
        controls: what stands for chance, with where it came from.
        certificate: of the weights on the truth; None for networks that are not homogeneous.
        gamma_bar: normalised margin of the trained network.
    """

    target: Target
    truth: Dataset
    controls: Controls
    certificate: Certificate | None
    gamma_bar: float

    @property
    def in_reach(self) -> Tensor:
        """Points (n,) bool that leave a trace in the weights; all where that is not known."""
        known = in_reach(self.certificate, self.truth.n)
        return torch.ones(self.truth.n, dtype=torch.bool) if known is None else known


@dataclass(frozen=True, eq=False)
class Otherwise:
    """Which points the weights determine (`determined`), and what else explains them.

    Attributes:
        determined: (n,) bool: every explanation has mass within the radius of this point.
        sentence: what that means, with the tolerance of the program.
        other: another training set that explains the weights as well as the truth, the farthest
            found (`as_well`).
        other_sentence: how far off it is, and what both sets leave.
    """

    determined: Tensor
    sentence: str
    other: Report
    other_sentence: str


@dataclass(frozen=True, eq=False)
class Other:
    """The training set that explains the weights as well as the true one, the farthest found.

    Attributes:
        claims: its points, labels and multipliers.
        far: how far off it is, what both leave, and what the program sampled.
        apart: whether it is farther off than the radius of a match; else the points are told.
    """

    claims: Report
    far: AsWell
    apart: bool

    @property
    def sentence(self) -> str:
        """What is seen, with what both sets leave unexplained."""
        if not self.apart:
            return self.far.sentence
        return (
            f"{len(self.claims.x)} other points, on average {self.far.distance:.2g} from the "
            f"nearest true one, explain these weights as well. They leave {self.far.residual:.1e} "
            f"of ‖θ‖ unexplained, the true points {self.far.truth:.1e}: the weights alone cannot "
            "tell the two sets apart."
        )


def no_other(target: Target, truth: Dataset, made: Certificate | None) -> str:
    """Why no other set can be looked for here, or an empty string."""
    if not truth.n:
        return "There are no points."
    if not target.net.homogeneous or made is None:
        return (
            "With biases beyond its first layer the network is not homogeneous: no theorem says "
            "that a training set explains its weights."
        )
    if truth.outputs != 1:
        return (
            "With more than two classes there is no program for other sets: it needs a network of "
            "one output."
        )
    if truth.d > MOST_INPUTS:
        return f"Other sets are looked for on a line or a plane; got {truth.d} coordinates."
    return ""


def always(_: float) -> bool:
    """Go on, whatever share is done."""
    return True


def other_set(
    target: Target, truth: Dataset, made: Certificate, go_on: Callable[[float], bool] = always,
    plane: float = PLANE,
) -> Other:  # fmt: skip
    """The farthest other set within `plane`, or where there is none in the box of `determined`.

    Raises:
        ValueError: where the true points do not explain the weights well enough, or `no_other`.
        Stopped: where `go_on(share done)` said no.
    """
    why = no_other(target, truth, made)
    if why:
        raise ValueError(why)
    net = target.merged(MERGE_ANGLE)
    used = made.lam > SUPPORT * made.lam.max()
    reach = max(float(truth.x.abs().max()), 1.0)
    far = None
    for share, extent in ((0.1, max(plane, reach)), (0.55, 2 * reach)):
        if far is not None and far.distance >= RADIUS:
            break  # farther out only where there is none in sight
        if not go_on(share):
            raise Stopped("stopped before the margin was sampled")
        sample = sample_of(net, truth.x[used], truth.y[used], extent, made.tau, grid=0)

        def going(done: int, total: int, share: float = share) -> bool:
            return go_on(share + 0.45 * done / total)

        far = as_well(sample, progress=going)
    assert far is not None
    made_of = far.explanation
    return Other(Report(made_of.x, made_of.y, made_of.lam), far, far.distance >= RADIUS)


def otherwise(ring: Ring) -> Otherwise | None:
    """What the weights leave open (`determined`, `as_well`); None where the programs do not apply.

    They need points of one or two coordinates, one output, and homogeneous weights.
    """
    truth, made = ring.truth, ring.certificate
    if made is None or no_other(ring.target, truth, made):
        return None
    net = ring.target.merged(MERGE_ANGLE)
    found = determined(net, truth.x, truth.y, made.lam, tau=made.tau, sharp=True)
    other = other_set(ring.target, truth, made)
    return Otherwise(found.forced, found.sentence, other.claims, other.far.sentence)


class Refused(ValueError):
    """This attack cannot be used on these weights; the message says why."""


def settings(key: str, given: Mapping[str, Any]) -> AttackConfig:
    """The settings of an attack: its defaults, but `given`. ValueError for a wrong one."""
    return config_of(by_key(key).config, given, key)


def unwatched(states: Iterable[AttackState], total: int, label: str) -> Iterable[AttackState]:
    """No progress shown."""
    return states


def bout(
    ring: Ring, key: str, given: Mapping[str, Any], seed: int,
    watch: headless.Watch[AttackState] = unwatched,
) -> dict[str, Any]:  # fmt: skip
    """Run an attack on the ring's network, and judge its claims.

    Returns:
        n, reach (points in reach), claims, found and found_reach at each of `RADII`, chance (what
        each control scores at each radius), controls (where they came from), distance (median to
        the nearest claim of the same label), residual, matched (which points were found within
        `RADIUS`), kind, sentence and p_value of the verdict, and the claims x, y, lam.

    Raises:
        Refused: where the attack does not fit these weights.
        RunFailed: where it diverged.
    """
    why = by_key(key).refusal(ring.target)
    if by_key(key).victim is not None:
        why = "It attacks weights of its own training, not these: see `margin-explorer bilevel`."
    if why:
        raise Refused(why)
    done = headless.attack(ring.target, settings(key, given), seed, name=key, watch=watch)
    return {"steps_taken": done.states[-1].t, **judged(ring, done.claims)}


def judged(ring: Ring, claims: Report) -> dict[str, Any]:
    """What may be said of claims on the ring's network; see `bout`."""
    truth, reach = ring.truth, ring.in_reach
    within = Dataset(truth.x[reach], truth.y[reach])
    x, y = claims.x, claims.y
    all_of, of_reach = score(truth, x, y), score(within, x, y)
    verdict = judge(truth, ring.controls, x, y, RADIUS, reach)
    chance = met(ring.controls, x, y, RADII).tolist()
    distance = float(all_of.distances.median()) if truth.n else float("inf")
    return {
        "reach": int(reach.sum()), "claims": len(x), "radii": list(RADII),
        "found": all_of.found.tolist(), "found_reach": of_reach.found.tolist(), "chance": chance,
        "controls": ring.controls.origin.value,
        "distance": distance if distance < float("inf") else None,
        "residual": _residual(ring.target, claims),
        "matched": (all_of.matches[RADII.index(RADIUS)] >= 0).tolist(),
        "kind": verdict.kind.name, "sentence": verdict.sentence,
        "p_value": verdict.p_value if verdict.p_value == verdict.p_value else None,
        "x": x.tolist(), "y": y.tolist(), "lam": claims.lam.tolist(),
    }  # fmt: skip


def _residual(target: Target, claims: Report) -> float | None:
    if not target.net.homogeneous:
        return None
    if not len(claims.x):
        return 1.0
    x, y = claims.x.to(target.net.theta), claims.y.to(target.net.theta)
    return fit_multipliers(target.net, x, y, TAU_TRAINED).residual


def flipped(data: Dataset, share: float, seed: int) -> Dataset:
    """A share of the labels flipped, chosen by the seed; the source is kept, for its controls.

    ValueError with more than two classes, where a flip would have to choose; Refused for a share
    that is too small to flip one.
    """
    if not share:
        return data
    count = round(share * data.n)
    if not count:
        raise Refused(
            f"label_noise {share:g} of {data.n} points flips none; take at least {1 / data.n:.3g}, "
            "or 0."
        )
    if data.outputs != 1:
        raise ValueError("label_noise flips between two classes; this set has more")
    chosen = torch.randperm(data.n, generator=torch.Generator().manual_seed(seed))[:count]
    y = data.y.clone()
    y[chosen] = -y[chosen]
    return Dataset(data.x, y, data.source)
