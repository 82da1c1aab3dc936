"""The plane as a canvas, with a pad over it: one widget, one binary message a frame."""

from __future__ import annotations

from traitlets import Bool

from explorer.page.view import pad
from explorer.page.view.base import CanvasView, script


class PlaneView(pad.PadTraits, CanvasView):
    """Draws frames of the plane, and tells what hand and keys do there.

    What a frame holds stands at the top of `plane.js`. Earlier places of candidates are kept in
    the browser, as trails.

    Attributes:
        present: whether points are drawn larger, to be seen from afar.
    """

    _esm = f"{pad.SCRIPT}\n{script('plane.js')}\nexport default {{ render }};"
    present = Bool(False).tag(sync=True)

    def save(self, kind: str, name: str) -> None:
        """Let the browser save a picture of the very frame as `name`.png or `name`.svg.

        Raises:
            ValueError: for another kind than "png" and "svg".
        """
        if kind not in ("png", "svg"):
            raise ValueError(f'a picture is "png" or "svg"; got {kind!r}')
        self.send({"kind": "save", "type": kind, "name": name})
