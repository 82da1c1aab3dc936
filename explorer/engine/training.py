"""Training to the maximum margin: what a run is asked to do, its states, and a step.

>>> import torch
>>> from explorer import TrainConfig, preset, training
>>> data, config = preset("moons", n=10), TrainConfig(widths=(20,), steps=300)
>>> state = training.init(data, config, torch.Generator().manual_seed(0))
>>> after = training.step(data, state, config)
>>> after.t, after.log_loss < state.log_loss
(1, True)
>>> training.advance(data, state, config, 50).t
50
>>> for state in training.iterate(data, state, config):
...     pass
>>> training.terminate(state, config), state.q_min > 0
(<Status.FINISHED: 'finished'>, True)
>>> more = data.with_point([0.0, 1.0], 1)  # drawn while training runs
>>> training.refresh(more, state, config).t
300
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Literal

import torch
from torch import Tensor

from explorer.engine import optim, private
from explorer.engine.classes import check_labels
from explorer.engine.data import Dataset, unit_of
from explorer.engine.data.unit import in_its_unit
from explorer.engine.kernels import training_loops, training_step
from explorer.engine.kernels.steps import TrainRule
from explorer.engine.kernels.training_step import Iterate, Masks
from explorer.engine.margin import (
    MAX_LOG_GAIN,
    Loss,
    gamma_bar,
    smoothed_margin,
)
from explorer.engine.network import Network, init_network, revived_network
from explorer.engine.settings import setting, settings
from explorer.engine.sizes import Size
from explorer.engine.status import Status
from explorer.engine.threads import few_threads

Method = Literal["gradient", "ascent"]
StepRule = Literal["constant", "loss-scaled"]
Init = Literal["small", "standard"]

# What `lr=None` stands for. The two rules measure a step in different units.
RATES: dict[StepRule, float] = {
    "loss-scaled": 1.0,  # the inverse of the curvature bound
    "constant": 0.01,  # Haim et al. 2022, appendix B
}
BATCH_RATE = 0.02  # loss-scaled mini-batches; at 1 they switch all neurons off: docs/science.md


@settings
class TrainConfig:
    """A training run; the defaults reach the margin on every preset within seconds.

    Raises:
        ValueError: where a setting is out of its bounds, or two contradict each other.

    Example:
        >>> from explorer import TrainConfig
        >>> TrainConfig().rate, TrainConfig(step_rule="constant").rate
        (1.0, 0.01)
    """

    # fmt: off
    widths: Annotated[tuple[Annotated[int, setting("Of one layer", ge=1)], ...], setting(
        "Neurons in each hidden layer", title="neurons each", unit="neurons", form="sight", place=1,
        page=(1, 2000), strict=False, min_length=1, note="First layer first. On the page all "
        "layers have one width, and **hidden layers** says how many there are.",
    )] = (100,)
    bias: Annotated[bool, setting("Whether the first layer has a bias")] = True
    all_biases: Annotated[bool, setting(
        "In every layer the network is no longer homogeneous: the theorems do not apply",
        title="biases", form="more", place=10,
        labels=(("first layer", False), ("every layer", True)),
        note="Margins have no limit theorem then, and the constant or loss-scaled gradient alone "
        "trains the network.",
    )] = False
    loss: Annotated[Loss, setting(
        "exp(−q) or log(1 + exp(−q)) of the margins q", title="loss", form="more", place=1,
    )] = "exponential"
    method: Annotated[Method, setting(
        "Gradient descent, or normalised ascent of the smoothed margin: it goes to the limit in "
        "about a second", title="method", form="sight", place=2,
        labels=(("gradient descent", "gradient"), ("normalised ascent", "ascent")),
        note="The ascent always takes the loss-scaled step.",
    )] = "gradient"
    step_rule: Annotated[StepRule, setting(
        "Constant, or divided by the loss, so that the direction keeps moving", title="step rule",
        form="more", place=2,
    )] = "loss-scaled"
    lr: Annotated[float | None, setting(
        "Rate in the units of the step rule; 0: automatic, the rule's own", title="step size",
        form="more",
        place=2, page=(0, 100), gt=0, unit="of the step rule",
        note="None takes 1 (loss-scaled: the inverse of the curvature bound), with mini-batches "
        "0.02, or 0.01 (constant, on the mean loss).",
    )] = None
    momentum: Annotated[float, setting(
        "Heavy-ball momentum, below 1", title="momentum", form="more", place=3, page=(0, 0.999),
        ge=0, lt=1, note="0.99 separates and levels the margins several times sooner than 0.9 "
        "(`python benchmarks/bench_training.py`).",
    )] = 0.99
    batch: Annotated[int | None, setting(
        "Points per step; 0: all", title="mini-batch", unit="points", form="more", place=4,
        page=(0, 200), ge=1, note="None takes all.",
    )] = None
    init_scale: Annotated[float, setting(
        "Standard deviation of the first layer at t = 0; Haim et al.: 0.0001, with a long plateau",
        title="init scale", form="more", place=8, page=(1e-8, 10), ge=0,
        note="Of weights and biases. 0.1 starts to move at once; the 1e-4 of Haim et al. gives "
        "fewer neuron directions and, with the constant rule, a plateau of many thousand steps.",
    )] = 0.1
    init: Annotated[Init, setting(
        "Small in the first layer, or torch's default in every layer", title="first weights",
        form="more", place=9, labels=(("small first layer", "small"), ("standard", "standard")),
    )] = "small"
    steps: Annotated[int, setting(
        "Planned steps: the run ends there", title="steps at most", form="more", place=5,
        page=(1, 10_000_000), ge=0, note="Raise it to go on.",
    )] = 20_000
    revive: Annotated[bool, setting(
        "Whether neurons that are off on every point are drawn anew where the points are not "
        "separated", note="Without it a trained network often cannot learn a new point.",
    )] = True
    beta_end: Annotated[float, setting(
        "Inverse temperature of the ascent at its end", ge=1,
        note="1e3 leaves the margins of support points within 1% of each other.",
    )] = 1e3
    ascent_steps: Annotated[int, setting(
        "Steps in which the ascent goes to its limit", title="ascent steps", form="more", place=6,
        page=(1, 1_000_000), ge=1, note="Measured: 4000 level all presets.",
    )] = 4000
    weight_decay: Annotated[float, setting(
        "mu of mean loss + mu/2 |theta|^2, a defence: the norm stays finite; gradient descent "
        "only", title="weight decay", form="more", place=7, page=(0, 100), ge=0,
        note="0 for none. With it training ends at a stationary point.",
    )] = 0.0
    private_noise: Annotated[float, setting(
        "DP-SGD, a defence: noise of a step, a standard deviation over the clipping; 0: none",
        title="private noise", form="more", place=7, page=(0, 10_000), ge=0, unit="of the clipping",
        note="After t steps ε is that of √t over it at δ = 10⁻⁵. Every step then takes all points, "
        "by the constant rule.",
    )] = 0.0
    private_clip: Annotated[float, setting(
        "DP-SGD: the length to which each point's gradient is cut", title="clipping", form="more",
        place=7, page=(1e-6, 1e6), gt=0,
    )] = 1.0
    # fmt: on

    def __post_init__(self) -> None:
        """Refuse settings that contradict each other."""
        if self.all_biases and (self.method == "ascent" or not self.bias):
            raise ValueError(
                "all_biases needs method='gradient', as the ascent scales homogeneous weights, and "
                f"bias=True; got method={self.method!r} and bias={self.bias}"
            )
        if self.weight_decay and self.method == "ascent":
            raise ValueError(
                "the ascent follows the direction of the weights, which a decay of their norm does "
                f"not change; got weight_decay={self.weight_decay}. Take method='gradient'."
            )
        if self.private_noise and (self.method == "ascent" or self.batch is not None):
            raise ValueError(
                "private training takes all points in every step of gradient descent; got "
                f"method={self.method!r} and batch={self.batch}. Take method='gradient' and no "
                "mini-batch."
            )

    @property
    def rule(self) -> StepRule:
        """Return the step rule in force: the ascent and private training have only one."""
        if self.private_noise:
            return "constant"
        return "loss-scaled" if self.method == "ascent" else self.step_rule

    @property
    def rate(self) -> float:
        """The rate in force, in the units of the step rule: `lr`, or the default of the rule."""
        return RATES[self.rule] if self.lr is None else self.lr


def rate_on(config: TrainConfig, n: int) -> float:
    """Return the rate in force on n points; mini-batches of them have a smaller default."""
    part = config.lr is None and config.batch is not None and config.batch < n
    return BATCH_RATE if part and config.rule == "loss-scaled" else config.rate


# --- One moment of a training run; `training` makes them ----------------------------------------

MAX_EXPONENT = 700.0  # exp(700) is still a double
MAX_DECAY = 300.0  # arbitrary: e^300 squared is still a double, and far beyond any trust region


@dataclass(frozen=True, eq=False)
class TrainState:
    """One iterate, with everything that belongs to it and nothing of the next.

    Attributes:
        t: steps taken.
        net: the carried weights, of finite norm.
        log_scale: the true weights are exp(log_scale) times those of `net`.
        q: margins of `net` (n,); those of the true weights are exp(order * log_scale) q.
        log_loss: log of the summed loss of the true weights; 0 for no points.
        grads: (P,) like net.theta: sum_i p_i y_i grad Phi(net; x_i). With a mini-batch, the
            unbiased estimate of it that this iterate's batch gives.
        log_pull: log of the mean of -l'(q_i) at the true weights.
        kappa: sum_i p_i ||grad Phi(net; x_i)||^2, 0 when no neuron is active on any point.
        rho: norm of net.theta.
        velocity: (P,) the last displacement, in the units of `net`. Like kappa, rho and grads it is
            that of `net.in_unit()`.
        batch_seed: with t it fixes every mini-batch.
        loss: the loss that `log_loss` and `grads` are of.
        diverged: the step from here would not be finite and was not taken.

    Example:
        >>> import torch
        >>> from explorer import TrainConfig, preset, training
        >>> data, config = preset("alternating-line", n=3), TrainConfig(widths=(8,))
        >>> state = training.init(data, config, torch.Generator().manual_seed(0))
        >>> state.t, state.net, state.q.shape
        (0, Network(1-8-1, order 2, 1 output, float64), torch.Size([3]))
    """

    t: int
    net: Network
    log_scale: float
    q: Annotated[Tensor, Size("n", finite=True)]
    log_loss: float
    grads: Annotated[Tensor, Size("P", finite=True)]
    log_pull: float
    kappa: float
    rho: float
    velocity: Annotated[Tensor, Size("P", finite=True)]
    batch_seed: int
    loss: Loss
    diverged: bool = False

    @cached_property
    def q_min(self) -> float:
        """Return the smallest margin of `net`; 0 for no points."""
        return float(self.q.min()) if self.q.shape[0] else 0.0

    @cached_property
    def gamma_bar(self) -> float:
        """Return the normalised margin q_min / rho^order, the same for `net` and the true weights.

        Source: Lyu and Li 2020, definition 1.
        """
        return gamma_bar(self.q_min, self.rho, self.net.depth)

    @cached_property
    def gamma_tilde(self) -> float:
        """Return the smoothed normalised margin l^{-1}(Loss) / rho^order; 0 for no points.

        Source: Lyu and Li 2020, definition 2.
        """
        gain = self.net.depth * self.log_scale
        if not self.q.shape[0]:
            return 0.0
        return smoothed_margin(self.log_loss, self.rho, self.net.depth, self.loss, gain)


# --- Training to the maximum margin: gradient descent on exponential losses that never overflows
# Loss(theta) = sum_i l(q_i),  q_i = y_i Phi(theta; x_i),  l(q) = e^{-q} or log(1 + e^{-q})
#
# With C > 2 classes and outputs q_i is the smooth margin -log sum_{c != y_i} e^{Phi_c - Phi_{y_i}}
# (`classes`): l(q_i) = log(1 + e^{-q_i}) is then the cross-entropy.
#
# Once the points are separated the norm of theta grows without bound while its direction converges
# to a KKT point of the margin problem (Lyu and Li 2020). So theta is carried as (net, log_scale),
# the true weights being exp(log_scale) net.theta: the norm of `net` stays near 1 by factors of two,
# which round nothing, and everything that is exponential stays a logarithm. A network with biases
# beyond its first layer is not homogeneous: there log_scale stays 0.
#
# Three ways to choose the step along g = sum_i p_i y_i grad Phi(x_i), p = softmax(log -l'(q)):
#
# - gradient, constant: theta += rate * (-grad of the mean loss). Slows down as 1/t: the loss, and
#   with it the gradient, goes to 0.
# - gradient, loss-scaled: theta += rate * g / kappa, kappa = sum_i p_i ||grad Phi(x_i)||^2. For the
#   exponential loss g is the gradient of -log Loss (a loss-based rate, as in the experiments of Lyu
#   and Li 2020), and kappa bounds the curvature of log Loss that comes from the margins, so that
#   rate = 1 needs no tuning: each margin changes by about 1 per step, the direction by less and
#   less. Two layers of width 100 end 0.1 to 20% below the largest possible gamma_bar (presets).
# - ascent: the same step, but once the points are separated the scale runs ahead of the gradient:
#   p = softmax(-beta_t q / mean q) with beta_t at least geometric in t (theory 1.7). Levels the
#   margins several times sooner, at a slightly smaller gamma_bar on hard sets.

__all__ = [
    "TrainConfig", "TrainState", "advance", "init", "iterate", "refresh", "step", "terminate",
]  # fmt: skip

TRUST = 0.1  # measured: at 0.3 hard 1-D sets lose their neurons early, at 0.03 they get stuck
NORM_RANGE = 16.0  # arbitrary: the carried norm is brought back to [1, 2) when it leaves 16^+-1
COOLED = 1.0  # arbitrary: p is then neither uniform nor all on the worst point


def init(
    target: Dataset, config: TrainConfig, generator: torch.Generator, net: Network | None = None
) -> TrainState:
    """Return the first state of a run: a random network, or the given one, at t = 0.

    A random network is trained in the unit of the points (`unit_of`), a given one in its own: of
    points as large as the plane that is 1.

    Args:
        target: points x (n, d) and labels y (n,). The weights take their type and device.
        config: the settings.
        generator: draws the weights and the seed of the mini-batches.
        net: a network to go on from; None draws one.

    Returns:
        The state.

    Raises:
        ValueError: where `net` takes points of another dimension or has too few outputs, where the
            ascent meets biases beyond its first layer, or where outputs are not finite.

    Source: Haim et al. 2022, appendix B, for the small first layer.
    """
    if net is None:
        small = config.init_scale if config.init == "small" else None
        net = init_network(
            target.d, config.widths, generator=generator, first_scale=small, bias=config.bias,
            all_biases=config.all_biases, outputs=target.outputs,
        ).per(unit_of(target))  # fmt: skip
    if net.d != target.d:
        raise ValueError(
            f"the network takes points of dimension {net.d}; the set has dimension {target.d}"
        )
    check_labels(target.y, net.outputs)
    if not net.homogeneous and config.method == "ascent":
        raise ValueError("the ascent needs a homogeneous network; take method='gradient'")
    seed = int(torch.randint(2**31, (), generator=generator))
    return _at_rest(target, config, 0, net, seed)


@in_its_unit
@few_threads()
def step(target: Dataset, state: TrainState, config: TrainConfig) -> TrainState:
    """Return the state after one update.

    Where the update would not be finite it is not taken: the same state comes back, `diverged`.

    Args:
        target: points x (n, d) and labels y (n,).
        state: the state to go on from.
        config: the settings.

    Returns:
        The state at t + 1, or the diverged one.

    Source: Lyu and Li 2020 for the loss-based rate; the bound by kappa and the ascent are our own.
    """
    if state.diverged or not target.n:
        return state if state.diverged else replace(state, t=state.t + 1)
    n, t, seed = target.n, state.t + 1, state.batch_seed
    if config.private_noise:
        return _private_step(target, state, config) or replace(state, diverged=True)
    masks = _masks(config, n, seed)
    sound, new = training_step.step(
        state.net, target.x, target.y, _rule(config, n, state.net), _iterate(state), t,
        None if masks is None else masks(t, 1)[0],
    )  # fmt: skip
    if not sound:
        return replace(state, diverged=True)
    return _state(config, new, t, state.net, seed)


@in_its_unit
def refresh(target: Dataset, state: TrainState, config: TrainConfig) -> TrainState:
    """Return the same weights and time on other points: training goes on from where it is.

    Where the points are still separated nothing else changes. Where they are not, three things
    stand in the way of a network of large norm: the worst point would outweigh all others until
    every neuron that serves them is gone, so the scale, a mere temperature, is lowered until the
    worst margin is -COOLED; the velocity still serves the old points, so it is forgotten; and
    with `config.revive` the neurons that are off on every point are drawn anew.

    Args:
        target: the new points x (n, d) and labels y (n,).
        state: the state on the old points.
        config: the settings.

    Returns:
        The state on the new points, at the same t.

    Raises:
        ValueError: where a point lies so far out that the margins are not finite.

    Source: own; new neurons are drawn as in Sokar et al. 2023.
    """
    net, scale, velocity = state.net, state.log_scale, state.velocity
    following = _evaluate(target, config, state.t, net, scale, velocity, state.batch_seed)
    if following is not None and following.q_min < 0:
        if config.revive:
            seed = (state.batch_seed + state.t) % 2**63
            net = revived_network(following.net, target.x, torch.Generator().manual_seed(seed))
        if _may_scale(config, net):  # only then is the scale a mere temperature
            worst = (math.log(COOLED) - math.log(-following.q_min)) / net.order
            scale = min(worst, following.log_scale)
        velocity = torch.zeros_like(velocity)
        following = _evaluate(target, config, state.t, net, scale, velocity, state.batch_seed)
    if following is None:
        raise ValueError("a point lies so far out that the margins are not finite; move it closer")
    return following


def with_net(
    target: Dataset, state: TrainState, config: TrainConfig, net: Network, t: int
) -> TrainState:
    """The run of `state` at step t with these weights in place of its own, of any width, at rest.

    ValueError where their outputs are not finite.
    """
    return _at_rest(target, config, t, net, state.batch_seed)


def earlier_weights(before: TrainState | None, state: TrainState) -> Network | None:
    """Return the weights of an earlier state of a run at the scale of a later one, as a snapshot.

    Args:
        before: the earlier state, if any.
        state: the later one.

    Returns:
        The network; None where there is no earlier state, nothing has changed since, or the network
        is of other widths, as after a finish.
    """
    if before is None:
        return None
    then, now = before.net.in_unit(), state.net.in_unit()
    if [p.shape for p in then.parameters] != [p.shape for p in now.parameters]:
        return None
    scale = before.log_scale - state.log_scale
    then = then.with_theta(then.theta * math.exp(min(max(scale, -MAX_EXPONENT), MAX_EXPONENT)))
    return None if torch.equal(then.theta, now.theta) else then.per(state.net.unit)


def _at_rest(target: Dataset, config: TrainConfig, t: int, net: Network, seed: int) -> TrainState:
    """Return the state at these weights, at rest; ValueError where outputs are not finite."""
    unit = net.unit
    net = net.in_unit().to(dtype=target.x.dtype, device=target.x.device)
    seen = target if unit == 1 else target.over(unit)
    state = _evaluate(seen, config, t, net, 0.0, torch.zeros_like(net.theta), seed)
    if state is None:
        raise ValueError("these weights give outputs that are not finite; give smaller ones")
    return state if unit == 1 else replace(state, net=state.net.per(unit))


def terminate(state: TrainState, config: TrainConfig) -> Status:
    """Return how the run stands.

    Args:
        state: a state of the run.
        config: the settings.

    Returns:
        RUNNING, FINISHED, DIVERGED, or DEAD where no neuron is active on any point.
    """
    if state.diverged:
        return Status.DIVERGED
    if state.q.shape[0] and state.kappa == 0:
        return Status.DEAD
    return Status.FINISHED if state.t >= config.steps else Status.RUNNING


@in_its_unit
def advance(target: Dataset, state: TrainState, config: TrainConfig, steps: int) -> TrainState:
    """Return the state after so many steps, or the last one where the run is over before.

    The steps are those of `step`, to rounding, and sooner: in float64 on the CPU compiled loops
    take them, and on a device blocks that read nothing back; see `training_loops` and
    `training_step`.

    Args:
        target: points x (n, d) and labels y (n,).
        state: the state to go on from.
        config: the settings.
        steps: how many, 1 or more.

    Returns:
        The state at t + steps, at `config.steps`, or at the end of a run that cannot go on.
    """
    end = min(state.t + steps, config.steps)
    state = state if terminate(state, config).over else _leap(target, state, config, end - state.t)
    while state.t < end and not terminate(state, config).over:
        state = step(target, state, config)
    return state


def iterate(
    target: Dataset, state: TrainState, config: TrainConfig, stride: int = 1
) -> Iterator[TrainState]:
    """Yield the states after `state`, until `terminate` says that the run is over.

    Args:
        target: points x (n, d) and labels y (n,).
        state: the state to go on from.
        config: the settings.
        stride: above 1, only the states whose t it divides, and the last one.

    Yields:
        States; `advance` makes each when it is asked for.
    """
    while not terminate(state, config).over:
        state = advance(target, state, config, stride - state.t % stride)
        yield state


def states(
    target: Dataset, config: TrainConfig, generator: torch.Generator, net: Network | None = None,
    stride: int = 1,
) -> Iterator[TrainState]:  # fmt: skip
    """Yield a whole run: the state of `init`, then those of `iterate`."""
    yield (first := init(target, config, generator, net))
    yield from iterate(target, first, config, stride)


def _leap(target: Dataset, state: TrainState, config: TrainConfig, steps: int) -> TrainState:
    """So many steps in one go; fewer where the run cannot go on, none where nothing takes them."""
    if config.private_noise:
        return state
    if training_loops.serves(state.net, target.x):
        advance_by = training_loops.advance
    elif training_step.serves(target.x):
        advance_by = training_step.advance
    else:
        return state
    masks = _masks(config, target.n, state.batch_seed)
    rule = _rule(config, target.n, state.net)
    at, t = advance_by(state.net, target.x, target.y, rule, _iterate(state), state.t, steps, masks)
    return _state(config, at, t, state.net, state.batch_seed)


def _rule(config: TrainConfig, n: int, net: Network) -> TrainRule:
    """Return how n points train the network."""
    return TrainRule(
        config.method == "ascent", config.rule == "constant", config.loss == "logistic",
        rate_on(config, n), config.momentum, config.weight_decay, math.log(config.beta_end),
        float(config.ascent_steps), TRUST, NORM_RANGE if _may_scale(config, net) else math.inf,
        MAX_EXPONENT, MAX_DECAY, MAX_LOG_GAIN,
    )  # fmt: skip


def _may_scale(config: TrainConfig, net: Network) -> bool:
    """Return whether the weights may be carried at another scale: noise is of the true ones."""
    return net.homogeneous and not config.private_noise


def _private_step(target: Dataset, state: TrainState, config: TrainConfig) -> TrainState | None:
    """Return the state after a step of DP-SGD; None where a number of it is not finite."""
    net, clip, seed = state.net, config.private_clip, state.batch_seed
    total = private.clipped_gradient(net, target.x, target.y, config.loss, clip)
    total = total + config.private_noise * clip * private.noise_like(net.theta, seed, state.t)
    move = config.rate * (total / target.n - config.weight_decay * net.theta)
    velocity = config.momentum * state.velocity + move
    moved = net.with_theta(net.theta + velocity)
    return _evaluate(target, config, state.t + 1, moved, state.log_scale, velocity, seed)


def _masks(config: TrainConfig, n: int, seed: int) -> Masks:
    """Return the mini-batches of a run on n points; None where each step takes all."""
    batch = config.batch
    if batch is None or batch >= n:
        return None
    return lambda t, steps: optim.batch_masks(n, batch, t, steps, seed)


def _iterate(state: TrainState) -> Iterate:
    """Return the tensors of a state."""
    now = (state.log_scale, state.log_loss, state.log_pull, state.kappa, state.rho)
    numbers = _numbers(now, state.net)
    return Iterate(state.net.theta, state.velocity, state.grads, state.q, numbers)


def _numbers(values: float | tuple[float, ...], net: Network) -> Tensor:
    """Numbers as a tensor beside the weights, or on the CPU where their device has no float64."""
    device = net.device if net.device.type != "mps" else "cpu"
    return torch.tensor(values, dtype=torch.float64).to(device)


def _state(config: TrainConfig, at: Iterate, t: int, net: Network, seed: int) -> TrainState:
    """Return the state of an iterate, its numbers read."""
    log_scale, log_loss, log_pull, kappa, rho = at.now.tolist()
    return TrainState(
        t, net.with_theta(at.theta), log_scale, at.q, log_loss, at.grads, log_pull, kappa, rho,
        at.velocity, seed, config.loss,
    )  # fmt: skip


def _evaluate(
    target: Dataset, config: TrainConfig, t: int, net: Network, log_scale: float, velocity: Tensor,
    batch_seed: int,
) -> TrainState | None:  # fmt: skip
    """Return the state at these weights, or None where a number of it is not finite."""
    n, rule, scale = target.n, _rule(config, target.n, net), _numbers(log_scale, net)
    if not n:
        theta, velocity, scale, rho = training_step.scaled_weights(
            net, rule, net.theta, velocity, scale
        )
        zero, none = torch.zeros_like(scale), torch.zeros_like(velocity)
        at = Iterate(theta, none, none, target.y, torch.stack([scale, zero, zero, zero, rho]))
    else:
        masks = _masks(config, n, batch_seed)
        at = training_step.iterate_at(
            net, target.x, target.y, rule, net.theta, velocity, scale, t,
            None if masks is None else masks(t, 1)[0],
        )  # fmt: skip
    if not at.now.isfinite().all():
        return None
    made = _state(config, at, t, net, batch_seed)
    return replace(made, net=net) if torch.equal(at.theta, net.theta) else made  # the same weights
