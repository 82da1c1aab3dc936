"""The triangle of starts: weights of places, the lattice, values as pixels, runs as paths."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.engine.energy.starts import (
    CORNERS,
    mix_weights,
    nearest,
    weights_at,
)


def test_weights_are_the_inverse_of_places() -> None:
    wanted = np.random.default_rng(0).dirichlet([1, 1, 1], 40)
    at = wanted @ CORNERS
    np.testing.assert_allclose(weights_at(at[:, 0], at[:, 1]), wanted, atol=1e-12)


@pytest.mark.parametrize("side", [2, 3, 7, 26])
def test_every_place_goes_to_the_nearest_of_the_lattice(side: int) -> None:
    weights = np.random.default_rng(1).dirichlet([0.5, 1, 2], 300)
    found = nearest(weights, side)
    assert (found.sum(1) == side - 1).all() and (found >= 0).all()
    all_of = np.array([(i, side - 1 - i - k, k) for k in range(side) for i in range(side - k)])
    # Distances of the triangle with equal sides are those of the weights.
    apart = np.linalg.norm(weights[:, None] * (side - 1) - all_of[None], axis=2)
    got = np.linalg.norm(weights * (side - 1) - found, axis=1)
    np.testing.assert_allclose(got, apart.min(1), atol=1e-9)


def test_the_weights_of_a_place_are_those_of_its_mixture() -> None:
    x, y = np.array(mix_weights(0.25, 0.6)) @ CORNERS
    assert weights_at(x, y) == pytest.approx((0.15, 0.45, 0.4))
