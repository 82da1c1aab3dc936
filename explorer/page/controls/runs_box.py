"""Runs from all places of the triangle as pages show them: started, cancelled, kept, loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from html import escape
from time import perf_counter
from typing import Any, Protocol

import ipywidgets as w
import numpy as np
from torch import Tensor

from explorer.engine.energy.starts import NAMES, places_of
from explorer.engine.progress import Progress
from explorer.page.controls.files import GridFiles
from explorer.page.controls.job_row import JobButton, progress_bar
from explorer.page.controls.pick import Pick
from explorer.page.controls.settings import choice, whole
from explorer.page.job import Job, JobState
from explorer.page.stages.landscape import words
from explorer.page.view.canvases import Arrays
from explorer.research.grid import Grid
from explorer.research.grid.landscape import SIDES, Arrivals, Key, Runs
from explorer.research.grid.store import CellStore

CANCEL = "Cancel"
DRAW_S = 0.08  # arbitrary: between two looks at the runs while they roll
PROBLEMS = 4  # arbitrary: that stay in the page's memory

Guard = Callable[[Callable[[], None]], Callable[[Any], None]]


class Host(Protocol):
    """The page of the runs."""

    def problem(self) -> Grid:
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
        self, host: Host, guard: Guard, steps: int | None,
        first: Callable[[], tuple[w.Widget, ...]] = tuple,
    ) -> None:  # fmt: skip
        """`first` makes controls of the page's own; `steps` of a run, None for the attack's."""
        self.host, self._guard = host, guard
        self.found: Runs | None = None
        self.keeper: CellStore | None = None
        self._known: list[Runs] = []
        self.job, self._drawn_at = Job(), 0.0
        self.chosen: Key | None = None
        self._settings: dict[str, Any] = {"side": SIDES[0], "steps": steps, "seeds": 1}
        self._first, self._words = first, ""
        self._on_setting: list[Callable[[], None]] = [self._label]
        self.go = JobButton(
            self.job, "", CANCEL, "Run the attack from every place; what is done stays",
            guard(self._start),
        )  # fmt: skip
        self.progress = progress_bar(self.job, "Share of the runs", "120px")
        self._label()
        self._draw()

    # --- settings, and what is folded: made when it is looked at -----------------------------
    def setting(self, name: str) -> Any:  # noqa: ANN401 - a whole number
        """Return "side", "steps" or "seeds" as it is chosen."""
        return self._settings[name]

    def on_setting(self, call: Callable[[], None]) -> None:
        """Call `call()` when a setting was changed."""
        self._on_setting.append(call)

    def _field(self, name: str, field: w.Widget, width: str) -> w.Widget:
        field.style.description_width, field.layout.width = "initial", width
        field.value = self._settings[name]

        def take(change: dict[str, Any]) -> None:
            self._settings[name] = change["new"]
            for call in self._on_setting:
                call()

        field.observe(take, names=["value"])
        return field

    @cached_property
    def side(self) -> w.Dropdown:
        """Return the field of the places."""
        places = ((str(len(places_of(side))), side) for side in SIDES)
        tip = "From how many places of the triangle the attack runs"
        return self._field("side", choice("places", tip, *places), "120px")

    @cached_property
    def steps(self) -> w.BoundedIntText:
        """Return the field of the steps."""
        tip = "Length of the attack from each place"
        return self._field("steps", whole("steps", tip, 1, 100_000), "122px")

    @cached_property
    def seeds(self) -> w.BoundedIntText:
        """Return the field of the seeds."""
        return self._field("seeds", whole("seeds", "Draws of the noise", 1, 20), "100px")

    @cached_property
    def pick(self) -> Pick:
        """Return the list of the runs that are done."""
        made = Pick(
            "run", "The runs that are done, with the energy they end at: choosing one loads it, as "
            "a press on its end does", self._press,
        )  # fmt: skip
        self._fill(made)
        return made

    @cached_property
    def said(self) -> w.HTML:
        """Return what is said of the runs."""
        return w.HTML(self._words, _dom_classes=["mx-note"])

    @cached_property
    def files(self) -> GridFiles:
        """Return the runs as files."""
        made = GridFiles(self._take_up, self._forget, self._guard)
        self._offer(made, anew=True)
        return made

    @cached_property
    def widget(self) -> w.VBox:
        """Settings, the list of runs, and their files."""
        steps = () if self._settings["steps"] is None else (self.steps,)
        row = w.HBox([*self._first(), self.side, *steps, self.seeds], _dom_classes=["mx-row"])
        return w.VBox(
            [row, self.pick.list, self.said, self.files.widget],
            layout=w.Layout(overflow="visible"),
        )

    def _say(self, words: str) -> None:
        self._words = words
        if "said" in vars(self):
            self.said.value = words

    def _label(self) -> None:
        """Put the number of runs on the button."""
        count = len(places_of(self._settings["side"])) * self._settings["seeds"]
        self.go.name(words.attack_all(count))

    # --- which problem ----------------------------------------------------------------------
    def take(self, of: Grid | None, measure: Callable[[Tensor], float] | None = None) -> None:
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
            self.keeper = CellStore(self.found)
        self._say("")
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
        """Return whether runs go on."""
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
        keys, seeds = found.todo(self._settings["seeds"]), self._settings["seeds"]

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

    def arrivals(self) -> Arrivals | None:
        """Return where the runs of these settings ended; None where that is not known."""
        if self.found is None:
            return None
        going = self.job.state is JobState.RUNNING
        return self.found.arrivals(self._settings["seeds"], going)

    def _draw(self, anew: bool = False) -> None:
        """Draw the known runs; offer them as files and in the list."""
        self._drawn_at = perf_counter()
        if "files" in vars(self):
            self._offer(self.files, anew)
        if "pick" in vars(self):
            self._fill(self.pick, anew or not self.busy)  # while runs roll it may be open
        self.host.drawn()

    def _offer(self, files: GridFiles, anew: bool) -> None:
        if self.keeper is None or self.found is None:
            files.show(0, lambda: ("", ""), "", anew)
        else:
            files.show(len(self.found.rows), self.keeper.texts, self.keeper.words, anew)

    def _fill(self, pick: Pick, names: bool = True) -> None:
        rows = {} if self.found is None else self.found.rows
        if names:
            pick.fill([(words.run(key, rows[key]), key) for key in sorted(rows)], self.chosen)
        pick.list.layout.display = "" if rows else "none"

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
        self._say("This run has no timeline: it runs again, from the same seed …")

        def work(progress: Progress) -> Iterator[None]:
            found.prepare(key[0] + 1, lambda _: progress(0.0))
            found.run_again(key, progress)
            yield

        self._work(found, work, [key], "The run stopped", lambda: self._loaded(found, key))

    def _loaded(self, found: Runs, key: Key) -> None:
        """Show a run on the page, and say which one."""
        self.chosen = key
        self._say(escape(self.host.show(found, key)))
        if "pick" in vars(self):
            self.pick.choose(key)


def trail_arrays(trails: list[tuple[Any, list[list[float]], int]]) -> Arrays:
    """Return runs as arrays: `trails` (k, t, 3), shorter ones stay at their end, and `ends`."""
    if not trails:
        return {}
    longest = max(len(places) for _, places, _ in trails)
    made = [[*places, *[places[-1]] * (longest - len(places))] for _, places, _ in trails]
    ends = np.array([end for _, _, end in trails], dtype=np.uint8)
    return {"trails": np.array(made, dtype=np.float32), "ends": ends}
