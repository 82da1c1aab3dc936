"""Numbers over steps: the margins and residuals of training, the losses of an attack."""

from __future__ import annotations

import bqplot as bq
import ipywidgets as w
import numpy as np

from explorer.engine.roster import by_key
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel, chart, thin_curve, with_title
from explorer.style import CURVES

FLOOR = 1e-16  # below the rounding of float64: a residual of zero on a log axis


class CurvesPanel(Panel):
    """Curves of columns of the timeline. Subclasses say which."""

    every_s = 0.2
    title = ""
    columns: tuple[tuple[str, str], ...] = ()  # (column, its name on screen)
    log = True

    def build(self) -> None:
        """One line per column, and the names with their newest values as the legend."""
        self.x = bq.LinearScale(min=0, max=1, allow_padding=False)
        self.y = bq.LinearScale(min=0, max=1, allow_padding=False)
        self.lines = {
            column: bq.Lines(
                x=np.zeros(2), y=np.zeros(2), scales={"x": self.x, "y": self.y}, colors=[colour],
                stroke_width=2,
            )
            for (column, _), colour in zip(self.columns, CURVES, strict=False)
        }  # fmt: skip
        self.legend = w.HTML()
        figure = chart("step t", "", list(self.lines.values()), self.x, self.y)
        self.axes = figure.axes
        body = w.VBox([figure, self.legend.add_class("mx-note")])
        body.layout.overflow = "visible"  # the figure's own margin would give it a scrollbar
        self.widget = with_title(self.title, body)

    def render(self, frame: Frame) -> None:
        """Redraw from the timeline, at most a few hundred points."""
        words, curves = [], {}
        for (column, name), colour in zip(self.columns, CURVES, strict=False):
            t, v = thin_curve(*self.session.timeline.column(column))
            newest = f"{v[-1]:.3g}" if len(v) else "–"
            mark = f"<b style='color:{colour}'>■</b>"
            words.append(f"<span>{mark} {name} {newest}</span>")
            t, v = t[v > 0], v[v > 0]
            curves[column] = (t, np.log10(np.maximum(v, FLOOR)) if self.log else v)
        self._scale([c for c in curves.values() if len(c[0])])
        for column, (t, v) in curves.items():
            line = self.lines[column]
            if not len(t):
                t = v = np.zeros(2)  # an empty path is an error to the browser
            elif len(t) == 1:  # one value: a short level line, to be seen at all
                t, v = np.array([t[0], t[0] + 0.05 * self.x.max]), np.repeat(v, 2)
            if not np.array_equal(t, line.x) or not np.array_equal(v, line.y):
                with line.hold_sync():
                    line.x, line.y = t, v
        legend = " &nbsp; ".join(words)
        if self.legend.value != legend:
            self.legend.value = legend

    def _scale(self, curves: list[tuple[np.ndarray, np.ndarray]]) -> None:
        """Bounds that move in jumps, so that the axes stay readable while a run grows."""
        if not curves:
            return
        longest = max(float(t[-1]) for t, _ in curves)
        low = min(float(v.min()) for _, v in curves)
        high = max(float(v.max()) for _, v in curves)
        if self.log:
            step = max(1.0, np.ceil((high - low) / 5))
            bottom = step * np.floor(low / step)
        else:
            step, bottom = _round_up(max(high, 1e-12)) / 4, 0.0
        top = max(step * np.ceil(high / step), bottom + step)
        self._bound(0, 0.0, _round_up(max(longest, 10)), 4)
        self._bound(1, bottom, top, round((top - bottom) / step))

    def _bound(self, axis: int, low: float, high: float, parts: int) -> None:
        """Set an axis' bounds with ticks at equal parts: bqplot rounds the labels of its own."""
        scale = (self.x, self.y)[axis]
        if (scale.min, scale.max) != (low, high):
            with scale.hold_sync():
                scale.min, scale.max = float(low), float(high)
            self.axes[axis].tick_values = np.linspace(low, high, parts + 1)


def _round_up(value: float) -> float:
    """Return the next of 1, 2, 4 or 10 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(f * power for f in (1, 2, 4, 10) if f * power >= value * (1 - 1e-9)))


class MarginCurves(CurvesPanel):
    """The normalised margin of Lyu and Li, and its smoothed lower bound."""

    stages = ("train",)
    title = "Normalised margin q_min / ρ^L"
    columns = (("gamma_bar", "γ̄ normalised"), ("gamma_tilde", "γ̃ smoothed"))
    log = False


class ResidualCurves(CurvesPanel):
    """How far the weights are from a KKT point: slopes of 0 or 1, and free ones at kinks."""

    stages = ("train",)
    title = "KKT residual ‖θ − Σ‖ / ‖θ‖, log₁₀"
    columns = (("strict", "strict slopes"), ("kink_aware", "kink-aware"))


class LossCurves(CurvesPanel):
    """The numbers of the present attack over its steps; each attack names its own columns."""

    stages = ("attack",)
    title = "Losses of the attack, log₁₀"

    def seen(self, frame: Frame) -> bool:
        """Return whether the present attack has curves; one without a loss has none."""
        return super().seen(frame) and bool(by_key(frame.attack.name).curves)

    def build(self) -> None:
        """As many lines as there are colours."""
        self.columns = tuple((f"unused {i}", "") for i in range(len(CURVES)))
        super().build()

    def render(self, frame: Frame) -> None:
        """The columns of the present attack."""
        columns = self.session.entry.curves
        if columns != self.columns:
            lines = list(self.lines.values())
            self.columns = columns
            self.lines = {c: line for (c, _), line in zip(columns, lines, strict=False)}
            for line in lines:
                line.x = line.y = np.zeros(2)
            self.lines |= {f"unused {i}": x for i, x in enumerate(lines[len(columns) :])}
        super().render(frame)
