"""The settings of a page, which the tab of a browser keeps over a reload."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import anywidget
from traitlets import Unicode

from explorer.page.controls.row import Row

FIELDS = ("segments", "select", "number", "slider", "text")  # kinds of items with a value to keep
MOST = 10_000  # characters of a text that is read; arbitrary: a hundred times what a page has


class Remembered(anywidget.AnyWidget):
    """Keeps what stands in some fields, and puts it there again when the page is loaded anew.

    Attributes:
        kept: the fields' values by name, as JSON; "" before the first change.
    """

    _esm = Path(__file__).with_suffix(".js")
    kept: Any = Unicode("").tag(sync=True)

    def __init__(self, *rows: Row, without: Collection[str] = ()) -> None:
        """Keep the fields and choices of these rows, in the order in which they are to be set."""
        super().__init__(_dom_classes=["mx-unseen"])
        self._rows = {
            name: row
            for row in rows
            for name, item in row.items.items()
            if item.kind in FIELDS and name not in without
        }
        for row in rows:
            row.observe(self._keep, names=["state"])
        self.on_msg(self._on_message)

    def _keep(self, _: Any) -> None:  # noqa: ANN401 - a change
        held = {name: row.json(name)["value"] for name, row in self._rows.items()}
        self.kept = json.dumps(held)

    def _on_message(self, _: Any, content: Any, __: Any) -> None:  # noqa: ANN401 - from a browser
        if not isinstance(content, dict) or content.get("kind") != "restore":
            return
        text = content.get("text")
        held = None
        if isinstance(text, str) and len(text) <= MOST:
            with contextlib.suppress(ValueError):
                held = json.loads(text)
        if isinstance(held, dict):
            for name, row in self._rows.items():  # a value that it cannot have is left out
                if name in held:
                    row.take([name, held[name]])
