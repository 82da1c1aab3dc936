"""Play, pause, step and scrub over any generator of states, for all views that observe it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from traitlets import Bool, Float, Int, observe

from explorer.page.clock import steps_due
from explorer.page.controls.control import TimeBar
from explorer.page.history import Timeline
from explorer.page.job import page_waits
from explorer.page.panels.transport import MOST_STEPS, SPEEDS, TICKS, speed_place
from explorer.page.session import SLOW_START
from explorer.page.widgets.alone import Alone, Checked
from explorer.page.words.failures import failure

FRAME_S = 1 / 20  # between two states that are shown; arbitrary: views draw some of 30 ms
WORK_S = 0.02  # of each frame in which states are made; arbitrary: the rest is the views'
ABLE = ("play", "reset", "step", "time", "further", "speed")


class Transport(Alone):
    """Plays states one by one: whatever observes or links its trait `state` moves with it.

    States that were played are kept for the time line, thinned as on the page. Where no event loop
    runs, as in a script, Play takes all steps before it returns.

    Attributes:
        state: the one on screen; None where there was none.
        t: its step, the number that the state itself has, else its place.
        playing: whether it runs; to set it is to press Play or Pause.
        speed: states a second; inf for as fast as it goes, 0 for ever faster.
        over: whether the states have come to an end.

    Raises:
        TraitError: for a value that a trait does not take; the old one stays.

    Example:
        >>> import torch
        >>> from explorer import TrainConfig, preset, training
        >>> from explorer.widgets import Play
        >>> data, config = preset("two-points"), TrainConfig(widths=(4,), steps=30)
        >>> first = training.init(data, config, torch.Generator().manual_seed(0))
        >>> play = Play(training.iterate(data, first, config))
        >>> play.step(10)
        >>> play.t, play.over
        (11, False)
    """

    state = Checked(lambda given: given, help="the state on screen")
    t = Int(0, min=0, read_only=True, help="its step")
    playing = Bool(False, help="whether it runs")
    speed = Float(SLOW_START, min=0, help="states a second; inf: as fast as it goes")
    over = Bool(False, read_only=True, help="whether the states have come to an end")

    def __init__(self, states: Iterable[Any], **traits: Any) -> None:  # noqa: ANN401 - any states
        """Take the first state; the others are made when they are played."""
        self._states: Iterator[Any] = iter(states)
        self._line: Timeline[PlayedState] = Timeline()
        self._at = -1  # of the kept states, the one on screen
        self._count = 0
        self._newest: PlayedState | None = None
        self._task: asyncio.Task[None] | None = None
        self.view = TimeBar(
            {
                "play": lambda _: self.play(), "pause": lambda _: self.pause(),
                "reset": lambda _: self.seek(0), "step": lambda _: self._on_steps(1),
                "steps": self._on_steps, "speed": self._on_speed, "seek": self._on_seek,
            },
            ("mx-transport",), speeds=[words for words, _ in SPEEDS],
        )  # fmt: skip
        super().__init__([self.view], "mx-alone-bar", **traits)
        self.step()

    def step(self, n: int = 1) -> None:
        """Run so many states on.

        Kept ones come first, then new ones. It then pauses.

        Args:
            n: how many, at most.
        """
        self.playing = False
        for _ in range(n):
            if not self._advance():
                break
        self._show()

    def seek(self, t: int) -> None:
        """Draw the newest kept state at or before a step.

        It pauses there, and Play goes on from there.

        Args:
            t: the step.
        """
        self.playing = False
        self._at = self._line.nearest(t)
        self._show()

    def play(self) -> None:
        """Run until it is paused or over."""
        self.playing = True

    def pause(self) -> None:
        """Pause where it is."""
        self.playing = False

    # --- the states ---------------------------------------------------------------------------
    def _advance(self) -> bool:
        """Go on by one state; False where there is none."""
        if self._at < len(self._line.states) - 1:
            self._at += 1
            return True
        state = next(self._states, None)
        if state is None:
            self.set_trait("over", True)
            return False
        match state:
            case object(t=int(own)):
                self._newest = PlayedState(state, own)
            case _:
                self._newest = PlayedState(state, self._count)
        self._count += 1
        self._line.append(self._newest, lambda _: {}, always=not self._line.states)
        self._at = len(self._line.states)  # beyond the kept ones: the newest
        return True

    def _present(self) -> PlayedState | None:
        kept = self._line.states
        return self._newest if self._at >= len(kept) else kept[self._at] if kept else None

    def _show(self) -> None:
        """Show the present state: those who observe it are told, then the bar."""
        now = self._present()
        if now is not None:
            self.set_trait("t", now.t)
            self.state = now.state
        self._bar()

    @observe("speed")
    def _bar(self, _: Any = None) -> None:  # noqa: ANN401 - a change
        if "view" not in vars(self):
            return
        last = max(0 if self._newest is None else self._newest.t, 1)
        end = f"{last:,}" if self.over else f"{last:,} so far"
        self.view.show(
            running=self.playing, able=list(ABLE), branches=[],
            speed=speed_place(self.speed),
            time=min(TICKS, TICKS * self.t // last), where=f"step {self.t:,} of {end}",
        )  # fmt: skip

    # --- playing ------------------------------------------------------------------------------
    @observe("playing")
    def _on_playing(self, change: dict[str, Any]) -> None:
        self._bar()
        if not change["new"]:
            return
        if not page_waits():
            while self._advance():
                pass
            self._end()
        elif self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        with self._refusal_on_bar():
            await self._loop()

    async def _loop(self) -> None:
        """Make states and show some, until it is paused or over."""
        begun, first, taken, speed = perf_counter(), self.t, 0, self.speed
        while self.playing:
            if self.speed != speed:  # what was due until now is forgotten
                begun, first, taken, speed = perf_counter(), self.t, 0, self.speed
            until = perf_counter() + WORK_S
            due = steps_due(first, perf_counter() - begun, speed) - taken
            while due >= 1 and perf_counter() < until:
                if not self._advance():
                    self._end()
                    return
                due, taken = due - 1, taken + 1
            self._show()
            await asyncio.sleep(FRAME_S)

    def _end(self) -> None:
        self._show()
        self.playing = False

    # --- the bar ------------------------------------------------------------------------------
    def _on_steps(self, n: Any) -> None:  # noqa: ANN401 - from a browser
        if isinstance(n, int) and 1 <= n <= MOST_STEPS:
            with self._refusal_on_bar():
                self.step(n)

    @contextmanager
    def _refusal_on_bar(self) -> Iterator[None]:
        """Say on the bar why no further state is made; in the kernel's log it would vanish."""
        try:
            yield
        except Exception as error:
            self.playing = False
            self.view.show(where=f"stopped: {failure(error)}")

    def _on_speed(self, at: Any) -> None:  # noqa: ANN401 - from a browser
        if isinstance(at, int) and 0 <= at < len(SPEEDS):
            self.speed = SPEEDS[at][1]

    def _on_seek(self, share: Any) -> None:  # noqa: ANN401 - from a browser
        if isinstance(share, int | float) and self._newest is not None:
            self.seek(round(min(max(share, 0.0), 1.0) * self._newest.t))

    def close(self) -> None:
        """Close the widget; nothing is played any more."""
        self.playing = False
        super().close()


class PlayedState:
    """A state with its step."""

    def __init__(self, state: Any, t: int) -> None:  # noqa: ANN401 - any state
        self.state, self.t = state, t
