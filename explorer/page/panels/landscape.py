"""What moves in the landscape: all points of a start, one point, or the halves of one."""

from __future__ import annotations

from typing import Any

import ipywidgets as w

from explorer.page.frame import Frame
from explorer.page.panels.base import Panel
from explorer.page.stages import landscape

TABS = (("all points", "starts"), ("one point", "point"), ("a split", "split"))


class LandscapeTabs(Panel):
    """The tabs of the instrument."""

    stages = ("landscape",)
    look = ()

    def build(self) -> None:
        """Three segments."""
        tips = ["All starts of an attack", "One point moves", "A point splits in two"]
        self.tabs = w.ToggleButtons(options=TABS, tooltips=tips)
        self.tabs.style.button_width = "auto"
        self.tabs.observe(self._on_tab, names=["value"])
        self.widget = self.tabs.add_class("mx-seg")
        self._setting = False

    def _on_tab(self, change: dict[str, Any]) -> None:
        if not self._setting:
            self.command(lambda: landscape.show_map(self.session, change["new"]))(None)

    def render(self, frame: Frame) -> None:
        """Show which one is chosen; the bilevel losses move one point."""
        self._setting = True
        self.tabs.value = frame.map_kind if frame.map_kind in ("starts", "split") else "point"
        self._setting = False
