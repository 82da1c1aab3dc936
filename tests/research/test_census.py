"""The census of a landscape: descents, basins, what is the same, what was not seen."""

from __future__ import annotations

import pytest
import torch

from explorer.engine.attacks.target import Target
from explorer.engine.data import heldout, preset
from explorer.engine.exact import maximum_margin
from explorer.engine.explanations.splitting import training_explanation
from explorer.engine.roster import by_key
from explorer.research.census import CensusConfig, census, surface_of
from explorer.research.census.basins import (
    conditions,
    merged_points,
    same_ends,
    unseen_basins,
)
from explorer.research.census.descent import descend
from explorer.research.census.passes import in_order_of, lowest_pass, split_profile
from explorer.research.grid import Grid, Problem


def two_valleys(x):
    """(u^2 - 1)^2 + 10 v^2 + u / 4: minima near u = -1 and u = +1, a saddle near 0."""
    u, v = x[:, 0], x[:, 1]
    slope = torch.stack([4 * u * (u * u - 1) + 0.25, 20 * v], 1)
    return (u * u - 1) ** 2 + 10 * v * v + u / 4, slope


SADDLE = 0.0627464  # of 4 u^3 - 4 u + 1/4 = 0


def test_each_start_ends_in_its_own_valley() -> None:
    u = torch.linspace(-2, 2, 41, dtype=torch.float64)
    ends = descend(two_valleys, torch.stack([u, u.flip(0)], 1), 500)
    assert ends.level.all() and (ends.x[:, 1].abs() < 1e-2).all()
    assert ((ends.x[:, 0] > 0) == (u > SADDLE)).all()
    assert (ends.value <= two_valleys(ends.x)[0] + 1e-12).all()


