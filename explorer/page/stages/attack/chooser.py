"""The choice of the attack, with one sentence on it, and a button for a new target."""

from __future__ import annotations

from functools import partial
from typing import Any

from explorer.engine.attacks.target import Target
from explorer.engine.roster import ROSTER
from explorer.page.controls.control import Segments
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel
from explorer.page.stages.attack import commands as attack

UNFIT = " (not for this network)"
IN_SIGHT = 2  # attacks that stand side by side: as many as the card has room for
AGAIN = "Attack the newest weights"


class Chooser(Panel):
    """The list of the roster, at the top of the attack stage."""

    look = ("mx-card", "mx-setting")
    stages = ("attack",)

    def build(self) -> None:
        """One control."""
        self.view = self.widget = Segments(
            {"choose": self.command_among(tuple(ROSTER), partial(attack.choose, self.session)),
             "again": self.command(lambda: attack.begin(self.session))}, ("mx-chooser",),
            title="Attack", first=IN_SIGHT, againTip="Take the present network as the target",
        )  # fmt: skip
        self._listed: Target | None = None

    def render(self, frame: Frame) -> None:
        """Show the present attack; the list marks attacks that do not suit these weights."""
        if frame.target is not self._listed or not self.view.state.get("options"):
            self._listed = frame.target
            self.view.show(options=_options(frame.target))
        entry = ROSTER[frame.attack.name]
        paper = "Of this project" if entry.paper == "own" else entry.paper
        self.view.show(
            value=frame.attack.name,
            words=f"{paper}: {entry.sentence}",
            again="" if frame.newest else AGAIN,
        )


def _short(title: str) -> str:
    """Return the name of an attack as a segment has room for it."""
    return title.removesuffix(" reconstruction").partition(",")[0]


def _options(target: Target | None) -> list[dict[str, Any]]:
    """Return name and tooltip of every attack, in the order of the roster."""
    unfit = {k for k, row in ROSTER.items() if target is not None and row.refusal(target)}
    return [
        {"key": key, "name": row.title + UNFIT * (key in unfit), "short": _short(row.title),
         "fits": key not in unfit, "tip": row.sentence}
        for key, row in ROSTER.items()
    ]  # fmt: skip
