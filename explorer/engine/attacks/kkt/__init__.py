r"""Reconstruction from the KKT conditions of the margin problem (Haim et al. 2022, section 4).

A trained network is nearly stationary: theta = sum_i lam_i y_i grad Phi(theta; x_i), lam_i >= 0.
The attack looks for candidates x (m, d) and multipliers lam (m,), of fixed labels, with which the
sum explains theta:

    loss = l_stationary + weight_dual l_dual + weight_prior l_prior + weight_margin l_margin
    l_stationary = || theta - sum_i lam_i y_i grad Phi(theta; x_i) ||^2 / ||theta||^2
    l_dual       = sum_i relu(lam_min - lam_i / mean)^2       mean = rho^2 / (order m)
    l_prior      = sum_i relu(|x_i| - prior)^2                over all coordinates; see below
    l_margin     = sum_i (y_i Phi(x_i) / level - 1)^2           level = 1, see `Target`

The target is at margin 1, so the multipliers of any exact KKT point sum to rho^2 / order: all is
measured in these units, and one setting serves networks of any scale. The published code has the
raw loss with lam' = m lam: it is ||theta||^2 times ours with weight_dual = 5 mass^2 / rho^2,
weight_prior = 1 / rho^2, prior = 1, weight_margin = 0, lam_min = lam'_min / mass.

Where the range of each coordinate is known exactly, as of pixels less a known mean, prior "pixels"
takes the place of l_prior: every 25 steps candidates go to the nearest points within. A coordinate
whose range is 0 alone stays there, and the weights that read it are left out of theta.

Four things beyond the paper, each off by one setting, each known to an attacker: neurons that
training made parallel are merged (`merge_angle`); alpha rises from `relu_alpha_start` (annealing,
as in Loo et al. 2023); from three layers on it is measured against the length of a neuron's weights
(`deep_alpha`); support points lie on the margin (`weight_margin`, complementary slackness).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from explorer.engine.attacks.attack import Attack, Leaps, ManyStarts, MixedStarts, Needs, Start
from explorer.engine.attacks.claims import Report, claims, in_units_of_data
from explorer.engine.attacks.descent import (
    check_start,
    descent_status,
    descent_step,
    first_config,
    first_state,
    on_pictures,
    put_back,
    start_config,
    steepness,
    steps_with_returns,
)
from explorer.engine.attacks.kkt.blocks import BLOCK, Replay, start_bytes
from explorer.engine.attacks.kkt.config import KKTConfig
from explorer.engine.attacks.kkt.loops import KKTRun, serves
from explorer.engine.attacks.kkt.loss import KKTState, evaluate
from explorer.engine.attacks.target import Target
from explorer.engine.gradients import forward_signals
from explorer.engine.optim import Moments
from explorer.engine.status import Status
from explorer.engine.sums import Sum, best_sum
from explorer.engine.tables import map_arrays
from explorer.engine.threads import few_threads

__all__ = [
    "KKTConfig",
    "KKTState",
    "Report",
    "Start",
    "advance",
    "init",
    "iterate",
    "report",
    "single_states",
    "step",
    "terminate",
]


@few_threads()
def init(
    target: Target,
    config: KKTConfig,
    generator: torch.Generator | Sequence[torch.Generator],
    start: Start | None = None,
) -> KKTState:
    """Return the first state of the attack, from noise or from given candidates.

    Noise is x ~ N(0, sigma_x^2) with half of each label, and lam / mean ~ U(0, lam_start); a start
    that is kept (`near`) has them fitted to its candidates. The
    published code draws lam' from U(0, 1) whatever the scale of the network; here the mean is
    known.

    Args:
        target: the attacked weights.
        config: the settings.
        generator: draws the candidates and the multipliers; several draw one start each, as it
            would be drawn alone, and all of them descend at once.
        start: candidates x (m, d) and labels y (m,) to begin at instead, however many they are.

    Returns:
        The state at t = 0.

    Raises:
        ValueError: where the start does not fit the weights, or its loss is not finite.

    Source: Haim et al. 2022, section 4, in units of the margin-1 target.

    Example:
        >>> import torch
        >>> from explorer import KKTConfig, Start, Target, kkt, maximum_margin, preset
        >>> data = preset("alternating-line", n=3)
        >>> target = Target.of(maximum_margin(data.x, data.y).net, 1.0)
        >>> generator = torch.Generator().manual_seed(0)
        >>> state = kkt.init(target, KKTConfig(), generator, Start(data.x, data.y))
        >>> state.t, state.x.shape
        (0, torch.Size([3, 1]))
    """
    net = target.net
    if start is None:
        x = config.sigma_x * _random_numbers(torch.randn, (config.m, net.d), generator)
        y = torch.ones(config.m, device=x.device)
        y[config.m // 2 :] = -1
    else:
        x, y = start.x.detach() / target.unit, start.y.detach().clone()
        check_start(x, y, net.d, axes=3)
        if not bool((y.abs() == 1).all()):
            raise ValueError(f"labels must be -1 or 1; got {sorted(set(y.flatten().tolist()))}")
    each = x.shape[:-1] if isinstance(generator, torch.Generator) else x.shape[-2:-1]
    uniform = _random_numbers(torch.rand, tuple(each), generator)
    if uniform.shape != x.shape[:-1]:
        raise ValueError(
            f"expected one generator, or one for each start x (b, m, d); got {len(uniform)} and x "
            f"{tuple(x.shape)}. Give one generator."
        )
    x, y, share = (v.to(net.weights[0]) for v in (x, y, config.lam_start * uniform))
    x = put_back(target, config, 0, x, y)

    def at(seen: Target, x: Tensor) -> KKTState:
        lam, moments = share * seen.mass / x.shape[-2], Moments.zero((x, share))
        return evaluate(seen, first_config(config), 0, x, y, lam, moments)

    state = first_state(target, config, x, at)
    if not bool(_finite(state).all()):
        raise ValueError("the loss is not finite at the start; take candidates closer to the data")
    return state


def _random_numbers(
    draw: Callable[..., Tensor],
    shape: tuple[int, ...],
    generator: torch.Generator | Sequence[torch.Generator],
) -> Tensor:
    """Return numbers of this shape; of several generators, side by side."""
    if isinstance(generator, torch.Generator):
        return draw(shape, generator=generator, dtype=torch.float64, device=generator.device)
    return torch.stack([_random_numbers(draw, shape, one) for one in generator])


@few_threads()
def step(target: Target, state: KKTState, config: KKTConfig) -> KKTState:
    """Return the state after one full-batch step on x, and on lam by descent or by projection.

    A step that would not be finite is not taken: the same iterate comes back, `diverged`. Of a
    batch, the starts it happens to stay where they are, and their loss is nan from then on.

    Args:
        target: the attacked weights.
        state: the state to go on from.
        config: the settings.

    Returns:
        The state at t + 1, or the diverged one.

    Source: Haim et al. 2022, section 4.

    Example:
        >>> import torch
        >>> from explorer import KKTConfig, Target, kkt, maximum_margin, preset
        >>> data, config = preset("alternating-line", n=3), KKTConfig(m=6)
        >>> target = Target.of(maximum_margin(data.x, data.y).net, 1.0)
        >>> state = kkt.init(target, config, torch.Generator().manual_seed(0))
        >>> kkt.step(target, state, config).t
        1
    """
    if config.returns:
        return _leap(target, state, config, 1, None)[0]
    net = target.prepared_network(config.merge_angle, config.same_slopes)
    if serves(net, state):
        run = KKTRun(target, net, state, config)
        run.advance(1)
        if run.sound and _all_finite(after := run.state()) and _all_finite(state):
            return after
    mean = target.mass / state.x.shape[-2]
    lr_x, lr_lam = (rate * config.rate(state.t) for rate in (config.lr_x, config.lr_lam))
    joint = config.multipliers == "joint"
    params = (state.x, state.lam / mean)
    grads = (state.grad_x, state.grad_lam * (mean if joint else 0.0))
    (x, share), moments = descent_step(
        config.optimizer, params, state.moments, grads, (lr_x, lr_lam), config.momentum
    )
    after = evaluate(target, config, state.t + 1, x, state.y, share * mean, moments)
    sound = _finite(after) & _finite(state)
    if bool(sound.all()):
        return after
    if not bool(sound.any()):
        return replace(state, diverged=True)
    return _choice(sound, after, state)


def terminate(state: KKTState, config: KKTConfig) -> Status:
    """Return how the run stands.

    Args:
        state: a state of the run.
        config: the settings.

    Returns:
        RUNNING, FINISHED after `config.steps`, CONVERGED where no gradient is left, or DIVERGED.

    Example:
        >>> import torch
        >>> from explorer import KKTConfig, Target, kkt, maximum_margin, preset
        >>> data, config = preset("alternating-line", n=3), KKTConfig(m=6)
        >>> target = Target.of(maximum_margin(data.x, data.y).net, 1.0)
        >>> state = kkt.init(target, config, torch.Generator().manual_seed(0))
        >>> kkt.terminate(state, config)
        <Status.RUNNING: 'running'>
    """
    return descent_status(state, config.steps, state.grad_x, state.grad_lam)


@few_threads()
def advance(target: Target, state: KKTState, config: KKTConfig, steps: int) -> KKTState:
    """Return the state after so many steps, or the last one where the run is over before.

    The steps are those of `step`, to rounding, and faster: see `blocks` and `loops`.

    Args:
        target: the attacked weights.
        state: the state to go on from.
        config: the settings.
        steps: how many, 1 or more.

    Returns:
        The state at t + steps, at `config.steps`, or at the end of a run that cannot go on.

    Example:
        >>> import torch
        >>> from explorer import KKTConfig, Target, kkt, maximum_margin, preset
        >>> data, config = preset("alternating-line", n=3), KKTConfig(m=6, steps=10)
        >>> target = Target.of(maximum_margin(data.x, data.y).net, 1.0)
        >>> state = kkt.init(target, config, torch.Generator().manual_seed(0))
        >>> kkt.advance(target, state, config, 4).t
        4
    """
    steps = min(steps, config.steps - state.t)
    return _leap(target, state, config, steps, None)[0]


def iterate(
    target: Target, state: KKTState, config: KKTConfig, stride: int = 1
) -> Iterator[KKTState]:
    """Yield the states after `state`, until `terminate` says that the run is over.

    Args:
        target: the attacked weights.
        state: the state to go on from.
        config: the settings.
        stride: above 1, only the states whose t it divides, and the last one: the same states, to
            rounding, and sooner.

    Yields:
        States.

    Example:
        >>> import torch
        >>> from explorer import KKTConfig, Target, kkt, maximum_margin, preset
        >>> data, config = preset("alternating-line", n=3), KKTConfig(m=6, steps=10)
        >>> target = Target.of(maximum_margin(data.x, data.y).net, 1.0)
        >>> state = kkt.init(target, config, torch.Generator().manual_seed(0))
        >>> [later.t for later in kkt.iterate(target, state, config, stride=4)]
        [4, 8, 10]
    """
    run: Replay | KKTRun | None = None
    while not terminate(state, config).over:
        steps = min(stride - state.t % stride, config.steps - state.t)
        with few_threads():
            state, run = _leap(target, state, config, steps, run)
        yield state


def _leap(
    target: Target, state: KKTState, config: KKTConfig, steps: int, run: Replay | KKTRun | None
) -> tuple[KKTState, Replay | KKTRun | None]:
    """The state so many steps on, and the run that has come to it, if one can take it up there."""
    if config.returns:
        return _leap_with_returns(target, state, config, state.t + steps), None
    if steps < 1:
        return state, run
    run = run or _run_from(target, state, config, steps)
    if run is not None:
        run.advance(steps)
    if run is not None and run.sound:
        after = run.state()
        sound = _finite(after) & _finite(state)
        if bool(sound.all()) and _moving(after):
            return after, run
        if sound.ndim and bool(sound.any()):  # the others go on without those that diverged
            return _choice(sound, after, state), run
    for _ in range(steps):  # one by one, to where it ends
        if not terminate(state, config).over:
            state = step(target, state, config)
    return state, None


def _leap_with_returns(target: Target, state: KKTState, config: KKTConfig, end: int) -> KKTState:
    return steps_with_returns(
        target, state, config, end, terminate,
        lambda seen, at, free, steps: _leap(seen, at, free, steps, None)[0],
        lambda seen, at, x: _state_at(seen, replace(at, x=x), config),
    )  # fmt: skip


def _state_at(target: Target, state: KKTState, config: KKTConfig) -> KKTState:
    """Return the state with the losses and gradients of its candidates, after one step or more."""
    net = target.prepared_network(config.merge_angle, config.same_slopes)
    if serves(net, state):
        run = KKTRun(target, net, state, config)
        run.look()
        if run.sound:
            return run.state()
    return evaluate(target, config, state.t, state.x, state.y, state.lam, state.moments)


def _run_from(
    target: Target, state: KKTState, config: KKTConfig, steps: int
) -> Replay | KKTRun | None:
    """Return what takes many steps faster than `step`; None where nothing does."""
    if terminate(state, config).over:
        return None
    net = target.prepared_network(config.merge_angle, config.same_slopes)
    if serves(net, state):
        return KKTRun(target, net, state, config)
    # Projected multipliers are solved for in float64.
    quick = config.multipliers == "joint" or state.x.device.type not in ("cpu", "mps")
    # The losses of a block are one step more.
    return Replay(target, state, config, min(steps, BLOCK)) if quick and steps > 1 else None


def _moving(state: KKTState) -> bool:
    """Return whether there is a gradient; see `descent_status`."""
    return bool(state.grad_x.any()) or bool(state.grad_lam.any())


@in_units_of_data
def report(target: Target, state: KKTState, config: KKTConfig) -> Report:
    """Return what the attacker claims at an iterate.

    The thresholds stand in `claims`.

    Args:
        target: the attacked weights.
        state: the iterate, of one start.
        config: the settings.

    Returns:
        At most m claims, largest multiplier first.

    Source: own; the reasons for each of the three filters stand in `claims`.

    Example:
        >>> import torch
        >>> from explorer import KKTConfig, Start, Target, kkt, maximum_margin, preset
        >>> data, config = preset("alternating-line", n=3), KKTConfig(steps=1)
        >>> target = Target.of(maximum_margin(data.x, data.y).net, 1.0)
        >>> state = kkt.init(target, config, torch.Generator(), Start(data.x, data.y))
        >>> kkt.report(target, state, config).x.shape  # begun at the truth, it claims the truth
        torch.Size([3, 1])
    """
    return claims(target, state.x, state.y, state.lam)


def single_states(state: KKTState) -> list[KKTState]:
    """Return the states of a batch, one by one.

    Args:
        state: the state of b starts, x (b, m, d), or of one, x (m, d).

    Returns:
        b states, or one. Those whose loss is nan are `diverged`.

    Example:
        >>> import torch
        >>> from explorer import KKTConfig, Start, Target, kkt, maximum_margin, preset
        >>> data = preset("alternating-line", n=3)
        >>> target = Target.of(maximum_margin(data.x, data.y).net, 1.0)
        >>> start = Start(torch.stack([data.x, 0.9 * data.x]), data.y)
        >>> state = kkt.init(target, KKTConfig(), torch.Generator().manual_seed(0), start)
        >>> [one.x.shape for one in kkt.single_states(state)]
        [torch.Size([3, 1]), torch.Size([3, 1])]
    """
    if state.x.ndim == 2:
        return [state]
    whole = replace(state, y=state.y.expand(state.x.shape[:-1]))
    each = [map_arrays(lambda v, at=i: v[at], whole, into=object) for i in range(len(state.x))]
    over = state.loss.isnan().tolist()
    return [
        replace(one, diverged=off or state.diverged) for one, off in zip(each, over, strict=True)
    ]


def _finite(state: KKTState) -> Tensor:
    """Return which starts have a finite loss.

    Whatever else is not would show there at the next step.
    """
    return torch.isfinite(state.loss)


def _all_finite(state: KKTState) -> bool:
    """Return whether all starts have a finite loss."""
    if state.loss.ndim:
        return bool(_finite(state).all())
    return math.isfinite(state.loss.item())  # the same, sooner


def _choice(sound: Tensor, after: KKTState, before: KKTState) -> KKTState:
    """Return the new state of the sound starts; the old one of the others, with a loss of nan."""

    def pick(new: Tensor, old: Tensor) -> Tensor:
        return torch.where(sound.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    labels = after.y.expand(after.x.shape[:-1])
    made = map_arrays(pick, replace(after, y=labels), replace(before, y=labels), into=object)
    return replace(made, loss=torch.where(sound, made.loss, torch.nan))


def pictures(n: int, outputs: int, steps: int | None) -> KKTConfig:
    """Settings for n training images; the network has one output."""
    return KKTConfig(**on_pictures(n, steps))


def memory(target: Target, config: KKTConfig, m: int, dtype: torch.dtype | None) -> int:
    """Return the bytes that one start of m candidates takes in a block on a device, about."""
    kind = target.net.dtype if dtype is None else dtype
    return start_bytes(target.net, m, kind, config.multipliers == "projected")


def sum_over(target: Target, state: KKTState, config: KKTConfig) -> Sum:
    """Return the merged network as a sum over the candidates, with the last step's slopes."""
    net = target.merged(config.merge_angle)
    alpha = config.alpha(config.steps, steepness(target, config))
    values = forward_signals(net, state.x.to(net.weights[0]))[1][:-1]
    factors = target.prepared_network(config.merge_angle, config.same_slopes).slopes
    if factors is not None:
        values = [f * z for f, z in zip(factors, values, strict=True)]
    return best_sum(net, state.x, state.y, [torch.sigmoid(alpha * z) for z in values])


# Anywhere: on MPS, which has no float64, projected multipliers alone are solved for on the CPU. Not
# homogeneous: the loss needs no theorem, what it finds does; see `target.NO_THEOREM`.
ATTACK = Attack(
    place=0, key="kkt", title="KKT reconstruction", paper="Haim et al. 2022",
    sentence="Moves candidates until they add up to the weights.",
    config=KKTConfig, state=KKTState,
    first=init, step=step, terminate=terminate, report=report, sum_over=sum_over,
    curves=(("l_stationary", "stationarity"), ("l_margin", "margin"), ("l_dual", "λ floor"),
            ("l_prior", "prior box")),
    needs=Needs(anywhere=True, non_homogeneous=True), starts=MixedStarts(start_config),
    pictures=pictures,
    leaps=Leaps(advance, iterate), many=ManyStarts(single_states, memory),
)  # fmt: skip
