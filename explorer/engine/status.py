"""How a run stands or ended: each member's value is a sentence with its remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import TypeVar

Given = TypeVar("Given")
State = TypeVar("State")
Config = TypeVar("Config")


class Status(Enum):
    """The outcome of `terminate`; the value is what a user reads."""

    RUNNING = "Running."
    FINISHED = "Finished: all planned steps are done. Raise the number of steps to go on."
    COMPLETE = "Finished: the algorithm has come to its end, and nothing is left to do."
    CONVERGED = "Converged: another step changes less than the set tolerance."
    DEAD = (
        "Stopped: no neuron is active on any point, so the gradient is zero. "
        "Take a new seed, more neurons or a larger initialisation."
    )
    DIVERGED = (
        "Stopped before a step that would not be finite; the last finite state is kept. "
        "Lower the step size or take the loss-scaled step."
    )

    @property
    def over(self) -> bool:
        """Whether a run with this status takes no further step."""
        return self is not Status.RUNNING


def iterated(
    step: Callable[[Given, State, Config], State],
    terminate: Callable[[State, Config], Status],
    given: Given,
    state: State,
    config: Config,
) -> Iterator[State]:
    """The states after `state`, one `step` each, until `terminate` says that the run is over."""
    while not terminate(state, config).over:
        state = step(given, state, config)
        yield state
