"""Other points that explain the same weights: numbers, the curve of a drag, linear programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import bqplot as bq
import ipywidgets as w
import numpy as np
from torch import Tensor

from explorer.engine.certificate import TAU_TRAINED
from explorer.engine.explanations.alternatives import forced_points
from explorer.engine.explanations.cells import KINK
from explorer.engine.explanations.programs import (
    Farthest,
    Sample,
    farthest,
    forced_mass,
    sample_of,
)
from explorer.engine.progress import Progress, between
from explorer.page import play
from explorer.page.frame import Frame
from explorer.page.job import Job, JobState
from explorer.page.panels.base import Panel, button, chart, mount, with_title
from explorer.page.parts.job_row import cancel_button, progress_bar
from explorer.page.stages import explain
from explorer.research.explained import Explained
from explorer.research.words import explanations
from explorer.research.words.numbers import digits
from explorer.style import CURVES, INK

T = TypeVar("T")
LEAST_TOP = 0.05  # of the residual's axis: rounding is not to fill the chart; arbitrary
HINT = "Click a filled point on the plane and drag it along its green line."
FREE_TIPS = (
    "Both children keep Φ = ±1: stationarity and margin stay",
    "Stationarity alone; Shift does it for one drag",
)
LEGEND = (
    ("residual", CURVES[0], "■"), ("margin error |yΦ − 1|", CURVES[1], "■"),
    ("predicted jump at the wall", CURVES[2], "◆"), ("now", INK, "●"),
)  # fmt: skip


class ExplainPanel(Panel):
    """The explain stage beside the plane."""

    stages = ("explain",)

    def build(self) -> None:
        """Make a chart, numbers, the buttons of a drag, and two linear programs."""
        self.x = bq.LinearScale(min=-2, max=2, allow_padding=False)
        self.y = bq.LinearScale(min=0, max=LEAST_TOP, allow_padding=False)
        scales = {"x": self.x, "y": self.y}
        self.residual, self.margin = (
            bq.Lines(x=np.zeros(2), y=np.zeros(2), scales=scales, colors=[c], stroke_width=2)
            for c in (CURVES[0], CURVES[1])
        )
        self.margin.line_style = "dashed"
        self.jumps = _dots(scales, CURVES[2], "diamond", 90)
        self.here = _dots(scales, INK, "circle", 60)
        marks = [self.margin, self.residual, self.jumps, self.here]
        figure = self.figure = chart("dragged by", "share", marks, self.x, self.y)
        figure.fig_margin = {**figure.fig_margin, "left": 66}
        figure.axes[0].tick_format = ".2~g"
        legend = " &nbsp; ".join(
            f"<span><b style='color:{c}'>{s}</b> {n}</span>" for n, c, s in LEGEND
        )
        self.words = w.HTML().add_class("mx-note")
        self.bar = w.FloatProgress(
            min=0, max=1, description="residual", tooltip="Share of the weights left unexplained",
            layout=w.Layout(width="100%"), style={"description_width": "initial"},
        )  # fmt: skip
        visible = w.Layout(overflow="visible")
        self.plot = with_title("A point on its way to two", w.VBox(
            [figure, w.HTML(legend).add_class("mx-note")], layout=visible,
        ))  # fmt: skip
        self.below = w.VBox(layout=visible)  # a chart that comes and goes moves nothing down here
        hand = with_title("Other points, the same weights", w.VBox([self.bar, self.words]))
        self.widget = w.VBox([hand, self._hand(), self._programs(), self.below], layout=visible)

    def _hand(self) -> w.Widget:
        session = self.session
        self.free = w.ToggleButtons(
            options=[("Along the level line", False), ("Anywhere", True)], value=False,
            tooltips=FREE_TIPS,
        )  # fmt: skip
        self.free.style.button_width = "auto"
        self.free.observe(self._on_free, names=["value"])
        rows = (
            ("Split widest", "Split the point in hand to the walls of its cell, or to the edge",
             explain.split_widest),
            ("Merge the two", "Merge the point in hand with the one chosen before it (M)",
             explain.combine),
            ("↶ Undo step", "Take the last split or merge back (Ctrl+Z on the plane)",
             play.undo),
            ("↷ Redo step", "Do it again (Ctrl+Y on the plane)", play.redo),
            ("Back to the truth", "Show the points it was trained on", explain.reset),
        )  # fmt: skip
        made = []
        for label, tip, call in rows:
            one = button(label, tip)
            one.on_click(self.command(partial(call, session)))
            made.append(one)
        return w.HBox([self.free, *made]).add_class("mx-row")

    def _programs(self) -> w.Widget:
        self.run_forced = button(
            "Forced mass", "How much mass every training set on the margin that explains the "
            "weights has within 0.03 of each true point: one linear program a point"
        )  # fmt: skip
        self.run_farthest = button(
            "Farthest explanation", "The training set on the margin that explains the weights and "
            "is farthest from the true one, on average: a linear program on sampled points"
        )  # fmt: skip
        self.job = Job()
        self.cancel = cancel_button(self.job, "Stop the linear programs")
        self.run_forced.on_click(
            self.command(lambda: self._start(forced_mass, 0, self._show_forced))
        )
        self.run_farthest.on_click(
            self.command(lambda: self._start(farthest, 80, self._show_farthest))
        )
        self.progress = progress_bar(self.job, "Linear programs solved", "120px")
        self.said = w.HTML().add_class("mx-note")
        row = w.HBox([self.run_forced, self.run_farthest, self.progress, self.cancel])
        return with_title("All training sets at once", w.VBox([row.add_class("mx-row"), self.said]))

    # --- linear programs ----------------------------------------------------------------------
    def _start(
        self, program: Callable[[Sample, Progress], T], grid: int,
        take: Callable[[tuple[Sample, T]], None],
    ) -> None:  # fmt: skip
        """Sample the margin and solve a program on it, unless one is being solved."""
        if self.job.busy:
            return
        state, extent = explain.explanation(self.session), self.session.extent

        def work(progress: Progress) -> Iterator[tuple[Sample, T]]:
            sample = _sample(state, extent, grid, between(progress, 0.0, 0.3))
            yield sample, program(sample, between(progress, 0.3, 1.0))

        def stale() -> bool:
            held = self.session.frame.explain
            return held is None or held.present.target is not state.target

        self.said.value = "Solving …"
        self.job.start(work, take, self._ended, stale)

    def _ended(self) -> None:
        if self.job.state is JobState.CANCELLED:
            self.said.value = "Cancelled; nothing was changed."
        elif self.job.state is not JobState.DONE:
            self.said.value = ""
            self.tell_failure(self.job.error)

    def _show_forced(self, part: tuple[Sample, Tensor]) -> None:
        sample, mass = part
        explain.take_forced(self.session, mass)
        forced, edge = forced_points(mass, sample.mass)
        rest = f"{'' if sample.exact else ' Up to sampling.'}{explanations.edge(edge)}"
        self.said.value = (
            f"{int(forced.sum())} of {len(mass)} support points are forced (ringed): every "
            f"training set on the margin within ±{sample.extent:g} that explains the weights to "
            f"{sample.tolerance:.0e} has mass within {sample.radius:g} of each, at least the share "
            f"of λ written there.{rest}"
        )

    def _show_farthest(self, part: tuple[Sample, Farthest]) -> None:
        explain.take_farthest(self.session, part[1])
        self.said.value = explanations.farthest(part[1])

    def end(self) -> None:
        """End a program when the page ends."""
        self.job.close()

    # --- what is seen -------------------------------------------------------------------------
    def _on_free(self, change: dict[str, Any]) -> None:
        self.command(lambda: explain.set_free(self.session, change["new"]))(None)

    def render(self, frame: Frame) -> None:
        """Show the curve of the present drag, and the numbers."""
        if frame.explain is None:
            self.words.value = (
                "Train a network first: then its training points explain its weights."
            )
            return
        state = frame.explain.present
        if self.free.value != state.free:
            self.free.value = state.free
        self._curve(state)
        self.bar.value = min(state.residual, 1.0)
        words = (
            f"Residual <b>{digits(state.residual, '.1e')}</b> of the norm of the weights, margin "
            f"error <b>{digits(state.margin_error, '.1e')}</b>, slackness "
            f"{digits(state.slackness, '+.1e')}; "
            f"{state.now.n} points, {int(state.pinned.sum())} pinned. "
        )
        self.words.value = words + (_hand_words(state) or HINT)

    def _curve(self, state: Explained) -> None:
        slide = state.slide
        if slide is None:
            if state.selected is None:
                mount(self.below, self.plot, False)
            if state.selected is None and len(self.residual.x) > 2:
                for mark in (self.residual, self.margin):
                    mark.x = mark.y = np.zeros(2)  # an empty path is an error to bqplot
                for mark in (self.jumps, self.here):
                    mark.x = mark.y = np.zeros(0)
            return
        mount(self.below, self.plot, True)
        at, off, margin = (slide.curve[:, i].numpy() for i in range(3))
        ends = [slide.extent.plus, -slide.extent.minus]
        shown = min(
            slide.reach, 1.6 * max([abs(e) for e in ends if 1e-3 < abs(e) < slide.reach] or [2.0])
        )
        shown = nice_ceiling(shown)
        inside = np.abs(at) <= shown
        top = nice_ceiling(max(LEAST_TOP, 1.1 * float(off[inside].max(initial=0.0))))
        self.x.min, self.x.max, self.y.max = -shown, shown, top
        self.figure.axes[0].tick_values = np.array([-shown, -shown / 2, 0, shown / 2, shown])
        self.figure.axes[1].tick_values = np.array([0, top / 2, top])
        for mark, values in ((self.residual, off), (self.margin, np.clip(margin, 0, top))):
            with mark.hold_sync():
                mark.x, mark.y = at[inside].copy(), values[inside].copy()
        spots = np.array([s for s in slide.jumps if abs(s[0]) <= shown]).reshape(-1, 2)
        for dots, places in ((self.jumps, spots), (self.here, [[slide.at, state.residual]])):
            table = np.asarray(places, dtype=float).reshape(-1, 2)
            with dots.hold_sync():
                dots.x, dots.y = table[:, 0].copy(), table[:, 1].copy()


def _hand_words(state: Explained) -> str:
    if state.slide is not None:
        slide = state.slide
        ends = [
            f"{v:.2f}" if np.isfinite(v) else "∞" for v in (slide.extent.minus, slide.extent.plus)
        ]
        return f"The cell reaches from −{ends[0]} to +{ends[1]} here; dragged by {slide.at:+.2f}."
    if state.selected is None:
        return ""
    i = state.selected
    if bool(state.pinned[i]):
        count = state.kinks(i)
        stand = "neuron stands" if count == 1 else "neurons stand"
        return f"Point {i + 1} is pinned ({count} {stand} on it)."
    return f"Point {i + 1} in hand, λ = {float(state.now.lam[i]):.3g}: drag it along its line."


def nice_ceiling(value: float) -> float:
    """The next of 1, 2, 4, 6, 8 or 10 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(m * power for m in (1, 2, 4, 6, 8, 10) if m * power >= value * (1 - 1e-9)))


def _sample(state: Explained, extent: float, grid: int, progress: Progress) -> Sample:
    tau = KINK if state.exact else TAU_TRAINED
    truth = state.truth
    return sample_of(state.net, truth.x, truth.y, extent, tau, grid, progress=progress)


def _dots(scales: dict[str, bq.Scale], colour: str, marker: str, size: int) -> bq.Scatter:
    return bq.Scatter(
        x=np.zeros(0), y=np.zeros(0), scales=scales, colors=[colour], marker=marker,
        default_size=size,
    )  # fmt: skip
