"""A plane to draw points on, in a cell of its own."""

from __future__ import annotations

from typing import Any

import ipywidgets as w
from traitlets import Enum, Int, link, observe

from explorer.engine.data import Dataset, empty
from explorer.page.frame import Frame
from explorer.page.panels.notice import Notice
from explorer.page.plane import words
from explorer.page.plane.hands import presses
from explorer.page.plane.panel import PlanePanel
from explorer.page.session import Session
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.draw.tools import TOOLS, Tools
from explorer.page.widgets.alone import Alone, Checked, as_points


class PadPanel(PlanePanel):
    """The plane of a pad, which has no presets beside it."""

    def first_words(self, frame: Frame) -> str:
        """Return how an empty pad is drawn on."""
        return words.FIRST_ALONE if frame.dataset.d == 2 else super().first_words(frame)

    def line_words(self, frame: Frame) -> str:
        """Return nothing: a pad stays on its line or plane."""
        return ""


class DrawingPad(Alone):
    """A plane to draw points on by mouse, touch or keyboard, with the page's tools and undo.

    Attributes:
        dataset: the drawn points, x (n, d) in units of the data with d 1 or 2, and labels y (n,).
            A pair (x, y) will do. To set it is an edit: undo takes it back.
        tool: "place", "move" or "erase".
        classes: how many classes can be drawn, 2 to 4; on a line 2.
        selected: index of the point that was placed or pressed last; -1 for none.

    Raises:
        TraitError: for a value that a trait does not take; the old one stays.

    Example:
        >>> from explorer import preset
        >>> from explorer.widgets import DrawingPad
        >>> pad = DrawingPad(preset("moons", n=2))
        >>> pad.dataset.n, list(pad.data.columns)
        (2, ['x1', 'x2', 'y'])
    """

    dataset = Checked(as_points, empty(2), help="the drawn points, in units of the data")
    tool = Enum(TOOLS, "place", help="what the pointer does")
    classes = Int(4, min=2, max=4, help="how many classes can be drawn")
    selected = Int(-1, min=-1, help="index of the point placed or pressed last; -1: none")

    def __init__(self, dataset: Any = None, **traits: Any) -> None:  # noqa: ANN401 - see as_points
        """Show these points; nothing is drawn by default."""
        first = empty(2) if dataset is None else as_points(dataset)
        self.session = Session(first)
        plane, tools, notice = (kind(self.session) for kind in (PadPanel, Tools, Notice))
        self.panels = (plane, tools, notice)
        stage = w.Box([plane.box, notice.box], _dom_classes=["mx-stage"])
        super().__init__([tools.box, stage], "mx-alone-pad", dataset=first, **traits)
        link((self, "tool"), (self.session, "tool"))
        link((self, "classes"), (self.session, "classes"))
        self.session.observe(self._take, names=["shown"])
        plane.view.on("events", self._on_events)

    @property
    def data(self) -> Any:  # noqa: ANN401 - pandas is imported where it is asked for
        """Return the drawn points as a pandas DataFrame: columns x1, ..., xd and the class y.

        Raises:
            ImportError: without pandas.
        """
        import pandas

        x = self.dataset.x.numpy()
        table = {f"x{k + 1}": x[:, k] for k in range(self.dataset.d)}
        return pandas.DataFrame({**table, "y": self.dataset.y.numpy().astype(int)})

    def _take(self, _: Any) -> None:  # noqa: ANN401 - a change
        self.dataset = self.session.frame.dataset

    @observe("dataset")
    def _show(self, change: dict[str, Any]) -> None:
        new: Dataset = change["new"]
        if new is not self.session.frame.dataset:
            draw.put(self.session, new)
        if self.selected >= new.n:
            self.selected = -1

    def _on_events(self, content: Any) -> None:  # noqa: ANN401 - from a browser
        """Note which point is pressed; the panel has acted on it before."""
        for _, near in presses(content, self.dataset.x, self.session.axes):
            self.selected = near
