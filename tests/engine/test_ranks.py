"""Claims judged by ranks: chance as often as it is said, and exact shares."""

from __future__ import annotations

import pytest
import torch

from explorer.engine.data import Dataset
from explorer.engine.ranks import FOUND_SHARE, LEAST, OTHER_SOURCE, judge_by_ranks, source_p
from explorer.engine.scoring import LEVEL, Unknowable
from tests.engine.draws import rng


def cloud(seed: int, n: int = 60, d: int = 8) -> Dataset:
    """Points of two classes that overlap."""
    g = rng(seed)
    y = torch.where(torch.rand(n, generator=g) < 0.5, -1.0, 1.0).double()
    return Dataset(torch.randn(n, d, generator=g, dtype=torch.float64) + 0.3 * y[:, None], y)


def parts(data: Dataset, n: int) -> tuple[Dataset, Dataset]:
    return Dataset(data.x[:n], data.y[:n]), Dataset(data.x[n:], data.y[n:])


def test_claims_that_know_the_law_and_no_point_are_a_find_as_often_as_is_said() -> None:
    """Binomial: 60 trials at 5% give more than 7 once in a hundred; found points alike."""
    out, found, chance = 0, 0, 0.0
    for seed in range(60):
        truth, unseen = parts(cloud(seed, 80), 12)
        claims = cloud(1000 + seed, 15)
        made = judge_by_ranks(truth, unseen, claims.x, claims.y, seed)
        out += made.p_value <= LEVEL
        found, chance = found + made.found, chance + made.chance
    assert out <= 7 and abs(found - chance) < 3 * chance**0.5


@pytest.mark.parametrize("known", [3, 12])
def test_claims_that_know_points_are_a_find(known: int) -> None:
    truth, unseen = parts(cloud(3, 80), 12)
    noise = cloud(4, known)
    made = judge_by_ranks(truth, unseen, truth.x[:known] + 0.1 * noise.x, truth.y[:known])
    assert made.p_value <= LEVEL and bool(made.which[:known].all())


def test_a_share_counts_the_held_out_points_that_are_as_near() -> None:
    x = torch.arange(42.0).double()[:, None]  # the claim stands at 0
    truth, unseen = parts(Dataset(x, torch.ones(42).double()), 3)
    moved = Dataset(torch.tensor([[0.5], [4.0], [20.5]]).double(), truth.y)
    made = judge_by_ranks(moved, unseen, torch.zeros(1, 1).double(), torch.ones(1))
    assert made.shares.tolist() == [1 / 40, 3 / 40, 19 / 40]
    assert made.which.tolist() == [True, False, False] and made.found == 1
    assert made.chance == pytest.approx(3 * FOUND_SHARE) and made.held_out == made.fewest == 39


def test_controls_that_are_none_are_told_apart() -> None:
    truth, unseen = parts(cloud(5, 400), 20)
    right = judge_by_ranks(truth, unseen, truth.x, truth.y)
    assert right.why_not is None and right.source_p > OTHER_SOURCE
    moved = judge_by_ranks(truth, Dataset(unseen.x + 2, unseen.y), truth.x, truth.y)
    assert moved.why_not is Unknowable.NO_CONTROLS and moved.source_p <= OTHER_SOURCE
    first = (unseen.y > 0).nonzero().squeeze(1)[: LEAST - 1]
    rest = (unseen.y < 0).nonzero().squeeze(1)
    order = torch.cat([first, rest])
    few = judge_by_ranks(truth, Dataset(unseen.x[order], unseen.y[order]), truth.x, truth.y)
    assert few.why_not is Unknowable.NO_CONTROLS and few.fewest == LEAST - 1
    none = judge_by_ranks(truth, unseen, truth.x[:0], truth.y[:0])
    assert none.why_not is Unknowable.NO_CLAIMS and not none.found


def test_points_of_one_source_are_told_apart_as_often_as_is_said() -> None:
    told = [source_p(*parts(cloud(seed, 80), 12), seed) <= 0.1 for seed in range(60)]
    assert sum(told) <= 12  # binomial at 10%: more once in a hundred
