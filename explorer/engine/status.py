"""How a run stands or ended, and a run to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import TypeVar

Given = TypeVar("Given")
State = TypeVar("State")
Config = TypeVar("Config")


class Status(Enum):
    """The outcome of `terminate`: how a run stands.

    FINISHED took all planned steps, COMPLETE has nothing left to do, CONVERGED would change less
    than its tolerance; DEAD has no neuron active on any point, and DIVERGED stopped before a step
    that would not be finite.

    Example:
        >>> from explorer import Status
        >>> Status.RUNNING.over, Status.FINISHED.over
        (False, True)
    """

    RUNNING = "running"
    FINISHED = "finished"
    COMPLETE = "complete"
    CONVERGED = "converged"
    DEAD = "dead"
    DIVERGED = "diverged"

    @property
    def over(self) -> bool:
        """Return whether a run with this status takes no further step."""
        return self is not Status.RUNNING


def iterates(
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
