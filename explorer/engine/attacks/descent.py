"""What reconstructions by descent share: settings, state, a step, projected multipliers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeVar

from torch import Tensor

from explorer.engine.attacks.target import Target
from explorer.engine.kernels.steps import DescentRule, LossTerms
from explorer.engine.known import Knowledge
from explorer.engine.merging import MERGE_ANGLE
from explorer.engine.optim import (
    BETA_SQUARE,
    Moments,
    Tensors,
    adam_step,
    half_cosine,
    momentum_step,
)
from explorer.engine.settings import setting, settings
from explorer.engine.sizes import Like, Size
from explorer.engine.status import Status

# Of Adam from a start that holds data: its least rate, and the way its rates may add up to.
# Measured: candidates on 20 points of a circle leave them at 0.005 (their energy climbs by 0.25),
# and stay at 0.002; with 300 steps of 0.002 candidates that lie between would not arrive.
NEAR_STEP, NEAR_WAY = 0.002, 4.0
PIECE = 2**24  # candidates x neurons x steps between two looks for Ctrl-C; arbitrary
EPS = 1e-12  # arbitrary: below Adam's usual 1e-8, as gradients of a share of ||theta||^2 are small


# On images, chosen on draws of seeds 100 and up (docs/digits.md); the rest are usual defaults.
PER_PICTURE = 4  # candidates per training image from noise; the paper takes at least 2
# Steps between two returns into the range of pixels. Measured on MNIST, 784-1000-1, n = 20, seed
# 100: 18 images are the nearest of all to a candidate, and 12 with a return at every step, which
# holds candidates where they began.
PUT_BACK = 25
LEAST_ALPHA = 1e-6  # arbitrary: far below what does anything; quotients of the least doubles are 0
COMPONENTS = 50  # of public images; chosen on seed 100, see docs/measured/prior.md
SIGMA_PICTURES = 0.1  # noise of a start, of pixels less their mean


@settings
class DescentConfig:
    """Settings that reconstructions from the KKT conditions share; see `kkt` for the losses."""

    # of runs saved before there were such
    absent: ClassVar[dict[str, Any]] = {
        "deep_alpha": 0.0, "near": False, "knows": "nothing", "curve": (),
        "components": COMPONENTS,
    }  # fmt: skip

    # fmt: off
    m: Annotated[int, setting(
        "Number of candidates", title="candidates m", form="sight", place=1, page=(2, 400), ge=2,
    )] = 100
    steps: Annotated[int, setting(
        "Length of the attack", title="steps", form="more", place=15, page=(1, 1_000_000), gt=0,
    )] = 2000
    multipliers: Annotated[Literal["joint", "projected"], setting(
        "Stepped with the candidates, or solved for exactly at each step", title="multipliers",
        form="more", place=1, note="Published: joint.",
    )] = "projected"
    optimizer: Annotated[Literal["sgd", "adam"], setting(
        "SGD with momentum, or Adam", title="optimiser", form="more", place=2,
        note="Published: sgd.",
    )] = "adam"
    lr_x: Annotated[float, setting(
        "Learning rate of the candidates", title="rate of x", form="sight", place=4,
        page=(1e-8, 1e6), gt=0, note="Of the weighted sum of the losses. With Adam about the "
        "length of a step; with SGD per unit of the loss.",
    )] = 0.02
    lr_lam: Annotated[float, setting(
        "Learning rate of the multipliers", title="rate of λ", form="more", place=4,
        page=(1e-8, 1e6), gt=0, note="Of λ over its mean; joint multipliers only.",
    )] = 0.02
    momentum: Annotated[float, setting(
        "Of SGD or Adam, below 1", title="momentum", form="more", place=13, page=(0, 0.999),
        ge=0, lt=1,
    )] = 0.9
    decay: Annotated[float, setting(
        "Last rates as a share of the first; 1: constant, as published", title="last rate",
        form="more", place=14, page=(1e-6, 1), gt=0, le=1, note="Half a cosine between them.",
    )] = 0.01
    sigma_x: Annotated[float, setting(
        "Standard deviation of a start from noise", title="noise σ_x", unit="of the data",
        form="more", place=5, page=(0, 5), ge=0,
    )] = 0.7
    relu_alpha: Annotated[float, setting(
        "Slope sigmoid(αz) in the backward pass", title="ReLU α", form="sight", place=2,
        page=(1, 10_000), ge=LEAST_ALPHA, unit="per unit of a neuron's input",
        note="Of the modified ReLU at the last step.",
    )] = 200.0
    relu_alpha_start: Annotated[float | None, setting(
        "ReLU α at the first step; 0: constant, as published", title="annealed from", form="more",
        place=3, page=(0, 10_000), ge=LEAST_ALPHA, note="It rises geometrically to ReLU α.",
    )] = 5.0
    deep_alpha: Annotated[float, setting(
        "From three layers on, the last ReLU α is times this over the rms length of a neuron's "
        "weights; 0: as it is, as published", title="deep ReLU α", form="more", place=3,
        page=(0, 1000), ge=0, note="The first one is times the root of that. Neurons of a deep "
        "network take in little: sigmoid(αz) would stay half open.",
    )] = 10.0
    lam_start: Annotated[float, setting(
        "The first multipliers are uniform up to this many times their mean",
        title="first λ up to", unit="mean multipliers", form="more", place=12, page=(0, 1e6), ge=0,
    )] = 2.0
    near: Annotated[bool, setting(
        "No annealing, and with Adam short steps from multipliers fitted to the start",
        title="a start that holds data", form="more", place=12,
        labels=(("as from noise", False), ("is kept", True)), note="Annealing drives candidates "
        "apart, and full steps leave even the truth. Published: as from noise.",
    )] = False
    lam_min: Annotated[float, setting(
        "Multipliers below this share of their mean are pulled up", title="floor λ_min",
        unit="mean multipliers", form="sight", place=3, page=(0, 10), ge=0,
    )] = 0.0
    prior: Annotated[Annotated[float, setting("", gt=0)] | Literal["pixels"] | None, setting(
        "Half width of the box that holds the data; 0: none", title="prior box",
        unit="of the data", form="more", place=9, page=(0, 100),
        note=f"'pixels': every {PUT_BACK} steps, and at last, candidates are put back into the "
        "exact range of each coordinate, where the attacker is granted it, as of pixels less a "
        "known mean.",
    )] = None
    knows: Annotated[Knowledge, setting(
        "What the attacker is granted of the points: nothing; the exact box of each coordinate; "
        "the circle that holds them, or their segment on the line; a drawn curve; other points of "
        "the same kind, of whose density they are; all points but one; or, of images, the span of "
        "the principal components of public ones",
        title="attacker knows", form="more", place=9,
        labels=(("nothing", "nothing"), ("the exact box", "range"), ("the circle", "curve"),
                ("a drawn curve", "drawn"), ("public points", "public"),
                ("all but one", "others"), ("components of public images", "components")),
        note=f"Every {PUT_BACK} steps, and at last, candidates are put back there. Points that the "
        "attacker is given are no claims.",
    )] = "nothing"
    curve: Annotated[tuple[float, ...], setting(
        "The drawn curve that holds the points: x and y of one corner after the other",
        title="curve", unit="of the data", note="Drawn on the plane. Needs knows='drawn'.",
    )] = ()
    components: Annotated[int, setting(
        "How many principal components of public images span the images", title="components",
        ge=1, page=(1, 1000), note="Needs knows='components'.",
    )] = COMPONENTS
    weight_dual: Annotated[float, setting(
        "Pull of the multipliers up to λ_min", title="weight of floor", form="more", place=11,
        page=(0, 1e6), ge=0, unit="per squared mean multiplier", note="Published: 5.",
    )] = 5.0
    weight_prior: Annotated[float, setting(
        "Pull back into the prior box", title="weight of box", form="more", place=10,
        page=(0, 1e6), ge=0, unit="per squared unit of the data", note="Published: 1.",
    )] = 1.0
    weight_margin: Annotated[float, setting(
        "Pull of the candidates onto |Φ| = 1: support points lie there; 0 as published",
        title="weight of margin", unit="per squared margin", form="more", place=6,
        page=(0, 1000), ge=0,
        note="Of the last step, rising linearly from 0: from the first step on it would hold "
        "candidates where they happen to meet the margin.",
    )] = 0.4
    merge_angle: Annotated[float, setting(
        "Neurons closer than this many radians are merged before the attack; 0: none",
        title="merge angle", unit="radians", form="more", place=7, page=(0, 1), ge=0,
    )] = MERGE_ANGLE
    # fmt: on

    def alpha(self, t: int, steep: float = 1.0) -> float:
        """Return the slope alpha of the modified ReLU at iteration t.

        It rises geometrically from `relu_alpha_start` to `relu_alpha`.

        Args:
            t: iteration, from 0.
            steep: factor of the last one, as `steepness` says; the first one takes its root.

        Returns:
            The slope, per unit of a neuron's input.

        Source: Haim et al. 2022 for a constant slope; Loo et al. 2023 for the annealing.
        """
        end = self.relu_alpha * steep
        begin = None if self.near else self.relu_alpha_start
        start = end if begin is None else begin * math.sqrt(steep)
        return start * math.pow(end / start, min(t / self.steps, 1.0))

    def rate(self, t: int) -> float:
        """Return the share of lr_x and lr_lam taken at iteration t.

        It falls by half a cosine from 1 to `decay`; of a kept start from less.

        Args:
            t: iteration, from 0.

        Returns:
            The share, a pure number.
        """
        most = max(NEAR_STEP, NEAR_WAY / self.steps) / self.lr_x if self.fitted else 1.0
        return min(most, 1.0) * half_cosine(t / self.steps, self.decay)

    @property
    def half_width(self) -> float:
        """Return the half width of the box into which candidates are pulled; infinity for none."""
        return self.prior if isinstance(self.prior, float) else math.inf

    @property
    def returns(self) -> bool:
        """Return whether candidates return to what is known of the points, between runs."""
        return self.prior == "pixels" or self.knows != "nothing"

    @property
    def fitted(self) -> bool:
        """Return whether a kept start begins with fitted multipliers, and with short steps.

        The published rates of SGD are those of drawn multipliers, and diverge from fitted ones.
        """
        return self.near and self.optimizer == "adam"


C = TypeVar("C", bound=DescentConfig)


def steepness(target: Target, config: DescentConfig) -> float:
    """Return the factor on the last alpha, 1 of two layers; see `DescentConfig.deep_alpha`.

    The length is the geometric mean, over the hidden layers, of the root mean square of the norms
    of (w, b). At margin 1 it is 0.55 of 2-100-100-1 and 0.2 of 2-1000-1000-1 on the alternating
    circle. With alpha = 200 the training points themselves left 0.81 of ||theta||^2 of the latter,
    with 10,000 they leave 0.47.
    """
    if len(target.net.weights) < 3 or not config.deep_alpha:
        return 1.0
    return max(config.deep_alpha / target.row_length, LEAST_ALPHA)


@dataclass(frozen=True, eq=False)
class DescentState:
    """One iterate, with the losses and gradients of this very iterate.

    Attributes:
        t: iteration.
        x: candidates (m, d).
        y: their labels (m,).
        lam: multipliers (m,), those of the target at margin 1.
        l_stationary: share of ||theta||^2 left unexplained, ().
        l_dual: see `kkt`, ().
        l_prior: see `kkt`, ().
        l_margin: see `kkt`, ().
        loss: the weighted sum, ().
        grad_x: gradient of `loss` (m, d).
        moments: of the optimiser, for x and for lam / mean; under "sgd" their mean is the velocity.
        diverged: whether the next step was not finite and was not taken; of a batch, by all.
    """

    t: int
    x: Tensor
    y: Tensor
    lam: Tensor
    l_stationary: Annotated[Tensor, Size()]
    l_dual: Annotated[Tensor, Size()]
    l_prior: Annotated[Tensor, Size()]
    l_margin: Annotated[Tensor, Size()]
    loss: Annotated[Tensor, Size()]
    grad_x: Annotated[Tensor, Size("m d")]
    moments: Annotated[Moments, Like("x", "lam")]
    diverged: bool = field(default=False, kw_only=True)

    def numbers(self) -> dict[str, float]:
        """Return the parts of the loss by name, for curves."""
        names = ("l_stationary", "l_margin", "l_dual", "l_prior", "loss")
        return {name: float(getattr(self, name)) for name in names}


def descent_step(
    optimizer: str,
    params: Tensors,
    moments: Moments,
    grads: Tensors,
    rates: tuple[float, ...],
    momentum: float,
) -> tuple[Tensors, Moments]:
    """Return one step of "adam", or of the heavy ball: the moments' mean is then the velocity."""
    if optimizer == "adam":
        return adam_step(params, moments, grads, rates, beta_mean=momentum, eps=EPS)
    params, velocity = momentum_step(params, moments.mean, grads, rates, momentum)
    return params, Moments(moments.t + 1, velocity, moments.square)


