"""All starts at once: the grid of Runkel et al. on the attacked weights, cell by cell."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from html import escape
from threading import Event
from time import perf_counter
from typing import Any

import ipywidgets as w

from explorer.engine.lambda_grid import start_of
from explorer.engine.roster import ROSTER
from explorer.frame import Frame, numbers
from explorer.grids.cells import even, grid_attacks
from explorer.grids.keep import Keeper
from explorer.grids.live import Found, Key, Of
from explorer.grids.maps import maps
from explorer.panels.base import Panel, button, chart, titled
from explorer.parts.grid_board import GridBoard, trails_of
from explorer.parts.grid_files import GridFiles
from explorer.parts.settings import choice, whole

RUN, CANCEL = "Run the grid", "Cancel the grid"
EMPTY = (
    "Press Run the grid: the attack then runs from 21 mixtures of truth, held-out data and noise."
)
CLICK = "Hover for numbers; click a cell to see its run on the plane."
STEPS = 200  # arbitrary: half a minute for 21 runs of the KKT attack
DRAW_S = 0.5  # arbitrary: between two looks at the maps while cells come in


class GridPanel(Panel):
    """Run, watch, hover for numbers, click a cell to see its run on the plane."""

    stages = ("landscape",)

    def build(self) -> None:
        """Controls, four maps, two edges, the triangle."""
        self._task: asyncio.Task[None] | None = None
        self._stop = Event()
        self.found: Found | None = None
        self._known: list[Found] = []
        self._drawn_at = 0.0
        self._controls()
        self.board = GridBoard(
            lambda cell: self.command(lambda: self.load(*cell))(None), chart, titled
        )
        self.files = GridFiles(self._take_up, self._forget, self.command)
        self.keeper: Keeper | None = None
        visible = w.Layout(overflow="visible")
        self.body = w.VBox(layout=visible)
        head = w.HBox([self.attack, self.side, self.steps, self.seeds]).add_class("mx-row")
        go = w.HBox([self.go, self.progress]).add_class("mx-row")
        self.widget = titled(
            "Where attacks end, over all starts (Runkel et al.)",
            w.VBox([head, go, self.said, self.files.widget, self.body], layout=visible),
        )
        self._setting = False

    def _controls(self) -> None:
        self.attack = choice(
            "attack", "Which attack runs from every start",
            *((ROSTER[key].title, key) for key in grid_attacks()),
        )  # fmt: skip
        self.attack.style.description_width = "56px"
        self.side = choice(
            "cells", "Steps of λ₁ and λ₂ from 0 to 1: 21, 111 or 651 distinct starts",
            ("5 × 5", 5), ("11 × 11", 11), ("26 × 26", 26),
        )  # fmt: skip
        self.steps = whole("steps per cell", "Length of the attack from each start", 1, 100_000)
        self.steps.value = STEPS
        self.seeds = whole("seeds", "Draws of the noise; the bands of the edges span them", 1, 20)
        self.go = button(RUN, "Run the attack from every start; what is done stays")
        self.go.on_click(self.command(self._toggle))
        self.progress = w.FloatProgress(
            value=0, min=0, max=1, layout=w.Layout(width="160px"), tooltip="Cells done"
        )
        self.said = w.HTML(EMPTY).add_class("mx-note")
        for control in (self.attack, self.side, self.steps):
            control.observe(self._on_control, names=["value"])

    # --- which problem ----------------------------------------------------------------------
    def _on_control(self, _: Any) -> None:  # noqa: ANN401
        if not self._setting:
            self.cancel()
            self.command(lambda: self.session.choose_attack(self.attack.value))(None)
            self.render(self.session.frame)

    def _config(self) -> Any:  # noqa: ANN401 - of the present attack
        truth = self.session.now.truth
        m = even(truth.n) if truth is not None else 2
        present: Any = self.session.settings_of(self._name())
        return replace(present, steps=self.steps.value, m=m)

    def _name(self) -> str:
        """The present attack where a grid can be run of it, else the one chosen here."""
        name = self.session.now.attack_name
        return name if name in grid_attacks() else str(self.attack.value)

    def _of(self) -> Of:
        now, session, config = self.session.now, self.session, self._config()
        if hasattr(config, "relu_alpha_start"):  # set anew with every start
            usual: Any = ROSTER[self._name()].config()
            config = replace(config, relu_alpha_start=usual.relu_alpha_start)
        return Of(now.target, now.truth, now.heldout, self._name(), config, session.seed,
                  self.side.value)  # fmt: skip

    def render(self, frame: Frame) -> None:
        """Take up what is known of the problem on screen."""
        self._setting = True
        if frame.attack_name in [key for _, key in self.attack.options]:
            self.attack.value = frame.attack_name
        self._setting = False
        of = self._of()
        if self.found is not None and self.found.of == of:
            return
        self.cancel()
        same = [known for known in self._known if known.of == of]
        self.found = same[0] if same else Found(of)
        self._known = [self.found, *(k for k in self._known if k is not self.found)][:4]
        self.keeper = Keeper(self.found)
        self._draw_cells(anew=True)

    def _take_up(self, name: str, content: bytes) -> None:
        if self.keeper is not None:
            self.session.message = self.keeper.open(name, content)
            self._draw_cells(anew=True)

    def _forget(self) -> None:
        self.cancel()
        if self.keeper is not None:
            self.keeper.forget()
        self._known = [known for known in self._known if known is not self.found]
        self.found = None
        self.render(self.session.frame)

    # --- running ----------------------------------------------------------------------------
    def _toggle(self) -> None:
        if self._task is not None and not self._task.done():
            self.cancel()
            return
        session = self.session
        if session.now.target is None:
            raise ValueError("No weights to attack: train a network first.")
        if self.attack.value != session.now.attack_name:
            session.choose_attack(self.attack.value)
        session.running = False
        self.render(session.now)
        self._stop = Event()
        self._task = asyncio.get_event_loop().create_task(self._run())

    def cancel(self) -> None:
        """End the run after the step under way; what is done stays."""
        self._stop.set()

    async def _run(self) -> None:
        found, keeper, stop = self.found, self.keeper, self._stop
        assert found is not None and keeper is not None
        self.go.description = CANCEL
        try:
            await asyncio.to_thread(found.prepare, self.seeds.value)
            for key in found.todo(self.seeds.value):
                if stop.is_set():
                    break
                await asyncio.to_thread(found.run, key, stop)
                if key in found.rows:
                    keeper.add(key)
                if self.found is found:
                    self._progress(found)
        except Exception as error:  # a task's error would vanish unseen
            self.session.message = f"The grid stopped: {error}"
        finally:
            self.go.description = RUN
            if self.found is found:
                self._draw_cells(anew=True)

    # --- views ------------------------------------------------------------------------------
    def _progress(self, found: Found) -> None:
        self.progress.value = found.share(self.seeds.value)
        if perf_counter() - self._drawn_at > DRAW_S:
            self._draw_cells()

    def _draw_cells(self, anew: bool = False) -> None:
        """Maps, edges and triangle of what is known; nothing is mounted before."""
        found = self.found
        self._drawn_at = perf_counter()
        count = len(found.rows) if found is not None else 0
        if self.keeper is not None:
            self.files.show(count, self.keeper.texts, self.keeper.words, anew)
        if found is None or not found.rows:
            self.said.value, self.body.children, self.progress.value = EMPTY, (), 0.0
            return
        seen = maps(found.of.side, found.rows.values())
        self.session.trails = trails_of(found.rows)
        self.board.show(seen, self.session.trails)
        self.progress.value = found.share(self.seeds.value)
        self.said.value = escape(f"{seen.sentence()} {CLICK}")
        if self.body.children != (self.board.widget,):
            self.body.children = (self.board.widget,)

    def load(self, mix_truth: float, mix_data: float) -> None:
        """Put the run from a cell on the plane; the Attack stage then shows it step by step.

        A cell that was taken up from a file has no states: it runs again, from the same seed.
        """
        found = self.found
        key = (0, *start_of(mix_truth, mix_data))
        if found is None or key not in found.rows:
            raise ValueError("That cell is not done yet.")
        if key in found.states:
            self._show_run(found, key)
            return
        if self._task is not None and not self._task.done():
            raise ValueError("The grid is running: cancel it, or wait, to run this cell again.")
        self._stop = Event()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no page is waiting
            found.prepare(1)
            found.run(key, self._stop)
            self._show_run(found, key)
            return
        self._task = loop.create_task(self._again(found, key, self._stop))

    async def _again(self, found: Found, key: Key, stop: Event) -> None:
        """Run a cell that came from a file, for its states."""
        self.go.description = CANCEL
        self.said.value = "This cell came from a file: it runs again, from the same seed …"
        try:
            await asyncio.to_thread(found.prepare, 1)
            await asyncio.to_thread(found.run, key, stop)
            if self.found is found:
                self._draw_cells()
                if key in found.states:
                    self._show_run(found, key)
        except Exception as error:  # a task's error would vanish unseen
            self.session.message = f"The cell stopped: {error}"
        finally:
            self.go.description = RUN

    def _show_run(self, found: Found, key: Key) -> None:
        session, states = self.session, found.states[key]
        _, mix_truth, mix_data = key
        session.choose_attack(found.of.attack)
        session.attack_config = found.of.config
        session.remix(mix_truth, mix_data)
        line = session.branch.attack
        for state in states[1:]:
            line.append(state, numbers, always=True)
        session.show(attack=states[-1], status=session.entry.terminate(states[-1], found.of.config))
        session.assess()
        self.said.value = escape(
            f"λ₁ = {mix_truth:g}, λ₂ = {mix_data:g}: the candidates on the plane are those of this "
            f"run at step {states[-1].t}. The Attack stage has its timeline."
        )

    def end(self) -> None:
        """Cancel what is under way."""
        self.cancel()
