"""Which training points the weights determine, in one call and one sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from explorer.engine.cells import KINK
from explorer.engine.consistent import TOLERANCE, Progress, Sample, forced_mass, sample_of
from explorer.engine.explanations import USED
from explorer.engine.network import Network
from explorer.engine.tangent import residual

_ROOM = 1.05  # arbitrary: slack beyond what the given points themselves miss
FORCED = 1e-3  # arbitrary: a forced mass above this share of the whole one counts


@dataclass(frozen=True, eq=False)
class Determined:
    """Which training points the weights determine.

    Attributes:
        forced: (n,) bool: every explanation has mass within the radius of this point.
        mass: least mass (n,) there over all explanations.
        sentence: what that means here, with its tolerance and sampling.
    """

    forced: Tensor
    mass: Tensor
    sentence: str


def sharpened(sample: Sample) -> Sample:
    """The same points with the least tolerance that admits the given ones (with 5% of room)."""
    truth = sample.truth
    left = residual(sample.net, truth.x, truth.lam * truth.y, truth.slopes)
    share = _ROOM * float(left.abs().max() / sample.net.rho)
    return replace(sample, tolerance=max(TOLERANCE, share), _rows=[])


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
    forced = mass > FORCED * sample.mass
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
    return Determined(forced, mass, words)
