"""The forms of training, and its two ways to the end without more steps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import ipywidgets as w

from explorer.engine.exact import finish, maximum_margin
from explorer.engine.exact.finish import Finished
from explorer.engine.progress import Progress
from explorer.engine.training import TrainConfig, TrainState
from explorer.page import play
from explorer.page.ask import Ask
from explorer.page.controls.row import Item, Row
from explorer.page.frame import Frame
from explorer.page.job import JobState, once
from explorer.page.panels.base import WIDTHS, Form
from explorer.page.stages.train import commands as train
from explorer.page.words.headline import headline
from explorer.page.words.screen import JUMP, QUICK
from explorer.research import runs

JUMP_TIP = "Solve for the exact maximum-margin network: two layers, 1-D and 2-D"
FINISH = "Train to the end"
FINISH_TIP = (
    "Train some hundred steps, then take the best network over the cells of its neurons and their "
    "neighbours: two layers"
)
SEEN = 20  # steps of training between two that are shown on the way; arbitrary


class TrainMore(Form):
    """The size of the network, which begins anew, and the rarely used settings of training."""

    stages = ("train",)
    config_trait, kind, parts, fields = "train_config", TrainConfig, ("more",), WIDTHS


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
    without = WIDTHS
    look = ("mx-card", "mx-setting", "mx-beside")  # all in one row, where there is room

    def build(self) -> None:
        """Put the buttons beside the settings."""
        super().build()
        self.job = Ask(self, lambda: self.session.frame.dataset, SOLVING)
        self.finishing = Ask(self, words=FINISHING)
        self.buttons = Row(
            finish=Item("job", FINISH, FINISH_TIP, call=self.command(self._finish),
                        job=self.finishing, cancel="Cancel finishing"),
            jump=Item("job", JUMP, JUMP_TIP, call=self.command(self._jump), job=self.job,
                      cancel="Cancel solving"),
            jumped=Item("bar", tip="Share done", job=self.job),
            finished=Item("bar", tip="Share done", job=self.finishing),
        )  # fmt: skip
        self.widget = w.VBox([self.row, self.buttons])

    def belongs(self, frame: Frame) -> bool:
        """Return whether there is a way still to go: not where the points explain all weights."""
        return super().belongs(frame) and not frame.training.is_exact

    def render(self, frame: Frame) -> None:
        """Offer the ways to the end where it is not reached; the exact network once on screen."""
        super().render(frame)
        action = headline(frame, self.session.running).action
        once_more = action is not None and action.key == "exact"
        self.buttons.put("jump", hidden=once_more and not self.job.busy)

    def _jump(self) -> None:
        """Solve at once, or beside the page if that takes longer; edited points stay."""
        session, data = self.session, self.session.frame.dataset
        if data.n <= QUICK:
            train.jump_to_exact(session)
            return
        play.tell(session, f"Solving for {data.n} points; this may take ten seconds.")
        self.job.begin(
            once(lambda progress: maximum_margin(data.x, data.y, progress=progress)),
            partial(session.attempt, train.jump_to_exact, session),
        )

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

        self.finishing.begin(work, take, self._certify, stale)

    def _certify(self) -> None:
        if self.finishing.state is JobState.DONE:
            train.certify(self.session)
