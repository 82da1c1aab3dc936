"""The fitted places of the hinge attack that the weights need: one dot a place, and the bound."""

from __future__ import annotations

import numpy as np

from explorer.engine.attacks.hinge import HingeState
from explorer.engine.charts import NOTHING, Axis, Chart, Rule, Series
from explorer.engine.roster import by_key
from explorer.page.frame import Frame
from explorer.page.panels.base import ChartPanel

TOP = 3.0  # dots above this many bounds stand at it
TITLE = "Places that the weights need"


class HingesPanel(ChartPanel):
    """Unexplained share without each place, by the bound from which a place is needed."""

    stages = ("attack",)
    state = HingeState

    def chart(self, frame: Frame) -> Chart:
        """Return the answers so far, sorted. Green: needed; grey: not."""
        state = frame.attack.state
        if not isinstance(state, HingeState):
            return NOTHING
        asked = state.without[~state.without.isnan()].cpu().numpy()
        height = np.sort(np.minimum(asked / max(state.limit, 1e-300), TOP))[::-1]
        rank = np.arange(1, len(height) + 1)
        series = [
            Series(rank[mine], height[mine], name, "dots", colour=colour)
            for name, colour, mine in (
                ("needed", "good", height >= 1), ("not needed", "ink3", height < 1),
            )
            if mine.any()
        ]  # fmt: skip
        said = by_key(frame.attack.name).words(state, self.session.attack_config)
        rules = [Rule(1.0, "needed from here")] if len(height) else []
        x = Axis(0.0, len(height) + 1.0, "places, most needed first", "place", whole=True,
                 hidden=not len(height))  # fmt: skip
        y = Axis(0.0, TOP + 0.2, short="unexplained without it, over the bound",
                 ticks=(0, 1, 2, [3, "3 +"]), hidden=not len(height))  # fmt: skip
        note = "unexplained without it, over the bound" if len(height) else ""
        return Chart(series, x, y, TITLE, note, said, rules=rules, label=f"{TITLE}. {said}")
