"""Claims in many coordinates: are they nearer to the training points than to held-out ones?

In many coordinates no claim comes within a small radius of a point, and yet it may know that point
from all others. So distances are compared, by one statistic that was fixed before any result. Of a
class with N held-out points, a training point at distance d from the nearest claim of its class has
the share

    s = (1 + #{held-out points of its class at distance d or less}) / (N + 1).

If claims know no training point, s is at most a with a probability of at most a. A point counts as
found where s <= 1/20. The p-value is that of a permutation test (Phipson and Smyth 2010): the mean
logarithm of the ranks in the pool of both, as Fisher (1932) combines shares, against that of as
many points drawn from the pool, class by class.

The test asks whether training and held-out points can be exchanged. Where the points alone say that
they cannot, by their energy distance (Szekely and Rizzo 2013), nothing can be known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.controls import MOST, Origin
from explorer.engine.data import Dataset
from explorer.engine.data.drawings import generator_of
from explorer.engine.scoring import LEVEL, MIN_POINTS, Kind, Unknowable, Verdict, score

FEW_COORDINATES = 3  # arbitrary: in more, near points are far apart, and ranks decide
FOUND_SHARE = 1 / 20  # arbitrary: of held-out points that may be as near to a claim as a found one
LEAST = round(1 / FOUND_SHARE) - 1  # held-out points of a class; with fewer none can be found
OTHER_SOURCE = 0.01  # arbitrary: p at which points are of two sources; of one, as often wrong
COMPARED = 1000  # arbitrary: held-out points whose distances to all others are computed


@dataclass(frozen=True, eq=False, kw_only=True)
class RankVerdict(Verdict):
    """What may be said of claims by ranks against held-out points; there is no radius.

    Attributes:
        shares: of each training point (n,), see the head of this file; small where claims are near.
        held_out: held-out points that were compared.
        fewest: of these, of the class that has the fewest.
        source_p: of one source for training and held-out points (`source_p`); nan where not asked.
            Held-out points of another source, or too few of a class, are no controls.
    """

    shares: Tensor
    held_out: int
    fewest: int
    source_p: float = math.nan

    @property
    def which(self) -> Tensor:
        """Return which points are found (n,), bool."""
        return self.shares <= FOUND_SHARE


def judge_by_ranks(
    truth: Dataset, unseen: Dataset, x: Tensor, y: Tensor, seed: int = 0
) -> RankVerdict:
    """Return what may be said of claims by their distances to training and to held-out points.

    Args:
        truth: the points (n, d) that a network was trained on.
        unseen: points of the same source that it was not trained on.
        x: places of the claims (c, d).
        y: their labels (c,).
        seed: of what is drawn.

    Returns:
        The verdict. CANNOT_KNOW without claims, with fewer than `LEAST` held-out points of a class
        of the truth, and where training and held-out points are not of one source.

    Raises:
        ValueError: as `score`.

    Source: Phipson and Smyth 2010 for the p-value, Fisher 1932 for the mean logarithm, Szekely and
        Rizzo 2013 for the energy distance; that they make a verdict is our own.

    Example:
        >>> import torch
        >>> from explorer import Dataset
        >>> from explorer.engine.ranks import judge_by_ranks
        >>> x = torch.randn(50, 8, generator=torch.Generator().manual_seed(0)).double()
        >>> truth, unseen = (Dataset(part, torch.ones(len(part))) for part in (x[:10], x[10:]))
        >>> made = judge_by_ranks(truth, unseen, x[:5] + 0.1, torch.ones(5))
        >>> made.found, made.p_value <= 0.05
        (5, True)
    """
    shares, ranks = truth.x.new_ones(truth.n), []
    sizes, chance = [], 0.0
    near, far = (score(s, x, y, (1.0,)).distances for s in (truth, unseen))
    for label in truth.y.unique():
        own, others = near[truth.y == label], far[unseen.y == label]
        sizes.append(len(others))
        shares[truth.y == label] = _as_near(own, others, len(others) + 1)
        pool = torch.cat([own, others])
        ranks.append(_as_near(pool, pool, len(pool), first=0).log())
        chance += len(own) * math.floor(FOUND_SHARE * (len(others) + 1)) / (len(others) + 1)
    found = int((shares <= FOUND_SHARE).sum())
    drawn = _draws(truth, sizes, seed)
    p_value, kind = math.nan, Kind.CANNOT_KNOW
    alike = source_p(truth, unseen, seed) if min(sizes) >= LEAST else math.nan
    why_not = None if alike > OTHER_SOURCE else Unknowable.NO_CONTROLS
    if not len(x) or truth.n < MIN_POINTS:
        why_not = Unknowable.FEW_POINTS if len(x) else Unknowable.NO_CLAIMS
    if why_not is None:
        p_value = _at_most(torch.cat(ranks)[drawn].mean(1))
        kind = Kind.FOUND if p_value <= LEVEL and 2 * found >= truth.n else Kind.AMBIGUOUS
    return RankVerdict(
        kind=kind, p_value=p_value, n=truth.n, claims=len(x), found=found, why_not=why_not,
        chance=chance, origin=Origin.POOLED, controls=len(drawn) - 1, shares=shares,
        held_out=sum(sizes), fewest=min(sizes), source_p=alike,
    )  # fmt: skip


def _as_near(own: Tensor, others: Tensor, whole: int, first: int = 1) -> Tensor:
    """Return `first` and how many others are as small as each own distance, over `whole`."""
    counts = torch.searchsorted(others.sort().values, own, right=True)
    return (counts + first).double() / whole


def _draws(truth: Dataset, sizes: list[int], seed: int) -> Tensor:
    """Return numbers (1 + K, n) in the pool of the training points and K draws, by class."""
    generator = generator_of(seed, truth.n, 9)
    parts, begin = [], 0
    for label, more in zip(truth.y.unique(), sizes, strict=True):
        n = int((truth.y == label).sum())
        order = torch.rand(MOST, n + more, generator=generator).argsort(1)[:, :n]
        parts.append(begin + torch.cat([torch.arange(n)[None], order]))
        begin += n + more
    return torch.cat(parts, 1)


def _at_most(values: Tensor) -> float:
    """Return the p-value of the first of values (1 + K,): the share that are as small."""
    return float((values <= values[0] + 1e-12 * values[0].abs()).double().mean())


def source_p(truth: Dataset, unseen: Dataset, seed: int = 0) -> float:
    """Return the p-value of one source for training and held-out points, by the points alone.

    That of a permutation test of their energy distance, class by class, of at most `COMPARED`
    held-out points.

    Args:
        truth: training points (n, d).
        unseen: held-out points; of classes that the truth lacks none counts.
        seed: of what is drawn.
    """
    order = torch.randperm(unseen.n, generator=generator_of(seed, unseen.n, 10))[:COMPARED]
    kept = Dataset(unseen.x[order], unseen.y[order])
    parts, sizes = [], []
    for label in truth.y.unique():
        others = kept.x[kept.y == label]
        parts += [truth.x[truth.y == label], others]
        sizes.append(len(others))
    x, drawn = torch.cat(parts), _draws(truth, sizes, seed)
    n, m = truth.n, len(x) - truth.n
    apart = torch.cdist(x, x)
    chosen = torch.zeros(len(drawn), len(x), dtype=x.dtype).scatter_(1, drawn, 1.0)
    within, out = ((chosen @ apart) * chosen).sum(1), chosen @ apart.sum(1)
    between = out - within
    rest = apart.sum() - within - 2 * between
    return _at_most(within / n**2 + rest / m**2 - 2 * between / (n * m))
