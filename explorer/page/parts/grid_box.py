"""A grid of starts as pages show it: controls, progress, cells in and out, maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from html import escape
from time import perf_counter
from typing import Any, Protocol

import bqplot as bq
import ipywidgets as w
import numpy as np

from explorer.engine.energy.starts import NAMES, start_of, starts, steps_of
from explorer.engine.progress import Progress, between
from explorer.page.job import Job, JobState
from explorer.page.parts.files import GridFiles
from explorer.page.parts.grid_cells import GridCells
from explorer.page.parts.grid_charts import CHOSEN, SHADING, CellMap, Edge, Triangle
from explorer.page.parts.job_row import JobButton
from explorer.page.parts.settings import choice, whole
from explorer.research.grid import WORDS, Found, Key, Maps, Of, maps
from explorer.research.grid_store import Keeper
from explorer.style import SHADES

# --- What a grid of starts asks of the page it is on --------------------------------------------


class Host(Protocol):
    """The page of a grid."""

    click: str  # what a click on a cell does

    def empty(self, count: int) -> str:
        """Return what to do first, for a grid of this many starts."""

    def problem(self) -> Of:
        """Return the problem to run now. ValueError if there is none."""

    def show(self, found: Found, key: Key) -> str:
        """Show the run of a cell on the page, from its states. Return what is seen now."""

    def drawn(self, trails: list[Any]) -> None:
        """Take the runs that are known."""

    def tell(self, words: str) -> None:
        """Show the result as a sentence."""


# --- All views of a grid of starts: four maps, two edges, the triangle, and their legend --------

EDGES = (
    "Dotted: at the start. Bands span the seeds; at λ₂ = 1 no noise enters, so that all seeds are "
    "one run and there is no band."
)


class GridBoard:
    """Shows `Maps`; a click on a cell calls back with its place."""

    def __init__(
        self, press: Callable[[tuple[float, float]], None], chart: Callable[..., bq.Figure],
        titled: Callable[[str, w.Widget], w.Widget],
    ) -> None:  # fmt: skip
        """`press` takes (lambda_1, lambda_2); `chart` and `with_title` are those of panels."""
        self.cells: list[tuple[float, float]] = []

        def on_cell(index: int) -> None:
            press(self.cells[index])

        self.maps = [CellMap(f"distance to {WORDS[n]}", SHADING, on_cell) for n in NAMES]
        self.nearest = CellMap("nearest set", [SHADES[n] for n in NAMES], on_cell)
        self.edges = [
            Edge("data", "λ₁ at λ₂ = 1", chart),
            Edge("noise", "λ₂ at λ₁ = 1", chart),
        ]
        self.triangle = Triangle()
        self.legend = w.HTML().add_class("mx-note")
        pairs = [self.maps[:2], [self.maps[2], self.nearest]]
        wrapped = w.Layout(flex_flow="row wrap", overflow="visible")
        four = w.VBox(
            [w.HBox([m.widget for m in pair], layout=wrapped) for pair in pairs],
            layout=w.Layout(overflow="visible"),
        )
        runs = w.VBox(
            [w.HTML("runs on the triangle").add_class("mx-note"), self.triangle.figure],
            layout=w.Layout(overflow="visible"),
        )
        grid = w.HBox([four, runs]).add_class("mx-row")
        edges = w.HBox([e.figure for e in self.edges]).add_class("mx-charts")
        self.widget = w.VBox(
            [
                grid,
                self.legend,
                titled("Edges: mean distance after the run", edges),
                w.HTML(EDGES).add_class("mx-note"),
            ],
            layout=w.Layout(overflow="visible"),
        )

    def show(self, seen: Maps, trails: list[Any], chosen: tuple[float, float] | None) -> None:
        """Show maps of at least one cell, and the runs; the `chosen` cell has a frame."""
        side = len(seen.values)
        cells = [(a, b) for b in steps_of(side) for a in steps_of(side)]
        mean = seen.mean.reshape(3, -1)
        known = np.isfinite(mean[0])
        self.cells = [c for c, k in zip(cells, known, strict=True) if k]
        at = np.array(self.cells)
        words = [_words(c, v) for c, v in zip(self.cells, mean[:, known].T, strict=True)]
        top = float(mean[:, known].max())
        for one, values in zip(self.maps, mean, strict=True):
            one.show(at, values[known], words, side, top)
        nearest = seen.nearest.reshape(-1)[known].astype(float)
        self.nearest.show(at, nearest, words, side, 2.0)
        for edge in self.edges:
            edge.show(seen)
        self.triangle.show(trails)
        self.legend.value = _legend(top)
        self.choose(chosen)

    def choose(self, cell: tuple[float, float] | None) -> None:
        """Frame this cell on every map."""
        for one in (*self.maps, self.nearest):
            one.choose([c for c in self.cells if cell is not None and start_of(*c) == cell])


def trails_of(rows: Mapping[Any, Mapping[str, Any]]) -> list[Any]:
    """Return the trajectory of each finished cell."""
    return [row["result"]["trail"] for row in rows.values()]


def _legend(top: float) -> str:
    sets = " &nbsp; ".join(
        f"<span><b style='color:{SHADES[n]}'>■</b> {WORDS[n]}</span>" for n in NAMES
    )
    return (
        f"Maps of distances: dark is near (0), bright is far ({top:.2g}). &nbsp; {sets} &nbsp; "
        f"<span><b style='color:{CHOSEN}'>□</b> the cell chosen</span>"
    )


def _words(cell: tuple[float, float], values: np.ndarray) -> str:
    parts = ", ".join(f"{v:.3g} to {WORDS[n]}" for v, n in zip(values, NAMES, strict=True))
    return f"λ₁ {cell[0]:g}, λ₂ {cell[1]:g}: {parts}"


RUN, CANCEL = "Run the grid", "Cancel the grid"
AGAIN_S = 0.5  # after a cancel: a second press so soon was the same one; arbitrary
DRAW_S = 0.5  # arbitrary: between two looks at the maps while cells come in
PROBLEMS = 4  # arbitrary: that stay in the page's memory

Guard = Callable[[Callable[[], None]], Callable[[Any], None]]


class GridBox:
    """Runs the cells of a problem beside the page; finished cells stay.

    Attributes:
        found: the problem on screen with its cells, or None.
        keeper: its cells outside the kernel.
    """

    def __init__(
        self, host: Host, guard: Guard, chart: Callable[..., bq.Figure],
        titled: Callable[[str, w.Widget], w.Widget], steps: int, first: tuple[w.Widget, ...] = (),
    ) -> None:  # fmt: skip
        """`first`: controls of the page's own; `steps` per cell; the rest as in `GridBoard`."""
        self.host, self._guard = host, guard
        self.found: Found | None = None
        self.keeper: Keeper | None = None
        self._known: list[Found] = []
        self.job, self._drawn_at = Job(), 0.0
        self.side = choice(
            "cells", "Steps of λ₁ and λ₂ from 0 to 1: 21, 111 or 651 distinct starts",
            ("5 × 5", 5), ("11 × 11", 11), ("26 × 26", 26),
        )  # fmt: skip
        self.steps = whole("steps per cell", "Length of the attack from each start", 1, 100_000)
        self.steps.value = steps
        self.seeds = whole("seeds", "Draws of the noise; the bands of the edges span them", 1, 20)
        begin = JobButton(
            self.job, RUN, CANCEL, "Run the attack from every start; what is done stays. Again: "
            "cancel", self._start, AGAIN_S,
        )  # fmt: skip
        self.go = begin.widget
        self.go.on_click(guard(begin.press))
        self.progress = w.FloatProgress(
            value=0, min=0, max=1, layout=w.Layout(width="160px"), tooltip="Cells done"
        )
        self.seeds.observe(lambda _: self._share(), names=["value"])
        self.said = w.HTML().add_class("mx-note")

        def press(cell: tuple[float, float]) -> None:
            guard(lambda: self.load(*cell))(None)

        self.board, self.cells = GridBoard(press, chart, titled), GridCells(press)
        self.files = GridFiles(self._take_up, self._forget, guard)
        visible = w.Layout(overflow="visible")
        self.body = w.VBox(layout=visible)
        for field, width in ((self.side, "130px"), (self.steps, "200px"), (self.seeds, "130px")):
            field.style.description_width, field.layout = "initial", w.Layout(width=width)
        rows = ([*first, self.side, self.steps, self.seeds], [self.go, self.progress])
        head = [w.HBox(row).add_class("mx-row") for row in rows]
        self.widget = titled(
            "Where attacks end, over all starts (Runkel et al.)",
            w.VBox([*head, self.said, self.files.widget, self.body], layout=visible),
        )
        self._draw()

    # --- which problem ----------------------------------------------------------------------
    def take(self, of: Of | None) -> None:
        """Show this problem with its known cells; None for no problem."""
        if (None if self.found is None else self.found.of) == of:
            return
        self.cancel()
        self.found = self.keeper = None
        if of is not None:
            self.found = next((one for one in self._known if one.of == of), None) or Found(of)
            others = [one for one in self._known if one is not self.found]
            self._known = [self.found, *others][:PROBLEMS]
            self.keeper = Keeper(self.found)
        self.cells.tell(None, "")
        self._draw(anew=True)

    def forget(self) -> None:
        """Drop every problem; files on the disk stay."""
        self._known = []
        self.take(None)

    def _take_up(self, name: str, content: bytes) -> None:
        if self.keeper is None:
            self.take(self.host.problem())
        if self.keeper is not None:
            self.host.tell(self.keeper.open(name, content))
            self._draw(anew=True)

    def _forget(self) -> None:
        if self.keeper is None or self.found is None:
            return
        self.keeper.forget()
        of = self.found.of
        self._known = [one for one in self._known if one is not self.found]
        self.take(None)
        self.take(of)

    # --- running ----------------------------------------------------------------------------
    @property
    def busy(self) -> bool:
        """Whether cells are being run."""
        return self.job.busy

    @property
    def ending(self) -> bool:
        """Return whether the run is cancelled, and its last step not yet finished."""
        return self.job.state is JobState.CANCELLING

    def _start(self) -> None:
        self.take(self.host.problem())
        self.run()

    def cancel(self) -> None:
        """End the run after the present step; finished cells stay."""
        self.job.cancel()

    def run(self) -> None:
        """Run all unfinished cells of the problem on screen, the first seed first."""
        found = self.found
        if found is not None:
            self._run(found, found.todo(self.seeds.value), self.seeds.value, "The grid stopped")

    def _run(
        self, found: Found, keys: list[Key], seeds: int, trouble: str,
        then: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        """Run these cells; call `then` if all were finished and are still on screen."""
        keeper, unkept = self.keeper, list(keys)

        def keep() -> None:
            """Keep the finished cells: a cancel may come right after the last of them."""
            while unkept and unkept[0] in found.rows:
                key = unkept.pop(0)
                if keeper is not None:
                    keeper.add(key)

        def work(progress: Progress) -> Iterator[Key]:
            found.prepare(seeds, lambda _: progress(0.0))
            for k, key in enumerate(keys):
                found.run(key, between(progress, k / len(keys), (k + 1) / len(keys)))
                yield key

        def take(_: Key) -> None:
            keep()
            if self.found is found:
                self._progress(found)

        def ended() -> None:
            keep()
            if self.job.error is not None:
                self.host.tell(f"{trouble}: {self.job.error}")
            if self.found is found:
                self._draw(anew=True)
                if then is not None and self.job.state is JobState.DONE:
                    self._guard(then)(None)

        self.job.start(work, take, ended)

    # --- views ------------------------------------------------------------------------------
    def _progress(self, found: Found) -> None:
        self._share()
        if perf_counter() - self._drawn_at > DRAW_S:
            self._draw()

    def _share(self) -> None:
        """Return the share of the cells that is finished."""
        found = self.found
        if found is None or not found.rows:
            self.progress.value = 0.0
        else:
            self.progress.value = found.share(self.seeds.value)

    def _draw(self, anew: bool = False) -> None:
        """Draw maps, edges and triangle of the known cells; before that there are no charts."""
        found = self.found
        self._drawn_at = perf_counter()
        count = len(found.rows) if found is not None else 0
        if self.keeper is None:
            self.files.show(0, lambda: ("", ""), "", anew)
        else:
            self.files.show(count, self.keeper.texts, self.keeper.words, anew)
        self._share()
        if found is None or not found.rows:
            self.host.drawn([])
            self.invite()
            self.body.children = ()
            return
        seen, trails = maps(found.of.side, found.rows.values()), trails_of(found.rows)
        self.host.drawn(trails)
        self.board.show(seen, trails, self.cells.chosen)
        if anew or not self.busy:
            self.cells.fill(found.rows)  # not while cells come in: the list may be open
        self.said.value = escape(f"{seen.sentence()} {self.host.click}")
        if not self.body.children:
            self.body.children = (self.cells.widget, self.board.widget)

    def invite(self) -> None:
        """Show what to do first, if no cell is finished."""
        if self.found is None or not self.found.rows:
            self.said.value = escape(self.host.empty(len(starts(self.side.value))))

    def load(self, mix_truth: float, mix_data: float) -> None:
        """Put the run from a cell on the page.

        A cell from a file has no states: it runs again, from the same seed.
        """
        found = self.found
        key = (0, *start_of(mix_truth, mix_data))
        if found is None or key not in found.rows:
            raise ValueError("That cell is not done yet.")
        if key in found.states:
            self._loaded(found, key)
            return
        if self.busy:
            raise ValueError("The grid is running: cancel it, or wait, to run this cell again.")
        self.cells.tell(key[1:], "This cell has no timeline: it runs again, from the same seed …")
        self._run(found, [key], 1, "The cell stopped", lambda: self._loaded(found, key))

    def _loaded(self, found: Found, key: Key) -> None:
        """Show a run on the page, and say which one."""
        words, seeds = self.host.show(found, key), {k for k, _, _ in found.rows}
        if len(seeds) > 1:
            words += f" It is the run of the first of {len(seeds)} seeds, {found.of.seed}."
        self.cells.tell(key[1:], words)
        self.board.choose(key[1:])
