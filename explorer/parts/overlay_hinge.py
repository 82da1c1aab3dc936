"""What the hinge attack draws: merged lines, the candidates kept, the needed places."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from explorer.engine.attacks.hinge_state import HingeState
from explorer.engine.attacks.target import Target
from explorer.engine.network import phi
from explorer.parts.overlay import NONE, Overlay

Array = NDArray[np.float64]
MOST_LINES = 80  # arbitrary: more cannot be told apart
MOST_DOTS = 400  # arbitrary: more hide the plane
LONG = 8.0  # half length of a line: leaves any plane that is drawn


def overlay(target: Target, state: HingeState) -> Overlay:
    """Lines by weight, dots for the candidates kept, rings for the needed places."""
    flat = target.net.d == 1
    return Overlay(
        lines=NONE if flat else _lines(state),
        dots=table(state.pool[: min(len(state.pool), MOST_DOTS)], target, flat)
        if state.stage in ("fit", "prove") else NONE,
        rings=table(state.x[state.needed], target, flat),
    )  # fmt: skip


def _lines(state: HingeState) -> Array:
    pieces = []
    for n, b in list(zip(state.normal, state.offset, strict=True))[:MOST_LINES]:
        foot, along = -b * n, torch.stack([-n[1], n[0]]) * LONG
        pieces.append(torch.stack([foot - along, foot + along]).cpu().numpy())
        pieces.append(np.full((1, 2), np.nan))
    return np.concatenate(pieces[:-1]) if pieces else NONE


def table(x: torch.Tensor, target: Target, flat: bool) -> Array:
    """Places (m, d) as rows of an overlay; on the line at their height on the graph."""
    if not len(x):
        return NONE
    if not flat:
        return np.asarray(x.cpu().numpy(), dtype=float)
    height = phi(target.net, x.to(target.net.dtype)).cpu().numpy()
    return np.column_stack([x[:, 0].cpu().numpy(), height])
