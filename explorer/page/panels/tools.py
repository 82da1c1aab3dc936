"""The tools under the plane: class, tool, undo, layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as w

from explorer.page import play
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel, button
from explorer.page.session import Session
from explorer.page.stages import draw

TOOLS = (("Place", "place"), ("Move", "move"), ("Erase", "erase"))
TOOL_TIPS = ("Click adds a point, drag sprays", "Drag a point", "Click or drag over points")
CLASSES = (("● +1", 1), ("▲ −1", -1))
FURTHER = (("■ 3", 3), ("◆ 4", 4))
SEVERAL = (("● 1", 1), ("▲ 2", -1), *FURTHER)
LEGENDS = {
    "draw": "The axes stay the same from drawing to attack.",
    "train": "Thin: Φ = ± margin; thick: Φ = 0; grey: neurons. Area: multiplier λ.",
    "classes": "Thin: a class leads by the margin; thick: two classes tie; grey: neurons.",
    "attack": "Hollow: the truth. Filled: candidates, area by multiplier λ.",
    "explain": "Hollow: the truth. Filled: points that explain the weights too, area by λ.",
    "landscape": "Hollow: the truth. Filled: candidates of the last run, or of the clicked cell.",
    "arena": "Hollow: the truth. Filled: claims of the chosen attack, area by multiplier λ.",
}
CLASS_TIPS = ("blue circle (key 1)", "orange triangle (key 2)")
FLAT_TIPS = (*CLASS_TIPS, "above the axis +1, below it −1")
PLANE_TIPS = (*CLASS_TIPS, "green square (key 3)", "purple diamond (key 4)")
BY_HEIGHT = ("by height", 0)


class Tools(Panel):
    """Class and tool of the next points, undo and redo, and the layers of the plane."""

    def build(self) -> None:
        """One row under the plane."""
        session = self.session
        self.tool = w.ToggleButtons(options=TOOLS, tooltips=TOOL_TIPS, value=session.tool)
        self.label = w.ToggleButtons(options=(*CLASSES, *FURTHER), value=session.label or 1,
                                     tooltips=PLANE_TIPS)  # fmt: skip
        self._shown = (0, False)  # dimension, and whether there are further classes
        for toggle in (self.tool, self.label):
            toggle.style.button_width = "auto"
        self.tool.observe(self._setter(draw.set_tool), names=["value"])
        self.label.observe(self._setter(draw.set_label), names=["value"])
        undo = button("↶ Undo", "Take the last edit back (Ctrl+Z on the plane)")
        undo.on_click(self.command(lambda: play.undo(session)))
        redo = button("↷ Redo", "Do the undone edit again (Ctrl+Y on the plane)")
        redo.on_click(self.command(lambda: play.redo(session)))
        clear = button("Clear", "Erase all points; undo brings them back")
        clear.on_click(self.command(lambda: draw.clear(session)))
        self.drawing = w.HBox([self.label, self.tool, undo, redo, clear]).add_class("mx-row")
        self.truth = _check("truth", "Reveal or hide the points that the attack looks for")
        self.truth.observe(self._setter(play.set_truth_shown), names=["value"])
        self.layers = {
            "map": _check("map", "Sign and size of Φ as colour, with its levels at 0 and ± margin"),
            "lines": _check("neurons", "Lines on which a neuron switches, by path weight"),
        }
        for layer in self.layers.values():
            layer.observe(self._on_layer, names=["value"])
        self.legend = w.HTML("hollow: the truth; filled: candidates, area by λ").add_class(
            "mx-note"
        )
        shown = w.HBox([*self.layers.values(), self.truth, self.legend]).add_class("mx-row")
        self.widget = w.VBox([self.drawing, shown])
        session.observe(self._on_session, names=["tool", "label"])

    def _setter(self, command: Callable[[Session, Any], None]) -> Callable[[dict[str, Any]], None]:
        def put(change: dict[str, Any]) -> None:
            command(self.session, change["new"])

        return put

    def _on_layer(self, _: Any) -> None:  # noqa: ANN401
        play.set_layers(self.session, tuple(name for name, box in self.layers.items() if box.value))

    def _on_session(self, _: Any) -> None:  # noqa: ANN401
        self.tool.value = self.session.tool
        data = self.session.frame.dataset
        flat = data.d == 1 or self.session.label == 0
        several = SEVERAL if data.outputs > 1 else (*CLASSES, *FURTHER)
        options = (*CLASSES, BY_HEIGHT) if flat else several
        if self.label.options != options:
            wanted = self.session.label
            self.label.tooltips = FLAT_TIPS if flat else PLANE_TIPS
            self.label.options = options
            draw.set_label(self.session, wanted)
        self.label.value = self.session.label

    def render(self, frame: Frame) -> None:
        """Show the drawing tools in drawing stages, and the switch of the truth in the attack."""
        attack = frame.aimed
        for box, shown in (
            (self.drawing, not attack),
            (self.truth, attack),
        ):
            display = "" if shown else "none"
            if box.layout.display != display:
                box.layout.display = display
        several = frame.dataset.outputs > 1
        stage = "classes" if frame.stage == "train" and several else frame.stage
        legend = LEGENDS.get(stage, LEGENDS["attack"])
        if self.legend.value != legend:
            self.legend.value = legend
        if self._shown != (frame.dataset.d, several):
            self._shown = (frame.dataset.d, several)
            self._on_session(None)


def _check(name: str, tip: str) -> w.Checkbox:
    return w.Checkbox(
        value=True, description=name, indent=False, tooltip=tip, layout=w.Layout(width="auto")
    )
