"""Which overlay belongs to which attack: one function per row of the roster that draws one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from explorer.engine.attacks.target import Target
from explorer.frame import Frame
from explorer.parts import (
    overlay_bilevel,
    overlay_explain,
    overlay_hinge,
    overlay_pooled,
    overlay_univariate,
    overlay_walk,
)
from explorer.parts.overlay import EMPTY, Overlay

OVERLAYS: dict[str, Callable[[Target, Any], Overlay]] = {
    "hinge": overlay_hinge.overlay,
    "pooled": overlay_pooled.overlay,
    "univariate": overlay_univariate.overlay,
    "bilevel": overlay_bilevel.overlay,
}


def overlay_of(frame: Frame, extent: float) -> Overlay:
    """What the present attack draws beside its candidates, or the explain stage."""
    if frame.stage == "explain" and frame.explained is not None:
        return overlay_explain.overlay(frame.explained, extent)
    if frame.stage == "landscape" and frame.walk is not None:
        return overlay_walk.overlay(frame.walk)
    draw = OVERLAYS.get(frame.attack_name)
    if frame.stage != "attack" or draw is None or frame.target is None or frame.attack is None:
        return EMPTY
    return draw(frame.target, frame.attack)
