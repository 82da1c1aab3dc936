"""What the pooled attack draws: the claims of its starts, then what the hinge attack draws."""

from __future__ import annotations

from dataclasses import replace

from explorer.engine.attacks.pooled import PooledState
from explorer.engine.attacks.target import Target
from explorer.parts import overlay_hinge
from explorer.parts.overlay import Overlay


def overlay(target: Target, state: PooledState) -> Overlay:
    """Dots for the claims of every start while they come; lines and needed places later."""
    drawn = overlay_hinge.overlay(target, state)
    if state.stage not in ("starts", "lines"):
        return drawn
    return replace(drawn, dots=overlay_hinge.table(state.found, target, target.net.d == 1))
