r"""All initialisations at once: the grid of Runkel et al. over (lambda_1, lambda_2).

    x_init = lambda_2 (lambda_1 x_truth + (1 - lambda_1) x_heldout) + (1 - lambda_2) x_noise

Every run from a cell ends somewhere; three numbers say where: the mean distance of its candidates
to the nearest training point, the nearest held-out point and the nearest noise point. On points of
the plane, nearest means nearest of the same label; on images it is the structurally most similar
one (largest SSIM), as in the paper, whose L2 distance counts.

Where lambda_2 = 0 nothing of lambda_1 is left: that row of the grid is one start. A grid of side s
has s^2 cells and s (s - 1) + 1 starts: 25 and 21 in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from explorer.engine.landscape import mix_init, mix_weights
from explorer.engine.postprocess import ssim

SIDE = 5  # cells along an axis; Runkel et al.
NAMES = ("truth", "heldout", "noise")
Labelled = tuple[Tensor, Tensor]
_TOGETHER = 2**20  # arbitrary: pixels of the pairs compared at once, 8 MB


@dataclass(frozen=True, eq=False)
class Pictures:
    """How points (m, d) are seen as images in [0, 1].

    Attributes:
        shape: (c, h, w).
        mean: what was taken off the images (d,), or ().
    """

    shape: tuple[int, int, int]
    mean: Tensor = field(default_factory=lambda: torch.zeros((), dtype=torch.float64))

    def of(self, x: Tensor) -> Tensor:
        """The images (m, c, h, w)."""
        return (x + self.mean).reshape(-1, *self.shape)


@dataclass(frozen=True, eq=False)
class Parts:
    """What starts are mixed from, paired row by row.

    Attributes:
        y: labels of the candidates (m,).
        truth: a training point per candidate (m, d).
        heldout: a held-out point per candidate (m, d).
        noise: a draw of noise per candidate (m, d).
        pictures: how rows are seen where they are images, else None.
        sets: all training points with their labels, and all held-out ones, ((n, d), (n,)) each;
            None where the pairs hold all. Unequal classes leave some of the larger one unpaired.
    """

    y: Tensor
    truth: Tensor
    heldout: Tensor
    noise: Tensor
    pictures: Pictures | None = None
    sets: tuple[Labelled, Labelled] | None = None

    def start(self, mix_truth: float, mix_data: float) -> Tensor:
        """Candidates at t = 0, (m, d)."""
        return mix_init(self.truth, self.heldout, self.noise, mix_truth, mix_data)

    def distances(self, x: Tensor) -> tuple[float, float, float]:
        """Mean distance of candidates x (m, d) to the nearest truth, held-out and noise point."""
        sets = self.sets or ((self.truth, self.y), (self.heldout, self.y))
        truth, heldout = (self._mean(x, *one) for one in sets)
        return truth, heldout, self._mean(x, self.noise, self.y)

    def _mean(self, x: Tensor, members: Tensor, y: Tensor) -> float:
        apart = torch.cdist(x, members, compute_mode="donot_use_mm_for_euclid_dist")
        if self.pictures is None:
            other = self.y[:, None] != y[None]
            other[other.all(1)] = False  # a class without points borrows from all, as pairs do
            return float(apart.masked_fill(other, torch.inf).min(1).values.mean())
        like = pairwise_ssim(self.pictures.of(x), self.pictures.of(members))
        return float(apart.gather(1, like.argmax(1, keepdim=True)).mean())

    def weights(self, x: Tensor) -> tuple[float, float, float]:
        """Where x (m, d) stands on the triangle: the weights, summing to 1, of the best mixture.

        Least squares over all candidates at once: min || x - sum_k w_k part_k ||, sum_k w_k = 1.
        On a start they are those it was mixed with; a run may leave the triangle.
        """
        base = (self.truth - self.noise).reshape(-1), (self.heldout - self.noise).reshape(-1)
        columns = torch.stack(base, 1)
        found = torch.linalg.lstsq(columns, (x - self.noise).reshape(-1, 1), driver="gelsd")
        a, b = found.solution[:, 0].tolist()
        return a, b, 1 - a - b


def pairwise_ssim(a: Tensor, b: Tensor) -> Tensor:
    """SSIM of every pair of images in [0, 1]. a (m, c, h, w), b (n, c, h, w) -> (m, n)."""
    rows = max(1, _TOGETHER // b.numel())
    return torch.cat([_pairwise(some, b) for some in a.split(rows)])


def _pairwise(a: Tensor, b: Tensor) -> Tensor:
    left = a.repeat_interleave(len(b), 0)
    return ssim(left, b.repeat(len(a), 1, 1, 1)).view(len(a), len(b))


def steps_of(side: int) -> list[float]:
    """The values of lambda_1 and lambda_2: `side` even steps from 0 to 1."""
    if side < 2:
        raise ValueError(f"a grid needs 2 or more cells along an axis; got side={side}. Try 5.")
    return [i / (side - 1) for i in range(side)]


def starts(side: int) -> list[tuple[float, float]]:
    """The distinct starts (mix_truth, mix_data), s (s - 1) + 1 of them, corners and edges first.

    The row mix_data = 0 is one start, given as (0, 0). A run that is stopped early then has the
    curves along the edges, if not the whole map.
    """
    values = steps_of(side)
    all_of = [(a, b) for b in values for a in values if b > 0] + [(0.0, 0.0)]
    corners = {(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)}

    def rank(cell: tuple[float, float]) -> int:
        if cell in corners:
            return 0
        return 1 if 1.0 in cell else 2

    return sorted(all_of, key=rank)


def start_of(mix_truth: float, mix_data: float) -> tuple[float, float]:
    """The start that a cell shares: (0, 0) for the whole row mix_data = 0."""
    mix_weights(mix_truth, mix_data)
    return (mix_truth, mix_data) if mix_data > 0 else (0.0, 0.0)
