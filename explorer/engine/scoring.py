"""Truth meets candidates here, and only here.

A point counts as found within a radius if it can be given a claim of its own label at that distance
or less, no claim serving two points: the largest such one-to-one matching. Claims that crowd
around one point therefore count once, and a claim for nothing lowers the precision.

Chance is measured, not assumed: the same claims are scored against sets of the same kind that the
network has never seen. The p-value is that of a permutation test (Phipson and Smyth 2010),
(1 + #{controls scored at least as well}) / (K + 1), or of a sequential one (Besag and Clifford
1991). As well is: as many points found or, if just as many, as many within half of the radius, and
so on. It asks whether the claims know this training set rather than its kind; it does not say which
single claim is right. What stands for chance, and where it came from, `controls.Controls` holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from explorer.engine.arrays import one_to_one
from explorer.engine.classes import class_labels
from explorer.engine.controls import Controls, Origin, least_p, meeting_counts
from explorer.engine.data import Dataset
from explorer.engine.data.dataset import points_of
from explorer.engine.rounding import EDGE
from explorer.engine.threads import few_threads

Points = Tensor | ArrayLike
RADII = (0.01, 0.03, 0.1)  # those of the measured baselines; arbitrary, in units of the plane
LEVEL = 0.05  # the usual one; with fewer than 19 controls no p-value is as small
CROWDED = 0.5  # arbitrary: share of truth that points of the controls meet by themselves
MIN_POINTS = 3  # arbitrary: below, one lucky claim is a third of the score or more
FINER = (1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16)  # of the radius, where counts tie; arbitrary
ENOUGH = 10  # controls as good as the truth after which no more are asked; arbitrary


@dataclass(frozen=True, eq=False)
class Score:
    """How claims (c,) meet points (n,) at r radii.

    Attributes:
        radii: the radii, ascending or not, as given; in units of the data.
        found: points found within each radius (r,), int64.
        recall: found / n (r,); 0 for n = 0.
        precision: found / c (r,); 0 for c = 0.
        distances: from each point to its nearest claim of the same label (n,); inf if none.
        matches: index of the claim matched to each point, or -1 (r, n).

    Example:
        >>> from explorer import preset, score
        >>> data = preset("moons", n=10)
        >>> met = score(data, data.x[:5], data.y[:5])  # half of the truth, claimed as it is
        >>> met.recall[0], met.precision[0]
        (tensor(0.5000), tensor(1.))
    """

    radii: tuple[float, ...]
    found: Tensor
    recall: Tensor
    precision: Tensor
    distances: Tensor
    matches: Tensor


class Kind(Enum):
    """What may be said of an attack.

    FOUND: half of the points in reach or more, half of the claims right, chance ruled out.
    AMBIGUOUS: too few points are matched, or too many claims match no point. NOT_RECOVERABLE:
    most points lie off the margin and leave no trace to find. CANNOT_KNOW: the comparison would
    say the same of a good and a bad attack.

    Example:
        >>> from explorer import Kind
        >>> [kind.value for kind in Kind]
        ['found', 'ambiguous', 'not recoverable', 'cannot know']
    """

    FOUND = "found"
    AMBIGUOUS = "ambiguous"
    NOT_RECOVERABLE = "not recoverable"
    CANNOT_KNOW = "cannot know"


class Unknowable(Enum):
    """Why nothing can be said of claims, however good they are."""

    NO_CLAIMS = "no claims"
    FEW_POINTS = "few points"
    NO_CONTROLS = "no controls"
    CROWDED = "crowded"


class Doubt(Enum):
    """Why chance is not ruled out."""

    FEW_CONTROLS = "few controls"
    LIKELY_CHANCE = "likely chance"


@dataclass(frozen=True, eq=False, kw_only=True)
class Verdict:
    """What may be said of claims, with the numbers behind it, and how likely they are by chance.

    Attributes:
        kind: the verdict.
        why_not: why nothing can be said; None where something can, and p then has a value.
        p_value: chance of as many and as near matches on the controls; nan where it cannot be
            known. Of controls made in several ways the largest.
        n: points of the truth.
        claims: how many places are claimed.
        found: points that they meet.
        radius: distance within which a point counts as met, in units of the data; nan for images.
        chance: points that the claims meet on a control, on average, and where held-out points were
            pooled with the others, of as many held-out ones; nan where nothing was counted.
            Where `why_not` is CROWDED, what the truth itself meets there.
        undecided: matches that rounding decides on, at the edge of the radius.
        in_reach: points on the margin or with a multiplier; None where that is not known.
        reached: how many of these are met; None likewise.
        origin: where the controls came from that gave this p.
        controls: how many of them there are.
        certified: certified points of the attacked network, met or not (`runs.certified_points`);
            None where nobody asked.

    Example:
        >>> from explorer import control_sets, judge, preset
        >>> data = preset("moons", n=10)
        >>> verdict = judge(data, control_sets(data), data.x, data.y, radius=0.03)
        >>> verdict.kind.value, verdict.found, verdict.p_value, verdict.doubt
        ('found', 10, 0.01, None)
    """

    kind: Kind
    p_value: float
    n: int
    claims: int
    found: int = 0
    why_not: Unknowable | None = None
    radius: float = math.nan
    chance: float = math.nan
    undecided: int = 0
    in_reach: int | None = None
    reached: int | None = None
    origin: Origin = Origin.GIVEN
    controls: int = 0
    certified: int | None = None

    @property
    def least_p(self) -> float:
        """Return the smallest p-value that so many controls could give.

        Source: Phipson and Smyth 2010.
        """
        return least_p(self.controls)

    @property
    def doubt(self) -> Doubt | None:
        """Return why chance is not ruled out; None where it is."""
        return doubt(self.p_value, self.controls)

    @property
    def beyond_chance(self) -> bool:
        """Return whether the found points are more than chance: only then are they recovered."""
        return self.why_not is None and self.doubt is None and self.chance < self.found


def score(truth: Dataset, x: Points, y: Points, radii: Sequence[float] = RADII) -> Score:
    """Match claims one to one with the points of a truth, at each radius.

    A claim meets a point of its own label within the radius, and no claim serves two points: the
    largest such matching counts.

    Args:
        truth: the points (n, d) with their labels.
        x: places of the claims (c, d); NumPy arrays and pandas will do.
        y: their labels (c,); of other arrays than tensors their classes (`class_labels`).
        radii: distances within which a point counts as found, in units of the data.

    Returns:
        The score at each radius.

    Raises:
        ValueError: where shapes do not fit, a claim is not finite or a radius is not positive.

    Source: own; recall and precision as usual.

    Example:
        >>> import torch
        >>> from explorer import empty, score
        >>> truth = empty(1).with_point([0.0], 1).with_point([1.0], -1)
        >>> claims = torch.tensor([[0.02], [0.5]])
        >>> score(truth, claims, torch.tensor([1.0, -1.0])).found  # at 0.01, 0.03 and 0.1
        tensor([0, 1, 1])
    """
    truth = truth.to(device="cpu")
    x, y = _check(truth, *_tensors(truth, x, y), radii)
    apart = torch.cdist(truth.x, x, compute_mode="donot_use_mm_for_euclid_dist")
    apart = apart.masked_fill(truth.y[:, None] != y[None], torch.inf)
    matches = torch.stack([one_to_one(apart <= radius) for radius in radii])
    found = (matches >= 0).sum(1)
    nearest = apart.min(1).values if len(x) else torch.full_like(truth.y, torch.inf)
    recall, precision = found / max(truth.n, 1), found / max(len(x), 1)
    return Score(tuple(radii), found, recall, precision, nearest, matches)


@few_threads()
def judge(
    truth: Dataset,
    controls: Controls | Sequence[Dataset],
    x: Points,
    y: Points,
    radius: float,
    on_margin: Points | None = None,
    more: bool = False,
) -> Verdict:
    """Return what may be said of claims at one radius, against controls.

    The p-value is (1 + number of controls that the claims meet as well) / (K + 1), for K controls;
    of controls made in several ways the largest holds.

    Args:
        truth: the points the network was trained on.
        controls: sets that stand for chance, with where they came from (`control_sets`); a plain
            sequence is called "control sets". With fewer than 19 chance cannot be ruled out.
        x: places of the claims (c, d); NumPy arrays and pandas will do.
        y: labels of the claims (c,); of other arrays than tensors their classes (`class_labels`).
        radius: distance within which a point counts as found, in units of the data.
        on_margin: which points lie on the margin (n,) bool, where that is known. The others have
            lam = 0: an attack on the KKT conditions cannot see them.
        more: whether more controls are made (`Controls.most`) where few of the first are met as
            well. The number then depends on the outcome, and p is that of Besag and Clifford.

    Returns:
        The verdict with its numbers; `sentence` says it in English. Points of any device are taken;
        all is counted on the CPU.

    Raises:
        ValueError: as `score`, or where `on_margin` has another length than `truth`.

    Source: Phipson and Smyth 2010 for the p-value, Besag and Clifford 1991 for the sequential one;
        the words of the verdict and the largest over several ways are our own.

    Example:
        >>> from explorer import control_sets, judge, preset
        >>> data = preset("moons", n=10)
        >>> judge(data, control_sets(data), data.x, data.y, radius=0.03).kind
        <Kind.FOUND: 'found'>
    """
    truth = truth.to(device="cpu")
    x, y = _tensors(truth, x, y)
    if isinstance(on_margin, Tensor):
        on_margin = on_margin.cpu()
    elif on_margin is not None:
        on_margin = torch.from_numpy(np.array(on_margin, dtype=bool))
    if on_margin is not None and on_margin.shape != (truth.n,):
        raise ValueError(f"on_margin must be ({truth.n},); got {tuple(on_margin.shape)}")
    controls = Controls.of(controls)
    finer = tuple(radius * share for share in FINER)
    around = (radius * (1 - EDGE), radius * (1 + EDGE), *finer)
    fewest, most, *met = (int(count) for count in score(truth, x, y, around).found)
    found = met[0]
    alone = math.nan
    if len(controls) and truth.n >= MIN_POINTS and len(x):
        alone = controls.chance(truth.x, truth.y, truth.n, radius)
    why_not = _unknowable(truth.n, len(controls), len(x), alone)
    unknown = Verdict(
        kind=Kind.CANNOT_KNOW, p_value=math.nan, n=truth.n, claims=len(x), found=found,
        why_not=why_not, radius=radius, chance=alone, controls=len(controls),
        origin=controls.origin if controls.unseen is None else controls.unseen.origin,
    )  # fmt: skip
    if why_not is not None:
        return unknown
    p_value, way, chance = _chance(controls, x, y, finer, met, more, truth.n)
    known = replace(
        unknown, p_value=p_value, chance=chance, undecided=most - fewest, origin=way.origin,
        controls=len(way),
    )  # fmt: skip
    if on_margin is not None:
        within = Dataset(truth.x[on_margin], truth.y[on_margin])
        reached = int(score(within, x, y, (radius,)).found)
        known = replace(known, in_reach=within.n, reached=reached)
    reach = (found, truth.n) if on_margin is None else (reached, within.n)
    return replace(known, kind=kind_of(found, truth.n, reach, len(x), p_value, len(way)))


@dataclass(frozen=True, eq=False)
class RecallCurve(Score):
    """How many points claims meet at each of r ascending radii, and how many points of K controls.

    Attributes:
        chance: points found on a control, on average over the controls (r,); nan without controls.
        low: the 5% quantile of the controls (r,); nan without.
        high: the 95% quantile (r,): nine in ten controls or more are met as often as `low` to
            `high`.
        controls: how many controls there are.
    """

    chance: Tensor
    low: Tensor
    high: Tensor
    controls: int

    @property
    def n(self) -> int:
        """Return how many points the truth has."""
        return len(self.distances)

    @property
    def met(self) -> Tensor:
        """Return which points are found within each radius (r, n), bool."""
        return self.matches >= 0


def recall_curve(
    truth: Dataset, controls: Controls, x: Tensor, y: Tensor, radii: Sequence[float]
) -> RecallCurve:
    """Return how many points claims meet as more distance counts, beside the same of controls.

    Args:
        truth: the points (n, d) the network was trained on.
        controls: sets that stand for chance.
        x: places of the claims (c, d).
        y: their labels (c,).
        radii: distances, in units of the data.

    Returns:
        The counts of `score` and of `meeting_counts` at each radius.

    Raises:
        ValueError: as `score`.

    Source: own.

    Example:
        >>> from explorer import control_sets, preset
        >>> from explorer.engine.scoring import recall_curve
        >>> data = preset("moons", n=10)
        >>> curve = recall_curve(data, control_sets(data), data.x[:4], data.y[:4], (0.01, 0.03))
        >>> curve.found
        tensor([4, 4])
    """
    order = tuple(sorted(radii))
    made = score(truth, x, y, order)
    counts = meeting_counts(controls, x, y, order).double()
    none = torch.full((len(order),), torch.nan, dtype=torch.float64)
    mean, low, high = none, none, none
    if len(controls):
        mean = counts.mean(0)
        ends = np.quantile(counts.numpy(), (0.05, 0.95), axis=0, method="inverted_cdf")
        low, high = torch.from_numpy(ends)
    return RecallCurve(**vars(made), chance=mean, low=low, high=high, controls=len(controls))


def _chance(
    controls: Controls,
    x: Tensor,
    y: Tensor,
    radii: Sequence[float],
    met: Sequence[int],
    more: bool,
    n: int,
) -> tuple[float, Controls, float]:
    """Return the largest p of all ways, the controls that gave it, and what claims meet on them."""
    found = []
    for k, way in enumerate(controls.ways):
        counts = meeting_counts(way, x, y, radii)
        if more and controls.truth is not None and int(as_well(counts, met).sum()) < ENOUGH:
            way = controls.most.ways[k]
            counts = meeting_counts(way, x, y, radii)
        equal = as_well(counts, met)
        p_value = (1 + int(equal.sum())) / (len(equal) + 1)
        if more and int(equal.sum()) >= ENOUGH:
            p_value = ENOUGH / (int(equal.nonzero()[ENOUGH - 1]) + 1)
        chance = float(counts[:, 0].double().mean())
        if way.unseen is not None:
            chance = way.chance(x, y, n, radii[0])
        found.append((p_value, way, chance))
    return max(found, key=lambda one: (one[0], one[2]))


def as_well(counts: Tensor, met: Sequence[int]) -> Tensor:
    """Return which sets (K,) have as many points met (K, r) as `met` says.

    The first radius counts most.

    A smaller radius decides only where all before it tie.
    """
    weight = 3 ** torch.arange(len(met)).flip(0)  # no sum of signs outweighs an earlier one
    return ((counts - torch.tensor(met)).sign() * weight).sum(1) >= 0


def doubt(p_value: float, controls: int) -> Doubt | None:
    """Return why so many controls at this p-value do not rule chance out; None where they do."""
    if least_p(controls) > LEVEL:
        return Doubt.FEW_CONTROLS
    return Doubt.LIKELY_CHANCE if p_value > LEVEL else None


def kind_of(
    found: int, n: int, reach: tuple[int, int], claims: int, p_value: float, controls: int
) -> Kind:
    """Return the word for so many found of n by so many claims.

    `reach`: found and all of those in it.

    CANNOT_KNOW with so few controls that no p-value could rule chance out.
    """
    if least_p(controls) > LEVEL:
        return Kind.CANNOT_KNOW
    reached, in_reach = reach
    if p_value <= LEVEL and 2 * reached >= in_reach:
        return Kind.FOUND if 2 * found >= claims else Kind.AMBIGUOUS
    return Kind.NOT_RECOVERABLE if 2 * in_reach < n else Kind.AMBIGUOUS


def adjusted_p_values(found: Sequence[int], chance: Sequence[Sequence[int]]) -> list[float]:
    """Return the p-values of k methods, each as the best of all (Westfall and Young 1993, maxT).

    A count is set against the mean and the standard deviation of the other sets' counts (at least
    one point: arbitrary), so that methods that meet more by chance compare with those that meet
    less; a control scores as well as its best method.

    Args:
        found: points of the truth met by each method (k,).
        chance: points of each control that its claims meet (k, K), the same sets for all.
    """
    if not found:
        return []
    counts = np.column_stack([found, chance]).astype(float)
    others = counts.shape[1] - 1
    mean = (counts.sum(1, keepdims=True) - counts) / others
    square = (np.square(counts).sum(1, keepdims=True) - counts**2) / others
    high = (counts - mean) / np.sqrt(np.maximum(square - mean**2, 1))
    best = high[:, 1:].max(0)
    return [float((1 + (best >= own).sum()) / (1 + others)) for own in high[:, 0]]


def _unknowable(n: int, controls: int, claims: int, alone: float) -> Unknowable | None:
    """Return why nothing can be said; `alone`: points that controls meet by themselves."""
    if not claims:
        return Unknowable.NO_CLAIMS
    if n < MIN_POINTS:
        return Unknowable.FEW_POINTS
    if not controls:
        return Unknowable.NO_CONTROLS
    return Unknowable.CROWDED if alone >= CROWDED * n else None


def _tensors(truth: Dataset, x: Points, y: Points) -> tuple[Tensor, Tensor]:
    """Return claims as tensors, with labels as the truth has them."""
    if not isinstance(x, Tensor):
        x = points_of(x) if np.size(x) else truth.x[:0]
    if not isinstance(y, Tensor):
        y = class_labels(y, truth.outputs)[0]
    return x.cpu(), y.cpu()


def _check(truth: Dataset, x: Tensor, y: Tensor, radii: Sequence[float]) -> tuple[Tensor, Tensor]:
    if x.ndim != 2 or x.shape[1] != truth.d or y.shape != x.shape[:1]:
        raise ValueError(
            f"claims need x (c, {truth.d}) and y (c,); got {tuple(x.shape)} and {tuple(y.shape)}"
        )
    if not bool(torch.isfinite(x).all()):
        raise ValueError("a claim is not finite; keep the last finite state of the attack")
    if not radii or not all(radius > 0 for radius in radii):
        raise ValueError(f"radii must be positive; got {tuple(radii)}")
    return x.detach().to(truth.x), y.detach().to(truth.y)
