"""A candidate set to walk with through the energy: which points, where, and what was before."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from explorer.engine.attacks.target import Target
from explorer.engine.data import Dataset
from explorer.engine.energy import checked

MOST_PAST = 100  # arbitrary


@dataclass(frozen=True, eq=False)
class Walk:
    """Candidates that began at the truth.

    Attributes:
        target: whose weights they are to explain.
        truth: where they began; labels never change.
        x: where they are (n, d).
        mapped: the point whose map is shown.
        past: earlier x, newest last; one a gesture.
        future: what was undone, newest last.
        gesture: number of the last drag.
    """

    target: Target
    truth: Dataset
    x: Tensor
    mapped: int = 0
    past: tuple[Tensor, ...] = ()
    future: tuple[Tensor, ...] = ()
    gesture: int | None = None

    @property
    def y(self) -> Tensor:
        """Labels (n,), float64."""
        return self.truth.y.double()

    def moved(self, i: int, place: Tensor, gesture: int | None) -> Walk:
        """Point i at place (d,); drags of one gesture are undone together."""
        x = self.x.clone()
        x[i] = place
        fresh = gesture is None or gesture != self.gesture
        past = (*self.past, self.x)[-MOST_PAST:] if fresh else self.past
        return replace(self, x=x, past=past, future=(), gesture=gesture)

    def undone(self) -> Walk:
        """One drag back. ValueError where there is none."""
        if not self.past:
            raise ValueError("Nothing to undo: no point was dragged yet.")
        return replace(
            self, x=self.past[-1], past=self.past[:-1], future=(*self.future, self.x), gesture=None
        )

    def redone(self) -> Walk:
        """The last undo back. ValueError where there is none."""
        if not self.future:
            raise ValueError("Nothing to redo: no drag was taken back.")
        return replace(
            self, x=self.future[-1], future=self.future[:-1], past=(*self.past, self.x),
            gesture=None,
        )  # fmt: skip

    def home(self) -> Walk:
        """All points back at the truth; one undo brings them here again."""
        start = self.truth.x.double()
        if torch.equal(start, self.x):
            return self
        return replace(self, x=start, past=(*self.past, self.x), future=(), gesture=None)


def first_walk(target: Target, truth: Dataset) -> Walk:
    """Candidates at the truth. ValueError for weights that have no energy."""
    x = truth.x.double()
    checked(target.net, x, truth.y, 0.0)
    return Walk(target, truth, x)
