"""The grid of starts on the digits page: cell by cell, a click shows where a run ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from html import escape
from threading import Event
from typing import Any

import ipywidgets as w

from explorer.engine.lambda_grid import SIDE, start_of
from explorer.engine.roster import AttackState, by_key
from explorer.engine.training import TrainState
from explorer.grids.cells import even, grid_attacks
from explorer.grids.live import Found, Of
from explorer.grids.maps import maps
from explorer.imaging import image_runs
from explorer.imaging.image_runs import Aimed, ImageRun
from explorer.imaging.images import Draw
from explorer.panels.base import chart, titled
from explorer.parts.grid_board import GridBoard, trails_of
from explorer.parts.settings import whole

RUN, CANCEL = "Run the grid", "Cancel the grid"
EMPTY = (
    "Press Run the grid: the attack then runs from 21 mixtures of the training images, held-out "
    "ones and noise."
)
CLICK = "Hover for numbers; click a cell to see its candidates beside the training images."
STEPS = 100  # arbitrary: about half a minute for 21 runs on 20 digits
Ready = Callable[[], tuple[Draw, ImageRun, TrainState | None]]


class DigitsGrid:
    """Run, watch, click. `ready` gives what is to be attacked or raises; `show` shows a cell."""

    def __init__(
        self, ready: Ready, show: Callable[[Aimed, AttackState, str], None],
        failed: Callable[[Exception], None],
    ) -> None:  # fmt: skip
        """Controls; the maps come with the first cell."""
        self._ready, self._show, self._failed = ready, show, failed
        self._stop = Event()
        self._task: asyncio.Task[None] | None = None
        self._known: dict[Any, tuple[Aimed, Found]] = {}
        self._now: tuple[Aimed, Found] | None = None
        self.steps = whole("steps per cell", "Length of the attack from each start", 1, 100_000)
        self.steps.value = STEPS
        self.seeds = whole("seeds", "Draws of the noise; the bands of the edges span them", 1, 20)
        self.go = w.Button(description=RUN, disabled=True,
                           tooltip="Run the attack from every start; again: cancel")  # fmt: skip
        self.go.on_click(lambda _: self._toggle())
        self.bar = w.FloatProgress(
            0, min=0, max=1, layout=w.Layout(width="150px"), tooltip="Cells done"
        )
        self.said = w.HTML(EMPTY).add_class("mx-note")
        self.board = GridBoard(self._press, chart, titled)
        self.body = w.VBox(layout=w.Layout(overflow="visible"))
        row = w.HBox([self.steps, self.seeds, self.go, self.bar]).add_class("mx-row")
        self.widget = titled(
            "Where attacks end, over all starts (Runkel et al.)",
            w.VBox([row, self.said, self.body], layout=w.Layout(overflow="visible")),
        )

    # --- what is there ------------------------------------------------------------------------
    def forget(self) -> None:
        """The network is gone, and every cell with it."""
        self._stop.set()
        self._known, self._now = {}, None
        self._draw()

    def allow(self, possible: bool) -> None:
        """Whether there is a network to attack and nothing else at work."""
        self.go.disabled = not (possible or self.busy)

    @property
    def busy(self) -> bool:
        """Whether cells are being run."""
        return self._task is not None and not self._task.done()

    def cancel(self) -> None:
        """End after the step under way; what is done stays."""
        self._stop.set()

    # --- running ------------------------------------------------------------------------------
    def _toggle(self) -> None:
        if self.busy:
            self.cancel()
            return
        self._task = asyncio.get_event_loop().create_task(self.run())

    async def run(self) -> None:
        """Every cell that is not done, the first seed first."""
        stop = self._stop = Event()
        self.go.description, self.go.disabled = CANCEL, False
        try:
            aimed, found = await asyncio.to_thread(self._problem)
            self._now = aimed, found
            await asyncio.to_thread(found.prepare, self.seeds.value)
            for key in found.todo(self.seeds.value):
                if stop.is_set():
                    break
                await asyncio.to_thread(found.run, key, stop)
                if self._now is not None and self._now[1] is found:
                    self._draw()
        except Exception as error:
            self._failed(error)
        finally:
            self.go.description = RUN

    def _problem(self) -> tuple[Aimed, Found]:
        """The cells of what is chosen now, those that are done among them."""
        drawn, run, trained = self._ready()
        if run.attack not in grid_attacks():
            names = ", ".join(by_key(key).title for key in grid_attacks())
            raise ValueError(f"{by_key(run.attack).title} takes no start; take one of {names}.")
        steps = self.steps.value
        if (run.attack, steps) not in self._known:
            settings: Any = run.config
            config = replace(settings, m=even(drawn.train.n), steps=steps)
            aimed = image_runs.aim(drawn, run, trained)
            given = None if by_key(run.attack).victim else aimed.target
            of = Of(given, drawn.train, drawn.other, run.attack, config, run.seed, SIDE)
            self._known[run.attack, steps] = aimed, Found(of)
        return self._known[run.attack, steps]

    # --- what is seen -------------------------------------------------------------------------
    def _draw(self) -> None:
        found = None if self._now is None else self._now[1]
        if found is None or not found.rows:
            self.said.value, self.body.children, self.bar.value = EMPTY, (), 0.0
            return
        seen = maps(found.of.side, found.rows.values())
        self.board.show(seen, trails_of(found.rows))
        self.bar.value = found.share(self.seeds.value)
        title = by_key(found.of.attack).title
        self.said.value = escape(f"{title}: {seen.sentence()} {CLICK}")
        if not self.body.children:
            self.body.children = (self.board.widget,)

    def _press(self, cell: tuple[float, float]) -> None:
        if self._now is None:
            return
        aimed, found = self._now
        key = (0, *start_of(*cell))
        if key in found.states:
            words = f"{by_key(found.of.attack).title} from λ₁ = {cell[0]:g}, λ₂ = {cell[1]:g}"
            self._show(aimed, found.states[key][-1], words)
