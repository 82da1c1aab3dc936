"""The browser's half of keeping a page: it stores the newest state, offers it, and watches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from traitlets import Bool, Dict, Unicode

from explorer.page.controls.control import Control, script, source
from explorer.page.keeping.words import BAR, BUTTONS, LIST
from explorer.page.view.bundle import View

TakeUp = Callable[[str, str], None]  # given the text of a page, and that of a lesson or ""


class BrowserKeeper(View):
    """Keeps a text in the browser, and asks the kernel now and then whether it answers.

    Attributes:
        keeps: whether it offers what was kept; else it watches the kernel alone.
        kept: the newest state: its `text`, empty for none; `words` on it; whether it is `whole`,
            another drawing than the last (`anew`), and no untouched ready-made set (`own`); the
            `lesson` that is being recorded, as text, empty for none.
        says: its sentences.
        comm_name: by which the kernel knows this widget, so that a new kernel is told from it.
    """

    _esm = source("kept.js", "keeper.js")
    keeps: Any = Bool(False).tag(sync=True)
    kept: Any = Dict().tag(sync=True)
    says: Any = Dict().tag(sync=True)
    comm_name: Any = Unicode("").tag(sync=True)

    def __init__(
        self, begin: Callable[[], None] | None = None, take_up: TakeUp | None = None
    ) -> None:
        """Call `begin` when a visitor acts first, `take_up` with a text that was kept before.

        Without them nothing is kept: the page is watched alone.
        """
        super().__init__(keeps=take_up is not None, kept={}, says=BAR | BUTTONS)
        self._begin, self._take_up = begin, take_up
        self.comm_name = self.model_id or ""

    def hear(self, kind: str, content: dict[str, Any], buffers: Sequence[Any]) -> None:
        """Answer that the kernel is there, note a first act, or take up what was kept."""
        if kind == "beat":
            self.send({"kind": "beat"})
        elif kind == "begin" and self._begin is not None:
            self._begin()
        elif kind == "take up" and self._take_up is not None:
            _pass_on(content, self._take_up)


class KeptList(Control):
    """The rows that the browser keeps; one that is chosen comes as a text."""

    _esm = script("kept.js", "kept_list.js")

    def __init__(self, take_up: TakeUp) -> None:
        """Call `take_up` with the text of the chosen row."""

        def take(row: Any) -> None:  # noqa: ANN401 - from a browser
            if isinstance(row, list) and len(row) == 2:
                _pass_on({"text": row[0], "lesson": row[1]}, take_up)

        super().__init__({"take up": take}, says=LIST | BUTTONS)


def _pass_on(row: dict[str, Any], take_up: TakeUp) -> None:
    """Take up a row of the browser's: its text, and its lesson if it has one."""
    text, lesson = row.get("text"), row.get("lesson")
    if isinstance(text, str):
        take_up(text, lesson if isinstance(lesson, str) else "")
