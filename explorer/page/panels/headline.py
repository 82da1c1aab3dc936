"""The headline of the screen: what this frame shows, in plain words."""

from __future__ import annotations

from typing import Any

from explorer.page.actions import act
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel
from explorer.page.parts.controls import Title
from explorer.page.words.headline import headline


class Headline(Panel):
    """The sentence of the present frame, its tone as a colour."""

    look = ("mx-headline-box",)

    def build(self) -> None:
        """One control."""
        self.view = self.widget = Title({"act": self._on_act})
        self.widget.add_class("mx-headline").add_class("mx-verdict")
        self.action = ""  # the key of the button's action

    def _on_act(self, _: Any) -> None:  # noqa: ANN401 - from a browser
        self.command(lambda: act(self.session, self.action))(None)

    def render(self, frame: Frame) -> None:
        """Show the headline of this frame."""
        said = headline(frame, self.session.running)
        self.action = "" if said.action is None else said.action.key
        self.view.show(
            title=said.title, words=said.words, tone=said.tone,
            fold=[list(row) for row in said.fold],
            action="" if said.action is None else said.action.label,
        )  # fmt: skip

    @property
    def said(self) -> str:
        """All that it says now."""
        state = self.view.state
        return f"{state['title']} {state['words']}".strip()
