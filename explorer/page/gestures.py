"""Pointer and keyboard events on the plane become commands of a session."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from explorer.page import play
from explorer.page.session import Session
from explorer.page.stages import draw, explain, landscape
from explorer.style import NAMES

REACH = 0.05  # share of the plane's width within which a point is grabbed or erased; arbitrary
MOST_EVENTS = 500  # in one message: more than a hand can do between two of them


class Gestures:
    """Turns events of the pad into edits. `say` is called with text for a screen reader."""

    def __init__(self, session: Session) -> None:
        """Act on `session`; nothing is held yet."""
        self.session = session
        self.held: int | None = None
        self.say = ""

    def handle(self, content: Any) -> None:  # noqa: ANN401 - a message from a browser
        """Act on one message; anything that is not an event of the pad is ignored."""
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
        return self.session.axes.place(*(min(1.0, max(0.0, float(v))) for v in (x, y)))  # type: ignore

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
            self.session.guarded(
                draw.add, self.session, [(self._point(at), self._label(at))], gesture
            )

    def _drag(self, at: tuple[float, float], gesture: int) -> None:
        data = self.session.frame.dataset
        if self.held is not None and self.held < data.n:
            moved = data.with_point_at(self.held, self._point(at))
            self.session.guarded(draw.edit, self.session, moved, gesture)

    def _erase(self, at: tuple[float, float], gesture: int) -> bool:
        index = self.nearest(at)
        if index is None:
            return False
        left = self.session.frame.dataset.without([index])
        self.session.guarded(draw.edit, self.session, left, gesture)
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
            before = self.session.frame.dataset.n
            self._paint(at, gesture)
            count = self.session.frame.dataset.n
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
        if label > 1 and self.session.frame.dataset.d == 1:
            self.say = "a line has two classes; further ones need the plane"
            return
        draw.set_label(self.session, label)
        self.say = f"class {NAMES[label]}"

    def _on_place(self, at: tuple[float, float], gesture: int) -> None:
        self._tool("place")

    def _on_move_tool(self, at: tuple[float, float], gesture: int) -> None:
        self._tool("move")

    def _on_erase_tool(self, at: tuple[float, float], gesture: int) -> None:
        self._tool("erase")

    def _tool(self, name: str) -> None:
        draw.set_tool(self.session, name)
        self.held, self.say = None, f"tool: {name}"

    def _on_undo(self, at: tuple[float, float], gesture: int) -> None:
        self.session.guarded(play.undo, self.session)
        self.say = self.session.message or "undone"

    def _on_redo(self, at: tuple[float, float], gesture: int) -> None:
        self.session.guarded(play.redo, self.session)
        self.say = self.session.message or "redone"

    # --- places -----------------------------------------------------------------------------
    def _point(self, at: tuple[float, float]) -> tuple[float, ...]:
        return at if self.session.frame.dataset.d == 2 else at[:1]

    def _label(self, at: tuple[float, float]) -> float:
        if self.session.frame.dataset.d == 1 and self.session.label == 0:
            return 1.0 if at[1] >= 0 else -1.0
        return float(self.session.label or 1)

    def nearest(self, at: tuple[float, float]) -> int | None:
        """Index of the point within REACH of a place; in 1-D only the axis counts."""
        data = self.session.frame.dataset
        if not data.n:
            return None
        gaps = np.linalg.norm(data.x.cpu().numpy() - np.asarray(self._point(at)), axis=1)
        index = int(gaps.argmin())
        return index if gaps[index] <= REACH * 2 * self.session.axes.x[1] else None

    def _named(self, index: int) -> str:
        return f"point {index + 1}, class {NAMES[int(self.session.frame.dataset.y[index])]}"

    def _where(self, at: tuple[float, float]) -> str:
        return ", ".join(f"{v:.2f}" for v in self._point(at))


# --- What the hands of the later stages share: events of the pad as places, arrows as nudges ----

NUDGE = 0.02  # of the plane's half width; Shift goes five times as far; arbitrary
FLEETING = ("move", "hover")  # of several in a row the last one counts


class Hand:
    """Turns events of the pad into commands. `say` is called with text for a screen reader."""

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
        at = self.session.axes.place(*(min(1.0, max(0.0, float(v))) for v in (x, y)))  # type: ignore[arg-type]
        return torch.tensor(at, dtype=torch.float64)

    def _among(self, x: Tensor, at: Tensor) -> int | None:
        """Index of the point of x (n, d) within REACH of a place; on the line by the axis alone."""
        gaps = (x - at[: x.shape[1]]).norm(dim=1)
        i = int(gaps.argmin())
        return i if float(gaps[i]) <= REACH * 2 * self.session.axes.x[1] else None

    # --- keyboard ---------------------------------------------------------------------------
    def _step(self, by: int) -> None:
        """Go to another point."""
        raise NotImplementedError

    def _nudge(self, by: Tensor, gesture: int) -> None:
        """Move the point by a step (2,)."""
        raise NotImplementedError

    def _arrow(self, dx: int, dy: int, gesture: int, shift: bool) -> None:
        size = NUDGE * self.session.axes.x[1] * (5 if shift else 1)
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


# --- What the hand on the plane means in the explain stage: choose, drag, nudge, merge, undo ----


class ExplainHand(Hand):
    """Drags points of the present explanation."""

    def __init__(self, session: Session) -> None:
        """Act on `session`; nothing is held yet."""
        super().__init__(session)
        self.dragging = False

    def ready(self) -> bool:
        """Whether there is an explanation to act on."""
        return self.session.frame.explain is not None

    # --- pointer ----------------------------------------------------------------------------
    def _on_down(self, at: Tensor, gesture: int, shift: bool) -> None:
        explain.drop(self.session)
        near = self.nearest(at)
        self.dragging = near is not None
        if near is not None:
            self._do(explain.choose, near)
            self.say = self._named()

    def _on_move(self, at: Tensor, gesture: int, shift: bool) -> None:
        if self.dragging:
            d = explain.explanation(self.session).net.d
            self._do(explain.pull, at[:d], shift or None)

    def _on_up(self, at: Tensor, gesture: int, shift: bool) -> None:
        if self.dragging:
            self.dragging = False
            explain.drop(self.session)

    # --- keyboard ---------------------------------------------------------------------------
    def _step(self, by: int) -> None:
        state = explain.explanation(self.session)
        explain.drop(self.session)
        start = (-1 if by > 0 else 0) if state.selected is None else state.selected
        self._do(explain.choose, (start + by) % state.now.n)
        self.say = self._named()

    def _nudge(self, by: Tensor, gesture: int) -> None:
        self._do(explain.nudge, tuple(by.tolist()))
        self.say = self.session.message or f"{self._named()}, residual {self._residual()}"

    def _on_act(self, at: Tensor, gesture: int, shift: bool) -> None:
        explain.drop(self.session)
        self.say = "let go"

    def _on_move_tool(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._do(explain.combine)
        self.say = self.session.message or explain.explanation(self.session).words

    def _on_free(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._do(explain.set_free, not explain.explanation(self.session).free)
        self.say = (
            "drags are free"
            if explain.explanation(self.session).free
            else "drags keep the level line"
        )

    def _on_undo(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._do(play.undo)
        self.say = self.session.message or "undone"

    def _on_redo(self, at: Tensor, gesture: int, shift: bool) -> None:
        self._do(play.redo)
        self.say = self.session.message or "redone"

    def _do(self, command: Any, *args: Any) -> None:  # noqa: ANN401
        self.session.guarded(command, self.session, *args)

    # --- places -----------------------------------------------------------------------------
    def nearest(self, at: Tensor) -> int | None:
        """Index of the point within REACH of a place; on the line only the axis counts."""
        return self._among(explain.explanation(self.session).now.x, at)

    def _named(self) -> str:
        state = explain.explanation(self.session)
        i = state.selected
        if i is None:
            return "no point"
        where = ", ".join(f"{v:.2f}" for v in state.now.x[i].tolist())
        pin = ", cannot be split" if bool(state.pinned[i]) else ""
        return f"point {i + 1} of {state.now.n}, class {NAMES[int(state.now.y[i])]} at {where}{pin}"

    def _residual(self) -> str:
        return f"{explain.explanation(self.session).change:.1e}"


# --- What the hand means in the landscape stage: a click chooses a point's map, a drag moves it -


class LandscapeHand(Hand):
    """Chooses and moves points of the energy map."""

    def __init__(self, session: Session) -> None:
        """Act on `session`; nothing is held yet."""
        super().__init__(session)
        self.held: int | None = None
        self.travelled = False
        self.hovered: Tensor | None = None

    def ready(self) -> bool:
        """Whether a point is mapped: the starts are moved by the handle of their triangle."""
        frame = self.session.frame
        return frame.landscape is not None and frame.map_kind != "starts"

    # --- pointer ----------------------------------------------------------------------------
    def _on_hover(self, at: Tensor, gesture: int, shift: bool) -> None:
        self.hovered = at

    def _on_down(self, at: Tensor, gesture: int, shift: bool) -> None:
        self.held, self.travelled = self.nearest(at), False

    def _on_move(self, at: Tensor, gesture: int, shift: bool) -> None:
        if self.held is not None:
            self.travelled = True
            d = landscape.candidates(self.session).x.shape[1]
            self.session.guarded(landscape.move_point, self.session, self.held, at[:d], gesture)

    def _on_up(self, at: Tensor, gesture: int, shift: bool) -> None:
        if self.held is not None and not self.travelled:
            self.session.guarded(landscape.map_point, self.session, self.held)
            self.say = f"map of {self._named()}"
        self.held = None

    # --- keyboard ---------------------------------------------------------------------------
    def _step(self, by: int) -> None:
        points = landscape.candidates(self.session)
        self.session.guarded(
            landscape.map_point, self.session, (points.mapped + by) % len(points.x)
        )
        self.say = f"map of {self._named()}"

    def _nudge(self, by: Tensor, gesture: int) -> None:
        points, axes = landscape.candidates(self.session), self.session.axes
        d = points.x.shape[1]
        centre, half = (torch.from_numpy(v)[:d] for v in (axes.centre, axes.half))
        place = (points.x[points.mapped] + by[:d]).clamp(centre - half, centre + half)
        self.session.guarded(landscape.move_point, self.session, points.mapped, place, gesture)
        self.say = self._named()

    def _on_undo(self, at: Tensor, gesture: int, shift: bool) -> None:
        self.session.guarded(play.undo, self.session)
        self.say = self.session.message or "undone"

    def _on_redo(self, at: Tensor, gesture: int, shift: bool) -> None:
        self.session.guarded(play.redo, self.session)
        self.say = self.session.message or "redone"

    # --- places -----------------------------------------------------------------------------
    def nearest(self, at: Tensor) -> int | None:
        """Index of the point within REACH of a place; on the line only the axis counts."""
        return self._among(landscape.candidates(self.session).x, at)

    def _named(self) -> str:
        points = landscape.candidates(self.session)
        where = ", ".join(f"{v:.2f}" for v in points.x[points.mapped].tolist())
        label = NAMES[int(points.y[points.mapped])]
        return f"point {points.mapped + 1} of {len(points.x)}, class {label} at {where}"
