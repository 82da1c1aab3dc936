"""All starts at once: the grid of Runkel et al. on the attacked weights, cell by cell."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from html import escape
from threading import Event
from time import perf_counter
from typing import Any

import ipywidgets as w
import numpy as np

from explorer.engine.lambda_grid import NAMES, start_of, steps_of
from explorer.engine.roster import ROSTER
from explorer.frame import Frame, numbers
from explorer.grid import even, grid_attacks
from explorer.grid_live import Found, Of
from explorer.grid_maps import WORDS, Maps, maps
from explorer.panels.base import Panel, button, chart, titled
from explorer.parts.grid_charts import SHADES, SHADING, CellMap, Edge, Triangle
from explorer.parts.settings import choice, whole

RUN, CANCEL = "Run the grid", "Cancel the grid"
EMPTY = (
    "Press Run the grid: the attack then runs from 21 mixtures of truth, held-out data and noise."
)
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
        self._cells: list[tuple[float, float]] = []
        self._controls()
        press = lambda index: self.command(lambda: self.load(*self._cells[index]))(None)  # noqa: E731
        self.maps = [CellMap(f"distance to {WORDS[n]}", SHADING, press) for n in NAMES]
        self.nearest = CellMap("nearest set", [SHADES[n] for n in NAMES], press)
        self.edges = [
            Edge("data", "λ₁ at λ₂ = 1", chart),
            Edge("noise", "λ₂ at λ₁ = 1", chart),
        ]
        self.triangle = Triangle()
        self.legend = w.HTML().add_class("mx-note")
        pairs = [self.maps[:2], [self.maps[2], self.nearest]]
        four = w.VBox([w.HBox([m.widget for m in pair]) for pair in pairs])
        runs = w.VBox(
            [w.HTML("runs on the triangle").add_class("mx-note"), self.triangle.figure],
            layout=w.Layout(overflow="visible"),
        )
        grid = w.HBox([four, runs]).add_class("mx-row")
        edges = w.HBox([e.figure for e in self.edges]).add_class("mx-charts")
        self.views = w.VBox(
            [grid, self.legend, titled("Edges: mean distance after the run", edges)],
            layout=w.Layout(overflow="visible"),
        )
        self.body = w.VBox(layout=w.Layout(overflow="visible"))
        head = w.HBox([self.attack, self.side, self.steps, self.seeds]).add_class("mx-row")
        go = w.HBox([self.go, self.progress]).add_class("mx-row")
        self.widget = titled(
            "Where attacks end, over all starts (Runkel et al.)",
            w.VBox([head, go, self.said, self.body], layout=w.Layout(overflow="visible")),
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
        self._draw_cells()

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
        found, stop = self.found, self._stop
        assert found is not None
        self.go.description = CANCEL
        try:
            await asyncio.to_thread(found.prepare, self.seeds.value)
            for key in found.todo(self.seeds.value):
                if stop.is_set():
                    break
                await asyncio.to_thread(found.run, key, stop)
                if self.found is found:
                    self._progress(found)
        except Exception as error:  # a task's error would vanish unseen
            self.session.message = f"The grid stopped: {error}"
        finally:
            self.go.description = RUN
            if self.found is found:
                self._draw_cells()

    # --- views ------------------------------------------------------------------------------
    def _progress(self, found: Found) -> None:
        self.progress.value = found.share(self.seeds.value)
        if perf_counter() - self._drawn_at > DRAW_S:
            self._draw_cells()

    def _draw_cells(self) -> None:
        """Maps, edges and triangle of what is known; nothing is mounted before."""
        found = self.found
        self._drawn_at = perf_counter()
        if found is None or not found.rows:
            self.said.value, self.body.children, self.progress.value = EMPTY, (), 0.0
            return
        side = found.of.side
        seen = maps(side, found.rows.values())
        cells = [(a, b) for b in steps_of(side) for a in steps_of(side)]
        mean = seen.mean.reshape(3, -1)
        known = np.isfinite(mean[0])
        self._cells = [c for c, k in zip(cells, known, strict=True) if k]
        at = np.array(self._cells)
        words = [_words(c, v) for c, v in zip(self._cells, mean[:, known].T, strict=True)]
        top = float(mean[:, known].max())
        for one, values in zip(self.maps, mean, strict=True):
            one.show(at, values[known], words, side, top)
        nearest = seen.nearest.reshape(-1)[known].astype(float)
        self.nearest.show(at, nearest, words, side, 2.0)
        for edge in self.edges:
            edge.show(seen)
        self.session.trails = [row["result"]["trail"] for row in found.rows.values()]
        self.triangle.show(self.session.trails)
        self.said.value = escape(_sentence(seen))
        self.legend.value = _legend(top)
        if self.body.children != (self.views,):
            self.body.children = (self.views,)

    def load(self, mix_truth: float, mix_data: float) -> None:
        """Put the run from a cell on the plane; the Attack stage then shows it step by step."""
        found, session = self.found, self.session
        key = (0, *start_of(mix_truth, mix_data))
        if found is None or key not in found.states:
            raise ValueError("That cell is not done yet.")
        states = found.states[key]
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

    def close(self) -> None:
        """Cancel what is under way."""
        self.cancel()
        super().close()


def _legend(top: float) -> str:
    sets = " &nbsp; ".join(f"<b style='color:{SHADES[n]}'>■</b> {WORDS[n]}" for n in NAMES)
    return f"Maps: dark 0, bright {top:.2g}. &nbsp; {sets} &nbsp; dotted: at the start"


def _words(cell: tuple[float, float], values: np.ndarray) -> str:
    parts = ", ".join(f"{v:.3g} to {WORDS[n]}" for v, n in zip(values, NAMES, strict=True))
    return f"λ₁ {cell[0]:g}, λ₂ {cell[1]:g}: {parts}"


def _sentence(seen: Maps) -> str:
    return f"{seen.sentence()} Hover for numbers; click a cell to see its run on the plane."
