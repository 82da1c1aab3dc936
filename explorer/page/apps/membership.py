"""The page on membership inference: composition, and what happens when a control moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from html import escape
from itertools import pairwise
from time import perf_counter
from typing import Any

import ipywidgets as w

from explorer.engine.charts import NOTHING
from explorer.engine.data.highdim import ASSUMPTIONS, Law
from explorer.engine.membership.experiment import (
    MembershipConfig,
    MembershipTrial,
    membership_experiment,
)
from explorer.engine.membership.two_neuron import NotSeparableError
from explorer.engine.settings import schema, setting_of
from explorer.engine.threads import limit_threads
from explorer.page.apps import membership_words as says
from explorer.page.apps.membership_charts import histogram, proof_chart
from explorer.page.apps.membership_scene import (
    DIMS,
    RULES,
    MembershipScene,
    Outcome,
    World,
    label_options,
    outcome,
    scene,
    world,
)
from explorer.page.apps.page import HeadStep, SidePage, cards_of, key, show
from explorer.page.ask import Ask
from explorer.page.controls.remembered import Remembered
from explorer.page.controls.row import Item, Row, choices
from explorer.page.controls.settings import item_of
from explorer.page.job import Job
from explorer.page.view.brush import BrushView
from explorer.page.view.chart import ChartView
from explorer.research import rates
from explorer.research.pictures.charts import (
    FRESH,
    LIMIT,
    MEMBER,
    TRAINED,
    roc_chart,
    trained_chart,
)
from explorer.research.words.membership import rule

REDRAW_AFTER_S = 0.02  # arbitrary: moves of a slider within this time are drawn once
THEOREM = (
    "<b>Theorem</b> (Smorodinsky, Vardi, Safran 2024, 4.2; restated). <b>Assumes</b> weights at a "
    "KKT point of margin m; n training points drawn independently from a law with "
    "n·|⟨x, x′⟩| = o(d) and ‖x‖² = Ω(d); nothing about the labels. <b>Then</b>, with high "
    "probability as d grows, |Φ| = m on every training point and |Φ(x)| = O(n m δ/Δ) = o(m) at a "
    "fresh x. "
)


TRAINED_DIMS = "10, 20, 50, 100, 200, 400"
FIRST = ("d", "n", "law", "labels", "seed")  # a law comes before the labels that it allows
EXTRA = {"known": ("share",), "leaked": ("share", "suspects"), "bounded": ("low",)}  # of a rule
KEPT = (*FIRST, "rule", "share", "suspects", "low")
KNOWS = (
    "The attacker knows m",
    "One of several suspects is known to be a member",
    "The attacker knows a lower bound of m only",
)

ROC_HINT = "Click to set how many false positives are allowed."

START = "Run the trained experiment"
START_TIP = (
    "Trains networks of 10,000 neurons by the paper's settings, with the distribution, labels, n "
    "and seed above"
)


class SceneControls(Row):
    """The controls of the exact network and the rule: an item for each setting of the scene."""

    def __init__(self, start: MembershipScene, changed: Callable[[], None]) -> None:
        """Make two lines of controls; `changed` is called after each change."""
        self._changed = changed
        dims = choices(*((f"{d}", d) for d in sorted({*DIMS, start.d})))
        made = {
            row.name: item_of(row, self._on_change, value=getattr(start, row.name), live=True)
            for row in schema(MembershipScene)
        }
        made["d"] = replace(made["d"], options=dims)
        rules = choices(*((title, key) for key, title in RULES.items()), tips=KNOWS)
        made["rule"] = replace(made["rule"], kind="segments", options=rules)
        made["1"] = Item("break")
        order = (*FIRST, "1", "rule", "share", "suspects", "low")
        super().__init__(("mx-card",), **{name: made[name] for name in order})
        self._arrange()

    def _on_change(self, _: Any) -> None:  # noqa: ANN401 - of any setting
        self._arrange()
        self._changed()

    def _arrange(self) -> None:
        """Offer the labels that the law allows, and show what the rule asks for."""
        options = choices(*label_options(self.value("law")))
        wanted = self.value("labels")
        known = wanted in [value for _, value, _ in options]
        self.put("labels", options=options, value=wanted if known else "parity")
        asked = EXTRA[self.value("rule")]
        for name in ("share", "suspects", "low"):
            self.put(name, hidden=name not in asked)

    def settings(self) -> MembershipScene:
        """Return the settings of the controls."""
        return MembershipScene(**{name: self.value(name) for name in KEPT})


class TrainedControls(Row):
    """The button, its settings and its progress."""

    def __init__(self, job: Job, start: Callable[[], None]) -> None:
        """One row; `start` begins the experiment on `job`."""
        super().__init__(
            ("mx-card",),
            go=Item("job", START, START_TIP, call=lambda _: start(), job=job, filled=True),
            dims=Item("text", "dimensions", "By commas", TRAINED_DIMS),
            trials=item_of(setting_of(MembershipConfig, "trials"), value=3),
            bar=Item("bar", tip="Share done", job=job),
            said=Item("words", value="Nothing trained yet: the button fills the last chart."),
        )

    def config(self, settings: MembershipScene) -> MembershipConfig:
        """Return the experiment that the controls describe.

        Raises:
            ValueError: if the dimensions are not a list of numbers, or are missing.
        """
        given = self.value("dims")
        try:
            dims = tuple(int(word) for word in given.split(","))
        except ValueError as error:
            raise ValueError(
                f"dimensions are numbers such as 10, 20, 100; got {given!r}"
            ) from error
        return MembershipConfig(
            dims=tuple(sorted(set(dims))), trials=self.value("trials"), n=settings.n,
            law=settings.law, labels=settings.labels, seed=settings.seed,
        )  # fmt: skip


class MembershipApp(SidePage):
    """One visitor's page."""

    question = "Was this point in the training set?"
    steps = (
        HeadStep(
            "points",
            "1 Points",
            "Draw points, and take the exact network that fits them",
            "[data-item=d]",
        ),
        HeadStep(
            "rule",
            "2 Rule",
            "Choose what the attacker knows, and from where on a point counts",
            "[data-item=rule]",
        ),
        HeadStep(
            "trained",
            "3 Trained networks",
            "Train networks, and look whether the rule holds",
            "[data-item=go]",
        ),
    )

    def __init__(self, settings: MembershipScene | None = None) -> None:
        """Build the page and draw it once."""
        limit_threads()  # many kernels share one machine
        super().__init__("Membership inference")
        self.controls = SceneControls(settings or MembershipScene(), self._redraw_soon)
        self._first = self.controls.settings()
        self.job = Ask(self)
        self.trained = TrainedControls(self.job, self.run_training)
        plain = [ChartView(layout=w.Layout(height="230px")) for _ in range(3)]
        self.roc = BrushView("line", self._set_level, ROC_HINT)
        self.charts: tuple[ChartView | BrushView, ...] = (plain[0], self.roc, *plain[1:])
        self.level = rates.LEVELS[0]  # of false positives, that the title speaks of
        self.drawn_ms = 0.0
        self.trials: list[MembershipTrial] = []
        self._world: tuple[object, World] | None = None
        self._right: dict[MembershipScene, bool] = {}  # settings that were looked at
        self._due: asyncio.TimerHandle | None = None
        self.theorem, self.timing = (w.HTML().add_class("mx-note") for _ in range(2))
        words = (
            key("Who is a member?", (MEMBER, "members"), (FRESH, "unseen points"),
                (LIMIT, "threshold")),
            "Every threshold",
            key("Largest output of an unseen point: measured, possible",
                (LIMIT, "½: below it no error")),
            key("Trained networks", *((c, t) for _, t, c in TRAINED)),
        )  # fmt: skip
        titles = [w.HTML(text).add_class("mx-chart-title") for text in words]
        self.roc_title = titles[1]
        charts = cards_of(list(zip(titles, self.charts, strict=True)), "460px")
        body = [self.controls, charts, self.trained, self.failure, self.theorem, self.timing]
        self.compose(body, Remembered(self.controls, self.trained))
        # Loads scikit-learn now, for half a second, rather than at the first move of a slider.
        self.attempt(rates.ready)
        self.redraw()

    def done(self) -> set[str]:
        """Return the steps done: those whose settings were changed, or all that were trained on."""
        if self.trials and not self.job.busy:
            return {"points", "rule", "trained"}
        now = self.controls.settings()
        parts = {"points": FIRST, "rule": KEPT[len(FIRST) :]}
        return {
            key for key, names in parts.items()
            if any(getattr(now, name) != getattr(self._first, name) for name in names)
        }  # fmt: skip

    # --- the exact network --------------------------------------------------------------------
    def _redraw_soon(self) -> None:
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
        self.attempt(self._redraw)

    def _redraw(self) -> None:
        begun = perf_counter()
        settings = self.controls.settings()
        try:
            there = self._world_of(settings)
        except NotSeparableError as error:
            self._empty(str(error))
        else:
            found = outcome(settings, there)
            self._show(there, found, settings.law)
            self._note(settings, found.hits == found.n and not found.alarms)
        self.drawn_ms = 1000 * (perf_counter() - begun)
        self.timing.value = f"Computed in {self.drawn_ms:.0f} ms."

    def _note(self, settings: MembershipScene, right: bool) -> None:
        """Note whether the rule is right here; the lesson asks for the least d where it is."""
        self._right[settings] = right
        below = max((d for d in DIMS if d < settings.d), default=settings.d)
        above = min((d for d in DIMS if d > settings.d), default=settings.d)
        told = [self._right.get(replace(settings, d=d)) for d in (below, settings.d, above)]
        if (False, True) in pairwise(told):
            self.access.task = "membership"

    def _world_of(self, settings: MembershipScene) -> World:
        if self._world is None or self._world[0] != settings.points:
            self._world = settings.points, world(*settings.points)
        return self._world[1]

    def _show(self, there: World, found: Outcome, law: Law) -> None:
        self.say(*says.sentence(there, found))
        every = rates.roc(there.members, there.held_out)
        name = f"ROC, area {every.auc:.3f}"
        roc = roc_chart([(name, MEMBER, every)], (found.fpr, found.tpr))
        drawn = histogram(there, found), roc, proof_chart(there)
        for view, chart in zip(self.charts, drawn, strict=False):
            view.draw(chart)
        self._set_level(self.level)
        delta = max(there.proof.delta, there.proof.delta_fresh)
        self.theorem.value = (
            f"{THEOREM}<br><b>Here</b>: {escape(ASSUMPTIONS[law])}; "
            f"nδ/Δ = {there.proof.n * delta / there.proof.least:.3g} (δ = {delta:.3g}, "
            f"Δ = {there.proof.least:.4g}; the certificate needs it well below ½). "
            f"{escape(says.network(there))} The rule: {escape(rule(found.rule))}."
        )

    def _set_level(self, at: float | None) -> None:
        """Say what the threshold finds that allows this share of false positives."""
        self.level = rates.LEVELS[0] if at is None else at
        if self._world is not None:
            self.roc_title.value = says.threshold(self.level, self._world[1])

    def _empty(self, words: str) -> None:
        self._world = None
        self.say("No network to attack", "warn", words)
        for view in self.charts[:3]:
            view.draw(NOTHING)
        self.roc_title.value = "Every threshold: none"
        self.theorem.value = THEOREM

    # --- trained networks ---------------------------------------------------------------------
    def run_training(self) -> None:
        """Train one network after the other beside the page and show each; a cancel stops it."""
        self.attempt(self._run_training)

    def _run_training(self) -> None:
        config = self.trained.config(self.controls.settings())
        self.trials, total = [], len(config.dims) * config.trials

        def take(trial: MembershipTrial) -> None:
            self.trials.append(trial)
            self.trained.say(says.experiment_progress(len(self.trials), total, trial.d))
            self.charts[3].draw(trained_chart(rates.summary([t.row() for t in self.trials])))

        def end() -> None:
            if self.job.error is None:
                self.trained.say(says.experiment(self.trials, total))
            self.tell_steps()

        self.trained.say("training the first network")
        self.job.begin(partial(membership_experiment, config), take, end)

    def close(self) -> None:
        """End the experiment and free the widgets."""
        super().close()
        if self._due is not None:
            self._due.cancel()
            self._due = None


def membership(scenario: str | None = None, **settings: Any) -> MembershipApp:  # noqa: ANN401
    """Show the page on membership inference in this cell, replacing the one shown before.

    Args:
        scenario: name of a row of `explorer.page.apps.membership_scene.SCENES` to open on.
        **settings: fields of `explorer.page.apps.membership_scene.MembershipScene`, such as
            d=100, n=20.

    Returns:
        The page.
    """
    start = MembershipScene() if scenario is None else scene(scenario)
    return show(MembershipApp, lambda: MembershipApp(replace(start, **settings)))
