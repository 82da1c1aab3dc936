"""The mixed start: linear distances, weights and their inverse."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.engine.data import preset
from explorer.engine.energy.landscape import SIDES, StartLandscape, between_places, read_lattice
from explorer.engine.energy.points import energy
from explorer.engine.energy.starts import Parts, mix_from_weights, mix_init, mix_weights
from explorer.engine.exact import maximum_margin
from tests.engine.draws import draw

SHARE = st.floats(0, 1)


TRUTH, HELDOUT, NOISE = (draw(7, 2, seed=seed) for seed in (1, 2, 3))


@pytest.mark.parametrize(
    ("mix", "corner"), [((1, 1), TRUTH), ((0, 1), HELDOUT), ((0.3, 0), NOISE), ((1, 0), NOISE)]
)
def test_corners(mix, corner):
    assert torch.equal(mix_init(TRUTH, HELDOUT, NOISE, *mix), corner)


@given(share=SHARE)
def test_distances_along_the_edges_are_linear(share):
    toward = mix_init(TRUTH, HELDOUT, NOISE, share, 1.0)
    far = (HELDOUT - TRUTH).norm(dim=1)
    torch.testing.assert_close((toward - TRUTH).norm(dim=1), (1 - share) * far)
    toward = mix_init(TRUTH, HELDOUT, NOISE, 1.0, share)
    far = (NOISE - TRUTH).norm(dim=1)
    torch.testing.assert_close((toward - TRUTH).norm(dim=1), (1 - share) * far)


@given(mix_truth=SHARE, mix_data=SHARE)
def test_weights_are_barycentric_and_make_the_start(mix_truth, mix_data):
    weights = mix_weights(mix_truth, mix_data)
    assert min(weights) >= 0 and sum(weights) == pytest.approx(1)
    parts = zip(weights, (TRUTH, HELDOUT, NOISE), strict=True)
    torch.testing.assert_close(
        mix_init(TRUTH, HELDOUT, NOISE, mix_truth, mix_data), sum(w * part for w, part in parts)
    )


@given(mix_truth=SHARE, mix_data=st.floats(1e-3, 1))
def test_inverse(mix_truth, mix_data):
    assert mix_from_weights(*mix_weights(mix_truth, mix_data)) == pytest.approx(
        (mix_truth, mix_data), abs=1e-9
    )


def test_the_noise_corner_has_one_name():
    assert mix_from_weights(0.0, 0.0, 1.0) == (1.0, 0.0)


def test_errors():
    with pytest.raises(ValueError, match=r"mix_truth must be between 0 and 1; got 1.5"):
        mix_weights(1.5, 0.0)
    with pytest.raises(ValueError, match="mix_data"):
        mix_weights(0.5, float("nan"))
    with pytest.raises(ValueError, match="sum to 1"):
        mix_from_weights(0.5, 0.5, 0.5)
    with pytest.raises(ValueError, match="non-negative"):
        mix_from_weights(-0.5, 0.5, 1.0)
    with pytest.raises(ValueError, match="one shape"):
        mix_init(TRUTH, HELDOUT[:6], NOISE, 0.5, 0.5)


# --- starts: the energies of places between truth, unseen points and noise -----------------------


TAU = 0.02


@pytest.fixture
def made() -> StartLandscape:
    x, y = 1.2 * draw(6, 2, seed=3), draw(6, seed=53).sign()
    net = maximum_margin(x, y).net
    parts = Parts(y, x, 1.2 * draw(6, 2, seed=40), 1.2 * draw(6, 2, seed=41))
    return StartLandscape(parts, lambda z: energy(net, z, y, TAU))


def test_the_corners_are_the_three_sets(made: StartLandscape) -> None:
    corners = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    values = made.lattice(4)
    wanted = (made.parts.truth, made.parts.heldout, made.parts.noise)
    found = (values[0, 3], values[0, 0], values[3, 0])
    for weights, x, value in zip(corners, wanted, found, strict=True):
        torch.testing.assert_close(made.candidates(weights), x)
        assert made.energy(weights) == value == pytest.approx(made.measure(x), abs=1e-12)
    assert values[0, 3] < 1e-10  # the truth of an exact network explains its weights


def test_the_energy_at_a_place_is_that_of_the_lattice(made: StartLandscape) -> None:
    values = made.lattice(7)
    assert int(np.isfinite(values).sum()) == 28
    for k, i in ((1, 2), (2, 3), (0, 5)):
        weights = (i / 6, (6 - i - k) / 6, k / 6)
        fresh = made.measure(made.candidates(weights))
        assert made.energy(weights) == values[k, i] == pytest.approx(fresh, abs=1e-12)
    between = (0.31, 0.27, 0.42)
    assert made.energy(between) == made.measure(made.candidates(between))


def test_a_finer_lattice_computes_what_the_coarser_one_has_not(made: StartLandscape) -> None:
    asked: list[int] = []
    counted = StartLandscape(made.parts, lambda z: (asked.append(1), made.measure(z))[1])
    for side in SIDES[:3]:
        values = counted.lattice(side)
        assert len(asked) == np.isfinite(values).sum() == side * (side + 1) // 2
    assert np.array_equal(counted.lattice(4)[0], values[0, ::4], equal_nan=True)


def test_a_lattice_that_fills_shows_the_coarser_one_where_it_is_not_known(
    made: StartLandscape, monkeypatch
) -> None:
    monkeypatch.setattr("explorer.engine.energy.landscape.LOOK_S", -1.0)  # a look at each place
    coarse = made.lattice(4)
    first, *_, last = made.looks(7, coarse)
    assert np.array_equal(np.isfinite(first), np.isfinite(last))
    assert np.array_equal(last, made.lattice(7), equal_nan=True)
    read = between_places(coarse, 7)
    assert (first == read).sum() >= np.isfinite(last).sum() - 1


@pytest.mark.parametrize("side", [2, 4, 5, 9])
def test_reading_between_places_is_exact_for_planes(side: int) -> None:
    def plane(s: int) -> np.ndarray:
        k, i = np.meshgrid(np.arange(s), np.arange(s), indexing="ij")
        return np.where(k + i < s, (2 * k - 3 * i) / (s - 1) + 0.5, np.nan)

    np.testing.assert_allclose(between_places(plane(side), 13), plane(13), atol=1e-12)


def test_reading_a_lattice_that_is_not_full_says_nothing_of_what_is_missing() -> None:
    values = np.array([[0.0, 1.0, 2.0], [np.nan, 4.0, np.nan], [5.0, np.nan, np.nan]])
    edge = np.array([[0.25, 0.75, 0.0], [1.0, 0.0, 0.0], [0.75, 0.0, 0.25], [0.0, 0.5, 0.5]])
    found = read_lattice(values, edge)
    assert found[:3].tolist() == [0.5, 2.0, 3.0] and np.isnan(found[3])


def test_a_place_outside_and_a_lattice_of_one_are_refused(made: StartLandscape) -> None:
    with pytest.raises(ValueError, match="non-negative"):
        made.energy((1.2, -0.2, 0.0))
    with pytest.raises(ValueError, match="2 or more"):
        made.lattice(1)


def test_more_points_than_fifty_have_a_landscape() -> None:
    data = preset("circles", n=60)
    net = maximum_margin(data.x, data.y).net
    other = preset("circles", n=60, seed=1)
    parts = Parts(data.y.double(), data.x.double(), other.x.double(), draw(60, 2, seed=1))
    found = StartLandscape(parts, lambda z: energy(net, z, parts.y, TAU)).lattice(2)
    assert np.isfinite(found).sum() == 3 and found[0, 1] < 1e-6


# --- the triangle --------------------------------------------------------------------------------


def test_the_weights_of_a_place_are_those_of_its_mixture() -> None:
    assert mix_weights(0.25, 0.6) == pytest.approx((0.15, 0.45, 0.4))
