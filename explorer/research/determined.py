"""What weights determine of the points that they were trained on, over all explanations of them.

Nothing is sampled. Of three layers and more what is said is a bound: see `certainty` and `masses`.
What an explanation may leave of the weights is what the points themselves leave.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.attacks.target import Target
from explorer.engine.data import Dataset
from explorer.engine.explanations.certainty import Certainty
from explorer.engine.explanations.masses import (
    Farthest,
    allowed_residual,
    farthest,
    forced_masses,
    forced_points,
)
from explorer.engine.progress import Progress, no_progress, part_progress
from explorer.research.runs import RADIUS, certified_points, cone_around

NOT_BOUNDED = Farthest(0.0, math.inf, 0.0, 0.0, *(torch.zeros(0),) * 3)


@dataclass(frozen=True, eq=False)
class Determination:
    """What every explanation as good as that by the points shares, and how far one can be.

    Attributes:
        certainty: of the points themselves.
        mass: the multipliers that every such explanation has within `within` of each point, at
            least (n,).
        forced: which of these masses count (n,), bool.
        allowed: what an explanation may leave, a share of |theta|.
        within: how near to its point, in units of the data.
        box: half width of the box of all explanations, in units of the data.
        farthest: of these explanations, one far from the points, and the bound; none with weight
            decay.
    """

    certainty: Certainty
    mass: Tensor
    forced: Tensor
    allowed: float
    within: float
    box: float
    farthest: Farthest


def determination(
    target: Target, truth: Dataset, half: float = RADIUS, progress: Progress = no_progress
) -> Determination:
    """Return what the attacked weights determine of known points.

    Args:
        target: the weights at margin 1.
        truth: the points that they were trained on.
        half: half width of the places around them, in units of the data.
        progress: hears of the work, and may end it.

    Raises:
        ValueError: where nothing can be certified; the message says why.
    """
    certain = certified_points(target, truth, half, part_progress(progress, 0.0, 0.4))
    cone = cone_around(target, truth)
    allowed = allowed_residual(cone, certain.truth)
    mass = forced_masses(cone, truth.x, truth.y, half, allowed, part_progress(progress, 0.4, 0.9))
    far = NOT_BOUNDED  # with weight decay mass has no fixed sum, over which to take a mean
    if target.decay is None:
        far = farthest(cone, truth.x, allowed, part_progress(progress, 0.9, 1.0))
    return Determination(
        certain, mass, forced_points(mass, target.mass)[0], allowed, half + certain.reach,
        certain.box, far,
    )  # fmt: skip
