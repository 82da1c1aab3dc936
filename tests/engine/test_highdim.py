"""The three laws have the moments they claim; labels are what they are called."""

from __future__ import annotations

import pytest
import torch

from explorer.engine.data.highdim import LAWS, HighDimDraw, mean_of, sample, variances_of
from tests.engine.draws import rng


def test_sphere_has_radius_root_d_and_coordinates_of_mean_zero():
    x, _ = sample(HighDimDraw(31), 4000, rng(1))
    assert torch.allclose(x.norm(dim=1), torch.full((4000,), 31**0.5, dtype=torch.float64))
    assert float(x.mean(dim=0).abs().max()) < 5 / 4000**0.5


def test_gaussian_has_its_mean_and_variances():
    how = HighDimDraw(17, "gaussian")
    x, _ = sample(how, 20_000, rng(2))
    assert torch.allclose(x.mean(dim=0), mean_of(how), atol=5 * 1.3 / 20_000**0.5)
    assert torch.allclose(x.var(dim=0), variances_of(how), rtol=0.06)
    assert float(variances_of(how).sum()) == pytest.approx(17)
    assert float(mean_of(how).square().sum()) == pytest.approx(17**0.5)


def test_mixture_has_both_components_and_labels_by_component():
    how = HighDimDraw(12, "mixture", "component")
    x, y = sample(how, 8000, rng(3))
    assert 0.45 < float((y > 0).double().mean()) < 0.55
    for label in (1.0, -1.0):
        mine = x[y == label]
        assert torch.allclose(mine.mean(dim=0), label * mean_of(how), atol=5 / 4000**0.5)
    assert float(mean_of(how).norm()) == pytest.approx(12**0.33)


def test_parity_is_odd_number_of_positive_coordinates():
    x, y = sample(HighDimDraw(6), 50, rng(4))
    expected = [1.0 if sum(v > 0 for v in row) % 2 else -1.0 for row in x.tolist()]
    assert y.tolist() == expected


@pytest.mark.parametrize("law", LAWS)
def test_random_labels_are_fair_and_seeds_repeat(law):
    how = HighDimDraw(3, law, "random")
    x, y = sample(how, 4000, rng(5))
    x2, y2 = sample(how, 4000, rng(5))
    assert torch.equal(x, x2) and torch.equal(y, y2)
    assert abs(float(y.mean())) < 5 / 4000**0.5


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"d": 0}, "d must be"),
        ({"d": 3, "law": "cauchy"}, "distribution"),
        ({"d": 3, "labels": "hair"}, "labels are"),
        ({"d": 3, "labels": "component"}, "mixture"),
    ],
)
def test_wrong_draws_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        HighDimDraw(**wrong)
