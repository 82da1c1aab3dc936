"""The victim of a bilevel attack: weights trained on the truth, which the attack never sees."""

from __future__ import annotations

import torch
from torch import Tensor

from explorer.engine.attacks.bilevel import BilevelTarget
from explorer.engine.attacks.bilevel_config import BilevelConfig
from explorer.engine.attacks.bilevel_lower import solve

_TRAINED = 1e-6  # arbitrary: a gradient above this is no minimum to speak of


def victim(
    x: Tensor, y: Tensor, config: BilevelConfig, generator: torch.Generator
) -> BilevelTarget:
    """theta* = argmin_theta E(x, y; theta) on the truth x (n, d), y (n,), from a random theta.

    Raises:
        ValueError: where the training does not end at a minimum.
    """
    lower = config.lower(x.shape[1])
    x, y = x.to(torch.float64), y.to(torch.float64)
    found = solve(lower, x, y, lower.shape.draw(generator))
    if not found.gradient <= _TRAINED:
        raise ValueError(
            f"training ended at a gradient of {found.gradient:.1e}, above {_TRAINED:g}. "
            "Raise mu, lower beta or take another seed."
        )
    return BilevelTarget(found.theta, lower)
