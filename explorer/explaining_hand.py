"""What the hand on the plane means in the explain stage: choose, drag, nudge, merge, undo."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from explorer.gestures import MOST_EVENTS, REACH
from explorer.session import Session
from explorer.style import NAMES

NUDGE = 0.02  # of the plane's half width; Shift goes five times as far; arbitrary


class ExplainingHand:
    """Turns events of the pad into commands. `say` is what a screen reader is told."""

    def __init__(self, session: Session) -> None:
        """Act on `session`; nothing is held yet."""
        self.session = session
        self.dragging = False
        self.say = ""

    def handle(self, content: Any) -> None:  # noqa: ANN401 - a message from a browser
        """Act on one message. Of several moves in a row the last one counts."""
        events = content.get("events") if isinstance(content, dict) else None
        if not isinstance(events, list) or self.session.now.explained is None:
            return
        events = [e for e in events[:MOST_EVENTS] if isinstance(e, dict)]
        for event, after in zip(events, [*events[1:], {}], strict=True):
            if event.get("kind") == after.get("kind") == "move":
                continue
            place = self._place(event)
            act = getattr(self, f"_on_{str(event.get('kind')).replace('-', '_')}", None)
            if place is not None and act is not None:
                act(place, event.get("shift") is True)

    def _place(self, event: dict[str, Any]) -> Tensor | None:
        x, y = event.get("x"), event.get("y")
        if not all(isinstance(v, int | float) and math.isfinite(v) for v in (x, y)):
            return None
        at = [(min(1.0, max(0.0, float(v))) * 2 - 1) * self.session.extent for v in (x, y)]  # type: ignore[arg-type]
        return torch.tensor(at, dtype=torch.float64)

    # --- pointer ----------------------------------------------------------------------------
    def _on_down(self, at: Tensor, shift: bool) -> None:
        self.session.drop()
        near = self.nearest(at)
        self.dragging = near is not None
        if near is not None:
            self._do(self.session.choose, near)
            self.say = self._named()

    def _on_move(self, at: Tensor, shift: bool) -> None:
        if self.dragging:
            d = self.session.explained.net.d
            self._do(self.session.pull, at[:d], shift or None)

    def _on_up(self, at: Tensor, shift: bool) -> None:
        if self.dragging:
            self.dragging = False
            self.session.drop()

    # --- keyboard ---------------------------------------------------------------------------
    def _on_next(self, at: Tensor, shift: bool) -> None:
        self._step(1)

    def _on_previous(self, at: Tensor, shift: bool) -> None:
        self._step(-1)

    def _step(self, by: int) -> None:
        state = self.session.explained
        self.session.drop()
        start = (-1 if by > 0 else 0) if state.selected is None else state.selected
        self._do(self.session.choose, (start + by) % state.now.n)
        self.say = self._named()

    def _on_left(self, at: Tensor, shift: bool) -> None:
        self._nudge(-1, 0, shift)

    def _on_right(self, at: Tensor, shift: bool) -> None:
        self._nudge(1, 0, shift)

    def _on_up_key(self, at: Tensor, shift: bool) -> None:
        self._nudge(0, 1, shift)

    def _on_down_key(self, at: Tensor, shift: bool) -> None:
        self._nudge(0, -1, shift)

    def _nudge(self, dx: int, dy: int, shift: bool) -> None:
        size = NUDGE * self.session.extent * (5 if shift else 1)
        self._do(self.session.nudge, (dx * size, dy * size))
        self.say = self.session.message or f"{self._named()}, residual {self._residual()}"

    def _on_act(self, at: Tensor, shift: bool) -> None:
        self.session.drop()
        self.say = "let go"

    def _on_move_tool(self, at: Tensor, shift: bool) -> None:
        self._do(self.session.combine)
        self.say = self.session.message or self.session.explained.words

    def _on_free(self, at: Tensor, shift: bool) -> None:
        self._do(self.session.set_free, not self.session.explained.free)
        self.say = "drags are free" if self.session.explained.free else "drags keep the level line"

    def _on_undo(self, at: Tensor, shift: bool) -> None:
        self._do(self.session.undo_explaining)
        self.say = self.session.message or "undone"

    def _on_redo(self, at: Tensor, shift: bool) -> None:
        self._do(self.session.redo_explaining)
        self.say = self.session.message or "redone"

    def _do(self, command: Any, *args: Any) -> None:  # noqa: ANN401
        self.session.guarded(command, *args)

    # --- places -----------------------------------------------------------------------------
    def nearest(self, at: Tensor) -> int | None:
        """Index of the point within REACH of a place; on the line only the axis counts."""
        state = self.session.explained
        gaps = (state.now.x - at[: state.net.d]).norm(dim=1)
        i = int(gaps.argmin())
        return i if float(gaps[i]) <= REACH * 2 * self.session.extent else None

    def _named(self) -> str:
        state = self.session.explained
        i = state.selected
        if i is None:
            return "no point"
        where = ", ".join(f"{v:.2f}" for v in state.now.x[i].tolist())
        pin = ", pinned" if bool(state.pinned[i]) else ""
        return f"point {i + 1} of {state.now.n}, class {NAMES[int(state.now.y[i])]} at {where}{pin}"

    def _residual(self) -> str:
        return f"{self.session.explained.residual:.1e}"
