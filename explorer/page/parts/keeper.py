"""The browser's half of keeping a page: it stores the newest state, offers it, and watches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anywidget
from traitlets import Bool, Dict, Unicode

from explorer.page.words.keeping import BAR, BUTTONS, LIST

HERE = Path(__file__).parent
KEPT = (HERE / "kept.js").read_text(encoding="utf-8")


class Keeper(anywidget.AnyWidget):
    """Keeps a text in the browser, and asks the kernel now and then whether it answers.

    Attributes:
        keeps: whether it offers what was kept; else it watches the kernel alone.
        kept: the newest state: its `text`, empty for none; `words` on it; whether it is `whole`,
            another drawing than the last (`anew`), and no untouched ready-made set (`own`).
        says: its sentences.
        comm_name: by which the kernel knows this widget, so that a new kernel is told from it.
    """

    _esm = f"{KEPT}\n{(HERE / 'keeper.js').read_text(encoding='utf-8')}"
    keeps: Any = Bool(False).tag(sync=True)
    kept: Any = Dict().tag(sync=True)
    says: Any = Dict().tag(sync=True)
    comm_name: Any = Unicode("").tag(sync=True)

    def __init__(
        self, begin: Callable[[], None] | None = None, take_up: Callable[[str], None] | None = None
    ) -> None:
        """Call `begin` when a visitor acts first, `take_up` with a text that was kept before.

        Without them nothing is kept: the page is watched alone.
        """
        super().__init__(keeps=take_up is not None, kept={}, says=BAR | BUTTONS)
        self._begin, self._take_up = begin, take_up
        self.comm_name = self.model_id or ""
        self.on_msg(self._on_message)

    def _on_message(self, _: Any, content: Any, __: Any) -> None:  # noqa: ANN401 - from a browser
        kind = content.get("kind") if isinstance(content, dict) else None
        if kind == "beat":
            self.send({"kind": "beat"})
        elif kind == "begin" and self._begin is not None:
            self._begin()
        elif kind == "take up" and isinstance(text := content.get("text"), str):
            if self._take_up is not None:
                self._take_up(text)


class KeptList(anywidget.AnyWidget):
    """The rows that the browser keeps; one that is chosen comes as a text.

    Attributes:
        says: its titles.
    """

    _esm = f"{KEPT}\n{(HERE / 'kept_list.js').read_text(encoding='utf-8')}"
    says: Any = Dict().tag(sync=True)

    def __init__(self, take_up: Callable[[str], None]) -> None:
        """Call `take_up` with the text of the chosen row."""
        super().__init__(says=LIST | BUTTONS)
        self._take_up = take_up
        self.on_msg(self._on_message)

    def _on_message(self, _: Any, content: Any, __: Any) -> None:  # noqa: ANN401 - from a browser
        if isinstance(content, dict) and isinstance(text := content.get("text"), str):
            self._take_up(text)
