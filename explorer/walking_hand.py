"""What the hand means in the landscape stage: a click chooses a point's map, a drag moves it."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from explorer.gestures import MOST_EVENTS, REACH
from explorer.session import Session
from explorer.style import NAMES

NUDGE = 0.02  # of the plane's half width; Shift goes five times as far; arbitrary


class WalkingHand:
    """Turns events of a pad into commands. `say` is what a screen reader is told."""

    def __init__(self, session: Session) -> None:
        """Act on `session`; nothing is held yet."""
        self.session = session
        self.held: int | None = None
        self.travelled = False
        self.say = ""
        self.hovered: Tensor | None = None

    def handle(self, content: Any) -> None:  # noqa: ANN401 - a message from a browser
        """Act on one message. Of several moves in a row the last one counts."""
        events = content.get("events") if isinstance(content, dict) else None
        if not isinstance(events, list) or self.session.now.walk is None:
            return
        events = [e for e in events[:MOST_EVENTS] if isinstance(e, dict)]
        for event, after in zip(events, [*events[1:], {}], strict=True):
            kind = str(event.get("kind")).replace("-", "_")
            if kind == after.get("kind") and kind in ("move", "hover"):
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

    # --- pointer ----------------------------------------------------------------------------
    def _on_hover(self, at: Tensor, gesture: int, shift: bool) -> None:
        self.hovered = at

    def _on_down(self, at: Tensor, gesture: int, shift: bool) -> None:
        self.held, self.travelled = self.nearest(at), False

    def _on_move(self, at: Tensor, gesture: int, shift: bool) -> None:
        if self.held is not None:
            self.travelled = True
            d = self.session.walk.x.shape[1]
            self.session.guarded(self.session.move_point, self.held, at[:d], gesture)

    def _on_up(self, at: Tensor, gesture: int, shift: bool) -> None:
        if self.held is not None and not self.travelled:
            self.session.guarded(self.session.map_point, self.held)
            self.say = f"map of {self._named()}"
        self.held = None

    # --- keyboard ---------------------------------------------------------------------------
    def _on_next(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._step(1)

    def _on_previous(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._step(-1)

    def _step(self, by: int) -> None:
        walk = self.session.walk
        self.session.guarded(self.session.map_point, (walk.mapped + by) % len(walk.x))
        self.say = f"map of {self._named()}"

    def _on_left(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._nudge(-1, 0, gesture, shift)

    def _on_right(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._nudge(1, 0, gesture, shift)

    def _on_up_key(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._nudge(0, 1, gesture, shift)

    def _on_down_key(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._nudge(0, -1, gesture, shift)

    def _nudge(self, dx: int, dy: int, gesture: int, shift: bool) -> None:
        walk = self.session.walk
        size = NUDGE * self.session.extent * (5 if shift else 1)
        step = size * torch.tensor([dx, dy], dtype=torch.float64)[: walk.x.shape[1]]
        place = (walk.x[walk.mapped] + step).clamp(-self.session.extent, self.session.extent)
        self.session.guarded(self.session.move_point, walk.mapped, place, gesture)
        self.say = self._named()

    def _on_undo(self, at: Tensor, gesture: int, shift: bool) -> None:
        self.session.guarded(self.session.undo_walk)
        self.say = self.session.message or "undone"

    def _on_redo(self, at: Tensor, gesture: int, shift: bool) -> None:
        self.session.guarded(self.session.redo_walk)
        self.say = self.session.message or "redone"

    # --- places -----------------------------------------------------------------------------
    def nearest(self, at: Tensor) -> int | None:
        """Index of the point within REACH of a place; on the line only the axis counts."""
        x = self.session.walk.x
        gaps = (x - at[: x.shape[1]]).norm(dim=1)
        i = int(gaps.argmin())
        return i if float(gaps[i]) <= REACH * 2 * self.session.extent else None

    def _named(self) -> str:
        walk = self.session.walk
        where = ", ".join(f"{v:.2f}" for v in walk.x[walk.mapped].tolist())
        label = NAMES[int(walk.y[walk.mapped])]
        return f"point {walk.mapped + 1} of {len(walk.x)}, class {label} at {where}"
