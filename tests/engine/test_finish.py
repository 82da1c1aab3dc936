"""The best network over the cells of a trained one: laws, known points, refusals."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from explorer.engine import training
from explorer.engine.data import Dataset, preset
from explorer.engine.exact import maximum_margin
from explorer.engine.exact.finish import NEAR, Finished, states
from explorer.engine.margin import q_of
from explorer.engine.network import Network, init_network, scaled_network
from explorer.engine.progress import Progress, Stopped, no_progress
from explorer.engine.training import TrainConfig
from tests.engine.draws import rng


def finish(
    net: Network, data: Dataset, near: float = NEAR, progress: Progress = no_progress
) -> Finished:
    *_, made = states(net, data.x, data.y, near, progress)
    return made


def random_set(d: int, seed: int) -> Dataset:
    """Points of both classes, the first of them twice; few and simple ones on the line."""
    n = 5 if d == 1 else 10
    draw = rng(seed)
    x = 2 * torch.rand(n, d, generator=draw, dtype=torch.float64) - 1
    y = torch.where(torch.rand(n, generator=draw, dtype=torch.float64) < 0.5, -1.0, 1.0)
    y[1] = -y[2]
    if d == 1:
        y = torch.where(x[:, 0].abs() < 0.5, -1.0, 1.0)
    return Dataset(torch.cat([x, x[:1]]), torch.cat([y, y[:1]]).double())


def trained(data: Dataset, seed: int = 0, steps: int = 400, **given: object) -> Network:
    """Weights after so many steps, or a multiple of them, that separate the points."""
    config = TrainConfig(**{"widths": (100,), "steps": 20_000, **given})
    states = training.iterate(data, training.init(data, config, rng(seed)), config, steps)
    return next(state for state in states if state.q_min > 0).net


def path_norm(net: Network, data: Dataset) -> float:
    """1/2 |theta|^2 at margin 1 of the network with its neurons balanced."""
    total = (net.blocks[0].norm(dim=1) * net.weights[1][0].abs()).sum()
    return float(total / q_of(net, data.x, data.y).min())


def kkt_residual(made: Finished, data: Dataset) -> float:
    """Largest part of a neuron's direction that its points and the walls it leans on leave."""
    net = made.net
    w, b = net.weights[0], net.biases[0]
    x = data.x if b is None else torch.cat([data.x, torch.ones(data.n, 1)], 1)
    rows = (w if b is None else torch.cat([w, b[:, None]], 1)).numpy()
    xt, pull, worst = x.numpy(), (made.lam * data.y).numpy(), 0.0
    for row, v in zip(rows, net.weights[1][0].numpy(), strict=True):
        u = row / np.linalg.norm(row)
        z = xt @ u / np.linalg.norm(xt, axis=1)
        left = u - np.sign(v) * (pull * (z > 1e-9)) @ xt
        walls = xt[np.abs(z) <= 1e-9]
        if len(walls):
            left = left - walls.T @ np.linalg.lstsq(walls.T, left, rcond=None)[0]
        worst = max(worst, float(np.linalg.norm(left)))
    return worst


SETS = [(d, seed) for d in (1, 2, 3, 6) for seed in (1, 3)]


@pytest.mark.parametrize(("d", "seed"), SETS)
@pytest.mark.parametrize("bias", [True, False])
def test_the_best_over_the_cells(d: int, seed: int, bias: bool) -> None:
    if d == 1 and not bias:
        pytest.skip("two neurons without bias separate next to nothing on the line")
    data = random_set(d, seed)
    net = trained(data, bias=bias)
    made = finish(net, data)
    q = q_of(made.net, data.x, data.y)
    held = made.lam > 1e-6 * made.lam.max()
    assert made.proved and 0 <= made.gap <= 1e-8
    assert float(q.min()) == pytest.approx(1, abs=1e-12)
    assert float((q[held] - 1).abs().max()) <= 1e-9
    assert kkt_residual(made, data) <= 1e-6
    assert made.objective == pytest.approx(0.5 * float(made.net.rho) ** 2, rel=1e-12)
    assert made.objective == pytest.approx(float(made.lam.sum()), rel=1e-8)
    assert made.objective <= path_norm(net, data) * (1 + 1e-12)
    assert made.lam[0] == made.lam[-1]  # a point that is there twice


@pytest.mark.parametrize(("d", "seed"), [(d, seed) for d in (1, 2) for seed in (1, 3, 4)])
def test_it_is_the_optimum_where_the_cells_hold_it_and_never_below(d: int, seed: int) -> None:
    data = random_set(d, seed)
    optimum = maximum_margin(data.x, data.y)
    assert optimum.polished
    assert finish(optimum.net, data).objective == pytest.approx(optimum.objective, rel=2e-8)
    made = finish(trained(data), data)
    assert made.objective >= optimum.objective * (1 - 2e-8)
    assert made.bound >= optimum.objective * (1 - 3e-8)


