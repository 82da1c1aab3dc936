"""Shares of matched images on cases whose answer is known, and verdicts against controls."""

from __future__ import annotations

import pytest
import torch

from explorer.engine.controls import Origin
from explorer.engine.images import EVEN, NCC_LEAST, image_score, image_verdict
from explorer.engine.scoring import Doubt, Kind, Unknowable
from explorer.research.words.verdicts import verdict
from tests.engine.draws import rng, uniform


def pictures(n, seed, shape=(1, 6, 7)):
    return uniform(n, *shape, seed=seed)


def test_the_truth_matches_itself_in_any_order_and_contrast():
    truth = pictures(5, 0)
    order = torch.tensor([3, 0, 4, 1, 2])
    made = image_score(truth, 0.2 + 3 * truth[order])
    assert made.share == 1
    assert made.nearest.tolist() == torch.argsort(order).tolist()
    torch.testing.assert_close(made.ncc, torch.ones(5, dtype=torch.float64))
    torch.testing.assert_close(made.ssim, torch.ones(5, dtype=torch.float64))


def test_the_correlation_is_that_of_the_pixels():
    truth, found = pictures(4, 1), pictures(3, 2)
    made = image_score(truth, found)
    stacked = torch.corrcoef(torch.cat([truth.flatten(1), found.flatten(1)]))[:4, 4:]
    torch.testing.assert_close(made.ncc, stacked.max(1).values)
    assert made.nearest.tolist() == stacked.argmax(1).tolist()


def test_noise_matches_nothing_and_half_matches_half():
    truth = pictures(6, 3)
    assert image_score(truth, pictures(9, 4)).share == 0
    assert image_score(truth, torch.cat([truth[:3], pictures(5, 5)])).matched.tolist() == (
        [True] * 3 + [False] * 3
    )


def test_images_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        image_score(pictures(2, 0), torch.full((1, 1, 6, 7), torch.nan))


def scored(share, n=10):
    truth = pictures(n, 7)
    good = round(share * n)
    return image_score(truth, torch.cat([truth[:good], pictures(4, 8)]))


@pytest.mark.parametrize(
    ("share", "chance", "controls", "kind", "p"),
    [(0.6, 0.0, 19, Kind.FOUND, 1 / 20), (0.2, 0.1, 19, Kind.AMBIGUOUS, 1 / 20),
     (0.2, 0.2, 19, Kind.AMBIGUOUS, 1.0), (0.0, 0.0, 19, Kind.AMBIGUOUS, 1.0),
     (0.6, 0.0, 10, Kind.CANNOT_KNOW, 1 / 11), (0.6, 0.0, 0, Kind.CANNOT_KNOW, None)],
)  # fmt: skip
def test_verdicts(share, chance, controls, kind, p):
    verdict = image_verdict(scored(share), [scored(chance)] * controls)
    assert verdict.kind is kind
    if p is not None:
        assert verdict.p_value == pytest.approx(p)
        assert (verdict.doubt is Doubt.LIKELY_CHANCE) == (p == 1)
        assert (verdict.doubt is Doubt.FEW_CONTROLS) == (kind is Kind.CANNOT_KNOW)
        assert verdict.of_controls == pytest.approx(chance)
    assert (verdict.origin, verdict.controls) == (Origin.HELD_OUT, controls)
    assert verdict.share == pytest.approx(share)
    assert (verdict.why_not is Unknowable.NO_CONTROLS) == (not controls)


def test_on_an_even_ground_good_reconstructions_are_not_counted_and_that_is_said():
    """Correlations of 0.98, SSIM of a third: the count finds nothing, and says why."""
    ground = torch.nn.functional.pad(pictures(80, 6), [7] * 4)
    noise = torch.randn(ground[:4].shape, generator=rng(7))
    truth, *others = (
        image_score(part, ground[:4] + 0.03 * noise.double()) for part in ground.split(4)
    )
    made = image_verdict(truth, others)
    assert float(truth.ncc.min()) > NCC_LEAST and made.found == 0 and made.even > EVEN
    assert "no power" in verdict(made)
    plain = [image_score(part, pictures(3, 9)) for part in pictures(80, 8).split(4)]
    assert "no power" not in verdict(image_verdict(plain[0], plain[1:]))
