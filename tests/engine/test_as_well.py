"""Other sets that leave no more of the weights: they are as good, and none is beyond the bound."""

from __future__ import annotations

import pytest
import torch

from explorer.engine.explanations.alternatives import as_well
from explorer.engine.explanations.programs import AS_WELL, farthest, sample_of
from explorer.engine.explanations.splitting import margin_error, residual
from explorer.engine.multipliers import fit_multipliers
from tests.engine.test_consistent import BOX, O3, exact
from tests.engine.test_rows import deep  # noqa: F401 - a fixture


@pytest.mark.parametrize("seed", range(3))
def test_an_exact_network_has_the_distance_of_the_linear_program(seed: int) -> None:
    net, x, y = exact(seed)
    sample = sample_of(net, x, y, BOX, grid=0)
    made, far = as_well(sample), farthest(sample)
    assert made.residual <= AS_WELL * 1.001 and margin_error(net, made.explanation) < 1e-6
    assert made.distance <= made.at_most * (1 + 1e-6)
    assert made.distance == pytest.approx(far.distance, rel=0.05, abs=1e-3)
    assert made.explanation.mass == pytest.approx(float(net.rho) ** 2 / 2, rel=1e-4)
    assert made.distance >= sample.radius
    assert made.other and made.truth < AS_WELL


def test_a_trained_network_has_sets_as_good_and_says_what_both_leave(deep) -> None:  # noqa: F811
    _, sample, _, _ = deep
    made = as_well(sample)
    truly = sample.missed
    assert made.truth == truly and made.residual <= truly * (1 + 1e-6)
    assert truly < residual(sample.net, sample.truth)  # one tuple of slopes a point misses more
    gap = torch.cdist(made.explanation.x, sample.truth.x).amin(dim=1)
    assert made.distance == pytest.approx(
        float(gap @ made.explanation.lam) / sample.mass, rel=1e-3, abs=1e-6
    )
    assert made.distance <= made.at_most
    assert truly > AS_WELL and made.scope.points == len(sample.x)


def test_more_rounds_find_sets_no_nearer_and_bounds_no_looser(deep) -> None:  # noqa: F811
    _, sample, _, _ = deep
    few, more = as_well(sample, rounds=5), as_well(sample, rounds=60)
    assert few.distance <= more.distance + 1e-12 and more.at_most <= few.at_most + 1e-12


def test_the_least_residual_is_that_of_the_fit_over_all_points() -> None:
    net, x, y = exact(4, n=7)
    sample = sample_of(net, x + 1e-3, y, BOX, tau=1e-2, grid=0)
    made = as_well(sample, rounds=0)  # no step away from the least residual
    fit = fit_multipliers(net, sample.x[sample.truth.n :], sample.y[sample.truth.n :], 1e-7)
    assert float(made.explanation.lam.min()) >= 0
    assert made.residual <= fit.residual * (1 + 1e-3) + 1e-6


def test_points_that_are_told_have_no_other_set() -> None:
    from explorer.engine.exact import maximum_margin

    x, y = O3
    sample = sample_of(maximum_margin(x, y).net, x, y, BOX)
    made = as_well(sample)
    assert made.distance < sample.radius and not made.other
