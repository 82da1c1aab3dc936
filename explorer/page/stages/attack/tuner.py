"""Settings of the KKT attack found without the truth: a live front, and the published ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from html import escape

import ipywidgets as w

from explorer.engine.attacks.target import Target
from explorer.engine.charts import NOTHING
from explorer.engine.progress import Progress, no_progress, part_progress
from explorer.engine.roster import by_key
from explorer.engine.settings import setting_of
from explorer.page import branches, play
from explorer.page.ask import Ask
from explorer.page.controls.row import Item, Row, choices, pick, pick_options
from explorer.page.controls.settings import item_of
from explorer.page.frame import Frame
from explorer.page.job import JobState
from explorer.page.panels.base import Panel
from explorer.page.view.brush import BrushView
from explorer.research import runs, tuning
from explorer.research.pictures.charts import front_chart
from explorer.research.tuning import Trial, TuneConfig
from explorer.research.words import tuning as tuning_words
from explorer.research.words import verdicts

TUNE, CANCEL = "Tune", "Cancel tuning"
TUNE_TIP = (
    "Try settings on the attacked weights; what is done stays, and the same search goes on from "
    "there"
)
READY_TIP = (
    "Defaults, or a published run of Haim et al. 2022 in our units, on these weights at margin 1"
)
LOAD_TIP = "Put these settings into the form and start the attack anew"
TRIAL_TIP = "The trials, with what the weights tell of each: choosing one loads its settings"
OURS = "our defaults"
EMPTY = (
    "Press Tune: each trial attacks from three noises. Low residual and high agreement of the "
    "three are what an attacker can see; the truth is not asked."
)
HINT = "Draw a lasso around trials to run the best of them, or choose one in the list."
BEST = "Run the best of these"
BEST_TIP = "Load the best trial in the lasso, by residual and agreement, and attack with it"
SIZE: dict[str, int] = {}  # of a trial, where it is not that of TuneConfig


class Tuner(Panel):
    """Tune, watch the front, click a trial; or take published settings."""

    stages = ("attack",)

    def belongs(self, frame: Frame) -> bool:
        """Return whether the attack on screen is the one that is tuned."""
        return super().belongs(frame) and by_key(frame.attack.name) is tuning.TUNED

    def build(self) -> None:
        """Make controls above the trials as a chart and as a list."""
        self.target: Target | None = None
        self.rows: list[Trial] = []
        self.config = TuneConfig()  # of the search whose trials these are
        self.job = Ask(self)
        published = [(f"as published, {name}", name) for name in tuning.READY]
        self.row = Row(
            ready=Item("select", "ready settings", READY_TIP, "", choices((OURS, ""), *published)),
            load=Item("button", "Load", LOAD_TIP, call=self.command(self._load_ready)),
            line=Item("break"),
            search=item_of(setting_of(TuneConfig, "search")),
            trials=item_of(setting_of(TuneConfig, "trials")),
            go=Item("job", TUNE, TUNE_TIP, call=self.command(self._start), job=self.job,
                    cancel=CANCEL),
            share=Item("bar", tip="Trials done", job=self.job),
        )  # fmt: skip

        self.view = BrushView("lasso", self._catch)
        self.caught: list[Trial] = []  # in the lasso
        self.answer = Row(
            trial=pick("trial", TRIAL_TIP, partial(self.do, self.load)),
            best=Item("button", BEST, BEST_TIP, call=self.command(self._run_best), hidden=True),
            said=Item("words", value=EMPTY),
        )
        self.widget = w.VBox([self.row, self.view, self.answer])
        self.draw()

    # --- settings ---------------------------------------------------------------------------
    def _load_ready(self) -> None:
        config = tuning.ready(
            self._present_target(), self.row.value("ready"), self.session.attack_config
        )
        kept = branches.make_room(self.session, "ready settings")
        play.configure(self.session, **asdict(config))
        self.tell(kept.strip())

    def load(self, index: int) -> None:
        """Put the settings of the drawn trial with this index into the form."""
        trial = [t for t in self.rows if not t.failure][index]
        now = self.session.attack_config
        kept = branches.make_room(self.session, f"trial {trial.number}")
        play.configure(self.session, **asdict(tuning.full_length(trial, now.m, now.steps)))
        self.answer.put("trial", value=index)
        self.answer.say(
            f"Trial {trial.number} is loaded: residual {trial.residual:.3g}, agreement "
            f"{trial.agreement:.3g} in {TuneConfig.steps} steps. Press Play; the verdict on top "
            f"compares its claims with sets that stand for chance.{escape(kept)}"
        )

    def _catch(self, ids: list[int] | None) -> None:
        """Offer to run the best of the trials in the lasso."""
        good = [t for t in self.rows if not t.failure]
        self.caught = [good[i] for i in ids or () if i < len(good)]
        self.answer.put("best", hidden=not self.caught)

    def _run_best(self) -> None:
        """Load the best of the trials in the lasso, and attack with its settings."""
        chosen = tuning.best(self.caught, self.config.search)
        good = [t for t in self.rows if not t.failure]
        if chosen is None:
            raise ValueError("No trial is in the lasso: draw one around some dots.")
        self.load(good.index(chosen))
        play.play(self.session)

    def _present_target(self) -> Target:
        target = self.session.frame.target
        if target is None:
            raise ValueError("No weights to tune on: train a network, then turn to Attack.")
        return target

    # --- search -----------------------------------------------------------------------------
    def _start(self) -> None:
        target = self._present_target()
        config = TuneConfig(
            self.row.value("search"), self.row.value("trials"), seed=self.session.seed, **SIZE
        )
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
        play.pause(self.session)
        self.target, self.config = target, config
        self.answer.say(begun)
        self.draw()
        if len(self.rows) >= config.trials:
            self._judging(begun)
        frame, there = self.session.frame, tuple(self.rows)

        def work(progress: Progress) -> Iterator[Trial | str]:
            rows = list(there)
            for trial in tuning.tune(target, config, there, progress):
                rows.append(trial)
                yield trial
            yield self.verdict(config, rows, frame, lambda _: progress(1.0))

        self.job.begin(
            work, partial(self._take, begun), self._end,
            lambda: not self._same_weights(self.session.frame),
        )  # fmt: skip

    def _take(self, begun: str, part: Trial | str) -> None:
        """One more trial, or the verdict; `begun` is said all the while."""
        if isinstance(part, str):
            self.answer.say(part)
            return
        self.rows.append(part)
        self.answer.say(f"{begun}{len(self.rows)} of {self.config.trials} trials. {HINT}")
        self.draw()
        if len(self.rows) == self.config.trials:
            self._judging(begun)

    def _judging(self, begun: str) -> None:
        self.answer.say(f"{begun}Trying the best and the defaults from a fresh noise.")

    def _end(self) -> None:
        if self.job.state is JobState.CANCELLED:
            self.answer.say(self._cancel_words(len(self.rows) >= self.config.trials))
        elif self.job.error is not None:
            self.answer.say("")

    def _cancel_words(self, judging: bool) -> str:
        there = f"{len(self.rows)} trials, which stay"
        if judging:
            return (
                f"Cancelled before the verdict: there are {there}. Tune gives the verdict. {HINT}"
            )
        return f"Cancelled after {there}, without a verdict; Tune goes on from there. {HINT}"

    def verdict(
        self,
        config: TuneConfig,
        rows: Sequence[Trial],
        frame: Frame,
        progress: Progress = no_progress,
    ) -> str:
        """Return what the best trial is worth on the weights of `frame`, beside the defaults.

        From a noise that no trial used.
        """
        chosen, target, truth = tuning.best(rows, config.search), frame.target, frame.truth
        if chosen is None or target is None:
            return "Every trial failed: train longer, or take other weights."
        if truth is None:
            return HINT
        texts, made = [], frame.training.certificate
        usual = tuning.TUNED.config(m=config.m, steps=config.steps)
        for k, settings in enumerate((chosen.config, usual)):
            try:
                done = runs.attack(
                    target, settings, tuning.fresh_seed(config), truth=truth, certificate=made,
                    keep=math.ceil(settings.steps / tuning.BLOCK),
                    watch=runs.watch_of(part_progress(progress, k / 2, (k + 1) / 2)),
                )  # fmt: skip
                texts.append("" if done.verdict is None else verdicts.verdict(done.verdict))
            except runs.RunFailed as why:
                texts.append(str(why))
        return (
            f"Trial {chosen.number} is the best of {len(rows)} by what the weights tell. "
            f"{HINT}"
            f"<br>From a fresh noise, {config.steps} steps: {texts[0]}"
            f"<br>The defaults: {texts[1]}"
        )

    # --- view -------------------------------------------------------------------------------
    def draw(self) -> None:
        """Draw the finished trials, their front and a ring around the best; and list them."""
        good = [t for t in self.rows if not t.failure]
        chosen, now = tuning.best(self.rows, self.config.search), self.answer.value("trial")
        self.view.draw(front_chart(good, tuning.front(self.rows), chosen) if good else NOTHING)
        listed = pick_options("trial", *((tuning_words.trial(t), i) for i, t in enumerate(good)))
        there = now is not None and now < len(good)
        self.answer.put("trial", hidden=not good, options=listed, value=now if there else None)

    def render(self, frame: Frame) -> None:
        """Drop trials on weights that are no longer attacked."""
        if self.target is None or self._same_weights(frame):
            return
        dropped = f"The weights changed: {len(self.rows)} trials on those before were dropped. "
        busy = self.job.busy
        self.answer.say((dropped if self.rows or busy else "") + EMPTY)
        if busy:
            self.tell(f"{dropped}The search was cancelled.")
            self.job.cancel()
        self.target, self.rows = None, []
        self.draw()

    def _same_weights(self, frame: Frame) -> bool:
        """Whether the trials are of the weights that are attacked, and these are still trained."""
        trained_on = frame.training.state is not None and not frame.newest
        return frame.target is self.target and not trained_on

    def retire(self, frame: Frame) -> None:
        """Do the same out of sight."""
        self.render(frame)
