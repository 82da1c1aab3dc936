"""Where else a point could be: maps of the energy, redrawn during a drag."""

from __future__ import annotations

from functools import partial
from html import escape
from typing import Any

import ipywidgets as w
import numpy as np
from numpy.typing import NDArray

from explorer.engine.energy.maps import SplitPlane
from explorer.engine.energy.questions import MAPS, Picture, Question
from explorer.page import play
from explorer.page.frame import Frame, PointMap
from explorer.page.panels.base import Panel, button, with_title
from explorer.page.parts.energy_charts import (
    EnergyCurve,
    EnergyMap,
    EnergyWork,
    colour_bar,
    marked,
)
from explorer.page.parts.map_tabs import MapTabs
from explorer.page.parts.settings import choice, real
from explorer.page.shades import span_of
from explorer.page.stages import landscape
from explorer.page.words.energy import (
    COMPUTING,
    STOPPED,
    legend,
    merging,
    nothing,
    picture_words,
    reference,
)

SLOW_S = 1.0  # of a drag without a new map: then the old one is dimmed; arbitrary
KINDS = ("point", "ridge", "last")  # of one point, on the plane
STOP, ON = "Stop refining", "Go on refining"


class EnergyPanel(Panel):
    """A map, one sentence on it, and the settings of both."""

    stages = ("landscape",)

    def build(self) -> None:
        """Controls above, the map or the curve below."""
        self.work = EnergyWork(self)
        self.picture: Picture | None = None
        self.shown: Question | None = None  # what the picture answers
        self.seconds = 0.0  # of the last map, from asking to drawing
        self._setting = False
        self.map, self.curve = EnergyMap(), EnergyCurve()
        self._controls()
        self.said = w.HTML().add_class("mx-note")
        self.bar = w.HTML().add_class("mx-note")
        self.progress = w.FloatProgress(
            min=0, max=1, layout=w.Layout(width="120px"), tooltip="Share of the map computed"
        )
        self.stop = button(STOP, "Keep the map as it is; pressed again, it is refined further")
        self.stop.on_click(self.command(self._toggle))
        self.body = w.VBox(layout=w.Layout(overflow="visible"))
        self.tabs = MapTabs(self.session, self.command)
        self.more = w.ToggleButton(
            value=False, description="More", tooltip="Kinks, merged neurons, price of the margin",
            layout=w.Layout(width="auto"),
        )  # fmt: skip
        self.more.observe(lambda _: self._fold(), names=["value"])
        rows = (
            [self.point, self.kind, self.back, self.undo, self.redo],
            [self.stop, self.progress, self.more, self.tabs.widget],
            [self.others, self.pixels, self.angle, self.kappa],
        )
        self.rows = tuple(w.HBox(row).add_class("mx-row") for row in rows)
        self.whole = w.VBox([*self.rows, self.said, self.body], layout={"overflow": "visible"})
        card = with_title("Energy: where else could a point be?", self.whole)
        self.widget = card
        self._fold()

    def _fold(self) -> None:
        self.rows[2].layout.display = "" if self.more.value else "none"

    def _controls(self) -> None:
        session = self.session
        self.kind = choice("map", "What moves", *((MAPS[key], key) for key in KINDS))
        self.point = w.Dropdown(
            options=[("1", 0)], description="point", tooltip="Whose map; or click it on the plane",
            layout=w.Layout(width="150px"), style={"description_width": "40px"},
        )  # fmt: skip
        self.others = choice(
            "others", "Whether the other points' multipliers follow the moving point",
            ("refitted", False), ("frozen", True),
        )  # fmt: skip
        for one in (self.kind, self.others):
            one.style.description_width = "46px"
        self.pixels = real("kinks (px)", "A slope is free within so many pixels of a 61 × 61 map",
                           0.0, 4.0)  # fmt: skip
        self.pixels.value = 0.5
        self.angle = real("merge angle", "Radians within which neurons count as one; 0: none",
                          0.0, 0.5)  # fmt: skip
        self.angle.value = 0.02
        self.kappa = real("margin price", "κ: charges points in use that are off the margin",
                          0.0, 100.0)  # fmt: skip
        self.kappa.value = 0.0
        self.kind.observe(self._on_kind, names=["value"])
        for control in (self.others, self.pixels, self.angle, self.kappa):
            control.observe(self._on_control, names=["value"])
        self.point.observe(self._on_point, names=["value"])
        made = []
        for label, tip, call in (
            ("All back to the truth", "Undo all drags at once", landscape.reset),
            (
                "↶ Undo drag",
                "Take the last drag back (Ctrl+Z on the plane)",
                play.undo,
            ),
            ("↷ Redo drag", "Do it again (Ctrl+Y on the plane)", play.redo),
        ):
            one = button(label, tip)
            one.on_click(self.command(partial(call, session)))
            made.append(one)
        self.back, self.undo, self.redo = made

    # --- what is asked ----------------------------------------------------------------------
    def _on_control(self, _: Any) -> None:  # noqa: ANN401
        self._draw(self.session.frame)

    def _on_point(self, change: dict[str, Any]) -> None:
        if not self._setting and change["new"] is not None:
            self.command(lambda: landscape.map_point(self.session, change["new"]))(None)

    def _on_kind(self, change: dict[str, Any]) -> None:
        if not self._setting and change["new"] is not None:
            self.command(lambda: landscape.show_map(self.session, change["new"]))(None)

    def seen(self, frame: Frame) -> bool:
        """Return whether one point moves."""
        return super().seen(frame) and frame.map_kind != "starts"

    def _question(self, frame: Frame) -> Question | None:
        held = frame.landscape
        if held is None or frame.target is None or held.present.target is not frame.target:
            return None
        points = held.present
        return Question(
            frame.map_kind, frame.target.net, points.truth, frame.heldout, points.x,
            points.mapped,
            self.session.extent, self.others.value, self.pixels.value, self.angle.value,
            self.kappa.value, self.session.seed,
        )  # fmt: skip

    def render(self, frame: Frame) -> None:
        """Ask for the map of the present frame; the same question is not asked twice."""
        self.tabs.show(frame)
        q = self._question(frame)
        if q is None or frame.landscape is None:
            self.work.forget()
            self._drop(nothing(frame))
            self.whole.children = (self.said, self.tabs.widget)
            return
        if len(self.whole.children) == 2:
            self.whole.children = (*self.rows, self.said, self.body)
        self._setting = True
        count = len(frame.landscape.present.x)
        if len(self.point.options) != count:
            self.point.options = [(str(i + 1), i) for i in range(count)]
        self.point.value = frame.landscape.present.mapped
        self.kind.value = frame.map_kind if frame.map_kind in KINDS else None
        self.kind.layout.display = "" if frame.map_kind in KINDS else "none"
        self._setting = False
        held = frame.landscape
        self.undo.disabled, self.redo.disabled = not held.past, not held.future
        if q.same(self.work.asked):
            return
        if self.picture is None:
            self.said.value = COMPUTING
        self._work_on(True)
        self.work.ask(q)

    def unseen(self, frame: Frame) -> None:
        """Stop refining out of sight."""
        self.work.forget()

    def _toggle(self) -> None:
        """Stop refining, or go on."""
        if self.stop.description == STOP:
            self.work.halt()
        else:
            self._work_on(True)
            self.work.resume()

    # --- what the work tells ----------------------------------------------------------------
    def _work_on(self, busy: bool) -> None:
        self.stop.description, self.stop.disabled = STOP, not busy

    def waiting(self, share: float, first: bool, seconds: float) -> None:
        """A map is being computed; the one on screen is dimmed where it is of something else."""
        self.progress.value = share
        asked, shown = self.work.asked, self.shown
        if not first or asked is None:
            return
        if shown is None or not shown.moved_to(asked):
            self.said.value = COMPUTING
        elif seconds < SLOW_S:
            return
        self.body.add_class("mx-old")

    def rested(self, halted: bool) -> None:
        """Show that the computation has ended."""
        self.progress.value = 0.0
        self._work_on(False)
        asked = self.work.asked
        if not halted or asked is None:
            return
        self.stop.description, self.stop.disabled = ON, False
        if self.shown is None or not self.shown.same(asked):
            self.said.value = f"{STOPPED} Go on refining computes it."
            self.body.add_class("mx-old")

    def refused(self, why: str) -> None:
        """Show why there is no such map."""
        self._drop(why)

    def _drop(self, why: str) -> None:
        self.picture = self.shown = None
        self.said.value, self.body.children = escape(why), ()
        self.body.remove_class("mx-old")

    def answered(self, q: Question, picture: Picture, seconds: float) -> None:
        """Draw a map with its sentence."""
        held = self.session.frame.landscape
        if held is None or len(held.present.x) <= held.present.mapped:
            return
        points = held.present
        self.picture, self.shown, self.seconds = picture, q, seconds
        x, truth = points.x.numpy(), points.truth.x.double().cpu().numpy()
        views: tuple[w.Widget, ...] = ()
        if picture.curve is not None:
            self.curve.show(picture, float(x[points.mapped, 0]), float(truth[points.mapped, 0]))
            views = (self.curve.widget,)
        elif picture.kind == "split":
            self.map.show(picture)
            views = (self.map.widget,)
        self._legend(picture)
        self.said.value = escape(picture_words(picture) + merging(q, self.work.answers))
        self.body.remove_class("mx-old")
        children = (*views, self.bar)
        if self.body.children != children:
            self.body.children = children
        drawn = point_map(picture, x[points.mapped])
        self.command(lambda: landscape.draw_map(self.session, drawn))(None)

    def _legend(self, picture: Picture) -> None:
        bar = (
            ""
            if picture.curve is not None
            else colour_bar(picture, *span_of(picture.values, picture.reference))
        )
        lowest = picture.curve is not None or marked(picture)
        self.bar.value = f"{bar}{reference(picture)}<div>{legend(picture, lowest)}</div>"

    def end(self) -> None:
        """Cancel work in progress."""
        self.work.close()


def point_map(picture: Picture, place: NDArray[np.float64]) -> PointMap:
    """Return what the plane shows of a picture, with the mapped point at `place` (d,)."""
    span = span_of(picture.values, picture.reference)
    if isinstance(picture.about, SplitPlane):
        made = picture.about
        u, most = made.u.numpy(), made.reach
        ends = np.stack([place - min(made.minus, most) * u, place + min(made.plus, most) * u])
        return PointMap(None, picture.box, span, segment=None if made.pinned else ends)
    values = None if picture.curve is not None else picture.values
    low = picture.lowest if values is not None and marked(picture) else None
    return PointMap(values, picture.box, span, low)
