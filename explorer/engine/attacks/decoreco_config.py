"""Settings of the DecoReco reconstruction."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from explorer.engine.attacks.descent import (
    check_not_negative,
    check_positive,
    geometric,
    half_cosine,
)
from explorer.engine.attacks.kkt_config import KKTConfig, Knobs
from explorer.engine.attacks.target import Target

# The reconstructions of Buzaglo et al. 2023 in the units of their code: contribution and knobs.
PUBLISHED: dict[str, tuple[Literal["margin", "outputs"], Knobs]] = {
    "multiclass": ("margin", Knobs(6.23e-5, 1.362e-3, 0.203, 39.5, 0.479)),
    "weight decay": ("outputs", Knobs(0.0197, 0.952, 0.0, 90.3)),
    "regression": ("outputs", Knobs(0.0137, 0.872, 0.0, 107.4)),
}


@dataclass(frozen=True)
class DecoRecoConfig:
    """Settings of the attack; see `decoreco` for the losses they name.

    Attributes:
        m: number of candidates, in equal shares of the classes.
        steps: planned steps.
        contribution: "margin" for networks trained to a margin, lam_i grad q_i with lam_i >= 0;
            "outputs" for networks trained with weight decay, sum_c lam_ic grad Phi_c of any sign.
        rivals: classes that a margin is taken against: the "runner-up" as published, or "all",
            each with a multiplier of its own (the full KKT conditions).
        multipliers: "projected" solves lam at every step; "joint" descends on it, as published.
        optimizer: "adam", or "sgd" with momentum as published.
        lr_x: step size of x, on `loss`.
        lr_lam: step size of lam / mean, on `loss`; "joint" only.
        momentum: of either optimiser.
        decay: last step size as a share of the first (half a cosine); 1 keeps it constant.
        sigma_x: standard deviation of the first candidates, N(0, sigma_x^2).
        relu_alpha: slope sigmoid(alpha z) of the modified ReLU, at the last step.
        relu_alpha_start: the same at the first step, rising geometrically; None for no annealing.
        lam_start: the first lam / mean are U(0, lam_start), or N(0, lam_start^2) for "outputs".
        lam_min: floor of lam / mean; "margin" only.
        prior: half width of the box that candidates should stay in, or None.
        weight_dual: weight of l_dual (published: 5).
        weight_prior: weight of l_prior (published: 1).
        weight_margin: weight of l_margin at the last step, rising linearly from 0 (published: 0);
            "margin" only.
        merge_angle: neurons closer than this (radians) are merged first; 0 for none.
    """

    m: int = 60
    steps: int = 2000
    contribution: Literal["margin", "outputs"] = "margin"
    rivals: Literal["runner-up", "all"] = "all"
    multipliers: Literal["joint", "projected"] = "projected"
    optimizer: Literal["sgd", "adam"] = "adam"
    lr_x: float = 0.02
    lr_lam: float = 0.02
    momentum: float = 0.9
    decay: float = 0.01
    sigma_x: float = 0.7
    relu_alpha: float = 200.0
    relu_alpha_start: float | None = 5.0
    lam_start: float = 2.0
    lam_min: float = 0.0
    prior: float | None = None
    weight_dual: float = 5.0
    weight_prior: float = 1.0
    weight_margin: float = 0.4
    merge_angle: float = 0.02

    def __post_init__(self) -> None:
        """Refuse settings with which no step could be taken."""
        if self.m < 2:
            raise ValueError(f"m must be at least 2; got {self.m}. Try 60.")
        choices = {
            "contribution": ("margin", "outputs"), "rivals": ("runner-up", "all"),
            "multipliers": ("joint", "projected"), "optimizer": ("sgd", "adam"),
        }  # fmt: skip
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}; got {getattr(self, name)!r}")
        check_positive(
            self, "steps", "lr_x", "lr_lam", "decay", "relu_alpha", "relu_alpha_start", "prior"
        )
        check_not_negative(
            self, "sigma_x", "lam_start", "lam_min", "weight_dual", "weight_prior", "weight_margin",
            "merge_angle",
        )  # fmt: skip
        if not (0 <= self.momentum < 1 and self.decay <= 1):
            raise ValueError(
                f"expected 0 <= momentum < 1 and decay <= 1; got {self.momentum}, {self.decay}"
            )

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

    def alpha(self, t: int) -> float:
        """The slope of the modified ReLU at iteration t."""
        start = self.relu_alpha if self.relu_alpha_start is None else self.relu_alpha_start
        return geometric(start, self.relu_alpha, t / self.steps)

    def rate(self, t: int) -> float:
        """The share of lr_x and lr_lam taken at iteration t."""
        return half_cosine(self.decay, t / self.steps)
