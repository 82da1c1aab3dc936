r"""Where a reconstruction starts, between the truth, held-out data and noise.

Runkel et al., eq. (10), with lambda_1 = `mix_truth` and lambda_2 = `mix_data`:

    x_init = lambda_2 (lambda_1 x_truth + (1 - lambda_1) x_heldout) + (1 - lambda_2) x_noise

The three weights are barycentric, so every start is one point of a triangle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.classes import fair_labels
from explorer.engine.data import Dataset
from explorer.engine.images import ssim


def mix_weights(mix_truth: float, mix_data: float) -> tuple[float, float, float]:
    """Return weights (truth, heldout, noise) of a start; they are non-negative and sum to 1.

    Raises:
        ValueError: where a mixing weight is not in [0, 1].
    """
    for name, value in (("mix_truth", mix_truth), ("mix_data", mix_data)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} must be between 0 and 1; got {value}")
    return mix_data * mix_truth, mix_data * (1 - mix_truth), 1 - mix_data


def mix_from_weights(truth: float, heldout: float, noise: float) -> tuple[float, float]:
    """Return (mix_truth, mix_data) of a point of the triangle: the inverse of `mix_weights`.

    At the noise corner mix_truth has no effect; it is then given as 1.

    Raises:
        ValueError: where a weight is negative or the three do not sum to 1.
    """
    weights = (truth, heldout, noise)
    # 1e-9: arbitrary, above the rounding of three additions and far below a pixel of the pad
    if not all(w >= -1e-9 for w in weights) or not math.isclose(sum(weights), 1, abs_tol=1e-9):
        raise ValueError(
            f"truth, heldout and noise must be non-negative and sum to 1; got {weights}. "
            "Divide them by their sum."
        )
    mix_data = min(max(truth + heldout, 0.0), 1.0)
    if mix_data == 0:
        return 1.0, 0.0
    return min(max(truth / mix_data, 0.0), 1.0), mix_data


def mix_init(
    truth: Tensor, heldout: Tensor, noise: Tensor, mix_truth: float, mix_data: float
) -> Tensor:
    """Return the start of an attack between truth, held-out data and noise.

    x_init = mix_data (mix_truth truth + (1 - mix_truth) heldout) + (1 - mix_data) noise. Every row
    moves on a straight line in each weight, so its distance to its true point is (1 - mix_truth)
    times that of its held-out partner along the edge mix_data = 1.

    Args:
        truth: a training point per candidate (m, d).
        heldout: a held-out point per candidate (m, d).
        noise: a draw of noise per candidate (m, d).
        mix_truth: weight lambda_1 of the truth against the held-out data, in [0, 1].
        mix_data: weight lambda_2 of both against the noise, in [0, 1].

    Returns:
        The candidates (m, d), in units of the data.

    Raises:
        ValueError: where shapes differ or a mixing weight is not in [0, 1].

    Source: Runkel et al. 2024, eq. (10).

    Example:
        >>> import torch
        >>> from explorer import mix_init
        >>> truth, heldout, noise = (torch.tensor([[v]]) for v in (1.0, 2.0, 4.0))
        >>> mix_init(truth, heldout, noise, mix_truth=0.5, mix_data=0.5)
        tensor([[2.7500]])
    """
    if not truth.shape == heldout.shape == noise.shape:
        raise ValueError(
            "truth, heldout and noise are mixed row by row and need one shape; got "
            f"{tuple(truth.shape)}, {tuple(heldout.shape)} and {tuple(noise.shape)}"
        )
    w_truth, w_heldout, w_noise = mix_weights(mix_truth, mix_data)
    return w_truth * truth + w_heldout * heldout + w_noise * noise


# --- All initialisations at once: the grid of Runkel et al. over (lambda_1, lambda_2) -----------
# x_init = lambda_2 (lambda_1 x_truth + (1 - lambda_1) x_heldout) + (1 - lambda_2) x_noise
#
# Every run from a cell ends somewhere; three numbers say where: the mean distance of its candidates
# to the nearest training point, the nearest held-out point and the nearest noise point. On points
# of the plane, nearest means nearest of the same label; on images it is the structurally most
# similar one (largest SSIM), as in the paper, whose L2 distance counts.
#
# Where lambda_2 = 0 nothing of lambda_1 is left: that row of the grid is one start. A grid of side
# s has s^2 cells and s (s - 1) + 1 starts: 25 and 21 in the paper.

SIDE = 5  # cells along an axis; Runkel et al.
NAMES = ("truth", "heldout", "noise")
PLACED = 51  # places a side of the lattice on which ends of runs stand: about a mark's width apart
AS_PAIRED = 0.003  # of squared weights, against squared shares of the distances; arbitrary: small
Labelled = tuple[Tensor, Tensor]
EXACTLY = "donot_use_mm_for_euclid_dist"
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
        """Return the images (m, c, h, w)."""
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

    @property
    def _sets(self) -> tuple[Labelled, Labelled]:
        return self.sets or ((self.truth, self.y), (self.heldout, self.y))

    def start(self, mix_truth: float, mix_data: float) -> Tensor:
        """Return candidates at t = 0, (m, d)."""
        return mix_init(self.truth, self.heldout, self.noise, mix_truth, mix_data)

    def distances(self, x: Tensor) -> tuple[float, float, float]:
        """Return the mean distance of x (m, d) to the nearest truth, held-out and noise point."""
        truth, heldout = (self._mean(x, *one) for one in self._sets)
        return truth, heldout, self._mean(x, self.noise, self.y)

    def _mean(self, x: Tensor, members: Tensor, y: Tensor) -> float:
        if self.pictures is None:
            return mean_nearest(x, self.y, members, y)
        apart = torch.cdist(x, members, compute_mode=EXACTLY)
        like = pairwise_ssim(self.pictures.of(x), self.pictures.of(members))
        return float(apart.gather(1, like.argmax(1, keepdim=True)).mean())

    def weights(self, x: Tensor) -> tuple[float, float, float]:
        """Return where x (m, d) stands on the triangle: weights of truth, held-out points, noise.

        A start stands where it was mixed. Other candidates stand at the place of `PLACED` whose
        start is as far from the three sets as they are, or most nearly so: means of the distances
        to the nearest point, so that the candidates' order is nothing. Of places that are alike in
        this, the one nearest to the best mixture is taken. They never leave the triangle.
        """
        base = (self.truth - self.noise).reshape(-1), (self.heldout - self.noise).reshape(-1)
        columns, wanted = torch.stack(base, 1), (x - self.noise).reshape(-1, 1)
        mixed = torch.linalg.lstsq(columns, wanted, driver="gelsd").solution
        a, b = mixed[:, 0].tolist()
        if min(a, b, 1 - a - b) >= INSIDE and torch.allclose(columns @ mixed, wanted, atol=1e-9):
            return a, b, 1 - a - b
        return self._place(self._mean_distances(x, self.y), torch.tensor((a, b, 1 - a - b)))

    def claims_weights(self, x: Tensor, y: Tensor) -> tuple[float, float, float]:
        """Return where claims x (k, d), y (k,) stand on the triangle, by their distances alone."""
        return self._place(self._mean_distances(x, y))

    def _place(self, wanted: Tensor, mixed: Tensor | None = None) -> tuple[float, float, float]:
        """Return the place with the wanted distances (3,); of alike ones, the one near `mixed`."""
        places, apart = self._table
        off = ((apart - wanted) / apart.max()).square().sum(1)
        if mixed is not None:
            off += AS_PAIRED * (places - mixed).square().sum(1)
        found = places[int(off.argmin())].tolist()
        return found[0], found[1], found[2]

    @cached_property
    def _table(self) -> tuple[Tensor, Tensor]:
        """Return places of a fine lattice (p, 3), and their distances to the three sets (p, 3)."""
        places = torch.tensor([mix_weights(*mix) for mix in places_of(PLACED)], dtype=torch.float64)
        sets = torch.stack((self.truth, self.heldout, self.noise)).double()
        few = max(1, _TOGETHER // sets.numel())
        apart = [
            self._mean_distances(torch.einsum("pk,kmd->pmd", w, sets), self.y)
            for w in places.split(few)
        ]
        return places, torch.cat(apart)

    def _mean_distances(self, x: Tensor, y: Tensor) -> Tensor:
        """Return mean distances of x (..., m, d), y (m,) to the three sets: (..., 3)."""
        every = (*self._sets, (self.noise, self.y))
        made = [mean_distances(x, y, *one) for one in every]
        return torch.stack(made, -1).double()


def mean_nearest(x: Tensor, y: Tensor, members: Tensor, labels: Tensor) -> float:
    """Return the mean distance of x (m, d), y (m,) to the nearest of the members of its label."""
    return float(mean_distances(x, y, members, labels))


def mean_distances(x: Tensor, y: Tensor, members: Tensor, labels: Tensor) -> Tensor:
    """Return the same of sets x (..., m, d): (...)."""
    other = y[:, None] != labels[None]
    other[other.all(1)] = False  # a class without points borrows from all, as pairs do
    apart = torch.cdist(x, members.to(x), compute_mode=EXACTLY)
    return apart.masked_fill(other, torch.inf).amin(-1).mean(-1)


def pairwise_ssim(a: Tensor, b: Tensor) -> Tensor:
    """Return SSIM of every pair of images in [0, 1]. a (m, c, h, w), b (n, c, h, w) -> (m, n)."""
    rows = max(1, _TOGETHER // b.numel())
    return torch.cat([_pairwise(some, b) for some in a.split(rows)])


def _pairwise(a: Tensor, b: Tensor) -> Tensor:
    left = a.repeat_interleave(len(b), 0)
    return ssim(left, b.repeat(len(a), 1, 1, 1)).view(len(a), len(b))


def steps_of(side: int) -> list[float]:
    """Return the values of lambda_1 and lambda_2: `side` even steps from 0 to 1."""
    if side < 2:
        raise ValueError(f"a grid needs 2 or more cells along an axis; got side={side}. Try 5.")
    return [i / (side - 1) for i in range(side)]


def starts(side: int) -> list[tuple[float, float]]:
    """Return the s (s - 1) + 1 distinct starts (mix_truth, mix_data), corners and edges first.

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


