"""What the panels of the landscape share: the tabs that choose what moves."""

from __future__ import annotations

from functools import partial

from explorer.page.controls.row import Item, choices
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel
from explorer.page.stages.landscape import commands as landscape

TABS = (("all points", "starts"), ("one point", "point"), ("a split", "split"))
TAB_TIPS = ("All starts of an attack", "One point moves", "A point splits in two")


class LandscapePanel(Panel):
    """A panel of the landscape; its tabs choose what moves: all points, one, or halves of one."""

    stages = ("landscape",)

    def tabs(self) -> Item:
        """Return the tabs."""
        return Item(
            "segments", "What moves", options=choices(*TABS, tips=TAB_TIPS),
            call=partial(self.do, landscape.show_map, self.session),
        )  # fmt: skip

    @staticmethod
    def tab_of(frame: Frame) -> str:
        """Return which tab is chosen; the bilevel losses move one point."""
        return frame.map_kind if frame.map_kind in ("starts", "split") else "point"
