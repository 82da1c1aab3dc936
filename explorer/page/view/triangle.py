"""The triangle of starts: truth, unseen points and noise at its corners, and a handle between."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import isfinite
from typing import Any

from numpy.typing import NDArray
from traitlets import Bool, Float, Int, Tuple, Unicode

from explorer.engine.energy.landscape import Weights
from explorer.page.view.base import CanvasView, script

Arrays = dict[str, NDArray[Any]]


class TriangleView(CanvasView):
    """A triangle with a handle to drag, and the runs that were begun on it.

    A frame has these arrays, each of which may be left out: `fill` (side, side), row noise and
    column truth, see `page.shades`; `trails` (k, t, 3), places of k runs, the last one repeated
    where a run is shorter; `ends` (k,), the set that each run is nearest to: 0 truth, 1 unseen
    points, 2 noise, 3 still running.

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

    def __init__(
        self,
        together: Callable[[], AbstractContextManager[None]] = nullcontext,
        **traits: Any,  # noqa: ANN401 - traits of the view
    ) -> None:
        """Wait for a frame and for the hand, whose moves are answered within `together()`."""
        super().__init__(**traits)
        self._together = together
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
            with self._together():
                self._move(content.get("weights"), content.get("number"))
        elif kind == "ball" and isinstance(k := content.get("index"), int):
            for press in self._on_ball:
                press(k)

    def _move(self, given: Any, number: Any) -> None:  # noqa: ANN401 - from a browser
        weights = weights_in(given)
        if weights is not None:
            for move in self._on_handle:
                move(weights)
        self.taken = number if isinstance(number, int) else self.taken + 1


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


class StripView(CanvasView):
    """Draws energies over a path from place to place; what a frame holds stands in `strip.js`."""

    _esm = script("strip.js")
