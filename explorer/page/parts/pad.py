"""The surface over the plane: pointer, touch, pen and keyboard, and the drawn-frame signal."""

from __future__ import annotations

from pathlib import Path

import anywidget
from traitlets import Bool, Float, Int, Unicode


class Pad(anywidget.AnyWidget):
    """Sends {"events": [{kind, x, y, gesture}]}; x and y are shares of the surface, y upward."""

    _esm = Path(__file__).with_name("pad.js")
    frame = Int(0).tag(sync=True)  # number of the frame just sent
    sent = Float(0.0).tag(sync=True)  # ms since the epoch; `benchmarks/bench_live.py` reads the lag
    # Number of the newest frame that was drawn; not echoed to the page, which knows it.
    drawn = Int(0).tag(sync=True, echo_update=False)
    active = Bool(True).tag(sync=True)
    echo = Bool(True).tag(sync=True)  # show a dot at once, before the kernel answers
    spacing = Int(14).tag(sync=True)  # px between two events of one stroke
    hover = Bool(False).tag(sync=True)  # whether places are told without a press
    stops = Int(0).tag(sync=True)  # points that Tab goes through; 0: arrows move a cursor instead
    ink = Unicode("#000").tag(sync=True)
    cursor = Unicode("crosshair").tag(sync=True)
    label = Unicode("").tag(sync=True)
    tip = Unicode("").tag(sync=True)
    hint = Unicode("").tag(sync=True)
    say = Unicode("").tag(sync=True)
