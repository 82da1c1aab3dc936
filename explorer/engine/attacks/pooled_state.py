"""The settings of the pooled attack, and what it holds at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import torch
from torch import Tensor

from explorer.engine.attacks.hinge_config import HingeConfig
from explorer.engine.attacks.hinge_state import HingeState
from explorer.engine.attacks.kkt_config import KKTConfig
from explorer.engine.settings import setting, settings


@settings
class PooledConfig(HingeConfig):
    """A pooled attack: `HingeConfig`, and the KKT reconstructions before it."""

    # fmt: off
    starts: Annotated[int, setting(
        "KKT reconstructions from independent noise, one per step", title="starts", form="sight",
        place=-3, page=(1, 100), ge=1,
    )] = 6
    m: Annotated[int, setting(
        "Candidates of each start, half of each label", title="candidates m", form="sight",
        place=-2, page=(2, 2000), ge=2, multiple_of=2, why="half the candidates per label",
    )] = 60
    descent: Annotated[int, setting(
        "Steps of each reconstruction", title="descent", form="sight", place=-1,
        page=(1, 100_000), gt=0,
    )] = 1000
    # fmt: on

    def reconstruction(self) -> KKTConfig:
        """The settings of one start: the defaults of the KKT attack, at this size and length."""
        return KKTConfig(m=self.m, steps=self.descent)


@dataclass(frozen=True, eq=False)
class PooledState(HingeState):
    """One moment of the attack: that of `hinge`, and what the starts have claimed.

    Attributes:
        seed: of the noise of the first start.
        found: claims of all starts so far (c, d).
        labels: of these (c,).
        heft: their multipliers (c,).
        start: which start each is of (c,).
        rise: of the largest component without each place (m,); nan where not asked.
        also: places (m,) bool that this second question finds needed.
    """

    seed: int
    found: Tensor
    labels: Tensor
    heft: Tensor
    start: Tensor
    rise: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.float64))
    also: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.bool))

    @property
    def needed(self) -> Tensor:
        """Which places are needed, (m,) bool, by either question."""
        first = super().needed
        return first | self.also if len(self.also) == len(first) else first

    def numbers(self) -> dict[str, float]:
        """For the curves: as `HingeState`, and the claims of all starts."""
        return {**super().numbers(), "claims": float(len(self.found))}
