"""The mixed start: linear distances, weights and their inverse."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.engine.energy.starts import mix_from_weights, mix_init, mix_weights
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
