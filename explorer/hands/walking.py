"""What the hand means in the landscape stage: a click chooses a point's map, a drag moves it."""

from __future__ import annotations

from torch import Tensor

from explorer.hands.hand import Hand
from explorer.session import Session
from explorer.style import NAMES


class WalkingHand(Hand):
    """Chooses and moves points of the energy map."""

    def __init__(self, session: Session) -> None:
        """Act on `session`; nothing is held yet."""
        super().__init__(session)
        self.held: int | None = None
        self.travelled = False
        self.hovered: Tensor | None = None

    def ready(self) -> bool:
        """Whether there are points to map."""
        return self.session.now.walk is not None

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
    def _step(self, by: int) -> None:
        walk = self.session.walk
        self.session.guarded(self.session.map_point, (walk.mapped + by) % len(walk.x))
        self.say = f"map of {self._named()}"

    def _nudge(self, by: Tensor, gesture: int) -> None:
        walk, extent = self.session.walk, self.session.extent
        place = (walk.x[walk.mapped] + by[: walk.x.shape[1]]).clamp(-extent, extent)
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
        return self._among(self.session.walk.x, at)

    def _named(self) -> str:
        walk = self.session.walk
        where = ", ".join(f"{v:.2f}" for v in walk.x[walk.mapped].tolist())
        label = NAMES[int(walk.y[walk.mapped])]
        return f"point {walk.mapped + 1} of {len(walk.x)}, class {label} at {where}"
