"""The triangle of starts: truth, unseen points and noise at its corners, and a handle between."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray
from traitlets import Bool, Float, Int, Tuple, Unicode

from explorer.engine.energy.landscape import Weights
from explorer.page.view.base import CanvasView, script

Array = NDArray[np.float64]
# Viridis at six even places, as in triangle.js: told apart by the colour-blind.
SHADING = ("#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#fde725")
FLOOR = 1e-12  # a share of the weights below this is rounding
DECADES = 4.0  # of the colours below the highest value; arbitrary
CROWDED = 0.8  # of the places within `NEAR` of the colours: then these follow ranks; arbitrary
NEAR = 0.05  # of all colours; arbitrary


def span_of(values: Array, reference: float = np.nan) -> tuple[float, float]:
    """Return lowest and highest value of the colours, a power of ten apart where there is room.

    `reference`: a value that is on the scale as well; nan for none.
    """
    finite = values[np.isfinite(values)]
    top = max(float(finite.max(initial=0.0)), FLOOR)
    if np.isfinite(reference):
        top = max(top, reference)
    lowest = max(float(finite.min(initial=top)), FLOOR)
    return max(top * 10**-DECADES, min(lowest, top / 10)), top


def log_shares(values: Array, low: float, top: float) -> Array:
    """Return where values stand between low (0) and top (1), by their logarithms; nan stays."""
    share: Array = np.log(np.maximum(values, low) / low) / np.log(top / low)
    return np.clip(share, 0.0, 1.0)


def by_rank(values: Array) -> bool:
    """Return whether nearly all values have one colour, so that colours follow ranks."""
    shares = log_shares(values, *span_of(values))
    known = np.sort(shares[np.isfinite(shares)])
    if len(known) < 3:
        return False
    window = max(int(np.ceil(CROWDED * len(known))), 2)
    return bool((known[window - 1 :] - known[: len(known) - window + 1]).min() <= NEAR)


def ranks(values: Array) -> Array:
    """Return the share of the values below each one, equal ones alike, in [0, 1]; nan stays."""
    known = np.isfinite(values)
    out = np.full(values.shape, np.nan)
    if known.any():
        _, at, counts = np.unique(values[known], return_inverse=True, return_counts=True)
        middle = np.cumsum(counts) - (counts + 1) / 2
        out[known] = middle[at.ravel()] / max(int(counts.sum()) - 1, 1)
    return out


def shades(values: Array, ranked: bool) -> NDArray[np.uint8]:
    """Return the lattice as bytes: 1 is the highest value, 255 the lowest; 0 where none is."""
    shares = ranks(values) if ranked else log_shares(values, *span_of(values))
    known = np.isfinite(shares)
    return np.where(known, np.rint(255 - 254 * np.where(known, shares, 0.0)), 0).astype(np.uint8)


class TriangleView(CanvasView):
    """A triangle with a handle to drag, and the runs that were begun on it.

    A frame has the arrays `fill` (side, side), see `shades`, row noise and column truth; `trails`
    (k, t, 3), places of k runs, the last one repeated where a run is shorter; `ends` (k,), the set
    that each run is nearest to: 0 truth, 1 unseen points, 2 noise, 3 still running. Each may be
    left out.

    Attributes:
        handle: shares of truth, unseen points and noise where the handle is.
        enabled: whether it can be moved.
        small: whether names stand inside and there is no scale.
        taken: number of the newest place that was taken over; the next one is then sent.
        say: what a screen reader says of the newest place.
    """

    _esm = script("triangle.js")
    handle = Tuple(Float(), Float(), Float(), default_value=(0.0, 0.0, 1.0)).tag(sync=True)
    enabled = Bool(True).tag(sync=True)
    small = Bool(False).tag(sync=True)
    taken = Int(0).tag(sync=True)
    say = Unicode("").tag(sync=True)

    def __init__(self, **traits: Any) -> None:  # noqa: ANN401 - traits of the view
        """Wait for a frame and for the hand."""
        super().__init__(**traits)
        self._on_handle: list[Callable[[Weights], None]] = []
        self._on_ball: list[Callable[[int], None]] = []
        self.on_msg(self._moved)

    def on_handle(self, call: Callable[[Weights], None]) -> None:
        """Call `call(weights)` whenever the hand puts the handle to another place."""
        self._on_handle.append(call)

    def on_ball(self, call: Callable[[int], None]) -> None:
        """Call `call(k)` when the hand presses the end of run k."""
        self._on_ball.append(call)

    def _moved(self, _: Any, content: Any, __: Any) -> None:  # noqa: ANN401 - from a browser
        kind = content.get("kind") if isinstance(content, dict) else None
        if kind == "handle" and self.enabled:
            weights = weights_in(content.get("weights"))
            if weights is not None:
                for move in self._on_handle:
                    move(weights)
            number = content.get("number")
            self.taken = number if isinstance(number, int) else self.taken + 1
        elif kind == "ball" and isinstance(k := content.get("index"), int):
            for press in self._on_ball:
                press(k)


def weights_in(given: Any) -> Weights | None:  # noqa: ANN401 - from a browser
    """Return three shares that sum to 1, from a message; None for anything else."""
    if not isinstance(given, list) or len(given) != 3:
        return None
    if not all(type(v) in (int, float) and isfinite(v) for v in given):
        return None
    kept = [min(max(float(v), 0.0), 1.0) for v in given]
    total = sum(kept)
    if total <= 0:
        return None
    truth, unseen = kept[0] / total, kept[1] / total
    return truth, unseen, max(0.0, 1 - truth - unseen)
