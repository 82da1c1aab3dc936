"""Notices: why a command was refused or what has just happened, and notes on what is seen."""

from __future__ import annotations

from typing import Any

from explorer.page.controls.control import Toast
from explorer.page.panels.base import Panel
from explorer.page.session import Note, Refusal


class Notice(Panel):
    """The message of the session over the plane, with a button that closes it."""

    look: tuple[str, ...] = ("mx-notice-box",)
    kind = "mx-message"
    notes = False  # whether it shows notes, or all other messages

    def build(self) -> None:
        """One control."""
        self.view = self.widget = Toast(
            {"close": lambda _: self.tell("")}, **self._toast(self.session.message)
        ).add_class(self.kind)
        self.session.observe(self._on_message, names=["message"])

    def _on_message(self, change: dict[str, Any]) -> None:
        self.view.show(**self._toast(change["new"]))

    def _toast(self, message: str) -> dict[str, Any]:
        return toast_of(message if isinstance(message, Note) == self.notes else "")


class NoteBox(Notice):
    """The same for a note: below the charts, where it covers neither points nor boundary."""

    look, kind = ("mx-note-box",), "mx-aside-note"
    notes = True


def toast_of(message: str) -> dict[str, Any]:
    """Return what the toast shows: words, and whether they stay until they are answered."""
    return {"words": message, "stays": isinstance(message, Refusal | Note)}
