"""The page on membership inference: composition, and what happens when a control moves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from time import perf_counter
from typing import Any

import ipywidgets as w

from explorer.engine.data.highdim import ASSUMPTIONS, Law
from explorer.engine.membership.experiment import MembershipTrial, membership_experiment
from explorer.engine.membership.two_neuron import NotSeparableError
from explorer.engine.progress import Progress
from explorer.engine.threads import limit_threads
from explorer.page.apps.membership_scene import (
    Outcome,
    Settings,
    World,
    outcome,
    scene,
    world,
)
from explorer.page.job import Job
from explorer.page.parts.access import Access, tips_of
from explorer.page.parts.membership_charts import (
    FRESH,
    LIMIT,
    MEMBER,
    TRAINED,
    Histogram,
    ProofChart,
    RocChart,
    TrainedChart,
    key,
)
from explorer.page.parts.membership_controls import Controls, TrainedControls
from explorer.page.parts.page import Page, show, way_back
from explorer.page.words import membership as says
from explorer.research import rates
from explorer.research.words.membership import rule
from explorer.style import CSS

REDRAW_AFTER_S = 0.02  # arbitrary: moves of a slider within this time are drawn once
THEOREM = (
    "<b>Theorem</b> (Smorodinsky, Vardi, Safran 2024, 4.2; restated). <b>Assumes</b> weights at a "
    "KKT point of margin m; n training points drawn independently from a law with "
    "n·|⟨x, x′⟩| = o(d) and ‖x‖² = Ω(d); nothing about the labels. <b>Then</b>, with high "
    "probability as d grows, |Φ| = m on every training point and |Φ(x)| = O(n m δ/Δ) = o(m) at a "
    "fresh x. "
)


class MembershipApp(Page):
    """One visitor's page."""

    def __init__(self, settings: Settings | None = None) -> None:
        """Build the page and draw it once."""
        limit_threads()  # many kernels share one machine
        self.controls = Controls(settings or Settings(), self._changed)
        self.trained = TrainedControls(self._toggle)
        self.charts = Histogram(), RocChart(), ProofChart(), TrainedChart()
        self.drawn_ms = 0.0
        self.trials: list[MembershipTrial] = []
        self._world: tuple[object, World] | None = None
        self._due: asyncio.TimerHandle | None = None
        self.job = Job()
        super().__init__()
        self.theorem = w.HTML().add_class("mx-note")
        self.timing = w.HTML().add_class("mx-note")
        self.widget = self._compose()
        # Loads scikit-learn now, for half a second, rather than at the first move of a slider.
        self.guarded(rates.ready)
        self.redraw()

    def _compose(self) -> w.VBox:
        words = (
            key("Who is a member?", (MEMBER, "members"), (FRESH, "fresh points"),
                 (LIMIT, "threshold")),
            "",
            key("The certificate ρ", (LIMIT, "½: below it no error is possible")),
            key("Trained networks", *((c, t) for _, t, c in TRAINED)),
        )  # fmt: skip
        titles = [w.HTML(text).add_class("mx-chart-title") for text in words]
        self.roc_title = titles[1]
        figures = [chart.figure for chart in self.charts]
        charts = w.HBox([
            w.VBox([title, figure]).add_class("mx-card")
            for title, figure in zip(titles, figures, strict=True)
        ]).add_class("mx-charts")  # fmt: skip
        charts.layout.grid_template_columns = "repeat(auto-fit, minmax(min(100%, 460px), 1fr))"
        title = w.HTML("Membership inference").add_class("mx-title")
        head = w.HBox([title, w.HTML(way_back())]).add_class("mx-header")
        body = w.VBox([head, self.verdict, self.controls.widget, charts,
                       self.trained.widget, self.failure, self.theorem, self.timing])  # fmt: skip
        parts = [w.HTML(CSS), Access(tips=tips_of(body)), body]
        return w.VBox(parts, layout=w.Layout(overflow="visible")).add_class("mx-app")

    # --- the exact network --------------------------------------------------------------------
    def _changed(self) -> None:
        """Redraw soon: a slider in motion sends more values than can be drawn."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no clock, as in a script: at once
            self.redraw()
            return
        if self._due is None:
            self._due = loop.call_later(REDRAW_AFTER_S, self.redraw)

    def redraw(self) -> None:
        """Compute and show what the controls describe; failures are shown too."""
        self._due = None
        self.guarded(self._redraw)

    def _redraw(self) -> None:
        begun = perf_counter()
        settings = self.controls.settings()
        try:
            there = self._world_of(settings)
        except NotSeparableError as error:
            self._empty(str(error))
        else:
            self._show(there, outcome(settings, there), settings.law)
        self.drawn_ms = 1000 * (perf_counter() - begun)
        self.timing.value = f"Computed in {self.drawn_ms:.0f} ms."

    def _world_of(self, settings: Settings) -> World:
        if self._world is None or self._world[0] != settings.drawn:
            self._world = settings.drawn, world(*settings.drawn)
        return self._world[1]

    def _show(self, there: World, found: Outcome, law: Law) -> None:
        histogram, curve, proof, _ = self.charts
        words, tone = says.sentence(there, found)
        self.say(words, tone)
        histogram.show(there, found)
        every = rates.roc(there.members, there.held_out)
        curve.show(every, found)
        low = rates.LEVELS[0]
        self.roc_title.value = key(
            f"Every threshold: {every.tpr_at(low):.0%} found at {low:.1%} false positives",
            (MEMBER, f"ROC, area {every.auc:.3f}"), (LIMIT, "this rule"),
        )  # fmt: skip
        proof.show(there)
        delta = max(there.proof.delta, there.proof.delta_fresh)
        self.theorem.value = (
            f"{THEOREM}<br><b>Here</b>: {escape(ASSUMPTIONS[law])}; "
            f"nδ/Δ = {there.proof.n * delta / there.proof.least:.3g} (δ = {delta:.3g}, "
            f"Δ = {there.proof.least:.4g}; the certificate needs it well below ½). "
            f"{escape(says.network(there))} The rule: {escape(rule(found.rule))}."
        )

    def _empty(self, words: str) -> None:
        histogram, curve, proof, _ = self.charts
        self.say(f"No network to attack: {words}", "warn")
        histogram.show(None, None)
        curve.show(None, None)
        self.roc_title.value = key("Every threshold: none", (LIMIT, "this rule"))
        proof.show(None)
        self.theorem.value = THEOREM

    # --- trained networks ---------------------------------------------------------------------
    def _toggle(self) -> None:
        if self.job.busy:
            self.job.cancel()
        else:
            self.run_training()

    def run_training(self) -> None:
        """Train one network after the other beside the page and show each; a cancel stops it."""
        self.failure.layout.display = "none"
        try:
            config = self.trained.config(self.controls.settings())
        except ValueError as error:  # the controls describe no experiment
            self.fail(error)
            return
        self.trials, total = [], len(config.dims) * config.trials

        def work(progress: Progress) -> Iterator[MembershipTrial]:
            yield from membership_experiment(config, progress)

        def take(trial: MembershipTrial) -> None:
            self.trials.append(trial)
            self.trained.progress(len(self.trials), trial.d)
            self.charts[3].show(rates.summary([t.row() for t in self.trials]))

        def ended() -> None:
            self.trained.idle()
            if self.job.error is not None:
                self.fail(self.job.error)
            else:
                self.trained.told(self.trials, total)

        self.trained.busy(total)
        self.job.start(work, take, ended)

    def close(self) -> None:
        """Stop the experiment and free the widgets; a second call does nothing."""
        self.job.close()
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if self.widget.comm is not None:
            self.widget.close()


_shown: MembershipApp | None = None


def membership(scenario: str | None = None, **settings: Any) -> MembershipApp:  # noqa: ANN401
    """Show the page on membership inference in this cell, replacing the one shown before.

    Args:
        scenario: name of a row of `explorer.page.apps.membership_scene.SCENES` to open on.
        **settings: fields of `explorer.page.apps.membership_scene.Settings`, such as d=100, n=20.

    Returns:
        The page.
    """
    global _shown
    start = Settings() if scenario is None else scene(scenario)
    _shown = show(_shown, lambda: MembershipApp(replace(start, **settings)))
    return _shown