def mix_of(truth: int, heldout: int, noise: int) -> tuple[float, float]:
    """Return (mix_truth, mix_data) of whole weights over their sum.

    Equal places have equal numbers.

    At noise alone it is (0, 0), as in `start_of`.
    """
    data = truth + heldout
    return (truth / data, data / (data + noise)) if data else (0.0, 0.0)


def lattice(side: int) -> list[tuple[int, int, int]]:
    """Return the places of the triangle as whole weights that sum to side - 1, corners first.

    Raises:
        ValueError: for fewer than 2 places a side.
    """
    if side < 2:
        raise ValueError(f"a triangle needs 2 or more places a side; got {side}. Try 25.")
    last = side - 1
    every = [(i, last - k - i, k) for k in range(side) for i in range(side - k)]
    return sorted(every, key=lambda place: -place.count(0))


def places_of(side: int) -> list[tuple[float, float]]:
    """Return the starts (mix_truth, mix_data) of a lattice on the triangle, s (s + 1) / 2 of them.

    Their weights are the whole multiples of 1 / (side - 1), so that they lie evenly, where the
    grid of `starts` crowds them at noise. Corners and edges come first.

    Raises:
        ValueError: for fewer than 2 places a side.
    """
    return [mix_of(*place) for place in lattice(side)]


