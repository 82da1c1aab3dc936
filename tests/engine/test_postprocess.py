"""Post-processing of images against closed forms and constructed cases."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.ndimage import correlate

from explorer.engine import images as post
from tests.engine.draws import draw

SHAPE = (3, 5, 4)  # channels, height, width: none equal


def images(m, seed=1):
    return draw(m, *SHAPE, seed=seed)


def test_ncc_is_two_times_one_minus_the_correlation() -> None:
    a, b = images(4), images(6, seed=2)
    pixels = SHAPE[1] * SHAPE[2]
    got = post.ncc_distance(a, b)
    for i in range(4):
        for j in range(6):
            corr = [np.corrcoef(a[i, c].flatten(), b[j, c].flatten())[0, 1] for c in range(3)]
            assert float(got[i, j]) == pytest.approx(
                2 * (1 - np.mean(corr)) * (pixels - 1) / pixels, rel=1e-12
            )


def test_ncc_sees_neither_brightness_nor_contrast() -> None:
    a = images(3)
    apart = post.ncc_distance(a, 0.2 * a + 4)
    assert float(apart.diagonal().max()) < 1e-12
    assert float(post.ncc_distance(a, -a).diagonal().min()) == pytest.approx(4 * 19 / 20)


def test_constant_images_never_give_nan() -> None:
    flat, other = torch.full((1, *SHAPE), 2.0, dtype=torch.float64), images(2)
    assert float(post.ncc_distance(flat, flat)) == 0
    assert float(post.ncc_distance(flat, other)[0, 0]) == pytest.approx(2 * 19 / 20)
    (score,) = post.image_scores([torch.cat([flat, other])], other)
    assert bool(torch.isfinite(score.ssim).all())


def test_ssim_of_an_image_with_itself_is_one() -> None:
    x = images(4).sigmoid()
    assert torch.allclose(post.ssim(x, x), torch.ones(4, dtype=torch.float64))
    assert len(post.ssim(x[:0], x[:0])) == 0


def test_ssim_of_two_constant_images_is_the_closed_form() -> None:
    a, b = (torch.full((1, 1, 6, 7), v, dtype=torch.float64) for v in (0.3, 0.8))
    c1 = 0.01**2
    assert float(post.ssim(a, b)) == pytest.approx(
        (2 * 0.3 * 0.8 + c1) / (0.3**2 + 0.8**2 + c1), rel=1e-6
    )


def test_ssim_is_that_of_its_definition_at_every_pixel() -> None:
    a, b = images(2, seed=1).sigmoid(), images(2, seed=2).sigmoid()
    side = np.exp(-(np.arange(-1, 2) ** 2) / (2 * 1.5**2))
    window = np.outer(side, side) / side.sum() ** 2
    expected = []
    for pair in zip(a.numpy(), b.numpy(), strict=True):
        values = []
        for x, z in zip(*pair, strict=True):  # channel by channel
            mx, mz, xx, zz, xz = (
                correlate(p, window, mode="mirror") for p in (x, z, x * x, z * z, x * z)
            )
            values.append(
                (2 * mx * mz + 1e-4)
                * (2 * (xz - mx * mz) + 9e-4)
                / ((mx**2 + mz**2 + 1e-4) * (xx - mx**2 + zz - mz**2 + 9e-4))
            )
        expected.append(np.mean(values))
    assert post.ssim(a, b).tolist() == pytest.approx(expected, rel=1e-10)


def test_voting_hears_those_within_a_tenth_of_the_nearest() -> None:
    found = torch.stack([torch.full(SHAPE, v, dtype=torch.float64) for v in (0.0, 1.0, 5.0, 9.0)])
    near = torch.tensor([1.0, 1.09, 1.08, 1.2], dtype=torch.float64)
    assert bool((post.vote_image(found, near, "min") == 0).all())
    assert torch.allclose(post.vote_image(found, near, "mean"), torch.full(SHAPE, 2.0).double())
    assert torch.allclose(post.vote_image(found, near, "median"), torch.full(SHAPE, 1.0).double())
    even = torch.tensor([1.0, 1.09, 1.2, 1.2], dtype=torch.float64)
    assert torch.allclose(post.vote_image(found, even, "median"), torch.full(SHAPE, 0.5).double())
    with pytest.raises(ValueError, match="finite"):
        post.vote_image(found, torch.full((4,), torch.inf), "mean")
    with pytest.raises(ValueError, match="vote"):
        post.vote_image(found, near, "max")


def test_scoring_finds_hidden_copies() -> None:
    truth = images(5).sigmoid()
    noise = images(5, seed=3)
    found = torch.cat([images(4, seed=4), truth[2:3], truth[4:5] + 0.1 * noise[:1]])
    (got,) = post.image_scores([truth], found)
    assert got.ssim.argsort(descending=True)[:2].tolist() == [2, 4]
    assert got.nearest[[2, 4]].tolist() == [4, 5]
    assert float(got.ssim[2]) == pytest.approx(1)
    assert float(got.ncc[2]) == pytest.approx(1)
    assert torch.allclose(got.images[2], truth[2])


def test_nothing_stands_for_an_image_where_nothing_was_found() -> None:
    truth = images(3).sigmoid()
    (got,) = post.image_scores([truth], truth[:0])
    assert got.nearest.tolist() == [-1] * 3
    assert got.ssim.tolist() == [-1] * 3
    assert not got.named.any()


def test_shapes_that_are_no_images_are_refused() -> None:
    with pytest.raises(ValueError, match="Reshape"):
        post.ncc_distance(draw(4, 64), images(2))
    with pytest.raises(ValueError, match="one shape"):
        post.ncc_distance(images(2), draw(2, 1, 5, 4))
    with pytest.raises(ValueError, match="one shape"):
        post.ssim(images(2), images(3))
