"""What the hands of the later stages share: events of the pad as places, arrows as nudges."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from explorer.hands.gestures import MOST_EVENTS, REACH
from explorer.session import Session

NUDGE = 0.02  # of the plane's half width; Shift goes five times as far; arbitrary
FLEETING = ("move", "hover")  # of several in a row the last one counts


class Hand:
    """Turns events of the pad into commands. `say` is what a screen reader is told."""

    def __init__(self, session: Session) -> None:
        """Act on `session`."""
        self.session = session
        self.say = ""

    def ready(self) -> bool:
        """Whether there is anything to act on."""
        raise NotImplementedError

    def handle(self, content: Any) -> None:  # noqa: ANN401 - a message from a browser
        """Act on one message."""
        events = content.get("events") if isinstance(content, dict) else None
        if not isinstance(events, list) or not self.ready():
            return
        events = [e for e in events[:MOST_EVENTS] if isinstance(e, dict)]
        for event, after in zip(events, [*events[1:], {}], strict=True):
            kind = str(event.get("kind")).replace("-", "_")
            if kind == after.get("kind") and kind in FLEETING:
                continue
            place, act = self._place(event), getattr(self, f"_on_{kind}", None)
            if place is not None and act is not None:
                gesture = event.get("gesture")
                act(place, gesture if isinstance(gesture, int) else 0, event.get("shift") is True)

    def _place(self, event: dict[str, Any]) -> Tensor | None:
        x, y = event.get("x"), event.get("y")
        if not all(isinstance(v, int | float) and math.isfinite(v) for v in (x, y)):
            return None
        at = [(min(1.0, max(0.0, float(v))) * 2 - 1) * self.session.extent for v in (x, y)]  # type: ignore[arg-type]
        return torch.tensor(at, dtype=torch.float64)

    def _among(self, x: Tensor, at: Tensor) -> int | None:
        """Index of the point of x (n, d) within REACH of a place; on the line by the axis alone."""
        gaps = (x - at[: x.shape[1]]).norm(dim=1)
        i = int(gaps.argmin())
        return i if float(gaps[i]) <= REACH * 2 * self.session.extent else None

    # --- keyboard ---------------------------------------------------------------------------
    def _step(self, by: int) -> None:
        """Go to another point."""
        raise NotImplementedError

    def _nudge(self, by: Tensor, gesture: int) -> None:
        """Move the point by a step (2,)."""
        raise NotImplementedError

    def _arrow(self, dx: int, dy: int, gesture: int, shift: bool) -> None:
        size = NUDGE * self.session.extent * (5 if shift else 1)
        self._nudge(size * torch.tensor([dx, dy], dtype=torch.float64), gesture)

    def _on_next(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._step(1)

    def _on_previous(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._step(-1)

    def _on_left(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._arrow(-1, 0, gesture, shift)

    def _on_right(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._arrow(1, 0, gesture, shift)

    def _on_up_key(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._arrow(0, 1, gesture, shift)

    def _on_down_key(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._arrow(0, -1, gesture, shift)
