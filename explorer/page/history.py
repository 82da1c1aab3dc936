"""Memory of a page: the thinned states of a run, and undo. No widgets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from operator import itemgetter
from typing import Any, Generic, TypeVar

from torch import Tensor

S = TypeVar("S")

MOST_STATES = 400  # arbitrary: finer than the pixels of the timeline
MOST_BYTES = 96 * 2**20  # arbitrary: a third of what a kernel takes anyway
MOST_UNDO = 200  # arbitrary
# Steps that are kept beside those at even distances: twenty a decade, for curves on log steps.
LOG_STEPS = frozenset(round(10 ** (k / 20)) for k in range(141))
_IN_ORDER = sorted(LOG_STEPS)


def size_of(value: Any) -> int:  # noqa: ANN401 - of any state
    """Bytes of the tensors held by a state."""
    if isinstance(value, Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, tuple | list):
        return sum(size_of(v) for v in value)
    if is_dataclass(value):
        return sum(size_of(getattr(value, f.name)) for f in fields(value))
    return 0


@dataclass
class Timeline(Generic[S]):
    """States of one run, thinned to fit: every `stride`-th state, those of `LOG_STEPS`, the last.

    When it is full, every second state is dropped and the stride doubles, so the whole run
    stays in reach at even distances, and at even ratios. Numbers for the curves are kept for each
    state.
    """

    states: list[S] = field(default_factory=list)
    rows: list[dict[str, float]] = field(default_factory=list)
    stride: int = 1
    bytes: int = 0
    noted: list[dict[str, float]] = field(default_factory=list)  # numbers known later, by t

    def append(self, state: S, row: Callable[[S], dict[str, float]], always: bool = False) -> None:
        """Keep `state` if its t is due, if it is the first, or if `always`. `row` has its numbers.

        If the run was set back, later states are replaced.
        """
        t = state.t  # type: ignore[attr-defined]
        if self.last_t >= t:
            self._keep([i for i, s in enumerate(self.states) if s.t < t])  # type: ignore[attr-defined]
        if self.noted and self.noted[-1]["t"] >= t:
            self.noted = [row for row in self.noted if row["t"] < t]
        extra = t in LOG_STEPS and self.bytes + size_of(state) <= MOST_BYTES
        if self.states and t % self.stride and not extra and not always:
            return
        self.states.append(state)
        self.rows.append({"t": float(t), **row(state)})
        self.bytes += size_of(state)
        while len(self.states) > MOST_STATES or (self.bytes > MOST_BYTES and len(self.states) > 2):
            self._thin()

    def next_kept(self, t: int) -> int:
        """Return the first step after `t` whose state would be kept."""
        after = bisect_right(_IN_ORDER, t)
        extra = _IN_ORDER[after:][:1] if self.bytes <= MOST_BYTES else []
        return min([t + self.stride - t % self.stride, *extra])

    def _thin(self) -> None:
        self.stride *= 2
        last = len(self.states) - 1
        times: list[int] = [s.t for s in self.states]  # type: ignore[attr-defined]
        extra = LOG_STEPS if self.bytes <= MOST_BYTES else ()
        keep = [i for i, t in enumerate(times)
                if i in (0, last) or t % self.stride == 0 or t in extra]  # fmt: skip
        self._keep(keep if len(keep) < len(times) else keep[::2])

    def _keep(self, indices: list[int]) -> None:
        self.states = [self.states[i] for i in indices]
        self.rows = [self.rows[i] for i in indices]
        self.bytes = sum(size_of(s) for s in self.states)

    def nearest(self, t: int) -> int:
        """Return the index of the newest state kept at or before t."""
        return max((i for i, s in enumerate(self.states) if s.t <= t), default=0)  # type: ignore[attr-defined]

    @property
    def last_t(self) -> int:
        """Return the step of the newest state kept, -1 when empty."""
        return self.states[-1].t if self.states else -1  # type: ignore[attr-defined]

    def note(self, t: int, row: dict[str, float]) -> None:
        """Add numbers known only later, such as a certificate, of the state at t, kept or not."""
        others = [r for r in self.noted if r["t"] != t]
        self.noted = sorted([*others, {"t": float(t), **row}], key=itemgetter("t"))
        if len(self.noted) > MOST_STATES:
            self.noted = self.noted[::2]

    def copy(self) -> Timeline[S]:
        """Return a timeline of its own with the same states and numbers."""
        return replace(self, states=[*self.states], rows=[*self.rows], noted=[*self.noted])

    def up_to(self, index: int) -> Timeline[S]:
        """Return a new timeline up to and including `index`; the states are shared."""
        states = self.states[: index + 1]
        held = sum(size_of(s) for s in states)
        rows = [dict(r) for r in self.rows[: index + 1]]
        noted = [dict(r) for r in self.noted if rows and r["t"] <= rows[-1]["t"]]
        return Timeline(states, rows, self.stride, held, noted)

    def column(self, name: str) -> tuple[list[float], list[float]]:
        """Return t and the numbers called `name`, where they are known."""
        known = sorted((r["t"], r[name]) for r in (*self.rows, *self.noted) if name in r)
        return [t for t, _ in known], [v for _, v in known]


@dataclass(frozen=True, eq=False)
class History(Generic[S]):
    """A present value with the values for undo and redo. Frozen: each change returns a new history.

    Attributes:
        present: what is shown.
        past: values for undo, newest last; one entry for each gesture, at most `MOST_UNDO`.
        future: values for redo, newest last; a change of the present empties it.
        gesture: number of the gesture that made the present, or None.
    """

    present: S
    past: tuple[S, ...] = ()
    future: tuple[S, ...] = ()
    gesture: int | None = None

    def push(self, value: S, gesture: int | None = None) -> History[S]:
        """Return the history with `value` as the present; all of one gesture is a single undo."""
        same = gesture is not None and gesture == self.gesture
        past = self.past if same else (*self.past, self.present)[-MOST_UNDO:]
        return History(value, past, (), gesture)

    def amend(self, value: S) -> History[S]:
        """Return the history with `value` in place of the present; this is no undo step."""
        return replace(self, present=value)

    def undo(self) -> History[S]:
        """Return the history one entry back; itself where there is none."""
        if not self.past:
            return self
        return History(self.past[-1], self.past[:-1], (*self.future, self.present))

    def redo(self) -> History[S]:
        """Return the history with the last undo taken back; itself where there is none."""
        if not self.future:
            return self
        return History(self.future[-1], (*self.past, self.present), self.future[:-1])
