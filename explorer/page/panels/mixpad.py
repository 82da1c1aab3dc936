"""Where the attack starts: the triangle of starts, small, with its handle."""

from __future__ import annotations

import ipywidgets as w

from explorer.engine.energy.landscape import Weights
from explorer.engine.energy.starts import mix_from_weights, mix_weights
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.landscape import words
from explorer.page.view.canvases import TriangleView


class MixPad(Panel):
    """The start of the attack (Runkel et al., eq. 10): a place between three sets."""

    look = ("mx-card", "mx-setting")
    stages = ("attack",)

    def build(self) -> None:
        """A small triangle under its title."""
        self.view = TriangleView(
            self.session.together, label=words.START_LABEL, small=True,
            layout=w.Layout(height="120px", width="100%"), _dom_classes=["mx-start-triangle"],
        )  # fmt: skip
        self.view.on("handle", self._mix)
        self.title = w.HTML()
        self.widget = w.VBox([self.title, self.view])

    def belongs(self, frame: Frame) -> bool:
        """Return whether the present attack begins at given candidates."""
        return super().belongs(frame) and self.session.entry.takes_start

    def _mix(self, weights: Weights) -> None:
        self.do(attack.remix, self.session, *mix_from_weights(*weights))

    def render(self, frame: Frame) -> None:
        """Show the handle and the shares at the session's mix."""
        weights = mix_weights(*self.session.mix)
        self.view.handle, self.view.say = weights, words.mixture(weights)
        mixed = words.mixture(weights, short=True) * (max(weights) < 1)  # a corner has its name
        self.title.value = words.heading(words.START, mixed)
