r"""What the published codes do to reconstructed images before they are shown and counted.

With images as (m, c, h, w) tensors, N = h w pixels a channel (Haim et al. 2022, section 5 and
appendix; the formulas follow what their code computes):

    min_max_images   min-max to [0, 1], image by image
    NCC      mean over pixels and channels of (z - z')^2, z = (x - mean) / std channel by channel:
             2 (1 - corr) (N - 1) / N, as std is the unbiased one
    voting   one image from all reconstructions within 1.1 x the distance of the nearest
    SSIM     of Wang et al. 2004 in a 3 x 3 Gaussian window, averaged over the image

Truth is compared with candidates here: it belongs beside `scoring`, out of reach of any attack.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import conv2d, interpolate, max_pool2d, pad

from explorer.engine.controls import Origin, least_p
from explorer.engine.scoring import LEVEL, Kind, Unknowable, Verdict

VOTE_REACH = 1.1  # of the nearest distance; Haim et al.'s code
WINDOW = 3  # of SSIM, pixels, an odd number; Haim et al.'s code
SIGMA = 1.5  # of SSIM's window, pixels; Wang et al. 2004
C1, C2 = 0.01**2, 0.03**2  # keep SSIM from 0/0, for pixels in [0, 1]; Wang et al. 2004
FLAT = 1e-12  # arbitrary: a channel of smaller standard deviation counts as constant

Vote = Literal["min", "mean", "median"]


@dataclass(frozen=True, eq=False)
class Matches:
    """Reconstructions for each training image, the best training image first.

    Attributes:
        images: what stands for each training image (n, c, h, w), scaled; in order of `order`.
        order: indices of the training images by falling SSIM (n,).
        nearest: reconstruction nearest to each of them, or -1 where none is left (n,).
        distance: its NCC distance (n,); inf where none is left.
        ssim: of `images` with the scaled training images (n,); -1 where none is left.
    """

    images: Tensor
    order: Tensor
    nearest: Tensor
    distance: Tensor
    ssim: Tensor


def min_max_images(images: Tensor) -> Tensor:
    """Return each image scaled to [0, 1] by its least and largest pixel.

    Args:
        images: images (m, c, h, w), in any units.

    Returns:
        Images (m, c, h, w); a constant one becomes 0.5 throughout.

    Raises:
        ValueError: where these are no images of two pixels or more.

    Source: Haim et al. 2022, their code.

    Example:
        >>> import torch
        >>> from explorer.engine.images import min_max_images
        >>> min_max_images(torch.tensor([2.0, 4.0, 6.0, 3.0]).reshape(1, 1, 2, 2)).flatten()
        tensor([0.0000, 0.5000, 1.0000, 0.2500])
    """
    _check(images)
    low = images.amin(dim=(1, 2, 3), keepdim=True)
    span = images.amax(dim=(1, 2, 3), keepdim=True) - low
    flat = span <= FLAT
    return torch.where(flat, 0.5, (images - low) / span.masked_fill(flat, 1.0))


def ncc_distance(truth: Tensor, found: Tensor, parts: int = 1) -> Tensor:
    """Return the NCC distance of every pair of images.

    It is the mean of (z - z')^2 over pixels and channels, each channel standardised. A constant
    channel correlates with nothing: corr = 0 there, and 1 where both are constant.

    Args:
        truth: training images (n, c, h, w).
        found: reconstructions (m, c, h, w).
        parts: 2 and 4 compare at half and a quarter of the resolution (bicubic), as published.

    Returns:
        The distances (n, m), from 0 to below 4.

    Raises:
        ValueError: where the images differ in shape, or too few pixels are left.

    Source: Haim et al. 2022, section 5 and their code.

    Example:
        >>> import torch
        >>> from explorer.engine.images import ncc_distance
        >>> image = torch.arange(9.0).reshape(1, 1, 3, 3)
        >>> ncc_distance(image, torch.cat([5 * image, -image])).round(decimals=3)
        tensor([[0.0000, 3.5560]])
    """
    _check(truth)
    _check(found)
    if truth.shape[1:] != found.shape[1:]:
        raise ValueError(
            f"images must have one shape; got {tuple(truth.shape[1:])} and {tuple(found.shape[1:])}"
        )
    a, flat_a = _z_scores(_block_means(truth, parts))
    b, flat_b = _z_scores(_block_means(found, parts))
    pixels = a.shape[2]
    inner = torch.einsum("ncp,mcp->nmc", a, b) / (pixels - 1)
    both = flat_a[:, None] & flat_b[None]
    corr = inner.masked_fill(both, 1.0)
    return (2 * (1 - corr) * (pixels - 1) / pixels).mean(2).clamp_min(0)


def ssim(a: Tensor, b: Tensor) -> Tensor:
    """Return the SSIM of each pair of images, averaged over the image.

    The window is Gaussian, of `WINDOW` pixels a side; the image is mirrored at its edge, without
    the edge pixel itself.

    Args:
        a: images (m, c, h, w), pixels in [0, 1].
        b: as many images (m, c, h, w).

    Returns:
        SSIM (m,), at most 1.

    Raises:
        ValueError: where shapes differ, or these are no images.

    Source: Wang et al. 2004, eq. (13).

    Example:
        >>> import torch
        >>> from explorer.engine.images import ssim
        >>> image = torch.linspace(0, 1, 16).reshape(1, 1, 4, 4)
        >>> round(float(ssim(image, image)), 4), float(ssim(image, 1 - image)) < 0
        (1.0, True)
    """
    _check(a)
    if a.shape != b.shape:
        raise ValueError(f"pairs must have one shape; got {tuple(a.shape)} and {tuple(b.shape)}")
    if not len(a):
        return a.new_zeros(0)
    mean_a, mean_b, aa, bb, ab = (_window_means(p) for p in (a, b, a * a, b * b, a * b))
    product, squares = mean_a * mean_b, mean_a**2 + mean_b**2
    above = (2 * product + C1) * (2 * (ab - product) + C2)
    below = (squares + C1) * (aa + bb - squares + C2)
    return (above / below).mean(dim=(1, 2, 3))


def vote_image(found: Tensor, distances: Tensor, vote: Vote = "min") -> Tensor:
    """Return one image from the reconstructions of one training image.

    Args:
        found: reconstructions (m, c, h, w).
        distances: to the training image (m,); those of `inf` have no vote.
        vote: "min" takes the nearest, "mean" and "median" all within 1.1 x its distance.

    Returns:
        The image (c, h, w).

    Raises:
        ValueError: where there is no such vote, or no reconstruction has a finite distance.

    Source: Haim et al. 2022, their code.

    Example:
        >>> import torch
        >>> from explorer.engine.images import vote_image
        >>> found = torch.stack([torch.full((1, 2, 2), v) for v in (0.0, 1.0, 9.0)])
        >>> vote_image(found, torch.tensor([1.0, 1.05, 3.0]), "mean").unique()
        tensor([0.5000])
    """
    if vote not in ("min", "mean", "median"):
        raise ValueError(f"vote must be 'min', 'mean' or 'median'; got {vote!r}")
    if distances.shape != found.shape[:1] or not bool(torch.isfinite(distances).any()):
        raise ValueError(
            f"voting needs one distance for each of {len(found)} reconstructions, one of them "
            f"finite; got {tuple(distances.shape)}"
        )
    if vote == "min":
        return found[distances.argmin()]
    heard = found[distances <= VOTE_REACH * distances.min()]
    return heard.mean(0) if vote == "mean" else heard.quantile(0.5, dim=0)


def only_best(distances: Tensor) -> Tensor:
    """Return the distances with each reconstruction kept at its nearest truth only.

    Args:
        distances: of each training image to each reconstruction (n, m).

    Returns:
        The distances (n, m), inf elsewhere.

    Source: Haim et al. 2022, their code.

    Example:
        >>> import torch
        >>> from explorer.engine.images import only_best
        >>> only_best(torch.tensor([[1.0, 4.0], [2.0, 3.0]]))
        tensor([[1., inf],
                [inf, 3.]])
    """
    best = torch.zeros_like(distances, dtype=torch.bool)
    if distances.numel():
        best[distances.argmin(0), torch.arange(distances.shape[1])] = True
    return distances.masked_fill(~best, torch.inf)


def best_matches(
    truth: Tensor, found: Tensor, *, vote: Vote = "min", parts: int = 1, one_truth: bool = False
) -> Matches:
    """Return the reconstruction that stands for each training image, best SSIM first.

    Args:
        truth: training images (n, c, h, w).
        found: reconstructions (m, c, h, w).
        vote: see `vote_image`.
        parts: see `ncc_distance`.
        one_truth: whether a reconstruction may serve one training image only.

    Returns:
        The matches, in order of falling SSIM.

    Raises:
        ValueError: where the images differ in shape, or there is no such vote.

    Source: Haim et al. 2022, section 5 and their code.

    Example:
        >>> import torch
        >>> from explorer.engine.images import best_matches
        >>> truth = torch.rand(2, 1, 4, 4, generator=torch.Generator().manual_seed(0))
        >>> match = best_matches(truth, truth.flip(0))  # the second is the first image
        >>> match.nearest[match.order.argsort()]
        tensor([1, 0])
    """
    distances = ncc_distance(truth, found, parts)
    if one_truth:
        distances = only_best(distances)
    pictures, targets = min_max_images(found), min_max_images(truth)
    nearest = torch.full((len(truth),), -1)
    distance = truth.new_full((len(truth),), torch.inf)
    images = torch.full_like(targets, 0.5)
    for i, row in enumerate(distances):
        if bool(torch.isfinite(row).any()):
            nearest[i], distance[i] = row.argmin(), row.min()
            images[i] = vote_image(pictures, row, vote)
    score = ssim(targets, images).masked_fill(nearest < 0, -1.0)
    order = score.argsort(descending=True, stable=True)
    return Matches(images[order], order, nearest[order], distance[order], score[order])


def _window_means(images: Tensor) -> Tensor:
    """Return the Gaussian mean around each pixel. (m, c, h, w) -> (m, c, h, w)."""
    reach = WINDOW // 2
    across = torch.arange(-reach, reach + 1, dtype=images.dtype, device=images.device)
    weight = torch.exp(-((across / SIGMA) ** 2) / 2)
    weight = weight / weight.sum()
    wide = pad(images.flatten(0, 1)[:, None], [reach] * 4, mode="reflect")
    return conv2d(wide, torch.outer(weight, weight)[None, None]).reshape(images.shape)


def _check(images: Tensor) -> None:
    if images.ndim != 4 or images.shape[2] * images.shape[3] < 2:
        raise ValueError(
            f"images must be (m, c, h, w) of two pixels or more; got {tuple(images.shape)}. "
            "Reshape flat points: x.reshape(m, c, h, w)."
        )


def _block_means(images: Tensor, parts: int) -> Tensor:
    if parts == 1:
        return images
    h, w = images.shape[2] // max(parts, 1), images.shape[3] // max(parts, 1)
    if parts < 1 or h * w < 2:
        raise ValueError(
            f"parts must leave two pixels of {tuple(images.shape[2:])}; got parts={parts}. Try 2."
        )
    return interpolate(images, size=(h, w), mode="bicubic", align_corners=False)


def _z_scores(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return (m, c, h, w) -> z-scores (m, c, N), and which channels are constant (m, c)."""
    flat = images.flatten(2)
    centred = flat - flat.mean(2, keepdim=True)
    std = centred.norm(dim=2) / (flat.shape[2] - 1) ** 0.5
    constant = std <= FLAT
    scores = centred / std.masked_fill(constant, 1.0)[:, :, None]
    return scores.masked_fill(constant[:, :, None], 0.0), constant


# --- Reconstructed images against training images: shares matched, with a held-out control ------
# A training image counts as matched when the reconstruction nearest to it by NCC has a correlation
# above `NCC_LEAST` and an SSIM above `SSIM_LEAST` with it, after both were scaled to [0, 1] as in
# `postprocess`. Reconstructions may serve several images, as published (Haim et al. 2022).
#
# Digits resemble each other, so some held-out images are matched too: the same count on sets that
# the network never saw is the control, and the p-value is that of `scoring`, a permutation test.

SSIM_LEAST = 0.4  # the line that the literature draws for a good reconstruction
NCC_LEAST = 0.9  # arbitrary: a correlation that a stranger of the same class seldom has
SAME_PIXEL = 1e-6  # arbitrary: of pixels in [0, 1], far below one grey level, above rounding
EVEN = 0.5  # arbitrary: share of pixels on even ground from which the count has no power
GOOD = 0.5  # arbitrary: the share of matched images from which the word is "found"


@dataclass(frozen=True, eq=False)
class ImageScore:
    """How well each image of a set is reconstructed.

    Attributes:
        ssim: of the reconstruction that stands for it, in the set's order (n,).
        ncc: correlation of its nearest reconstruction (n,), in [-1, 1].
        nearest: index of that reconstruction (n,); -1 where there is none.
        images: what stands for it, scaled (n, c, h, w).
        even: share of pixels of the set that lie on even ground (`even_ground`).
    """

    ssim: Tensor
    ncc: Tensor
    nearest: Tensor
    images: Tensor
    even: float = 0.0

    @property
    def matched(self) -> Tensor:
        """Return which images are matched (n,) bool."""
        return (self.ssim > SSIM_LEAST) & (self.ncc > NCC_LEAST)

    @property
    def share(self) -> float:
        """Return the share of them."""
        return float(self.matched.double().mean()) if len(self.ssim) else 0.0


def image_score(truth: Tensor, found: Tensor, vote: Vote = "min") -> ImageScore:
    """Return how well images are reconstructed, both sets with the mean added.

    Args:
        truth: training images (n, c, h, w).
        found: reconstructions (m, c, h, w).
        vote: see `vote_image`.

    Returns:
        The score of each training image.

    Raises:
        ValueError: where a reconstruction is not finite or shapes do not fit.

    Source: Haim et al. 2022, section 5; the lines at which an image counts are at `SSIM_LEAST`
    (usual) and `NCC_LEAST` (own).

    Example:
        >>> import torch
        >>> from explorer.engine.images import image_score
        >>> truth = torch.rand(2, 1, 4, 4, generator=torch.Generator().manual_seed(0))
        >>> image_score(truth, truth).share
        1.0
    """
    if not bool(torch.isfinite(found).all()):
        raise ValueError("a reconstruction is not finite; keep the last finite state of the attack")
    match = best_matches(truth, found, vote=vote)
    back = torch.empty_like(match.order)
    back[match.order] = torch.arange(len(match.order))
    pixels = truth.shape[2] * truth.shape[3]
    ncc = 1 - match.distance * pixels / (2 * (pixels - 1))  # the distance is 2 (1 - corr)(N - 1)/N
    return ImageScore(
        match.ssim[back], ncc[back].clamp(-1, 1), match.nearest[back], match.images[back],
        even_ground(truth),
    )  # fmt: skip


def even_ground(images: Tensor) -> float:
    """Return the share of pixels of images (n, c, h, w) that are as all around them, by SSIM.

    A reconstruction is seldom even where the image is, and SSIM is then near 0 there.
    """
    if not len(images):
        return 0.0
    high, low = (s * max_pool2d(s * images, WINDOW, 1, WINDOW // 2) for s in (1, -1))
    return float((high - low <= SAME_PIXEL).all(1).double().mean())


@dataclass(frozen=True, eq=False, kw_only=True)
class ImageVerdict(Verdict):
    """What may be said of images matched; no place is claimed, and there is no radius.

    Attributes:
        of_controls: share of the held-out images that are matched, on average; nan without any.
        even: share of pixels of the training images on even ground.
    """

    of_controls: float = math.nan
    even: float = 0.0

    @property
    def share(self) -> float:
        """Return the share of the training images that are matched."""
        return self.found / self.n if self.n else 0.0


def image_verdict(truth: ImageScore, controls: Sequence[ImageScore]) -> ImageVerdict:
    """Return what may be said of a share matched, against the same on held-out sets.

    One control is as good as the truth where it matches as many images. With fewer than 19 chance
    cannot be ruled out.

    Args:
        truth: the score of the training images.
        controls: scores of held-out sets, of the same reconstructions.

    Returns:
        The verdict.

    Source: Phipson and Smyth 2010 for the p-value.

    Example:
        >>> import torch
        >>> from explorer.engine.images import image_score, image_verdict
        >>> images = torch.rand(40, 1, 4, 4, generator=torch.Generator().manual_seed(0))
        >>> truth, *others = (image_score(part, images[:2]) for part in images.split(2))
        >>> image_verdict(truth, others).kind
        <Kind.FOUND: 'found'>
    """
    n, found, k = len(truth.ssim), int(truth.matched.sum()), len(controls)
    known = ImageVerdict(
        kind=Kind.CANNOT_KNOW, p_value=math.nan, n=n, claims=0, found=found,
        why_not=Unknowable.NO_CONTROLS, origin=Origin.HELD_OUT, controls=k, even=truth.even,
    )  # fmt: skip
    if not k:
        return known
    p_value = (1 + sum(int(c.matched.sum()) >= found for c in controls)) / (k + 1)
    kind = Kind.FOUND if truth.share >= GOOD else Kind.AMBIGUOUS
    if p_value > LEVEL:
        kind = Kind.CANNOT_KNOW if least_p(k) > LEVEL else Kind.AMBIGUOUS
    return replace(
        known, kind=kind, why_not=None, p_value=p_value,
        of_controls=sum(c.share for c in controls) / k,
    )  # fmt: skip
