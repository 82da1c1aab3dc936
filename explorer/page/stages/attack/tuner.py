"""Settings of the KKT attack found without the truth: a live front, and the published ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from html import escape

import ipywidgets as w

from explorer.engine.attacks.target import Target
from explorer.engine.progress import Progress, between, no_progress
from explorer.engine.roster import by_key
from explorer.page import branches, play
from explorer.page.ask import Ask
from explorer.page.controls.job_row import JobButton, progress_bar
from explorer.page.controls.pick import Pick
from explorer.page.controls.settings import choice, whole
from explorer.page.frame import Frame
from explorer.page.job import JobState
from explorer.page.panels.base import Panel, button
from explorer.page.view.chart import ChartView
from explorer.research import runs, tuning
from explorer.research.pictures.charts import front_chart
from explorer.research.tuning import Trial, TuneConfig
from explorer.research.words import tuning as tuning_words
from explorer.research.words import verdicts

# --- The trials of a search: a scatter with its front, and the same as a list for the keyboard --


class Front:
    """Shows trials that did not fail; a chosen one is given by its index among them."""

    def __init__(self, load: Callable[[int], None]) -> None:
        """`load` is called with the index."""
        self.view = ChartView()
        self.view.on_choose(load)
        self.pick = Pick(
            "trial", "The trials, with what the weights tell of each: choosing one loads its "
            "settings, as a click on its dot does", load,
        )  # fmt: skip
        self.list = self.pick.list
        self.draw((), None)

    def draw(self, trials: Sequence[Trial], chosen: Trial | None) -> None:
        """Draw all trials, their front, and a ring around the `chosen` best."""
        good = [t for t in trials if not t.failure]
        for one in (self.view, self.list):  # before there are trials they would be a gap
            one.layout.display = "" if good else "none"
        self.view.draw(front_chart(good, tuning.front(trials), chosen))
        self.pick.fill([(tuning_words.trial(t), i) for i, t in enumerate(good)], self.list.value)


TUNE, CANCEL = "Tune", "Cancel tuning"
OURS = "our defaults"
EMPTY = (
    "Press Tune: each trial attacks from three noises. Low residual and high agreement of the "
    "three are what an attacker can see; the truth is not asked."
)
HINT = "Click a trial, or choose it in the list, to load its settings."
SIZE: dict[str, int] = {}  # of a trial, where it is not that of TuneConfig


class Tuner(Panel):
    """Tune, watch the front, click a trial; or take published settings."""

    stages = ("attack",)

    def seen(self, frame: Frame) -> bool:
        """Return whether the attack on screen is the one that is tuned."""
        return super().seen(frame) and by_key(frame.attack.name) is tuning.TUNED

    def build(self) -> None:
        """Make controls above the trials as a chart and as a list."""
        self.target: Target | None = None
        self.rows: list[Trial] = []
        self.config = TuneConfig()  # of the search whose trials these are
        self.job = Ask(self)
        published = [(f"as published, {name}", name) for name in tuning.READY]
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
        self.go = JobButton(
            self.job, TUNE, CANCEL, "Try settings on the attacked weights; what is done stays, and "
            "the same search goes on from there", self.command(self._start),
        )  # fmt: skip
        self.progress = progress_bar(self.job, "Trials done")
        self.said = w.HTML(EMPTY).add_class("mx-note")
        self.front = Front(lambda index: self.command(lambda: self.load(index))(None))
        head = w.HBox([self.ready, load]).add_class("mx-row")
        run = w.HBox([self.kind, self.trials, self.go, self.progress]).add_class("mx-row")
        self.widget = w.VBox([head, run, self.front.view, self.front.list, self.said])

    # --- settings ---------------------------------------------------------------------------
    def _load_ready(self) -> None:
        config = tuning.ready(self._aimed(), self.ready.value, self.session.attack_config)
        kept = branches.make_room(self.session)
        play.configure(self.session, **asdict(config))
        play.tell(self.session, kept.strip())

    def load(self, index: int) -> None:
        """Put the settings of the drawn trial with this index into the form."""
        trial = [t for t in self.rows if not t.failure][index]
        now = self.session.attack_config
        kept = branches.make_room(self.session)
        play.configure(self.session, **asdict(tuning.full_length(trial, now.m, now.steps)))
        self.front.pick.choose(index)
        self.said.value = (
            f"Trial {trial.number} is loaded: residual {trial.residual:.3g}, agreement "
            f"{trial.agreement:.3g} in {TuneConfig.steps} steps. Press Play; the verdict on top "
            f"compares its claims with sets that stand for chance.{escape(kept)}"
        )

    def _aimed(self) -> Target:
        target = self.session.frame.target
        if target is None:
            raise ValueError("No weights to tune on: train a network, then turn to Attack.")
        return target

    # --- search -----------------------------------------------------------------------------
    def _start(self) -> None:
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
        play.pause(self.session)
        self.target, self.config, self.said.value = target, config, begun
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
            work, partial(self._take, begun), self._ended,
            lambda: not self._same_weights(self.session.frame),
        )  # fmt: skip

    def _take(self, begun: str, part: Trial | str) -> None:
        """One more trial, or the verdict; `begun` is said all the while."""
        if isinstance(part, str):
            self.said.value = part
            return
        self.rows.append(part)
        self.said.value = f"{begun}{len(self.rows)} of {self.config.trials} trials. {HINT}"
        self.draw()
        if len(self.rows) == self.config.trials:
            self._judging(begun)

    def _judging(self, begun: str) -> None:
        self.said.value = f"{begun}Trying the best and the defaults from a fresh noise."

    def _ended(self) -> None:
        if self.job.state is JobState.CANCELLED:
            self.said.value = self._cancelled(len(self.rows) >= self.config.trials)
        elif self.job.error is not None:
            self.said.value = ""

    def _cancelled(self, judging: bool) -> str:
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
                    watch=runs.watch_of(between(progress, k / 2, (k + 1) / 2)),
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
        """Draw the finished trials."""
        self.front.draw(self.rows, tuning.best(self.rows, self.config.search))

    def render(self, frame: Frame) -> None:
        """Drop trials on weights that are no longer attacked."""
        if self.target is None or self._same_weights(frame):
            return
        dropped = f"The weights changed: {len(self.rows)} trials on those before were dropped. "
        busy = self.job.busy
        self.said.value = (dropped if self.rows or busy else "") + EMPTY
        if busy:
            play.tell(self.session, f"{dropped}The search was cancelled.")
            self.job.cancel()
        self.target, self.rows = None, []
        self.draw()

    def _same_weights(self, frame: Frame) -> bool:
        """Whether the trials are of the weights that are attacked, and these are still trained."""
        trained_on = frame.training.state is not None and not frame.newest
        return frame.target is self.target and not trained_on

    def unseen(self, frame: Frame) -> None:
        """Do the same out of sight."""
        self.render(frame)
