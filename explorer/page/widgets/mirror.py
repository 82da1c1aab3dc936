"""A box of views as one anywidget: for notebooks that show anywidgets and no boxes, as marimo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as w
from traitlets import List

KINDS = ((w.Box, "widget-box"), (w.VBox, "widget-vbox"))  # classes that ipywidgets gives to boxes
LAYOUT = ("display", "height", "width", "overflow")  # of a widget, as the browser's style has them


class Mirror(anywidget.AnyWidget):
    """The same boxes and the same views, in one element; it follows what the boxes hold.

    It needs a notebook that lets an anywidget show others: marimo, or anywidget 0.11 in Jupyter.

    Attributes:
        parts: the box: its style classes, its style, and what is in it, which is a list of such
            parts, the name of a view's model, or the HTML of words.
    """

    _esm = (Path(__file__).parent / "mirror.js").read_text()
    parts: List[Any] = List().tag(sync=True)

    def __init__(self, box: w.Box) -> None:
        """Show what the box shows, from now on."""
        super().__init__()
        self._box = box
        self._followed: set[w.Widget] = set()
        self._look()

    def _look(self, _: Any = None) -> None:  # noqa: ANN401 - a change
        self.parts = self._part(self._box)

    def _part(self, widget: w.DOMWidget) -> list[Any]:
        style = {name: value for name in LAYOUT if (value := getattr(widget.layout, name))}
        kinds = [name for kind, name in KINDS if isinstance(widget, kind)]
        if isinstance(widget, anywidget.AnyWidget):
            held: Any = {"model": f"anywidget:{widget.model_id}"}
        else:
            self._follow(widget)
            boxed = isinstance(widget, w.Box)
            held = [self._part(one) for one in widget.children] if boxed else widget.value
        return [[*kinds, *widget._dom_classes], style, held]

    def _follow(self, widget: w.DOMWidget) -> None:
        """Look again when a box, or words, change."""
        if widget not in self._followed:
            self._followed.add(widget)
            names = {"children", "value", "_dom_classes"}.intersection(widget.keys)
            widget.observe(self._look, [*names])
            widget.layout.observe(self._look)
