"""Settings of the DecoReco reconstruction."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from explorer.engine import checks
from explorer.engine.attacks.descent import DescentConfig
from explorer.engine.attacks.kkt_config import KKTConfig, Knobs
from explorer.engine.attacks.target import Target

# The reconstructions of Buzaglo et al. 2023 in the units of their code: contribution and knobs.
PUBLISHED: dict[str, tuple[Literal["margin", "outputs"], Knobs]] = {
    "multiclass": ("margin", Knobs(6.23e-5, 1.362e-3, 0.203, 39.5, 0.479)),
    "weight decay": ("outputs", Knobs(0.0197, 0.952, 0.0, 90.3)),
    "regression": ("outputs", Knobs(0.0137, 0.872, 0.0, 107.4)),
}


@dataclass(frozen=True)
class DecoRecoConfig(DescentConfig):
    """Settings of the attack; see `DescentConfig` for the others, and `decoreco` for the losses.

    The m candidates are in equal shares of the classes. For "outputs" the first lam / mean are
    N(0, lam_start^2), without a floor and without l_margin.

    Attributes:
        contribution: "margin" for networks trained to a margin, lam_i grad q_i with lam_i >= 0;
            "outputs" for networks trained with weight decay, sum_c lam_ic grad Phi_c of any sign.
        rivals: classes that a margin is taken against: the "runner-up" as published, or "all",
            each with a multiplier of its own (the full KKT conditions).
    """

    m: int = 60
    contribution: Literal["margin", "outputs"] = "margin"
    rivals: Literal["runner-up", "all"] = "all"

    def __post_init__(self) -> None:
        """Refuse settings with which no step could be taken."""
        if self.m < 2:
            raise ValueError(f"m must be at least 2; got {self.m}. Try 60.")
        checks.one_of(self, "contribution", "margin", "outputs")
        checks.one_of(self, "rivals", "runner-up", "all")
        super().__post_init__()

    @classmethod
    def published(
        cls, target: Target, run: str = "multiclass", m: int = 60, steps: int = 2000
    ) -> DecoRecoConfig:
        """The published attack on these weights, in the units of this class.

        The units change as in `KKTConfig.published`: the same losses on other contributions. For
        "outputs" no floor, no l_dual.

        Args:
            target: the attacked weights.
            run: a key of `PUBLISHED`.
            m: candidates; the published multiclass run took 1000.
            steps: planned steps.

        Raises:
            ValueError: for an unknown run.
        """
        if run not in PUBLISHED:
            raise ValueError(f"no published run {run!r}; there are: {', '.join(PUBLISHED)}")
        contribution, knobs = PUBLISHED[run]
        base = KKTConfig.published(target, knobs, m=m + m % 2, steps=steps)
        own = {field.name for field in fields(cls)}
        values = {f.name: getattr(base, f.name) for f in fields(base) if f.name in own}
        return cls(**{**values, "m": m, "contribution": contribution, "rivals": "runner-up"})
