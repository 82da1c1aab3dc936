"""The plane: points, candidates and the network between them. In 1-D, the graph of Phi."""

from __future__ import annotations

from time import time
from typing import Any

import bqplot as bq
import ipywidgets as w
import numpy as np

from explorer.page import play
from explorer.page.frame import Frame
from explorer.page.gestures import ExplainHand, Gestures, LandscapeHand
from explorer.page.panels.base import Panel
from explorer.page.parts import drawing
from explorer.page.parts.drawing import class_field, class_levels, class_map_png, leads
from explorer.page.parts.marks import PlaneMarks, shapes_of
from explorer.page.parts.pad import Pad
from explorer.page.session import Session
from explorer.style import COLOURS, PLOT_MARGIN

KEYS = (
    "Click to place, drag to spray. Keyboard: arrows move the cursor (Shift: further), Enter acts, "
    "Delete erases, 1 to 4 choose the class, P place, M move, E erase, Ctrl+Z undo, Ctrl+Y redo."
)
EXPLAIN_KEYS = (
    "Drag a filled point along its green line; with Shift, anywhere. Keyboard: Tab chooses a "
    "point, arrows drag it (Shift: further), Enter lets go, F frees the drag, M merges, "
    "Ctrl+Z undo, Ctrl+Y redo."
)
LANDSCAPE_KEYS = (
    "Click a point to see the map of its energy; drag any point to move it. Keyboard: Tab chooses "
    "a point, arrows move it (Shift: further), Ctrl+Z undo, Ctrl+Y redo."
)
SPACING = {"place": 16, "move": 3, "erase": 6}  # px; arbitrary


