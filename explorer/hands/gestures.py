"""What the hand on the plane means: pointer and keyboard events become commands of a session."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from explorer.session import Session
from explorer.style import NAMES

REACH = 0.05  # share of the plane's width within which a point is grabbed or erased; arbitrary
MOST_EVENTS = 500  # in one message: more than a hand can do between two of them


class Gestures:
    """Turns events of the pad into edits. `say` is what a screen reader is told."""

    def __init__(self, session: Session) -> None:
        """Act on `session`; nothing is held yet."""
        self.session = session
        self.held: int | None = None
        self.say = ""

    def handle(self, content: Any) -> None:  # noqa: ANN401 - a message from a browser
        """Act on one message; anything that is not an event of the pad is left out."""
        events = content.get("events") if isinstance(content, dict) else None
        if not isinstance(events, list):
            return
        for event in events[:MOST_EVENTS]:
            place = self._place(event)
            if place is None:
                continue
            act = getattr(self, f"_on_{str(event.get('kind')).replace('-', '_')}", None)
            if act is not None:
                gesture = event.get("gesture", 0)
                act(place, gesture if isinstance(gesture, int) else 0)

    def _place(self, event: Any) -> tuple[float, float] | None:  # noqa: ANN401
        if not isinstance(event, dict):
            return None
        x, y = event.get("x"), event.get("y")
        if not all(isinstance(v, int | float) and math.isfinite(v) for v in (x, y)):
            return None
        e = self.session.extent
        return tuple((min(1.0, max(0.0, float(v))) * 2 - 1) * e for v in (x, y))  # type: ignore

    # --- pointer ----------------------------------------------------------------------------
    def _on_down(self, at: tuple[float, float], gesture: int) -> None:
        if self.session.tool == "move":
            self.held = self.nearest(at)
        else:
            self._paint(at, gesture)

    def _on_move(self, at: tuple[float, float], gesture: int) -> None:
        if self.session.tool == "move":
            self._drag(at, gesture)
        else:
            self._paint(at, gesture)

    def _on_up(self, at: tuple[float, float], gesture: int) -> None:
        if self.session.tool == "move":
            self._drag(at, gesture)
            self.held = None

    def _paint(self, at: tuple[float, float], gesture: int) -> None:
        if self.session.tool == "erase":
            self._erase(at, gesture)
        else:
            self.session.guarded(self.session.add, [(self._point(at), self._label(at))], gesture)

    def _drag(self, at: tuple[float, float], gesture: int) -> None:
        data = self.session.now.dataset
        if self.held is not None and self.held < data.n:
            moved = data.moved(self.held, self._point(at))
            self.session.guarded(self.session.edit, moved, gesture)

    def _erase(self, at: tuple[float, float], gesture: int) -> bool:
        index = self.nearest(at)
        if index is None:
            return False
        left = self.session.now.dataset.without([index])
        self.session.guarded(self.session.edit, left, gesture)
        return True

    # --- keyboard ---------------------------------------------------------------------------
    def _on_cursor(self, at: tuple[float, float], gesture: int) -> None:
        if self.held is not None:
            self._drag(at, gesture)
        near = self.nearest(at)
        where = self._where(at)
        self.say = where if near is None else f"{where}, on {self._named(near)}"

    def _on_act(self, at: tuple[float, float], gesture: int) -> None:
        tool = self.session.tool
        if tool == "move":
            self.held = self.nearest(at) if self.held is None else None
            self.say = "dropped" if self.held is None else f"holding {self._named(self.held)}"
        elif tool == "erase":
            self._on_erase(at, gesture)
        else:
            before = self.session.now.dataset.n
            self._paint(at, gesture)
            count = self.session.now.dataset.n
            placed = f"placed {self._named(count - 1)} at {self._where(at)}"
            self.say = placed if count > before else self.session.message

    def _on_erase(self, at: tuple[float, float], gesture: int) -> None:
        name = self.nearest(at)
        said = "no point here" if name is None else f"erased {self._named(name)}"
        self._erase(at, gesture)
        self.say = said

    def _on_positive(self, at: tuple[float, float], gesture: int) -> None:
        self._class(1)

    def _on_negative(self, at: tuple[float, float], gesture: int) -> None:
        self._class(-1)

    def _on_third(self, at: tuple[float, float], gesture: int) -> None:
        self._class(3)

    def _on_fourth(self, at: tuple[float, float], gesture: int) -> None:
        self._class(4)

    def _class(self, label: int) -> None:
        if label > 1 and self.session.now.dataset.d == 1:
            self.say = "a line has two classes; further ones need the plane"
            return
        self.session.label, self.say = label, f"class {NAMES[label]}"

    def _on_place(self, at: tuple[float, float], gesture: int) -> None:
        self._tool("place")

    def _on_move_tool(self, at: tuple[float, float], gesture: int) -> None:
        self._tool("move")

    def _on_erase_tool(self, at: tuple[float, float], gesture: int) -> None:
        self._tool("erase")

    def _tool(self, name: str) -> None:
        self.held, self.session.tool, self.say = None, name, f"tool: {name}"

    def _on_undo(self, at: tuple[float, float], gesture: int) -> None:
        self.session.guarded(self.session.undo)
        self.say = self.session.message or "undone"

    def _on_redo(self, at: tuple[float, float], gesture: int) -> None:
        self.session.guarded(self.session.redo)
        self.say = self.session.message or "redone"

    # --- places -----------------------------------------------------------------------------
    def _point(self, at: tuple[float, float]) -> tuple[float, ...]:
        return at if self.session.now.dataset.d == 2 else at[:1]

    def _label(self, at: tuple[float, float]) -> float:
        if self.session.now.dataset.d == 1 and self.session.label == 0:
            return 1.0 if at[1] >= 0 else -1.0
        return float(self.session.label or 1)

    def nearest(self, at: tuple[float, float]) -> int | None:
        """Index of the point within REACH of a place; in 1-D only the axis counts."""
        data = self.session.now.dataset
        if not data.n:
            return None
        gaps = np.linalg.norm(data.x.cpu().numpy() - np.asarray(self._point(at)), axis=1)
        index = int(gaps.argmin())
        return index if gaps[index] <= REACH * 2 * self.session.extent else None

    def _named(self, index: int) -> str:
        return f"point {index + 1}, class {NAMES[int(self.session.now.dataset.y[index])]}"

    def _where(self, at: tuple[float, float]) -> str:
        return ", ".join(f"{v:.2f}" for v in self._point(at))
