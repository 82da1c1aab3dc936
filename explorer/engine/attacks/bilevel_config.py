"""Settings of the bilevel attack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from explorer.engine import checks
from explorer.engine.attacks.bilevel_lower import Lower
from explorer.engine.attacks.bilevel_models import Shape
from explorer.engine.attacks.implicit import Method
from explorer.engine.optim import half_cosine


@dataclass(frozen=True)
class BilevelConfig:
    """Settings of the attack, and of the training that it sees through.

    The first five describe how the attacked weights were trained (Runkel et al.: an affine and a
    one-hidden-layer network); the attacker knows them. The defaults of the others are arbitrary
    but for the two solvers' names; `benchmarks/bench_bilevel.py` measures them.

    Attributes:
        model: "affine" or "hidden" (one hidden layer); biases in all layers.
        loss: "logistic", or "ridge" (half the squared error).
        mu: weight of ||theta||^2 / 2 in the training energy.
        width: hidden neurons, of "hidden".
        beta: sharpness of the softplus in place of ReLU, of "hidden".
        m: candidates drawn where no start is given, half of each label.
        steps: planned steps.
        solver: how H p = theta(x) - theta* is solved: "exact", "cg" or "quasi-newton".
        solver_tol: relative residual at which the last two stop.
        solver_steps: products with H after which they stop.
        memory: pairs that "quasi-newton" keeps.
        damping: added to H in the implicit step, where it may be singular ("hidden"); the
            gradient is then that of a nearby problem.
        restart: every so many steps the lower level is solved from theta* too and the nearer
            minimum kept ("hidden"); 0 never does so.
        optimizer: "adam", or "momentum" (heavy ball).
        lr_x: step size of x; with "momentum" in units of 1 / |dl/dx| at the start.
        momentum: of either optimiser.
        decay: last step size as a share of the first (half a cosine); 1 keeps it constant.
        sigma_x: standard deviation of the first candidates where no start is given.
    """

    model: Literal["affine", "hidden"] = "affine"
    loss: Literal["logistic", "ridge"] = "logistic"
    mu: float = 0.01
    width: int = 16
    beta: float = 20.0
    m: int = 20
    steps: int = 400
    solver: Method = "exact"
    solver_tol: float = 1e-10
    solver_steps: int = 500
    memory: int = 20
    damping: float = 0.0
    restart: int = 20
    optimizer: Literal["adam", "momentum"] = "adam"
    lr_x: float = 0.01
    momentum: float = 0.9
    decay: float = 0.01
    sigma_x: float = 0.7

    def __post_init__(self) -> None:
        """Refuse settings with which no step could be taken."""
        choices = {
            "model": ("affine", "hidden"),
            "loss": ("logistic", "ridge"),
            "solver": ("exact", "cg", "quasi-newton"),
            "optimizer": ("adam", "momentum"),
        }
        for name, known in choices.items():
            checks.one_of(self, name, *known)
        checks.even_candidates(self.m)
        checks.positive(
            self, "mu", "width", "beta", "steps", "solver_tol", "solver_steps", "memory", "lr_x",
            "decay",
        )  # fmt: skip
        checks.not_negative(self, "damping", "restart", "sigma_x")
        if not (0 <= self.momentum < 1 and self.decay <= 1):
            raise ValueError(
                f"expected 0 <= momentum < 1 and decay <= 1; got {self.momentum} and {self.decay}"
            )

    def lower(self, d: int) -> Lower:
        """How weights for inputs of dimension d were trained."""
        if self.model == "affine":
            return Lower(Shape("affine", d), self.loss, self.mu)
        return Lower(Shape("hidden", d, self.width, self.beta), self.loss, self.mu)

    def rate(self, t: int) -> float:
        """The share of lr_x taken at iteration t: half a cosine from 1 to `decay`."""
        return half_cosine(t / self.steps, self.decay)
