"""The settings of training and attack: one row per field of their configs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import ipywidgets as w

from explorer.engine.data import Dataset
from explorer.engine.exact import maximum_margin
from explorer.engine.roster import ROSTER
from explorer.engine.training import TrainConfig
from explorer.page import play
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel, button
from explorer.page.parts.settings import Row, rows_of
from explorer.page.session import Session
from explorer.page.stages import train

JUMP = "Jump to the exact solution"
QUICK = 40  # points that are solved within a fraction of a second


class Form(Panel):
    """Rows of settings, the rarely used ones folded. Refused values jump back."""

    config_trait = ""
    kind: type[Any]  # the class of settings

    def actions(self) -> list[w.Widget]:
        """Buttons beside the settings."""
        return []

    def build(self) -> None:
        """Lay the rows out in two columns where there is room."""
        shown, folded = rows_of(self.kind)
        self.all = [*shown, *folded]
        boxes: list[w.Widget] = [self._box(shown, self.actions())]
        if folded:
            boxes.append(
                w.Accordion(
                    children=[self._box(folded)], selected_index=None, titles=("More settings",)
                )
            )
        self.widget = w.VBox(boxes)
        self._setting = False
        self._fill()
        for row in self.all:
            row.widget.observe(self._changed(row), names=["value"])
        self.session.observe(lambda _: self._fill(), names=[self.config_trait])

    def _box(self, rows: list[Row], more: list[w.Widget] | None = None) -> w.HBox:
        return w.HBox([*(row.widget for row in rows), *(more or [])]).add_class("mx-row")

    def _changed(self, row: Row) -> Callable[[dict[str, Any]], None]:
        def put(change: dict[str, Any]) -> None:
            if self._setting:
                return
            value = row.to_config(change["new"])
            self.command(lambda: play.configure(self.session, **{row.field: value}))(None)
            self._fill()  # a refused value jumps back

        return put

    def _fill(self) -> None:
        config = getattr(self.session, self.config_trait)
        if type(config) is not self.kind:
            return  # another attack is on screen
        self._setting = True
        try:
            for row in self.all:
                value = row.to_widget(getattr(config, row.field))
                if row.widget.value != value:
                    row.widget.value = value
        finally:
            self._setting = False


class TrainForm(Form):
    """Architecture, loss and optimiser."""

    stages = ("draw", "train")
    config_trait, kind = "train_config", TrainConfig

    def actions(self) -> list[w.Widget]:
        """The way to the limit without training."""
        self.jump = button(
            JUMP, "Solve for the exact maximum-margin network: two layers, 1-D and 2-D"
        )
        self.jump.on_click(self.command(self._jump))
        self._solving: asyncio.Task[None] | None = None
        return [self.jump]

    def _jump(self) -> None:
        data = self.session.frame.dataset
        if self._solving is not None and not self._solving.done():
            self._solving.cancel()
        elif data.n <= QUICK:
            train.jump_to_exact(self.session)
        else:
            self._solving = asyncio.get_event_loop().create_task(self._solve(data))

    async def _solve(self, data: Dataset) -> None:
        """Solve beside the page; press again to cancel, and edited points are left alone."""
        session = self.session
        self.jump.description = "Cancel solving"
        play.tell(session, f"Solving for {data.n} points; this may take ten seconds.")
        try:
            exact = await asyncio.to_thread(maximum_margin, data.x, data.y)
            play.tell(session, "The points changed meanwhile; press again to solve for these.")
            if session.frame.dataset is data:
                session.guarded(train.jump_to_exact, session, exact)
        except asyncio.CancelledError:
            play.tell(session, "Solving was cancelled; the network is as it was.")
        except ValueError as error:
            play.tell(session, str(error))
        finally:
            self.jump.description = JUMP


class AttackForm(Panel):
    """The settings of the present attack; which one it is, the chooser says."""

    stages = ("attack",)

    def build(self) -> None:
        """Room for the form of the chosen attack."""
        self.forms: dict[str, AttackSettings] = {}
        self.body = self.widget = w.VBox()

    def render(self, frame: Frame) -> None:
        """The form of the present attack, made when it is first looked at."""
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

    def seen(self, frame: Frame) -> bool:
        """Whether this attack is on screen."""
        return frame.stage != "attack" or frame.attack.name == self.name