def check_start(x: Tensor, y: Tensor, d: int, axes: int = 2) -> None:
    """Refuse a start other than x (m, d) and y (m,), with 3 axes of several starts. ValueError."""
    fits = 2 <= x.ndim <= axes and x.shape[-1] == d and x.numel()
    if not fits or y.shape not in (x.shape[:-1], x.shape[-2:-1]):
        raise ValueError(
            f"start needs x (m, {d}) and y (m,) with m >= 1; "
            f"got {tuple(x.shape)} and {tuple(y.shape)}"
        )


def put_back(target: Target, config: DescentConfig, t: int, x: Tensor, y: Tensor) -> Tensor:
    """Return x (..., m, d) of step t, put back to what is known of the points where that is due."""
    due = config.returns and (t % PUT_BACK == 0 or t >= config.steps)
    if due and config.prior == "pixels":
        x = target.put_back(x)
    return target.put_back_to_known(x, y) if due and config.knows != "nothing" else x


class Descending(Protocol):
    """A state of a descent, as `descent_status` reads it."""

    @property
    def t(self) -> int:
        """Return the number of steps taken."""

    @property
    def diverged(self) -> bool:
        """Return whether the next step was not finite and was not taken."""


def descent_status(state: Descending, steps: int, *grads: Tensor) -> Status:
    """Return how a descent with these gradients stands, of which so many steps were planned."""
    if state.diverged:
        return Status.DIVERGED
    if not any(bool(grad.any()) for grad in grads):
        return Status.CONVERGED
    return Status.FINISHED if state.t >= steps else Status.RUNNING


