"""Settings of the bilevel attack."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
import torch
from torch import Tensor

from explorer.engine.attacks.attack import Attack, FileCheck, MixedStarts, Needs, OwnVictim, Start
from explorer.engine.attacks.bilevel.lower import (
    Lower,
    LowerPoint,
    Method,
    Solved,
    conjugate_gradients,
    exact,
    quasi_newton,
    solve,
)
from explorer.engine.attacks.bilevel.models import Shape
from explorer.engine.attacks.claims import MERGE_RADIUS, Report, merge_candidates
from explorer.engine.attacks.descent import (
    SIGMA_PICTURES,
    check_start,
    descent_status,
    descent_step,
)
from explorer.engine.attacks.shapes import EMPTY, Level, Shapes
from explorer.engine.attacks.target import Target
from explorer.engine.classes import fair_labels
from explorer.engine.network import Network
from explorer.engine.number_words import PLAIN, count, digits, share
from explorer.engine.optim import Moments, half_cosine
from explorer.engine.settings import setting, settings
from explorer.engine.sizes import Like, Size
from explorer.engine.statement import Action, Judged, Statement
from explorer.engine.status import Status
from explorer.engine.threads import few_threads
from explorer.engine.weight_decay import ZERO_NORM


@settings
class BilevelConfig:
    """Settings of the attack, and of the training that it sees through.

    The first five describe how the attacked weights were trained (Runkel et al.: an affine and a
    one-hidden-layer network; two hidden layers are ours); the attacker knows them. The defaults of
    the others are arbitrary but for the two solvers' names; `benchmarks/bench_bilevel.py` measures
    them.
    """

    # fmt: off
    model: Annotated[Literal["affine", "hidden", "deep"], setting(
        "The network that is trained and attacked: affine, or with one hidden layer or two; biases "
        "in all layers", title="model", form="sight", place=1,
        labels=(("affine", "affine"), ("one hidden layer", "hidden"),
                ("two hidden layers", "deep")),
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
        "Of a hidden layer", title="hidden neurons", form="more", place=2, page=(1, 200),
        gt=0,
    )] = 16
    beta: Annotated[float, setting(
        "Sharpness of the softplus that stands for ReLU", title="softplus β", form="more",
        place=3, page=(0.1, 1000), gt=0, note="Hidden layers only.",
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
        """Return how weights for inputs of dimension d were trained."""
        if self.model == "affine":
            return Lower(Shape("affine", d), self.loss, self.mu)
        return Lower(Shape(self.model, d, self.width, self.beta), self.loss, self.mu)

    def rate(self, t: int) -> float:
        """Return the share of lr_x taken at iteration t: half a cosine from 1 to `decay`."""
        return half_cosine(t / self.steps, self.decay)


# --- Reconstruction as a bilevel problem (Runkel et al., "Privacy due to Uncertainty?", eq.
# (1)-(7))
# min_x  l(x) = || theta(x) - theta* ||^2 / 2,   theta(x) = argmin_theta E(x, y; theta)
#
# over candidates x (m, d) of fixed labels, with E as in `bilevel_lower`. The implicit function
# theorem gives, with H the Hessian of E in theta at theta(x),
#
#     H p = theta(x) - theta*,    dl/dx = - d<dE/dtheta(x, y; theta), p>/dx  at theta = theta(x).
#
# Restated: the printed iteration holds the gradient twice and the other sign; see the paper for the
# original. The KKT-like surrogate of its eq. (3), || dE/dtheta(x, y; theta*) ||^2, bounds l where E
# is mu-strongly convex (the affine model): l <= surrogate / (2 mu^2).
#
# With hidden layers E has many minima: the lower level follows the last one found, and every
# `restart` steps is solved from theta* as well, of which the nearer to theta* is kept.
#
# What l cannot decide: it is P equations in m d unknowns, so its zero set has dimension m d - P or
# more. A run that ends at l = 0 away from the truth has not failed to converge.

OTHER_TRAINING = (
    "The bilevel attack sees through one way of training, with weight decay and biases in all "
    "layers, and attacks weights that were trained so; these were not. Run `margin-explorer "
    "bilevel`, or choose it on the page, where it trains its own."
)


@dataclass(frozen=True, eq=False)
class BilevelTarget:
    """What the attacker sees: trained weights theta (P,), and how they were trained."""

    theta: Annotated[Tensor, Size("P")]
    lower: Lower

    def __post_init__(self) -> None:
        """Refuse weights of another size."""
        size = self.lower.shape.size
        if self.theta.shape != (size,) or not bool(torch.isfinite(self.theta).all()):
            raise ValueError(
                f"theta must be ({size},) and finite for this model; got {tuple(self.theta.shape)}"
            )

    def outputs(self, x: Tensor) -> Tensor:
        """Return z of the attacked model at places x (k, d). -> (k,)."""
        return self.lower.shape.at(self.theta, x).z

    @property
    def d(self) -> int:
        """Return the number of coordinates of a point."""
        return self.lower.shape.d

    @property
    def net(self) -> Network:
        """Return the weights as a ReLU network with biases in all layers."""
        return self.lower.shape.network(self.theta)


@dataclass(frozen=True, eq=False)
class BilevelState:
    """One iterate, with the losses and gradients of this very iterate.

    Attributes:
        t: iteration.
        victim: the weights attacked; they are not those of the page, which trains otherwise.
        x: candidates (m, d).
        y: their labels (m,), never changed.
        lam: multipliers of weight decay at theta(x), -y_i l'(z_i) / (m mu), (m,).
        theta: theta(x) (P,).
        l_upper: || theta(x) - theta* ||^2 / 2, ().
        surrogate: || dE/dtheta(x, y; theta*) ||^2, ().
        grad_x: dl/dx (m, d).
        lower_gradient: || dE/dtheta || at theta(x): how exactly the lower level is solved.
        implicit: relative residual of H p = theta(x) - theta*.
        scale: |dl/dx| at the start, the unit of the momentum step.
        moments: of the optimiser; under "momentum" their mean is the velocity.
        diverged: whether the next step was not finite and was not taken.
    """

    t: int
    victim: BilevelTarget
    x: Tensor
    y: Tensor
    lam: Tensor
    theta: Annotated[Tensor, Size("P", finite=True)]
    l_upper: Annotated[Tensor, Size()]
    surrogate: Annotated[Tensor, Size()]
    grad_x: Annotated[Tensor, Size("m d")]
    lower_gradient: float
    implicit: float
    scale: float
    moments: Annotated[Moments, Like("x")]
    diverged: bool = False

    def numbers(self) -> dict[str, float]:
        """Return the two levels, for curves."""
        return {
            "l_upper": float(self.l_upper),
            "surrogate": float(self.surrogate),
            "lower_gradient": self.lower_gradient,
        }


ROUNDING = 1e-9  # arbitrary: about as exactly the lower level is solved
AGREE = 1e-4  # arbitrary: upper loss up to which training on the candidates gives the weights


@few_threads()
def init(
    target: BilevelTarget,
    config: BilevelConfig,
    generator: torch.Generator,
    start: Start | None = None,
) -> BilevelState:
    """Return the first iterate: `start`, or x ~ N(0, sigma_x^2) with half of each label.

    The lower level is first solved from theta*, which the attacker has.

    Raises:
        ValueError: where the settings describe another training than the target's, or the target
            is a network of which it is not known how it was trained.
    """
    if not isinstance(target, BilevelTarget):
        raise ValueError(OTHER_TRAINING)
    shape = target.lower.shape
    if config.lower(shape.d) != target.lower:
        raise ValueError(
            f"the weights were trained as {target.lower}; the settings say "
            f"{config.lower(shape.d)}. Train the victim with these settings."
        )
    if start is None:
        noise = torch.randn(config.m, shape.d, generator=generator, dtype=torch.float64)
        x, y = config.sigma_x * noise, fair_labels(config.m, 1)
    else:
        x, y = start.x.detach().to(target.theta).clone(), start.y.detach().to(target.theta)
        check_start(x, y, shape.d)
    state = _evaluate(target, config, 0, x, y, target.theta, Moments.zero((x,)), 1.0)
    if not _finite(state):
        raise ValueError("the loss is not finite at the start; take candidates closer to the data")
    return replace(state, scale=float(state.grad_x.norm()) or 1.0)


@few_threads()
def step(target: BilevelTarget, state: BilevelState, config: BilevelConfig) -> BilevelState:
    """Train on the candidates, take the implicit gradient, move the candidates.

    The weights attacked are those of the state; `target` may be what a page has beside them.

    A step that would not be finite is not taken: the same iterate comes back, `diverged`.
    """
    lr = config.lr_x * config.rate(state.t)
    rate = lr if config.optimizer == "adam" else lr / state.scale
    (x,), moments = descent_step(
        config.optimizer, (state.x,), state.moments, (state.grad_x,), (rate,), config.momentum
    )
    if not bool(torch.isfinite(x).all()):
        return replace(state, diverged=True)
    after = _evaluate(
        state.victim, config, state.t + 1, x, state.y, state.theta, moments, state.scale
    )
    return after if _finite(after) else replace(state, diverged=True)


def terminate(state: BilevelState, config: BilevelConfig) -> Status:
    """Return how the run stands."""
    return descent_status(state, config.steps, state.grad_x)


def report(target: BilevelTarget, state: BilevelState, config: BilevelConfig) -> Report:
    """Return all candidates, those of one label within 0.03 as one: nothing tells them apart."""
    return merge_candidates(state.x, state.y, state.lam, MERGE_RADIUS)


def headline(state: BilevelState, known: Judged) -> Statement:
    """Return how far the weights agree that training on the candidates and on the points gives."""
    loss = float(state.l_upper)
    off = math.sqrt(2 * loss) / float(state.victim.theta.norm())
    if loss > AGREE:
        more = "Set more steps, or begin elsewhere."
        left = share(off) if off < PLAIN else f"{digits(off)} times their size"
        words = f"Not converged: the weights do not agree yet, they differ by {left}. {more}"
        return Statement("", words, action=Action("restart", "Attack again"))
    too = "" if known.found == known.n else ", too"
    alike = max(1, int(-math.log10(max(off, ROUNDING))))
    words = f"Training on the claims gives the attacked weights{too}, to {count(alike, 'digit')}."
    return Statement("", words)


def implicit(point: LowerPoint, gap: Tensor, config: BilevelConfig) -> Solved:
    """Return p with (H + damping I) p = gap (P,), H the Hessian of E at `point`."""
    if config.solver == "exact":
        hessian = point.hessian
        hessian.diagonal().add_(config.damping)
        return exact(hessian, gap)

    def product(p: Tensor) -> Tensor:
        return point.product(p) + config.damping * p

    tol, most = config.solver_tol, config.solver_steps
    if config.solver == "cg":
        return conjugate_gradients(product, gap, tol, most)
    return quasi_newton(product, gap, tol, most, config.memory)


def _evaluate(
    target: BilevelTarget, config: BilevelConfig, t: int, x: Tensor, y: Tensor, theta: Tensor,
    moments: Moments, scale: float,
) -> BilevelState:  # fmt: skip
    """Return the state at x, the lower level solved from `theta`."""
    lower = target.lower
    low = solve(lower, x, y, theta)
    if lower.shape.model != "affine" and t and config.restart and t % config.restart == 0:
        low = min(low, solve(lower, x, y, target.theta), key=lambda m: _distance(m.theta, target))
    point = lower.point(low.theta, x, y)
    gap = low.theta - target.theta
    size = float(gap.norm())
    if size:
        solved = implicit(point, gap, config)
        grad, left = -point.mixed_derivative(solved.p), solved.residual / size
    else:  # exactly the weights: no step can do better
        grad, left = torch.zeros_like(x), 0.0
    surrogate = lower.point(target.theta, x, y).gradient.square().sum()
    return BilevelState(
        t, target, x, y, -y * point.r / lower.mu, low.theta, gap.square().sum() / 2, surrogate,
        grad, low.gradient, left, scale, moments,
    )  # fmt: skip


def _distance(theta: Tensor, target: BilevelTarget) -> float:
    return float((theta - target.theta).norm())


def _finite(state: BilevelState) -> bool:
    parts = (state.l_upper, state.surrogate, state.grad_x)
    return all(bool(torch.isfinite(p).all()) for p in parts)


CELLS = 61  # arbitrary: across the plane; the boundary of a small network is smooth
HALF = 4.0  # arbitrary: twice the usual plane, so that a line reaches its edges after zooming


def shapes(target: Target, state: BilevelState) -> Shapes:
    """Return the boundaries z = 0: thick of theta*, thin of theta(x), which comes onto it."""
    shape = state.victim.lower.shape
    if shape.d != 2:
        return EMPTY
    axis = np.linspace(-HALF, HALF, 2 * CELLS)
    x1, x2 = np.meshgrid(axis, axis)
    at = torch.from_numpy(np.column_stack([x1.ravel(), x2.ravel()]))
    values = (shape.at(theta, at).z.numpy() for theta in (state.theta, state.victim.theta))
    thin, thick = (z.reshape(x1.shape) for z in values)
    return Shapes(
        levels=(Level(axis, thin), Level(axis, thick, strong=True)),
        names=(("lines", "boundary trained on the candidates"), ("strong", "attacked boundary")),
    )


# --- The victim of a bilevel attack: weights trained on the truth, which the attack never sees --

PICTURE_WIDTH = 8  # arbitrary: hidden neurons of the model that is seen through, on images
_TRAINED = 1e-6  # arbitrary: a gradient above this is no minimum to speak of
_EXACT = 4000  # arbitrary: weights beyond which their Hessian is not formed; 128 MB


def victim(
    x: Tensor, y: Tensor, config: BilevelConfig, generator: torch.Generator
) -> BilevelTarget:
    """Return theta* = argmin_theta E(x, y; theta) on the truth, from a random theta.

    x (n, d), y (n,).

    Raises:
        ValueError: where the training does not end at a minimum, or at no weights at all.
    """
    lower = config.lower(x.shape[1])
    if config.solver == "exact" and lower.shape.size > _EXACT:
        raise ValueError(
            f"this model has {lower.shape.size:,} weights, too many for the exact inverse Hessian: "
            "choose conjugate gradients (solver=cg), or fewer hidden neurons."
        )
    x, y = x.to("cpu", torch.float64), y.to("cpu", torch.float64)
    found = solve(lower, x, y, lower.shape.draw(generator))
    if not found.gradient <= _TRAINED:
        raise ValueError(
            f"training ended at a gradient of {found.gradient:.1e}, above {_TRAINED:g}. "
            "Raise mu, lower beta or take another seed."
        )
    if float(found.theta.norm()) < ZERO_NORM:
        raise ValueError(
            "with this weight decay training ends at weights of zero, which tell nothing of the "
            "points. Choose a smaller weight decay, and a model with hidden layers."
        )
    return BilevelTarget(found.theta, lower)


def energy(target: BilevelTarget, x: Tensor, y: Tensor) -> float:
    """Return || theta(x) - theta* ||^2 / || theta* ||^2 of candidates x (m, d) with labels y (m,).

    The lower level is solved from theta*, as at the start of a run.
    """
    found = solve(target.lower, x, y, target.theta)
    return float((found.theta - target.theta).square().sum() / target.theta.square().sum())


def pictures(n: int, outputs: int, steps: int | None) -> BilevelConfig:
    """Return settings for n training images; `steps` None takes 200."""
    return BilevelConfig(
        m=n, steps=steps or 200, sigma_x=SIGMA_PICTURES, model="hidden", width=PICTURE_WIDTH,
        solver="cg",
    )  # fmt: skip


ATTACK = Attack(
    place=4, key="bilevel", title="Bilevel", paper="Runkel et al. 2024",
    sentence="Trains on its candidates, moves them until weights agree. It knows how the "
    "weights were trained, and attacks a model of its own training on the same points.",
    config=BilevelConfig, state=BilevelState,
    first=init, step=step, terminate=terminate, report=report,
    curves=(("l_upper", "½‖θ(x) − θ*‖²"), ("surrogate", "surrogate ‖∇E‖²")),
    starts=MixedStarts(), own=OwnVictim(victim, energy, lambda state: state.victim), shapes=shapes,
    headline=headline, pictures=pictures,
    file=FileCheck(room=lambda config, d: config.width * (d + 3 + config.width)),
    needs=Needs(non_homogeneous=True),  # asks for no margin; see `Attack.refusal`
)  # fmt: skip
