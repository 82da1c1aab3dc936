r"""Reconstructed images against training images: distances, pictures, counts with their control.

With images as (m, c, h, w) tensors, N = h w pixels a channel (Haim et al. 2022, section 5 and
appendix; the formulas follow what their code computes):

    NCC      mean over pixels and channels of (z - z')^2, z = (x - mean) / std channel by channel:
             2 (1 - corr) (N - 1) / N, as std is the unbiased one
    voting   one image from all reconstructions within 1.1 x the distance of the nearest
    SSIM     of Wang et al. 2004 in a 3 x 3 Gaussian window, averaged over the image, of pixels in
             [0, 1] as they are: stretched to its own least and largest value, a candidate would
             have a grey ground where an image has a black one, and SSIM would be near 0 there

Truth is compared with candidates here: it belongs beside `scoring`, out of reach of any attack.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv2d, pad

from explorer.engine.controls import Origin
from explorer.engine.scoring import LEVEL, Doubt, Kind, Unknowable, Verdict

VOTE_REACH = 1.1  # of the nearest distance; Haim et al.'s code
WINDOW = 3  # of SSIM, pixels, an odd number; Haim et al.'s code
SIGMA = 1.5  # of SSIM's window, pixels; Wang et al. 2004
C1, C2 = 0.01**2, 0.03**2  # keep SSIM from 0/0, for pixels in [0, 1]; Wang et al. 2004
FLAT = 1e-12  # arbitrary: a channel of smaller standard deviation counts as constant

Vote = Literal["min", "mean", "median"]


def ncc_distance(truth: Tensor, found: Tensor) -> Tensor:
    """Return the NCC distance of every pair of images.

    It is the mean of (z - z')^2 over pixels and channels, each channel standardised. A constant
    channel correlates with nothing: corr = 0 there, and 1 where both are constant.

    Args:
        truth: training images (n, c, h, w).
        found: reconstructions (m, c, h, w).

    Returns:
        The distances (n, m), from 0 to below 4.

    Raises:
        ValueError: where the images differ in shape.

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
    a, flat_a = _z_scores(truth)
    b, flat_b = _z_scores(found)
    pixels = a.shape[2]
    inner = torch.einsum("ncp,mcp->nmc", a, b) / (pixels - 1)
    both = flat_a[:, None] & flat_b[None]
    corr = inner.masked_fill(both, 1.0)
    return (2 * (1 - corr) * (pixels - 1) / pixels).mean(2).clamp_min(0)


def correlations(truth: Tensor, found: Tensor) -> Tensor:
    """Return the correlation of the pixels of every pair of images, averaged over channels.

    Args:
        truth: images (n, c, h, w).
        found: images (m, c, h, w).

    Returns:
        The correlations (n, m), in [-1, 1].

    Raises:
        ValueError: where the images differ in shape.

    Source: Haim et al. 2022, section 5, where it is called NCC.

    Example:
        >>> import torch
        >>> from explorer.engine.images import correlations
        >>> image = torch.arange(9.0).reshape(1, 1, 3, 3)
        >>> correlations(image, torch.cat([5 * image, -image])).round(decimals=3)
        tensor([[ 1., -1.]])
    """
    return (1 - ncc_distance(truth, found) * _per_distance(truth)).clamp(-1, 1)


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


def _window_means(images: Tensor) -> Tensor:
    """Return the Gaussian mean around each pixel, in rows along them. (m, c, h, w), as given."""
    reach = WINDOW // 2
    across = torch.arange(-reach, reach + 1, dtype=images.dtype, device=images.device)
    weight = torch.exp(-((across / SIGMA) ** 2) / 2)
    weight = weight / weight.sum()
    down, high = (weight, reach) if images.shape[2] > 1 else (weight.new_ones(1), 0)
    wide = pad(images.flatten(0, 1)[:, None], [reach, reach, high, high], mode="reflect")
    return conv2d(wide, torch.outer(down, weight)[None, None]).reshape(images.shape)


def _check(images: Tensor) -> None:
    if images.ndim != 4 or images.shape[2] * images.shape[3] < 2:
        raise ValueError(
            f"images must be (m, c, h, w) of two pixels or more; got {tuple(images.shape)}. "
            "Reshape flat points: x.reshape(m, c, h, w)."
        )


def _z_scores(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return (m, c, h, w) -> z-scores (m, c, N), and which channels are constant (m, c)."""
    flat = images.flatten(2)
    centred = flat - flat.mean(2, keepdim=True)
    std = centred.norm(dim=2) / (flat.shape[2] - 1) ** 0.5
    constant = std <= FLAT
    scores = centred / std.masked_fill(constant, 1.0)[:, :, None]
    return scores.masked_fill(constant[:, :, None], 0.0), constant


# --- How many images are reconstructed: three measures, each with a held-out control -------------
# Digits resemble each other, so some held-out images are matched too: the same count on images that
# the network never saw is the control. If candidates know nothing of which images were trained on,
# the training images are as if drawn from all of them, as many of each class; so the p-value is
# that of Fisher's exact test, class by class. Reconstructions may serve several images, as
# published (Haim et al. 2022).

Measure = Literal["rank", "ncc", "ssim"]
NCC_LEAST = 0.9  # arbitrary: a correlation that a stranger of the same class seldom has
SSIM_LEAST = 0.4  # the line that the literature draws for a good reconstruction
MEASURES: dict[Measure, str] = {
    "rank": "nearest of all images",
    "ncc": f"NCC above {NCC_LEAST:g}",
    "ssim": f"SSIM above {SSIM_LEAST:g}",
}
GOOD = 0.5  # arbitrary: the share of matched images from which the word is "found"


@dataclass(frozen=True, eq=False)
class ImageScore:
    """How well each image of a set is reconstructed.

    Attributes:
        ssim: of the reconstruction that stands for it, in the set's order (n,).
        ncc: correlation of its nearest reconstruction (n,), in [-1, 1].
        nearest: index of that reconstruction (n,); -1 where there is none.
        images: what stands for it, in [0, 1] (n, c, h, w).
        named: whether it is, of all images of all sets, the nearest to some reconstruction (n,).
        classes: its class (n,), of any numbers.
    """

    ssim: Tensor
    ncc: Tensor
    nearest: Tensor
    images: Tensor
    named: Tensor
    classes: Tensor

    def matched(self, measure: Measure) -> Tensor:
        """Return which images are matched (n,) bool."""
        if measure == "rank":
            return self.named
        return self.ncc > NCC_LEAST if measure == "ncc" else self.ssim > SSIM_LEAST


def shifted_images(images: Tensor) -> Tensor:
    """Return all shifts of images in a circle, the images themselves first.

    Args:
        images: images (m, c, h, w).

    Returns:
        The shifted images (h w m, c, h, w), one shift of all after another.

    Source: Elbaz et al. 2024, for reconstructions up to a symmetry of the network.

    Example:
        >>> import torch
        >>> from explorer.engine.images import shifted_images
        >>> shifted_images(torch.tensor([[[[1.0, 2.0]]]])).flatten(1)
        tensor([[1., 2.],
                [2., 1.]])
    """
    h, w = images.shape[2:]
    return torch.cat([images.roll((i, j), (2, 3)) for i in range(h) for j in range(w)])


def image_scores(
    sets: Sequence[Tensor], found: Tensor, classes: Sequence[Tensor] = (), vote: Vote = "min",
    shifts: bool = False,
) -> list[ImageScore]:  # fmt: skip
    """Return how well the images of several sets are reconstructed, all with the mean added.

    Args:
        sets: images (n, c, h, w), pixels in [0, 1]; the training images and others.
        found: reconstructions (m, c, h, w), of the same scale.
        classes: of the images of each set (n,); () where all are of one.
        vote: see `vote_image`.
        shifts: whether a reconstruction stands for all its shifts in a circle: for weights of which
            no gradient changes by a shift.

    Returns:
        The score of each set; `nearest` counts the shifts of all, see `shifted_images`.

    Raises:
        ValueError: where a reconstruction is not finite or shapes do not fit.

    Source: Haim et al. 2022, section 5; the lines at which an image counts are at `SSIM_LEAST`
    (usual) and `NCC_LEAST` (own).

    Example:
        >>> import torch
        >>> from explorer.engine.images import image_scores
        >>> images = torch.rand(4, 1, 4, 4, generator=torch.Generator().manual_seed(0))
        >>> [score.named.tolist() for score in image_scores(images.split(2), images[:2])]
        [[True, True], [False, False]]
    """
    if not bool(torch.isfinite(found).all()):
        raise ValueError("a reconstruction is not finite; keep the last finite state of the attack")
    sizes, m = [len(s) for s in sets], len(found)
    found = shifted_images(found) if shifts else found
    distances = ncc_distance(torch.cat(list(sets)), found)
    least = distances.unflatten(1, (-1, m)).amin(1) if shifts else distances
    named, apart = _nearest_of_all(least, found).split(sizes), distances.split(sizes)
    of = classes if len(classes) else [torch.zeros(size) for size in sizes]
    parts = zip(sets, apart, named, of, strict=True)
    return [_score_of(truth, found, distances, vote, *more) for truth, distances, *more in parts]


def _score_of(
    truth: Tensor, found: Tensor, distances: Tensor, vote: Vote, named: Tensor, classes: Tensor
) -> ImageScore:
    """Return the score of one set of images, at these distances (n, m); -1 stands for none."""
    pictures, targets = found.clamp(0, 1), truth.clamp(0, 1)
    nearest = torch.full((len(truth),), -1)
    least = truth.new_full((len(truth),), torch.inf)
    images = torch.full_like(targets, 0.5)
    for i, row in enumerate(distances if len(found) else ()):
        nearest[i], least[i] = row.argmin(), row.min()
        images[i] = vote_image(pictures, row, vote)
    score = ssim(targets, images).masked_fill(nearest < 0, -1.0)
    ncc = (1 - least * _per_distance(truth)).clamp(-1, 1)
    return ImageScore(score, ncc, nearest, images, named, classes)


def _per_distance(images: Tensor) -> float:
    """Return 1 - corr per unit of the distance, which is 2 (1 - corr) (N - 1) / N."""
    pixels = images.shape[2] * images.shape[3]
    return pixels / (2 * (pixels - 1))


def _nearest_of_all(distances: Tensor, found: Tensor) -> Tensor:
    """Return which images (N,) are the nearest to some candidate; distances (N, m).

    One that correlates with none of them, as a constant one does, names none.
    """
    least = distances.amin(0)
    alike = 1 - least * _per_distance(found) > FLAT
    return ((distances <= least) & alike).any(1)


@dataclass(frozen=True, eq=False, kw_only=True)
class ImageVerdict(Verdict):
    """What may be said of images matched; no place is claimed, and there is no radius.

    Attributes:
        measure: what counts as matched.
        unseen: held-out images.
        of_controls: share of them that is matched; nan without any.
        most: the most of a control set that are matched.
        least: the smallest p-value that so many images could give.
        which: training images that are matched (n,), bool.
    """

    which: Tensor
    measure: Measure = "rank"
    unseen: int = 0
    of_controls: float = math.nan
    most: int = 0
    least: float = 0.0

    @property
    def share(self) -> float:
        """Return the share of the training images that are matched."""
        return self.found / self.n if self.n else 0.0

    @property
    def doubt(self) -> Doubt | None:
        """Return why chance is not ruled out; None where it is."""
        if not self.p_value > LEVEL:
            return None
        return Doubt.FEW_CONTROLS if self.least > LEVEL else Doubt.LIKELY_CHANCE


def image_verdict(
    truth: ImageScore, controls: Sequence[ImageScore], measure: Measure = "rank"
) -> ImageVerdict:
    """Return what may be said of a share matched, against the same of held-out images.

    Args:
        truth: the score of the training images.
        controls: scores of held-out sets, of the same reconstructions.
        measure: what counts as matched; to be named before the run.

    Returns:
        The verdict.

    Source: Fisher 1935 for the exact test.

    Example:
        >>> import torch
        >>> from explorer.engine.images import image_scores, image_verdict
        >>> images = torch.rand(40, 1, 4, 4, generator=torch.Generator().manual_seed(0))
        >>> truth, *others = image_scores(images.split(2), images[:2])
        >>> image_verdict(truth, others).kind
        <Kind.FOUND: 'found'>
    """
    mine = truth.matched(measure)
    n, found, k = len(mine), int(mine.sum()), len(controls)
    known = ImageVerdict(
        kind=Kind.CANNOT_KNOW, p_value=math.nan, n=n, claims=0, found=found,
        why_not=Unknowable.NO_CONTROLS, origin=Origin.HELD_OUT, controls=k, measure=measure,
        which=mine,
    )  # fmt: skip
    if not k:
        return known
    counts = [int(c.matched(measure).sum()) for c in controls]
    hits = torch.cat([mine, *(c.matched(measure) for c in controls)])
    classes = torch.cat([truth.classes, *(c.classes for c in controls)])
    own = torch.arange(len(hits)) < n
    p_value, least = _exact_p(hits, own, classes), _exact_p(own, own, classes)
    kind = Kind.FOUND if known.share >= GOOD else Kind.AMBIGUOUS
    if p_value > LEVEL:
        kind = Kind.CANNOT_KNOW if least > LEVEL else Kind.AMBIGUOUS
    unseen = len(hits) - n
    share = sum(counts) / unseen
    return replace(
        known, kind=kind, why_not=None, p_value=p_value, least=least, unseen=unseen,
        of_controls=share, chance=share * n, most=max(counts),
    )  # fmt: skip


def _exact_p(hits: Tensor, own: Tensor, classes: Tensor) -> float:
    """Return the chance of as many hits (N,) among `own` (N,), drawn from all, class by class."""
    from scipy.stats import hypergeom  # slow to load

    law = np.ones(1)
    for label in classes.unique():
        here = classes == label
        n = int((own & here).sum())
        of_class = hypergeom.pmf(range(n + 1), int(here.sum()), int((hits & here).sum()), n)
        law = np.convolve(law, of_class)
    return min(1.0, float(law[int((hits & own).sum()) :].sum()))
