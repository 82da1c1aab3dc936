"""The headline of the screen: what this frame shows, in plain words, and what to do next."""

from __future__ import annotations

from functools import partial

from explorer.page.controls.control import Title
from explorer.page.frame import Frame
from explorer.page.lessons import course
from explorer.page.panels.base import Panel
from explorer.page.play import act
from explorer.page.words.headline import headline

NUMBERS = "“Numbers”"  # as a lesson names the fold below the headline


class HeadlinePanel(Panel):
    """Title and sentence of the present frame, its tone as a colour, its next action."""

    look = ("mx-headline-box",)
    follows = ("running", "opening", "lesson")

    def build(self) -> None:
        """One control."""
        self.view = self.widget = Title(
            {"act": self.command_of(str, partial(act, self.session))}
        ).add_class("mx-headline")
        self.view.add_class("mx-verdict")

    def render(self, frame: Frame) -> None:
        """Show the headline of this frame."""
        running = self.session.running or self.session.opening
        said = headline(frame, running, hidden=not self.session.truth_shown)
        made = course.statement_of(self.session, said)
        action = made.action
        if action and action.key == "points" and not course.offers(self.session, "Presets"):
            action = None  # a lesson that hides the ready-made sets wants points of one's own
        if action and not course.offers_action(self.session, action.key, action.label):
            action = None
        named = course.naming_words(self.session)
        numbers = made.fold if named is None or NUMBERS in named[0] else ()
        self.view.show(
            question=made.question if made.title else "",
            title=made.title,
            words=made.under_title,
            tone=made.tone,
            fold=[list(pair) for pair in numbers],
            action="" if action is None else action.label,
            key="" if action is None else action.key,
        )

    @property
    def text(self) -> str:
        """All that it says now."""
        state = self.view.state
        return f"{state['title']} {state['words']}"
