"""Runs from all places of the triangle as pages show them: started, cancelled, kept, loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from time import perf_counter
from typing import Any, Protocol

import ipywidgets as w
import numpy as np
from torch import Tensor

from explorer.engine.energy.starts import NAMES, places_of
from explorer.engine.progress import Progress
from explorer.page.job import Job, JobState
from explorer.page.parts.files import GridFiles
from explorer.page.parts.job_row import JobButton, progress_bar
from explorer.page.parts.pick import Pick
from explorer.page.parts.settings import choice, whole
from explorer.page.view.triangle import Arrays
from explorer.page.words import starts as words
from explorer.research.grid_store import Keeper
from explorer.research.landscape import SIDES, Key, Of, Runs

CANCEL = "Cancel"
AGAIN_S = 0.5  # after a cancel: a second press so soon was the same one; arbitrary
DRAW_S = 0.08  # arbitrary: between two looks at the runs while they roll
PROBLEMS = 4  # arbitrary: that stay in the page's memory

Guard = Callable[[Callable[[], None]], Callable[[Any], None]]


class Host(Protocol):
    """The page of the runs."""

    def problem(self) -> Of:
        """Return the problem to run now. ValueError if there is none."""

    def show(self, found: Runs, key: Key) -> str:
        """Show a run on the page, from its states. Return what is seen now."""

    def drawn(self) -> None:
        """Draw the runs that are known."""

    def tell(self, words: str) -> None:
        """Show the result as a sentence."""


class RunsBox:
    """Runs attacks from the places of a triangle beside the page; finished runs stay.

    Attributes:
        found: the problem on screen with its runs, or None.
        keeper: its runs outside the kernel.
        widget: settings, the list of runs, and their files.
        go: the button that runs them all, and cancels.
        progress: its bar.
    """

    def __init__(
        self, host: Host, guard: Guard, steps: int, first: tuple[w.Widget, ...] = ()
    ) -> None:
        """`first`: controls of the page's own; `steps` of a run."""
        self.host, self._guard = host, guard
        self.found: Runs | None = None
        self.keeper: Keeper | None = None
        self._known: list[Runs] = []
        self.job, self._drawn_at = Job(), 0.0
        self.chosen: Key | None = None
        self._controls(steps)
        begin = JobButton(
            self.job, "", CANCEL, "Run the attack from every place; what is done stays. Again: "
            "cancel", self._start, AGAIN_S,
        )  # fmt: skip
        self.go = begin.widget
        self.go.on_click(guard(begin.press))
        self._begin = begin
        self.progress = progress_bar(self.job, "Share of the runs", "120px")
        self.pick = Pick(
            "run", "The runs that are done, with the energy they end at: choosing one loads it, as "
            "a press on its end does", self._press,
        )  # fmt: skip
        self.said = w.HTML().add_class("mx-note")
        self.files = GridFiles(self._take_up, self._forget, guard)
        row = w.HBox([*first, self.side, self.steps, self.seeds]).add_class("mx-row")
        self.widget = w.VBox(
            [row, self.pick.list, self.said, self.files.widget],
            layout=w.Layout(overflow="visible"),
        )
        self._label()
        self._draw()

    def _controls(self, steps: int) -> None:
        self.side = choice(
            "places", "From how many places of the triangle the attack runs",
            *((str(len(places_of(side))), side) for side in SIDES),
        )  # fmt: skip
        self.steps = whole("steps", "Length of the attack from each place", 1, 100_000)
        self.steps.value = steps
        self.seeds = whole("seeds", "Draws of the noise", 1, 20)
        self.side.observe(lambda _: self._label(), names=["value"])
        self.seeds.observe(lambda _: self._label(), names=["value"])
        for field, width in ((self.side, "120px"), (self.steps, "140px"), (self.seeds, "120px")):
            field.style.description_width, field.layout = "initial", w.Layout(width=width)

    def _label(self) -> None:
        """Put the number of runs on the button."""
        self._begin.name(words.attack_all(len(places_of(self.side.value)) * self.seeds.value))

    # --- which problem ----------------------------------------------------------------------
    def take(self, of: Of | None, measure: Callable[[Tensor], float] | None = None) -> None:
        """Show this problem with its known runs; None for no problem.

        `measure`: the energy of candidates, where there is one.
        """
        if (None if self.found is None else self.found.of) == of:
            return
        self.cancel()
        self.found = self.keeper = self.chosen = None
        if of is not None:
            known = next((one for one in self._known if one.of == of), None)
            self.found = known or Runs(of, measure=measure)
            others = [one for one in self._known if one is not self.found]
            self._known = [self.found, *others][:PROBLEMS]
            self.keeper = Keeper(self.found)
        self.said.value = ""
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
        of, measure = self.found.of, self.found.measure
        self._known = [one for one in self._known if one is not self.found]
        self.take(None)
        self.take(of, measure)

    # --- running ----------------------------------------------------------------------------
    @property
    def busy(self) -> bool:
        """Whether runs go on."""
        return self.job.busy

    @property
    def ending(self) -> bool:
        """Return whether the work is cancelled, and its last step not yet finished."""
        return self.job.state is JobState.CANCELLING

    def _start(self) -> None:
        self.take(self.host.problem())
        self.run()

    def cancel(self) -> None:
        """End the work after the present step; finished runs stay, others can go on."""
        self.job.cancel()

    def run(self) -> None:
        """Run from all places that are not finished, side by side, the first seed first."""
        found = self.found
        if found is None:
            return
        keys, seeds = found.todo(self.seeds.value), self.seeds.value

        def work(progress: Progress) -> Iterator[None]:
            found.prepare(seeds, lambda _: progress(0.0))
            yield from found.roll(keys, progress)

        self._work(found, work, keys, "The runs stopped")

    def _work(
        self, found: Runs, work: Callable[[Progress], Iterator[None]], keys: list[Key],
        trouble: str, then: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        """Do `work`, keep the runs of `keys` as they end; call `then` if all ended well."""
        keeper, unkept = self.keeper, dict.fromkeys(keys)

        def keep() -> None:
            for key in [key for key in unkept if key in found.rows]:
                del unkept[key]
                if keeper is not None:
                    keeper.add(key)

        def take(_: None) -> None:
            keep()
            if self.found is found and perf_counter() - self._drawn_at > DRAW_S:
                self._draw()

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
    def arrays(self) -> Arrays:
        """Return the known runs as `TriangleView` takes them: `trails` and `ends`."""
        return trail_arrays([] if self.found is None else self.found.trails())

    def counts(self) -> list[int]:
        """Return how many finished runs end nearest to each set."""
        ends = [] if self.found is None else [end for _, _, end in self.found.trails()]
        return [ends.count(k) for k in range(len(NAMES))]

    def _draw(self, anew: bool = False) -> None:
        """Draw the known runs; offer them as files and in the list."""
        found = self.found
        self._drawn_at = perf_counter()
        count = len(found.rows) if found is not None else 0
        if self.keeper is None:
            self.files.show(0, lambda: ("", ""), "", anew)
        else:
            self.files.show(count, self.keeper.texts, self.keeper.words, anew)
        if anew or not self.busy:  # not while runs roll: the list may be open
            rows = {} if found is None else found.rows
            self.pick.fill([(words.run(key, rows[key]), key) for key in sorted(rows)], self.chosen)
        self.pick.list.layout.display = "" if count else "none"
        self.host.drawn()

    def press(self, index: int) -> None:
        """Load the run whose end was pressed, as numbered in `arrays`."""
        keys = [] if self.found is None else [key for key, _, _ in self.found.trails()]
        if 0 <= index < len(keys):
            self._press(keys[index])

    def _press(self, key: Key) -> None:
        self._guard(lambda: self.load(key))(None)

    def load(self, key: Key) -> None:
        """Put a run on the page. One from a file has no states: it runs again, from its seed.

        Raises:
            ValueError: for a run that has not ended, or while others go on and it has no states.
        """
        found = self.found
        if found is None or key not in found.rows:
            raise ValueError("That run has not ended yet.")
        if key in found.states:
            self._loaded(found, key)
            return
        if self.busy:
            raise ValueError("Attacks are running: cancel them, or wait, to run this one again.")
        self.said.value = "This run has no timeline: it runs again, from the same seed …"

        def work(progress: Progress) -> Iterator[None]:
            found.prepare(key[0] + 1, lambda _: progress(0.0))
            found.run_again(key, progress)
            yield

        self._work(found, work, [key], "The run stopped", lambda: self._loaded(found, key))

    def _loaded(self, found: Runs, key: Key) -> None:
        """Show a run on the page, and say which one."""
        self.chosen = key
        self.said.value = escape(self.host.show(found, key))
        self.pick.choose(key)


def trail_arrays(trails: list[tuple[Any, list[list[float]], int]]) -> Arrays:
    """Return runs as arrays: `trails` (k, t, 3), shorter ones stay at their end, and `ends`."""
    if not trails:
        return {}
    longest = max(len(places) for _, places, _ in trails)
    made = [[*places, *[places[-1]] * (longest - len(places))] for _, places, _ in trails]
    ends = np.array([end for _, _, end in trails], dtype=np.uint8)
    return {"trails": np.array(made, dtype=np.float32), "ends": ends}
