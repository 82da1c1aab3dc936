"""One moment of a page: what each stage shows, and the stages there are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import Certificate, certify
from explorer.engine.controls import Controls
from explorer.engine.data import Dataset
from explorer.engine.energy.points import checked
from explorer.engine.network import Network
from explorer.engine.roster import AttackConfig, AttackState, by_key
from explorer.engine.scoring import Score, Verdict
from explorer.engine.status import Status
from explorer.engine.training import TrainState
from explorer.page.history import History, Timeline
from explorer.research.explained import Explained
from explorer.research.judging import judgement


@dataclass(frozen=True, eq=False)
class Candidates:
    """Points of the landscape stage. They begin at the truth.

    Attributes:
        target: whose weights they are to explain.
        truth: where they began; labels never change.
        x: where they are (n, d).
        mapped: the point whose map is shown.
    """

    target: Target
    truth: Dataset
    x: Tensor
    mapped: int = 0

    @property
    def y(self) -> Tensor:
        """Labels (n,), float64."""
        return self.truth.y.double()


def first_candidates(target: Target, truth: Dataset) -> Candidates:
    """Return candidates at the truth. ValueError for weights that have no energy."""
    x = truth.x.double()
    checked(target.net, x, truth.y, 0.0)
    return Candidates(target, truth, x)


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

    stage: Stage
    drawing: History[Dataset]
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
    explain: History[Explained] | None = None
    landscape: History[Candidates] | None = None

    @property
    def dataset(self) -> Dataset:
        """The drawn points."""
        return self.drawing.present

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


def certified(frame: Frame) -> dict[str, Any]:
    """Frame fields with the certificate of the present network; empty where there is none.

    A network that is not homogeneous has none: the KKT conditions are those of no limit.
    """
    if frame.train is None or not frame.dataset.n or not frame.train.net.homogeneous:
        return {}
    made = certify(frame.train.net, frame.dataset.x, frame.dataset.y)
    return {"certificate": made, "certified_t": frame.train.t}


def judged(frame: Frame, config: AttackConfig, controls: Controls) -> dict[str, Any]:
    """Frame fields with the scores and the verdict on the attack's claims."""
    if frame.target is None or frame.attack is None or frame.truth is None:
        return {}
    claims = by_key(frame.attack_name).report(frame.target, frame.attack, config)
    made = judgement(frame.attack_name, claims, frame.truth, controls, frame.certificate)
    return {"verdict": made.verdict, "scores": made.scores}
