"""The arena: several attacks on the attacked weights, with bars, intervals and claims."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from typing import Any

import ipywidgets as w

from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.target import Target
from explorer.engine.confidence import Share, share
from explorer.engine.number_words import count
from explorer.engine.progress import Progress, part_progress
from explorer.engine.roster import ROSTER
from explorer.page import play
from explorer.page.aim import victim_of
from explorer.page.ask import Ask
from explorer.page.controls.row import Item, Row
from explorer.page.frame import Frame, Shown
from explorer.page.job import JobState
from explorer.page.panels.base import Panel
from explorer.page.stages.attack import commands as attack
from explorer.page.view.brush import BrushView
from explorer.page.view.chart import TableView
from explorer.research.pictures.charts import radius_chart
from explorer.research.runs import FARTHEST, FINE, NEAREST, RADIUS, watch_of
from explorer.research.sweep import arena
from explorer.research.sweep.arena import ArenaLine
from explorer.research.sweep.experiment import Ambiguity, ambiguity
from explorer.research.words import arena as arena_words

RUN, AGAIN, CANCEL = "Run the attacks", "Run again", "Cancel"
RUN_TIP = "Run the ticked attacks on these weights; what is done stays"
SEEDS_TIP = "Each from other seeds; their spread makes the interval, from three on"
HEAD = ("recovered", "claims right", "by chance", "seconds")
WAITING = ("what it does",)  # the columns before a run
NOTE = "{} · line: 95% · mark: by chance"
ROWS = 4  # attacks that always stand before the last row, beside those ticked; arbitrary
WITHIN_TIP = (
    "Distance within which a claim counts, as a click on the curve sets it; the sentence on top "
    "stays with 0.03"
)
OTHER = "other"  # key of the row of another set
REST = "rest"  # key of the row behind which the attacks stand that did not run
REST_TIP = "The other attacks: to tick, or each with the reason why it cannot run here"
SEEDS = 3  # arbitrary: the fewest with a spread
RUNS_SHARE = 0.7  # of the bar; the rest is the search for another set; arbitrary


class Arena(Panel):
    """One row per attack: ticked, run, and drawn on the plane by a click."""

    stages = ("arena",)
    look = ("mx-compare-box",)

    def build(self) -> None:
        """Make the button above all, and the table and the curves in a card."""
        self.target: Target | None = None
        self.rows: list[dict[str, Any]] = []
        self.other: Ambiguity | None = None
        self.running = ""  # key of the attack that runs
        self.planned: list[str] = []  # key of each run of this board, in their order
        self.job = Ask(self, self.weights)
        self._ticks: dict[str, bool] = {}  # by hand
        self.rest_shown = False
        self._suits: tuple[Target | None, dict[str, str]] = (None, {})
        self.table = TableView()
        self.radius = RADIUS  # within which the table counts
        self.curves = BrushView("line", self._set_radius)
        self.table.on("tick", self._tick)
        self.table.on("choose", partial(self.do, self._choose))
        self.row = Row(
            go=Item("job", RUN, RUN_TIP, call=self.command(self._start), job=self.job,
                    cancel=CANCEL, filled=True),
            seeds=Item("number", "runs of each", SEEDS_TIP, SEEDS, low=1, high=20, whole=True),
            within=Item("number", "within", WITHIN_TIP, RADIUS, low=NEAREST, high=FARTHEST,
                        call=self._set_radius, hidden=True),
            share=Item("bar", tip="Share of the runs", job=self.job),
            said=Item("words", value=""),
        )  # fmt: skip
        card = w.VBox([self.table, self.curves]).add_class("mx-card").add_class("mx-compare")
        self.widget = w.VBox([self.row, card])

    # --- running ----------------------------------------------------------------------------
    def _tick(self, key: str, ticked: bool) -> None:
        self._ticks[key] = ticked
        self.draw()

    def ticked_attacks(self) -> list[str]:
        """Return the attacks that are ticked and can be run, in the order of the list."""
        refused = self._refusals(self.session.frame.target)
        first = arena.first_ticked(refused)
        return [
            key for key, why in refused.items() if not why and self._ticks.get(key, key in first)
        ]

    def _start(self) -> None:
        now = self.session.frame
        if now.target is None or now.truth is None or now.aim is None:
            raise ValueError("No weights to attack: train a network first.")
        chosen = self.ticked_attacks()
        if not chosen:
            raise ValueError("No attack is chosen: tick at least one.")
        victim = victim_of(now)
        play.pause(self.session)
        self.target, self.rows, self.other = now.target, [], None
        first = self.session.seed
        planned = [
            (key, seed, self._settings(key))
            for seed in range(first, first + self.row.value("seeds"))
            for key in chosen
        ]
        self.planned = [key for key, *_ in planned]
        self.running = chosen[0]
        self.row.say("")
        self.draw()

        def work(progress: Progress) -> Iterator[dict[str, Any] | Ambiguity | None]:
            runs = part_progress(progress, 0.0, RUNS_SHARE)
            for done, (key, seed, given) in enumerate(planned):
                part = part_progress(runs, done / len(planned), (done + 1) / len(planned))
                yield arena.attack_row(victim, key, seed, given, watch_of(part), FINE)
            yield ambiguity(victim, part_progress(progress, RUNS_SHARE, 1.0), certify=False)

        self.job.begin(work, self._take, self._end)

    def _take(self, part: dict[str, Any] | Ambiguity | None) -> None:
        """One more run; after the last of them, what else explains the weights."""
        if isinstance(part, dict):
            self.rows.append(part)
            more = self.planned[len(self.rows) :]
            self.running = more[0] if more else OTHER
            if not more:
                self._show(arena.best(self.lines()))
        else:
            self.other = part
        self.draw()

    def _end(self) -> None:
        self.running = ""
        if self.job.state is JobState.CANCELLED:
            there = f"{len(self.rows)} of {len(self.planned)} runs"
            self.row.say(f"Cancelled after {there}, which stay.")
        self.draw()

    def _settings(self, key: str) -> dict[str, Any]:
        """Return those of the attack as it was left on the page; of others the defaults.

        All begin with noise, so what suits another start is left out.
        """
        if key != self.session.frame.attack.name:
            return {}
        config = self.session.entry.suit(self.session.attack_config, 0.0)
        return {f.name: getattr(config, f.name) for f in fields(config) if f.init}

    # --- view -------------------------------------------------------------------------------
    def lines(self, radius: float = RADIUS) -> list[ArenaLine]:
        """Return the scoreboard so far, counted within a radius."""
        return arena.lines_of(self.rows, radius)

    def _set_radius(self, at: float | None) -> None:
        """Count within the radius of the curves that is nearest to the line."""
        self.radius = RADIUS if at is None else min(FINE, key=lambda r: abs(math.log(r / at)))
        self.draw()

    def draw(self) -> None:
        """Draw one row for each attack, with what its runs found; and their curves."""
        lines = {line.key: line for line in self.lines(self.radius)}
        self.row.put("within", hidden=not lines or self.job.busy, value=float(f"{self.radius:.2g}"))
        told = bool(lines) and self.session.lesson is None  # the headline leads on
        self.row.put("go", label=AGAIN if told else RUN, filled=not told)
        self.curves.draw(radius_chart(list(lines.values()), self.table.chosen))
        refused = self._refusals(self.session.frame.target)
        truth, ticked = self.session.frame.truth, self.ticked_attacks()
        rows = [
            {**self._row(key, lines.get(key), refused[key], not lines), "ticked": key in ticked}
            for key in sorted(ROSTER, key=lambda key: bool(refused[key]))
        ]
        first = [r["key"] for r in rows[:ROWS]]
        rest = [r for r in rows
                if r["off"] or not (r["ticked"] or r["drawn"] or r["key"] in first)]  # fmt: skip
        rows = [r for r in rows if r not in rest]
        looked = self.other is not None or self.running == OTHER
        # No lesson speaks of it, and rows are dear there.
        if looked and self.session.lesson is None:
            rows.append(other_row(self.other))
        if rest:
            off = sum(r["off"] for r in rest)
            rows.append(rest_row(len(rest), off, self.rest_shown))
            rows += rest if self.rest_shown else []
        n = "" if truth is None else f" of {truth.n}"
        runs = max((line.runs for line in lines.values()), default=0)
        with self.table.hold_sync():
            self.table.title, self.table.note = "Which attacks run?", ""
            self.table.head, self.table.rows = list(HEAD if lines else WAITING), rows
            if lines:
                self.table.title = f"Recovered{n}, within {self.radius:.2g}"
                self.table.note = NOTE.format(f"mean of {runs} runs" if runs > 1 else "1 run")

    def _refusals(self, target: Target | None) -> dict[str, str]:
        """Return why each attack cannot be run here; "" for those that can."""
        if self._suits[0] is not target or not self._suits[1]:
            self._suits = target, arena.refusals(target)
        return self._suits[1]

    def _row(self, key: str, line: ArenaLine | None, refused: str, waits: bool) -> dict[str, Any]:
        """Return the row of an attack; `waits`: none has run, and each says what it does."""
        entry = ROSTER[key]
        row = {
            "key": key, "title": entry.title, "tip": f"{entry.paper}: {entry.sentence}",
            "off": bool(refused), "drawn": False,
        }  # fmt: skip
        words = refused or ("running …" if self.running == key else entry.in_short * waits)
        if line is None or not line.runs:
            return {**row, "words": line.message if line is not None and line.message else words}
        return {**row, **cells_of(line), "drawn": True}

    def _choose(self, key: str) -> None:
        """Draw what a row stands for."""
        if key == REST:
            self.rest_shown = not self.rest_shown
            self.draw()
        elif key == OTHER and self.other is not None:
            other = self.other
            self._put(key, other.other, other.in_short, "Could it be other points?", other.numbers)
        elif key != OTHER:
            self._show(next((line for line in self.lines() if line.key == key), None))

    def _show(self, line: ArenaLine | None) -> None:
        """The claims of the attack's middle run on the plane, and the sentence on top."""
        if self.target is None:
            return
        claims = None if line is None else arena.claims_of(self.rows, line, self.target.net.d)
        key = "" if claims is None or line is None else line.key
        lines = self.lines()
        first = arena.best(lines)
        if line is not None and (first is None or line.key != first.key):
            lines = [line]  # the sentence is of what the plane shows
        title = arena_words.title(lines, so_far=len(self.rows) < len(self.planned))
        self._put(key, claims, arena_words.below(lines), title, arena_words.numbers(lines))

    def _put(
        self, key: str, claims: Report | None, words: str, title: str,
        numbers: tuple[tuple[str, str], ...],
    ) -> None:  # fmt: skip
        if self.target is not None:
            self.table.chosen = key
            runs = tuple(self.rows)
            shown = Shown(self.target, words, claims, title, key == OTHER, runs, numbers)
            attack.show_claims(self.session, shown)

    def render(self, frame: Frame) -> None:
        """Drop runs on weights that are no longer attacked; take up those that the page shows."""
        if self.target is not None and frame.target is not self.target:
            self.job.cancel()
            self.target, self.rows, self.other, self.radius = None, [], None, RADIUS
            self.table.chosen = ""
            self.row.say("")
        shown = frame.arena
        if self.target is None and shown is not None and shown.target is frame.target:
            self.target, self.rows, self.planned = shown.target, [*shown.runs], []
        self.draw()


