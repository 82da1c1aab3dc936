"""The provable attack step by step: its rules, its claims, and the sweep of the margin."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import bqplot as bq
import ipywidgets as w
import numpy as np

from explorer.engine.attacks.target import Target
from explorer.engine.attacks.univariate import UnivariateConfig, UnivariateState
from explorer.engine.attacks.univariate.config import NEARLY
from explorer.engine.attacks.univariate.view import SWEEP, SweepPoint, sweep
from explorer.engine.progress import Progress, with_progress
from explorer.engine.roster import by_key
from explorer.page.frame import Frame
from explorer.page.job import Job, JobState
from explorer.page.panels.base import Panel, chart, mount, with_title
from explorer.page.parts.job_row import JobButton, progress_bar
from explorer.page.words.univariate import claims, rules
from explorer.style import CURVES, INK, PROVEN

LOWEST = -12  # log10 of a miss that is rounding
NOWHERE = np.zeros(2)
SWEEP_WORDS = "Sweep the margin"


class UnivariatePanel(Panel):
    """The last step in words, bounds of multipliers as bars, the sweep of the margin as curves."""

    stages = ("attack",)
    state = UnivariateState
    every_s = 0.1

    def build(self) -> None:
        """Make the words at the top; below, two charts side by side."""
        self.words = w.HTML()
        self.rules = w.HTML().add_class("mx-note")
        self._build_bars()
        self._build_sweep()
        charts = w.HBox([self.bars, self.swept]).add_class("mx-charts")
        self.widget = w.VBox([with_title("The provable attack", self.words), self.rules, charts])
        self._of: Target | None = None

    def _build_bars(self) -> None:
        self.x = bq.LinearScale(min=-2, max=2, allow_padding=False)
        self.y = bq.LinearScale(min=0, max=1, allow_padding=False)
        scales = {"x": self.x, "y": self.y}
        looks = (("proven", PROVEN, 6), ("likely", PROVEN, 2), ("", INK, 6))
        self.spans = {
            kind: bq.Lines(x=NOWHERE, y=NOWHERE, scales=scales, colors=[colour], stroke_width=wide)
            for kind, colour, wide in looks
        }
        self.fits = bq.Scatter(
            x=np.zeros(0), y=np.zeros(0), scales=scales, colors=[PROVEN], default_size=26,
            stroke="white", stroke_width=1,
        )  # fmt: skip
        self.stems = bq.Lines(x=NOWHERE, y=NOWHERE, scales=scales, colors=[PROVEN], stroke_width=1)
        marks = [self.stems, *self.spans.values(), self.fits]
        self.bar_figure = chart("x", "multiplier λ", marks, self.x, self.y,
                                tick_values=[0, 0.5, 1])  # fmt: skip
        self.bar_words = w.HTML().add_class("mx-note")
        self.bar_body = w.VBox([self.bar_words], layout=w.Layout(overflow="visible"))
        self.bars = with_title("Least to largest λ of each candidate", self.bar_body)

    def _build_sweep(self) -> None:
        self.m = bq.LinearScale(min=-2, max=2, allow_padding=False)
        self.miss = bq.LinearScale(min=LOWEST, max=0, allow_padding=False)
        self.size = bq.LinearScale(min=0, max=1, allow_padding=False)
        self.miss_line = bq.Lines(
            x=NOWHERE, y=NOWHERE, scales={"x": self.m, "y": self.miss}, colors=[CURVES[1]]
        )
        self.size_line = bq.Lines(
            x=NOWHERE, y=NOWHERE, scales={"x": self.m, "y": self.size}, colors=[CURVES[0]],
            interpolation="step-after",
        )  # fmt: skip
        known = bq.Lines(
            x=[0, 0], y=[LOWEST, 0], scales={"x": self.m, "y": self.miss}, colors=[INK],
            line_style="dashed", stroke_width=1,
        )  # fmt: skip
        marks = [known, self.size_line, self.miss_line]
        x_label, y_label = "margin tried / margin known, log₂", "miss, log₁₀"
        figure = chart(x_label, y_label, marks, self.m, self.miss,
                       tick_values=[-12, -9, -6, -3, 0], tick_format="d")  # fmt: skip
        self.sweep_figure = figure
        figure.axes[0].tick_values, figure.axes[0].tick_format = [-2, -1, 0, 1, 2], "d"
        self.size_axis = bq.Axis(
            scale=self.size, tick_format="d", side="right", grid_lines="none", tick_values=[0, 1]
        )
        figure.axes = [*figure.axes, self.size_axis]
        figure.fig_margin = {**figure.fig_margin, "right": 34}
        self.sweep_words = w.HTML().add_class("mx-note")
        self.job = Job()
        press = JobButton(
            self.job, SWEEP_WORDS, "Cancel", "What an attacker sees who does not know the margin: "
            "how well the places with |Φ| = m explain the weights, for 41 margins m", self._sweep,
        )  # fmt: skip
        self.go = press.widget
        self.go.on_click(self.command(press.press))
        self.progress = progress_bar(self.job, width="90px")
        self.job.observe(self._show_progress)
        self.sweep_row = w.HBox([self.go]).add_class("mx-row")
        self.sweep_body = w.VBox(
            [self.sweep_row, self.sweep_words], layout=w.Layout(overflow="visible")
        )
        self.swept = with_title("If the margin were not known", self.sweep_body)

    # --- what is seen -----------------------------------------------------------------------
    def render(self, frame: Frame) -> None:
        """Show the sentence of the newest step, the guarantee, and the bars."""
        state, target = frame.attack.state, frame.target
        if not isinstance(state, UnivariateState) or target is None:
            return
        if target is not self._of:
            self._of = target
            self._forget()
        config = self.session.attack_config
        self.words.value = escape(by_key(frame.attack.name).account(state, config))
        self.rules.value = rules(target, state)
        self._draw_bars(state)

    def _draw_bars(self, state: UnivariateState) -> None:
        if self.x.max != self.session.extent:
            self.x.min, self.x.max = -self.session.extent, self.session.extent
        fitted = not np.isnan(state.miss)
        x, lam = state.x[:, 0].numpy(), state.lam.numpy()
        least, most, needed = (v.numpy() for v in (state.least, state.most, state.needed))
        solved = ~np.isnan(least)
        finite = most[solved & np.isfinite(most)]
        top = max([1e-9, *finite.tolist(), *(lam.tolist() if fitted else [])])
        top = 1.1 * top if fitted else 1.0
        if abs(self.y.max - top) > 0.02 * top:
            self.y.max = top
            self.bar_figure.axes[1].tick_values = np.linspace(0, float(f"{top / 1.1:.1g}"), 3)
        firm = solved & needed
        kinds = {"proven": state.proven.numpy(), "likely": state.likely.numpy(), "": ~needed}
        for kind, mark in self.spans.items():
            rows = solved & kinds[kind]
            _set(mark, *_upright(x[rows], least[rows], np.minimum(most[rows], top)))
        _set(self.stems, *_upright(x[firm], np.zeros(firm.sum()), least[firm]))
        shown = (x, lam) if fitted else (np.zeros(0), np.zeros(0))
        _set(self.fits, *shown)
        mount(self.bar_body, self.bar_figure, bool(fitted or solved.any()))
        self.bar_words.value = (
            claims(state) if fitted
            else "Comes after the walk, with claims set to “needed places”: press Play."
        )  # fmt: skip

    # --- the sweep --------------------------------------------------------------------------
    def _forget(self) -> None:
        self.job.cancel()
        _set(self.miss_line, NOWHERE, NOWHERE)
        _set(self.size_line, NOWHERE, NOWHERE)
        mount(self.sweep_body, self.sweep_figure, False)
        self.sweep_words.value = (
            "Press the button: the margin is tried from a quarter to four times."
        )

    def _sweep(self) -> None:
        """Try one margin after the other, beside the page."""
        target, config = self.session.frame.target, self.session.attack_config
        if target is None or not isinstance(config, UnivariateConfig):
            return

        def work(progress: Progress) -> Iterator[list[SweepPoint]]:
            yield list(with_progress(sweep(target, config), len(SWEEP), progress))

        self.job.start(
            work, self._draw_sweep, self._ended, lambda: self.session.frame.target is not target
        )

    def _show_progress(self) -> None:
        row = (self.go, self.progress) if self.job.busy else (self.go,)
        if self.sweep_row.children != row:
            self.sweep_row.children = row

    def _ended(self) -> None:
        if self.job.state is JobState.CANCELLED:
            self.sweep_words.value = "The sweep was cancelled."
        self.tell_failure(self.job.error)

    def _draw_sweep(self, points: list[SweepPoint]) -> None:
        at = np.log2([p.margin for p in points])
        miss = np.array([p.miss for p in points])
        sizes = np.array([p.size for p in points], dtype=float)
        self.size.max = float(2 * np.ceil((sizes.max() + 1) / 2))
        self.size_axis.tick_values = np.linspace(0, self.size.max, 3)
        _set(self.miss_line, at, np.log10(np.maximum(miss, 10.0**LOWEST)))
        _set(self.size_line, at, sizes)
        mount(self.sweep_body, self.sweep_figure, True)
        low = miss <= max(NEARLY, 1.5 * miss.min())
        margins = np.array([p.margin for p in points])[low]
        self.sweep_words.value = (
            f"<b style='color:{CURVES[1]}'>■</b> least miss, <b style='color:{CURVES[0]}'>■</b> "
            f"number of candidates (right). {int(low.sum())} of {len(points)} margins explain the "
            f"weights best, from {margins.min():.2f} to {margins.max():.2f}: the attacker cannot "
            "tell these apart. Points on kinks narrow them down."
        )

    def end(self) -> None:
        """Stop a sweep when the page ends."""
        self.job.close()


def _upright(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Upright bars as one path with gaps; two equal places where there is none."""
    if not len(x):
        return NOWHERE, NOWHERE
    gap = np.full(len(x), np.nan)
    pad = 0.004 * max(float(high.max()), 1e-9)  # a bar of one value is still to be seen
    path = np.column_stack([np.maximum(low - pad, 0), high + pad, gap])
    return np.column_stack([x, x, gap]).reshape(-1), path.reshape(-1)


def _set(mark: bq.Mark, x: np.ndarray, y: np.ndarray) -> None:
    if not (np.array_equal(mark.x, x, True) and np.array_equal(mark.y, y, True)):
        with mark.hold_sync():
            mark.x, mark.y = x.copy(), y.copy()
