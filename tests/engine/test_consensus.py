"""What several starts agree on, against laws: only what they share is believed."""

from __future__ import annotations

import pytest
import torch

from explorer.engine.consensus import agreements, consensus
from explorer.engine.data.images import Choice, draw
from explorer.research.image_runs import Selection, selection
from explorer.research.quiz import TRAINED, quiz


def pictures(count, seed=0):
    return torch.rand(count, 1, 6, 5, generator=torch.Generator().manual_seed(seed)).double()


def test_what_all_starts_hold_comes_first_and_the_rest_behind():
    shared = pictures(3)
    starts = [torch.cat([pictures(4, 10 + k), shared.flip(0) * (1 - 0.1 * k)]) for k in range(3)]
    made = consensus(starts)
    assert made.agreement[:3].min() > 0.999 > 0.9 > made.agreement[3:].max()
    assert made.sizes[:3].tolist() == [3, 3, 3] and int(made.sizes.sum()) == 21
    far = torch.cdist(made.images[:3].flatten(1), 0.9 * shared.flatten(1))
    assert sorted(far.argmin(1).tolist()) == [0, 1, 2] and float(far.amin(1).max()) < 1e-9


def test_agreement_is_of_the_other_starts_alone():
    twice = torch.cat([pictures(1), pictures(1)])  # one start that repeats itself
    assert float(agreements([twice, pictures(5, 3)])[:2].max()) < 0.9
    with pytest.raises(ValueError, match="two starts"):
        consensus([twice])


def test_order_and_sizes_of_starts_do_not_matter():
    starts = [pictures(4, 1), pictures(7, 2), pictures(2, 3)]
    a, b = agreements(starts).split([4, 7, 2]), agreements(starts[::-1]).split([2, 7, 4])
    for mine, other in zip(a, b[::-1], strict=True):
        assert torch.allclose(mine, other, rtol=0, atol=1e-12)


def test_precision_counts_the_best_and_the_truth_can_do_no_worse():
    chosen = Selection(pictures(4), torch.tensor([0.9, 0.8, 0.7, 0.6]),
                       torch.tensor([0.95, 0.5, 0.99, 0.2]), torch.zeros(4))  # fmt: skip
    assert [chosen.precision(k) for k in (1, 2, 3, 4)] == pytest.approx([1, 0.5, 2 / 3, 0.5])
    assert [chosen.precision(k, True) for k in (1, 2, 3, 4)] == pytest.approx([1, 1, 2 / 3, 0.5])


def test_training_images_are_told_by_what_is_nearest_to_them():
    drawn = draw(Choice(n=10))
    mine = drawn.pictures(drawn.train.x)
    made = selection(drawn, [mine, mine.flip(0)])
    assert made.right.all() and len(set(made.of.tolist())) == len(made.of) == 9  # two are alike


def test_a_quiz_has_four_right_answers_and_an_attack_that_found_all_knows_them():
    drawn = draw(Choice(n=10))
    mine = {tuple(x.flatten().tolist()) for x in drawn.pictures(drawn.train.x)}
    for seed in range(5):
        made = quiz(drawn, drawn.pictures(drawn.train.x), seed)
        assert [tuple(x.flatten().tolist()) in mine for x in made.images] == made.trained.tolist()
        assert int(made.trained.sum()) == made.right(made.answer) == TRAINED
    none = sum(
        quiz(drawn, pictures(30).new_ones(3, 1, 8, 8), s).right(made.answer) for s in range(9)
    )
    assert none < 9 * TRAINED  # constant candidates know nothing
    with pytest.raises(ValueError, match="training images"):
        quiz(draw(Choice(n=2)), drawn.pictures(drawn.train.x), 0)
