"""The trials of a search: a scatter with its front, and the same as a list for the keyboard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import bqplot as bq
import numpy as np

from explorer.page.parts.grid_cells import Pick
from explorer.research import tuning
from explorer.research.tuning import Trial
from explorer.style import CURVES, INK, PROVEN


class Front:
    """Shows trials that did not fail; a chosen one is told by its index among them."""

    def __init__(self, load: Callable[[int], None], chart: Callable[..., bq.Figure]) -> None:
        """`load` is called with the index; `chart` is that of panels."""
        self.x = bq.LinearScale(min=-3, max=0, allow_padding=False)
        self.y = bq.LinearScale(min=0, max=1, allow_padding=False)
        scales = {"x": self.x, "y": self.y}
        self.line = bq.Lines(
            x=np.zeros(2), y=np.zeros(2), scales=scales, colors=[CURVES[0]], stroke_width=2,
            interpolation="step-after",
        )  # fmt: skip
        self.dots = bq.Scatter(
            x=np.zeros(0), y=np.zeros(0), scales=scales, colors=[INK], default_size=64,
            stroke="white",
        )  # fmt: skip
        self.best = bq.Scatter(
            x=np.zeros(0), y=np.zeros(0), scales=scales, colors=[PROVEN], default_size=260,
            fill=False, stroke=PROVEN, stroke_width=2.5,
        )  # fmt: skip
        self.dots.on_element_click(lambda _, event: load(event["data"]["index"]))
        self.chart = chart("residual, log₁₀", "agreement", [self.line, self.best, self.dots],
                           self.x, self.y)  # fmt: skip
        self.chart.axes[0].tick_values = [-3, -2, -1, 0]
        self.chart.axes[0].tick_format = "d"
        self.pick = Pick(
            "trial", "The trials, with what the weights tell of each: choosing one loads its "
            "settings, as a click on its dot does", load,
        )  # fmt: skip
        self.list = self.pick.list

    def draw(self, trials: Sequence[Trial], chosen: Trial | None) -> None:
        """All trials, their front, and a ring around the `chosen` best."""
        good, ahead = [t for t in trials if not t.failure], tuning.front(trials)
        top = max([1.0, *(t.agreement for t in good)])
        logs = [_log(t) for t in good]
        high = int(np.ceil(max([0.0, *logs])))
        self._bound(int(np.floor(min([-1.0, *logs]))), high, top)
        x, y = (np.array(v) for v in ([_log(t) for t in ahead], [t.agreement for t in ahead]))
        if len(x):  # to the right edge: whatever is worse there is beaten
            x, y = np.append(x, float(high)), np.append(y, y[-1])
        for mark, (px, py) in (
            (self.line, (x, y) if len(x) else (np.zeros(2), np.zeros(2))),
            (self.dots, _places(good)),
            (self.best, _places([chosen] if chosen else [])),
        ):
            with mark.hold_sync():
                mark.x, mark.y = px, py
        self.pick.fill([(_words(t), i) for i, t in enumerate(good)], self.list.value)

    def _bound(self, low: int, high: int, top: float) -> None:
        ceiling = float(np.ceil(top * 1.1))
        self.x.min, self.x.max = float(low), float(high)
        self.y.max = ceiling
        self.chart.axes[0].tick_values = list(range(low, high + 1))
        self.chart.axes[1].tick_values = np.linspace(0, ceiling, 5)


def _words(trial: Trial) -> str:
    return f"{trial.number}: residual {trial.residual:.3g}, agreement {trial.agreement:.3g}"


def _log(trial: Trial) -> float:
    return float(np.log10(min(max(trial.residual, 1e-16), 10.0)))


def _places(trials: list[Trial]) -> tuple[Any, Any]:
    return np.array([_log(t) for t in trials]), np.array([t.agreement for t in trials])