S = TypeVar("S", bound=DescentState)


def _columns(target: Target, config: DescentConfig) -> Tensor | None:
    """Return the coordinates that are not known to be 0; None where that is all of them."""
    known = config.prior == "pixels" and config.knows == "nothing"
    return target.columns if known else None


def _narrow_state(state: S, columns: Tensor) -> S:
    """Return the state of these coordinates alone."""
    (mean, *means), (square, *squares) = state.moments.mean, state.moments.square
    moments = Moments(
        state.moments.t, (mean[..., columns], *means), (square[..., columns], *squares)
    )
    x, grad_x = state.x[..., columns], state.grad_x[..., columns]
    return replace(state, x=x, grad_x=grad_x, moments=moments)


def _wide_state(state: S, columns: Tensor, d: int) -> S:
    """Return the state of d coordinates; those that it has not are 0, and so are their moments."""

    def wide(v: Tensor) -> Tensor:
        return v.new_zeros(*v.shape[:-1], d).index_copy_(-1, columns, v)

    (mean, *means), (square, *squares) = state.moments.mean, state.moments.square
    moments = Moments(state.moments.t, (wide(mean), *means), (wide(square), *squares))
    return replace(state, x=wide(state.x), grad_x=wide(state.grad_x), moments=moments)


def first_state(
    target: Target, config: DescentConfig, x: Tensor, evaluate: Callable[[Target, Tensor], S]
) -> S:
    """Return the first state, of candidates x (..., m, d) put back to what is known of them.

    Args:
        target: the attacked weights.
        config: the settings.
        x: where they begin.
        evaluate: (target, x) -> the state there.
    """
    columns = _columns(target, config)
    if columns is None:
        return evaluate(target, x)
    return _wide_state(evaluate(target.narrow, x[..., columns]), columns, target.net.d)