def test_descents_never_rise_and_do_not_see_each_other() -> None:
    x = torch.randn(8, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ends = descend(two_valleys, x, 30)
    assert (ends.value <= two_valleys(x)[0]).all()
    alone = torch.cat([descend(two_valleys, one[None], 30).x for one in x])
    assert torch.allclose(alone, ends.x, atol=1e-12)


def test_a_minimum_a_saddle_and_a_slope_are_told_apart() -> None:
    ends = descend(two_valleys, torch.tensor([[1.0, 0.3]], dtype=torch.float64), 500)
    pass_, side = torch.tensor([[SADDLE, 0.0], [0.5, 0.0]], dtype=torch.float64)
    kinds = [one.kind for one in conditions(two_valleys, torch.stack([ends.x[0], pass_, side]))]
    assert kinds == ["minimum", "saddle", "slope"]


X = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
Y, LAM = torch.tensor([1.0, -1.0, 1.0]).double(), torch.tensor([0.5, 0.3, 0.2]).double()
CELLS = torch.tensor([[True], [False], [True]])


def test_ends_are_one_up_to_order_splits_and_points_without_weight() -> None:
    order = torch.tensor([2, 0, 1])
    split = torch.tensor([[0.4, -0.1], [-0.2, 0.05], [1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]).double()
    parts = torch.tensor([0.5 / 3, 1 / 3, 0.3, 0.2, 0.0]).double()
    apart = torch.tensor([[True, True], [True, True], [False, True], [True, False], [True, True]])
    cells = torch.cat([CELLS, torch.tensor([[True], [True], [False]])], 1)
    sets = [
        merged_points(X, Y, LAM, cells),
        merged_points(X[order], Y[order], LAM[order], cells[order]),
        merged_points(split, torch.tensor([1.0, 1.0, -1.0, 1.0, 1.0]).double(), parts, apart),
        merged_points(X, -Y, LAM, cells),
        merged_points(X + 0.1, Y, LAM, cells),
    ]
    values = torch.zeros(5, dtype=torch.float64)
    found = same_ends(values, sets)
    assert found[0] == found[1] == found[2] == 0 and len({*found.tolist()}) == 3
    values[1] = 0.1  # another residual is another end
    assert len({*same_ends(values, sets).tolist()}) == 4


def test_the_unseen_are_estimated_from_what_was_seen_once_and_twice() -> None:
    made = unseen_basins([5, 2, 2, 1, 1, 1])
    assert made.volume.value == pytest.approx(3 / 12) and made.count == pytest.approx(1.0)
    assert unseen_basins([7, 5]).volume.value == 0 and unseen_basins([7, 5]).count == 0


def problem_of(attack: str = "kkt", **decay) -> Problem:
    data = preset("alternating-circle", n=4)
    target = Target.of(maximum_margin(data.x, data.y).net, 1.0)
    config = by_key(attack).config(m=4, **decay)
    return Grid(target, data, heldout(data, 1), attack, config, 0, 5).problem()


@pytest.mark.parametrize("loss", ["kkt", "decoreco", "bilevel", "surrogate"])
def test_gradients_are_those_of_the_losses(loss: str) -> None:
    decay = {} if loss == "kkt" else {"model": "hidden", "width": 4, "mu": 1e-3}
    problem = problem_of("kkt" if loss == "kkt" else "bilevel", **decay)
    surface = surface_of(problem, CensusConfig(loss=loss))
    generator = torch.Generator().manual_seed(0)
    x, v = torch.randn(2, 3, 8, generator=generator, dtype=torch.float64)
    x[0, 0] = 2.5  # outside of the box
    gradient, h = surface.loss(x)[1], 1e-6
    numeric = (surface.loss(x + h * v)[0] - surface.loss(x - h * v)[0]) / (2 * h)
    assert torch.allclose((gradient * v).sum(1), numeric, rtol=1e-4, atol=1e-6)


def test_the_energy_is_that_of_the_map_where_slopes_are_steep() -> None:
    problem = problem_of()
    x = problem.parts.heldout[None].double()
    surface = surface_of(problem, CensusConfig(alpha=1e5))
    hard, _ = surface.hard(x[0], torch.ones(4).bool())
    assert float(surface.loss(x.flatten(1))[0]) == pytest.approx(hard, abs=1e-4)


def test_a_census_repeats_by_its_seed() -> None:
    problem, config = problem_of(), CensusConfig(starts=12, steps=200)
    one, other = census(problem, config), census(problem, config)
    assert (one.basin == other.basin).all() and one.unseen == other.unseen
    assert sum(len(basin.starts) for basin in one.basins) == 12
    assert one.level == 12 and all(basin.value <= 1 for basin in one.basins)
    more = census(problem, CensusConfig(starts=12, steps=1, seed=1))
    assert not torch.equal(more.mixes, one.mixes)


# --- passes --------------------------------------------------------------------------------------
def test_the_lowest_pass_of_two_valleys_is_the_saddle() -> None:
    a, b = torch.tensor([[-1.03, 0.0]]).double(), torch.tensor([[0.96, 0.0]]).double()

    def bent(x):  # the straight way from a to b is not the lowest one
        moved = x.clone()
        moved[:, 1] = x[:, 1] - 0.5 * (1 - x[:, 0] ** 2)
        value, g = two_valleys(moved)
        return value, torch.stack([g[:, 0] + x[:, 0] * g[:, 1], g[:, 1]], 1)

    found = lowest_pass(bent, a, b)
    top = float(two_valleys(torch.tensor([[SADDLE, 0.0]]).double())[0])
    ends = float(max(found.lowest[0], found.lowest[-1]))
    assert found.barrier == pytest.approx(top - ends, abs=0.01)
    assert found.straight_barrier > found.barrier + 1
    assert found.way.shape[1:] == (1, 2) and torch.equal(found.way[0], a)


def test_a_mix_pairs_points_of_one_label_with_their_nearest() -> None:
    x = torch.tensor([[0.0, 0], [1, 0], [2, 0], [3, 0]]).double()
    y = torch.tensor([1.0, -1, 1, -1])
    other = x[[2, 3, 0, 1]] + 0.1
    assert torch.allclose(in_order_of(x, other, y), x + 0.1)


@pytest.mark.parametrize("seed", range(3))
def test_explanations_that_a_split_connects_have_a_flat_way(seed: int) -> None:
    data = preset("random-circle", n=8, seed=seed)
    net = maximum_margin(data.x, data.y).net
    net, e, exact = training_explanation(Target.of(net, 1.0), data.x, data.y)
    ways = [way for i in range(e.n) if (way := split_profile(net, e, i)) is not None]
    assert exact and ways
    assert max(float(abs(way).max()) for way in ways) < 1e-10


def test_a_set_without_multipliers_is_empty() -> None:
    assert len(merged_points(X, Y, torch.zeros_like(LAM)).x) == 0
