"""The curve that an attacker knows, over the plane: a line of help, and what can be done."""

from __future__ import annotations

from explorer.page import prior
from explorer.page.controls.row import Item, Row
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel
from explorer.page.plane.words import CURVE_HELP, CURVE_KNOWN


class CurveBar(Panel):
    """What the hand is to do while a curve is drawn; else the way to another curve."""

    look = ("mx-curve-box",)
    stages = ("attack", "landscape")
    every_place = False

    def build(self) -> None:
        """Words and buttons, in a row."""
        rows = self.button_items(
            end=("Done", "Grant the curve as it is (Enter)", prior.finish),
            back=("Undo", "Take the last corner back (Backspace)", prior.take_back),
            cancel=("Cancel", "Draw no curve (Escape)", prior.cancel),
            anew=("Draw anew", "Draw another curve", prior.begin),
            undo=("Undo", "Go back to the curve before, or to none", prior.undo),
            redo=("Redo", "Take the last undo back", prior.redo),
        )
        self.row = self.widget = Row(("mx-curve",), said=Item("words", value=""), **rows)

    def belongs(self, frame: Frame) -> bool:
        """Return whether a curve is drawn, or the attack knows one that was."""
        return super().belongs(frame) and prior.present(self.session) == prior.DRAWN

    def render(self, frame: Frame) -> None:
        """Show the buttons of the moment."""
        drawn, curves = frame.sketch, frame.attack.curves
        self.row.put("said", value=CURVE_KNOWN if drawn is None else CURVE_HELP)
        for name in ("end", "back"):
            self.row.put(name, hidden=drawn is None, disabled=not drawn)
        self.row.put("cancel", hidden=drawn is None)
        for name in ("anew", "undo"):
            self.row.put(name, hidden=drawn is not None)
        self.row.put("redo", hidden=drawn is not None or not curves.future)
