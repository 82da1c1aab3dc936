"""Slices of the energy: splits in cells, kinks of the line, starts, the bilevel bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from explorer.engine.data import preset
from explorer.engine.energy.maps import (
    MU,
    Split,
    bilevel,
    features,
    grid,
    line,
    ridge,
    split,
    tau_of,
)
from explorer.engine.exact import maximum_margin
from explorer.engine.network import init_network, preactivations
from tests.engine.draws import draw, exact_set, rng


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


def test_halves_along_the_level_line_are_free_and_others_where_both_stay_in_the_cell():
    seen_free = rises = 0
    for seed in range(8):
        net, x, y = exact_set(2, 7, seed)
        for index in range(7):
            whole = split(net, x, y, index, x[index : index + 1], 1e-7)
            u, free = whole.u, whole.free
            if free < 0.05:
                continue
            assert torch.linalg.vector_norm(u) == pytest.approx(1)
            along = torch.linspace(-min(free, 2.0), min(free, 2.0), 9, dtype=torch.float64)
            on_line = split(net, x, y, index, x[index] + along[:, None] * u, 1e-7)
            assert on_line.values.max() < 1e-9 and on_line.free == pytest.approx(free)
            assert on_line.carries and not on_line.pinned
            places = grid(2.0, 20)
            found = split(net, x, y, index, places, 1e-7)
            inside = same_cell(net, x[index], places) & same_cell(
                net, x[index], 2 * x[index] - places
            )
            assert found.values[inside.numpy()].max(initial=0.0) < 1e-9
            rises += bool(found.values.max() > 1e-3)
            seen_free += 1
    assert seen_free >= rises >= 3


def same_cell(net, x, places):
    """Which places turn on the same neurons as x."""
    on = [torch.cat([p > 0 for p in preactivations(net, z)[:-1]], 1) for z in (x[None], places)]
    return (on[0] == on[1]).all(1)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("widths", [(6,), (5, 4)])
def test_a_split_is_the_same_from_both_halves_and_whole_at_the_point(d, widths):
    drawn = rng(d)
    net = init_network(d, widths, generator=drawn, first_scale=1.0)
    x, y = draw(5, d, seed=1), draw(5, seed=2).sign()
    places = 2 * draw(30, d, seed=3)
    one = split(net, x, y, 2, places, 1e-7).values
    other = split(net, x, y, 2, 2 * x[2] - places, 1e-7).values
    np.testing.assert_allclose(one, other, atol=1e-9)
    whole = split(net, x, y, 2, x[2:3], 1e-7)
    assert whole.values[0] == pytest.approx(whole.here, abs=1e-9)


def test_a_pinned_point_rises_only_where_the_map_does():
    rising = np.full(9, 0.5)
    u = torch.tensor([1.0, 0.0])
    assert not Split(u, 0.0, rising, 0.1).explains.any()
    flat = rising.copy()
    flat[:6] = 0.0
    low = Split(u, 0.0, flat, 0.0)
    assert low.pinned and low.explains.mean() == pytest.approx(2 / 3)
    whole = Split(u, 0.0, rising, 0.5)  # a trained point in one piece
    assert whole.explains.all()
    assert not Split(u, math.inf, rising, 0.5).pinned


def test_a_point_without_a_multiplier_has_nothing_to_split():
    data = preset("moons", 10, seed=1)
    net = maximum_margin(data.x, data.y)
    idle = int((net.lam == 0).nonzero()[0])
    found = split(net.net, data.x, data.y, idle, grid(1.0, 4), 0.02)
    assert not found.carries


def test_a_pinned_point_says_so():
    for seed in range(8):
        net, x, y = exact_set(2, 7, seed)
        for index in range(7):
            found = split(net, x, y, index, grid(1.0, 4), 0.02)
            if found.carries and found.pinned:
                assert found.free == 0 and np.isfinite(found.values).all()
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
