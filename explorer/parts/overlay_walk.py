"""The candidates of the landscape stage on the plane: in hand, and how far from the truth."""

from __future__ import annotations

import numpy as np

from explorer.parts.overlay import Overlay
from explorer.stages.walk import Walk


def overlay(walk: Walk) -> Overlay:
    """A square around the mapped point, a cross at each moved one, a line from where it was."""
    x, truth = walk.x.numpy(), walk.truth.x.double().cpu().numpy()
    if x.shape[1] == 1:
        heights = walk.y.numpy()[:, None]
        x, truth = np.hstack([x, heights]), np.hstack([truth, heights])
    away = np.flatnonzero(np.abs(x - truth).max(axis=1) > 0)
    gap = np.full(2, np.nan)
    lines = [row for i in away for row in (truth[i], x[i], gap)][:-1]
    return Overlay(
        lines=np.array(lines).reshape(-1, 2), dots=x[away], hands=x[walk.mapped : walk.mapped + 1]
    )
