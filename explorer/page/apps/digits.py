"""The page on real images: train on them, attack, and see each candidate beside its match."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeVar

import ipywidgets as w

from explorer.engine.charts import NOTHING
from explorer.engine.data.images import KINDS, Choice, Draw, draw
from explorer.engine.network import Network
from explorer.engine.progress import Progress
from explorer.engine.roster import DEFAULT, AttackState, by_key
from explorer.engine.scoring import Kind
from explorer.engine.settings import setting_of
from explorer.engine.threads import limit_threads
from explorer.engine.training import TrainState
from explorer.page.apps.digits_charts import Believed, FirstLayer, Gallery
from explorer.page.apps.digits_grid import UNTRAINED, DigitsGrid
from explorer.page.apps.digits_own import OwnCard
from explorer.page.apps.digits_quiz import QuizCard
from explorer.page.apps.page import HeadStep, SidePage, cards_of, columns, key, show
from explorer.page.ask import Ask
from explorer.page.controls.remembered import Remembered
from explorer.page.controls.row import Item, Row, choices
from explorer.page.controls.settings import item_of
from explorer.page.job import Job
from explorer.page.lessons.goals import SMALL_SCALE
from explorer.page.stages.attack.found_words import recovered_images
from explorer.page.view.brush import BrushView
from explorer.page.view.chart import ChartView
from explorer.research import image_runs
from explorer.research.grid import grid_attacks
from explorer.research.image_runs import (
    KNOWS,
    NETWORKS,
    STARTS,
    ImageComparison,
    ImageRun,
    ImageTarget,
    carried_numbers,
    picture_attacks,
    usual_scale,
    usual_steps,
)
from explorer.research.pictures.charts import (
    CONTROL,
    MATCHED,
    output_chart,
    roc_chart,
    share_chart,
)
from explorer.research.words import verdicts

NO_ATTACK = "Nothing yet: press Attack."
SLICE_S = 0.15  # arbitrary: the page answers within this time while work goes on
SHOWN_EVERY_S = 1.0  # arbitrary: time between pictures of a running attack
State = TypeVar("State", TrainState, AttackState)


TRAIN, ATTACK = "Train", "Attack"
# The settings of each row of controls; the folder has its place beside the kind.
IMAGES = ("kind", "folder", "task", "n", "seed")
NETWORK = ("widths", "train_steps", "init_scale")
ATTACKS = ("attack", "start", "starts", "steps", "components", "measure")
# What stands in sight, what "More settings" opens, and where its lines end.
FIRST = ("kind", "folder", "task", "n", "train", "attack", "go", "more")
FOLDED = ("1", "seed", *NETWORK, "2", "start", "starts", "steps", "components", "measure", "vote")
FOLDERS = "MARGIN_EXPLORER_FOLDERS"  # "1" or "0"; `serve` sets it where nobody has


def with_folders() -> bool:
    """Return whether the visitor may name folders of this machine: only its own user may."""
    return os.environ.get(FOLDERS, "1") not in ("", "0")


def takes_components(attack: str) -> bool:
    """Return whether an attack on images can be granted their principal components."""
    made = by_key(attack).pictures
    return made is not None and hasattr(made(2, 1, None), "components")


class ImageControls(Row):
    """The controls of a run: an item for each setting of `Choice` and `ImageRun`.

    The callbacks `images` to `score` are called after a change of a setting of theirs.
    """

    def __init__(
        self, job: Job, start: ImageRun, images: Callable[[], None], network: Callable[[], None],
        attack: Callable[[], None], score: Callable[[], None], train: Callable[[], None],
        go: Callable[[], None],
    ) -> None:  # fmt: skip
        """One line, two more in a fold, and progress; `train` and `go` begin work on `job`."""
        parts = ((IMAGES, images), (NETWORK, network), (ATTACKS, attack), (("vote",), score))
        self._calls = {name: call for names, call in parts for name in names}
        made = {name: self._field(name, start) for name in self._calls}
        made["train"] = Item("job", TRAIN, "Train the network on the images", job=job,
                             call=lambda _: train())  # fmt: skip
        made["go"] = Item("job", ATTACK, "Attack the trained weights", job=job, disabled=True,
                          call=lambda _: go())  # fmt: skip
        made["more"] = Item("button", "More settings", "Seed, network, start and score", False,
                            call=lambda _: self._arrange())  # fmt: skip
        made |= {"said": Item("words", value=""), "share": Item("bar", tip="Share done", job=job)}
        made |= {line: Item("break") for line in "12"}
        order = (*FIRST, *FOLDED, "share", "said")
        super().__init__(("mx-card", "mx-run"), **{name: made[name] for name in order})
        self._arrange()

    def _field(self, name: str, start: ImageRun) -> Item:
        """Return the item of one setting as it is at first."""
        # It is not enough to hide the folder: messages of a visitor can fill a hidden field.
        choice = start.choice if with_folders() else replace(start.choice, kind="digits", folder="")
        of_choice = name in IMAGES and name != "seed"
        owner = choice if of_choice else start
        known = {
            "init_scale": start.first_scale, "train_steps": start.training_steps,
            "steps": start.step_count,
        }  # fmt: skip
        if name == "components":
            asked = setting_of(by_key(DEFAULT).config, name)
            more = {"value": 0, "low": 0, "label": f"{asked.title} (0: none)"}
            return item_of(asked, lambda _: self._on_change(name), **more)
        more = {"value": known.get(name, getattr(owner, name)), "optional": False}
        if name == "widths":
            own = {"-".join(map(str, start.widths)): start.widths}
            more["options"] = choices(*{**own, **NETWORKS}.items())
        elif name == "kind" and not with_folders():
            more["options"] = choices((KINDS["digits"], "digits"))
        setting = setting_of(Choice if of_choice else ImageRun, name)
        return item_of(setting, lambda _: self._on_change(name), **more)

    def _on_change(self, name: str) -> None:
        if name in ("widths", "kind"):
            self.put("init_scale", value=usual_scale(self.value("widths"), self.value("kind")))
        if name in ("n", "kind", "widths"):
            shape = self.value("n"), self.value("kind"), self.value("widths")
            self.put("train_steps", value=usual_steps(*shape))
        self._arrange()
        self._calls[name]()

    def _arrange(self) -> None:
        """Show the folder if files are read, and what is unfolded; settle what others determine."""
        self.put("folder", hidden=self.value("kind") == "digits")
        if self.value("task") == "ten" and not by_key(self.value("attack")).needs.several:
            self.put("attack", value=next(k for k in picture_attacks() if by_key(k).needs.several))
        if not by_key(self.value("attack")).takes_start:
            self.put("start", value="noise")
        if self.value("components") and not takes_components(self.value("attack")):
            self.put("components", value=0)
        for name in FOLDED:
            self.put(name, hidden=not self.value("more"))
        noise = self.value("start") == "noise"
        shown = noise and self.value("more")
        self.put("starts", hidden=not shown, value=self.value("starts") if noise else 1)

    def choice(self) -> Choice:
        """Return the choice of images. ValueError if there can be none."""
        given = {name: self.value(name) for name in IMAGES}
        return Choice(**{**given, "folder": given["folder"].strip()})

    def run(self) -> ImageRun:
        """Return the run that the controls describe."""
        names = (*NETWORK, *ATTACKS, "seed", "vote")
        given = {name: self.value(name) for name in names}
        k = given.pop("components")
        granted = {"knows": "components", "components": k} if k else {}
        return ImageRun(self.choice(), **given, attack_settings=granted)

    def lock(self, button: str) -> None:
        """While work runs its button cancels, and the other controls are disabled."""
        with self.at_once():
            for name in (*IMAGES, *NETWORK, *ATTACKS, "train", "go"):
                self.put(name, disabled=name != button)

    def unlock(self, images: bool, ready: bool) -> None:
        """Enable the controls: to train if there are `images`, to attack if weights are `ready`."""
        own = by_key(self.value("attack")).own is not None  # it trains what it attacks
        with self.at_once():
            for name in (*IMAGES, *NETWORK, *ATTACKS):
                self.put(name, disabled=False)
            self.put("train", disabled=not images)
            self.put("go", disabled=not (images and (ready or own)))


# --- What the digits page shows below its controls: images, charts and the first layer as one ---

THEOREM = (
    "<b>Theorem</b> (Lyu and Li 2020; restated). <b>Assumes</b> a homogeneous network (biases in "
    "the first layer only), gradient flow on the exponential or logistic loss, and all images "
    "separated at some time. <b>Then</b> the weights converge in direction to a KKT point, "
    "θ = Σᵢ λᵢ yᵢ ∇Φ(θ; xᵢ) with λᵢ ≥ 0, a sum over training images. The attack (Haim et al. 2022) "
    "looks for images that explain θ so; <b>nothing says that no other images do</b>, and a "
    f"network after finite time is no KKT point. The attacker is given {KNOWS}."
)

LASSO = "Draw a lasso around dots to see those images alone."


class Board:
    """Gallery, charts and first layer; each is there as soon as it has something to show."""

    def __init__(self, after: w.Widget, below: w.Widget) -> None:
        """Make every view, empty; below the gallery stand `after` an attack, and `below`."""
        self.gallery, self.believed, self.neurons = Gallery(), Believed(), FirstLayer()
        self.outputs = BrushView("lasso", self._choose, LASSO)
        self.chosen: list[int] | None = None  # training images in the lasso
        self._compared: tuple[Draw, ImageComparison] | None = None
        self.shares, self.rates = (ChartView(layout=w.Layout(height="230px")) for _ in range(2))
        titled = (
            ("Each training image by score and output", self.outputs),
            ("Share of the images recovered", self.shares),
            (key("Training against unseen images, at every likeness (NCC)", (MATCHED, "recovered"),
                 (CONTROL, "guess")), self.rates),
        )  # fmt: skip
        pairs = [(w.HTML(text).add_class("mx-chart-title"), view) for text, view in titled]
        charts = w.VBox([cards_of(pairs, "250px").add_class("mx-board")])
        left = w.VBox(
            [self.gallery.widget, after, self.believed.widget, below],
            layout=w.Layout(overflow="visible", grid_gap="12px"),
        )
        charts.layout.overflow = "visible"
        self._trained = (self.neurons.widget,)
        self._attacked = (charts, self.believed.widget, after)
        rows = [columns([left, charts], "560px"), self.neurons.widget]
        self.widget = w.VBox(rows, layout=w.Layout(overflow="visible", grid_gap="12px"))

    def nothing(self) -> None:
        """Show that there are no images."""
        self.gallery.clear()
        self.forget()
        self.images(None)

    def forget(self) -> None:
        """Show no network."""
        self.neurons.clear()
        _put_in_sight((*self._trained, *self._attacked), False)

    def _choose(self, ids: list[int] | None) -> None:
        """Show the images in the lasso alone; all where there is none."""
        self.chosen = ids
        if self._compared is not None:
            self.gallery.compare(*self._compared, ids)

    def images(self, draw: Draw | None) -> None:
        """Show the training images alone: there is no attack to compare them with."""
        self._compared = None
        for chart in (self.shares, self.rates):
            chart.draw(replace(NOTHING, foot=NO_ATTACK))
        self.outputs.draw(replace(NOTHING, foot=NO_ATTACK))
        self.believed.clear()
        if draw is not None:
            self.gallery.only(draw)

    def network(self, draw: Draw, net: Network) -> None:
        """Show the first layer, and how many numbers the weights hold."""
        self.neurons.draw(net, draw.shape, carried_numbers(net), draw.train.n * draw.train.d)
        _put_in_sight(self._trained, True)

    def attack(self, draw: Draw, found: ImageComparison, partition: bool) -> None:
        """Show candidates beside their matches, and both charts."""
        self._compared = None
        _put_in_sight(self._attacked, True)
        self.outputs.draw(output_chart(found))  # lets go of the images chosen, if others are drawn
        self._compared = draw, found
        self.gallery.compare(draw, found, self.chosen)
        self.believed.show_best(found, self.gallery.secret)
        self.shares.draw(share_chart(found, partition))
        least = 1 / found.verdict.unseen
        self.rates.draw(roc_chart([("found", MATCHED, found.roc)], least=least))


def _put_in_sight(parts: Sequence[w.Widget], shown: bool) -> None:
    for part in parts:
        part.layout.display = None if shown else "none"


def _measure_words(found: ImageComparison) -> str:
    """Return the numbers of the chosen measure alone: the page has a choice of them."""
    return verdicts.images({found.measure: found.verdict}, found.measure)


class DigitsApp(SidePage):
    """One visitor's page."""

    question = "Can the training images be read out of a network’s weights?"
    steps = (
        HeadStep(
            "images",
            "1 Images",
            "Choose the images that the network is trained on",
            "[data-item=kind]",
        ),
        HeadStep("train", "2 Train", "Train a network on them", "[data-item=train]"),
        HeadStep(
            "attack", "3 Attack", "Reconstruct images from the weights alone", "[data-item=go]"
        ),
    )

    def __init__(self, run: ImageRun | None = None) -> None:
        """Build the page and draw the images."""
        limit_threads()  # many kernels share one machine
        super().__init__("Attack on images")
        self.draw: Draw | None = None
        self.trained: TrainState | None = None
        self.attacked: list[AttackState] = []  # the last state of each start
        self.scored: ImageComparison | None = None
        self._again: Callable[[], None] = lambda: None  # shows what is shown, by another vote
        self._scales: list[float] = []  # first scales of the networks that were attacked
        self.job = Ask(self)
        self.controls = ImageControls(
            self.job, run or ImageRun(), self.redraw, self._forget_net, self._forget_attack,
            lambda: self._again(), self.run_training, self.run_attack,
        )  # fmt: skip
        self.quiz = QuizCard(self._hide_truth, self._point)
        self.own = OwnCard(lambda: self.redraw(), self._point)
        self.board = Board(self.quiz.widget, self.own.widget)
        self.grid = DigitsGrid(self._ready, self._show_cell, self)
        # A folder on the server is named anew each time.
        kept = Remembered(self.controls, without=("kind", "folder"))
        body = [self.controls, self.failure, self.board.widget, self.grid.widget,
                w.HTML(THEOREM).add_class("mx-note")]  # fmt: skip
        self.compose(body, kept)
        self.redraw()

    def done(self) -> set[str]:
        """Return the steps done, each with what the next one needs."""
        there = {"images": self.draw, "train": self.trained, "attack": self.scored}
        return {key for key, made in there.items() if made is not None}

    # --- what is there ------------------------------------------------------------------------
    def redraw(self) -> None:
        """Draw the images anew; a network trained on other images is dropped."""
        self.draw = None
        self.board.nothing()
        self._forget_net()
        self.attempt(self._redraw)

    def _redraw(self) -> None:
        try:
            choice = self.controls.choice()
            self.draw = self.own.with_own(draw(choice))
            self.own.fit(choice)
        except (ValueError, ImportError) as error:  # a file is not there, or too few images
            self.say(str(error), "warn")
            return
        self._forget_net()

    def _forget_net(self) -> None:
        self.trained = None
        self.board.forget()
        self.grid.grid.forget()
        self._forget_attack()

    def _forget_attack(self) -> None:
        self.attacked, self.scored = [], None
        self._again = lambda: None
        self.quiz.forget()
        self.own.show(self.draw)
        self.board.images(self.draw)
        self._idle()
        if self.draw is None:
            return
        if self.trained is not None:
            self.say(
                "The network is trained. Press Attack: from here on, only the weights are used.", ""
            )
        else:
            n, sets = self.draw.train.n, len(self.draw.controls)
            self.say(f"Press Train: a network learns these {n} images", "",
                     "Then the attack gets the weights alone, and tries to draw the images. "
                     f"{sets} sets of {n} unseen images tell what chance finds.")  # fmt: skip

    # --- work, in slices ----------------------------------------------------------------------
    def run_training(self) -> None:
        """Train beside the page; after a cancel the last state is kept."""
        self._run(self._train)

    def run_attack(self) -> None:
        """Attack beside the page, showing candidates as they move."""
        self._run(self._attack)

    def _run(self, begin: Callable[[Draw, ImageRun], None]) -> None:
        self.grid.grid.cancel()
        self.grid.allow("Other work is going on.")

        def start() -> None:
            run = self.controls.run()
            if self.draw is not None:
                begin(self.draw, run)

        self.attempt(start)
        if not self.job.busy:
            self._idle()

    def _idle(self) -> None:
        """Enable the controls that can be used now."""
        self.controls.unlock(self.draw is not None, self.trained is not None)
        self._point()
        if self.controls.value("attack") not in grid_attacks():
            self.grid.allow("This attack takes no start: choose another one for a grid.")
        else:
            self.grid.allow(UNTRAINED if self.controls.items["go"].disabled else "")

    def _point(self) -> None:
        """Fill the one button that is the next thing to do."""
        if not hasattr(self, "own") or self.job.busy:
            return  # the page is being built, or its button cancels
        row, named = self._next()
        for one in (self.controls, self.quiz.row, self.own.row):
            with one.at_once():
                for name, item in one.items.items():
                    if item.kind in ("button", "job"):
                        one.put(name, filled=one is row and name == named)

    def _next(self) -> tuple[Row, str]:
        """Return the row and the name of the next thing to do."""
        if self.own.waits:
            return self.own.row, "add"
        if self.trained is None:
            return self.controls, "train"
        if self.scored is None:
            return self.controls, "go"
        return (self.quiz.row, self.quiz.next) if self.quiz.next else (self.own.row, self.own.next)

    def _ready(self) -> tuple[Draw, ImageRun, TrainState | None]:
        """Return what a grid is run of."""
        if self.draw is None:
            raise ValueError("There are no images yet.")
        return self.draw, self.controls.run(), self.trained

    def _start(
        self, button: str, planned: int, states: Callable[[], Iterator[State]],
        show: Callable[[State], None], finish: Callable[[State], None],
    ) -> None:  # fmt: skip
        """Compute the states beside the page; call `finish` with the last one reached."""
        self.controls.lock(button)
        begun = perf_counter()
        reached: list[State] = []

        def take(state: State) -> None:
            reached[:] = [state]
            self.controls.say(f"step {state.t:,}, {perf_counter() - begun:.0f} s")
            show(state)

        def end() -> None:
            if reached and self.job.error is None:
                finish(reached[0])
            self._idle()

        self.job.begin(lambda progress: _slices(states(), planned, progress), take, end)

    def _train(self, drawn: Draw, run: ImageRun) -> None:
        self._forget_net()
        self.say("The network is being trained.", "")
        self._start(
            "train", run.training_steps, lambda: image_runs.train(drawn, run),
            lambda _: None, lambda state: self._take_network(drawn, state),
        )  # fmt: skip

    def _take_network(self, drawn: Draw, state: TrainState) -> None:
        wrong = int((state.q <= 0).sum())
        if wrong:
            self.say(f"{wrong} of {drawn.trained.n} images are on the wrong side after {state.t} "
                      "steps: there is no margin yet. Train for more steps.", "warn")  # fmt: skip
            return
        self.trained = state
        self.board.network(drawn, state.net)
        self._forget_attack()

    def _attack(self, drawn: Draw, run: ImageRun) -> None:
        self._forget_attack()
        trained, last, first = self.trained, perf_counter(), True
        aimed: list[ImageTarget] = []
        ended: list[AttackState] = []

        def states() -> Iterator[AttackState]:
            aimed.append(image_runs.aim(drawn, run, trained))
            for each in image_runs.runs_of(run):
                for state in image_runs.attack(drawn, each, aimed[0]):
                    yield state
                ended.append(state)

        def show(state: AttackState) -> None:
            nonlocal last, first
            if first:
                self.board.network(drawn, aimed[0].net)
                first = False
            if perf_counter() - last > SHOWN_EVERY_S:
                finish(state, going=True)
                last = perf_counter()

        def finish(state: AttackState, going: bool = False) -> None:
            now = ended if state in ended else [*ended, state]
            self._show(drawn, run, aimed[0], list(now), going)

        def end(state: AttackState) -> None:
            finish(state)
            if self.scored is not None:
                self.quiz.offer(drawn, self.scored.found)
            self._note(run.first_scale)

        self._start("go", run.starts * run.step_count, states, show, end)

    def _note(self, scale: float) -> None:
        """Note an attack; the lesson asks for two, the second after a far smaller first scale."""
        if scale <= SMALL_SCALE < max(self._scales, default=0.0):
            self.access.task = "digits"
        self._scales.append(scale)

    # --- what is seen -------------------------------------------------------------------------
    def _show(
        self, drawn: Draw, run: ImageRun, aimed: ImageTarget, states: list[AttackState],
        going: bool = False,
    ) -> None:  # fmt: skip
        self._again = lambda: self._show(drawn, run, aimed, states, going)
        found = image_runs.assess(drawn, aimed, states, self.controls.value("vote"), run.measure)
        self.attacked, self.scored = states, found
        self.board.attack(drawn, found, run.start == "partition")
        self.own.show(drawn, found)
        numbers = f"{by_key(run.attack).title} from {STARTS[run.start]}: {_measure_words(found)}"
        words = verdicts.image_rule(found.verdict)
        if run.start == "partition":
            words += f" Of the images that it began at, {found.start_share:.0%} are still found."
        if run.start == "truth":
            words += " It began at the truth, which no attacker has."
        tone = {Kind.FOUND: "good", Kind.AMBIGUOUS: "warn"}.get(found.verdict.kind, "")
        better = found.verdict.kind is Kind.FOUND and run.start != "truth"
        if going:
            self.say(f"So far {recovered_images(found)}", "", words)
            return
        self.say(
            recovered_images(found), "good" if better else "warn" if tone else "", words, numbers
        )

    def _hide_truth(self, secret: bool) -> None:
        """Hide the training images while a quiz asks for them, or show them again."""
        if self.board.gallery.secret != secret:
            self.board.gallery.secret = secret
            self._again()

    def _show_cell(self, aimed: ImageTarget, state: AttackState, words: str) -> None:
        """Show the end of a run of the grid beside the training images."""
        drawn = self.draw
        if drawn is None:
            return
        self._again = lambda: self._show_cell(aimed, state, words)
        self.attacked = [state]
        vote, measure = self.controls.value("vote"), self.controls.value("measure")
        self.scored = image_runs.assess(drawn, aimed, [state], vote, measure)
        self.board.attack(drawn, self.scored, False)
        rule = verdicts.image_rule(self.scored.verdict)
        self.say(recovered_images(self.scored), "", rule, f"{words}: {_measure_words(self.scored)}")

    def close(self) -> None:
        """End the work and free the widgets."""
        super().close()
        self.grid.grid.job.close()


def _slices(states: Iterator[State], planned: int, progress: Progress) -> Iterator[State]:
    """Yield the last state of every slice of time, and the last of all, of one start or several."""
    end, last, before, begun = perf_counter() + SLICE_S, None, 0, 0
    for state in states:
        begun += before if state.t < before else 0  # the next start
        before, last = state.t, state
        progress(min(1.0, (begun + state.t) / max(planned, 1)))
        if perf_counter() >= end:
            yield state
            end, last = perf_counter() + SLICE_S, None
    if last is not None:
        yield last


def digits(**settings: Any) -> DigitsApp:  # noqa: ANN401
    """Show the page on real images in this cell, replacing the one shown before.

    Args:
        **settings: fields of `images.Choice` and `image_runs.ImageRun` of this package, such as
            n=60, widths=(300, 300), attack="decoreco".

    Returns:
        The page.
    """
    run = ImageRun()
    names = set(run.choice.__dataclass_fields__)
    choice = replace(run.choice, **{k: v for k, v in settings.items() if k in names})
    rest = {k: v for k, v in settings.items() if k not in names or k == "seed"}
    return show(DigitsApp, lambda: DigitsApp(replace(run, choice=choice, **rest)))
