"""Checks for rare events. On a device they are collected and read once per block.

A step asks `rare(condition)` before it leaves its usual way, as where a number is not finite. On
the CPU that is `now`, which looks at the condition. On a device each look waits for all work before
it, so there `DeferredChecks` says no and remembers what was asked. After a block of steps one
number is read: whether any condition held. If so, the steps are taken again one by one, with every
look.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from explorer.engine.status import Status

BLOCK = 50  # steps between two looks; arbitrary
Rare = Callable[[Tensor], bool]
"""Whether a condition () holds."""


class Counted(Protocol):
    """A state of a run."""

    @property
    def t(self) -> int:
        """Return the steps taken."""


S = TypeVar("S", bound=Counted)


def now(condition: Tensor) -> bool:
    """Return whether a condition () holds, by looking at it."""
    return bool(condition)


class DeferredChecks:
    """Takes every condition for false, and remembers whether one held."""

    def __init__(self) -> None:
        self.held: list[Tensor] = []

    def __call__(self, condition: Tensor) -> bool:
        """Return False."""
        self.held.append(condition)
        return False

    def any_held(self) -> bool:
        """Return whether any condition held; this reads one number."""
        return bool(self.held) and bool(torch.stack(self.held).any())


def in_blocks(
    step: Callable[[S, Rare], S],
    terminate: Callable[[S], Status],
    gradients: Callable[[S], tuple[Tensor, ...]],
    state: S,
    steps: int,
) -> S:
    """Return the state so many steps on, or the last one where the run is over before.

    On the CPU each step looks for itself, and there are no blocks.

    Args:
        step: (state, rare) -> the next state.
        terminate: how the run stands.
        gradients: of a state; where all are zero the run is over.
        state: the state to go on from.
        steps: how many.
    """
    end = state.t + steps
    away = gradients(state)[0].device.type != "cpu"
    while state.t < end and not terminate(state).over:
        if not away:
            state = step(state, now)
            continue
        some, noted, later = min(BLOCK, end - state.t), DeferredChecks(), state
        for _ in range(some):
            later = step(later, noted)
            noted(~torch.stack([grad.any() for grad in gradients(later)]).any())
        if not noted.any_held():
            state = later
            continue
        for _ in range(some):
            if not terminate(state).over:
                state = step(state, now)
    return state
