"""Truth meets candidates here, and only here.

A point counts as found within a radius if it can be given a claim of its own label at that distance
or less, no claim serving two points: the largest such one-to-one matching. Claims that crowd
around one point therefore count once, and a claim for nothing lowers the precision.

Chance is measured, not assumed: the same claims are scored against sets of the same kind that the
network has never seen. The p-value is that of a permutation test (Phipson and Smyth 2010),
(1 + #{controls scored at least as well}) / (K + 1). It asks whether the claims know this training
set rather than its kind; it does not say which single claim is right. What stands for chance, and
where it came from, is said by whoever made it: `controls.Controls`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching
from torch import Tensor

from explorer.engine.controls import Controls, least_p, met
from explorer.engine.data import Dataset
from explorer.engine.rounding import EDGE

RADII = (0.01, 0.03, 0.1)  # those of the measured baselines; arbitrary, in units of the plane
LEVEL = 0.05  # the usual one; with fewer than 19 controls no p-value is as small
CROWDED = 0.5  # arbitrary: share of truth that points of the controls meet by themselves
MIN_POINTS = 3  # arbitrary: below, one lucky claim is a third of the score or more


@dataclass(frozen=True, eq=False)
class Score:
    """How claims (c,) meet points (n,) at r radii.

    Attributes:
        radii: the radii, ascending or not, as given.
        found: points found within each radius (r,), int64.
        recall: found / n (r,); 0 for n = 0.
        precision: found / c (r,); 0 for c = 0.
        distances: from each point to its nearest claim of the same label (n,); inf if none.
        matches: index of the claim matched to each point, or -1 (r, n).
    """

    radii: tuple[float, ...]
    found: Tensor
    recall: Tensor
    precision: Tensor
    distances: Tensor
    matches: Tensor


class Kind(Enum):
    """What may be said of an attack; the value is what a user reads."""

    FOUND = (
        "Found: half of the points in reach or more, half of the claims right, chance ruled out."
    )
    AMBIGUOUS = "Ambiguous: the claims meet too few points, or too many places that are none."
    NOT_RECOVERABLE = "Not recoverable: most points lie off the margin and leave no trace to find."
    CANNOT_KNOW = "Cannot know: this comparison would say the same of a good and a bad attack."


@dataclass(frozen=True, eq=False)
class Verdict:
    """What may be said, in one word, in one paragraph with its numbers, and how likely by chance.

    Attributes:
        kind: the word.
        sentence: what is seen, with its numbers.
        p_value: chance of as many matches on the controls; nan where it cannot be known.
        controls: what stood for chance, such as "99 held-out sets".
        least_p: the smallest p-value that so many of them could give.
    """

    kind: Kind
    sentence: str
    p_value: float
    controls: str = ""
    least_p: float = float("nan")


def score(truth: Dataset, x: Tensor, y: Tensor, radii: Sequence[float] = RADII) -> Score:
    """Match claims x (c, d), y (c,) one to one with the points of `truth`, at each radius.

    Raises:
        ValueError: where shapes do not fit, a claim is not finite or a radius is not positive.
    """
    x, y = _checked(truth, x, y, radii)
    apart = torch.cdist(truth.x, x, compute_mode="donot_use_mm_for_euclid_dist")
    apart = apart.masked_fill(truth.y[:, None] != y[None], torch.inf)
    matches = torch.stack([_matched(apart <= radius) for radius in radii])
    found = (matches >= 0).sum(1)
    nearest = apart.min(1).values if len(x) else torch.full_like(truth.y, torch.inf)
    recall, precision = found / max(truth.n, 1), found / max(len(x), 1)
    return Score(tuple(radii), found, recall, precision, nearest, matches)


def judge(
    truth: Dataset,
    controls: Controls | Sequence[Dataset],
    x: Tensor,
    y: Tensor,
    radius: float,
    on_margin: Tensor | None = None,
) -> Verdict:
    """What may be said of claims x (c, d), y (c,) at one radius, against the controls.

    Args:
        truth: the points the network was trained on.
        controls: sets that stand for chance, with where they came from (`control_sets`); a plain
            sequence is called "control sets". With fewer than 19 chance cannot be ruled out.
        x: places of the claims.
        y: labels of the claims.
        radius: distance within which a point counts as found, in units of the data.
        on_margin: which points lie on the margin (n,) bool, where that is known. The others have
            lam = 0: an attack on the KKT conditions cannot see them.

    Raises:
        ValueError: as `score`, or where `on_margin` has another length than `truth`.
    """
    if on_margin is not None and on_margin.shape != (truth.n,):
        raise ValueError(f"on_margin must be ({truth.n},); got {tuple(on_margin.shape)}")
    controls = Controls.of(controls)
    around = (radius * (1 - EDGE), radius, radius * (1 + EDGE))
    fewest, found, most = (int(count) for count in score(truth, x, y, around).found)
    reason = _unknowable(truth, controls, len(x), radius)
    least = least_p(len(controls))
    if reason:
        return Verdict(Kind.CANNOT_KNOW, reason, float("nan"), controls.words, least)
    chance = met(controls, x, y, (radius,))[:, 0]
    p_value = (1 + int((chance >= found).sum())) / (len(chance) + 1)
    in_reach, reached = truth.n, found
    if on_margin is not None:
        within = Dataset(truth.x[on_margin], truth.y[on_margin])
        in_reach, reached = within.n, int(score(within, x, y, (radius,)).found)
    kind = kind_of(found, truth.n, (reached, in_reach), len(x), p_value, len(controls))
    sentence = (
        f"{found} of {truth.n} found within {radius:g}; chance finds "
        f"{float(chance.double().mean()):.2g} ({controls.words}, p = {p_value:.2g}). "
        f"{found} of {len(x)} claims match a point."
    )
    if fewest < most:
        sentence += f" Rounding decides on {most - fewest}, at the edge of the radius."
    if in_reach < truth.n:
        missed = f", and {found - reached} of them met by claims were not recovered"
        sentence += (
            f" {in_reach} lie on the margin or carry a multiplier; the other {truth.n - in_reach} "
            f"leave no trace for this attack{missed if found > reached else ''}."
        )
    sentence += doubt(p_value, len(controls))
    return Verdict(kind, sentence, p_value, controls.words, least)


def doubt(p_value: float, controls: int) -> str:
    """What is said of chance where so many controls do not rule it out; "" where they do."""
    if least_p(controls) > LEVEL:
        need = round(1 / LEVEL) - 1
        return (
            f" With {controls} control{'' if controls == 1 else 's'} p cannot be below "
            f"{least_p(controls):.2g}: too few to rule chance out, which takes {need} or more."
        )
    return " That is not shown to be better than chance." if p_value > LEVEL else ""


def kind_of(
    found: int, n: int, reach: tuple[int, int], claims: int, p_value: float, controls: int
) -> Kind:
    """The word for so many found of n by so many claims; `reach`: found and all of those in it.

    CANNOT_KNOW with so few controls that no p-value could rule chance out.
    """
    if least_p(controls) > LEVEL:
        return Kind.CANNOT_KNOW
    reached, in_reach = reach
    if p_value <= LEVEL and 2 * reached >= in_reach:
        return Kind.FOUND if 2 * found >= claims else Kind.AMBIGUOUS
    return Kind.NOT_RECOVERABLE if 2 * in_reach < n else Kind.AMBIGUOUS


def adjusted(found: Sequence[int], chance: Sequence[Sequence[int]]) -> list[float]:
    """The p-values of k methods, each as the best of them all (Westfall and Young 1993, maxT).

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


