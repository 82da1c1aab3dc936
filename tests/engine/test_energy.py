"""Energies against `fit_multipliers` and a slow oracle, and what leaves them as they are."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from benchmarks.energy_oracle import oracle
from explorer.engine.data import Dataset, heldout, preset
from explorer.engine.energy import least_squares
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
from explorer.engine.energy.points import (
    Archetype,
    Energies,
    Following,
    energy,
    moving_point,
    pairs,
)
from explorer.engine.energy.questions import Answers, MapConfig, MapQuestion, Picture
from explorer.engine.energy.rays import place_rays, rays, set_rays
from explorer.engine.exact import maximum_margin
from explorer.engine.multipliers import fit_multipliers
from explorer.engine.network import Network, init_network, preactivations
from explorer.engine.nonnegative import nonnegative
from tests.engine.draws import draw, exact_set, make, rng


def moving(net, x, y, index, places, *more, **named):
    """Return the energies with one point at each of the places."""
    return moving_point(net, x, y, index, *more, **named).energies_at(places)


SETS = [(1, 6, 0), (1, 8, 1), (2, 6, 2), (2, 9, 3), (2, 12, 4)]


@pytest.mark.parametrize("case", SETS)
def test_the_truth_of_an_exact_network_has_no_energy(case):
    net, x, y = exact_set(*case)
    assert energy(net, x, y, 1e-6) < 1e-10
    assert energy(net, x, y, 0.01) < 1e-10


@pytest.mark.parametrize("case", SETS)
def test_places_agree_with_the_fit_and_with_the_oracle(case):
    d, n, seed = case
    net, x, y = exact_set(*case)
    places, tau = 1.5 * draw(40, d, seed=seed + 9), 0.02
    keep = [
        i
        for i in range(40)
        if int(rays(net, torch.cat([x[1:], places[i : i + 1]]), y.roll(-1), tau).kinks.max()) < 4
    ]
    seen = moving(net, x, y, 0, places[keep], tau)
    label = torch.cat([y[1:], y[:1]])
    for value, place in zip(seen.values, places[keep], strict=True):
        there = torch.cat([x[1:], place[None]])
        fit = fit_multipliers(net, there, label, tau, accuracy=1e-9, rounds=200)
        assert value == pytest.approx(fit.residual**2, abs=1e-9)
        assert value == pytest.approx(energy(net, there, label, tau), abs=1e-10)
        assert value == pytest.approx(oracle(net, there, label, tau, most=3), abs=1e-5)
    assert len(keep) > 20 or n > 9


def test_points_at_rest_on_many_neurons_are_freed_wherever_another_is():
    noise = torch.Generator().manual_seed(3)
    x = 1.2 * torch.randn(10, 2, generator=noise, dtype=torch.float64)
    y = torch.randn(10, generator=noise, dtype=torch.float64).sign()
    net, tau = maximum_margin(x, y).net, tau_of(2.0, 61, 0.12)
    places = grid(2.0, 61)[10::60]
    seen = moving(net, x, y, 3, places, tau)
    for value, place in zip(seen.values, places, strict=True):
        there = x.clone()
        there[3] = place
        fit = fit_multipliers(net, there, y, tau, accuracy=1e-9, rounds=200)
        assert value == pytest.approx(fit.residual**2, abs=1e-9)


def test_of_several_classes_a_map_holds_the_energies_of_its_places():
    """Each place takes the rivals of its label that tie there, as the fit of a set does."""
    net = make((7,), seed=4, outputs=3)
    x, y = draw(8, 2, seed=5), torch.tensor([1.0, -1, 3, 1, -1, 3, 1, -1], dtype=torch.float64)
    places = 1.5 * draw(40, 2, seed=6)
    for index in (0, 1, 2):
        made = moving(net, x, y, index, places, 0.05)
        for place, value in zip([x[index], *places], [made.here, *made.values], strict=True):
            there = x.clone()
            there[index] = place
            assert value == pytest.approx(energy(net, there, y, 0.05), abs=1e-8)
        assert (made.values <= made.without + 1e-10).all() and made.without > made.values.min()


@pytest.mark.parametrize("case", SETS)
def test_a_map_lies_below_its_reference_and_below_frozen(case):
    d, _, seed = case
    net, x, y = exact_set(*case)
    places = 2 * draw(200, d, seed=seed + 3)
    for index in range(0, len(x), 3):
        free = moving(net, x, y, index, places, 0.03)
        cold = moving(net, x, y, index, places, 0.03, frozen=True)
        assert (free.values <= free.without + 1e-10).all()
        assert (cold.values >= free.values - 1e-9).all()
        assert (cold.values <= cold.without + 1e-10).all()
        assert free.here == pytest.approx(cold.here, abs=1e-12)
        again = moving(net, x, y, index, x[index : index + 1], 0.03)
        if not free.cut:  # more kinks than are freed at a place: the map lies above its point
            assert again.values[0] == pytest.approx(free.here, abs=1e-10)


def test_wider_bands_only_lower_energy():
    net, x, y = exact_set(2, 7, 5)
    z = x + 0.1 * draw(7, 2, seed=8)
    found = [energy(net, z, y, tau) for tau in (-1, 0.0, 0.003, 0.01)]
    assert found == sorted(found, reverse=True)


def test_rotation_permutation_and_split_neurons_change_nothing():
    net, x, y = exact_set(2, 8, 6)
    places = 1.5 * draw(60, 2, seed=1)
    want = moving(net, x, y, 2, places, 0.02).values
    turn = torch.tensor([[math.cos(0.7), -math.sin(0.7)], [math.sin(0.7), math.cos(0.7)]]).double()
    w, v = net.weights
    b = net.biases[0]
    turned = Network((w @ turn.T, v), (b, None))
    got = moving(turned, x @ turn.T, y, 2, places @ turn.T, 0.02).values
    np.testing.assert_allclose(got, want, atol=1e-9)
    order = torch.arange(8).flip(0)
    got = moving(net, x[order], y[order], 5, places, 0.02).values
    np.testing.assert_allclose(got, want, atol=1e-9)
    r = 0.5**0.5
    twins = Network(
        (torch.cat([r * w[:1], r * w]).index_copy(0, torch.arange(1, 1 + len(w)), torch.cat(
            [r * w[:1], w[1:]])), torch.cat([r * v[:, :1], r * v[:, :1], v[:, 1:]], 1)),
        (torch.cat([r * b[:1], r * b[:1], b[1:]]), None),
    )  # fmt: skip
    # Two neurons on one line have slopes of their own: lower or equal where that line is near.
    got = moving(twins, x, y, 2, places, -1.0).values
    np.testing.assert_allclose(got, moving(net, x, y, 2, places, -1.0).values, atol=1e-9)


def test_the_margin_term_charges_points_off_the_margin_only():
    net, x, y = exact_set(2, 7, 7)
    places = draw(50, 2, seed=2)
    plain = moving(net, x, y, 0, places, 0.02)
    priced = moving(net, x, y, 0, places, 0.02, kappa=0.5)
    assert (priced.values >= plain.values - 1e-12).all()
    assert (priced.values > plain.values + 1e-6).any()
    assert priced.here == pytest.approx(plain.here, abs=1e-8)


@pytest.mark.parametrize("name", ["pairs-line", "moons", "circles", "alternating-line"])
def test_the_margin_term_is_zero_at_an_exact_truth_whatever_the_multipliers(name):
    data = preset(name)
    net = maximum_margin(data.x, data.y).net
    for kappa in (0.0, 1.0, 100.0):
        assert energy(net, data.x, data.y, 1e-6, kappa) < 1e-10
    moved = data.x + 0.1
    priced = [energy(net, moved, data.y, 1e-6, kappa) for kappa in (0.0, 0.1, 1.0, 100.0)]
    assert priced == sorted(priced) and priced[0] < priced[-1] <= 1 + 1e-12


def test_a_point_where_no_neuron_is_explains_nothing():
    x, y = torch.tensor([[0.7, 0.2]]).double(), torch.ones(1).double()
    net = maximum_margin(x, y).net
    assert energy(net, torch.tensor([[-3.0, -3.0]]).double(), y, 1e-6) == 1.0


def test_places_on_more_neurons_than_are_freed_are_counted():
    net = make((20,), seed=1)
    x, y = draw(4, 2, seed=2), draw(4, seed=3).sign()
    places = grid(2.0, 31)
    wide, narrow = (moving(net, x, y, 0, places, tau).crowded for tau in (0.1, 1e-9))
    kinks = rays(net, places, y[:1].expand(len(places)), 0.1).kinks
    assert wide == int((kinks > 3).sum()) > 0 and narrow == 0


def test_more_than_four_own_rays_and_pairs():
    net, x, y = exact_set(2, 9, 3)
    places = 1.5 * draw(30, 2, seed=4)
    wide = 0.4
    assert int(rays(net, places, y[:1].expand(30), wide).counts.max()) == 8
    net_rays = place_rays
    values = moving(net, x, y, 0, places, wide).values
    rest, label = x[1:], y[:1].expand(30)
    fixed = set_rays(net, x, y, wide).of(torch.arange(9) > 0)
    for i in range(30):
        own = net_rays(net, places[i : i + 1], label[:1], wide)
        cross = own.gram(fixed).numpy()
        whole = np.block([[fixed.gram().numpy(), cross.T], [cross, own.gram().numpy()]])
        inner = np.concatenate([fixed.inner.numpy(), own.inner.numpy()])
        gain = least_squares.residual(whole, inner)[1]
        assert values[i] == pytest.approx(max(0, 1 - gain / float(net.rho) ** 2), abs=1e-9)
    both = pairs(net, x, y, 0, places, places.flip(0), 0.02)
    each = moving(net, x, y, 0, places, 0.02).values
    assert (both <= np.minimum(each, each[::-1]) + 1e-9).all()
    two = torch.cat([rest, places[3:4], places[26:27]])
    label = torch.cat([y[1:], y[:1], y[:1]])
    assert both[3] == pytest.approx(energy(net, two, label, 0.02), abs=1e-9)


def test_descent_ends_where_rays_repeat_one_another():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a = rng.normal(size=(5, 4)) @ np.abs(rng.normal(size=(4, 12)))
        theta = rng.normal(size=5) + a[:, 0]
        gram, inner = a.T @ a, a.T @ theta
        c = nonnegative(gram, inner)
        assert (c >= 0).all()
        assert np.linalg.norm(a @ c - theta) == pytest.approx(nnls(a, theta)[1], abs=1e-7)


@pytest.mark.parametrize(("width", "tau", "copies"), [(30, 0.2, 5), (10, 0.2, 10), (20, 0.3, 10)])
def test_copies_of_points_change_no_energy(width, tau, copies):
    net = init_network(2, (width,), generator=rng(0), first_scale=None)
    data = preset("alternating-circle", n=20)
    x, y = data.x.double(), data.y.double()
    many, labels = x.repeat(copies, 1), y.repeat(copies)
    least = energy(net, x, y, tau)
    assert energy(net, many, labels, tau) == pytest.approx(least, abs=1e-9)
    after = Following(net, labels, tau)
    after(0.5 * many + torch.randn(many.shape, dtype=many.dtype, generator=rng(1)))
    assert after(many) == pytest.approx(least, abs=1e-9)


def test_deeper_energies_are_lower_bounds():
    net = make((6, 5), seed=3)
    x, y = draw(5, 2, seed=4), draw(5, seed=5).sign()
    for tau in (0.0, 0.1):
        fit = fit_multipliers(net, x, y, tau, accuracy=1e-6, rounds=100)
        assert energy(net, x, y, tau) <= fit.residual**2 + 1e-9


def test_many_kinks_at_one_point_are_taken_from_the_fit():
    angle = torch.arange(8) * math.pi / 8
    w = torch.stack([angle.cos(), angle.sin()], 1).double()
    net = Network((w, torch.ones(1, 8).double()), (torch.zeros(8).double(), None))
    x, y = torch.tensor([[0.0, 0.0], [1.0, 0.3]]).double(), torch.ones(2).double()
    assert int(rays(net, x, y, 1e-6).kinks[0]) == 8
    fit = fit_multipliers(net, x, y, 1e-6)
    assert energy(net, x, y, 1e-6) <= fit.residual**2 + 1e-6
    assert moving(net, x, y, 1, draw(4, 2), 1e-6).cut == 1


def test_hard_slopes_miss_the_truth():
    net, x, y = exact_set(2, 10, 0)
    assert energy(net, x, y, -1.0) > 0.001  # points on neurons' lines lose them


@pytest.mark.parametrize(
    ("seed", "index", "want"),
    [(0, 9, "NEEDLE"), (2, 5, "NEEDLE"), (1, 3, "FAN"), (5, 0, "FAN"), (1, 2, "REDUNDANT")],
)
def test_archetypes_of_random_sets(seed, index, want):
    net, x, y = exact_set(2, 10, seed)
    seen = moving(net, x, y, index, grid(4.0, 61), tau_of(4.0, 61, 0.12))
    assert seen.archetype is Archetype[want]


def test_archetypes_on_the_line():
    x = torch.tensor([[-2.0], [2.0], [-3.0], [3.0]]).double()
    y = torch.tensor([-1.0, 1.0, -1.0, 1.0]).double()
    net = maximum_margin(x, y).net  # O4: the points at 3 leave no trace
    places = torch.linspace(-4, 4, 801).double()[:, None]
    seen = moving(net, x, y, 2, places, 0.005)
    assert seen.archetype is Archetype.REDUNDANT
    seen = moving(net, x, y, 0, places, 0.005)
    assert seen.archetype is not Archetype.REDUNDANT and seen.without > 0.001


@pytest.mark.parametrize("name", ["two-points", "alternating-line"])
@pytest.mark.parametrize("size", [186, 366, 726])
def test_support_points_of_the_line_are_needles_at_any_size(name, size):
    data = preset(name)
    net = maximum_margin(data.x, data.y).net
    for index in range(data.n):
        seen = line(net, data.x, data.y, index, 2.0, size, tau_of(2.0, 61, 0.5)).seen
        assert seen.sizes.sum() == pytest.approx(1)
        outer = data.n > 2 and index in (0, data.n - 1)  # it may leave: no kink is beyond
        assert seen.archetype is (Archetype.FAN if outer else Archetype.NEEDLE), index


def test_a_single_smooth_minimum_is_no_set_of_zeros():
    x, y = torch.tensor([[0.7, 0.2]]).double(), torch.ones(1).double()
    seen = moving(maximum_margin(x, y).net, x, y, 0, grid(2.0, 61), 0.03)
    assert seen.low > 0.003 and seen.archetype is Archetype.NEEDLE


def test_the_name_is_that_of_the_point_and_not_of_where_it_was_dragged():
    data = preset("moons", 10, seed=1)
    net, there = maximum_margin(data.x, data.y).net, data.x.clone()
    there[7] = torch.tensor([-1.9, 1.9])  # where it explains nothing
    tau = tau_of(2.0, 61, 0.5)
    seen = moving(net, there, data.y, 7, grid(2.0, 61), tau)
    assert seen.without - seen.here < 1e-9 < seen.without - seen.least
    seen = replace(seen, home=energy(net, data.x, data.y, tau))
    assert seen.archetype is Archetype.NEEDLE and seen.low < 0.1
    assert seen.home == pytest.approx(0, abs=1e-9)


def test_a_redundant_point_stays_one_though_elsewhere_it_would_help_trained_weights():
    seen = Energies(np.array([0.003, 1e-9, 0.003]), 0.003, 0.003, 0.03)
    assert seen.archetype is Archetype.REDUNDANT and seen.least == 1e-9


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"index": 9}, "from 0 to 5"), ({"places": draw(4, 3)}, r"x must be \(m, 2\)"),
        ({"y": torch.ones(3)}, r"y \(n,\)"), ({"tau": math.nan}, "finite"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(change, words):
    net, x, y = exact_set(2, 6, 2)
    given = {"net": net, "x": x, "y": y, "index": 0, "places": draw(4, 2), "tau": 0.01, **change}
    with pytest.raises(ValueError, match=words):
        moving(**given)


def test_networks_without_an_energy_are_refused():
    net = Network((torch.ones(1, 2).double(),), (None,))
    with pytest.raises(ValueError, match="hidden layer"):
        energy(net, draw(3, 2), torch.ones(3), 0.01)


# --- slices of the energy: splits in cells, kinks of the line, starts, the bilevel bound ----------


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
    for seed in range(4):
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


# --- answers to energy questions: names beside the linear program, known places, words ------------


def asked(data: Dataset, net: Network, index: int, x: torch.Tensor | None = None) -> Picture:
    question = MapQuestion(
        "point", net, data, heldout(data, 1), data.x if x is None else x, index, MapConfig()
    )
    found = Answers().answer(question, 61)
    assert found is not None
    return found


def test_what_must_be_there_is_a_needle_whatever_the_energy_says() -> None:
    data = preset("pairs-line")
    exact = maximum_margin(data.x, data.y)
    names = [asked(data, exact.net, i) for i in range(data.n)]
    held = [i for i in range(data.n) if exact.lam[i] > 0]
    for i, one in enumerate(names):
        assert one.archetype == ("needle" if i in held else "redundant"), (i, one)
    second = names[1]  # off the margin, its neighbour could carry the multiplier
    assert second.reference < 1e-9
    assert second.about.archetype is not Archetype.NEEDLE and second.forced > 0


def pixel(picture, x: torch.Tensor) -> float:
    left, right, bottom, top = picture.box
    h, w = picture.values.shape
    i, j = (top - float(x[1])) / (top - bottom) * h, (float(x[0]) - left) / (right - left) * w
    return float(picture.values[int(i), int(j)])


def test_a_needle_is_seen_in_its_pixel_and_stays_when_dragged_off() -> None:
    data, i = preset("moons", 10, seed=1), 7
    net = maximum_margin(data.x, data.y).net
    first = asked(data, net, i)
    assert first.archetype == "needle" and first.reference > 0.1
    assert first.here < 1e-9 and pixel(first, data.x[i]) <= first.here
    there = data.x.clone()
    there[i] = torch.tensor([-1.9, 1.9])
    moved = asked(data, net, i, there)
    assert moved.here > 1e-3 and pixel(moved, data.x[i]) < 1e-9
    assert moved.archetype == first.archetype
    assert moved.about.least < 0.9 * moved.about.here


def test_no_merging_leaves_the_network_as_it_is() -> None:
    data = preset("moons", 8)
    net = maximum_margin(data.x, data.y).net
    question = MapQuestion("point", net, data, None, data.x, 0, MapConfig(angle=0.0))
    made = Answers().merged_network(question)
    assert made.net.theta.equal(net.theta) and made.error == 0
