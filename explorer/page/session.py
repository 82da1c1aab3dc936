"""The one shared state of a page: the present moment, and the traits that panels follow.

`session.frame` is the present. Commands change it; they are functions of a session, in
`page/stages`, `page/play` and `page/branches`. The trait `shown` notifies panels, once for each
redraw. Panels read the frame, call commands, and write nothing here. A command that cannot be
carried out raises ValueError and changes nothing; `guarded` shows it as the message on the page.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from traitlets import Any as AnyTrait
from traitlets import Bool, Enum, Float, HasTraits, Instance, Int, List, Tuple, Unicode

from explorer.engine import data, training
from explorer.engine.data import Dataset
from explorer.engine.roster import DEFAULT, AnyAttack, AttackConfig, AttackState, by_key
from explorer.engine.status import Status
from explorer.engine.training import TrainConfig
from explorer.page.frame import LAYERS, Branch, Frame, Stage
from explorer.page.history import History, Timeline
from explorer.research.pictures.axes import Axes, axes_for
from explorer.style import CLASSES

# A secret that the server of a class shares with its kernels; "" where there is no class.
CLASS_KEY = os.environ.get("MARGIN_EXPLORER_CLASS", "")
IN_CLASS = bool(CLASS_KEY)
SERVED = "MARGIN_EXPLORER_CLASS" in os.environ  # by `margin-explorer serve`, with its addresses
# Where other computers of the network find the machine of this page; "" where none can.
NETWORK = os.environ.get("MARGIN_EXPLORER_NETWORK", "")
LIVE_STEPS = 10_000_000  # planned steps of a live run: about an hour at the usual speed
SLOW_START = 0.0  # in place of a speed: a run begins slowly and doubles its speed every second


class Refusal(str):
    """A message that says why a command was refused: it stays until it is answered."""


class Note(str):
    """A message on what the plane shows: it stands beside the plane until the next command."""


class Session(HasTraits):
    """The state of one visitor's page."""

    shown = Int(1, help="number of the frame that panels were told of last")
    running = Bool(False)
    due = Bool(False, help="Play was pressed while a step of a lesson is put up: it runs then")
    work = AnyTrait(None, help="the job of the landscape that Play stands for; Pause cancels it")
    opening = Bool(False, help="an example or a link is being trained or attacked, in slices")
    drawn = Int(0, help="number of the newest frame that a browser has drawn")
    message = Unicode("", help="why the last command was refused, or a notice")
    train_config = Instance(TrainConfig)
    attack_config = AnyTrait(help="settings of the present attack, of its own class")
    seed = Int(0, min=0)
    mix = Tuple(Float(0.0), Float(0.0), default_value=(0.0, 0.0), help="mix_truth, mix_data")
    tool = Enum(("place", "move", "erase"), "place")
    editing = Bool(False, help="whether the tools are unfolded in 2 Train: a press edits points")
    label = Enum((1, -1, 3, 4, 0), 1, help="class to place; 0: by height, in 1-D")
    classes = Int(len(CLASSES), min=2, max=len(CLASSES), help="how many can be drawn on the plane")
    truth_shown = Bool(True)
    pointed = Int(-1, help="index of the point under the pointer in a chart; -1: none")
    layers = Tuple(default_value=tuple(LAYERS), help="what is drawn behind the points")
    band = Bool(False, help="whether the weights are shown under the plane, as needles")
    axes = Instance(Axes, (), help="the part of the data's space that the plane shows")
    stop_at = Int(-1, help="step at which a run pauses by itself; -1: none")
    steps_per_second = Float(SLOW_START, help="inf: as fast as it goes; 0: `SLOW_START`")
    multipliers = Enum(("fitted", "drawn"), "fitted", help="first ones of the landscape's runs")
    branches = List(Instance(Branch))
    branch_index = Int(0)
    game = AnyTrait(None, allow_none=True, help="the game of two that is on, of `sharing.game`")
    lesson = AnyTrait(help="a `lessons.course.Walk` or `Draft`; None: no lesson is open")

    def __init__(
        self,
        dataset: Dataset | None = None,
        together: Callable[[], AbstractContextManager[None]] = nullcontext,
        **traits: Any,  # noqa: ANN401
    ) -> None:
        """Open with `dataset`, or with nothing drawn; panels are notified within `together()`."""
        first = dataset if dataset is not None else data.empty(2)
        self.together = together
        self.frame = Frame("draw", History(first))
        self.configs: dict[str, AttackConfig] = {}  # as each attack was left
        self.widened: tuple[Axes, Axes] | None = None  # what the plane showed, and shows instead
        self.left: AttackState | None = None  # of the attack that ran as its stage was left
        self.gave_way = ""  # the attack that was chosen, while another stands in for it
        usual = {
            "axes": axes_for(Axes(), first, loaded=True),
            "train_config": TrainConfig(steps=LIVE_STEPS),
            "attack_config": by_key(DEFAULT).config(),
        }
        super().__init__(branches=[Branch("main")], **{**usual, **traits})
        self.label = 0 if first.d == 1 else 1

    def put(self, **changes: Any) -> None:  # noqa: ANN401 - fields of Frame
        """Change the present moment; the next `show` notifies the panels."""
        self.frame = replace(self.frame, **changes)

    def show(self, **changes: Any) -> None:  # noqa: ANN401 - fields of Frame
        """Change the present moment and notify the panels: one notification, one redraw."""
        self.put(**changes)
        with self.together():
            self.shown += 1

    def settings(self, names: Iterable[str]) -> dict[str, Any]:
        """Return settings of these names."""
        return {name: getattr(self, name) for name in names}

    def restore(self, settings: Mapping[str, Any]) -> None:
        """Take settings of before; panels are notified of all of them together."""
        with self.hold_trait_notifications():
            for name, value in settings.items():
                setattr(self, name, value)

    def choose(self, **settings: Any) -> None:  # noqa: ANN401 - of any trait
        """Take what a visitor chose: tool, class, seed, speed, layers ..."""
        self.restore(settings)

    def attempt(self, command: Callable[..., None], *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Run a command; a ValueError becomes the message, and nothing is lost."""
        self.message = ""
        try:
            command(*args, **kwargs)
        except ValueError as error:
            self.message = Refusal(error)
            self.shown += 1  # what the hand saw at once, such as a point, is taken back

    @property
    def extent(self) -> float:
        """Return the half width of the smallest square around 0 that holds the plane."""
        return self.axes.reach

    @property
    def entry(self) -> AnyAttack:
        """Return the row of the present attack in the roster."""
        return by_key(self.frame.attack.name)

    def settings_of(self, name: str) -> AttackConfig:
        """Return the last settings of this attack, else its defaults."""
        if name == self.frame.attack.name:
            return self.attack_config  # type: ignore[no-any-return]
        return self.configs.get(name) or by_key(name).config()

    @property
    def preparing(self) -> bool:
        """Return whether a step of a lesson is still put up, in slices: Play waits for its end."""
        return getattr(self.lesson, "waiting", False)

    @property
    def guessing(self) -> bool:
        """Return whether the drawn points are a guess at weights of the game, as they came."""
        game, part = self.game, self.frame.training
        hidden = game is not None and not game.hides and game.score is None
        return hidden and part.given and part.state is not None and not part.state.t

    @property
    def branch(self) -> Branch:
        """Return the branch on screen."""
        branch: Branch = self.branches[self.branch_index]
        return branch

    @property
    def timeline(self) -> Timeline[Any]:
        """Return the states of the present stage, for the slider and the curves."""
        now = self.frame
        if now.handle is not None and now.rolled:
            return now.handle.line
        return self.branch.attack if now.stage == "attack" else self.branch.train


def standing(session: Session, stage: Stage) -> Status:
    """Return how the run of a stage stands; RUNNING where it has none."""
    now = session.frame
    if stage == "attack" and now.attack.state is not None:
        return session.entry.terminate(now.attack.state, session.attack_config)
    if stage == "train" and now.training.state is not None:
        return training.terminate(now.training.state, session.train_config)
    return Status.RUNNING
