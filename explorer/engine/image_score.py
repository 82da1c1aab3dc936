"""Reconstructed images against training images: shares matched, with a held-out control.

A training image counts as matched when the reconstruction nearest to it by NCC has a correlation
above `NCC_LEAST` and an SSIM above `SSIM_LEAST` with it, after both were scaled to [0, 1] as in
`postprocess`. Reconstructions may serve several images, as published (Haim et al. 2022).

Digits resemble each other, so some held-out images are matched too: the same count on sets that
the network never saw is the control, and the p-value is that of `scoring`, a permutation test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.controls import Origin, least_p
from explorer.engine.postprocess import Vote, ncc_distance, ranked, scaled, ssim
from explorer.engine.scoring import LEVEL, Kind, Verdict, doubt

SSIM_LEAST = 0.4  # the line that the literature draws for a good reconstruction
NCC_LEAST = 0.9  # arbitrary: a correlation that a stranger of the same class seldom has
GOOD = 0.5  # arbitrary: the share of matched images from which the word is "found"


@dataclass(frozen=True, eq=False)
class ImageScore:
    """How well each image of a set is reconstructed.

    Attributes:
        ssim: of the reconstruction that stands for it, in the set's order (n,).
        ncc: correlation of its nearest reconstruction (n,), in [-1, 1].
        nearest: index of that reconstruction (n,); -1 where there is none.
        images: what stands for it, scaled (n, c, h, w).
    """

    ssim: Tensor
    ncc: Tensor
    nearest: Tensor
    images: Tensor

    @property
    def matched(self) -> Tensor:
        """Which images are matched (n,) bool."""
        return (self.ssim > SSIM_LEAST) & (self.ncc > NCC_LEAST)

    @property
    def share(self) -> float:
        """The share of them."""
        return float(self.matched.double().mean()) if len(self.ssim) else 0.0


def image_score(truth: Tensor, found: Tensor, vote: Vote = "min") -> ImageScore:
    """Score reconstructions (m, c, h, w) against images (n, c, h, w), both with the mean added.

    Raises:
        ValueError: where a reconstruction is not finite or shapes do not fit.
        ImportError: without the extra `images`.
    """
    if not bool(torch.isfinite(found).all()):
        raise ValueError("a reconstruction is not finite; keep the last finite state of the attack")
    match = ranked(truth, found, vote=vote)
    back = torch.empty_like(match.order)
    back[match.order] = torch.arange(len(match.order))
    pixels = truth.shape[2] * truth.shape[3]
    ncc = 1 - match.distance * pixels / (2 * (pixels - 1))  # the distance is 2 (1 - corr)(N - 1)/N
    return ImageScore(
        match.ssim[back], ncc[back].clamp(-1, 1), match.nearest[back], match.images[back]
    )


def best_per_candidate(truth: Tensor, found: Tensor) -> tuple[Tensor, Tensor]:
    """For each reconstruction its nearest image of `truth` and the SSIM with it. -> (m,), (m,)."""
    nearest = ncc_distance(truth, found).argmin(0)
    return nearest, ssim(scaled(truth)[nearest], scaled(found))


def image_verdict(truth: ImageScore, controls: Sequence[ImageScore]) -> Verdict:
    """What may be said of a share matched, against the same on held-out sets.

    One control is as good as the truth where it matches as many images. With fewer than 19 chance
    cannot be ruled out.
    """
    n, found, k = len(truth.ssim), int(truth.matched.sum()), len(controls)
    words, least = Origin.HELD_OUT.sets(k), least_p(k)
    if not k:
        reason = "There are no held-out sets, so chance is not measured."
        return Verdict(Kind.CANNOT_KNOW, reason, float("nan"), words, least)
    p_value = (1 + sum(int(c.matched.sum()) >= found for c in controls)) / (k + 1)
    mean = sum(c.share for c in controls) / k
    sentence = (
        f"{found} of {n} training images matched (SSIM above {SSIM_LEAST:g}, NCC above "
        f"{NCC_LEAST:g}), {truth.share:.0%}; of held-out images {mean:.1%} "
        f"({words}, p = {p_value:.2g}).{doubt(p_value, k)}"
    )
    if p_value > LEVEL:
        kind = Kind.CANNOT_KNOW if least > LEVEL else Kind.AMBIGUOUS
        return Verdict(kind, sentence, p_value, words, least)
    if truth.share >= GOOD:
        return Verdict(Kind.FOUND, sentence, p_value, words, least)
    sentence += " The candidates know this training set, and yet most images were not found."
    return Verdict(Kind.AMBIGUOUS, sentence, p_value, words, least)
