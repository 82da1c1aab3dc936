"""The fitted places of the hinge attack that the weights need: one mark a place, and the bound."""

from __future__ import annotations

import bqplot as bq
import ipywidgets as w
import numpy as np

from explorer.engine.attacks.hinge import HingeState
from explorer.engine.roster import by_key
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel, chart, mount, with_title
from explorer.style import CONTROL, INK, PROVEN

TOP = 3.0  # marks above this many bounds stand at it
WAIT = "The fit comes first: press Play or Step."


class HingesPanel(Panel):
    """Unexplained share without each place, by the bound from which a place is needed."""

    stages = ("attack",)
    state = HingeState

    def build(self) -> None:
        """Green: needed; grey: not; the dashed line is the bound."""
        self.x = bq.LinearScale(min=0, max=2, allow_padding=False)
        self.y = bq.LinearScale(min=0, max=TOP, allow_padding=False)
        scales = {"x": self.x, "y": self.y}
        self.marks = [
            bq.Scatter(x=np.zeros(0), y=np.zeros(0), scales=scales, colors=[colour],
                       default_size=40) for colour in (PROVEN, CONTROL)
        ]  # fmt: skip
        self.bound = bq.Lines(x=[0, 2], y=[1, 1], scales=scales, colors=[INK], stroke_width=1,
                              line_style="dashed")  # fmt: skip
        self.figure = chart("places, most needed first", "rᵢ / bound, up to 3",
                       [self.bound, *self.marks], self.x, self.y,
                       tick_values=[0, 1, 2, 3], tick_format="d")  # fmt: skip
        self.words = w.HTML(WAIT).add_class("mx-note")
        self.body = w.VBox([self.words], layout=w.Layout(overflow="visible"))
        self.widget = with_title("Needed places", self.body)

    def render(self, frame: Frame) -> None:
        """Draw the answers so far, sorted."""
        state = frame.attack.state
        if not isinstance(state, HingeState):
            return
        entry = by_key(frame.attack.name)
        self.words.value = entry.account(state, self.session.attack_config)
        asked = state.without[~state.without.isnan()].cpu().numpy()
        height = np.sort(np.minimum(asked / max(state.limit, 1e-300), TOP))[::-1]
        rank = np.arange(1, len(height) + 1, dtype=float)
        if self.x.max != len(height) + 1:
            self.x.max = len(height) + 1
            self.bound.x = [0, len(height) + 1]
            apart = 1 + len(height) // 6
            self.figure.axes[0].tick_values = np.arange(0, len(height) + 2, apart)
        for mark, mine in zip(self.marks, (height >= 1, height < 1), strict=True):
            with mark.hold_sync():
                mark.x, mark.y = rank[mine], height[mine].copy()
        mount(self.body, self.figure, bool(len(height)))