def _unknowable(truth: Dataset, controls: Controls, claims: int, radius: float) -> str:
    """Why nothing can be said, or an empty string."""
    if not claims:
        return (
            "Nothing is claimed: no candidate passes the attack's own test (on the margin with a "
            "multiplier of its own, or needed by every explanation)."
        )
    if truth.n < MIN_POINTS:
        return f"With {truth.n} points a match may be luck; draw {MIN_POINTS} or more."
    if not len(controls):
        return "There are no controls, so chance is not measured: take `control_sets(truth)`."
    alone = float(met(controls, truth.x, truth.y, (radius,)).double().mean())
    if alone >= CROWDED * truth.n:
        return (
            f"{controls.origin.value.capitalize()} points alone meet {alone:.2g} of {truth.n} "
            f"points within {radius:g}: "
            "the points lie too close for this radius. Take a smaller one."
        )
    return ""


def _matched(near: Tensor) -> Tensor:
    """The largest one-to-one matching of near (n, c): index of each row's column or -1 (n,)."""
    if not near.any():
        return torch.full((len(near),), -1)
    columns = maximum_bipartite_matching(csr_matrix(near.numpy()), perm_type="column")
    return torch.from_numpy(columns.astype(np.int64))


def _checked(truth: Dataset, x: Tensor, y: Tensor, radii: Sequence[float]) -> tuple[Tensor, Tensor]:
    if x.ndim != 2 or x.shape[1] != truth.d or y.shape != x.shape[:1]:
        raise ValueError(
            f"claims need x (c, {truth.d}) and y (c,); got {tuple(x.shape)} and {tuple(y.shape)}"
        )
    if not bool(torch.isfinite(x).all()):
        raise ValueError("a claim is not finite; keep the last finite state of the attack")
    if not radii or not all(radius > 0 for radius in radii):
        raise ValueError(f"radii must be positive; got {tuple(radii)}")
    return x.detach().to(truth.x), y.detach().to(truth.y)
