"""Commands of the energy maps: choose a point, drag one, undo, go home."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from explorer.page.frame import Walk, first_walk
from explorer.page.stages.explain import Explaining


class Walking(Explaining):
    """What a hand can do with the candidates of the landscape stage."""

    @property
    def walk(self) -> Walk:
        """The candidates. ValueError where there are none."""
        if self.now.walk is None:
            raise ValueError("No energy here: train a homogeneous network with one output first.")
        return self.now.walk

    def begin_walking(self) -> None:
        """Candidates at the truth; none for weights without an energy."""
        now = self.now
        held = now.walk
        if now.target is None or now.truth is None:
            self.show(walk=None)
        elif held is None or held.target is not now.target:
            try:
                self.show(walk=first_walk(now.target, now.truth))
            except ValueError:
                self.show(walk=None)  # the panel says why

    def map_point(self, i: int) -> None:
        """Show the map of point i."""
        walk = self.walk
        if not 0 <= i < len(walk.x):
            raise ValueError(f"no point {i + 1}; there are {len(walk.x)}")
        if i != walk.mapped:
            self.show(walk=replace(walk, mapped=i))

    def move_point(self, i: int, place: Tensor, gesture: int | None = None) -> None:
        """Put point i at a place (d,)."""
        self.show(walk=self.walk.moved(i, place, gesture))

    def undo_walk(self) -> None:
        """Take the last drag back."""
        self.show(walk=self.walk.undone())

    def redo_walk(self) -> None:
        """Take the last undo back."""
        self.show(walk=self.walk.redone())

    def walk_home(self) -> None:
        """All candidates back at the truth."""
        self.show(walk=self.walk.home())