def start_of(mix_truth: float, mix_data: float) -> tuple[float, float]:
    """Return the start that a cell shares: (0, 0) for the whole row mix_data = 0."""
    mix_weights(mix_truth, mix_data)
    return (mix_truth, mix_data) if mix_data > 0 else (0.0, 0.0)


# --- The triangle of starts: its geometry, its lattice, and a lattice of values as pixels -------
# A start is a mixture of truth, held-out data and noise; its three weights sum to 1, so it is one
# place of a triangle. A lattice of side s holds the s (s + 1) / 2 places whose weights are whole
# multiples of 1 / (s - 1), evenly over the triangle, where (lambda_1, lambda_2) crowds them at
# noise.

# Truth, held-out data, noise in the unit square, equal sides, with room around for the names.
CORNERS = np.array([[0.5, 0.88], [0.08, 0.15], [0.92, 0.15]])
INSIDE = -1e-9  # weights down to this are inside: rounding


def outline() -> Array:
    """Return the triangle as a closed path (4, 2)."""
    return CORNERS[[0, 1, 2, 0]]


# --- Where the attack starts: the candidates' labels, and their partners in truth and control ---


def partner_points(dataset: Dataset, y: Tensor) -> Tensor:
    """Return one point of the set per candidate: the points of its class in turn. y (m,) -> (m, d).

    A class without points borrows from all: its candidates then start at points of the other.
    """
    out = torch.empty(len(y), dataset.d, dtype=dataset.x.dtype)
    for label in y.unique().tolist():
        wanted = (y == label).nonzero().squeeze(1)
        members = (dataset.y == label).nonzero().squeeze(1)
        pool = members if len(members) else torch.arange(dataset.n)
        out[wanted] = dataset.x[pool[torch.arange(len(wanted)) % len(pool)]]
    return out


def attack_start(
    truth: Dataset,
    control: Dataset,
    m: int,
    sigma_x: float,
    seed: int,
    mix: tuple[float, float],
    labels: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return candidates of Runkel's eq. (10): x (m, d), y (m,). mix = (mix_truth, mix_data).

    With `labels` (m',) there are as many as these say, whatever m.
    """
    y = fair_labels(m, truth.outputs) if labels is None else labels
    generator = torch.Generator().manual_seed(seed)
    noise = sigma_x * torch.randn(len(y), truth.d, generator=generator, dtype=truth.x.dtype)
    return mix_init(partner_points(truth, y), partner_points(control, y), noise, *mix), y
