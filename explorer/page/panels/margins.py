"""How far each point is from the margin: q_i / q_min, sorted."""

from __future__ import annotations

import numpy as np

from explorer.engine.certificate import ON_MARGIN
from explorer.engine.charts import NOTHING, Axis, Chart, Rule, Series
from explorer.page import play
from explorer.page.frame import Frame
from explorer.page.panels.base import ChartPanel
from explorer.style import CLASS_INKS, LABELS, NAMES

TOP = 3.0  # q / q_min shown; points beyond stand at the top edge


class MarginsPanel(ChartPanel):
    """One stem per point in the colour of its class; those off the margin are pale."""

    stages = ("train",)

    def build(self) -> None:
        """A stem under the pointer marks its point on the plane."""
        super().build()
        self.view.on_hover(lambda i: play.point_at(self.session, i))

    def chart(self, frame: Frame) -> Chart:
        """Return the points sorted by q, in units of the smallest.

        While a run goes on, charts follow slower than the headline: the count is told at rest.
        """
        state = frame.training.state
        if state is None or not len(state.q) or len(state.q) != frame.dataset.n:
            return NOTHING
        q, y = state.q.cpu().numpy(), frame.dataset.y.cpu().numpy()
        low = float(q.min())
        unit = low if low > 0 else max(float(np.abs(q).max()), 1e-300)
        order = np.argsort(q, kind="stable")
        height = np.clip(q[order] / unit, -1, TOP)
        on = (q[order] <= (1 + ON_MARGIN) * low) & (low > 0)
        rank, wide = np.arange(1, len(q) + 1), float(np.clip(240 / len(q), 1, 4))  # px; arbitrary
        series = [
            Series(rank[mine], height[mine], NAMES[label], "stems", ids=order[mine],
                   colour=CLASS_INKS[label],
                   look={"width": wide, "opacity": 1.0 if filled else 0.4})
            for label in LABELS
            for filled in (True, False)
            if (mine := (y[order] == label) & (on == filled)).any()
        ]  # fmt: skip
        tips = [f"point {i + 1}: {q[i] / unit:.3g}" for i in range(len(q))]
        top = float(np.clip(1.2 * height.max(), 1.5, TOP + 0.2))
        said = (
            f"{int(on.sum())} of {len(q)} on the margin, within {ON_MARGIN:.0%}"
            if low > 0
            else f"{int((q <= 0).sum())} of {len(q)} on the wrong side"
        )
        rules = [Rule(1.0)] if low > 0 else []
        steps = ((0, "0"), (1, "on the margin"), (2, "2 ×"), (3, "3 ×"))
        ticks = tuple(step for step in steps if step[0] <= top) if low > 0 else None
        return Chart(
            series, Axis(0.2, len(q) + 0.8, short="rank", whole=True, hidden=True),
            Axis(min(0.0, 1.2 * float(height.min())), top, short="margin over the smallest",
                 ticks=ticks),
            "Margin of each point", "" if self.session.running else said, rules=rules, picks=True,
            tips=tips,
            label=f"Margin of each point: {said}",
        )  # fmt: skip
