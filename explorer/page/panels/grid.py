"""All starts at once: the grid of Runkel et al. on the attacked weights, cell by cell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from explorer.engine.roster import ROSTER
from explorer.page import branches, play
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel, chart, with_title
from explorer.page.parts.grid_box import GridBox
from explorer.page.parts.settings import choice
from explorer.page.stages import attack, landscape
from explorer.research.grid import Found, Key, Of, even, grid_attacks

STEPS = 200  # arbitrary: half a minute for 21 runs of the KKT attack


class GridPanel(Panel):
    """The grid of the page; a click on a cell draws its run on the plane."""

    stages = ("landscape",)
    click = "Hover for numbers; click a cell to see its run on the plane."

    def build(self) -> None:
        """Which attack, and the grid."""
        self.attack = choice(
            "attack", "Which attack runs from every start",
            *((ROSTER[key].title, key) for key in grid_attacks()),
        )  # fmt: skip
        self.attack.style.description_width = "56px"
        self.grid = GridBox(self, self.command, chart, with_title, STEPS, (self.attack,))
        self.widget = self.grid.widget
        for control in (self.attack, self.grid.side, self.grid.steps):
            control.observe(self._on_control, names=["value"])
        self._setting = False

    # --- which problem ----------------------------------------------------------------------
    def _on_control(self, _: Any) -> None:  # noqa: ANN401
        if not self._setting:
            self.grid.cancel()
            self.command(lambda: attack.choose(self.session, self.attack.value))(None)
            self.render(self.session.frame)

    def _name(self) -> str:
        """Return the present attack if the grid can run it, else the one chosen here."""
        name = self.session.frame.attack.name
        return name if name in grid_attacks() else str(self.attack.value)

    def _of(self) -> Of:
        now, name = self.session.frame, self._name()
        settings: Any = self.session.settings_of(name)
        m = even(now.truth.n) if now.truth is not None else 2
        config = replace(settings, steps=self.grid.steps.value, m=m)
        config = ROSTER[name].config_for(config, 0.0)  # anew with every start
        return Of(now.target, now.truth, now.heldout, name, config, self.session.seed,
                  self.grid.side.value)  # fmt: skip

    def render(self, frame: Frame) -> None:
        """Take up what is known of the problem on screen."""
        self._setting = True
        if frame.attack.name in [key for _, key in self.attack.options]:
            self.attack.value = frame.attack.name
        self._setting = False
        self.grid.take(self._of())

    def unseen(self, frame: Frame) -> None:
        """Let a run go on out of sight, but end it if weights or points have changed."""
        found = self.grid.found
        if found is None or not self.grid.busy or self.grid.ending:
            return
        same = found.of.target is frame.target and found.of.truth is frame.dataset
        if not same or not frame.newest:
            self.grid.cancel()
            play.tell(self.session, "The points or the weights changed: the grid was cancelled.")

    # --- what the grid asks of its page -----------------------------------------------------
    def empty(self, count: int) -> str:
        """What to do first."""
        return (
            f"Press Run the grid: the attack then runs from {count} mixtures of truth, held-out "
            "data and noise."
        )

    def problem(self) -> Of:
        """The cells of the attack chosen here, on the weights of the page."""
        session = self.session
        if session.frame.target is None:
            raise ValueError("No weights to attack: train a network first.")
        if self.attack.value != session.frame.attack.name:
            attack.choose(session, self.attack.value)
        play.pause(session)
        return self._of()

    def drawn(self, trails: list[Any]) -> None:
        """The energy of all starts is drawn below the same runs."""
        landscape.set_trails(self.session, trails)

    def tell(self, words: str) -> None:
        """Say it at the head of the page."""
        play.tell(self.session, words)

    def show(self, found: Found, key: Key) -> str:
        """Put the run on the plane; the Attack stage then shows it step by step."""
        states, (_, mix_truth, mix_data) = found.states[key], key
        of = found.of
        mix = (mix_truth, mix_data)
        kept = branches.load_run(self.session, of.attack, of.config, mix, states)
        return (
            f"λ₁ = {mix_truth:g}, λ₂ = {mix_data:g}: the candidates on the plane are those of this "
            f"run at step {states[-1].t}. The Attack stage has its timeline.{kept}"
        )

    def end(self) -> None:
        """Cancel work in progress."""
        self.grid.job.close()
