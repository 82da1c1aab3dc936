"""The profile of an energy along a path of the triangle, before and after the attack."""

from __future__ import annotations

from explorer.page.view.base import CanvasView, script


class StripView(CanvasView):
    """Draws energies over a path from place to place; what a frame holds stands in `strip.js`."""

    _esm = script("strip.js")
