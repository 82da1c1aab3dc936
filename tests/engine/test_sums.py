"""The weights are the layers of their points plus what is left over, to rounding."""

from __future__ import annotations

import pytest
import torch

from explorer.engine import training
from explorer.engine.certificate import certify
from explorer.engine.data import Dataset, preset
from explorer.engine.exact import maximum_margin
from explorer.engine.gradients import residual
from explorer.engine.multipliers import Fit, exact_multipliers
from explorer.engine.network import Network
from explorer.engine.sums import OnePerPoint, Sum, sum_of, sum_over
from explorer.engine.training import TrainConfig

ROUNDING = 1e-12


def trained(name: str, steps: int, **config) -> tuple[Network, Dataset]:
    data, config = preset(name), TrainConfig(steps=steps, **config)
    state = training.init(data, config, torch.Generator().manual_seed(0))
    for made in training.iterate(data, state, config, stride=steps):
        state = made
    return state.net, data


def exact(name: str) -> tuple[Network, Dataset]:
    data = preset(name)
    return maximum_margin(data.x, data.y).net, data


CASES = {
    "trained": lambda: trained("alternating-circle", 1500, widths=(30,)),
    "trained on a line": lambda: trained("alternating-line", 1500, widths=(20,)),
    "deep": lambda: trained("moons", 1500, widths=(12, 9)),
    "without a bias": lambda: trained("blobs", 400, widths=(10,), bias=False),
    "exact": lambda: exact("alternating-circle"),
    "exact on a line": lambda: exact("alternating-line"),
}


@pytest.mark.parametrize("case", CASES)
def test_layers_and_remainder_are_the_weights_and_its_norm_is_the_residual(case: str) -> None:
    net, data = CASES[case]()
    made = certify(net, data.x, data.y)
    assert made.q_min > 0
    parts = sum_of(net, data.x, data.y, made.fit)
    into, out = parts.rests()
    size = float(parts.net.rho)
    first = parts.net.blocks[0]
    layers = parts.pull.T @ parts.points
    assert float((layers + into - first).abs().max()) < ROUNDING * size
    assert abs(parts.left - made.residual) < ROUNDING
    assert out.shape == parts.net.weights[1].shape
    if len(net.weights) == 2:
        assert float(into.square().sum() + out.square().sum()) == pytest.approx(
            float(parts.rest.square().sum()), rel=1e-9
        )


def test_what_explains_an_exact_network_whole_has_slopes_that_attain_its_residual() -> None:
    net, data = exact("alternating-circle")
    net = Network(tuple(w.double() for w in net.weights), net.biases)
    found = exact_multipliers(net, data.x, data.y, 1e-6)
    assert isinstance(found, Fit)
    assert abs(sum_over(net, data.x, data.y, found).left - found.residual) < ROUNDING


def test_one_column_a_point_is_the_residual_of_its_multipliers_and_slopes() -> None:
    net, data = exact("alternating-line")
    lam = torch.rand(data.n, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    slopes = (torch.full((data.n, net.widths[0]), 0.5, dtype=torch.float64),)
    made = sum_over(net, data.x, data.y, OnePerPoint(lam, slopes))
    assert torch.equal(made.rest, residual(net, data.x, lam * data.y, slopes))


def test_points_that_are_not_separated_leave_all_of_the_weights() -> None:
    net, data = trained("alternating-circle", 1, widths=(8,))
    made = certify(net, data.x, data.y)
    parts = sum_of(net, data.x, data.y, made.fit)
    assert isinstance(parts, Sum) and made.fit is None
    assert parts.left == made.residual == 1.0 and not parts.pull.any()


def test_a_moved_point_tears_the_sum_open() -> None:
    net, data = exact("alternating-circle")
    fit = certify(net, data.x, data.y).fit
    before = sum_of(net, data.x, data.y, fit).left
    moved = data.with_point_at(0, tuple((0.9 * data.x[0]).tolist()))
    assert sum_of(net, moved.x, moved.y, fit).left > 1e3 * before
