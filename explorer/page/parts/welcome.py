"""The page's half of the opening: what the visitor wished for there, and three marks at first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anywidget
from traitlets import List

from explorer.page.words.screen import MARKS


class Welcome(anywidget.AnyWidget):
    """Asks the browser what became of the opening, and points out three things, once."""

    _esm = Path(__file__).with_name("welcome.js")
    marks: Any = List().tag(sync=True)

    def __init__(self, own: Callable[[], None]) -> None:
        """Call `own` where the visitor asked for a plane of their own."""
        super().__init__(marks=[list(mark) for mark in MARKS])
        self.own = own
        self.on_msg(self._on_message)

    def _on_message(self, _: Any, content: Any, __: Any) -> None:  # noqa: ANN401 - from a browser
        if isinstance(content, dict) and content.get("wish") == "own":
            self.own()
