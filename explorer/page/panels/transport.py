"""Play, step, reset; the time slider and the branches."""

from __future__ import annotations

from typing import Any

import ipywidgets as w

from explorer.page import branches, play
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel, button
from explorer.page.session import SLOW_START

SPEEDS = (("slow, then ever faster", SLOW_START), ("1 step/s", 1.0), ("10 steps/s", 10.0),
          ("100 steps/s", 100.0), ("1000 steps/s", 1000.0), ("as fast as it goes", float("inf")))  # fmt: skip
TICKS = 1000  # of the slider: fixed, for a browser answers a moving range with values of its own


class Transport(Panel):
    """The bar at the bottom of the page, the same for training and attack."""

    every_s = 0.2
    stages = ("draw", "train", "attack")

    def build(self) -> None:
        """Buttons, speed, and the timeline with its branches."""
        session = self.session
        self.play = button("Play", "Run the present stage, or pause it", button_style="primary",
                           icon="play")  # fmt: skip
        self.play.on_click(self.command(self._toggle))
        step = button("Step", "Pause, and take one full-batch step")
        step.on_click(self.command(lambda: play.step(session, 1)))
        self.many = w.BoundedIntText(
            100, min=2, max=100_000, description="n steps", tooltip="Steps of the next button",
            layout=w.Layout(width="136px"),
        )  # fmt: skip
        self.many.style.description_width = "initial"
        steps = button("Step × n", "Pause, and take n steps at once")
        steps.on_click(self.command(lambda: play.go_on(session, self.many.value)))
        speed = w.Dropdown(
            options=SPEEDS, value=SLOW_START, tooltip="Steps per second while playing",
            layout=w.Layout(width="160px"),
        )  # fmt: skip
        speed.observe(self._on_speed, names=["value"])
        reset = button("⟲ Reset", "Back to step 0 of this stage with the same seed")
        reset.on_click(self.command(lambda: play.reset(session)))
        reseed = button("New seed", "Back to step 0 with another random initialisation")
        reseed.on_click(self.command(lambda: play.reseed(session)))
        self.time = w.IntSlider(
            TICKS, min=0, max=TICKS, description="time", readout=False, continuous_update=True,
            tooltip="Scrub back through the run; play goes on from there",
        ).add_class("mx-timeline")  # fmt: skip
        self.time.observe(self._on_time, names=["value"])
        self.where = w.HTML()
        branch = button("Branch here", "Keep this run; go on from this moment on a new branch")
        branch.on_click(self.command(lambda: branches.branch(session)))
        self.branches = w.Dropdown(
            options=[("main", 0)], tooltip="Lines of time: where each was left",
            layout=w.Layout(width="230px"),
        )  # fmt: skip
        self.branches.observe(self._on_branch, names=["value"])
        first = [self.play, step, self.many, steps, speed, reset, reseed]
        second = [self.time, self.where, branch, self.branches]
        rows = [w.HBox(r).add_class("mx-row") for r in (first, second)]
        self.widget = w.VBox(rows).add_class("mx-transport")
        self.box.add_class("mx-bottom")
        self._setting = False
        session.observe(self._on_running, names=["running"])

    def _toggle(self) -> None:
        (play.pause if self.session.running else play.play)(self.session)

    def _on_running(self, change: dict[str, Any]) -> None:
        with self.play.hold_sync():
            self.play.description = "Pause" if change["new"] else "Play"
            self.play.icon = "pause" if change["new"] else "play"

    def _on_speed(self, change: dict[str, Any]) -> None:
        play.set_speed(self.session, change["new"])

    def _on_time(self, change: dict[str, Any]) -> None:
        if not self._setting:
            line = self.session.timeline
            t = round(change["new"] / TICKS * line.last_t)
            self.command(lambda: branches.seek(self.session, line.nearest(t)))(None)

    def _on_branch(self, change: dict[str, Any]) -> None:
        if not self._setting:
            self.command(lambda: branches.select(self.session, change["new"]))(None)

    def render(self, frame: Frame) -> None:
        """Show the step of the run, and its branches."""
        state = frame.state
        line = self.session.timeline
        self._setting = True
        try:
            last = max(line.last_t, 1)
            self.time.value = TICKS if state is None else min(TICKS, TICKS * state.t // last)
            names = [(b.name, i) for i, b in enumerate(self.session.branches)]
            if list(self.branches.options) != names:
                self.branches.options = names
            if self.branches.value != self.session.branch_index:
                self.branches.value = self.session.branch_index
        finally:
            self._setting = False
        end = 0 if state is None else max(line.last_t, state.t)
        self.where.value = "step –" if state is None else f"step {state.t:,} of {end:,}"
