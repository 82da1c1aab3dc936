"""Images matched on cases whose answer is known, and verdicts against controls."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from itertools import combinations
from math import comb

import pytest
import torch

from explorer.engine.controls import Origin
from explorer.engine.images import MEASURES, ImageScore, image_scores, image_verdict
from explorer.engine.scoring import LEVEL, Doubt, Kind, Unknowable
from tests.engine.draws import rng, uniform


def pictures(n, seed, shape=(1, 6, 7)):
    return uniform(n, *shape, seed=seed)


def score(truth, found):
    return image_scores([truth], found)[0]


def test_the_truth_matches_itself_in_any_order():
    truth, order = pictures(5, 0), torch.tensor([3, 0, 4, 1, 2])
    made = score(truth, truth[order])
    assert all(bool(made.matched(measure).all()) for measure in MEASURES)
    assert made.nearest.tolist() == torch.argsort(order).tolist()
    torch.testing.assert_close(made.ncc, torch.ones(5, dtype=torch.float64))
    torch.testing.assert_close(made.ssim, torch.ones(5, dtype=torch.float64))


def test_ssim_is_on_the_scale_of_pixels_and_the_others_know_no_contrast():
    truth = pictures(5, 0)
    made = score(truth, 0.45 + 0.1 * truth)
    assert bool(made.named.all()) and bool(made.matched("ncc").all())
    assert not bool(made.matched("ssim").any())
    black = torch.nn.functional.pad(truth, [5] * 4)  # the ground of a digit
    assert float(score(black, black + 0.01).ssim.min()) > 0.5
    assert float(score(black, black - 9 * (black == 0)).ssim.min()) == 1  # below black is black


def test_the_correlation_is_that_of_the_pixels():
    truth, found = pictures(4, 1), pictures(3, 2)
    made = score(truth, found)
    stacked = torch.corrcoef(torch.cat([truth.flatten(1), found.flatten(1)]))[:4, 4:]
    torch.testing.assert_close(made.ncc, stacked.max(1).values)
    assert made.nearest.tolist() == stacked.argmax(1).tolist()


def test_a_candidate_names_the_nearest_of_all_images():
    sets = pictures(12, 3).split(4)
    found = torch.cat([sets[1][2:3] + 0.1 * pictures(1, 4), sets[0][:1], torch.ones(1, 1, 6, 7)])
    named = [made.named.tolist() for made in image_scores(sets, found)]
    assert named == [[True, False, False, False], [False, False, True, False], [False] * 4]
    twice = image_scores([sets[0], sets[0]], found)  # the same image on both sides counts on both
    assert twice[0].named.tolist() == twice[1].named.tolist()
    assert not any(bool(made.named.any()) for made in image_scores(sets, found[2:]))  # a flat one


def test_images_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        score(pictures(2, 0), torch.full((1, 1, 6, 7), torch.nan))


def hits(count, n=10, classes=None):
    matched = torch.arange(n) < count
    none = torch.zeros(n)
    same = none if classes is None else torch.as_tensor(classes)
    return ImageScore(none, none, none, none, matched, same)


@pytest.mark.parametrize(
    ("found", "each", "controls", "kind"),
    [(6, 0, 19, Kind.FOUND), (4, 1, 19, Kind.AMBIGUOUS), (2, 2, 19, Kind.AMBIGUOUS),
     (0, 0, 19, Kind.AMBIGUOUS), (10, 0, 1, Kind.FOUND), (6, 0, 0, Kind.CANNOT_KNOW)],
)  # fmt: skip
def test_verdicts(found, each, controls, kind):
    verdict = image_verdict(hits(found), [hits(each)] * controls)
    assert verdict.kind is kind and verdict.share == found / 10
    assert (verdict.origin, verdict.controls) == (Origin.HELD_OUT, controls)
    assert (verdict.why_not is Unknowable.NO_CONTROLS) == (not controls)
    if controls:
        all_hits, others = found + each * controls, 10 * (controls + 1) - found - each * controls
        ways = sum(comb(all_hits, k) * comb(others, 10 - k) for k in range(found, 11))
        assert verdict.p_value == pytest.approx(ways / comb(all_hits + others, 10))
        assert (verdict.doubt is Doubt.LIKELY_CHANCE) == (verdict.p_value > LEVEL)
        assert (verdict.of_controls, verdict.most) == (each / 10, each)


def test_few_images_cannot_rule_chance_out():
    verdict = image_verdict(hits(2, 2), [hits(0, 2)] * 2)
    assert verdict.kind is Kind.CANNOT_KNOW and verdict.doubt is Doubt.FEW_CONTROLS
    assert verdict.p_value == verdict.least == pytest.approx(1 / 15)  # of 6 images 2 are drawn


def test_the_p_value_is_the_share_of_all_draws_class_by_class():
    first, second = hits(2, 3, [0, 1, 1]), hits(1, 3, [0, 0, 1])
    matched, of = [1, 1, 0, 1, 0, 0], [0, 1, 1, 0, 0, 1]
    draws = [
        sum(matched[i] for i in picked)
        for picked in combinations(range(6), 3)
        if Counter(of[i] for i in picked) == Counter(first.classes.tolist())
    ]
    share = sum(count >= 2 for count in draws) / len(draws)
    assert image_verdict(first, [second]).p_value == pytest.approx(share)


def test_candidates_that_know_no_image_from_others_are_held_for_knowing_in_one_of_twenty():
    """Images and candidates of two classes, and training sets drawn afterwards, class by class."""
    wrong: Counter[str] = Counter()
    for seed in range(6):
        images = pictures(60, seed) + torch.arange(2.0).repeat(30)[:, None, None, None]
        found = images[::4] + 0.15 * pictures(15, seed + 1000)
        (all_,) = image_scores([images], found, [torch.arange(60) % 2])
        for draw in range(50):
            order = torch.randperm(30, generator=rng(50 * seed + draw))
            sets = [torch.cat([2 * part, 2 * part + 1]) for part in order.split(5)]
            truth, *others = (
                replace(all_, **{f.name: getattr(all_, f.name)[s] for f in fields(all_)})
                for s in sets
            )
            for measure in MEASURES:
                wrong[measure] += image_verdict(truth, others, measure).p_value <= LEVEL
    most = 30  # of 300, where 15 are expected; more with a chance of 1 in 5,000
    assert all(0 < wrong[measure] <= most for measure in MEASURES), wrong
