"""How far each point is from the margin: q_i / q_min, sorted."""

from __future__ import annotations

from explorer.engine.charts import NOTHING, Chart
from explorer.page.frame import Frame
from explorer.page.panels.base import ChartPanel
from explorer.research.pictures.charts import margins_chart


class MarginsPanel(ChartPanel):
    """One stem per point in the colour of its class; those off the margin are pale."""

    stages = ("train",)

    def build(self) -> None:
        """A stem under the pointer marks its point on the plane."""
        super().build()
        self.view.on("hover", lambda i: self.session.choose(pointed=i))

    def chart(self, frame: Frame) -> Chart:
        """Return the margins of the points.

        While a run goes on, charts follow slower than the headline: the count is told at rest.
        """
        state = frame.training.state
        if state is None or not len(state.q) or len(state.q) != frame.dataset.n:
            return NOTHING
        return margins_chart(state.q, frame.dataset.y, not self.session.running)
