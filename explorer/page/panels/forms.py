"""The forms of training and attack: one row for each field of their configs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ipywidgets as w

from explorer.engine.exact import Exact, finish, maximum_margin
from explorer.engine.exact.finish import Finished
from explorer.engine.progress import Progress
from explorer.engine.roster import ROSTER
from explorer.engine.settings import Setting
from explorer.engine.training import TrainConfig, TrainState
from explorer.page import play
from explorer.page.ask import Ask
from explorer.page.controls.job_row import JobButton, progress_bar
from explorer.page.controls.settings import SettingRow, rows_of
from explorer.page.frame import Frame
from explorer.page.job import JobState
from explorer.page.panels.base import Panel
from explorer.page.session import Session
from explorer.page.stages.train import commands as train
from explorer.research import runs

JUMP = "Jump to the exact solution"
FINISH = "Train to the end"
SEEN = 20  # steps of training between two that are shown on the way; arbitrary
QUICK = 40  # points that are solved within a fraction of a second


class Form(Panel):
    """Rows of settings, the rarely used ones folded. Refused values jump back."""

    config_trait = ""
    kind: type[Any]  # the class of settings
    parts: tuple[str, ...] = ("sight", "more")  # which rows: those in sight, the rarely used ones
    fields: frozenset[str] = frozenset()  # these too
    without: frozenset[str] = frozenset()  # but not these

    def actions(self) -> list[w.Widget]:
        """Buttons beside the settings."""
        return []

    def build(self) -> None:
        """Lay the rows out in as many columns as there is room for."""
        self.all = [row for rows in rows_of(self.kind, self._wanted) for row in rows]
        fields = w.Box([row.widget for row in self.all]).add_class("mx-form")
        self.widget = w.VBox(
            [fields, w.HBox(made).add_class("mx-row")] if (made := self.actions()) else [fields]
        )
        self._setting = False
        self._fill()
        for row in self.all:
            row.widget.observe(self._changed(row), names=["value"])
        self.session.observe(lambda _: self._fill(), names=[self.config_trait])

    def _wanted(self, declared: Setting) -> bool:
        """Return whether this form has a row for a setting."""
        if declared.name in self.fields:
            return True
        return declared.form in self.parts and declared.name not in self.without

    def _changed(self, row: SettingRow) -> Callable[[dict[str, Any]], None]:
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


NETWORK = frozenset({"widths"})


class NetworkForm(Form):
    """How large the network is: the one choice to make while drawing."""

    look = ("mx-card", "mx-setting")
    stages = ("draw",)
    config_trait, kind, parts, fields = "train_config", TrainConfig, (), NETWORK


class TrainMore(Form):
    """The size of the network, which begins anew, and the rarely used settings of training."""

    stages = ("train",)
    config_trait, kind, parts, fields = "train_config", TrainConfig, ("more",), NETWORK


SOLVING = {
    JobState.STALE: "The points changed meanwhile; press again to solve for these.",
    JobState.CANCELLED: "Solving was cancelled; the network is as it was.",
}
FINISHING = {
    JobState.STALE: "Finishing ended: the network on screen is another one now.",
    JobState.CANCELLED: "Finishing was cancelled; training stands where it was.",
}


class TrainForm(Form):
    """Architecture, loss and optimiser; and the two ways to the end without training."""

    stages = ("train",)
    config_trait, kind, parts = "train_config", TrainConfig, ("sight",)
    without = NETWORK
    look = ("mx-card", "mx-setting", "mx-beside")  # all in one row, where there is room

    def actions(self) -> list[w.Widget]:
        """Return the button that solves for the limit without training."""
        self.job = Ask(self, lambda frame: frame.dataset, SOLVING)
        self.jump = JobButton(
            self.job, JUMP, "Cancel solving",
            "Solve for the exact maximum-margin network: two layers, 1-D and 2-D",
            self.command(self._jump),
        )  # fmt: skip
        self.finishing = Ask(self, words=FINISHING)
        self.finish = JobButton(
            self.finishing, FINISH, "Cancel finishing",
            "Train some hundred steps, then take the best network over the cells of its neurons "
            "and their neighbours: two layers", self.command(self._finish),
        )  # fmt: skip
        bars = [progress_bar(job, "Share done") for job in (self.job, self.finishing)]
        return [self.jump, self.finish, *bars]

    def _jump(self) -> None:
        """Solve at once, or beside the page if that takes longer; edited points stay."""
        session, data = self.session, self.session.frame.dataset
        if data.n <= QUICK:
            train.jump_to_exact(session)
            return

        def work(progress: Progress) -> Iterator[Exact]:
            yield maximum_margin(data.x, data.y, progress=progress)

        def take(exact: Exact) -> None:
            session.guarded(train.jump_to_exact, session, exact)

        play.tell(session, f"Solving for {data.n} points; this may take ten seconds.")
        self.job.begin(work, take)

    def _finish(self) -> None:
        """Train on from the present network, then finish exactly, beside the page."""
        session = self.session
        data, begun = session.frame.dataset, session.frame.training.state
        if begun is not None:
            finish.check(begun.net, data.x, data.y)  # a run that cannot be finished goes on
        play.pause(session)
        if begun is None or session.frame.stage != "train":
            play.go(session, "train")
        config = session.train_config
        first = shown = session.frame.training.state
        assert first is not None  # the stage begins a run

        def work(progress: Progress) -> Iterator[tuple[TrainState, Finished | None]]:
            for state, made in runs.to_the_end(data, first, config, progress):
                if made is not None or state.t % SEEN == 0:
                    yield state, made

        def take(part: tuple[TrainState, Finished | None]) -> None:
            nonlocal shown
            train.take(session, *part)
            shown = part[0]

        def stale() -> bool:
            return session.running or session.frame.training.state is not shown

        self.finishing.begin(work, take, self._finished, stale)

    def _finished(self) -> None:
        if self.finishing.state is JobState.DONE:
            train.certify(self.session)


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

    def seen(self, frame: Frame) -> bool:
        """Return whether this attack is on screen."""
        return frame.stage not in AttackForm.stages or frame.attack.name == self.name
