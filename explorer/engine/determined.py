"""Which training points the weights determine, in one call and one sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from explorer.engine.cells import KINK
from explorer.engine.consistent import TOLERANCE, Progress, Sample, forced_mass, sample_of
from explorer.engine.explanations import USED
from explorer.engine.network import Network

_ROOM = 1.05  # arbitrary: slack beyond what the given points themselves miss
FORCED = 1e-3  # arbitrary: a forced mass above this share of the whole one counts
BAND = 2.0  # arbitrary: up to this factor above or below it, it is at the edge and claims nothing


@dataclass(frozen=True, eq=False)
class Determined:
    """Which training points the weights determine.

    Attributes:
        forced: (n,) bool: every explanation has mass within the radius of this point.
        edge: (n,) bool: so little that it may as well be none; none of these is forced.
        mass: least mass (n,) there over all explanations.
        sentence: what that means here, with its tolerance and sampling.
    """

    forced: Tensor
    edge: Tensor
    mass: Tensor
    sentence: str


def forced_points(mass: Tensor, whole: float) -> tuple[Tensor, Tensor]:
    """Which least masses (n,) are forced, and which are at the edge of it. -> (n,) bool, twice.

    Least masses are continuous in the weights and in the tolerance, so a claim with a factor `BAND`
    to spare is not that of the last bits, nor of a tolerance that moved a little.
    """
    share = mass / max(whole, 1e-300)
    forced = share > BAND * FORCED
    return forced, (share > FORCED / BAND) & ~forced


def edge_words(edge: Tensor) -> str:
    """What is said of points at the edge (n,) bool; nothing where there is none."""
    count = int(edge.sum())
    if not count:
        return ""
    which = "1 more is" if count == 1 else f"{count} more are"
    return (
        f" {which} at the edge: the least mass there is within a factor {BAND:g} of {FORCED:.0e} "
        "of the whole, from which it would count."
    )


def sharpened(sample: Sample) -> Sample:
    """The same points with the least tolerance that admits the given ones (with 5% of room)."""
    share = _ROOM * float(np.abs(sample.left(_given(sample))).max())
    return replace(sample, tolerance=max(TOLERANCE, share), _rows=[])


def _given(sample: Sample) -> NDArray[np.float64]:
    """The given points as one z (m + r,) of the polytope."""
    z = np.zeros(sample.columns.shape[1])
    z[: sample.truth.n] = sample.truth.lam.numpy()
    for k, (owner, (layer, j)) in enumerate(zip(sample.owner, sample.where, strict=True)):
        if owner < sample.truth.n:
            slope = float(sample.truth.slopes[layer][owner, j])
            z[len(sample.x) + k] = slope * z[owner]
    return z


def determined(
    net: Network, x: Tensor, y: Tensor, lam: Tensor | None = None, extent: float | None = None,
    tau: float = KINK, grid: int = 0, progress: Progress | None = None, sharp: bool = False,
) -> Determined:  # fmt: skip
    """Which of these points every explanation of the weights must contain.

    Args:
        net: at margin 1, one output, d = 1 or 2; merge the parallel neurons of a trained one.
        x: the training points (n, d).
        y: labels (n,).
        lam: multipliers (n,) or None; points of multiplier 0 are left out as not determined.
        extent: half width of the box; None takes twice the largest coordinate.
        tau: relative distance of a kink: `certificate.TAU_TRAINED` for trained weights.
        grid: extra lines each way, of use in deeper networks.
        progress: see `forced_mass`.
        sharp: let each component miss no more than the largest component that the points miss,
            instead of as much as they miss of the whole: the least tolerance that admits them.
    """
    reach = float(x.abs().max()) if len(x) else 1.0
    used = torch.arange(len(x))
    if lam is not None and float(lam.max()) > 0:
        used = used[(lam > USED * lam.sum()).cpu()]
    box = 2 * max(reach, 1.0) if extent is None else extent
    sample = sample_of(net, x[used], y[used], box, tau, grid)
    sample = sharpened(sample) if sharp else sample
    least = forced_mass(sample, progress)
    mass = torch.zeros(len(x), dtype=torch.float64)
    mass[used[sample.truth.origin]] = least
    forced, edge = forced_points(mass, sample.mass)
    count = int(forced.sum())
    scope = (
        f"within ±{box:.3g}, tolerance {sample.tolerance:.0e} of the norm"
        if sample.exact
        else f"on {len(sample.x)} sampled margin points within ±{box:.3g}, so up to sampling, "
        f"tolerance {sample.tolerance:.0e} of the norm"
    )
    words = (
        f"{count} of {len(x)} points are determined by the weights: every training set on "
        f"the margin that explains them has mass within {sample.radius:g} of each ({scope})."
    )
    return Determined(forced, edge, mass, words + edge_words(edge))
