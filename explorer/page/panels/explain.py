"""Which other points explain the same weights: read-outs, the curve of a drag, linear programs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import bqplot as bq
import ipywidgets as w
import numpy as np

from explorer.engine.certificate import TAU_TRAINED
from explorer.engine.explanations.alternatives import forced_points
from explorer.engine.explanations.cells import KINK
from explorer.engine.explanations.programs import Sample, Stopped, farthest, forced_mass, sample_of
from explorer.page import play
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel, button, chart, mounted, titled
from explorer.page.stages import explain
from explorer.research.explained import Explained
from explorer.research.words import explanations
from explorer.research.words.numbers import digits
from explorer.style import CURVES, INK

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
        """A chart, read-outs, the hand's buttons, and two linear programs."""
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
        self.plot = titled("A point on its way to two", w.VBox(
            [figure, w.HTML(legend).add_class("mx-note")], layout=visible,
        ))  # fmt: skip
        self.below = w.VBox(layout=visible)  # a chart that comes and goes moves nothing down here
        hand = titled("Other points, the same weights", w.VBox([self.bar, self.words]))
        self.widget = w.VBox([hand, self._hand(), self._programs(), self.below], layout=visible)
        self._task: asyncio.Task[None] | None = None
        self._stop = False

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
        self.cancel = button("Cancel", "Stop the linear programs", disabled=True)
        self.run_forced.on_click(lambda _: self._start(self._forced))
        self.run_farthest.on_click(lambda _: self._start(self._farthest))
        self.cancel.on_click(lambda _: self._halt())
        self.progress = w.FloatProgress(
            value=0, min=0, max=1, tooltip="Linear programs solved", layout=w.Layout(width="120px")
        )
        self.said = w.HTML().add_class("mx-note")
        row = w.HBox([self.run_forced, self.run_farthest, self.progress, self.cancel])
        return titled("All training sets at once", w.VBox([row.add_class("mx-row"), self.said]))

    # --- linear programs ----------------------------------------------------------------------
    def _start(self, job: Callable[[Explained], Any]) -> None:
        if self._task is not None and not self._task.done():
            return
        self._stop = False
        try:
            state = explain.explanation(self.session)
            self._task = asyncio.get_running_loop().create_task(self._guarded(job, state))
        except ValueError as error:
            play.tell(self.session, str(error))

    def _halt(self) -> None:
        self._stop = True

    async def _guarded(self, job: Callable[[Explained], Any], state: Explained) -> None:
        self.cancel.disabled, self.progress.value = False, 0.05
        self.said.value = "Solving …"
        try:
            await job(state)
        except Stopped:
            self.said.value = "Cancelled; nothing was changed."
        except ValueError as error:
            self.said.value = ""
            play.tell(self.session, str(error))
        except Exception as error:  # would vanish in the kernel's log
            self.fail(error)
        finally:
            self.cancel.disabled, self.progress.value = True, 0.0

    async def _forced(self, state: Explained) -> None:
        loop = asyncio.get_running_loop()

        def progress(done: int, total: int) -> bool:
            loop.call_soon_threadsafe(setattr, self.progress, "value", (done + 0.5) / total)
            return not self._stop

        sample = await asyncio.to_thread(_sample, state, self.session.extent, 0)
        mass = await asyncio.to_thread(forced_mass, sample, progress)
        held = self.session.frame.explain
        if held is None or held.present.target is not state.target:
            return
        explain.take_forced(self.session, mass)
        forced, edge = forced_points(mass, sample.mass)
        rest = f"{'' if sample.exact else ' Up to sampling.'}{explanations.edge(edge)}"
        self.said.value = (
            f"{int(forced.sum())} of {len(mass)} support points are forced (ringed): every "
            f"training set on the margin within ±{sample.extent:g} that explains the weights to "
            f"{sample.tolerance:.0e} has mass within {sample.radius:g} of each, at least the share "
            f"of λ written there.{rest}"
        )

    async def _farthest(self, state: Explained) -> None:
        sample = await asyncio.to_thread(_sample, state, self.session.extent, 80)
        self.progress.value = 0.5
        found = await asyncio.to_thread(farthest, sample)
        if self._stop:
            raise Stopped("stopped before it was shown")
        held = self.session.frame.explain
        if held is None or held.present.target is not state.target:
            return
        explain.take_farthest(self.session, found)
        self.said.value = explanations.farthest(found)

    # --- what is seen -------------------------------------------------------------------------
    def _on_free(self, change: dict[str, Any]) -> None:
        self.command(lambda: explain.set_free(self.session, change["new"]))(None)

    def render(self, frame: Frame) -> None:
        """The curve of the present drag, and the read-outs."""
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
                mounted(self.below, self.plot, False)
            if state.selected is None and len(self.residual.x) > 2:
                for mark in (self.residual, self.margin):
                    mark.x = mark.y = np.zeros(2)  # an empty path is an error to bqplot
                for mark in (self.jumps, self.here):
                    mark.x = mark.y = np.zeros(0)
            return
        mounted(self.below, self.plot, True)
        at, off, margin = (slide.curve[:, i].numpy() for i in range(3))
        ends = [slide.extent.plus, -slide.extent.minus]
        shown = min(
            slide.reach, 1.6 * max([abs(e) for e in ends if 1e-3 < abs(e) < slide.reach] or [2.0])
        )
        shown = rounded_up(shown)
        inside = np.abs(at) <= shown
        top = rounded_up(max(LEAST_TOP, 1.1 * float(off[inside].max(initial=0.0))))
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


def rounded_up(value: float) -> float:
    """The next of 1, 2, 4, 6, 8 or 10 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(m * power for m in (1, 2, 4, 6, 8, 10) if m * power >= value * (1 - 1e-9)))


def _sample(state: Explained, extent: float, grid: int) -> Sample:
    tau = KINK if state.exact else TAU_TRAINED
    return sample_of(state.net, state.truth.x, state.truth.y, extent, tau, grid)


def _dots(scales: dict[str, bq.Scale], colour: str, marker: str, size: int) -> bq.Scatter:
    return bq.Scatter(
        x=np.zeros(0), y=np.zeros(0), scales=scales, colors=[colour], marker=marker,
        default_size=size,
    )  # fmt: skip
