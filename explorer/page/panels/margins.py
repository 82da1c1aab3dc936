"""How far each point is from the margin: q_i / q_min, sorted."""

from __future__ import annotations

import bqplot as bq
import numpy as np

from explorer.engine.certificate import ON_MARGIN
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel, chart, with_title
from explorer.style import COLOURS, LABELS, MARKERS, NAMES

TOP = 3.0  # q / q_min shown; points beyond stand at the top edge


class MarginsPanel(Panel):
    """One mark per point; those on the margin are filled, the others hollow."""

    stages = ("train",)
    every_s = 0.2

    def build(self) -> None:
        """A scatter per class, and hollow ones for points off the margin."""
        self.x = bq.LinearScale(min=0, max=1, allow_padding=False)
        self.y = bq.LinearScale(min=-1.2, max=TOP + 0.2, allow_padding=False)
        scales = {"x": self.x, "y": self.y}
        self.marks = {
            (label, on): bq.Scatter(
                x=np.zeros(0), y=np.zeros(0), scales=scales, colors=[COLOURS[label]],
                marker=MARKERS[label], default_size=36, fill=on, stroke=COLOURS[label],
                stroke_width=1.5,
            )
            for label in LABELS
            for on in (True, False)
        }  # fmt: skip
        self.level = bq.Lines(
            x=[0, 1], y=[1, 1], scales=scales, colors=["#7a7a7a"], stroke_width=1,
            line_style="dashed",
        )  # fmt: skip
        marks = [self.level, *self.marks.values()]
        ticks = {"tick_values": [-1, 0, 1, 2, 3], "tick_format": "d"}
        figure = chart(
            "points, nearest first", "qᵢ / q_min, up to 3", marks, self.x, self.y, **ticks
        )
        self.widget = with_title("", figure)
        self.title = self.widget.children[0]

    def render(self, frame: Frame) -> None:
        """Sort the points by q and mark those on the margin."""
        if frame.training.state is None or not len(frame.training.state.q):
            self.title.value = "Margins: nothing trained yet"
            for mark in self.marks.values():
                mark.x = mark.y = np.zeros(0)
            return
        q, y = frame.training.state.q.cpu().numpy(), frame.dataset.y.cpu().numpy()
        low = q.min()
        unit = low if low > 0 else max(np.abs(q).max(), 1e-300)
        order = np.argsort(q, kind="stable")
        height, labels = np.clip(q[order] / unit, -1, TOP), y[order]
        on = (q[order] <= (1 + ON_MARGIN) * low) & (low > 0)
        rank = np.arange(1, len(q) + 1, dtype=float)
        if self.x.max != len(q) + 1:
            self.x.max = len(q) + 1
            self.level.x = [0, len(q) + 1]
        for (label, filled), mark in self.marks.items():
            mine = (labels == label) & (on == filled)
            with mark.hold_sync():
                mark.x, mark.y = rank[mine], height[mine]
        wrong = int((q <= 0).sum())
        self.title.value = (
            f"Margins: {int(on.sum())} of {len(q)} points on the margin (within 1%)"
            if low > 0
            else f"Margins: {wrong} of {len(q)} points on the wrong side ({_names(y)})"
        )


def _names(y: np.ndarray) -> str:
    """The classes by name; two are named even where one has no point yet."""
    return ", ".join(NAMES[label] for label in LABELS if abs(label) == 1 or label in y)
