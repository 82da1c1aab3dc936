"""The headline of the screen: what this frame shows, in plain words, and what to do next."""

from __future__ import annotations

from typing import Any

from explorer.page.controls.control import Title
from explorer.page.frame import Frame
from explorer.page.lessons import course
from explorer.page.panels.base import Panel
from explorer.page.play import act
from explorer.page.words.headline import headline


class HeadlinePanel(Panel):
    """Title and sentence of the present frame, its tone as a colour, its next action."""

    look = ("mx-headline-box",)

    def build(self) -> None:
        """One control."""
        self.view = self.widget = Title({"act": self._on_act}).add_class("mx-headline")
        self.view.add_class("mx-verdict")
        self.session.observe(lambda _: self._draw(self.session.frame), names=["running", "opening"])

    def _on_act(self, key: Any) -> None:  # noqa: ANN401 - from a browser
        """Do what the pressed button said, whatever is offered by now."""
        if isinstance(key, str) and key:
            self.command(lambda: act(self.session, key))(None)

    def render(self, frame: Frame) -> None:
        """Show the headline of this frame."""
        running = self.session.running or self.session.opening
        made = headline(frame, running, hidden=not self.session.truth_shown)
        action = made.action
        if action and action.key == "points" and not course.offers(self.session, "Presets"):
            action = None  # a lesson that hides the ready-made sets wants points of one's own
        self.view.show(
            title=made.title, words=made.words, tone=made.tone,
            fold=[list(pair) for pair in made.fold],
            action="" if action is None else action.label,
            key="" if action is None else action.key,
        )  # fmt: skip

    @property
    def text(self) -> str:
        """All that it says now."""
        state = self.view.state
        return f"{state['title']} {state['words']}"
