"""How far each point is from the margin: q_i / q_min, sorted."""

from __future__ import annotations

from dataclasses import replace

from explorer.engine.charts import NOTHING, Chart
from explorer.page.frame import Frame
from explorer.page.lessons import course
from explorer.page.panels.base import ChartPanel
from explorer.research.pictures.charts import empty_margins, margins_chart

FIRST = "The bars stand once a network is trained on the points."


class MarginsPanel(ChartPanel):
    """One stem per point in the colour of its class; those off the margin are pale."""

    stages = ("draw", "train")

    def belongs(self, frame: Frame) -> bool:
        """Return whether there are margins, or a lesson waits for them."""
        waits = frame.stage == "train" or course.cards_of(self.session) is not None
        return super().belongs(frame) and waits

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
            return replace(empty_margins(), foot=FIRST) if frame.stage == "draw" else NOTHING
        return margins_chart(state.q, frame.dataset.y, not self.session.running)
