"""Where else could a point be: maps of the energy that redraw while one drags."""

from __future__ import annotations

import asyncio
from html import escape
from threading import Event
from time import perf_counter
from typing import Any

import ipywidgets as w
import numpy as np

from explorer.frame import Frame
from explorer.hands.walking import WalkingHand
from explorer.panels.base import Panel, button, titled
from explorer.parts.energy_charts import EnergyCurve, EnergyMap, colour_bar, span_of
from explorer.parts.settings import choice, real
from explorer.stages.energy_live import Answers
from explorer.stages.energy_question import MAPS, STANDARD, TRIANGLE, Picture, Question

LADDER = (31, STANDARD, 121)  # pixels a side, refined while nothing else is asked
LOOK_S = 0.25  # between two looks at the share done; arbitrary
AT_ONCE_S = 0.12  # a map expected to take less needs no coarser one before it; arbitrary
EMPTY = (
    "No energy here: it needs a homogeneous network (biases in the first layer only) of two "
    "classes. Draw two classes, train, and come back."
)
LEGEND = "□ where the point is &nbsp; ○ truth &nbsp; ◇ lowest &nbsp; dashed: edge of free splits"
STARTS_LEGEND = "◇ lowest &nbsp; white: runs of the grid below, a dot where each ended"


def ladder_of(q: Question) -> tuple[int, ...]:
    """Sizes of the maps of one question, coarse first."""
    return TRIANGLE if q.kind == "starts" else LADDER


