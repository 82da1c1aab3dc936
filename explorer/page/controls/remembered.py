"""The settings of a page, which the tab of a browser keeps over a reload."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Sequence
from typing import Any

from traitlets import Unicode

from explorer.page.controls.control import source
from explorer.page.controls.row import Row
from explorer.page.view.bundle import View

FIELDS = ("segments", "select", "number", "slider", "text")  # kinds of items with a value to keep
MOST = 10_000  # characters of a text that is read; arbitrary: a hundred times what a page has


class Remembered(View):
    """Keeps what stands in some fields, and puts it there again when the page is loaded anew.

    Attributes:
        kept: the fields' values by name, as JSON; "" before the first change.
    """

    _esm = source("remembered.js")
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

    def _keep(self, _: Any) -> None:  # noqa: ANN401 - a change
        held = {name: row.json(name)["value"] for name, row in self._rows.items()}
        self.kept = json.dumps(held)

    def hear(self, kind: str, content: dict[str, Any], buffers: Sequence[Any]) -> None:
        """Put the values of a text into the fields."""
        text, held = content.get("text"), None
        if kind == "restore" and isinstance(text, str) and len(text) <= MOST:
            with contextlib.suppress(ValueError):
                held = json.loads(text)
        if isinstance(held, dict):
            for name, row in self._rows.items():  # a value that it cannot have is left out
                if name in held:
                    row.take([name, held[name]])
