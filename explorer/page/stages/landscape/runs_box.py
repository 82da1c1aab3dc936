"""Runs from all places of the triangle as pages show them: started, cancelled, kept, loaded."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from html import escape
from time import perf_counter
from typing import Any, Protocol

import ipywidgets as w
import numpy as np
from torch import Tensor

from explorer.engine.arrays import Arrays
from explorer.engine.energy.starts import NAMES, places_of
from explorer.engine.progress import Progress
from explorer.page.controls.row import Item, Row, choices, pick, pick_options
from explorer.page.job import Job, JobState
from explorer.page.stages.landscape import words
from explorer.research.grid import Grid
from explorer.research.grid.landscape import ROLLING, SIDES, Arrivals, Key, Runs
from explorer.research.grid.store import CellStore

CANCEL = "Cancel"
SIDE_TIP = "From how many places of the triangle the attack runs"
STEPS_TIP = "Length of the attack from each place"
RUN_TIP = (
    "The runs that are done, with the energy they end at: choosing one loads it, as a press on its "
    "mark does"
)
OPEN_TIP = (
    "Cells that this page once offered: the grid goes on from there; cells of other weights, "
    "points or settings are refused"
)
FORGET = "Delete these runs"
FORGET_TIP = "Take the cells of this grid off the page, and off the disk where they are kept"
GROWN = 1.2  # arbitrary: the downloads are made anew when a fifth more cells are there
DRAW_S = 0.08  # arbitrary: between two looks at the runs while they roll
PROBLEMS = 4  # arbitrary: that stay in the page's memory

Guard = Callable[[Callable[[], None]], Callable[[Any], None]]


class Host(Protocol):
    """The page of the runs."""

    def problem(self) -> Grid:
        """Return the problem to run now. ValueError if there is none."""

    def show(self, found: Runs, key: Key) -> str:
        """Show a run on the page, from its states. Return what is seen now."""

    def best(self, found: Runs) -> Key | None:
        """Show the run that ended best. Return it; None where none is to be shown."""

    def draw_runs(self) -> None:
        """Draw the runs that are known."""

    def tell(self, words: str) -> None:
        """Show the result as a sentence."""


class RunsBox:
    """Runs attacks from the places of a triangle beside the page; finished runs stay.

    Attributes:
        found: the problem on screen with its runs, or None.
        keeper: its runs outside the kernel.
        go: the button that runs them all, and cancels, with its bar.
        settings: the items `side`, `steps` and `seeds`, after those of the page.
        list: the runs that are done, and what is said of the chosen one.
        files: finished cells in and out of the page; downloads stand in `links`.
        widget: all but `go`.
    """

    def __init__(
        self,
        host: Host,
        guard: Guard,
        steps: int | None,
        changed: Callable[[], None],
        **first: Item,
    ) -> None:
        """Make the controls.

        Args:
            host: the page.
            guard: shows what a call refuses.
            steps: length of a run at first; None for that of the attack.
            changed: called after a change of a setting.
            first: items of the page's own, before the settings.
        """
        self.host, self._guard = host, guard
        self.found: Runs | None = None
        self.keeper: CellStore | None = None
        self._known: list[Runs] = []
        self.job, self._drawn_at = Job(), 0.0
        self.chosen: Key | None = None
        self._asked, self._offered = False, 0
        self.go = Row(
            go=Item("job", "", "Run the attack from every place; what is done stays",
                    call=guard(self._start), job=self.job, cancel=CANCEL),
            share=Item("bar", tip="Share of the runs", job=self.job),
        )  # fmt: skip

        def set_(_: Any) -> None:  # noqa: ANN401 - a number
            self._label()
            changed()

        places = choices(*((str(len(places_of(side))), side) for side in SIDES))
        fields = {
            "side": Item("select", "places", SIDE_TIP, SIDES[0], places, set_),
            "steps": Item("number", "steps", STEPS_TIP, steps, (), set_, low=1, high=100_000,
                          whole=True, hidden=steps is None),
            "seeds": Item("number", "seeds", "Draws of the noise", 1, (), set_, low=1, high=20,
                          whole=True),
        }  # fmt: skip
        self.settings = Row(**first, **fields)
        self.list = Row(run=pick("run", RUN_TIP, self._press), said=Item("words", value=""))
        self.links = w.HTML()  # holds the files: sent when these change, and not else
        self.files = Row(
            open=Item("file", "Open saved runs", OPEN_TIP, accept=".jsonl",
                      call=lambda given: guard(lambda: self._take_up(*given))(None)),
            forget=Item("button", FORGET, FORGET_TIP, hidden=True,
                        call=guard(self._on_forget)),
            kept=Item("words", value=""),
        )  # fmt: skip
        parts = [self.settings, self.list, self.files, self.links]
        self.widget = w.Box(parts, _dom_classes=["mx-runs"])
        self._label()
        self._draw()

    def setting(self, name: str) -> Any:  # noqa: ANN401 - a whole number
        """Return a setting, such as "side" or "seeds", as it is chosen."""
        return self.settings.value(name)

    def _label(self) -> None:
        """Put the number of runs on the button."""
        count = len(places_of(self.setting("side"))) * self.setting("seeds")
        self.go.put("go", label=words.attack_all(count))

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
        self.list.say("")
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

    def _on_forget(self) -> None:
        """Forget the cells at the second press: they cannot be brought back."""
        if not self._asked:
            self._asked = True
            self.files.put("forget", label="Press again to forget")
        elif self.keeper is not None and self.found is not None:
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
        keys, seeds = found.todo(self.setting("seeds")), self.setting("seeds")

        def work(progress: Progress) -> Iterator[None]:
            found.prepare(seeds, lambda _: progress(0.0))
            yield from found.roll(keys, progress)

        self._work(found, work, keys, "The runs stopped", self.show_best)

    def show_best(self) -> None:
        """Put the run on the page that ended best, where the page shows one of them."""
        key = None if self.found is None else self.host.best(self.found)
        if key is not None:
            self.chosen = key
            self.list.put("run", value=key)

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

        def end() -> None:
            keep()
            if self.job.error is not None:
                self.host.tell(f"{trouble}: {self.job.error}")
            if self.found is found:
                self._draw(anew=True)
                if then is not None and self.job.state is JobState.DONE:
                    self._guard(then)(None)

        self.job.start(work, take, end)

    # --- views ------------------------------------------------------------------------------
    def arrays(self, shown: list[list[float]] | None = None) -> Arrays:
        """Return the known runs as `TriangleView` takes them, and one that is `shown` (t, 3)."""
        return runs_arrays(self.found, shown)

    def counts(self) -> list[int]:
        """Return how many finished runs have each kind of end."""
        ends = [] if self.found is None else [end for _, _, end in self.found.trails()]
        return [ends.count(k) for k in range(len(NAMES))]

    def arrivals(self) -> Arrivals | None:
        """Return where the runs of these settings ended; None where that is not known."""
        if self.found is None:
            return None
        going = self.job.state is JobState.RUNNING
        return self.found.arrivals(self.setting("seeds"), going)

    def _draw(self, anew: bool = False) -> None:
        """Draw the known runs; offer them as files and in the list."""
        self._drawn_at = perf_counter()
        self._offer(anew)
        if anew or not self.busy:  # while runs roll it may be open
            self._fill()
        self.host.draw_runs()

    def _offer(self, anew: bool) -> None:
        """Offer the finished runs as files; these are made only when many more are there."""
        count = 0 if self.found is None else len(self.found.rows)
        if anew or not count:  # not while cells come in: the second press would come too late
            self._asked = False
            self.files.put("forget", label=FORGET)
        self.files.put("forget", hidden=not count)
        self.files.put("kept", value="" if self.keeper is None else escape(self.keeper.words))
        if self.keeper is None or not count:
            self._offered = 0
            self.links.value = ""
        elif anew or not self._offered <= count < GROWN * self._offered:
            self._offered = count
            lines, table = (text.encode() for text in self.keeper.texts())
            self.links.value = (
                f"{link('grid.jsonl', 'application/x-ndjson', lines)} &nbsp; "
                f"{link('grid.csv', 'text/csv', table)}: {count} cells"
            )

    def _fill(self) -> None:
        rows = {} if self.found is None else self.found.rows
        pairs = [(words.run(key, rows[key]), key) for key in sorted(rows)]
        chosen = self.chosen if self.chosen in rows else None
        self.list.put("run", options=pick_options("run", *pairs), value=chosen, hidden=not rows)

    def press(self, index: int) -> None:
        """Load the run whose mark was pressed, as numbered in `arrays`."""
        keys = [] if self.found is None else [key for key, _, _ in self.found.trails()]
        if 0 <= index < len(keys):
            self._press(keys[index])

    def _press(self, key: Key) -> None:
        self._guard(lambda: self.load(key))(None)

    def load(self, key: Key) -> None:
        """Put a run on the page. One from a file has no states: it runs again, from its seed.

        Raises:
            ValueError: for a run that has not end, or while others go on and it has no states.
        """
        found = self.found
        if found is None or key not in found.rows:
            raise ValueError("That run has not ended yet.")
        if key in found.states:
            self._show_run(found, key)
            return
        if self.busy:
            raise ValueError("Attacks are running: cancel them, or wait, to run this one again.")
        self.list.say("This run has no timeline: it runs again, from the same seed …")

        def work(progress: Progress) -> Iterator[None]:
            found.prepare(key[0] + 1, lambda _: progress(0.0))
            found.run_again(key, progress)
            yield

        self._work(found, work, [key], "The run stopped", lambda: self._show_run(found, key))

    def _show_run(self, found: Runs, key: Key) -> None:
        """Show a run on the page, and say which one."""
        self.chosen = key
        self.list.say(escape(self.host.show(found, key)))
        self.list.put("run", value=key)


def runs_arrays(found: Runs | None, shown: list[list[float]] | None = None) -> Arrays:
    """Return runs as `trail_arrays`; the places `shown`, of the run on the plane, come last."""
    trails = [] if found is None else found.trails()
    every = [(places, end) for _, places, end in trails]
    return trail_arrays([*every, (shown, ROLLING)] if shown else every)


def trail_arrays(trails: list[tuple[list[list[float]], int]]) -> Arrays:
    """Return runs as arrays: `trails` (k, t, 3), shorter ones stay at their end, and `ends`."""
    if not trails:
        return {}
    longest = max(len(places) for places, _ in trails)
    made = [[*places, *[places[-1]] * (longest - len(places))] for places, _ in trails]
    ends = np.array([end for _, end in trails], dtype=np.uint8)
    return {"trails": np.array(made, dtype=np.float32), "ends": ends}


def link(name: str, kind: str, data: bytes) -> str:
    """Return a download; the link holds the bytes, so it works after its kernel has ended."""
    coded = base64.b64encode(data).decode()
    size = f"{max(1, len(data) // 1024):,} kB"
    return f"<a download='{name}' href='data:{kind};base64,{coded}'>Download {name}</a> ({size})"