def steps_with_returns(
    target: Target, state: S, config: C, end: int, terminate: Callable[[S, C], Status],
    free_run: Callable[[Target, S, C, int], S], moved: Callable[[Target, S, Tensor], S],
) -> S:  # fmt: skip
    """Return the state at step `end`: free steps, and returns to what is known of the points.

    Coordinates that are known to be 0 are left out of both.

    Args:
        target: what grants it.
        state: where to begin.
        config: the settings, which say that candidates return.
        end: the step to reach.
        terminate: (state, config) -> how the run stands.
        free_run: (target, state, config, steps) -> the state so many steps on, by settings without
            a prior.
        moved: (target, state, x) -> the state with these candidates.
    """
    columns = _columns(target, config)
    if columns is not None:
        state, rest = _narrow_state(state, columns), (config, end, terminate, free_run, moved)
        return _wide_state(steps_with_returns(target.narrow, state, *rest), columns, target.net.d)
    box = None if config.prior == "pixels" else config.prior
    free = replace(config, prior=box, knows="nothing")
    while state.t < end and not terminate(state, config).over:
        due = min(PUT_BACK - state.t % PUT_BACK, max(1, config.steps - state.t))
        state = free_run(target, state, free, min(due, end - state.t))
        x = put_back(target, config, state.t, state.x, state.y)
        if x is not state.x and not state.diverged:
            state = moved(target, state, x)
    return state


