"""Attacks from all starts on the digits page; a press on the end of a run shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ipywidgets as w

from explorer.engine.attacks.target import Target
from explorer.engine.data.images import Draw
from explorer.engine.energy.landscape import Weights
from explorer.engine.energy.starts import mix_from_weights, mix_weights
from explorer.engine.number_words import share
from explorer.engine.roster import AttackState, by_key
from explorer.engine.training import TrainState
from explorer.page.apps.digits_charts import Sheet
from explorer.page.apps.page import SidePage
from explorer.page.panels.base import with_title
from explorer.page.stages.landscape import words
from explorer.page.stages.landscape.runs_box import RunsBox
from explorer.page.view.canvases import TriangleView
from explorer.research.grid import Grid, Problem, even, grid_attacks
from explorer.research.grid.landscape import Key, Runs
from explorer.research.image_runs import ImageRun, ImageTarget, aim

STEPS = 100  # arbitrary: about half a minute for 21 runs on 20 digits
SHOWN = 10  # arbitrary: images of a start that are shown
UNTRAINED = "Train the network first."
DRAG = (
    "Drag the handle: the images of a start between training images, unseen ones and noise show "
    "here."
)
Ready = Callable[[], tuple[Draw, ImageRun, TrainState | None]]


class DigitsGrid:
    """The triangle of the digits page; `show` takes the end of a run."""

    def __init__(
        self, ready: Ready, show: Callable[[ImageTarget, AttackState, str], None], page: SidePage
    ) -> None:
        """`ready` gives what is to be attacked, or raises; `page` shows sentences and failures."""
        self._ready, self._show, self._page = ready, show, page
        self.tell = page.tell
        self._aimed: tuple[TrainState | None, Target] | None = None
        self._why = UNTRAINED
        self._problem: Problem | None = None
        self.mixed = Sheet(DRAG)
        self.mixed.widget.remove_class("mx-card")
        self.view = TriangleView(
            label=words.RUNS_LABEL, enabled=False, layout=w.Layout(height="240px", width="100%")
        )
        self.said, self.counts = w.HTML().add_class("mx-note"), w.HTML()
        self.grid = RunsBox(self, self._guard, STEPS, lambda: self.allow(self._why))
        self.view.on("ball", self.grid.press)
        self.view.on("handle", lambda weights: self._guard(lambda: self._place(weights))(None))
        self.view.handle = (0.0, 0.0, 1.0)
        row = w.HBox([self.grid.go, self.counts]).add_class("mx-row")
        body = w.VBox([self.said, self.view, self.mixed.widget, row, self.grid.widget])
        self.widget = with_title(words.WHERE_ENDS, body).add_class("mx-card")
        self.allow(UNTRAINED)

    def _guard(self, call: Callable[[], None]) -> Callable[[Any], None]:
        def run(_: Any) -> None:  # noqa: ANN401 - a widget's event
            try:
                call()
            except ValueError as error:  # refused, in a sentence
                self.tell(str(error))
            except Exception as error:
                self._page.fail(error)

        return run

    # --- what is there ------------------------------------------------------------------------
    def allow(self, why: str) -> None:
        """Why no grid can be run now: nothing to attack, or other work; empty where one can."""
        self._why = why
        off = bool(why) and not self.grid.busy
        self.grid.go.put("go", disabled=off)
        self.grid.files.put("open", disabled=off)
        self._problem, self.view.enabled = None, not why
        if not why:
            self._guard(lambda: self.grid.take(self.problem()))(None)
        else:
            self.mixed.clear()
        self.draw_runs()

    def _place(self, weights: Weights) -> None:
        """Put the handle there, and show the images of a start from there."""
        if self._why:
            return
        self._problem = self._problem or self.problem().problem()
        mix = mix_from_weights(*weights)
        first: Any = next(self._problem.states(*mix))
        drawn, _, _ = self._ready()
        left = first.numbers().get("l_stationary")
        energy = "" if left is None else f" They leave {share(left)} of the squared weights."
        seen = drawn.pictures(first.x[:SHOWN])
        self.view.handle = weights
        self.mixed.show(
            f"A start of {words.mixture(weights)}: the first {len(seen)} images.{energy}", [seen],
            ["a candidate of the start"], [""] * len(seen), [""] * len(seen),
        )  # fmt: skip

    # --- what the grid asks of its page -------------------------------------------------------
    def problem(self) -> Grid:
        """The cells of what is chosen now."""
        drawn, run, trained = self._ready()
        entry = by_key(run.attack)
        if run.attack not in grid_attacks():
            names = ", ".join(by_key(key).title for key in grid_attacks())
            raise ValueError(f"{entry.title} takes no start; take one of {names}.")
        settings: Any = run.config
        config = replace(settings, m=even(drawn.train.n), steps=self.grid.setting("steps"))
        given = None if entry.own else self._target(drawn, run, trained)
        side = self.grid.setting("side")
        return Grid(
            given, drawn.train, drawn.other, run.attack, config, run.seed, side, drawn.as_pictures
        )

    def _target(self, drawn: Draw, run: ImageRun, trained: TrainState | None) -> Target:
        if self._aimed is None or self._aimed[0] is not trained:
            self._aimed = trained, aim(drawn, run, trained).target
        return self._aimed[1]

    def draw_runs(self) -> None:
        """Draw the runs on the triangle; before there are any, say what to do first."""
        if not hasattr(self, "grid"):
            return
        self.view.show(self.grid.arrays())
        counts, found = self.grid.counts(), self.grid.found
        rolling = 0 if found is None else len(found.rolling)
        self.counts.value = (
            words.ends(counts, rolling, names=words.SETS) if sum(counts) + rolling else ""
        )
        self.said.value = "" if sum(counts) + rolling else words.first(self._why)

    def best(self, found: Runs) -> Key | None:
        """Show no run: the images stay as they are until one is pressed."""

    def show(self, found: Runs, key: Key) -> str:
        """Return the end of the run from a cell."""
        target = found.problems[0].target
        title = by_key(found.of.attack).title
        place = words.mixture(mix_weights(key[1], key[2]))
        self._show(ImageTarget(target, target.net), found.states[key][-1], f"{title} from {place}")
        return f"The run from {place}: its candidates stand beside the training images above."