@pytest.mark.parametrize("seed", [0, 3, 9])
def test_more_cells_never_make_it_worse(seed: int) -> None:
    data = preset("alternating-circle", 20, 0.0)
    net = trained(data, seed)
    few, some, many = (finish(net, data, near) for near in (0.0, 0.05, 0.2))
    assert few.cells < some.cells < many.cells
    assert few.objective >= some.objective * (1 - 2e-8) >= many.objective * (1 - 4e-8)
    if seed == 3:
        assert few.objective > many.objective * (1 + 1e-3)


def test_order_of_the_points_and_size_of_the_weights_do_not_matter() -> None:
    data = random_set(2, 3)
    net, order = trained(data), torch.randperm(data.n, generator=rng(1))
    made = finish(net, data)
    other = finish(scaled_network(net, 1e3), Dataset(data.x[order], data.y[order]))
    assert other.objective == pytest.approx(made.objective, rel=2e-8)
    assert other.cells == made.cells


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_scale_of_the_points(scale: float) -> None:
    """Without biases Phi(c x) = c Phi(x): the problem is the same one in other units."""
    data = random_set(2, 3)
    net = trained(data, bias=False)
    one, other = finish(net, data), finish(net, Dataset(scale * data.x, data.y))
    assert other.objective * scale == pytest.approx(one.objective, rel=2e-8)


@pytest.mark.parametrize(("scale", "offset"), [(1e-3, 0.0), (1e-3, 10.0), (1.0, 100.0), (1e3, 0.0)])
def test_scales_and_offsets_with_biases(scale: float, offset: float) -> None:
    data = random_set(2, 1)
    net = trained(data)
    w, b = net.weights[0], net.biases[0]
    assert b is not None
    carried = Network((w / scale, net.weights[1]), (b - offset * w.sum(dim=1), None))
    there = Dataset(scale * (data.x + offset), data.y)
    made, optimum = finish(carried, there), maximum_margin(there.x, there.y)
    assert made.gap <= 1e-7
    assert float(q_of(made.net, there.x, there.y).min()) == pytest.approx(1, abs=1e-9)
    assert optimum.objective * (1 - 2e-7) <= made.objective
    assert made.objective <= path_norm(carried, there) * (1 + 1e-9)


def circle(width: int, seed: int) -> None:
    data = preset("alternating-circle", 20, 0.0)
    made = finish(trained(data, seed, 600, widths=(width,)), data)
    q = q_of(made.net, data.x, data.y)
    assert made.proved
    assert float(q.max() - 1) <= 1e-6 and float(1 - q.min()) <= 1e-6


@pytest.mark.parametrize(("width", "seed"), [(100, 0), (100, 9), (1000, 0)])
def test_every_point_of_the_circle_is_on_the_margin(width: int, seed: int) -> None:
    circle(width, seed)


@pytest.mark.slow
@pytest.mark.parametrize("width", [100, 1000])
@pytest.mark.parametrize("seed", range(10))
def test_every_point_of_the_circle_is_on_the_margin_for_every_seed(width: int, seed: int) -> None:
    circle(width, seed)


def test_states_have_margin_1_and_never_grow() -> None:
    data = preset("alternating-circle", 20, 0.0)
    made = list(states(trained(data, 9), data.x, data.y))
    assert len(made) > 1
    for one, following in pairwise(made):
        assert following.objective <= one.objective and following.bound >= one.bound
        assert following.rounds > one.rounds
    for one in made:
        assert float(q_of(one.net, data.x, data.y).min()) == pytest.approx(1, abs=1e-12)


def test_one_class_and_one_point() -> None:
    data = Dataset(torch.tensor([[3.0, 4.0]]).double(), torch.tensor([-1.0]).double())
    made = finish(trained(data, steps=20), data)
    assert made.objective == pytest.approx(1 / 26**0.5, rel=1e-8)  # one neuron along (3, 4, 1)


def test_cells_that_separate_the_points_where_the_network_does_not() -> None:
    data = random_set(2, 3)
    net = trained(data)
    v = net.weights[1]
    worse = Network((net.weights[0], torch.where(v > 0, 1e-3 * v, v)), net.biases)
    assert float(q_of(worse, data.x, data.y).min()) < 0
    assert finish(worse, data).objective == pytest.approx(finish(net, data).objective, rel=2e-8)


def test_refusals() -> None:
    data, draw = random_set(2, 3), rng()
    blind = init_network(2, (3,), generator=draw, first_scale=0.1)
    with pytest.raises(ValueError, match=r"separates the points\. Train longer"):
        finish(blind, preset("alternating-circle", 20, 0.0))
    with pytest.raises(ValueError, match="two layers"):
        finish(init_network(2, (5, 5), generator=draw, first_scale=0.1), data)
    with pytest.raises(ValueError, match="takes 1 inputs"):
        finish(init_network(1, (5,), generator=draw, first_scale=0.1), data)
    both = Dataset(data.x, torch.cat([data.y[:-1], -data.y[:1]]))
    with pytest.raises(ValueError, match="points 0 and 10 coincide"):
        finish(trained(data), both)
    with pytest.raises(ValueError, match="one or more points"):
        finish(blind, Dataset(data.x[:0], data.y[:0]))


def test_it_can_be_cancelled() -> None:
    def stop(_: float) -> None:
        raise Stopped

    data = random_set(2, 3)
    with pytest.raises(Stopped):
        finish(trained(data), data, progress=stop)