def rule_of(config: DescentConfig) -> DescentRule:
    """Return how the optimiser moves, for compiled loops."""
    return DescentRule(config.optimizer == "adam", float(config.momentum), BETA_SQUARE, EPS)


def terms_of(config: DescentConfig, square: float, level: float) -> LossTerms:
    """Return what the losses of weights of this squared norm are made with, for compiled loops."""
    floor, box = float(config.weight_dual), float(config.weight_prior)
    return LossTerms(square, level, float(config.lam_min), floor, config.half_width, box)


def step_table(
    config: DescentConfig, t: int, moved: int, steps: int, steep: float
) -> list[list[float]]:
    """Return a row of six numbers for each step after t, the optimiser having moved so many times.

    The rates of x and of lam, Adam's second correction, the share of the rates, alpha and the
    margin's weight.
    """
    rows = []
    for at in range(t, t + steps):
        moved += 1
        first, second = 1.0, 1.0
        if config.optimizer == "adam":
            first -= config.momentum**moved
            second -= BETA_SQUARE**moved
        margin = config.weight_margin * min((at + 1) / config.steps, 1.0)
        share = config.rate(at) / first
        rows.append([
            config.lr_x * share, config.lr_lam * share, second**-0.5, share,
            config.alpha(at + 1, steep), margin,
        ])  # fmt: skip
    return rows


def start_config(config: C, mix_data: float) -> C:
    """The settings of a start with this share of truth and held-out data: it is kept, if any."""
    return replace(config, near=mix_data > 0)


def first_config(config: C) -> C:
    """The settings with which the first state is evaluated: its multipliers may be fitted."""
    return replace(config, multipliers="projected") if config.fitted else config


def on_pictures(n: int, steps: int | None) -> dict[str, Any]:
    """Settings by name of a descent for n training images; `steps` None takes 50 n, at least 1200.

    On seeds 100 and 101, longer descents found more at each n: docs/measured/images-of-mnist.md.
    """
    return {
        "steps": steps or max(1200, 50 * n), "m": PER_PICTURE * n,
        "prior": "pixels", "sigma_x": SIGMA_PICTURES,
        "weight_margin": 0.3, "relu_alpha_start": 30.0, "deep_alpha": 0.0,
    }  # fmt: skip
