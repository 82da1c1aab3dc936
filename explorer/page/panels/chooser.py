"""The choice of the attack, with one sentence on it, and a button for a new target."""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets as w

from explorer.engine.attacks.target import Target
from explorer.engine.roster import ROSTER
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel, button
from explorer.page.stages import attack

UNFIT = " (not for this network)"


class Chooser(Panel):
    """The list of the roster, at the top of the attack stage."""

    stages = ("attack",)

    def build(self) -> None:
        """The choice and a button in one row; below, what the chosen attack does."""
        self.attack = w.Dropdown(
            options=_options(None), description="attack", layout=w.Layout(width="340px"),
            tooltip="Which attack runs on these weights; the arena sets several side by side",
        )  # fmt: skip
        self.attack.style.description_width = "initial"
        self.attack.observe(self._on_attack, names=["value"])
        again = button("Attack the newest weights", "Take the present network as the target anew")
        again.on_click(self.command(lambda: attack.begin(self.session)))
        self.words = w.HTML().add_class("mx-note").add_class("mx-chosen")
        row = w.HBox([self.attack, again]).add_class("mx-row")
        self.widget = w.VBox([row, self.words])
        self._setting = False
        self._target: Target | None = None

    def _on_attack(self, change: dict[str, Any]) -> None:
        if not self._setting:
            self.command(lambda: attack.choose(self.session, change["new"]))(None)
            self.render(self.session.frame)  # where the choice was refused

    def render(self, frame: Frame) -> None:
        """Show the present attack; the list marks attacks that do not suit these weights."""
        self._setting = True
        try:
            if frame.target is not self._target:
                self._target = frame.target
                self.attack.options = _options(frame.target)
            if self.attack.value != frame.attack.name:
                self.attack.value = frame.attack.name
        finally:
            self._setting = False
        entry = ROSTER[frame.attack.name]
        paper = "Of this project" if entry.paper == "own" else entry.paper
        words = f"{escape(paper)}: {escape(entry.sentence)}"
        if self.words.value != words:
            self.words.value = words


def _options(target: Target | None) -> list[tuple[str, str]]:
    """Return (words, key) of every attack."""
    unfit = {k for k, row in ROSTER.items() if target is not None and row.refusal(target)}
    return [(row.title + UNFIT * (key in unfit), key) for key, row in ROSTER.items()]
