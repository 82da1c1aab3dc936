"""Where else a point could be: maps of the energy, redrawn during a drag."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from html import escape
from time import perf_counter

import ipywidgets as w
import numpy as np
import torch

from explorer.engine.energy.questions import (
    MAPS,
    STANDARD,
    Answers,
    MapConfig,
    MapQuestion,
    Picture,
)
from explorer.engine.number_words import plain
from explorer.engine.progress import Progress, part_progress
from explorer.engine.settings import setting_of
from explorer.page import play
from explorer.page.aim import point_map
from explorer.page.controls.row import Item, Row, choices
from explorer.page.controls.settings import item_of
from explorer.page.frame import Frame
from explorer.page.job import Job, JobState, page_waits
from explorer.page.panels.base import Panel
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.landscape.energy_words import (
    COMPUTING,
    FLAT,
    SKETCH,
    STOPPED,
    UNIT_BILEVEL,
    legend,
    merging,
    nothing,
)
from explorer.page.view.chart import ChartView
from explorer.page.words.statement import scale_html
from explorer.research.pictures.charts import curve_chart, has_lowest_mark
from explorer.research.pictures.shades import FLOOR, SHADING, span_of
from explorer.research.words.energy import picture as picture_words

FOLDED = ("frozen", "pixels", "angle", "kappa")  # under "More"
SLOW_S = 1.0  # of a drag without a new map: then the old one is dimmed; arbitrary
KINDS = ("point", "ridge", "last")  # of one point, on the plane
STOP, ON = "Stop refining", "Go on refining"
LADDER = (31, STANDARD, 121)  # pixels a side, refined while nothing else is asked
LOOK_S = 0.25  # of a map, before one says that it is under way; arbitrary
AT_ONCE_S = 0.12  # a map expected to take less needs no coarser one before it; arbitrary
PACE_S = 1e-4  # of a pixel, before one was computed; arbitrary


def colour_bar(picture: Picture, low: float, top: float) -> str:
    """Return the legend of a map: colours with numbers."""
    middle = float(np.sqrt(low * top))  # of log colours
    if picture.kind in ("ridge", "last"):
        least, half = (plain(f"{value:.1g}") for value in (low, middle))
        marks, unit = (f"≤ {least}", half, plain(f"{top:.2g}")), f"{UNIT_BILEVEL}, log colours"
    else:
        least, half, most = (f"{value**0.5:.1%}" for value in (low, middle, top))
        marks, unit = (
            (f"≤ {least}", half, most),
            f"Unexplained with the {'halves' if picture.kind == 'split' else 'point'} there",
        )
    return scale_html(SHADING[::-1], marks, f"<div>{unit}</div>")


class EnergyWork:
    """Answers one question after the other; a newer one interrupts, as `halt` does.

    During the drag of a point the first map is still finished, so the picture changes. If even the
    coarsest map of a point takes longer than `AT_ONCE_S`, a sketch comes before it: the multipliers
    of the other points are frozen, which costs a hundredth. If the mapped point alone moved, the
    map is the same and is not computed again.

    Attributes:
        asked: the newest question, or None.
        pace: seconds of a pixel, by kind of map.
    """

    def __init__(self, viewer: EnergyPanel) -> None:
        """Make it with no question yet."""
        self.viewer, self.answers = viewer, Answers()
        self.asked: MapQuestion | None = None
        self.job = Job()
        self.job.observe(self._waiting)
        self.pace: dict[str, float] = {}
        self._halted = False
        self._begun, self._first = 0.0, True  # of the question under way
        self._now: MapQuestion | None = None

    def ask(self, q: MapQuestion) -> None:
        """Answer this question from now on."""
        self.asked, self._halted = q, False
        now = self._now
        if now is not None and self._first and self.job.state is JobState.RUNNING:
            if now.moved_to(q):
                return  # its first map is finished, and then q begins
        self._begin(q)

    def close(self) -> None:
        """End the work when the page ends."""
        self.asked = None
        self.job.close()

    def _begin(self, q: MapQuestion) -> None:
        self._now, self._first, self._begun = q, True, perf_counter()
        rungs = self._rungs(q) if page_waits() else [(q, LADDER[1])]

        def work(progress: Progress) -> Iterator[tuple[MapQuestion, Picture]]:
            done, whole = 0, sum(size**2 for _, size in rungs)
            for asked, size in rungs:
                here, known = perf_counter(), self.answers.kept.finest(q) >= size
                part = part_progress(progress, done / whole, (done + size**2) / whole)
                picture, done = self.answers.answer(asked, size, part), done + size**2
                if asked is q and not known:
                    self.pace[q.kind] = (perf_counter() - here) / size**2
                yield asked, picture

        self.job.start(work, self._take, self._end)

    def _take(self, part: tuple[MapQuestion, Picture]) -> None:
        """Show a map of the present question, or turn to a newer question."""
        (asked, picture), q = part, self._now
        self._first = False
        if q is None or self.asked is None:
            return
        if asked is not q:
            picture = replace(picture, about=None, archetype="")
        self.viewer.show_map(q, picture, perf_counter() - self._begun)
        if self.asked is not q:
            self._begin(self.asked)

    def _end(self) -> None:
        error, q = self.job.error, self._now
        if isinstance(error, ValueError) and q is self.asked:
            self.viewer.show_refusal(str(error))
        elif error is not None and not isinstance(error, ValueError):
            self.viewer.fail(error)
        if self.asked is not None and self.asked is not q and not self._halted:
            self._begin(self.asked)
        else:
            self.viewer.show_rest(self._halted)

    def _waiting(self) -> None:
        seconds = perf_counter() - self._begun
        if self.job.state is JobState.RUNNING and seconds > LOOK_S:
            self.viewer.show_progress(self.job.share, self._first, seconds)

    def halt(self) -> None:
        """Stop the work; the map stays as it is."""
        self._halted = True
        self.job.cancel()

    def resume(self) -> None:
        """Go on after `halt`."""
        if self.asked is not None:
            self.ask(replace(self.asked))  # another object: the old one may be under way still

    def forget(self) -> None:
        """Drop the question."""
        self.asked = None
        self.halt()

    def _rungs(self, q: MapQuestion) -> list[tuple[MapQuestion, int]]:
        """Return what is computed one after the other, the quickest first."""
        pace = self.pace.get(q.kind, PACE_S)
        known = self.answers.kept.finest(q)
        if known:
            return [(q, s) for s in LADDER if s >= known]
        quick = [s for s in LADDER[:2] if s * s * pace < AT_ONCE_S]
        rungs = [(q, s) for s in LADDER if s >= max(quick or LADDER[:1])]
        if q.kind == "point" and q.net.d == 2 and not q.config.frozen and not quick:
            rungs.insert(0, (replace(q, config=replace(q.config, frozen=True)), STANDARD))
        return rungs


class EnergyPanel(Panel):
    """A map, one sentence on it, and the settings of both."""

    stages = ("landscape",)

    def build(self) -> None:
        """Controls above, what is said of the map below; of a line its curve."""
        self.work = EnergyWork(self)
        self.picture: Picture | None = None
        self.shown: MapQuestion | None = None  # what the picture answers
        self.seconds = 0.0  # of the last map, from asking to drawing
        self.row = Row(**self._items())
        said = {name: Item("words", value="") for name in ("said", "bar")}
        self.told = Row(**said, rest=Item("words", value="", hidden=True))
        self.curve = ChartView()
        self.body = w.Box(_dom_classes=["mx-energy-curve"])
        self.whole = w.VBox([self.row, self.told, self.body], _dom_classes=["mx-energy"])
        self.widget = self.whole

    def _items(self) -> dict[str, Item]:
        session, anew = self.session, lambda _: self.redraw()
        kinds = choices(*((MAPS[key], key) for key in KINDS))
        return {
            "point": Item("select", "point", "Whose map; or click it on the plane", value=0,
                          options=choices(("1", 0)),
                          call=partial(self.do, landscape.map_point, session)),
            "kind": Item("select", "map", "What moves", value="point", options=kinds,
                         call=partial(self.do, landscape.show_map, session)),
            **self.button_items(
                undo=("↶", "Take the last drag back (Ctrl+Z on the plane)", play.undo),
                redo=("↷", "Do it again (Ctrl+Y on the plane)", play.redo),
                back=("All back to the truth", "Undo all drags at once", landscape.reset),
            ),
            "stop": Item("button", STOP, "Keep the map as it is; pressed again, it is refined "
                         "further", call=self.command(self._toggle)),
            "share": Item("bar", tip="Share of the map computed", value=0.0, hidden=True),
            "more": Item("button", "More", "Other maps, kinks, merged neurons, price of the "
                         "margin, and the numbers",
                         value=False, call=self._fold),
            **{name: item_of(setting_of(MapConfig, name), anew, hidden=True) for name in FOLDED},
        }  # fmt: skip

    def _fold(self, more: bool) -> None:
        with self.row.at_once():
            for name in FOLDED:
                self.row.put(name, hidden=not more)
        self.told.put("rest", hidden=not more)
        self._show_used()

    def _show_used(self) -> None:
        """Show of the row what can be used now; the rest comes with "More"."""
        more, kind = bool(self.row.value("more")), self.session.frame.map_kind
        with self.row.at_once():
            self.row.put("kind", hidden=kind not in KINDS or (kind == KINDS[0] and not more))
            self.row.put("stop", hidden=not more and self.row.items["stop"].label == STOP)
            for name in ("undo", "redo"):
                self.row.put(name, hidden=self.row.items[name].disabled)

    # --- what is asked ----------------------------------------------------------------------
    def belongs(self, frame: Frame) -> bool:
        """Return whether one point moves."""
        return super().belongs(frame) and frame.map_kind != "starts"

    def _question(self, frame: Frame) -> MapQuestion | None:
        held = frame.landscape
        if held is None or frame.target is None or held.present.target is not frame.target:
            return None
        points = held.present
        config = MapConfig(
            extent=self.session.extent, **{name: self.row.value(name) for name in FOLDED}
        )
        return MapQuestion(
            frame.map_kind, frame.target.net, points.truth, frame.heldout, points.x,
            points.mapped, config, self.session.seed,
        )  # fmt: skip

    def render(self, frame: Frame) -> None:
        """Ask for the map of the present frame; the same question is not asked twice."""
        q = self._question(frame)
        if q is None or frame.landscape is None:
            self.work.forget()
            self._drop(nothing(frame))
            return
        held = frame.landscape
        with self.row.at_once():
            points = choices(*((str(i + 1), i) for i in range(len(held.present.x))))
            self.row.put("point", options=points, value=held.present.mapped)
            of_one = frame.map_kind in KINDS
            self.row.put("kind", value=frame.map_kind if of_one else None)
            self.row.put("undo", disabled=not held.past)
            self.row.put("redo", disabled=not held.future)
            self.row.put("back", hidden=torch.equal(held.present.truth.x.double(), held.present.x))
            self._show_used()
        if q.same(self.work.asked):
            return
        if self.shown is not None and self.shown.kind != q.kind:
            self._drop("")  # what is said of another map
        if self.picture is None:
            self._say(COMPUTING)
        self._work_on(True)
        self.work.ask(q)

    def retire(self, frame: Frame) -> None:
        """Stop refining out of sight."""
        self.work.forget()

    def _toggle(self) -> None:
        """Stop refining, or go on."""
        if self.row.items["stop"].label == STOP:
            self.work.halt()
        else:
            self._work_on(True)
            self.work.resume()

    # --- what the work tells ----------------------------------------------------------------
    def _work_on(self, busy: bool) -> None:
        self.row.put("stop", label=STOP, disabled=not busy)
        self._show_used()

    def _say(self, words: str, rest: str = "") -> None:
        self.told.put("said", value=words)
        self.told.put("rest", value=rest)

    def show_progress(self, share: float, first: bool, seconds: float) -> None:
        """A map is being computed; the one on screen is dimmed where it is of something else."""
        self.row.put("share", value=share, hidden=False)
        asked, shown = self.work.asked, self.shown
        if not first or asked is None:
            return
        if shown is None or not shown.moved_to(asked):
            self._say(COMPUTING)
        elif seconds < SLOW_S:
            return
        self.body.add_class("mx-old")

    def show_rest(self, halted: bool) -> None:
        """Show that the computation has ended."""
        self.row.put("share", value=0.0, hidden=True)
        self._work_on(False)
        asked = self.work.asked
        if not halted or asked is None:
            return
        self.row.put("stop", label=ON, disabled=False)
        self._show_used()
        if self.shown is None or not self.shown.same(asked):
            self._say(f"{STOPPED} Go on refining computes it.")
            self.body.add_class("mx-old")

    def show_refusal(self, why: str) -> None:
        """Show why there is no such map, and none on the plane."""
        self.do(landscape.draw_map, self.session, None)
        self._drop(why)

    def _drop(self, why: str) -> None:
        self.picture = self.shown = None
        self._say(escape(why))
        self.told.put("bar", value="")
        self.body.children = ()
        self.body.remove_class("mx-old")

    def show_map(self, q: MapQuestion, picture: Picture, seconds: float) -> None:
        """Draw a map with its sentence."""
        held = self.session.frame.landscape
        if held is None or len(held.present.x) <= held.present.mapped:
            return
        points = held.present
        self.picture, self.shown, self.seconds = picture, q, seconds
        x, truth = points.x.numpy(), points.truth.x.double().cpu().numpy()
        views: tuple[w.Widget, ...] = ()
        if picture.curve is not None:
            place, home = float(x[points.mapped, 0]), float(truth[points.mapped, 0])
            self.curve.draw(curve_chart(picture, place, home))
            views = (self.curve,)
        self._legend(picture)
        known = picture_words(picture)  # the headline tells the result
        self._say("" if known else SKETCH, escape(known + merging(q, self.work.answers)))
        self.body.remove_class("mx-old")
        if self.body.children != views:
            self.body.children = views
        drawn = point_map(picture, x[points.mapped])
        self.do(landscape.draw_map, self.session, drawn)

    def _legend(self, picture: Picture) -> None:
        low, top = span_of(picture.values, picture.reference)
        bar = ""
        if picture.curve is None:
            bar = colour_bar(picture, low, top) if top > FLOOR else f"<div>{FLAT}</div>"
        lowest = picture.curve is not None or has_lowest_mark(picture)
        said = f"{bar}<div>{legend(picture, lowest)}</div>"
        self.told.put("bar", value=said)

    def end(self) -> None:
        """Cancel work in progress."""
        self.work.close()
