"""Settings of the KKT reconstruction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from explorer.engine.attacks.descent import DescentConfig
from explorer.engine.attacks.target import Target
from explorer.engine.settings import setting, settings


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


@settings
class KKTConfig(DescentConfig):
    """Settings of the attack; see `kkt` for the losses.

    The defaults were chosen on the alternating and random circle with seeds 100 and up;
    `benchmarks/bench_attack.py` measures them on others.

    Raises:
        ValueError: where a setting is out of its bounds.

    Source: Haim et al. 2022, section 4; what is our own says so at its setting.

    Example:
        >>> from explorer import KKTConfig
        >>> config = KKTConfig(m=40, steps=300)
        >>> config.m, round(config.alpha(0), 3), round(config.alpha(300), 3)
        (40, 5.0, 200.0)
    """

    # fmt: off
    m: Annotated[int, setting(
        "Half of them per class; at least 2n is usual", title="candidates m", form="sight",
        place=1, page=(2, 400), ge=2, multiple_of=2, why="half the candidates per label",
        note="The paper takes at least 2n.",
    )] = 100
    same_slopes: Annotated[bool, setting(
        "Of the merged neurons' modified ReLU: theirs, steeper, or the mean of those that they "
        "stand for; the latter leaves the loss that of the whole network", title="merged slopes",
        form="more", place=8, labels=(("steeper", False), ("as before", True)),
    )] = False
    # fmt: on

    @classmethod
    def from_paper(
        cls, target: Target, run: str | Knobs = "CIFAR-10 b9dfyspx", m: int = 100, steps: int = 2000
    ) -> KKTConfig:
        """Return the published attack on these weights at margin 1, in the units of this class.

        Its raw loss is rho^2 times ours and its multipliers are lam' = m lam, so that with
        s = mass: weight_dual = 5 s^2 / rho^2, weight_prior = 1 / rho^2, lam_min = lam'_min / s,
        lam_start = 1 / s, lr_x = rho^2 rate_x, lr_lam = rho^2 rate_lam / s^2.

        Args:
            target: the attacked weights.
            run: a key of `PUBLISHED`, or knobs of one's own.
            m: candidates; the published runs took 1000 for 500 training images.
            steps: the published runs took 50,000.

        Returns:
            The settings.

        Raises:
            ValueError: where there is no such published run.

        Source: Haim et al. 2022, settings of the published runs.
        """
        if isinstance(run, str) and run not in PUBLISHED:
            raise ValueError(f"no published run {run!r}; there are: {', '.join(PUBLISHED)}")
        knobs = PUBLISHED[run] if isinstance(run, str) else run
        rho2, mass = float(target.net.rho) ** 2, target.mass
        return cls(
            m=m, steps=steps, multipliers="joint", optimizer="sgd", momentum=0.9, decay=1.0,
            lr_x=knobs.rate_x * rho2, lr_lam=knobs.rate_lam * rho2 / mass**2,
            sigma_x=knobs.sigma_x, relu_alpha=knobs.relu_alpha, relu_alpha_start=None,
            deep_alpha=0.0,
            lam_start=1 / mass, lam_min=knobs.lam_min / mass, prior=1.0,
            weight_dual=5 * mass**2 / rho2, weight_prior=1 / rho2, weight_margin=0.0,
            merge_angle=0.0,
        )  # fmt: skip
