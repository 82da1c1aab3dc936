"""The tabs of the landscape: all points of a start move, one point, or the halves of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as w

from explorer.page.frame import Frame
from explorer.page.session import Session
from explorer.page.stages import landscape

TABS = (("all points", "starts"), ("one point", "point"), ("a split", "split"))
TIPS = ["All starts of an attack", "One point moves", "A point splits in two"]


def segments(options: Any, tips: list[str]) -> w.ToggleButtons:  # noqa: ANN401 - of the widget
    """Return a choice of a few words in a row."""
    made = w.ToggleButtons(options=options, tooltips=tips)
    made.style.button_width = "auto"
    return made.add_class("mx-seg")


class MapTabs:
    """A choice of what moves; it shows that of the frame.

    Attributes:
        widget: the segments.
    """

    def __init__(
        self, session: Session, command: Callable[[Callable[[], None]], Callable[[Any], None]]
    ) -> None:
        """`command` makes a callback that shows a refusal on the page, as of a panel."""
        self._session, self._command, self._setting = session, command, False
        self.widget = segments(TABS, TIPS)
        self.widget.observe(self._on_tab, names=["value"])

    def _on_tab(self, change: dict[str, Any]) -> None:
        if not self._setting:
            self._command(lambda: landscape.show_map(self._session, change["new"]))(None)

    def show(self, frame: Frame) -> None:
        """Show which one is chosen; the bilevel losses move one point."""
        self._setting = True
        kind = frame.map_kind
        self.widget.value = kind if kind in ("starts", "split") else "point"
        self._setting = False
