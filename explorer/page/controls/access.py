"""What the hosts of a page do not give it, names and tooltips, and the marks of a first visit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as w
from traitlets import Bool, Dict, List, Unicode

from explorer.page.view.base import POPUP
from explorer.page.words.screen import MARKS


class Access(anywidget.AnyWidget):
    """Adds them to its page.

    Attributes:
        tips: the tooltip of each control, by its text.
        present: whether the page is shown to a class: plane and pictures large, no settings.
        task: the page whose task in a lesson was done here, as "digits"; "" for none yet.
    """

    _esm = f"{POPUP}\n{Path(__file__).with_name('access.js').read_text(encoding='utf-8')}"
    tips = Dict().tag(sync=True)
    present = Bool(False).tag(sync=True)
    task = Unicode("").tag(sync=True)


def tips_of(root: w.Widget) -> dict[str, str]:
    """Return the tooltip of every control below `root` that has a text."""
    return {x.description: x.tooltip for x in _below(root) if _is_told(x)}


def _is_told(widget: w.Widget) -> bool:
    return bool(getattr(widget, "description", "") and getattr(widget, "tooltip", None))


def _below(root: w.Widget) -> Iterator[w.Widget]:
    yield root
    for child in getattr(root, "children", ()):
        yield from _below(child)


class Welcome(anywidget.AnyWidget):
    """Asks the browser what became of the opening, and points out three things, once."""

    _esm = Path(__file__).with_name("welcome.js")
    marks: Any = List().tag(sync=True)

    def __init__(
        self, own: Callable[[], None], link: Callable[[str], None], lesson: Callable[[int], None]
    ) -> None:
        """Call `own` for a plane of the visitor's own, `link` and `lesson` with an address's."""
        super().__init__(marks=[list(mark) for mark in MARKS])
        self.own, self.link, self.lesson = own, link, lesson
        self.on_msg(self._on_message)

    def _on_message(self, _: Any, content: Any, __: Any) -> None:  # noqa: ANN401 - from a browser
        if not isinstance(content, dict):
            return
        if content.get("wish") == "own":
            self.own()
        elif isinstance(link := content.get("link"), str):
            self.link(link)
        elif isinstance(asked := content.get("lesson"), int):
            self.lesson(asked)
