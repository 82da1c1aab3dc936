"""The band under the plane: the first layer's weights as needles, and what adds up to them."""

from __future__ import annotations

from explorer.engine.arrays import as_array
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel
from explorer.page.plane import words
from explorer.page.plane.weights import BandContent, can_show, shown_of
from explorer.page.view.canvases import BandView
from explorer.research.pictures.axes import Axes
from explorer.research.pictures.needles import needles


class BandPanel(Panel):
    """Needles under the plane, while they are asked for."""

    look = ("mx-card", "mx-band-card")
    stages = ("train", "attack", "explain", "landscape", "arena")
    follows = ("band", "truth_shown")
    view: BandView

    def build(self) -> None:
        """Make the view."""
        self.widget = self.view = BandView()

    def belongs(self, frame: Frame) -> bool:
        """Return whether it is asked for, and there are weights that it can show."""
        return self.session.band and super().belongs(frame) and can_show(frame) is not None

    def render(self, frame: Frame) -> None:
        """Show needles and sum of this frame: one message."""
        shown = shown_of(frame, self.session.attack_config, self.session.truth_shown)
        if shown is not None:
            whole = frame.aim.net if frame.is_aimed and frame.aim is not None else shown.net
            show_needles(self.view, shown, self.session.axes, len(whole.weights[0]))


def show_needles(view: BandView, shown: BandContent, axes: Axes, of: int = 0) -> None:
    """Show needles and sum: one message.

    `axes`: of the plane on which lines light up; `of`: neurons before parallel ones were merged.
    """
    arrays = needles(shown.net, axes, as_array(shown.x), shown.made)
    if shown.made is not None:
        arrays["labels"] = as_array(shown.y)
    view.label, view.flat = words.band_label(len(shown.net.weights[0])), shown.net.d == 1
    title = words.band_title(len(arrays["needles"]), "count" in arrays, of)
    share = min(1.0, shown.made.left) if shown.left and shown.made is not None else -1.0
    view.show(arrays, title=title, left=shown.left, share=share, why=shown.why)
