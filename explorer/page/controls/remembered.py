"""The settings of a page, which the tab of a browser keeps over a reload."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as w
from traitlets import TraitError, Unicode

MOST = 10_000  # characters of a text that is read; arbitrary: a hundred times what a page has


class Remembered(anywidget.AnyWidget):
    """Keeps what stands in some fields, and puts it there again when the page is loaded anew.

    Attributes:
        kept: the fields' values by name, as JSON; "" before the first change.
    """

    _esm = Path(__file__).with_suffix(".js")
    kept: Any = Unicode("").tag(sync=True)

    def __init__(self, fields: Mapping[str, w.ValueWidget]) -> None:
        """Keep these fields, in the order in which they are to be set."""
        super().__init__(_dom_classes=["mx-unseen"])
        self._fields = dict(fields)
        for field in self._fields.values():
            field.observe(self._keep, names=["value"])
        self.on_msg(self._on_message)

    def _keep(self, _: Any) -> None:  # noqa: ANN401 - a change
        held = {name: getattr(field, _key(field)) for name, field in self._fields.items()}
        self.kept = json.dumps(held)

    def _on_message(self, _: Any, content: Any, __: Any) -> None:  # noqa: ANN401 - from a browser
        if not isinstance(content, dict) or content.get("kind") != "restore":
            return
        text = content.get("text")
        if isinstance(text, str) and len(text) <= MOST:
            with contextlib.suppress(ValueError):
                held = json.loads(text)
                self._restore(held if isinstance(held, dict) else {})

    def _restore(self, held: dict[str, Any]) -> None:
        """Set the fields that are named; a value that a field cannot have is left out."""
        for name, field in self._fields.items():
            if name in held:
                with contextlib.suppress(TraitError, ValueError, TypeError, OverflowError):
                    setattr(field, _key(field), held[name])


def _key(field: w.ValueWidget) -> str:
    """Return the trait that holds what was chosen: of a choice its place among the options."""
    return "index" if field.has_trait("index") else "value"
