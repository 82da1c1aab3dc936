"""Notices over the plane: why a command was refused, or what has just happened."""

from __future__ import annotations

from typing import Any

from explorer.page.controls.control import Toast
from explorer.page.panels.base import Panel
from explorer.page.session import Refusal


class Notice(Panel):
    """The message of the session, with a button that closes it; a notice leaves by itself."""

    look = ("mx-notice-box",)

    def build(self) -> None:
        """One control."""
        self.view = self.widget = Toast(
            {"close": lambda _: self.tell("")}, **toast_of(self.session.message)
        ).add_class("mx-message")
        self.session.observe(self._on_message, names=["message"])

    def _on_message(self, change: dict[str, Any]) -> None:
        self.view.show(**toast_of(change["new"]))


def toast_of(message: str) -> dict[str, Any]:
    """Return what the toast shows: words, and whether they stay until they are answered."""
    return {"words": message, "stays": isinstance(message, Refusal)}
