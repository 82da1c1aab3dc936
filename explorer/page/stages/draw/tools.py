"""The tools on the plane: class, tool, undo, layers."""

from __future__ import annotations

from typing import Any

from explorer.page import play, sight
from explorer.page.controls.control import Palette
from explorer.page.frame import LAYERS, Frame
from explorer.page.panels.base import Panel
from explorer.page.plane.weights import can_show
from explorer.page.plane.words import BAND
from explorer.page.session import Session
from explorer.page.stages.draw import commands as draw
from explorer.research.pictures.axes import axes_for
from explorer.style import CLASSES

BY_HEIGHT = {"sign": "↕", "name": "by height", "tip": "above the axis +1, below it −1", "value": 0,
             "colour": ""}  # fmt: skip
CHIPS = {
    "map": ("Map", "Sign and size of Φ as colour, with a line where it is 0"),
    "margins": ("Margins", "Thin lines where Φ is the margin"),
    "lines": ("Kinks", "Lines on which a neuron switches, by path weight"),
    "trails": ("Trails", "Where the candidates come from"),
}
FIT = ("Fit", "Let the plane show all points large")
TRUTH, FIT_KEY, BAND_KEY = "truth", "fit", "band"
TOOLS = ("place", "move", "erase")


class Tools(Panel):
    """Class and tool of the next points, undo and redo, and the layers of the plane."""

    look = ("mx-tools-box",)
    every_place = False
    follows = ("tool", "label", "classes", "layers", "truth_shown", "band", "editing")

    def build(self) -> None:
        """One control over the plane."""
        session = self.session
        self.view = self.widget = Palette({
            "label": self._on_label,
            "tool": self.command_among(TOOLS, lambda tool: session.choose(tool=tool)),
            **self.commands(undo=play.undo, redo=play.redo, clear=draw.clear),
            "edit": self.command_of(bool, self._on_edit),
            "layer": self.command_among(
                (TRUTH, FIT_KEY, BAND_KEY, *LAYERS), self._on_layer
            ),
        }, ("mx-tools",))  # fmt: skip

    def _on_label(self, value: Any) -> None:  # noqa: ANN401 - from a browser
        if value in [row["value"] for row in classes_of(self.session)]:
            self.session.choose(label=value)

    def _on_edit(self, unfolded: bool) -> None:
        """Unfold the tools, or fold them; in stages that attack, turn back to 1 Draw."""
        if self.session.frame.is_aimed:
            play.go(self.session, "draw")
        else:
            self.session.choose(editing=unfolded)

    def _on_layer(self, key: str) -> None:
        session = self.session
        if key == TRUTH:
            play.set_truth_shown(session, not session.truth_shown)
        elif key == BAND_KEY:
            session.choose(band=not session.band)
        elif key == FIT_KEY:
            sight.refit(session)
        else:
            shown = set(session.layers) ^ {key}
            session.choose(layers=tuple(name for name in LAYERS if name in shown))

    def render(self, frame: Frame) -> None:
        """Show the drawing tools in drawing stages, and the switch of the truth in the attack."""
        session = self.session
        self.view.show(
            stage=frame.stage, drawing=not frame.is_aimed, folded=not draw.is_open(session),
            classes=classes_of(session), label=session.label,
            tool=session.tool, chips=self._chips(frame),
        )  # fmt: skip

    def _chips(self, frame: Frame) -> list[dict[str, Any]]:
        chips = [
            {"key": key, "name": name, "tip": tip, "on": key in self.session.layers}
            for key, (name, tip) in CHIPS.items()
            if frame.stage in LAYERS[key] and frame.proof is None
        ]
        if frame.stage != "draw" and can_show(frame) is not None:
            name, tip = BAND
            chips.append({"key": BAND_KEY, "name": name, "tip": tip, "on": self.session.band})
        axes = self.session.axes
        if axes_for(axes, sight.in_view(frame, axes), loaded=True) != axes:
            chips.append({"key": FIT_KEY, "name": FIT[0], "tip": FIT[1], "on": False})
        if frame.is_aimed and frame.proof is None:
            shown = self.session.truth_shown
            name = "Hide the truth" if shown else "Reveal the truth"
            tip = "The points that the attack looks for: hide them, guess, reveal them"
            chips.append({"key": TRUTH, "name": name, "tip": tip, "on": None})
        return chips


def classes_of(session: Session) -> list[dict[str, Any]]:
    """Return the classes that can be drawn: in 1-D two, or by height, on the plane up to four."""
    data = session.frame.dataset
    flat, several = data.d == 1 or session.label == 0, data.outputs > 1
    rows: list[dict[str, Any]] = [
        {"sign": look.sign, "name": f"{look.sign} {key if several and not flat else look.number}",
         "tip": f"{look.words} (key {key})", "value": value, "colour": look.ink}
        for key, (value, look) in enumerate(CLASSES.items(), 1)
    ]  # fmt: skip
    return [*rows[:2], BY_HEIGHT] if flat else rows[: session.classes]