def cells_of(line: ArenaLine) -> dict[str, Any]:
    """Return what a row shows of an attack that ran: points a run, within the radius."""
    at, total = line.at, line.n * len(line.chance)
    found, claims, n = line.found[at], line.claims, line.n / line.runs
    chance = share(line.chance, [line.n] * len(line.chance)) if total else None
    said, by_chance = f" ({interval(line.recall[at], n)})", "–"
    if chance is not None:
        by_chance = arena_words.a_run(line, chance.value * line.n)
        said += f"; by chance {by_chance} ({interval(chance, n)})"
    return {
        "share": bar_of(line.recall[at]),
        "chance": None if chance is None else bar_of(chance),
        "count": f"{arena_words.a_run(line, found)} of {n:g}",
        "said": said,
        "cells": [
            " of ".join(arena_words.a_run(line, k) for k in (found, claims)) * bool(claims)
            or "no claim",
            by_chance,
            f"{line.cpu:.2g}" if line.cpu == line.cpu else "–",
        ],
    }


def bar_of(made: Share) -> list[float]:
    """Return a share as value, low and high."""
    return [made.value, made.low, made.high]


def interval(made: Share, n: float) -> str:
    """Return the ends of an interval as counts of n, such as "17 to 20"."""
    return f"{made.low * n:.2g} to {made.high * n:.2g}"


def rest_row(n: int, off: int, shown: bool) -> dict[str, Any]:
    """Return the row behind which n attacks stand, of which `off` cannot run; `shown`: open."""
    more = count(n, "attack") if n == off else f"{count(n, 'more attack')}, of which {off}"
    title = f"{more} cannot run on these weights"
    if not off:
        title = count(n, "more attack")
    return {"key": REST, "title": title, "tip": REST_TIP, "drawn": True, "whole": True,
            "open": shown}  # fmt: skip


def other_row(other: Ambiguity | None) -> dict[str, Any]:
    """Return the row of another set that explains the weights; None while it is looked for."""
    row = {"key": OTHER, "title": "Another set", "drawn": other is not None,
           "tip": "Draw other points that the weights admit"}  # fmt: skip
    if other is None:
        return {**row, "words": "looking for other points that could explain the weights …"}
    return {**row, "words": other.in_short}
