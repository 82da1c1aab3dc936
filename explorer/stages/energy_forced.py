"""Energy maps beside the linear program of forced masses, which has the last word on a name."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from explorer.engine.archetypes import Archetype
from explorer.engine.certificate import TAU_TRAINED, certify
from explorer.engine.data import Dataset
from explorer.engine.determined import determined
from explorer.engine.network import Network
from explorer.stages.energy_question import Picture

NEEDLE = Archetype.NEEDLE.name.lower()


def forced_share(net: Network, truth: Dataset) -> Tensor | None:
    """Least share of each training point's multiplier that stays at its place (n,).

    Over all sets on the margin that explain the weights; 0 where it is at the edge, see
    `determined.forced_points`; None where there is no such program.
    """
    x, y = truth.x.double(), truth.y.double()
    try:
        lam = certify(net, x, y).lam
        found = determined(net, x, y, lam, tau=TAU_TRAINED)
    except ValueError:  # no margin, or a margin set without a point
        return None
    return torch.where(found.forced, found.mass / lam.clamp_min(1e-300), 0.0)


def told(picture: Picture, share: float) -> Picture:
    """A map of a point beside what must be there by the linear program, `share` of its multiplier.

    The energy asks for stationarity alone. So a map may be low where a multiplier would stand off
    the margin, which no KKT point allows: the program has the last word.
    """
    if share <= 0:
        return picture
    amount = "all" if share > 0.995 else f"{share:.0%} or more"
    must = (
        f"by a linear program every set on the margin that explains the weights has {amount} of "
        "this point's multiplier at its place, up to sampling."
    )
    if picture.archetype == NEEDLE:
        return replace(picture, words=f"{picture.words} And {must}")
    words = (
        f"This point is a needle: {must} The energy alone does not show it, for it asks for no "
        "margin: elsewhere it needs multipliers off the margin, which no KKT point has. "
        f"{picture.words.partition('. ')[2]}"
    )
    return replace(picture, words=words, archetype=NEEDLE)
