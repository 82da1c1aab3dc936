"""Settings of the bilevel attack."""

from __future__ import annotations

from typing import Annotated, Literal

from explorer.engine.attacks.bilevel_lower import Lower
from explorer.engine.attacks.bilevel_models import Shape
from explorer.engine.attacks.implicit import Method
from explorer.engine.optim import half_cosine
from explorer.engine.settings import setting, settings


@settings
class BilevelConfig:
    """Settings of the attack, and of the training that it sees through.

    The first five describe how the attacked weights were trained (Runkel et al.: an affine and a
    one-hidden-layer network); the attacker knows them. The defaults of the others are arbitrary
    but for the two solvers' names; `benchmarks/bench_bilevel.py` measures them.
    """

    # fmt: off
    model: Annotated[Literal["affine", "hidden"], setting(
        "The network that is trained and attacked: affine, or one hidden layer; biases in all "
        "layers", title="model", form="sight", place=1,
        labels=(("affine", "affine"), ("one hidden layer", "hidden")),
    )] = "affine"
    loss: Annotated[Literal["logistic", "ridge"], setting(
        "Of the lower level: log(1 + exp(−yz)), or half the squared error", title="training loss",
        form="sight", place=2,
    )] = "logistic"
    mu: Annotated[float, setting(
        "Of ‖θ‖²/2 in the training energy", title="weight decay μ", form="more", place=1,
        page=(1e-8, 1e3), gt=0,
    )] = 0.01
    width: Annotated[int, setting(
        "Of the one hidden layer", title="hidden neurons", form="more", place=2, page=(1, 200),
        gt=0,
    )] = 16
    beta: Annotated[float, setting(
        "Sharpness of the softplus that stands for ReLU", title="softplus β", form="more",
        place=3, page=(0.1, 1000), gt=0, note="One hidden layer only.",
    )] = 20.0
    m: Annotated[int, setting(
        "Where no start is given; on the page there are as many as points", title="candidates m",
        form="more", place=13, page=(2, 400), ge=2, multiple_of=2,
        why="half the candidates per label", note="Half of each label.",
    )] = 20
    steps: Annotated[int, setting(
        "Length of the attack", title="steps", form="more", place=14, page=(1, 1_000_000), gt=0,
    )] = 400
    solver: Annotated[Method, setting(
        "How H p = θ(x) − θ* is solved", title="inverse Hessian", form="sight", place=3,
        labels=(("exact", "exact"), ("conjugate gradients", "cg"),
                ("quasi-Newton", "quasi-newton")),
        note="By Cholesky's factors, by products with H, or by the two loops of L-BFGS.",
    )] = "exact"
    solver_tol: Annotated[float, setting(
        "Relative residual at which the two iterative solvers stop", title="tolerance",
        form="more", place=6, page=(1e-15, 1), gt=0,
    )] = 1e-10
    solver_steps: Annotated[int, setting(
        "Products with the Hessian after which they stop", title="most products", form="more",
        place=7, page=(1, 100_000), gt=0,
    )] = 500
    memory: Annotated[int, setting(
        "Of the quasi-Newton estimate", title="pairs kept", form="more", place=8, page=(1, 1000),
        gt=0,
    )] = 20
    damping: Annotated[float, setting(
        "Added to the Hessian in the implicit step", title="damping", form="more", place=4,
        page=(0, 1e3), ge=0, note="Where it may be singular, with a hidden layer; the gradient is "
        "then that of a nearby problem.",
    )] = 0.0
    restart: Annotated[int, setting(
        "Steps after which the lower level is solved from θ* too; 0: never",
        title="restart every", unit="steps", form="more", place=5, page=(0, 100_000), ge=0,
        note="The nearer minimum is kept; with a hidden layer.",
    )] = 20
    optimizer: Annotated[Literal["momentum", "adam"], setting(
        "Heavy ball, or Adam", title="optimiser", form="more", place=9,
    )] = "adam"
    lr_x: Annotated[float, setting(
        "Learning rate of the candidates", title="rate of x", form="sight", place=4,
        page=(1e-8, 1e3), gt=0, note="With the heavy ball in units of 1 / |dl/dx| at the start.",
    )] = 0.01
    momentum: Annotated[float, setting(
        "Of either, below 1", title="momentum", form="more", place=10, page=(0, 0.999), ge=0, lt=1,
    )] = 0.9
    decay: Annotated[float, setting(
        "Last rate as a share of the first", title="last rate", form="more", place=11,
        page=(1e-6, 1), gt=0, le=1, note="Half a cosine; 1 keeps it constant.",
    )] = 0.01
    sigma_x: Annotated[float, setting(
        "Standard deviation of a start from noise", title="noise σ_x", unit="of the data",
        form="more", place=12, page=(0, 5), ge=0,
    )] = 0.7
    # fmt: on

    def lower(self, d: int) -> Lower:
        """How weights for inputs of dimension d were trained."""
        if self.model == "affine":
            return Lower(Shape("affine", d), self.loss, self.mu)
        return Lower(Shape("hidden", d, self.width, self.beta), self.loss, self.mu)

    def rate(self, t: int) -> float:
        """The share of lr_x taken at iteration t: half a cosine from 1 to `decay`."""
        return half_cosine(t / self.steps, self.decay)
