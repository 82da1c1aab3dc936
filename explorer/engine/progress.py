"""Long work says what share of it is done, and can be ended there.

A function that may take longer than a second takes `progress` and calls it between its rounds with
the share that is done. It knows nothing of who listens. The listener ends the work by raising
`Stopped` in that call; the exception leaves the function, and what it had made is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Progress = Callable[[float], None]
"""Called with the share done, in [0, 1]. It may raise `Stopped`."""

T = TypeVar("T")


class Stopped(RuntimeError):
    """Whoever asked for the work does not want it any more."""


def no_progress(_: float) -> None:
    """Tell nobody how far the work is."""


def part_progress(progress: Progress, low: float, high: float) -> Progress:
    """Return the progress of a part of the work, which takes the share from `low` to `high`.

    >>> said = []
    >>> half = part_progress(said.append, 0.5, 1.0)
    >>> half(0.0), half(0.5)
    (None, None)
    >>> said
    [0.5, 0.75]
    """
    return lambda share: progress(low + (high - low) * share)


def with_progress(rounds: Iterable[T], of: int, progress: Progress) -> Iterator[T]:
    """Yield the rounds, at most `of` or so, and say before each what share is done.

    >>> said = []
    >>> list(with_progress("ab", 2, said.append)), said
    (['a', 'b'], [0.0, 0.5])
    """
    for done, one in enumerate(rounds):
        progress(min(1.0, done / max(of, 1)))
        yield one


def share_after(rounds: int, each: float) -> float:
    """Return the share told after so many rounds of an unknown number.

    Each takes the share `each` of what is left, so that the bar always moves and never is full.

    >>> share_after(0, 0.2), share_after(2, 0.5)
    (0.0, 0.75)
    """
    return float(1.0 - (1.0 - each) ** rounds)
