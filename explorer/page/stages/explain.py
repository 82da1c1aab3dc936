"""Commands of the explain stage: choose, drag, drop, merge, undo; show what else explains."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from explorer.engine.explanations.cells import cell_of
from explorer.engine.explanations.programs import Farthest
from explorer.engine.explanations.splitting import Explanation, merge
from explorer.engine.network import Network
from explorer.page.stages.attack import Attacking
from explorer.research.explained import (
    FARTHEST,
    LEAST,
    Explained,
    Slide,
    first_explained,
    free_direction,
    pulled,
    refreshed,
    slide_along,
)

MOST_PAST = 50  # arbitrary


class Explaining(Attacking):
    """What a hand can do with a training set that explains the weights."""

    @property
    def explained(self) -> Explained:
        """The present moment of the explain stage. ValueError before it was begun."""
        if self.now.explained is None:
            raise ValueError("Nothing to explain yet: train a network, then turn to Explain.")
        return self.now.explained

    def begin_explaining(self) -> None:
        """Find the explanation of the attacked weights by the points they were trained on.

        Raises:
            ValueError: for weights that are not homogeneous, or of several outputs.
        """
        now = self.now
        if now.target is None or now.truth is None:
            raise ValueError("No weights to explain: train a network first.")
        if not now.target.net.homogeneous or now.target.net.outputs != 1:
            raise ValueError(
                "Explanations are of homogeneous networks with one output: of weights with biases "
                "beyond the first layer, or of more classes, no theorem says that points explain "
                "them."
            )
        self.show(explained=first_explained(now.target, now.truth))

    # --- the hand ---------------------------------------------------------------------------
    def choose(self, i: int | None) -> None:
        """Take point i in hand; the one before stays as its mate."""
        state = self.explained
        if i is not None and not 0 <= i < state.now.n:
            raise ValueError(f"no point {i}; the explanation holds 0 to {state.now.n - 1}")
        if i != state.selected:
            self.show(explained=replace(state, selected=i, mate=state.selected, slide=None))

    def set_free(self, free: bool) -> None:
        """Whether a drag may leave the level line: stationarity survives, the margin does not."""
        if free != self.explained.free:
            self.show(explained=replace(self.explained, free=free, slide=None))

    def pull(self, place: Tensor, free: bool | None = None) -> None:
        """Split the point in hand so that one child is at `place` (d,), or nearest to it.

        Raises:
            ValueError: with no point in hand, or a pinned one: the message says why.
        """
        state = self.explained
        free = state.free if free is None else free
        i = state.selected
        if i is None:
            raise ValueError("No point in hand: click one first.")
        slide = state.slide
        before, own = (state.now, i) if slide is None else (slide.before, slide.i)
        offset = place - before.x[own]
        u = self._direction(state.net, before, own, offset, free)
        at = float(offset @ u)
        if slide is not None and bool((slide.u - u).abs().max() < LEAST):
            slide = replace(slide, at=at)
        else:
            reach = 2 * self.extent
            slide = slide_along(state.net, before, own, u, at, reach, state.base)
        if not free and min(slide.extent.plus, slide.extent.minus) <= LEAST:
            raise ValueError(
                "This point stands on a wall of its cell, so it cannot be split along the level "
                "line. Drag freely (Shift) to see the residual jump."
            )
        self._slid(state, slide)

    def _slid(self, state: Explained, slide: Slide) -> None:
        e = pulled(state.net, slide.before, slide.i, slide.u, slide.extent, slide.at, slide.reach)
        mate = e.n - 1 if e.n > slide.before.n else None
        fresh = state.slide is None
        self.show(explained=refreshed(
            state, e, slide=slide, selected=slide.i, mate=mate,
            past=_pushed(state) if fresh else state.past, future=(),
            words="One point became two.",
        ))  # fmt: skip

    def _direction(
        self, net: Network, e: Explanation, i: int, offset: Tensor, free: bool
    ) -> Tensor:
        if free:
            size = float(offset.norm())
            return offset / size if size > LEAST else torch.eye(len(offset), dtype=offset.dtype)[0]
        u = free_direction(net, e, i)
        if u is None:
            kinks = len(cell_of(net, e.x[i], e.at(i)).kinks)
            why = (
                f"{kinks} neurons stand on it" if kinks > 1
                else "a neuron stands on it, across the level line" if kinks and net.d > 1
                else "on a line the level set is made of points"
            )  # fmt: skip
            raise ValueError(
                f"This point is pinned: {why}. Drag freely (Shift) to see what breaks."
            )
        return u

    def nudge(self, step: tuple[float, float]) -> None:
        """Move the point in hand by a step of the plane, along its line unless drags are free."""
        state = self.explained
        if state.selected is None:
            raise ValueError("No point in hand: press Tab to choose one.")
        move = torch.tensor(step[: state.net.d], dtype=torch.float64)
        slide = state.slide
        if slide is None or state.free:
            place = state.now.x[state.selected] + move
        else:
            place = slide.before.x[slide.i] + (slide.at + float(move @ slide.u)) * slide.u
        self.pull(place)

    def drop(self) -> None:
        """Let go: the children are points of their own, and can be split again."""
        if self.now.explained is not None and self.now.explained.slide is not None:
            self.show(explained=replace(self.explained, slide=None))

    def split_widest(self) -> None:
        """Split the point in hand as far as its cell and the plane go."""
        state = self.explained
        if state.selected is None:
            raise ValueError("No point in hand: click one first.")
        i = state.selected
        u = free_direction(state.net, state.now, i)
        self.drop()
        if u is None:
            self.pull(state.now.x[i], free=False)  # says why
            return
        slide = slide_along(state.net, state.now, i, u, 0.0, 2 * self.extent, state.base)
        room = [_in_view(state.now.x[i], s * u, self.extent) for s in (1.0, -1.0)]
        plus = min(slide.extent.plus, room[0])
        share = min(1.0, *(r / e for r, e in zip(
            room, (slide.extent.plus, slide.extent.minus), strict=True) if e > LEAST))  # fmt: skip
        at = plus if slide.extent.plus > 2 * self.extent else slide.extent.plus * share
        self.pull(state.now.x[i] + at * u, free=False)
        self.drop()

    def combine(self) -> None:
        """Merge the point in hand with the one chosen before it."""
        state = self.explained
        if state.selected is None or state.mate is None:
            raise ValueError("A merge takes two points: click one, then the other.")
        made = merge(state.net, state.now, state.selected, state.mate)
        i = state.selected - (state.mate < state.selected)
        self.show(explained=refreshed(
            state, made.explanation, past=_pushed(state), future=(), selected=i, mate=None,
            slide=None, words=made.sentence,
        ))  # fmt: skip

    # --- memory -----------------------------------------------------------------------------
    def undo_explaining(self) -> None:
        """Take the last split, merge or replacement back."""
        state = self.explained
        if not state.past:
            raise ValueError("Nothing to undo: these are the points it was trained on.")
        self._jump(state.past[-1], state.past[:-1], (*state.future, state.now))

    def redo_explaining(self) -> None:
        """Do it again."""
        state = self.explained
        if not state.future:
            raise ValueError("Nothing to redo: no step was taken back.")
        self._jump(state.future[-1], (*state.past, state.now), state.future[:-1])

    def reset_explaining(self) -> None:
        """Back to the points it was trained on; undo brings the present ones back."""
        state = self.explained
        if state.now is not state.truth:
            self._jump(state.truth, _pushed(state), ())

    def _jump(
        self, e: Explanation, past: tuple[Explanation, ...], future: tuple[Explanation, ...]
    ) -> None:
        self.show(explained=refreshed(
            self.explained, e, past=past, future=future, slide=None, selected=None, mate=None,
            words="",
        ))  # fmt: skip

    # --- what the linear programs say ---------------------------------------------------------
    def take_forced(self, mass: Tensor) -> None:
        """Show how much mass every explanation has at each point of the truth."""
        self.show(explained=replace(self.explained, forced=mass))

    def take_farthest(self, found: Farthest) -> None:
        """Put the farthest explanation on screen, beside the truth; undo takes it back."""
        state = self.explained
        self.show(explained=refreshed(
            state, found.explanation, past=_pushed(state), future=(), slide=None, selected=None,
            mate=None, words=f"{FARTHEST} {found.distance:.2g}.",
        ))  # fmt: skip


def _pushed(state: Explained) -> tuple[Explanation, ...]:
    return (*state.past, state.now)[-MOST_PAST:]


def _in_view(x: Tensor, u: Tensor, extent: float) -> float:
    """How far x + a u stays on the plane."""
    moving = u.abs() > LEAST
    room = (extent - u.sign() * x)[moving] / u.abs()[moving]
    return max(float(room.min()), LEAST)
