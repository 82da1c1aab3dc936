"""How a run stands or ended: each member's value is a sentence with its remedy."""

from __future__ import annotations

from enum import Enum


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
