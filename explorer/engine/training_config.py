"""What a training run is asked to do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from explorer.engine import checks
from explorer.engine.margin import Loss

Method = Literal["gradient", "ascent"]
StepRule = Literal["constant", "loss-scaled"]
Init = Literal["small", "standard"]

# What `lr=None` stands for. The two rules measure a step in different units.
RATES: dict[StepRule, float] = {
    "loss-scaled": 1.0,  # the inverse of the curvature bound
    "constant": 0.01,  # Haim et al. 2022, appendix B
}


@dataclass(frozen=True)
class TrainConfig:
    """A training run; the defaults reach the margin on every preset within seconds.

    Attributes:
        widths: hidden widths, first layer first: (100,) or (100, 100).
        bias: whether the first layer has a bias.
        all_biases: whether the other layers have one too. The network is then not homogeneous:
            margins have no limit theorem, and the constant or loss-scaled gradient alone trains it.
        loss: "exponential" or "logistic".
        method: "gradient" descent on the loss, or normalised "ascent" of the smoothed margin,
            which always takes the loss-scaled step.
        step_rule: "loss-scaled" or "constant", for the gradient.
        lr: the rate in the units of the rule; None takes 1 (loss-scaled) or 0.01 (constant, on
            the mean loss).
        momentum: heavy ball. 0.99 separates and levels the margins several times sooner than
            0.9 (benchmarks/bench_training.py).
        batch: points per step, or None for all.
        init_scale: standard deviation of the first layer's weights and biases. 0.1 starts to
            move at once; the 1e-4 of Haim et al. gives fewer neuron directions and, with the
            constant rule, a plateau of many thousand steps.
        init: "small" for `init_scale` in the first layer, or "standard" for torch's default
            in every layer.
        steps: planned steps; raise it to go on.
        revive: whether `refresh` draws neurons that are off on every point anew when the points
            are not separated. Without it a trained network often cannot learn a new point.
        beta_end: inverse temperature of the ascent, reached after `ascent_steps`. 1e3 leaves
            the margins of support points within 1% of each other.
        ascent_steps: length of that schedule. Measured: 4000 level all presets.
        weight_decay: mu of mean loss + mu/2 |theta|^2, for the gradient; 0 for none. With it the
            norm stays finite, and training ends at a stationary point (`decay`).
    """

    widths: tuple[int, ...] = (100,)
    bias: bool = True
    all_biases: bool = False
    loss: Loss = "exponential"
    method: Method = "gradient"
    step_rule: StepRule = "loss-scaled"
    lr: float | None = None
    momentum: float = 0.99
    batch: int | None = None
    init_scale: float = 0.1
    init: Init = "small"
    steps: int = 20_000
    revive: bool = True
    beta_end: float = 1e3
    ascent_steps: int = 4000
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what cannot run, naming the field."""
        object.__setattr__(self, "widths", tuple(self.widths))
        if not self.widths or min(self.widths) < 1:
            raise ValueError(
                f"widths needs at least one hidden layer of at least 1; got {self.widths}"
            )
        checks.one_of(self, "loss", "exponential", "logistic")
        checks.one_of(self, "method", "gradient", "ascent")
        checks.one_of(self, "step_rule", "constant", "loss-scaled")
        checks.one_of(self, "init", "small", "standard")
        if self.all_biases and (self.method == "ascent" or not self.bias):
            raise ValueError(
                "all_biases needs method='gradient', as the ascent scales homogeneous weights, and "
                f"bias=True; got method={self.method!r} and bias={self.bias}"
            )
        if self.lr is not None and not (math.isfinite(self.lr) and self.lr > 0):
            raise ValueError(f"lr must be finite and above 0, or None; got {self.lr}")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must be in [0, 1); got {self.momentum}. Try 0.99.")
        if self.batch is not None and self.batch < 1:
            raise ValueError(f"batch must be at least 1, or None for all; got {self.batch}")
        if not (math.isfinite(self.init_scale) and self.init_scale >= 0):
            raise ValueError(f"init_scale must be finite, at least 0; got {self.init_scale}")
        if self.steps < 0 or self.ascent_steps < 1:
            raise ValueError(
                "steps must be at least 0 and ascent_steps at least 1; "
                f"got {self.steps} and {self.ascent_steps}"
            )
        if not (math.isfinite(self.beta_end) and self.beta_end >= 1):
            raise ValueError(f"beta_end must be finite and at least 1; got {self.beta_end}")

        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise ValueError(
                f"weight_decay must be finite and not negative; got {self.weight_decay}"
            )
        if self.weight_decay and self.method == "ascent":
            raise ValueError(
                "the ascent follows the direction of the weights, which a decay of their norm does "
                f"not change; got weight_decay={self.weight_decay}. Take method='gradient'."
            )

    @property
    def rule(self) -> StepRule:
        """The step rule in force: the ascent has only one."""
        return "loss-scaled" if self.method == "ascent" else self.step_rule

    @property
    def rate(self) -> float:
        """The rate in force: `lr`, or the default of the rule."""
        return RATES[self.rule] if self.lr is None else self.lr
