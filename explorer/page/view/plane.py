"""The plane as a canvas, with a pad over it: one widget, one binary message a frame."""

from __future__ import annotations

from pathlib import Path

from traitlets import Bool, HasTraits, Int, Unicode

from explorer.page.view.base import CanvasView, script

SCRIPT = Path(__file__).with_name("pad.js").read_text()  # defines `attachPad(model, el)`


class PadTraits(HasTraits):
    """Of a widget that sends {"events": [{kind, x, y, gesture, shift}]}.

    x and y are shares of the surface, y upward.

    Attributes:
        active: whether it takes anything.
        echo: whether a dot shows at once, before the kernel answers.
        spacing: px between two events of one stroke.
        hover: whether places are told without a press.
        stops: points that Tab goes through; 0: arrows move a cursor instead.
        ink: colour of the dots.
        cursor: shape of the mouse's cursor.
        label: what a screen reader says of the surface.
        tip: what shows when the mouse rests.
        hint: words in the middle.
        say: words that a screen reader says once.
    """

    active = Bool(True).tag(sync=True)
    echo = Bool(True).tag(sync=True)
    spacing = Int(14).tag(sync=True)
    hover = Bool(False).tag(sync=True)
    stops = Int(0).tag(sync=True)
    ink = Unicode("#000").tag(sync=True)
    cursor = Unicode("crosshair").tag(sync=True)
    label = Unicode("").tag(sync=True)
    tip = Unicode("").tag(sync=True)
    hint = Unicode("").tag(sync=True)
    say = Unicode("").tag(sync=True)


class PlaneView(PadTraits, CanvasView):
    """Draws frames of the plane, and tells what hand and keys do there.

    What a frame holds stands at the top of `plane.js`. Earlier places of candidates are kept in
    the browser, as trails.

    Attributes:
        present: whether points are drawn larger, to be seen from afar.
    """

    _esm = f"{SCRIPT}\n{script('plane.js')}\nexport default {{ render }};"
    present = Bool(False).tag(sync=True)
