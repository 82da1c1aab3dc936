"""The arena: several attacks on the attacked weights, with bars, intervals and claims."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from html import escape
from typing import Any

import bqplot as bq
import ipywidgets as w
import numpy as np
import torch

from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.target import Target
from explorer.engine.controls import control_sets
from explorer.engine.intervals import Share
from explorer.engine.progress import Progress, between
from explorer.engine.roster import DEFAULT, ROSTER
from explorer.page import play
from explorer.page.frame import Frame, Shown
from explorer.page.job import Job, JobState
from explorer.page.panels.base import Panel, button, chart, with_title
from explorer.page.parts.job_row import JobButton, progress_bar
from explorer.page.stages import arena as arena_stage
from explorer.research import arena
from explorer.research.arena import Line
from explorer.research.experiment import Otherwise, Ring, otherwise
from explorer.research.runs import RADIUS, watch_of
from explorer.style import CONTROL, CURVES, INK

RUN, CANCEL = "Run the arena", "Cancel the arena"
EMPTY = "Choose attacks and press Run the arena: each meets these weights from every seed."
CLICK = "Click an attack below to draw the claims of its best run on the plane."
SERIES = (("recall", CURVES[0]), ("precision", CURVES[2]), ("recall of control sets", CONTROL))
OFFSETS = (0.26, 0.0, -0.26)  # of the three bars of an attack, in the distance of two attacks
ROW_PX, FRAME_PX = 46, 62  # of the chart: an attack, and all around
SEEDS = 3  # arbitrary: the fewest with a spread
NOTHING = np.zeros((1, 2))  # draws nothing; an empty path is an error to a browser


class Arena(Panel):
    """Checkboxes, seeds, Run; bars per attack; one row per attack that shows its claims."""

    stages = ("arena",)

    def build(self) -> None:
        """Make controls above the bars; the bars appear with the first result."""
        self.target: Target | None = None
        self.rows: list[dict[str, Any]] = []
        self.other: Otherwise | None = None
        self.job = Job()
        self.boxes = {
            key: w.Checkbox(
                value=key == DEFAULT, description=entry.title, indent=False,
                tooltip=f"{entry.paper}: {entry.sentence}", layout=w.Layout(width="auto"),
            )
            for key, entry in ROSTER.items()
        }  # fmt: skip
        self.seeds = w.BoundedIntText(
            SEEDS, min=1, max=20, description="seeds", layout=w.Layout(width="112px"),
            tooltip="Runs of each attack; their spread makes the interval, from three on",
        )  # fmt: skip
        self.seeds.style.description_width = "initial"
        press = JobButton(
            self.job, RUN, CANCEL, "Run the chosen attacks on these weights; what is done stays",
            self._start, button_style="primary",
        )  # fmt: skip
        self.go = press.widget
        self.go.on_click(self.command(press.press))
        self.progress = progress_bar(self.job, "Runs done")
        self.said = w.HTML(EMPTY).add_class("mx-note")
        self._build_chart()
        self.plot = w.VBox(layout=w.Layout(overflow="visible"))
        self.table = w.VBox()
        chosen = w.HBox(list(self.boxes.values())).add_class("mx-row")
        run = w.HBox([self.seeds, self.go, self.progress]).add_class("mx-row")
        body = w.VBox([chosen, run, self.said, self.plot, self.table])
        self.widget = with_title("Attacks side by side", body)

    def _build_chart(self) -> None:
        self.x = bq.LinearScale(min=0, max=1, allow_padding=False)
        self.y = bq.LinearScale(min=-0.5, max=0.5, allow_padding=False)
        scales = {"x": self.x, "y": self.y}
        self.bars = [
            bq.Lines(x=NOTHING, y=NOTHING, scales=scales, colors=[colour], stroke_width=9)
            for _, colour in SERIES
        ]
        self.ends = bq.Lines(x=NOTHING, y=NOTHING, scales=scales, colors=[INK], stroke_width=2)
        self.chart = chart("share of points, of claims", "", [*self.bars, self.ends], self.x,
                           self.y)  # fmt: skip
        self.chart.fig_margin = {**self.chart.fig_margin, "left": 132}
        self.chart.axes[0].tick_format, self.chart.axes[0].tick_values = (
            ".2f",
            [0, 0.25, 0.5, 0.75, 1],
        )
        legend = " &nbsp; ".join(f"<span><b style='color:{c}'>■</b> {n}</span>" for n, c in SERIES)
        words = f"Within {RADIUS:g}. {legend} &nbsp; <span>line: 95% interval</span>"
        self.legend = w.HTML(words).add_class("mx-note")

    # --- running ----------------------------------------------------------------------------
    def _start(self) -> None:
        now, chosen = self.session.frame, [key for key, box in self.boxes.items() if box.value]
        if now.target is None or now.truth is None:
            raise ValueError("No weights to attack: train a network first.")
        if not chosen:
            raise ValueError("No attack is chosen: tick at least one.")
        gamma = now.training.state.gamma_bar if now.training.state is not None else float("nan")
        ring = Ring(now.target, now.truth, control_sets(now.truth), now.training.certificate, gamma)
        play.pause(self.session)
        self.target, self.rows, self.other = now.target, [], None
        first = self.session.seed
        fights = [
            (key, seed, self._settings(key))
            for seed in range(first, first + self.seeds.value)
            for key in chosen
        ]
        self.draw()

        def work(progress: Progress) -> Iterator[dict[str, Any] | Otherwise | None]:
            for done, (key, seed, given) in enumerate(fights):
                part = between(progress, done / len(fights), (done + 1) / len(fights))
                yield arena.fight(ring, key, seed, given, watch_of(part))
            yield otherwise(ring, lambda _: progress(1.0))

        self.job.start(
            work, partial(self._take, len(fights)), partial(self._ended, len(fights)),
            lambda: self.session.frame.target is not ring.target,
        )  # fmt: skip

    def _take(self, planned: int, part: dict[str, Any] | Otherwise | None) -> None:
        """One more run; after the last of them, what else explains the weights."""
        if isinstance(part, dict):
            self.rows.append(part)
            self.draw()
            if len(self.rows) == planned:
                self._show(arena.best(self.lines()))
                self.said.value = "Looking for other points that could explain the weights …"
        else:
            self.other = part
            self.draw()
            self.said.value = CLICK

    def _ended(self, planned: int) -> None:
        if self.job.state is JobState.CANCELLED:
            self.said.value = f"Cancelled after {len(self.rows)} of {planned} runs, which stay."
        self.tell_failure(self.job.error)

    def _settings(self, key: str) -> dict[str, Any]:
        """Those of the attack as it was left on the page; of others the defaults."""
        if key != self.session.frame.attack.name:
            return {}
        config = self.session.attack_config
        return {f.name: getattr(config, f.name) for f in fields(config) if f.init}

    # --- view -------------------------------------------------------------------------------
    def lines(self) -> list[Line]:
        """Return the scoreboard so far."""
        return arena.lines_of(self.rows)

    def draw(self) -> None:
        """Draw bars, intervals and rows of the finished runs."""
        lines = self.lines()
        ran = [line for line in lines if line.runs]
        self.said.value = escape(arena.sentence(lines)) if lines else EMPTY
        if ran:
            self._bars(ran)
        if bool(ran) != bool(self.plot.children):
            self.plot.children = [self.chart, self.legend] if ran else []
        rows = [self._row(line) for line in lines]
        if self.other is not None:
            rows.append(self._other_row(self.other))
        self.table.children = rows

    def _bars(self, lines: list[Line]) -> None:
        places = np.arange(len(lines))[::-1].astype(float)
        with self.y.hold_sync():
            self.y.min, self.y.max = -0.6, len(lines) - 0.4
        self.chart.layout.height = f"{FRAME_PX + ROW_PX * len(lines)}px"
        axis = self.chart.axes[1]
        axis.tick_values = places
        axis.tick_labels = {f"{p:g}": line.title for p, line in zip(places, lines, strict=True)}
        at = arena.AT
        shares = (
            [line.recall[at] for line in lines], [line.precision[at] for line in lines],
            [Share(line.control[at], np.nan, np.nan) for line in lines],
        )  # fmt: skip
        ends_x, ends_y = [], []
        for mark, series, offset in zip(self.bars, shares, OFFSETS, strict=True):
            values = np.array([0.0 if s.value != s.value else s.value for s in series])
            with mark.hold_sync():
                mark.x = np.column_stack([np.zeros(len(lines)), values])
                mark.y = np.column_stack([places + offset] * 2)
            known = [(s, p + offset) for s, p in zip(series, places, strict=True) if s.low == s.low]
            ends_x += [[s.low, s.high] for s, _ in known]
            ends_y += [[place, place] for _, place in known]
        with self.ends.hold_sync():
            self.ends.x, self.ends.y = np.array(ends_x), np.array(ends_y)

    def _row(self, line: Line) -> w.HBox:
        show = button(line.title, "Draw the claims of its best run on the plane")
        show.disabled = not line.runs
        show.on_click(self.command(lambda: self._show(line)))
        if not line.runs:
            words = line.message
        elif not line.claims:
            words = f"Claims nothing on these weights. {line.seconds:.2g} s a run. {line.message}"
        else:
            at = arena.AT
            words = (
                f"{line.word}: {line.found[at]} of {line.n} points, {line.found[at]} of "
                f"{line.claims} claims, chance {line.control[at] * line.n:.2g}; of the points in "
                f"reach {line.reach[at].value:.2f}. Median distance {line.distance:.2g}, residual "
                f"{line.residual:.2g}, {line.seconds:.2g} s a run. {line.message}"
            )
        return w.HBox([show, w.HTML(escape(words)).add_class("mx-note")]).add_class("mx-arena-row")

    def _other_row(self, other: Otherwise) -> w.HBox:
        show = button(
            "Another set",
            "Draw other points that the weights admit, and say how well they explain them",
        )
        show.on_click(self.command(lambda: self._put(other.other, other.other_sentence)))
        fixed = int(other.determined.sum())
        words = (
            f"{other.sentence} Not recoverable with certainty: {len(other.determined) - fixed}. "
        )
        words += other.other_sentence
        return w.HBox([show, w.HTML(escape(words)).add_class("mx-note")]).add_class("mx-arena-row")

    def _show(self, line: Line | None) -> None:
        """The claims of the attack's best run on the plane, and the sentence on top."""
        if self.target is None:
            return
        claims = None
        runs = [r for r in self.rows if line and r["trial"]["attack"] == line.key and r["result"]]
        if runs:
            top = max(runs, key=lambda row: row["result"]["found"][arena.AT])["result"]
            d = self.target.net.d
            x, y, lam = (torch.tensor(top[k], dtype=torch.float64) for k in ("x", "y", "lam"))
            claims = Report(x.reshape(-1, d), y, lam)
        self._put(claims, arena.sentence(self.lines()))

    def _put(self, claims: Report | None, words: str) -> None:
        if self.target is not None:
            arena_stage.show_claims(self.session, Shown(self.target, words, claims))

    def render(self, frame: Frame) -> None:
        """Drop runs on weights that are no longer attacked."""
        if self.target is not None and frame.target is not self.target:
            self.job.cancel()
            self.target, self.rows, self.other, self.progress.value = None, [], None, 0.0
            self.draw()

    def end(self) -> None:
        """End the runs when the page ends."""
        self.job.close()
