"""The grid of starts on the digits page; a click on a cell shows the end of its run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from explorer.engine.attacks.target import Target
from explorer.engine.data.images import Draw
from explorer.engine.roster import AttackState, by_key
from explorer.engine.training import TrainState
from explorer.page.panels.base import chart, with_title
from explorer.page.parts.grid_box import GridBox
from explorer.research.grid import Found, Key, Of, even, grid_attacks
from explorer.research.image_runs import Aimed, ImageRun

STEPS = 100  # arbitrary: about half a minute for 21 runs on 20 digits
UNTRAINED = "Train the network first."
Ready = Callable[[], tuple[Draw, ImageRun, TrainState | None]]


class DigitsGrid:
    """The grid of the digits page; `show` takes the end of a run, `tell` a sentence."""

    click = "Hover for numbers; click a cell to see its candidates beside the training images."

    def __init__(
        self, ready: Ready, show: Callable[[Aimed, AttackState, str], None],
        tell: Callable[[str], None], failed: Callable[[Exception], None],
    ) -> None:  # fmt: skip
        """`ready` gives what is to be attacked, or raises."""
        self._ready, self._show, self.tell, self._failed = ready, show, tell, failed
        self._aimed: tuple[TrainState, Target] | None = None
        self._why = UNTRAINED
        self.grid = GridBox(self, self._guard, chart, with_title, STEPS)
        self.widget = self.grid.widget
        for control in (self.grid.side, self.grid.steps):
            control.observe(lambda _: self.allow(self._why), names=["value"])
        self.allow(UNTRAINED)

    def _guard(self, call: Callable[[], None]) -> Callable[[Any], None]:
        def called(_: Any) -> None:  # noqa: ANN401 - a widget's event
            try:
                call()
            except ValueError as error:  # refused, in a sentence
                self.tell(str(error))
            except Exception as error:
                self._failed(error)

        return called

    # --- what is there ------------------------------------------------------------------------
    def allow(self, why: str) -> None:
        """Why no grid can be run now: nothing to attack, or other work; empty where one can."""
        self._why = why
        self.grid.go.disabled = bool(why) and not self.grid.busy
        self.grid.files.open.disabled = self.grid.go.disabled
        if not why:
            self._guard(lambda: self.grid.take(self.problem()))(None)
        self.grid.invite()

    # --- what the grid asks of its page -------------------------------------------------------
    def empty(self, count: int) -> str:
        """What to do first."""
        return (
            f"{self._why or 'Press Run the grid.'} The grid runs the attack from {count} mixtures "
            "of the training images, held-out ones and noise."
        )

    def problem(self) -> Of:
        """The cells of what is chosen now."""
        drawn, run, trained = self._ready()
        entry = by_key(run.attack)
        if run.attack not in grid_attacks():
            names = ", ".join(by_key(key).title for key in grid_attacks())
            raise ValueError(f"{entry.title} takes no start; take one of {names}.")
        settings: Any = run.config
        config = replace(settings, m=even(drawn.train.n), steps=self.grid.steps.value)
        given = None if entry.victim else self._target(trained)
        side = self.grid.side.value
        return Of(given, drawn.train, drawn.other, run.attack, config, run.seed, side, drawn.seen)

    def _target(self, trained: TrainState | None) -> Target:
        if trained is None or trained.q_min <= 0:
            raise ValueError("The images are not separated yet: train for more steps.")
        if self._aimed is None or self._aimed[0] is not trained:
            self._aimed = trained, Target.of(trained.net, trained.q_min)
        return self._aimed[1]

    def drawn(self, trails: list[Any]) -> None:
        """Nothing else on this page shows them."""

    def show(self, found: Found, key: Key) -> str:
        """The end of the run from a cell."""
        target = found.problems[0].target
        title, (_, a, b) = by_key(found.of.attack).title, key
        words = f"{title} from λ₁ = {a:g}, λ₂ = {b:g}"
        self._show(Aimed(target, target.net), found.states[key][-1], words)
        return f"λ₁ = {a:g}, λ₂ = {b:g}: its candidates stand beside the training images above."
