"""Settings of the KKT reconstruction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from explorer.engine.attacks.target import Target


@dataclass(frozen=True)
class Knobs:
    """The knobs of the published code, in its own units (raw loss, lam' = m lam).

    Attributes:
        sigma_x: standard deviation of the first candidates.
        rate_x: step size of x.
        lam_min: floor of lam'.
        relu_alpha: slope sigmoid(alpha z) of the modified ReLU.
        rate_lam: step size of lam'; 1e-4 in all published runs.
    """

    sigma_x: float
    rate_x: float
    lam_min: float
    relu_alpha: float
    rate_lam: float = 1e-4


# The reconstructions of Haim et al. 2022: settings of their published runs, m = 1000, 50,000 steps.
PUBLISHED = {
    "CIFAR-10 b9dfyspx": Knobs(8.857e-4, 0.5549, 0.4983, 19.14),
    "CIFAR-10 k60fvjdy": Knobs(4.474e-3, 0.3462, 0.4936, 21.68),
    "MNIST kcf9bhbi": Knobs(3.498e-2, 0.03052, 0.4471, 149.87),
    "MNIST rbijxft7": Knobs(1.742e-3, 0.2821, 0.4153, 19.21),
}


@dataclass(frozen=True)
class KKTConfig:
    """Settings of the attack; see `kkt` for the losses they name.

    The defaults were chosen on the alternating and random circle with seeds 100 and up;
    `benchmarks/bench_attack.py` measures them on others.

    Attributes:
        m: number of candidates, half of each label; the paper takes at least 2 n.
        steps: planned steps.
        multipliers: "projected" solves lam at every step (non-negative least squares);
            "joint" descends on lam together with x, as published.
        optimizer: "adam", or "sgd" with momentum as published.
        lr_x: step size of x, on `loss`.
        lr_lam: step size of lam / mean, on `loss`; "joint" only.
        momentum: of either optimiser.
        decay: last step size as a share of the first (half a cosine); 1 keeps it constant.
        sigma_x: standard deviation of the first candidates, N(0, sigma_x^2).
        relu_alpha: slope sigmoid(alpha z) of the modified ReLU, at the last step.
        relu_alpha_start: the same at the first step, rising geometrically; None for no annealing.
        lam_start: the first lam / mean are U(0, lam_start).
        lam_min: floor of lam / mean.
        prior: half width of the box that candidates should stay in, or None.
        weight_dual: weight of l_dual (published: 5).
        weight_prior: weight of l_prior (published: 1).
        weight_margin: weight of l_margin at the last step, rising linearly from 0 (published: 0);
            from the first step on it would hold candidates where they happen to meet the margin.
        merge_angle: neurons closer than this (radians) are merged first; 0 for none.
        same_slopes: merged neurons keep the mean slope sigmoid(alpha z) of those they stand for, so
            that the loss is that of the whole network; else they are longer, and theirs is steeper.
    """

    m: int = 100
    steps: int = 2000
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
    same_slopes: bool = False

    def __post_init__(self) -> None:
        """Refuse settings with which no step could be taken."""
        if self.m < 2 or self.m % 2:
            near = max(2, self.m + 1)
            raise ValueError(
                f"m must be even (half the candidates per label); got m={self.m}. Try m={near}."
            )
        if self.multipliers not in ("joint", "projected") or self.optimizer not in ("sgd", "adam"):
            raise ValueError(
                "multipliers must be 'joint' or 'projected' and optimizer 'sgd' or 'adam'; "
                f"got {self.multipliers!r} and {self.optimizer!r}"
            )
        for name in ("steps", "lr_x", "lr_lam", "decay", "relu_alpha", "relu_alpha_start", "prior"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be positive; got {value}")
        for name in (
            "sigma_x", "lam_start", "lam_min", "weight_dual", "weight_prior", "weight_margin"
        ):  # fmt: skip
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must not be negative; got {value}")
        if not (0 <= self.momentum < 1 and self.decay <= 1 and self.merge_angle >= 0):
            raise ValueError(
                "expected 0 <= momentum < 1, decay <= 1 and merge_angle >= 0; got "
                f"{self.momentum}, {self.decay} and {self.merge_angle}"
            )

    @classmethod
    def published(
        cls, target: Target, run: str | Knobs = "CIFAR-10 b9dfyspx", m: int = 100, steps: int = 2000
    ) -> KKTConfig:
        """The published attack on these weights at margin 1, in the units of this class.

        Its raw loss is rho^2 times ours and its multipliers are lam' = m lam, so that with
        s = mass: weight_dual = 5 s^2 / rho^2, weight_prior = 1 / rho^2, lam_min = lam'_min / s,
        lam_start = 1 / s, lr_x = rho^2 rate_x, lr_lam = rho^2 rate_lam / s^2.

        Args:
            target: the attacked weights.
            run: a key of `PUBLISHED`, or knobs of one's own.
            m: candidates; the published runs took 1000 for 500 training images.
            steps: the published runs took 50,000.

        Raises:
            ValueError: for an unknown run.
        """
        if isinstance(run, str) and run not in PUBLISHED:
            raise ValueError(f"no published run {run!r}; there are: {', '.join(PUBLISHED)}")
        knobs = PUBLISHED[run] if isinstance(run, str) else run
        rho2, mass = float(target.net.rho) ** 2, target.mass
        return cls(
            m=m, steps=steps, multipliers="joint", optimizer="sgd", momentum=0.9, decay=1.0,
            lr_x=knobs.rate_x * rho2, lr_lam=knobs.rate_lam * rho2 / mass**2,
            sigma_x=knobs.sigma_x, relu_alpha=knobs.relu_alpha, relu_alpha_start=None,
            lam_start=1 / mass, lam_min=knobs.lam_min / mass, prior=1.0,
            weight_dual=5 * mass**2 / rho2, weight_prior=1 / rho2, weight_margin=0.0,
            merge_angle=0.0,
        )  # fmt: skip

    def alpha(self, t: int) -> float:
        """The slope of the modified ReLU at iteration t."""
        start = self.relu_alpha if self.relu_alpha_start is None else self.relu_alpha_start
        return start * math.pow(self.relu_alpha / start, min(t / self.steps, 1.0))

    def rate(self, t: int) -> float:
        """The share of lr_x and lr_lam taken at iteration t: half a cosine from 1 to `decay`."""
        fall = (1 + math.cos(math.pi * min(t / self.steps, 1.0))) / 2
        return self.decay + (1 - self.decay) * fall
