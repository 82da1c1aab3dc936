"""One moment of the road, and the memory of many: what the panels draw."""

from __future__ import annotations

from dataclasses import dataclass, field

from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import Certificate
from explorer.engine.data import Dataset
from explorer.engine.network import Network
from explorer.engine.roster import AttackConfig, AttackState
from explorer.engine.scoring import Score, Verdict
from explorer.engine.status import Status
from explorer.engine.training import TrainState
from explorer.history import Timeline
from explorer.stages.explained import Explained
from explorer.stages.walk import Walk

Stage = str
# Key, title and tooltip. All but the first two look at attacked weights.
STAGES: tuple[tuple[Stage, str, str], ...] = (
    ("draw", "1 Draw", "Draw points of two classes, on the plane up to four"),
    ("train", "2 Train", "Train a network on them"),
    ("attack", "3 Attack", "Recover them from its weights"),
    ("explain", "4 Explain", "Which other points explain the same weights"),
    ("arena", "5 Arena", "Set several attacks side by side on these weights"),
    ("landscape", "6 Landscape", "Run an attack from all starts at once, and see where it ends"),
)
BEFORE: tuple[Stage, ...] = ("draw", "train")


@dataclass(frozen=True, eq=False)
class Shown:
    """Points on the plane beside the truth, such as claims of a run on `target`; what is seen."""

    target: Target
    sentence: str
    claims: Report | None = None


@dataclass(frozen=True, eq=False)
class Frame:
    """All that is on screen at one moment; every part is true to the others."""

    number: int
    stage: Stage
    dataset: Dataset
    train: TrainState | None = None
    certificate: Certificate | None = None  # the newest one of this training run
    certified_t: int = -1
    attacked: Network | None = None  # the weights, before they were scaled to margin 1
    target: Target | None = None
    truth: Dataset | None = None  # what the attacked network was trained on
    heldout: Dataset | None = None  # the control drawn from the same source
    attack_name: str = "kkt"  # its key in the roster
    attack: AttackState | None = None
    mix: tuple[float, float] = (0.0, 0.0)  # where the attack began: lambda_1, lambda_2
    scores: tuple[Score, Score] | None = None  # of the truth, of the control
    verdict: Verdict | None = None
    status: Status = Status.RUNNING
    arena: Shown | None = None
    other: Shown | None = None  # another set that explains the weights, of the attack stage
    explained: Explained | None = None  # of the explain stage
    walk: Walk | None = None  # candidates of the landscape stage

    @property
    def aimed(self) -> bool:
        """Whether this stage looks at the attacked weights rather than at training."""
        return self.stage not in BEFORE

    @property
    def claims(self) -> Report | None:
        """What the arena has on the plane, while these weights are in it."""
        shown = self.arena if self.stage == "arena" else None
        return shown.claims if shown is not None and shown.target is self.target else None

    @property
    def other_set(self) -> Report | None:
        """Another set that explains the attacked weights, while the attack stage shows it."""
        shown = self.other if self.stage == "attack" else None
        return shown.claims if shown is not None and shown.target is self.target else None

    @property
    def state(self) -> TrainState | AttackState | None:
        """The state of the present stage's run; stages beyond the attack have none."""
        if self.stage in BEFORE:
            return self.train
        return self.attack if self.stage == "attack" else None


@dataclass(eq=False)
class Branch:
    """One line of time: a training run, and the attack begun from it."""

    name: str
    train: Timeline[TrainState] = field(default_factory=Timeline)
    attack: Timeline[AttackState] = field(default_factory=Timeline)
    last: Frame | None = None  # where it was left
    config: AttackConfig | None = None  # settings of the attack then
    mix: tuple[float, float] = (0.0, 0.0)  # of its start
    loaded: AttackState | None = None  # last state of a run that can be loaded again


def numbers(state: TrainState | AttackState) -> dict[str, float]:
    """What the curves show of a state."""
    if isinstance(state, TrainState):
        return {"gamma_bar": state.gamma_bar, "gamma_tilde": state.gamma_tilde}
    return state.numbers()
