"""One moment of the road, and the memory of many: what the panels draw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from explorer.engine.attacks.kkt import KKTState
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import Certificate
from explorer.engine.data import Dataset
from explorer.engine.network import Network
from explorer.engine.scoring import Score, Verdict
from explorer.engine.status import Status
from explorer.engine.training import TrainState
from explorer.history import Timeline

Stage = Literal["draw", "train", "attack"]
STAGES: tuple[Stage, ...] = ("draw", "train", "attack")


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
    attack: KKTState | None = None
    scores: tuple[Score, Score] | None = None  # of the truth, of the control
    verdict: Verdict | None = None
    status: Status = Status.RUNNING

    @property
    def state(self) -> TrainState | KKTState | None:
        """The state of the present stage's run."""
        return self.attack if self.stage == "attack" else self.train


@dataclass(eq=False)
class Branch:
    """One line of time: a training run, and the attack begun from it."""

    name: str
    train: Timeline[TrainState] = field(default_factory=Timeline)
    attack: Timeline[KKTState] = field(default_factory=Timeline)
    last: Frame | None = None  # where it was left


def numbers(state: TrainState | KKTState) -> dict[str, float]:
    """What the curves show of a state."""
    if isinstance(state, KKTState):
        names = ("l_stationary", "l_margin", "l_dual", "l_prior", "loss")
        return {name: float(getattr(state, name)) for name in names}
    return {"gamma_bar": state.gamma_bar, "gamma_tilde": state.gamma_tilde}
