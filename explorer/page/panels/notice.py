"""Notices over the plane: why a command was refused, or what has just happened."""

from __future__ import annotations

from typing import Any

from explorer.page import play
from explorer.page.panels.base import Panel
from explorer.page.parts.controls import Toast


class Notice(Panel):
    """The message of the session, with a button that closes it."""

    look = ("mx-notice-box",)

    def build(self) -> None:
        """One control."""
        self.view = self.widget = Toast(
            {"close": lambda _: play.tell(self.session, "")}, words=self.session.message
        ).add_class("mx-message")  # fmt: skip
        self.session.observe(self._on_message, names=["message"])

    def _on_message(self, change: dict[str, Any]) -> None:
        self.view.show(words=change["new"])
