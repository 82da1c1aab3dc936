"""The tabs that choose what moves in the landscape: all points, one, or the halves of one."""

from __future__ import annotations

from functools import partial

from explorer.page.controls.row import Item, Row, choices
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel
from explorer.page.stages.landscape import commands as landscape

TABS = (("all points", "starts"), ("one point", "point"), ("a split", "split"))
TAB_TIPS = ("All starts of an attack", "One point moves", "A point splits in two")


class LandscapeTabs(Panel):
    """The tabs at the foot of the side: they stay in their place whichever is chosen."""

    look = ("mx-what",)
    stages = ("landscape",)

    def build(self) -> None:
        """One choice."""
        self.row = self.widget = Row(tabs=Item(
            "segments", "What moves", options=choices(*TABS, tips=TAB_TIPS),
            call=partial(self.do, landscape.show_map, self.session),
        ))  # fmt: skip

    def render(self, frame: Frame) -> None:
        """Show which is chosen; the bilevel losses move one point."""
        kind = frame.map_kind
        self.row.put("tabs", value=kind if kind in ("starts", "split") else "point")
