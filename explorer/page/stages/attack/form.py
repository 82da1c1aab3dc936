"""The forms of the attacks: one item for each field of their configs."""

from __future__ import annotations

from typing import Any

import ipywidgets as w

from explorer.engine.roster import ROSTER
from explorer.page import prior
from explorer.page.controls.row import choices
from explorer.page.frame import Frame
from explorer.page.panels.base import Form, Panel
from explorer.page.session import Session


class AttackForm(Panel):
    """The settings of the attack that the chooser names, or that starts in the landscape."""

    stages = ("attack", "landscape")

    def build(self) -> None:
        """Room for the form of the chosen attack."""
        self.forms: dict[str, AttackSettings] = {}
        self.body = self.widget = w.VBox()

    def render(self, frame: Frame) -> None:
        """Show the form of the present attack; it is made when it is first seen."""
        name = frame.attack.name
        if name not in self.forms:
            self.forms[name] = AttackSettings(self.session, name)
        if self.body.children != (self.forms[name].box,):
            self.body.children = [self.forms[name].box]

    def end(self) -> None:
        """Close the forms with it."""
        for form in self.forms.values():
            form.close()


class AttackSettings(Form):
    """The settings of one attack."""

    config_trait = "attack_config"

    def __init__(self, session: Session, name: str) -> None:
        """A form for the attack of this key."""
        self.name, self.kind = name, ROSTER[name].config
        super().__init__(session)

    def render(self, frame: Frame) -> None:
        """Offer what these points have, on the prior dial."""
        if "knows" in self.row.items:
            at = (
                prior.present(self.session)
                if type(self.session.attack_config) is self.kind
                else None
            )
            self.row.put("knows", options=choices(*prior.offers(frame)), value=at or "nothing")

    def _put(self, name: str, _: Any) -> None:  # noqa: ANN401 - of any setting
        if name != "knows":
            super()._put(name, _)
            return
        self.do(prior.choose, self.session, self.row.value(name))
        self.render(self.session.frame)

    def belongs(self, frame: Frame) -> bool:
        """Return whether this attack is on screen."""
        return frame.stage not in AttackForm.stages or frame.attack.name == self.name
