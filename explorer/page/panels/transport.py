"""Play, step, reset; the time line and the branches."""

from __future__ import annotations

from functools import partial
from typing import Any

from explorer.engine.settings import is_number
from explorer.page import branches, play
from explorer.page.controls.control import TimeBar
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel
from explorer.page.session import SLOW_START

SPEEDS = (("ever faster", SLOW_START), ("1 step/s", 1.0), ("10 steps/s", 10.0),
          ("100 steps/s", 100.0), ("1000 steps/s", 1000.0),
          ("as fast as it goes", float("inf")))  # fmt: skip
TICKS = 1000  # of the time line
MOST_STEPS = 100_000  # at one press
PLAYED = ("draw", "train", "attack")  # stages that have a run
IDLE = ("explain", "arena")  # stages that never have one
REPLAYED = ("play", "reset", "step", "time", "branch")  # what a run of the landscape has
ALL = (*REPLAYED, "further", "speed")


def speed_place(speed: float) -> int:
    """Return the place of a speed in the list; -1 for one that is not there."""
    return next((i for i, (_, known) in enumerate(SPEEDS) if known == speed), -1)


class TransportPanel(Panel):
    """The bar at the foot of the page, the same for training and attack."""

    look = ("mx-transport-box",)
    every_s = 0.2
    follows = ("lesson",)

    def build(self) -> None:
        """One control."""
        session = self.session
        self.view = self.widget = TimeBar({
            **self.commands(play=play.play, pause=play.halt, step=play.step, reset=play.reset,
                            reseed=play.reseed, branch=branches.branch),
            "steps": self.command_among(range(1, MOST_STEPS + 1), partial(play.go_on, session)),
            "speed": self.command_among(
                range(len(SPEEDS)), lambda at: session.choose(steps_per_second=SPEEDS[at][1])
            ),
            "seek": self._on_seek,
            "select": self.command_of(int, partial(branches.select, session)),
        }, ("mx-transport",), speeds=[words for words, _ in SPEEDS])  # fmt: skip
        session.observe(self._on_session, names=["running", "due", "work", "steps_per_second"])

    def _on_seek(self, value: Any) -> None:  # noqa: ANN401 - from a browser
        if is_number(value):
            line = self.session.timeline
            t = round(min(max(value, 0.0), 1.0) * line.last_t)
            self.do(branches.seek, self.session, line.nearest(t))

    def _on_session(self, _: Any) -> None:  # noqa: ANN401
        now = self.session
        self.view.show(running=play.at_work(now), speed=speed_place(now.steps_per_second))

    def render(self, frame: Frame) -> None:
        """Show the step of the run, and its branches."""
        state, line = frame.state, self.session.timeline
        last = max(line.last_t, 1)
        end = 0 if state is None else max(line.last_t, state.t)
        able: tuple[str, ...] = (
            ALL
            if frame.stage in PLAYED
            else REPLAYED
            if frame.rolled
            else ("play",) * (frame.handle is not None)
        )
        if self.session.preparing:
            able = ("play", "speed")  # the rest would change what is put up
        self.view.show(
            running=play.at_work(self.session),
            speed=speed_place(self.session.steps_per_second),
            able=list(able),
            idle=frame.stage in IDLE,
            time=0 if state is None else min(TICKS, TICKS * state.t // last),
            where=_where(frame, end),
            branches=self._marks(last),
        )  # fmt: skip

    def _marks(self, last: int) -> list[dict[str, Any]]:
        """Return the marks of the branches; none where there is one alone."""
        shown = branches.in_sight(self.session)
        return [self._mark(i, last) for i in shown] if len(shown) > 1 else []

    def _mark(self, index: int, last: int) -> dict[str, Any]:
        """A branch as a mark on the line: where it was left, or, on screen, where it ends."""
        one = self.session.branches[index]
        on = index == self.session.branch_index
        state = None if on or one.last is None else one.last.frame.state
        t = last if state is None else state.t
        return {"index": index, "name": one.name, "at": min(1.0, t / last), "on": on}


def _where(frame: Frame, end: int) -> str:
    """Return the step on screen, before the end of those up to `end`; or that it was solved."""
    state, part = frame.state, frame.training
    if state is None:
        return ""
    if not state.t and state is part.state and part.is_exact:
        return "exact"
    return f"step {state.t:,}{f' of {end:,}' if state.t < end else ''}"
