"""The page on real images: train on them, attack, and see each candidate beside its match."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeVar

import ipywidgets as w

from explorer.engine.data.images import Draw, draw
from explorer.engine.progress import Progress
from explorer.engine.roster import AttackState, by_key
from explorer.engine.scoring import Kind
from explorer.engine.threads import limit_threads
from explorer.engine.training import TrainState
from explorer.page.apps.digits_grid import UNTRAINED, DigitsGrid
from explorer.page.job import Job
from explorer.page.parts.access import Access, tips_of
from explorer.page.parts.digits_charts import PIXELATED
from explorer.page.parts.digits_controls import THEOREM, Board, Controls
from explorer.page.parts.page import Page, show, way_back
from explorer.research import image_runs
from explorer.research.grid import grid_attacks
from explorer.research.image_runs import STARTS, Aimed, ImageRun, Scored
from explorer.research.words import verdicts
from explorer.style import CSS

SLICE_S = 0.15  # arbitrary: the page answers within this time while work goes on
SHOWN_EVERY_S = 1.0  # arbitrary: time between pictures of a running attack
State = TypeVar("State", TrainState, AttackState)


class DigitsApp(Page):
    """One visitor's page."""

    def __init__(self, run: ImageRun | None = None) -> None:
        """Build the page and draw the images."""
        limit_threads()  # many kernels share one machine
        self.draw: Draw | None = None
        self.trained: TrainState | None = None
        self.attacked: AttackState | None = None
        self.scored: Scored | None = None
        self._again: Callable[[], None] = lambda: None  # shows what is shown, by another vote
        self.job = Job()
        self.controls = Controls(
            run or ImageRun(), self.redraw, self._forget_net, self._forget_attack,
            lambda: self._again(), lambda: self._toggle(self.run_training),
            lambda: self._toggle(self.run_attack),
        )  # fmt: skip
        self.board = Board()
        super().__init__()
        self.grid = DigitsGrid(
            self._ready, self._show_cell, lambda words: self.say(words, ""), self.fail
        )
        self.widget = self._compose()
        self.redraw()

    def _compose(self) -> w.VBox:
        title = w.HTML("Real images").add_class("mx-title")
        head = w.HBox([title, w.HTML(way_back())]).add_class("mx-header")
        page = w.VBox([head, self.verdict, self.controls.widget, self.failure, self.board.widget,
                       self.grid.widget, w.HTML(THEOREM).add_class("mx-note")],
                      layout=w.Layout(overflow="visible"))  # fmt: skip
        parts = [w.HTML(CSS + PIXELATED), Access(tips=tips_of(page)), page]
        return w.VBox(parts, layout=w.Layout(overflow="visible")).add_class("mx-app")

    # --- what is there ------------------------------------------------------------------------
    def redraw(self) -> None:
        """Draw the images anew; a network trained on other images is dropped."""
        self.draw = None
        self.board.nothing()
        self._forget_net()
        self.guarded(self._redraw)

    def _redraw(self) -> None:
        try:
            self.draw = draw(self.controls.choice())
        except (ValueError, ImportError) as error:  # a file is not there, or too few images
            self.say(str(error), "warn")
            return
        self._forget_net()

    def _forget_net(self) -> None:
        self.trained = None
        self.board.neurons.clear()
        self.grid.grid.forget()
        self._forget_attack()

    def _forget_attack(self) -> None:
        self.attacked = self.scored = None
        self._again = lambda: None
        self.board.images(self.draw)
        self._idle()
        if self.draw is None:
            return
        if self.trained is not None:
            self.say("The network is trained. Press Attack: from here on, only the weights "
                      "are used.", "")  # fmt: skip
        else:
            n, sets = self.draw.train.n, len(self.draw.controls)
            self.say(f"{n} training images; {sets} unseen sets of {n} more stand by as a "
                      "control. Press Train.", "")  # fmt: skip

    # --- work, in slices ----------------------------------------------------------------------
    def _toggle(self, run: Callable[[], None]) -> None:
        if self.job.busy:
            self.job.cancel()
        else:
            run()

    def run_training(self) -> None:
        """Train beside the page; after a cancel the last state is kept."""
        self._run(self._train)

    def run_attack(self) -> None:
        """Attack beside the page, showing candidates as they move."""
        self._run(self._attack)

    def _run(self, begin: Callable[[Draw, ImageRun], None]) -> None:
        self.grid.grid.cancel()
        self.grid.allow("Other work is going on.")
        self.failure.layout.display = "none"
        try:
            run = self.controls.run()
            if self.draw is not None:
                begin(self.draw, run)
        except Exception as error:
            self.fail(error)
        if not self.job.busy:
            self._idle()

    def _idle(self) -> None:
        """Enable the controls that can be used now."""
        self.controls.idle(self.draw is not None, self.trained is not None)
        if self.controls.attack.value not in grid_attacks():
            self.grid.allow("This attack takes no start: choose another one for a grid.")
        else:
            self.grid.allow(UNTRAINED if self.controls.go.disabled else "")

    def _ready(self) -> tuple[Draw, ImageRun, TrainState | None]:
        """What a grid is run of."""
        if self.draw is None:
            raise ValueError("There are no images yet.")
        return self.draw, self.controls.run(), self.trained

    def _start(
        self, button: w.Button, planned: int, states: Callable[[], Iterator[State]],
        show: Callable[[State], None], finish: Callable[[State], None],
    ) -> None:  # fmt: skip
        """Compute the states beside the page; call `finish` with the last one reached."""
        self.controls.busy(button, planned)
        begun = perf_counter()
        reached: list[State] = []

        def work(progress: Progress) -> Iterator[State]:
            yield from _sliced(states(), planned, progress)

        def take(state: State) -> None:
            reached[:] = [state]
            self.controls.bar.value = state.t
            self.controls.note.value = f"step {state.t:,}, {perf_counter() - begun:.0f} s"
            show(state)

        def ended() -> None:
            if self.job.error is not None:
                self.fail(self.job.error)
            elif reached:
                finish(reached[0])
            self._idle()

        self.job.start(work, take, ended)

    def _train(self, drawn: Draw, run: ImageRun) -> None:
        self._forget_net()
        self._start(
            self.controls.train, run.train_steps, lambda: image_runs.train(drawn, run),
            lambda _: None, lambda state: self._trained(drawn, state),
        )  # fmt: skip

    def _trained(self, drawn: Draw, state: TrainState) -> None:
        wrong = int((state.q <= 0).sum())
        if wrong:
            self.say(f"{wrong} of {drawn.train.n} images are on the wrong side after {state.t} "
                      "steps: there is no margin yet. Train for more steps.", "warn")  # fmt: skip
            return
        self.trained = state
        self.board.network(drawn, state.net)
        self._forget_attack()

    def _attack(self, drawn: Draw, run: ImageRun) -> None:
        self._forget_attack()
        trained, last, first = self.trained, perf_counter(), True
        aimed: list[Aimed] = []

        def states() -> Iterator[AttackState]:
            aimed.append(image_runs.aim(drawn, run, trained))
            yield from image_runs.attack(drawn, run, aimed[0])

        def show(state: AttackState) -> None:
            nonlocal last, first
            if first:
                self.board.network(drawn, aimed[0].net)
                first = False
            if perf_counter() - last > SHOWN_EVERY_S:
                finish(state)
                last = perf_counter()

        def finish(state: AttackState) -> None:
            self._show(drawn, run, aimed[0], state)

        self._start(self.controls.go, run.step_count, states, show, finish)

    # --- what is seen -------------------------------------------------------------------------
    def _show(self, drawn: Draw, run: ImageRun, aimed: Aimed, state: AttackState) -> None:
        self._again = lambda: self._show(drawn, run, aimed, state)
        found = image_runs.assess(drawn, aimed, state, self.controls.vote.value)
        self.attacked, self.scored = state, found
        self.board.attack(drawn, found, run.start == "partition")
        seen = verdicts.verdict(found.verdict)
        words = f"{by_key(run.attack).title} from {STARTS[run.start]}: {seen}"
        if run.start == "partition":
            words += f" Of the images that it began at, {found.other.share:.0%} still match."
        if run.start == "truth":
            words += " It began at the truth, which no attacker has."
        tone = {Kind.FOUND: "good", Kind.AMBIGUOUS: "warn"}.get(found.verdict.kind, "")
        better = found.verdict.kind is Kind.FOUND and run.start != "truth"
        self.say(words, "good" if better else "warn" if tone else "")

    def _show_cell(self, aimed: Aimed, state: AttackState, words: str) -> None:
        """Show the end of a run of the grid beside the training images."""
        drawn = self.draw
        if drawn is None:
            return
        self._again = lambda: self._show_cell(aimed, state, words)
        self.attacked = state
        self.scored = image_runs.assess(drawn, aimed, state, self.controls.vote.value)
        self.board.attack(drawn, self.scored, False)
        self.say(f"{words}: {verdicts.verdict(self.scored.verdict)}", "")

    def close(self) -> None:
        """Stop the work and free the widgets; a second call does nothing."""
        self.job.close()
        self.grid.grid.job.close()
        if self.widget.comm is not None:
            self.widget.close()


def _sliced(states: Iterator[State], planned: int, progress: Progress) -> Iterator[State]:
    """Yield the last state of every slice of time, and the last of all."""
    end, last = perf_counter() + SLICE_S, None
    for state in states:
        progress(min(1.0, state.t / max(planned, 1)))
        last = state
        if perf_counter() >= end:
            yield state
            end, last = perf_counter() + SLICE_S, None
    if last is not None:
        yield last


_shown: DigitsApp | None = None


def digits(**settings: Any) -> DigitsApp:  # noqa: ANN401
    """Show the page on real images in this cell, replacing the one shown before.

    Args:
        **settings: fields of `images.Choice` and `image_runs.ImageRun` of this package, such as
            n=60, widths=(300, 300), attack="decoreco".

    Returns:
        The page.
    """
    global _shown
    run = ImageRun()
    names = set(run.choice.__dataclass_fields__)
    choice = replace(run.choice, **{k: v for k, v in settings.items() if k in names})
    rest = {k: v for k, v in settings.items() if k not in names or k == "seed"}
    _shown = show(_shown, lambda: DigitsApp(replace(run, choice=choice, **rest)))
    return _shown
