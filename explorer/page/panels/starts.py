"""The landscape of all starts: a triangle of energies with a handle, and attacks from there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import ipywidgets as w
import numpy as np
from numpy.typing import NDArray

from explorer.engine.energy.landscape import Weights, read_lattice
from explorer.engine.energy.starts import mix_from_weights
from explorer.engine.progress import Progress
from explorer.engine.roster import ROSTER
from explorer.page import branches, play
from explorer.page.frame import Frame, Starts
from explorer.page.job import Job
from explorer.page.panels.base import Panel
from explorer.page.parts.energies import Energies, path
from explorer.page.parts.job_row import JobButton, progress_bar
from explorer.page.parts.map_tabs import MapTabs, segments
from explorer.page.parts.runs_box import CANCEL, RunsBox
from explorer.page.parts.settings import choice
from explorer.page.shades import SHADING, by_rank, shades, span_of
from explorer.page.stages import landscape
from explorer.page.view.triangle import Arrays, StripView, TriangleView
from explorer.page.words import starts as words
from explorer.research.grid import grid_attacks
from explorer.research.landscape import Key, Of, Runs

Array = NDArray[np.float64]
SAMPLES = 60  # of a run from the handle, for its trail and its timeline; arbitrary


class StartsPanel(Panel):
    """The triangle with what is read at its handle, the profile, and the buttons that attack."""

    stages = ("landscape",)
    look = ("mx-starts-box",)  # two cards and a row of buttons

    def build(self) -> None:
        """Card 1, card 2, the buttons, and what is folded."""
        self.energies = Energies(self._on_energies, self._on_energies)
        self.attack_job = Job()
        self._shown: tuple[Any, ...] = ()  # what the triangle's frame was made of
        self._setting = False
        self.tabs = MapTabs(self.session, self.command)
        self._controls()
        self._cards()
        parts = [self.card, self.profile, self.buttons, self.runs.widget]
        self.widget = self.whole = w.VBox(parts).add_class("mx-starts")
        for job in (self.energies.job, self.attack_job, self.runs.job):
            job.observe(self._on_job)

    def _controls(self) -> None:
        self.attack = choice(
            "attack", "Which attack starts here",
            *((ROSTER[key].title, key) for key in grid_attacks()),
        )  # fmt: skip
        self.attack.style.description_width = "initial"
        self.attack.observe(self._on_attack, names=["value"])
        self.runs = RunsBox(self, self.command, landscape.STEPS, (self.attack,))
        for control in (self.runs.side, self.runs.steps):
            control.observe(self._on_places, names=["value"])
        self.here = JobButton(
            self.attack_job, words.ATTACK_HERE, CANCEL, "Run the attack from the handle: its trail "
            "rolls over the triangle", self._attack, button_style="primary",
        )  # fmt: skip
        self.here.widget.on_click(self.command(self.here.press))
        self.fill = segments(
            ("start", "end"), ["Colours by the energy of the start", "of the end of the runs"]
        )
        self.fill.observe(lambda _: self._draw_fill(), names=["value"])
        ways = (("noise", "noise"), ("unseen", "unseen"), ("edges", "edges"))
        self.along = segments(ways, [words.PROFILES[key] for key, _ in ways])
        self.along.observe(lambda _: self._draw_strip(), names=["value"])
        self.more = w.ToggleButton(
            value=False, description="More", tooltip="How many places, how long, and "
            "the runs as files", layout=w.Layout(width="auto"),
        )  # fmt: skip
        self.more.observe(lambda _: self.render(self.session.frame), names=["value"])

    def _cards(self) -> None:
        self.view = TriangleView(label=words.LABEL)
        self.view.on_handle(self._on_handle)
        self.view.on_ball(self.runs.press)
        self.title, self.said = w.HTML(), w.HTML()
        self.read, self.scale, self.counts = w.HTML(), w.HTML(), w.HTML()
        self.bar = progress_bar(self.energies.job, "Share of the map computed", "72px")
        self.stop = w.Button(description=CANCEL, tooltip="Keep the map as it is").add_class(
            "mx-slim"
        )
        self.stop.on_click(lambda _: self.energies.job.cancel())
        aside = w.VBox([self.fill, self.read, self.scale, self.counts]).add_class("mx-starts-aside")
        body = w.Box([self.view, aside]).add_class("mx-starts-body")
        head = w.HBox([self.title, self.bar, self.stop]).add_class("mx-starts-head")
        self.card = w.VBox([head, body]).add_class("mx-card")
        self.strip_title = w.HTML()
        self.strip = StripView(layout=w.Layout(height="78px", width="100%"))
        head = w.HBox([self.strip_title, self.along]).add_class("mx-starts-head")
        self.profile = w.VBox([head, self.strip]).add_class("mx-card")
        self.running = progress_bar(self.attack_job, "Share of the run", "90px")
        self.buttons = w.HBox(
            [self.here.widget, self.runs.go, self.running, self.runs.progress, self.more,
             self.tabs.widget]
        ).add_class("mx-row")  # fmt: skip

    def seen(self, frame: Frame) -> bool:
        """Return whether all points of a start move."""
        return super().seen(frame) and frame.map_kind == "starts"

    # --- the hand -----------------------------------------------------------------------------
    def _on_handle(self, weights: Weights) -> None:
        self.energies.hand()
        self.attack_job.cancel()
        self.command(lambda: landscape.place_handle(self.session, weights))(None)

    def _on_attack(self, _: Any) -> None:  # noqa: ANN401
        if not self._setting:
            choose = partial(landscape.choose_attack, self.session, self.attack.value)
            self.command(choose)(None)
            self.render(self.session.frame)

    def _on_places(self, _: Any) -> None:  # noqa: ANN401
        self._take()

    # --- the session --------------------------------------------------------------------------
    def render(self, frame: Frame) -> None:
        """Show the handle with its energy; ask for the map of these weights."""
        held = frame.starts
        self.tabs.show(frame)
        self._set_attack(frame.attack.name)
        self.energies.ask(None if held is None else held.landscape)
        if held is None:
            self._refuse(words.why_none(frame), choose=frame.target is not None)
            self.runs.take(None)
            return
        children = (self.card, self.profile, self.buttons)
        self.whole.children = (*children, self.runs.widget) if self.more.value else children
        self.title.value = words.heading(words.TITLE, words.unit(held.of.attack))
        self.view.handle = held.weights
        self.view.say = words.said(held.weights, held.energy)
        self.read.value = words.readout(held.weights, held.energy, bool(held.trail))
        self._take()
        self._draw_fill()

    def _refuse(self, why: str, choose: bool) -> None:
        self.title.value, self.said.value = words.heading(words.TITLE, ""), words.html(why)
        rest = (self.attack,) if choose else ()
        self.whole.children = (self.title, self.said, *rest, self.tabs.widget)

    def _set_attack(self, name: str) -> None:
        self._setting = True
        known = [key for _, key in self.attack.options]
        self.attack.value = name if name in known else None
        self._setting = False

    def _take(self) -> None:
        """Take up what is known of the runs on screen."""
        held = self.session.frame.starts
        if held is not None:
            self.runs.take(self._of(), held.landscape.measure)

    def _of(self) -> Of:
        return landscape.problem(self.session, self.runs.steps.value, self.runs.side.value)

    # --- what is drawn --------------------------------------------------------------------------
    def _on_energies(self) -> None:
        """Draw the map; the headline tells what a complete one shows."""
        values = self.energies.values
        if self.energies.complete and values is not None and self.session.frame.starts is not None:
            self.command(lambda: landscape.know(self.session, values))(None)
        self._draw_fill()

    def _on_job(self) -> None:
        for one in (self.bar, self.stop):
            _show(one, self.energies.job.busy)
        _show(self.running, self.attack_job.busy)
        _show(self.runs.progress, self.runs.busy)

    def _ends(self) -> Array | None:
        """Energies at the end of the runs on their lattice, or None where no run has one."""
        found = self.runs.found
        made = None if found is None or not found.rows else found.ends()
        return made if made is not None and np.isfinite(made).any() else None

    def _draw_fill(self) -> None:
        """Draw map and runs, unless the browser has them; then the profile."""
        held = self.session.frame.starts
        if held is None:
            return
        ends, values = self._ends(), self.energies.values
        self.fill.disabled = ends is None
        filled = ends if self.fill.value == "end" and ends is not None else values
        found = self.runs.found
        rolled = (0, 0)
        if found is not None:
            rolled = len(found.rows), sum(len(t.places) for t in list(found.rolling.values()))
        shown = (values, self.fill.value, rolled, len(held.trail), id(found))
        if not self._shown or values is not self._shown[0] or shown[1:] != self._shown[1:]:
            self._shown = shown
            self._send(held, filled)
        self._draw_strip()

    def _send(self, held: Starts, filled: Array | None) -> None:
        arrays: Arrays = {} if held.trail else self.runs.arrays()
        if held.trail:
            places = np.array([place for place, _ in held.trail], dtype=np.float32)
            arrays = {"trails": places[None], "ends": np.array([3], dtype=np.uint8)}
        if filled is not None:
            ranked = by_rank(filled)
            arrays["fill"] = shades(filled, ranked)
            low = float(np.nanmin(filled)) if ranked else span_of(filled)[0]
            self.scale.value = words.scale(low, float(np.nanmax(filled)), ranked, SHADING)
        self.view.show(arrays)
        counts = self.runs.counts()
        rolling = 0 if self.runs.found is None else len(self.runs.found.rolling)
        self.counts.value = words.ends(counts, rolling) if sum(counts) + rolling else ""

    def _draw_strip(self) -> None:
        """Draw the profile: at the start, and after the attack where runs are known."""
        held, values = self.session.frame.starts, self.energies.values
        if held is None:
            return
        kind = self.along.value
        line = path(kind, held.weights)
        here = held.trail[0][1] if held.trail else held.energy
        arrays: Arrays = {}
        top = max(here, 1e-9)
        if values is not None:
            start = read_lattice(values, line.places)
            if kind != "edges":
                start[int(np.abs(line.along - line.handle).argmin())] = here
            top = max(top, float(np.nanmax(start)))
            arrays["start"] = np.column_stack([line.along, start]).astype(np.float32)
        ends = self._ends()
        if ends is not None:
            end = read_lattice(ends, line.places)
            if np.isfinite(end).any():
                top = max(top, float(np.nanmax(end)))
                arrays["end"] = np.column_stack([line.along, end]).astype(np.float32)
        self.strip_title.value = words.profile(kind, "end" in arrays)
        self.strip.label = words.profile_label(kind, here, held.energy)
        self.strip.show(
            arrays, marks=[list(mark) for mark in line.marks], handle=[line.handle, held.energy],
            fall=[energy for _, energy in held.trail], top=top,
        )  # fmt: skip

    # --- attacks --------------------------------------------------------------------------------
    def _attack(self) -> None:
        """Run the attack from the handle, beside the page."""
        held = landscape.starts(self.session)
        play.pause(self.session)
        landscape.place_handle(self.session, held.weights)  # a trail of its own
        mix = mix_from_weights(*held.weights)
        config = landscape.settings_of_run(self.session, mix)
        stride = max(1, config.steps // SAMPLES)
        kept: list[Any] = []

        def work(progress: Progress) -> Iterator[tuple[Any, Weights, float]]:
            last, every = None, max(1, config.steps // SAMPLES)
            parts, measure = held.problem.parts, held.landscape.measure
            for last in held.problem.run(parts.start(*mix), config, stride):
                progress(last.t / max(config.steps, 1))
                if last.t % every == 0:
                    kept.append(last)
                    yield last, parts.weights(last.x), measure(last.x)
            if last is not None and kept[-1] is not last:
                kept.append(last)
                yield last, parts.weights(last.x), measure(last.x)

        def take(part: tuple[Any, Weights, float]) -> None:
            self.command(lambda: landscape.follow_run(self.session, *part))(None)

        def ended() -> None:
            self.tell_failure(self.attack_job.error)
            if len(kept) > 1:
                self.command(lambda: self._keep_run(held.of.attack, config, mix, kept))(None)

        self.attack_job.start(work, take, ended, lambda: self._gone(held))

    def _keep_run(self, name: str, config: Any, mix: tuple[float, float], kept: list[Any]) -> None:  # noqa: ANN401
        """Give the run to the Attack stage, and say where an earlier one is kept."""
        play.tell(self.session, branches.load_run(self.session, name, config, mix, kept).strip())

    def _gone(self, held: Starts) -> bool:
        """Whether the handle or the weights are others than those of the run under way."""
        now = self.session.frame.starts
        return now is None or now.landscape is not held.landscape or now.weights != held.weights

    # --- what the runs ask of their page --------------------------------------------------------
    def problem(self) -> Of:
        """The runs of the attack on screen, on the weights of the page."""
        landscape.starts(self.session)
        play.pause(self.session)
        self.attack_job.cancel()
        landscape.place_handle(self.session, landscape.starts(self.session).weights)
        return self._of()

    def drawn(self) -> None:
        """Draw the runs on the triangle, and their ends in the profile."""
        if self.widget is not None:
            self._draw_fill()

    def tell(self, words: str) -> None:
        """Say it at the head of the page."""
        play.tell(self.session, words)

    def show(self, found: Runs, key: Key) -> str:
        """Put the run on the plane; the Attack stage then shows it step by step."""
        states, mix = found.states[key], (key[1], key[2])
        of = found.of
        kept = branches.load_run(self.session, of.attack, of.config, mix, states)
        landscape.show_run(self.session, mix, states[0], states[-1])
        return words.loaded(mix, states[-1].t) + kept

    # --- out of sight ---------------------------------------------------------------------------
    def unseen(self, frame: Frame) -> None:
        """Let runs go on out of sight, but end them if weights or points have changed."""
        self.energies.rest()
        self.attack_job.cancel()
        found = self.runs.found
        if found is None or not self.runs.busy or self.runs.ending:
            return
        same = found.of.target is frame.target and found.of.truth is frame.dataset
        if not same or not frame.newest:
            self.runs.cancel()
            play.tell(self.session, words.CHANGED)

    def end(self) -> None:
        """End the work with the page."""
        self.energies.close()
        for job in (self.attack_job, self.runs.job):
            job.close()


def _show(widget: w.DOMWidget, shown: bool) -> None:
    wanted = "" if shown else "none"
    if widget.layout.display != wanted:
        widget.layout.display = wanted
