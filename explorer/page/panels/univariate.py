"""The provable attack step by step: its rules, its claims, and the sweep of the margin."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import ipywidgets as w
import numpy as np

from explorer.engine.attacks.target import Target
from explorer.engine.attacks.univariate import UnivariateConfig, UnivariateState
from explorer.engine.attacks.univariate.config import NEARLY
from explorer.engine.attacks.univariate.view import SWEEP, SweepPoint, sweep
from explorer.engine.charts import Axis, Chart, Rule, Series, next_step
from explorer.engine.progress import Progress, with_progress
from explorer.engine.roster import by_key
from explorer.page.frame import Frame
from explorer.page.job import JobState
from explorer.page.panels.base import Panel, with_title
from explorer.page.parts.row import JobRow
from explorer.page.view.chart import ChartView
from explorer.page.words.univariate import claims, rules

LOWEST = 1e-12  # a miss that is rounding
SWEEP_WORDS = "Sweep the margin"


class UnivariatePanel(Panel):
    """The last step in words, bounds of multipliers as stems, the sweep of the margin."""

    stages = ("attack",)
    state = UnivariateState
    every_s = 0.1

    def build(self) -> None:
        """Make the words at the top; below, the multipliers and the sweep."""
        self.words = w.HTML()
        self.rules = w.HTML().add_class("mx-note")
        self.bars, self.bar_words = ChartView(), w.HTML().add_class("mx-note")
        self.miss, self.sizes = ChartView(), ChartView()
        self.sweep = JobRow(
            SWEEP_WORDS, "What an attacker sees who does not know the margin: how well the places "
            "with |Φ| = m explain the weights, for 41 margins m", self._sweep,
        )  # fmt: skip
        self.swept = w.HBox().add_class("mx-charts")
        self.widget = w.VBox([
            with_title("The provable attack", self.words), self.rules, self.bars, self.bar_words,
            self.sweep.box, self.swept,
        ])  # fmt: skip
        self._of: Target | None = None

    # --- what is seen -----------------------------------------------------------------------
    def render(self, frame: Frame) -> None:
        """Show the sentence of the newest step, the guarantee, and the multipliers."""
        state, target = frame.attack.state, frame.target
        if not isinstance(state, UnivariateState) or target is None:
            return
        if target is not self._of:
            self._of = target
            self._forget()
        config = self.session.attack_config
        self.words.value = escape(by_key(frame.attack.name).words(state, config))
        fold = f"<summary>Rules and assumptions</summary>{rules(target, state)}"
        self.rules.value = f"<details class='mx-more'>{fold}</details>"
        fitted = not np.isnan(state.miss)
        self.bars.draw(bars_chart(state, fitted, self.session.axes.x))
        self.bar_words.value = (
            claims(state) if fitted
            else "Comes after the scan, with claims set to “needed places”: press Play."
        )  # fmt: skip

    # --- the sweep --------------------------------------------------------------------------
    def _forget(self) -> None:
        self.sweep.job.cancel()
        self.swept.children = ()
        self.sweep.say("Press the button: the margin is tried from a quarter to four times.")

    def _sweep(self) -> None:
        """Try one margin after the other, beside the page."""
        target, config = self.session.frame.target, self.session.attack_config
        if self.sweep.job.busy or target is None or not isinstance(config, UnivariateConfig):
            return

        def work(progress: Progress) -> Iterator[list[SweepPoint]]:
            yield list(with_progress(sweep(target, config), len(SWEEP), progress))

        self.sweep.job.start(
            work, self._draw_sweep, self._ended, lambda: self.session.frame.target is not target
        )

    def _ended(self) -> None:
        if self.sweep.job.state is JobState.CANCELLED:
            self.sweep.say("The sweep was cancelled.")
        self.tell_failure(self.sweep.job.error)

    def _draw_sweep(self, points: list[SweepPoint]) -> None:
        self.miss.draw(miss_chart(points))
        self.sizes.draw(sizes_chart(points))
        self.swept.children = (self.miss, self.sizes)
        low = explaining(points)
        margins = [p.margin for p in low]
        self.sweep.say(
            f"{len(low)} of {len(points)} margins explain the weights best, from "
            f"{min(margins):.2f} to {max(margins):.2f}: the attacker cannot tell these apart. "
            "Points on kinks narrow them down."
        )

    def end(self) -> None:
        """Stop a sweep when the page ends."""
        self.sweep.job.close()


def explaining(points: list[SweepPoint]) -> list[SweepPoint]:
    """Return the margins that explain the weights as well as the best does."""
    least = min(p.miss for p in points)
    return [p for p in points if p.miss <= max(NEARLY, 1.5 * least)]


def bars_chart(state: UnivariateState, fitted: bool, across: tuple[float, float]) -> Chart:
    """Return the least and the largest multiplier of each candidate, over its place.

    Args:
        state: of the attack.
        fitted: whether there is an explanation, with a multiplier for each candidate.
        across: centre and half width of the plane.
    """
    x, lam = state.x[:, 0].numpy(), state.lam.numpy()
    least, most, needed = (v.numpy() for v in (state.least, state.most, state.needed))
    solved = ~np.isnan(least)
    finite = most[solved & np.isfinite(most)]
    top = next_step(max([1e-9, *finite.tolist(), *(lam.tolist() if fitted else [])]))
    series = [Series(x[solved & needed], least[solved & needed], "needed at least", "stems",
                     colour="good", look={"width": 1})]  # fmt: skip
    kinds = (("proven", "good", 6, state.proven.numpy()), ("likely", "good", 2,
             state.likely.numpy()), ("not needed", "ink3", 6, ~needed))  # fmt: skip
    pad = 0.004 * top  # a bar of one value is still to be seen
    for name, colour, wide, kind in kinds:
        rows = solved & kind
        series.append(Series(
            x[rows], np.minimum(most[rows], top) + pad, name, "stems",
            z=np.maximum(least[rows] - pad, 0), colour=colour, look={"width": wide},
        ))  # fmt: skip
    shown = slice(None) if fitted else slice(0)
    series.append(Series(x[shown], lam[shown], "one explanation", "dots", look={"size": 3}))
    centre, half = across
    there = bool(fitted or solved.any())
    title = "Least to largest multiplier of each candidate"
    return Chart(
        series if there else (), Axis(centre - half, centre + half, short="x"),
        Axis(0.0, top, short="multiplier λ"), title if there else "", label=title,
    )  # fmt: skip


def _margins(points: list[SweepPoint]) -> Axis:
    tried = [p.margin for p in points]
    ticks = ((0.25, "¼"), (0.5, "½"), (1.0, "1"), (2.0, "2"), (4.0, "4"))
    name = "margin tried over the margin known"
    return Axis(min(tried), max(tried), name, "margin", log=True, ticks=ticks)


def miss_chart(points: list[SweepPoint]) -> Chart:
    """Return how much the places of each margin leave unexplained."""
    line = Series([p.margin for p in points], [max(p.miss, LOWEST) for p in points], "least miss")
    y = Axis(LOWEST, 1.0, short="share of the weights", log=True)
    title = "Unexplained at each margin"
    return Chart([line], _margins(points), y, title, rules=[Rule(1.0, "known", "x")], label=title)


def sizes_chart(points: list[SweepPoint]) -> Chart:
    """Return how many candidates each margin has."""
    sizes = [p.size for p in points]
    line = Series([p.margin for p in points], sizes, "candidates", look={"steps": True})
    y = Axis(0.0, next_step(max(sizes) + 1), short="candidates", whole=True)
    title = "Candidates of each margin"
    return Chart([line], _margins(points), y, title, rules=[Rule(1.0, "", "x")], label=title)
