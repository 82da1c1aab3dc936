"""Settings of the KKT attack found without the truth: a live front, and the published ones."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict, replace
from html import escape
from typing import Any, cast

import ipywidgets as w
import torch

from explorer.engine.attacks import kkt
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.kkt.config import PUBLISHED
from explorer.engine.attacks.target import Target
from explorer.engine.controls import control_sets
from explorer.page import branches
from explorer.page.frame import Frame
from explorer.page.frame import judged as judged_fields
from explorer.page.panels.base import Panel, button, chart
from explorer.page.parts.settings import choice, whole
from explorer.page.parts.tuner_front import Front
from explorer.research import tuning
from explorer.research.tuning import Trial, TuneConfig

TUNE, CANCEL = "Tune", "Cancel tuning"
OURS = "our defaults"
EMPTY = (
    "Press Tune: each trial attacks from three noises. Low residual and high agreement of the "
    "three are what an attacker can see; the truth is not asked."
)
HINT = "Click a trial, or choose it in the list, to load its settings."
SIZE: dict[str, int] = {}  # of a trial, where it is not that of TuneConfig


class Tuner(Panel):
    """Tune, watch the front, click a trial; or take published settings. Folded at first."""

    stages = ("attack",)
    attacks = ("kkt",)

    def build(self) -> None:
        """Controls over a scatter that is there only while unfolded."""
        self.target: Target | None = None
        self.rows: list[Trial] = []
        self.config = TuneConfig()  # of the search whose trials these are
        self._task: asyncio.Task[None] | None = None
        published = [(f"as published, {name}", name) for name in PUBLISHED]
        self.ready = choice(
            "ready settings", "Defaults, or a published run of Haim et al. 2022 in our units, on "
            "these weights at margin 1", (OURS, ""), *published,
        )  # fmt: skip
        load = button("Load", "Put these settings into the form and start the attack anew")
        load.on_click(self.command(self._load_ready))
        self.kind = choice(
            "search", "For two goals at once over our knobs, or the published random draws over "
            "Haim's four", ("auto-tune", "auto"), ("published draws", "random"),
        )  # fmt: skip
        self.trials = whole("trials", "How many settings are tried", 1, 500)
        self.trials.value = TuneConfig.trials
        self.go = button(
            TUNE,
            "Try settings on the attacked weights; what is done "
            "stays, and the same search goes on from there. Again: cancel",
        )
        self.go.on_click(self.command(self._toggle))
        self.progress = w.FloatProgress(
            value=0, min=0, max=1, layout=w.Layout(width="160px"), tooltip="Trials done"
        )
        self.said = w.HTML(EMPTY).add_class("mx-note")
        self.front = Front(lambda index: self.command(lambda: self.load(index))(None), chart)
        self.plot = w.VBox(layout=w.Layout(overflow="visible"))
        head = w.HBox([self.ready, load]).add_class("mx-row")
        run = w.HBox([self.kind, self.trials, self.go, self.progress]).add_class("mx-row")
        inside = w.VBox([head, run, self.plot, self.said], layout=w.Layout(overflow="visible"))
        self.fold = w.Accordion(
            children=[inside], selected_index=None,
            titles=("Tune without the truth",),
        )  # fmt: skip
        self.fold.observe(self._on_fold, names=["selected_index"])
        self.widget = self.fold

    def _on_fold(self, change: dict[str, Any]) -> None:
        # A figure that is hidden fails on its size of zero: it is taken out instead.
        self.plot.children = [] if change["new"] is None else [self.front.chart, self.front.list]

    # --- settings ---------------------------------------------------------------------------
    def _load_ready(self) -> None:
        target, now = self._aimed(), cast(KKTConfig, self.session.attack_config)
        if not self.ready.value:
            config = KKTConfig()
        else:
            config = KKTConfig.published(target, self.ready.value, now.m, now.steps)
        kept = branches.make_room(self.session)
        self.session.configure(**asdict(config))
        self.session.message = kept.strip()

    def load(self, index: int) -> None:
        """Put the settings of the drawn trial of this index into the form."""
        trial = [t for t in self.rows if not t.failure][index]
        now = cast(KKTConfig, self.session.attack_config)
        kept = branches.make_room(self.session)
        self.session.configure(**asdict(tuning.full_length(trial, now.m, now.steps)))
        self.front.pick.choose(index)
        self.said.value = (
            f"Trial {trial.number} is loaded: residual {trial.residual:.3g}, agreement "
            f"{trial.agreement:.3g} in {TuneConfig.steps} steps. Press Play; the verdict on top "
            f"compares its claims with sets that stand for chance.{escape(kept)}"
        )

    def _aimed(self) -> Target:
        target = self.session.now.target
        if target is None:
            raise ValueError("No weights to tune on: train a network, then turn to Attack.")
        return target

    # --- search -----------------------------------------------------------------------------
    @property
    def busy(self) -> bool:
        """Whether a search is under way."""
        return self._task is not None and not self._task.done()

    def _toggle(self) -> None:
        if self._task is not None and self.busy:
            self._task.cancel()
            return
        target = self._aimed()
        config = TuneConfig(self.kind.value, self.trials.value, seed=self.session.seed, **SIZE)
        same = self.target is target and bool(self.rows)
        begun = ""
        if same and replace(self.config, trials=config.trials) == config:
            begun = f"The search goes on from the {len(self.rows)} trials that are there. "
        else:
            if same:
                begun = (
                    f"A new search begins: the {len(self.rows)} trials that were there are of "
                    "another search or seed. "
                )
            self.rows = []
        trials = tuning.tune(target, config, tuple(self.rows))
        self.session.running = False
        self.target, self.config, self.said.value = target, config, begun
        self.draw()
        self._task = asyncio.get_event_loop().create_task(self._run(trials, config, target, begun))

    async def _run(
        self,
        trials: Iterator[Trial],
        config: TuneConfig,
        target: Target,
        begun: str,
    ) -> None:
        """One trial after the other beside the page; `begun` is said all the while."""
        self.go.description, judging = CANCEL, False
        self.progress.value = len(self.rows) / config.trials
        try:
            while (trial := await asyncio.to_thread(next, trials, None)) is not None:
                self.rows.append(trial)
                self.progress.value = len(self.rows) / config.trials
                self.said.value = f"{begun}{len(self.rows)} of {config.trials} trials. {HINT}"
                self.draw()
            judging = True
            self.said.value = f"{begun}Trying the best and the defaults from a fresh noise."
            self.said.value = await asyncio.to_thread(self.verdict, config)
        except asyncio.CancelledError:
            if self.target is target:  # else the weights changed, and the page has said so
                self.said.value = self._cancelled(judging)
        except Exception as error:  # would vanish in the task
            self.said.value = ""
            self.fail(error)
        finally:
            self.go.description = TUNE

    def _cancelled(self, judging: bool) -> str:
        there = f"{len(self.rows)} trials, which stay"
        if judging:
            return (
                f"Cancelled before the verdict: there are {there}. Tune gives the verdict. {HINT}"
            )
        return f"Cancelled after {there}, without a verdict; Tune goes on from there. {HINT}"

    def verdict(self, config: TuneConfig) -> str:
        """What the best trial is worth, from a noise that no trial used, beside the defaults."""
        chosen, target = tuning.best(self.rows, config.search), self.target
        if chosen is None or target is None:
            return "Every trial failed: train longer, or take other weights."
        truth = self.session.now.truth
        if truth is None:
            return HINT
        texts, controls = [], control_sets(truth)
        usual = KKTConfig(m=config.m, steps=config.steps)
        for settings in (chosen.config, usual):
            state = kkt.init(
                target, settings, torch.Generator().manual_seed(tuning.fresh_seed(config))
            )
            for following in kkt.iterate(target, state, settings, settings.steps):
                state = following
            frame = replace(self.session.now, target=target, attack=state, attack_name="kkt")
            judged = judged_fields(frame, settings, controls)
            texts.append(judged["verdict"].sentence)
        return (
            f"Trial {chosen.number} is the best of {len(self.rows)} by what the weights tell. "
            f"{HINT}"
            f"<br>From a fresh noise, {config.steps} steps: {texts[0]}"
            f"<br>The defaults: {texts[1]}"
        )

    # --- view -------------------------------------------------------------------------------
    def draw(self) -> None:
        """The trials that are there."""
        self.front.draw(self.rows, tuning.best(self.rows, self.config.search))

    def render(self, frame: Frame) -> None:
        """Forget trials on weights that are no longer the attacked ones."""
        if self.target is None:
            return
        trained_on = frame.train is not None and frame.train.net is not frame.attacked
        if frame.target is self.target and not trained_on:
            return
        dropped = f"The weights changed: {len(self.rows)} trials on those before were dropped. "
        self.said.value = (dropped if self.rows or self.busy else "") + EMPTY
        if self._task is not None and self.busy:
            self.session.message = f"{dropped}The search was cancelled."
            self._task.cancel()
        self.target, self.rows = None, []
        self.progress.value = 0
        self.draw()

    def unseen(self, frame: Frame) -> None:
        """The same out of sight."""
        self.render(frame)

    def end(self) -> None:
        """End the search with the page."""
        if self._task is not None:
            self._task.cancel()
