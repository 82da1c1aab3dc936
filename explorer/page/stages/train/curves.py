"""Numbers over steps: margin and unexplained share of training, the losses of an attack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from explorer.engine.certificate import Certificate
from explorer.engine.charts import Axis, Chart, Guide
from explorer.engine.number_words import count, plain, share
from explorer.engine.progress import Progress, with_progress
from explorer.engine.roster import by_key
from explorer.engine.training import TrainState
from explorer.page import branches
from explorer.page.ask import Ask
from explorer.page.frame import Frame, certificate_of
from explorer.page.job import JobState
from explorer.page.lessons import course
from explorer.page.panels.base import ChartPanel
from explorer.page.plane.words import NO_SUM
from explorer.page.session import IN_CLASS
from explorer.page.stages.train import commands as train
from explorer.research.pictures.charts import (
    LOSS,
    MARGIN_COLUMNS,
    MARGINS,
    UNEXPLAINED,
    Curve,
    curves_of,
    known_values,
    loss_axis,
    margin_curves,
    step_axis,
    step_series,
    unexplained_axis,
    zero_axis,
)

# Before each moment that nobody asked for; arbitrary: a click after a pause finds the kernel free.
BREATH_S = 1.0 if IN_CLASS else 0.1
FIRST = "The curve begins with the first step."
SOLVED = "Solved, without a step: the points leave {} of the weights unexplained."
MERGED = " The network has {} in place of {}: those that act alike are merged."


class CurvesPanel(ChartPanel):
    """Columns of the timeline, with a line at the step on screen that can be dragged.

    Attributes:
        columns: each with its name on screen.
        ratios: whether steps stand on a log axis.
        measured: whether dots show at which steps there are values.
        goal: of a lesson, the one that asks for a value of this chart: a dashed line is there.
    """

    follows: tuple[str, ...] = ("lesson",)
    title, note = "", ""
    columns: tuple[tuple[str, str], ...] = ()
    ratios = True
    measured = False
    goal = ""

    def build(self) -> None:
        """A drag of the line is a drag of the time slider."""
        super().build()
        self.view.on("handle", partial(self.do, self._seek))

    def _seek(self, t: float) -> None:
        branches.seek(self.session, self.session.timeline.nearest(round(t)))

    def curves(self) -> list[Curve]:
        """Return the columns of the timeline of this stage."""
        return curves_of(self.columns, self.session.timeline.column, self.ratios)

    def upright(self, values: np.ndarray[Any, Any]) -> Axis:
        """Return the upright axis for these values."""
        return zero_axis(values)

    def chart(self, frame: Frame) -> Chart:
        """Return one line for each column, named at its end with its value."""
        curves = self.curves()
        values = known_values(curves)
        asked = course.asked_value(self.session, self.goal)
        aims = [] if asked is None else [asked]
        axis = self.upright(np.append(values, aims))
        said = [self.end_value(frame, axis, v) for *_, v in curves]
        series = step_series(curves, axis, said, self.measured)
        state = frame.state
        x = step_axis(max(self.session.timeline.last_t, 1), self.ratios)
        now = None if state is None or not len(values) else float(np.clip(state.t, x.low, x.high))
        foot = "" if len(values) else self.empty(frame)
        rules = [Guide(aim, f"{100 * aim:g}%" if axis.percent else f"{aim:g}") for aim in aims]
        return Chart(series, x, axis, self.title, self.note, foot, rules=rules, handle=now,
                     handle_name="step", label=self.words(curves, axis, frame))  # fmt: skip

    def empty(self, frame: Frame) -> str:
        """Return what stands in place of a curve."""
        return FIRST

    def end_value(self, frame: Frame, axis: Axis, values: np.ndarray[Any, Any]) -> str:
        """Return the value that stands at the end of a line: the newest."""
        return newest(axis, values)

    def words(self, curves: list[Curve], axis: Axis, frame: Frame) -> str:
        """Return what a screen reader says: the values that stand at the lines."""
        told = ", ".join(
            f"{name} {self.end_value(frame, axis, v)}".rstrip() for name, _, v in curves if len(v)
        )
        return f"{self.title}: {told or 'nothing yet'}"


def newest(axis: Axis, v: np.ndarray[Any, Any]) -> str:
    """Return the last value in words."""
    if not len(v):
        return ""
    if axis.percent:
        return share(float(v[-1]))
    return f"{v[-1]:.0f}" if axis.whole else plain(f"{v[-1]:.3g}")


class MarginCurves(CurvesPanel):
    """The normalised margin of Lyu and Li, and its smoothed lower bound."""

    stages = ("train",)
    title, note = MARGINS
    columns = MARGIN_COLUMNS
    goal = "normalised margin at least"

    def upright(self, values: np.ndarray[Any, Any]) -> Axis:
        """Return an axis from 0: before the points are separated there is no margin."""
        return super().upright(values[values > 0])

    def curves(self) -> list[Curve]:
        """Return the margins from the step at which there is one."""
        return margin_curves(self.session.timeline.column)


class ResidualCurves(CurvesPanel):
    """How much of the weights the points leave unexplained, with free slopes at the kinks.

    While the run pauses, the moments on even log steps that were not looked at are looked at.
    """

    stages = ("train",)
    follows = (*CurvesPanel.follows, "opening")
    title, note = UNEXPLAINED
    goal = "residual at most"
    columns = (("unexplained", "unexplained"),)
    measured = True

    def build(self) -> None:
        """Make what fills the curve."""
        super().build()
        self.job = Ask(self, pause_s=BREATH_S)

    def chart(self, frame: Frame) -> Chart:
        """Return the curve; words without axes where no step will make one."""
        made = super().chart(frame)
        return replace(made, series=()) if made.foot not in ("", FIRST) else made

    def empty(self, frame: Frame) -> str:
        """Return what stands in place of a curve: of an exact network what its points leave."""
        made, state = frame.training.certificate, frame.training.state
        if state is not None and not state.net.homogeneous:
            return NO_SUM
        if made is None or not frame.training.is_exact:
            return super().empty(frame)
        words = SOLVED.format(share(made.residual))
        asked = sum(self.session.train_config.widths)
        kept = asked if state is None else sum(state.net.widths)
        return words + MERGED.format(count(kept, "neuron"), asked) * (kept < asked)

    def end_value(self, frame: Frame, axis: Axis, values: np.ndarray[Any, Any]) -> str:
        """Return what the headline says of the step on screen; while it runs, the newest known."""
        if self.session.running:
            return newest(axis, values)
        part = frame.training
        known = part.certificate is not None and part.certified is part.state
        return share(part.certificate.residual) if known and part.certificate is not None else ""

    def upright(self, values: np.ndarray[Any, Any]) -> Axis:
        """Return a log axis up to 100%."""
        return unexplained_axis(values)

    def render(self, frame: Frame) -> None:
        """Show what is known, and look for the rest while nothing runs."""
        super().render(frame)
        if not self.job.busy:
            self._fill(frame)

    def _fill(self, frame: Frame) -> None:
        if self.session.running or self.session.opening or not frame.dataset.n:
            return
        waiting = train.uncertified_states(self.session)
        if not waiting:
            return
        line = self.session.timeline

        def work(progress: Progress) -> Iterator[tuple[TrainState, Certificate]]:
            for state in with_progress(waiting, len(waiting), progress):
                made = certificate_of(state, frame.dataset)
                if made is not None:
                    yield state, made

        def stale() -> bool:
            now = self.session.frame
            return (
                self.session.running
                or self.session.opening
                or now.dataset is not frame.dataset
                or (now.stage != "train" or self.session.timeline is not line)
            )

        def end() -> None:
            self._show()
            if self.job.state is JobState.DONE:  # states that came meanwhile
                self._fill(self.session.frame)

        self.job.begin(work, self._take, end, stale)

    def _take(self, part: tuple[TrainState, Certificate]) -> None:
        train.note(self.session, *part)
        now = perf_counter()
        if now - self._drawn_s >= self.every_s:
            self._drawn_s = now
            self._show()

    def _show(self) -> None:
        self.view.draw(self.chart(self.session.frame))


class LossCurves(CurvesPanel):
    """The numbers of the present attack over its steps; each attack names its own columns."""

    stages = ("attack",)
    title = LOSS
    ratios = False

    def belongs(self, frame: Frame) -> bool:
        """Return whether the present attack has curves; one without a loss has none."""
        return super().belongs(frame) and bool(by_key(frame.attack.name).curves)

    def upright(self, values: np.ndarray[Any, Any]) -> Axis:
        """Return a log axis, or a plain one for counts."""
        return loss_axis(values)

    def chart(self, frame: Frame) -> Chart:
        """Return the columns of the present attack."""
        self.columns = self.session.entry.curves
        return super().chart(frame)
