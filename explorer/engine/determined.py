"""Which training points the weights determine, in one call and one sentence."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.cells import KINK
from explorer.engine.consistent import Progress, forced_mass, sample_of
from explorer.engine.explanations import USED
from explorer.engine.network import Network

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


def determined(
    net: Network, x: Tensor, y: Tensor, lam: Tensor | None = None, extent: float | None = None,
    tau: float = KINK, grid: int = 0, progress: Progress | None = None,
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
    """
    reach = float(x.abs().max()) if len(x) else 1.0
    used = torch.arange(len(x))
    if lam is not None and float(lam.max()) > 0:
        used = used[(lam > USED * lam.sum()).cpu()]
    box = 2 * max(reach, 1.0) if extent is None else extent
    sample = sample_of(net, x[used], y[used], box, tau, grid)
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
