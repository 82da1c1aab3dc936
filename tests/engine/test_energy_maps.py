"""Slices of the energy: rectangles of cells, kinks of the line, starts, the bilevel bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from explorer.engine.data import preset
from explorer.engine.energy.maps import (
    MU,
    SplitPlane,
    bilevel,
    features,
    grid,
    level_direction,
    line,
    ridge,
    split_plane,
    tau_of,
)
from explorer.engine.exact import maximum_margin
from tests.engine.draws import draw


def exact_set(d, n, seed):
    x, y = 1.2 * draw(n, d, seed=seed), draw(n, seed=seed + 50).sign()
    return maximum_margin(x, y).net, x, y


def test_the_grid_goes_from_the_top_left():
    at = grid(2.0, 4)
    assert at[0].tolist() == [-1.5, 1.5] and at[-1].tolist() == [1.5, -1.5]
    assert tau_of(2.0, 61, 0.5) == pytest.approx(2 / 61)


def test_the_line_holds_its_breakpoints_and_candidates():
    x = torch.tensor([[-2.0], [-1.0], [0.5], [1.5], [3.0]]).double()
    y = torch.tensor([1.0, -1.0, -1.0, 1.0, -1.0]).double()
    net = maximum_margin(x, y).net
    found = line(net, x, y, 1, 4.0, 81, 1e-6)
    np.testing.assert_allclose(found.breaks, [-0.25, 1.5], atol=1e-9)
    assert np.isin(np.round(found.breaks, 9), np.round(found.z, 9)).all()
    np.testing.assert_allclose(found.candidates, [-1, 0.5, 3], atol=1e-7)
    at = int(np.argmin(np.abs(found.z + 1)))
    assert found.seen.values[at] < 1e-10 and (found.seen.values <= found.seen.without + 1e-10).all()


def test_splits_are_free_on_the_rectangle_and_nowhere_beyond():
    seen_free = 0
    for seed in range(8):
        net, x, y = exact_set(2, 7, seed)
        for index in range(7):
            u, ends = level_direction(net, x, y, index)
            plus, minus = ends or (0.0, 0.0)
            if min(plus, minus) < 0.05:
                continue
            reach = min(2.0, 2 * min(plus, minus))
            found = split_plane(net, x, y, index, reach, 12, 1e-7)
            assert torch.linalg.vector_norm(u) == pytest.approx(1)
            g = (np.arange(12) + 0.5) / 12 * reach
            inside = (g[None] <= plus) & (g[::-1, None] <= minus)
            assert found.values[inside].max() < 1e-9
            assert found.carries and not found.pinned
            seen_free += 1
            if (~inside).any():
                assert found.values[~inside].max() >= -1e-12
    assert seen_free >= 3


def test_a_pinned_point_rises_only_where_the_map_does():
    rising = np.full((3, 3), 0.5)
    u = torch.tensor([1.0, 0.0])
    assert not SplitPlane(u, 0.0, 0.0, 1.0, rising, 0.1).as_well.any()
    flat = rising.copy()
    flat[:, :2] = 0.0
    low = SplitPlane(u, 0.0, 0.0, 1.0, flat, 0.0)
    assert low.pinned and low.as_well.mean() == pytest.approx(2 / 3)
    whole = SplitPlane(u, 0.0, 0.0, 1.0, rising, 0.5)  # a trained point in one piece
    assert whole.as_well.all()
    assert not SplitPlane(u, math.inf, math.inf, 1.0, rising, 0.5).pinned


def test_a_point_without_a_multiplier_has_nothing_to_split():
    data = preset("moons", 10, seed=1)
    net = maximum_margin(data.x, data.y)
    idle = int((net.lam == 0).nonzero()[0])
    found = split_plane(net.net, data.x, data.y, idle, 1.0, 4, 0.02)
    assert not found.carries


def test_a_pinned_point_says_so():
    for seed in range(8):
        net, x, y = exact_set(2, 7, seed)
        for index in range(7):
            if level_direction(net, x, y, index)[1] == (0.0, 0.0):
                found = split_plane(net, x, y, index, 1.0, 4, 0.02)
                assert found.pinned and np.isfinite(found.values).all()
                return
    pytest.fail("no pinned point in eight sets")


@pytest.mark.parametrize("hidden", [False, True])
def test_rank_one_updates_agree_with_ridge_and_the_surrogate_bounds_it(hidden):
    net, x, y = exact_set(2, 9, 5)
    net = net if hidden else None
    z, places = x + 0.1 * draw(9, 2, seed=2), 2 * draw(30, 2, seed=3)
    found = bilevel((x, y), z, 4, places, MU, net)
    star = ridge(features(net, x), y, MU)
    size = float(star.square().sum())
    for i in range(30):
        there = z.clone()
        there[4] = places[i]
        f = features(net, there)
        theta = ridge(f, y, MU)
        assert found.values[i] == pytest.approx(float((theta - star).square().sum()) / size)
        slope = f.T @ (f @ star - y) / 9 + MU * star
        assert found.surrogate[i] == pytest.approx(float(slope.square().sum()) / size)
    # |theta - theta*|^2 <= |dE/dtheta(theta*)|^2 / mu^2, of which each side is halved in the law
    assert (found.values <= found.surrogate / MU**2 * (1 + 1e-9)).all()
    at = bilevel((x, y), x, 4, x[4:5], MU, net)
    assert at.here < 1e-20 and at.values[0] < 1e-20
    with pytest.raises(ValueError, match="mu > 0"):
        bilevel((x, y), z, 4, places, 0.0)


def test_weights_of_zero_by_symmetry_are_refused_in_words():
    made = preset("alternating-circle")
    x, y = made.x.double(), made.y.double()
    with pytest.raises(ValueError, match=r"must not be zero; got .* could give .* Take") as refused:
        bilevel((x, y), x, 2, 2 * draw(7, 2, seed=3))
    assert "inf" not in str(refused.value)
    x[0] *= 1.01  # no symmetry any more: small weights are weights
    assert np.isfinite(bilevel((x, y), x, 2, 2 * draw(7, 2, seed=3)).values).all()
