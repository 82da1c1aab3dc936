"""How a run stands or ended."""

from __future__ import annotations

from enum import Enum


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
