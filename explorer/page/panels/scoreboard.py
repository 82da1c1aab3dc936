"""What the attack found, beside what is found by chance."""

from __future__ import annotations

import bqplot as bq
import ipywidgets as w
import numpy as np

from explorer.page.frame import Frame
from explorer.page.panels.base import Panel, chart, mount, with_title
from explorer.style import CONTROL, CURVES

SERIES = (
    ("recall", CURVES[0]), ("recall of control", CONTROL),
    ("precision", CURVES[2]), ("precision of control", "#cccccc"),
)  # fmt: skip


class Scoreboard(Panel):
    """Recall and precision at several radii; grey: the same claims against one control set."""

    stages = ("attack",)

    def build(self) -> None:
        """Grouped bars over the radii, and their counts in words."""
        self.x = bq.OrdinalScale()
        self.y = bq.LinearScale(min=0, max=1, allow_padding=False)
        self.bars = bq.Bars(
            x=["0.01", "0.03", "0.1"], y=np.zeros((4, 3)), type="grouped",
            scales={"x": self.x, "y": self.y}, colors=[c for _, c in SERIES],
        )  # fmt: skip
        self.counts = w.HTML().add_class("mx-note")
        legend = " &nbsp; ".join(f"<span><b style='color:{c}'>■</b> {n}</span>" for n, c in SERIES)
        figure = chart("radius", "share", [self.bars], self.x, self.y, tick_format=".2f",
                       tick_values=[0, 0.25, 0.5, 0.75, 1])  # fmt: skip
        figure.axes[0].tick_format = "~g"
        visible = w.Layout(overflow="visible")
        self.plot = w.VBox([figure, w.HTML(legend).add_class("mx-note")], layout=visible)
        self.body = w.VBox([self.counts], layout=visible)
        self.widget = with_title("Found, one to one", self.body)

    def render(self, frame: Frame) -> None:
        """The scores of the newest assessment."""
        mount(self.body, self.plot, frame.attack.scores is not None)
        if frame.attack.scores is None:
            self.counts.value = "No score yet: press Play to run the attack."
            self.bars.y = np.zeros((4, 3))
            return
        truth, control = frame.attack.scores
        rows = (truth.recall, control.recall, truth.precision, control.precision)
        values = np.array([[float(v) for v in row] for row in rows])
        if not np.array_equal(values, self.bars.y):
            with self.bars.hold_sync():
                self.bars.x = [f"{r:g}" for r in truth.radii]
                self.bars.y = values
        found = ", ".join(
            f"{int(f)} within {r:g} (control {int(c)})"
            for f, c, r in zip(truth.found, control.found, truth.radii, strict=True)
        )
        self.counts.value = f"Of {frame.truth.n if frame.truth else 0} points: {found}."
