"""What the hand on the plane means in the explain stage: choose, drag, nudge, merge, undo."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from explorer.hands.hand import Hand
from explorer.session import Session
from explorer.style import NAMES


class ExplainingHand(Hand):
    """Drags points of the present explanation."""

    def __init__(self, session: Session) -> None:
        """Act on `session`; nothing is held yet."""
        super().__init__(session)
        self.dragging = False

    def ready(self) -> bool:
        """Whether there is an explanation to act on."""
        return self.session.now.explained is not None

    # --- pointer ----------------------------------------------------------------------------
    def _on_down(self, at: Tensor, gesture: int, shift: bool) -> None:
        self.session.drop()
        near = self.nearest(at)
        self.dragging = near is not None
        if near is not None:
            self._do(self.session.choose, near)
            self.say = self._named()

    def _on_move(self, at: Tensor, gesture: int, shift: bool) -> None:
        if self.dragging:
            d = self.session.explained.net.d
            self._do(self.session.pull, at[:d], shift or None)

    def _on_up(self, at: Tensor, gesture: int, shift: bool) -> None:
        if self.dragging:
            self.dragging = False
            self.session.drop()

    # --- keyboard ---------------------------------------------------------------------------
    def _step(self, by: int) -> None:
        state = self.session.explained
        self.session.drop()
        start = (-1 if by > 0 else 0) if state.selected is None else state.selected
        self._do(self.session.choose, (start + by) % state.now.n)
        self.say = self._named()

    def _nudge(self, by: Tensor, gesture: int) -> None:
        self._do(self.session.nudge, tuple(by.tolist()))
        self.say = self.session.message or f"{self._named()}, residual {self._residual()}"

    def _on_act(self, at: Tensor, gesture: int, shift: bool) -> None:
        self.session.drop()
        self.say = "let go"

    def _on_move_tool(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._do(self.session.combine)
        self.say = self.session.message or self.session.explained.words

    def _on_free(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._do(self.session.set_free, not self.session.explained.free)
        self.say = "drags are free" if self.session.explained.free else "drags keep the level line"

    def _on_undo(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._do(self.session.undo_explaining)
        self.say = self.session.message or "undone"

    def _on_redo(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._do(self.session.redo_explaining)
        self.say = self.session.message or "redone"

    def _do(self, command: Any, *args: Any) -> None:  # noqa: ANN401
        self.session.guarded(command, *args)

    # --- places -----------------------------------------------------------------------------
    def nearest(self, at: Tensor) -> int | None:
        """Index of the point within REACH of a place; on the line only the axis counts."""
        return self._among(self.session.explained.now.x, at)

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
