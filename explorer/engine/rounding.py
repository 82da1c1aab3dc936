"""What rounding may decide: nothing. Tolerances of numbers shown and of verdicts, in one place.

Sums of float64 come out differently on another processor or with other threads: by 1e-16 to 1e-14
of their size, and what is computed from them by more, where a system is badly conditioned. So a
number below `NOTHING` is shown as 0, a value before a ReLU below `NOTHING` of its size stands
on the neuron's line, and a verdict whose number stands within `EDGE` of its limit says so.
"""

from __future__ import annotations

NOTHING = 1e-12  # shares below this are rounding: 100 times the 1e-14 that sums were seen to leave
# Arbitrary: a thousand times a relative change of 1e-9 of weights and data, itself a million times
# that of a last bit, so that no verdict read from a number of condition up to 1000 can flip unsaid.
EDGE = 1e-6


def at_edge(value: float, limit: float) -> bool:
    """Return whether `value` stands within `EDGE` of its limit, so near that it decides nothing."""
    return abs(value - limit) <= EDGE * abs(limit)
