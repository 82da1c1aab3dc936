"""The tabs of the landscape: all points of a start move, one point, or the halves of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from explorer.page.controls.row import Item, choices
from explorer.page.frame import Frame
from explorer.page.session import Session
from explorer.page.stages import landscape

TABS = (("all points", "starts"), ("one point", "point"), ("a split", "split"))
TIPS = ("All starts of an attack", "One point moves", "A point splits in two")


def map_tabs(
    session: Session, command: Callable[[Callable[[], None]], Callable[[Any], None]]
) -> Item:
    """Return the choice of what moves; `command` shows a refusal on the page, as of a panel."""
    return Item(
        "segments", "What moves", options=choices(*TABS, tips=TIPS),
        call=lambda kind: command(lambda: landscape.show_map(session, kind))(None),
    )  # fmt: skip


def tab_of(frame: Frame) -> str:
    """Return which tab is chosen; the bilevel losses move one point."""
    return frame.map_kind if frame.map_kind in ("starts", "split") else "point"