class EnergyPanel(Panel):
    """A map, what is seen in one sentence, and the settings of both."""

    stages = ("landscape",)

    def build(self) -> None:
        """Controls above, the map or the curve below."""
        self.answers = Answers()
        self.picture: Picture | None = None
        self._asked: Question | None = None
        self.hand = WalkingHand(self.session)
        self._task: asyncio.Task[None] | None = None
        self._stop, self._pace = Event(), 1e-4
        self.seconds = 0.0  # of the last map, from asking to drawing
        self._setting = False
        self.map, self.curve = EnergyMap(), EnergyCurve()
        self.map.pad.on_msg(self._on_pad)
        self._controls()
        self.said = w.HTML(EMPTY).add_class("mx-note")
        self.bar = w.HTML().add_class("mx-note")
        self.where = w.HTML("Hover over the map for numbers.").add_class("mx-note")
        self.progress = w.FloatProgress(
            min=0, max=1, layout=w.Layout(width="120px"), tooltip="Share of the map computed"
        )
        self.stop = button("Stop refining", "Keep the map as it is")
        self.stop.on_click(self.command(self.cancel))
        self.body = w.VBox(layout=w.Layout(overflow="visible"))
        rows = (
            [self.kind, self.point, self.others],
            [self.pixels, self.angle, self.kappa],
            [self.back, self.undo, self.redo, self.stop, self.progress],
        )
        self.rows = tuple(w.HBox(row).add_class("mx-row") for row in rows)
        self.whole = w.VBox([*self.rows, self.said, self.body], layout={"overflow": "visible"})
        self.widget = titled("Energy: where else could a point be?", self.whole)

    def _controls(self) -> None:
        session = self.session
        self.kind = choice("map", "What moves", *((title, key) for key, title in MAPS.items()))
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
        for control in (self.kind, self.others, self.pixels, self.angle, self.kappa):
            control.observe(self._on_control, names=["value"])
        self.point.observe(self._on_point, names=["value"])
        made = []
        for label, tip, call in (
            ("All back to the truth", "Undo all drags at once", session.walk_home),
            ("↶ Undo drag", "Take the last drag back (Ctrl+Z on the plane)", session.undo_walk),
            ("↷ Redo drag", "Do it again (Ctrl+Y on the plane)", session.redo_walk),
        ):
            one = button(label, tip)
            one.on_click(self.command(call))
            made.append(one)
        self.back, self.undo, self.redo = made

    # --- what is asked ----------------------------------------------------------------------
    def _on_control(self, _: Any) -> None:  # noqa: ANN401
        self._draw(self.session.frame)

    def _on_point(self, change: dict[str, Any]) -> None:
        if not self._setting and change["new"] is not None:
            self.command(lambda: self.session.map_point(change["new"]))(None)

    def _on_pad(self, _: Any, content: Any, __: Any) -> None:  # noqa: ANN401 - from the browser
        try:
            if self.kind.value in ("point", "ridge", "last"):
                self.hand.handle(content)
                self.map.pad.say = self.hand.say
            self._hover(content)
        except Exception as error:  # would vanish in the kernel's log
            self.fail(error)

    def _hover(self, content: Any) -> None:  # noqa: ANN401
        picture, events = self.picture, content.get("events") or [{}]
        x, y = events[-1].get("x"), events[-1].get("y")
        if picture is None or not isinstance(x, int | float) or not isinstance(y, int | float):
            return
        left, right, bottom, top = picture.box
        at = left + x * (right - left), bottom + y * (top - bottom)
        self.where.value = escape(picture.reading(*at))

    def _question(self, frame: Frame) -> Question | None:
        walk = frame.walk
        if walk is None or frame.target is None or walk.target is not frame.target:
            return None
        return Question(
            self.kind.value, frame.target.net, walk.truth, frame.heldout, walk.x, walk.mapped,
            self.session.extent, self.others.value, self.pixels.value, self.angle.value,
            self.kappa.value, self.session.seed,
        )  # fmt: skip

    def render(self, frame: Frame) -> None:
        """Ask for the map of what is on screen; the same question is not asked twice."""
        q = self._question(frame)
        if q is None or frame.walk is None:
            self.cancel()
            self.said.value, self.whole.children, self._asked = escape(EMPTY), (self.said,), None
            return
        if len(self.whole.children) == 1:
            self.whole.children = (*self.rows, self.said, self.body)
        self._setting = True
        count = len(frame.walk.x)
        if len(self.point.options) != count:
            self.point.options = [(str(i + 1), i) for i in range(count)]
        self.point.value = frame.walk.mapped
        self._setting = False
        self.undo.disabled, self.redo.disabled = not frame.walk.past, not frame.walk.future
        self.map.pad.stops = 0 if self.kind.value == "starts" else count
        if q.same(self._asked):
            return
        self._asked = q
        self._stop.set()
        self._stop = Event()
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # nobody would run a task: without a page
            self._at_once(q)
            return
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())

    # --- answering --------------------------------------------------------------------------
    def _at_once(self, q: Question) -> None:
        begun = perf_counter()
        self._show(self.answers.answer(q, ladder_of(q)[1]), perf_counter() - begun)

    def cancel(self) -> None:
        """Leave the map as fine as it is."""
        self._stop.set()

    async def _work(self) -> None:
        """Answer the newest question, coarse first, until it is answered finely."""
        answered: Question | None = None
        while self._asked is not None and self._asked is not answered:
            q, begun = self._asked, perf_counter()
            stop = self._stop
            ladder = ladder_of(q)
            first = max([s for s in ladder[:2] if s * s * self._pace < AT_ONCE_S] or ladder[:1])
            try:
                for size in [s for s in ladder if s >= first]:
                    here = perf_counter()
                    picture = await self._answer(q, size, stop, size == first)
                    if picture is None:
                        break
                    self._pace = (perf_counter() - here) / size**2
                    self._show(picture, perf_counter() - begun)
                    if stop.is_set():
                        break
            except ValueError as error:
                self._refuse(str(error))
            except Exception as error:  # a task's error would vanish unseen
                self.fail(error)
            answered = q
        self.progress.value = 0.0

    async def _answer(self, q: Question, size: int, stop: Event, first: bool) -> Picture | None:
        """The map, made in a thread; a first one is finished even while one drags on."""
        done = [0.0]

        def go_on(share: float) -> bool:
            done[0] = share
            return not stop.is_set() or (first and self._asked is not None)

        task = asyncio.create_task(asyncio.to_thread(self.answers.answer, q, size, go_on))
        while not task.done():
            await asyncio.wait({task}, timeout=LOOK_S)
            if not task.done():
                self.progress.value = done[0]
        return task.result()

    def _refuse(self, why: str) -> None:
        self.picture = None
        self.said.value, self.body.children = escape(why), ()

    def _show(self, picture: Picture | None, seconds: float) -> None:
        walk = self.session.frame.walk
        if picture is None or walk is None or len(walk.x) <= walk.mapped:
            return
        self.picture, self.seconds = picture, seconds
        x, truth = walk.x.numpy(), walk.truth.x.double().cpu().numpy()
        view: w.Widget
        if picture.curve is not None:
            self.curve.show(picture, float(x[walk.mapped, 0]), float(truth[walk.mapped, 0]))
            view, bar = self.curve.widget, self._reference(picture)
        else:
            self.map.show(picture, x, walk.y.numpy(), truth, walk.mapped)
            starts = picture.kind == "starts"
            self.map.triangle.show(self.session.trails if starts else [])
            self.map.pad.stops = 0 if starts else len(x)  # arrows then move a cursor, which reads
            view = self.map.widget
            bar = colour_bar(picture, *span_of(picture)) + self._reference(picture)
        legend = STARTS_LEGEND if picture.kind == "starts" else LEGEND
        self.bar.value = f"{bar}<div>{legend}</div>"
        self.said.value = escape(f"{picture.words}{self._merging()}")
        children = (view, self.where, self.bar)
        if self.body.children != children:
            self.body.children = children

    @staticmethod
    def _reference(picture: Picture) -> str:
        if not np.isfinite(picture.reference):
            return ""
        return f"<div>energy without this point: {picture.reference:.3g}</div>"

    def _merging(self) -> str:
        q = self._asked
        if q is None or q.angle == 0:
            return ""
        made = self.answers.merged(q)
        return (
            f" {sum(q.net.widths)} neurons merged to {sum(made.net.widths)}; Φ changes by "
            f"{made.error:.1g} on the points."
        )

    def end(self) -> None:
        """Cancel what is under way."""
        self._asked = None
        self.cancel()
