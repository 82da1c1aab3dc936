"""Where else a point could be: maps of the energy, redrawn during a drag."""

from __future__ import annotations

from functools import partial
from html import escape

import ipywidgets as w

from explorer.engine.energy.questions import MAPS, MapConfig, MapQuestion, Picture
from explorer.engine.settings import setting_of
from explorer.page import play
from explorer.page.aim import point_map
from explorer.page.controls.row import Item, Row, choices
from explorer.page.controls.settings import item_of
from explorer.page.frame import Frame
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.landscape.energy_words import (
    COMPUTING,
    FLAT,
    STOPPED,
    legend,
    merging,
    nothing,
    picture_words,
    reference,
)
from explorer.page.stages.landscape.energy_work import EnergyWork, colour_bar
from explorer.page.stages.landscape.panel import LandscapePanel
from explorer.page.view.chart import ChartView
from explorer.research.pictures.charts import curve_chart, has_lowest_mark
from explorer.research.pictures.shades import FLOOR, span_of

FOLDED = ("frozen", "pixels", "angle", "kappa")  # under "More"
SLOW_S = 1.0  # of a drag without a new map: then the old one is dimmed; arbitrary
KINDS = ("point", "ridge", "last")  # of one point, on the plane
STOP, ON = "Stop refining", "Go on refining"


class EnergyPanel(LandscapePanel):
    """A map, one sentence on it, and the settings of both."""

    def build(self) -> None:
        """Controls above, what is said of the map below; of a line its curve."""
        self.work = EnergyWork(self)
        self.picture: Picture | None = None
        self.shown: MapQuestion | None = None  # what the picture answers
        self.seconds = 0.0  # of the last map, from asking to drawing
        self.row = Row(**self._items())
        self.told = Row(**{name: Item("words", value="") for name in ("said", "bar", "rest")})
        self.curve = ChartView()
        self.body = w.Box(_dom_classes=["mx-energy-curve"])
        self.whole = w.VBox([self.row, self.told, self.body], _dom_classes=["mx-energy"])
        self.widget = self.whole

    def _items(self) -> dict[str, Item]:
        session, anew = self.session, lambda _: self._draw(self.session.frame)
        kinds = choices(*((MAPS[key], key) for key in KINDS))
        return {
            "tabs": self.tabs(),
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
            "more": Item("button", "More", "Kinks, merged neurons, price of the margin",
                         value=False, call=self._fold),
            **{name: item_of(setting_of(MapConfig, name), anew, hidden=True) for name in FOLDED},
        }  # fmt: skip

    def _fold(self, more: bool) -> None:
        with self.row.at_once():
            for name in FOLDED:
                self.row.put(name, hidden=not more)

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
        self.row.put("tabs", value=self.tab_of(frame))
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
            self.row.put("kind", value=frame.map_kind if of_one else None, hidden=not of_one)
            self.row.put("undo", disabled=not held.past)
            self.row.put("redo", disabled=not held.future)
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
        whole = escape(picture_words(picture) + merging(q, self.work.answers))
        first, stop, rest = whole.partition(". ")  # the result, then its numbers
        self._say(f"{first}{stop.strip()}", rest)
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
        said = f"{bar}{reference(picture)}<div>{legend(picture, lowest)}</div>"
        self.told.put("bar", value=said)

    def end(self) -> None:
        """Cancel work in progress."""
        self.work.close()
