"""From candidates to claims: which points an attacker says it has found, without any truth.

Three filters, each computed from the weights and the candidates alone:

1. candidates of one label within `MERGE_RADIUS` count as one, at their mean weighted by the
   multipliers, which add up (Lemma 2 of "No Prior, No Leakage": merged points of one activation
   pattern explain theta as well as the parts do);
2. a multiplier below `LAM_SHARE` of the mean multiplier of the claims is negligible: lam = 0 means
   that theta says nothing of the point;
3. a support point lies on the margin, q = 1 (complementary slackness); a candidate off it by
   more than `MARGIN_BAND` cannot be one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from itertools import combinations
from typing import TypeVar

import torch
from torch import Tensor

from explorer.engine.arrays import greedy_groups, near_head, one_to_one
from explorer.engine.attacks.target import Target
from explorer.engine.margin import q_of
from explorer.engine.tables import Rowwise

MERGE_RADIUS = 0.03  # arbitrary: the middle of the radii at which claims are scored
LAM_SHARE = 0.1  # arbitrary
MARGIN_BAND = 0.05  # arbitrary: the relaxed slopes move a candidate off the margin by up to 0.05


@dataclass(frozen=True, eq=False)
class Report(Rowwise):
    """What an attacker claims, largest multiplier first.

    Attributes:
        x: places of the c claims (c, d), in units of the data.
        y: their labels (c,).
        lam: their multipliers (c,), of the target at margin 1.

    Example:
        >>> import torch
        >>> from explorer import Report
        >>> claims = Report(torch.tensor([[0.5, 0.0]]), torch.tensor([1.0]), torch.tensor([0.8]))
        >>> len(claims.x)
        1
    """

    x: Tensor
    y: Tensor
    lam: Tensor

    def heaviest_first(self) -> Report:
        """Return the claims by their multipliers, the largest first, equal ones as they are."""
        return self.take(torch.argsort(self.lam, descending=True, stable=True))


S = TypeVar("S")
C = TypeVar("C")


def in_units_of_data(
    report: Callable[[Target, S, C], Report],
) -> Callable[[Target, S, C], Report]:
    """Let claims come back from the unit of the target (`Target.unit`) into that of the data."""

    @wraps(report)
    def scaled_report(target: Target, state: S, config: C) -> Report:
        made = report(target, state, config)
        return made if target.unit == 1 else replace(made, x=made.x * target.unit)

    return scaled_report


def merge_candidates(x: Tensor, y: Tensor, lam: Tensor, radius: float) -> Report:
    """Return the candidates with those of one label that lie close together made one point.

    All within `radius` of the heaviest candidate that is left become one point, at the mean
    weighted by their multipliers, which add up.

    Args:
        x: candidates (m, d).
        y: their labels (m,).
        lam: their multipliers (m,); negative ones count as 0.
        radius: distance of two candidates that are one, in units of the data.

    Returns:
        At most m points, largest multiplier first.

    Source: own; that multipliers add up is lemma 2 of Refael et al. 2025.

    Example:
        >>> import torch
        >>> from explorer.engine.attacks.claims import merge_candidates
        >>> x, one = torch.tensor([[0.0], [0.1], [2.0]]), torch.ones(3)
        >>> merge_candidates(x, one, one, radius=0.2).lam
        tensor([2., 1.])
    """
    lam = lam.clamp_min(0)
    order, near = torch.argsort(lam, descending=True, stable=True), near_head(x, y, radius)
    places, labels, weights = [], [], []
    for group in greedy_groups(order, near):
        total = lam[group].sum()
        share = lam[group] / total if bool(total > 0) else torch.ones_like(lam[group]) / len(group)
        places.append(share @ x[group])
        labels.append(y[group[0]])
        weights.append(total)
    if not places:
        return Report(x, y, lam)
    return Report(*map(torch.stack, (places, labels, weights))).heaviest_first()


def claims(
    target: Target, x: Tensor, y: Tensor, lam: Tensor, banded: bool = True,
    radius: float = MERGE_RADIUS,
) -> Report:  # fmt: skip
    """Return the candidates x (m, d), y and lam (m,) that pass the three filters of this file.

    Unless `banded`, the third is left out: weight decay puts no point on a margin. `radius` is that
    of the first, in units of the data.
    """
    merged = merge_candidates(x, y, lam, radius)
    q = q_of(target.net, merged.x, merged.y) / target.level
    on_margin = (q - 1).abs() <= (MARGIN_BAND if banded else torch.inf)
    mean = merged.lam[merged.lam > 0].mean() if bool((merged.lam > 0).any()) else 0.0
    kept = on_margin & (merged.lam > 0) & (merged.lam >= LAM_SHARE * mean)
    if target.known is not None:
        kept &= ~target.known.is_given(target.unit * merged.x, radius)
    return merged.take(kept)


# --- How far independent restarts of an attack agree: a surrogate of recall without any truth ---
# With claims C_1 ... C_r of r restarts from independent noise, and s_ab the number of claims of a
# and b that can be paired one to one, same label and within `MERGE_RADIUS`,
#
#     agreement = mean_{a<b} s_ab  *  mean_{a<b} 2 s_ab / (|C_a| + |C_b|).
#
# The first factor counts claims that survive another start, the second is their share of all
# claims: it takes the credit from attacks that claim much, where some claims meet by crowding. What
# the noise put there does not come back from other noise; what theta put there does. So does
# whatever else of theta draws candidates, training point or not (spurious stationary points):
# agreement is evidence, not proof. Measured by `benchmarks/bench_tune.py`.


def survivors(a: Report, b: Report, radius: float = MERGE_RADIUS) -> int:
    """Return how many claims of a and b can be paired at most, same label, within `radius`."""
    apart = torch.cdist(a.x, b.x, compute_mode="donot_use_mm_for_euclid_dist")
    near = (apart <= radius) & (a.y[:, None] == b.y[None])
    return int((one_to_one(near) >= 0).sum())


def agreement(reports: Sequence[Report], radius: float = MERGE_RADIUS) -> float:
    """See the module. Symmetric; k for restarts that all claim the same k points; 0 for no claims.

    Raises:
        ValueError: for fewer than two reports.
    """
    if len(reports) < 2:
        raise ValueError(f"agreement needs two restarts or more; got {len(reports)}")
    pairs = list(combinations(reports, 2))
    kept = [survivors(a, b, radius) for a, b in pairs]
    sizes = [max(len(a.x) + len(b.x), 1) for a, b in pairs]
    share = sum(2 * s / size for s, size in zip(kept, sizes, strict=True)) / len(pairs)
    return share * sum(kept) / len(pairs)