class PlanePanel(Panel):
    """The plane, in the middle of the page; its axes are the same in all stages."""

    def build(self) -> None:
        """A square figure with the pad over its plot area."""
        session = self.session
        e = session.extent
        self.x_scale = bq.LinearScale(min=-e, max=e, allow_padding=False)
        self.y_scale = bq.LinearScale(min=-e, max=e, allow_padding=False)
        self.marks = PlaneMarks(self.x_scale, self.y_scale)
        self.y_axis = bq.Axis(
            scale=self.y_scale, side="left", label="x₂", grid_lines="none", num_ticks=5
        )
        x_axis = bq.Axis(scale=self.x_scale, label="x₁", grid_lines="none", num_ticks=5)
        self.figure = bq.Figure(
            marks=self.marks.all, axes=[x_axis, self.y_axis], fig_margin=PLOT_MARGIN, padding_x=0,
            padding_y=0, min_aspect_ratio=1, max_aspect_ratio=1, display_toolbar=False,
            background_style={"fill": "transparent"}, layout=w.Layout(width="100%"),
        )  # fmt: skip
        self.gestures, self._odd = Gestures(session), False
        self.explain_hand, self.landscape_hand = ExplainHand(session), LandscapeHand(session)
        self._mapped: tuple[Any, ...] = ()
        self.pad = Pad(tip=KEYS)
        self.pad.on_msg(self._on_pad)
        self.pad.observe(self._on_drawn, names=["drawn"])
        self.pad.add_class("mx-pad")
        self.widget = w.Box([self.figure, self.pad]).add_class("mx-plane")
        session.observe(self._on_tool, names=["tool", "label", "truth_shown", "extent", "layers"])
        self._on_tool(None)

    def _on_pad(self, _: Any, content: Any, __: Any) -> None:  # noqa: ANN401 - from the browser
        try:
            stage = self.session.frame.stage
            hands: dict[str, Any] = {
                "explain": self.explain_hand, "landscape": self.landscape_hand,
            }  # fmt: skip
            hand = hands.get(stage, self.gestures)
            hand.handle(content)
            self.pad.say = hand.say
        except Exception as error:  # would vanish in the kernel's log
            self.fail(error)

    def _on_drawn(self, change: dict[str, Any]) -> None:
        play.acknowledge(self.session, change["new"])

    def _on_tool(self, _: Any) -> None:  # noqa: ANN401
        session = self.session
        e = session.extent
        for scale in (self.x_scale, self.y_scale):
            if scale.max != e:
                scale.min, scale.max = -e, e
        with self.pad.hold_sync():
            self._tool_of(session)
            self.pad.ink = COLOURS.get(session.label, "#777777")
        self._draw(session.frame)

    def _tool_of(self, session: Session) -> None:
        self.pad.spacing = SPACING[session.tool]
        self.pad.echo = session.tool == "place"
        self.pad.cursor = {"place": "crosshair", "move": "grab", "erase": "cell"}[session.tool]

    def render(self, frame: Frame) -> None:
        """Show the network, points and candidates; then ask the browser for its answer."""
        flat = frame.dataset.d == 1
        self.y_axis.label = "Φ(x) / margin" if flat else "x₂"
        net, unit = _network(frame)
        if net is None or flat:
            self._mapped = ()
        if net is None:
            self.marks.clear_backdrop()
        elif flat:
            self._graph(net, unit)
        else:
            self._map(net, unit)
        if net is not None:
            self.marks.hide(graph=not flat, plane=flat)
        shown = not frame.aimed or self.session.truth_shown
        self.marks.points(frame, shown)
        self.marks.candidates(frame)
        self.marks.other(frame.other_set)
        try:
            self.marks.overlay.show(shapes_of(frame, self.session.extent), self.session.extent)
        finally:  # or a run would wait for a page that does not answer
            self._tell(frame)

    def _map(self, net: Any, unit: float) -> None:  # noqa: ANN401
        e = self.session.extent
        wanted = (net, unit, e, self.session.layers, self.session.running)
        if (
            len(self._mapped) == len(wanted)
            and self._mapped[0] is net
            and (self._mapped[1:] == wanted[1:])
        ):
            return  # a drag moves points, not the network
        self._mapped = wanted
        if "map" in self.session.layers:
            size = drawing.map_size(net, self.session.running)
            if net.outputs > 1:
                self._classes(net, unit, size)
            else:
                values = drawing.field(net, e, size) / unit
                self.marks.map(drawing.map_png(values), e)
                self.marks.levels(drawing.level_lines(values, e, (-1.0, 0.0, 1.0)))
        else:
            self.marks.clear_map()
        self._odd = not self._odd
        if self.session.running and self._odd:
            return  # the neurons' lines move slowly: every other frame will do
        lines = drawing.neuron_lines(net, e) if "lines" in self.session.layers else None
        self.marks.neurons(lines)

    def _classes(self, net: Any, unit: float, size: int) -> None:  # noqa: ANN401
        e = self.session.extent
        lead = leads(class_field(net, e, size) / unit)
        self.marks.map(class_map_png(lead), e)
        border, at_margin = class_levels(lead, e)
        self.marks.levels([at_margin[1], border, at_margin[0]], at_margin[2:])

    def _graph(self, net: Any, unit: float) -> None:  # noqa: ANN401
        e = self.session.extent
        x, values = drawing.graph(net, e)
        self.marks.graph(x, np.clip(values / unit, -e, e), e)
        ticks = drawing.breakpoints(net, e) if "lines" in self.session.layers else None
        self.marks.breakpoints(ticks, e)

    def _tell(self, frame: Frame) -> None:
        empty = not frame.dataset.n
        n = frame.dataset.n
        explain = frame.explain if frame.stage == "explain" else None
        landscape = frame.landscape if frame.stage == "landscape" else None
        keys, places = KEYS, 0
        if explain is not None:
            keys, places = EXPLAIN_KEYS, explain.present.now.n
        elif landscape is not None:
            keys, places = LANDSCAPE_KEYS, len(landscape.present.x)
        with self.pad.hold_sync():
            self.pad.active = not frame.aimed or places > 0
            self.pad.stops = places
            if places:
                self.pad.echo, self.pad.spacing, self.pad.cursor = False, 2, "grab"
            elif self.pad.spacing != SPACING[self.session.tool]:
                self._tool_of(self.session)
            self.pad.hint = "Click to place a point, drag to spray, or take a preset." * empty
            self.pad.tip = keys
            self.pad.label = f"Plane with {n} points. {keys}"
            self.pad.frame, self.pad.sent = self.session.shown, time() * 1000


def _network(frame: Frame) -> tuple[Any, float]:
    """Return the network to draw and the value that counts as its margin."""
    if frame.aimed and frame.target is not None:
        return frame.target.net, 1.0
    if frame.training.state is None or frame.stage == "draw":
        return None, 1.0
    q = frame.training.state.q.abs()
    if not len(q):
        return frame.training.state.net, 1.0
    low = float(frame.training.state.q.min())
    # Before the classes are separated there is no margin: the median keeps the map readable.
    return frame.training.state.net, max(low if low > 0 else float(q.median()), 1e-300)
