"""DecoReco: its settings, the fit of its multipliers, and a step (Buzaglo et al. 2023)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from explorer.engine.attacks.attack import Attack, Leaps, MixedStarts, Needs, Start
from explorer.engine.attacks.claims import Report, claims, in_units_of_data
from explorer.engine.attacks.descent import (
    DescentConfig,
    DescentState,
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
from explorer.engine.attacks.descent_loops import (
    LAYERS,
    TOLERANCE,
    Begin,
    LayersRun,
    lay,
    sum_rounding,
    tensor,
)
from explorer.engine.attacks.kkt.config import KKTConfig, Knobs
from explorer.engine.attacks.target import Target
from explorer.engine.classes import (
    all_rivals,
    check_labels,
    class_numbers,
    contrast,
    fair_labels,
    from_numbers,
    margins,
)
from explorer.engine.deferred_checks import Rare, in_blocks, now
from explorer.engine.kernels.loading import compiled_module
from explorer.engine.kernels.reference import (
    Signals,
    covector_signals,
    denormals_flushed,
    input_gradient,
    normal_equations,
    stationarity,
    values_at,
)
from explorer.engine.kernels.steps import Multipliers
from explorer.engine.network import Network
from explorer.engine.nonnegative import (
    RIDGE,
    cholesky_factor,
    coefficients,
    rounding_ridge,
    signed_coefficients,
)
from explorer.engine.optim import Moments
from explorer.engine.settings import setting, settings
from explorer.engine.sizes import Like, Size
from explorer.engine.status import Status
from explorer.engine.threads import few_threads

# The reconstructions of Buzaglo et al. 2023 in the units of their code: contribution and knobs.
PUBLISHED: dict[str, tuple[Literal["margin", "outputs"], Knobs]] = {
    "multiclass": ("margin", Knobs(6.23e-5, 1.362e-3, 0.203, 39.5, 0.479)),
    "weight decay": ("outputs", Knobs(0.0197, 0.952, 0.0, 90.3)),
    "regression": ("outputs", Knobs(0.0137, 0.872, 0.0, 107.4)),
}


@settings
class DecoRecoConfig(DescentConfig):
    """Settings of the attack; see `decoreco` for the losses.

    For "outputs" the first lam / mean are N(0, lam_start^2), without a floor and without l_margin.
    """

    # fmt: off
    m: Annotated[int, setting(
        "In equal shares of the classes; at least 2n is usual", title="candidates m",
        form="sight", place=1, page=(2, 400), ge=2,
    )] = 60
    contribution: Annotated[Literal["margin", "outputs"], setting(
        "The margin's gradients with λ of one sign, or the outputs' with any sign, for networks "
        "trained with weight decay", title="contribution", form="sight", place=-2,
        note="margin: λᵢ grad qᵢ with λᵢ ≥ 0; outputs: the sum over c of λᵢc grad Φc of any sign.",
    )] = "margin"
    rivals: Annotated[Literal["all", "runner-up"], setting(
        "One multiplier per rival class, the full KKT conditions, or the runner-up alone, as "
        "published", title="rival classes", form="sight", place=-1,
    )] = "all"
    # fmt: on

    @classmethod
    def from_paper(
        cls, target: Target, run: str = "multiclass", m: int = 60, steps: int = 2000
    ) -> DecoRecoConfig:
        """Return the published attack on these weights, in the units of this class.

        The units change as in `KKTConfig.from_paper`: the same losses on other contributions. For
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
        base = KKTConfig.from_paper(target, knobs, m=m + m % 2, steps=steps)
        own = {field.name for field in fields(cls)}
        values = {f.name: getattr(base, f.name) for f in fields(base) if f.name in own}
        return cls(**{**values, "m": m, "contribution": contribution, "rivals": "runner-up"})


# --- The multipliers of `decoreco` that leave least of the weights unexplained ------------------
# min || theta - sum_ik c_ik g_ik ||^2,   g_ik = grad <basis_ik, Phi(x_i)>,   c >= floor or signed
#
# `coefficients` solves the normal equations with a ridge of 1e-10, which leaves up to 6e-14 of
# ||theta||^2 where nothing need be left (measured on networks trained with weight decay, at their
# training points). The gradient on the candidates is then rounding, up to 4e-8, but Adam divides a
# gradient by its own size and walks away from the truth on it at full step. So where less than
# `FINE` is left, the residual is formed itself and the multipliers are corrected by it: 2e-30 is
# left, and a gradient of 1e-16, below Adam's eps of 1e-12.

FINE = (
    1e-10  # of ||theta||^2; arbitrary: well above what the ridge leaves, well below real residuals
)
_ROUNDS = 3  # corrections; measured: two are enough on ten networks trained with weight decay


def multipliers_at(
    net: Network, at: Signals, basis: Tensor, floor: float, signed: bool, alpha: float,
    rho2: float, rare: Rare = now,
) -> Tensor:  # fmt: skip
    """Return the multipliers (m, k) of least stationarity loss at these candidates.

    Args:
        net: the weights to explain.
        at: the candidates' values under the modified ReLU.
        basis: the covector of every multiplier, (m, k, C).
        floor: the least multiplier.
        signed: any sign, no floor.
        alpha: of the modified ReLU.
        rho2: ||theta||^2 of `net`.
        rare: whether to look if what is left is rounding.
    """
    m, k, _ = basis.shape
    index = torch.arange(m, device=basis.device).repeat_interleave(k)
    rows = covector_signals(net, at, basis.flatten(0, 1), index)
    gram, inner = normal_equations(rows)
    if signed:
        coef = signed_coefficients(gram, inner, rare)
    else:
        coef = coefficients(gram, inner, floor, inner > 0, rare)
    left = rho2 - 2 * (coef @ inner) + coef @ (gram @ coef)
    if rare(left < FINE * rho2):  # not so where coef is nan
        coef = _improvement(net, at, basis, coef, gram, -math.inf if signed else floor, alpha)
    return coef.reshape(m, k)


def _improvement(
    net: Network, at: Signals, basis: Tensor, coef: Tensor, gram: Tensor, floor: float, alpha: float
) -> Tensor:
    """`coef` (m k,) improved on those above the floor, as long as the residual itself shrinks."""
    ones = basis.new_ones(len(basis))
    free = coef > floor
    kept = gram[free][:, free]
    factor = cholesky_factor(
        kept, RIDGE * gram.trace() + rounding_ridge(kept.diagonal(), kept.dtype)
    )
    best, least = coef, math.inf
    for turn in range(_ROUNDS + 1):
        pull = (coef.reshape(basis.shape[:2])[:, :, None] * basis).sum(1)
        now = stationarity(net, covector_signals(net, at, pull), ones, ones, alpha)
        if not float(now.loss) < least:
            break
        best, least = coef, float(now.loss)
        if turn < _ROUNDS:
            slope = -(now.grad_cover[:, None, :] * basis).sum(2).flatten() / 2
            more = torch.cholesky_solve(slope[free][:, None], factor)[:, 0]
            coef = coef.index_put((free,), more, accumulate=True).clamp_min(floor)
    return best


# --- Reconstruction beyond two classes and beyond the margin (Buzaglo et al. 2023) --------------
# The attack of Haim et al. needs stationarity alone, theta = sum of contributions of the training
# points, and that holds more widely (restated; see the paper for the original):
#
#     margin     theta = sum_i lam_i grad [Phi_{y_i}(x_i) - max_{c != y_i} Phi_c(x_i)],   lam_i >= 0
#     outputs    theta = sum_i sum_c lam_ic grad Phi_c(x_i),                  lam_ic of any sign
#
# "margin" is the KKT point of several classes. At an exact one each rival class that ties has its
# own multiplier lam_ic; `rivals="all"` keeps them, the published code keeps the runner-up. With all
# rivals it holds at a stationary point of the cross-entropy with weight decay too, at any margin,
# with lam_ic = p_ic / (n mu) where p_ic is the probability that the network gives class c.
# "outputs" holds exactly at every stationary point of (1/n) sum_i l(Phi(x_i), y_i) + (mu/2)
# ||theta||^2, whatever the differentiable loss, with lam_i = -grad l / (n mu): no margin, no
# homogeneity, biases anywhere, regression included. Candidates x (m, d) and lam are sought with
#
#     loss = l_stationary + weight_dual l_dual + weight_prior l_prior + weight_margin l_margin
#     l_stationary = || theta - sum of contributions ||^2 / ||theta||^2
#     l_dual       = sum relu(lam_min - lam / mean)^2           "margin" only
#     l_prior      = sum_i relu(|x_i| - prior)^2                over coordinates; see `kkt`
#     l_margin     = sum_i (q_i(x_i) / level - 1)^2             "margin" only
#
# in the units of `kkt`, and the mean multiplier is rho^2 / (order m) as there; for "outputs" that
# is no more than a unit. Every contribution is a covector pull_i (C,) times the outputs' gradients,
# so one closed form (`stationarity`) serves all.

__all__ = ["DecoRecoConfig", "DecoRecoState", "Start", "advance", "init", "iterate", "report",
           "step", "terminate"]  # fmt: skip

_ROUNDING = 1e-24  # arbitrary: theta is then explained to 12 digits; the truth leaves 1e-28 or less


@dataclass(frozen=True, eq=False)
class DecoRecoState(DescentState):
    """See `DescentState`; here lam (m,) is the sum of each candidate's multipliers.

    For "outputs" it is their norm, and y the class that a candidate pulls towards most.

    Attributes:
        coef: multipliers (m, k): one per rival, or for "outputs" one per output.
        pull: covectors (m, C); the contribution of i is sum_c pull_ic grad Phi_c(x_i).
        grad_coef: gradient of `loss` (m, k).
    """

    moments: Annotated[Moments, Like("x", "coef")]
    coef: Annotated[Tensor, Size("m k")]
    pull: Annotated[Tensor, Size("m C")]
    grad_coef: Annotated[Tensor, Size("m k")]


@few_threads()
def init(
    target: Target, config: DecoRecoConfig, generator: torch.Generator, start: Start | None = None
) -> DecoRecoState:
    """Return the first iterate: x ~ N(0, sigma_x^2), equal shares of the classes.

    lam / mean starts uniform in (0, lam_start), or for "outputs" normal with that deviation; a
    start that is kept has it fitted. With `start`, its candidates and labels are taken instead,
    however many they are.
    """
    net = target.net
    if start is None:
        noise = torch.randn(config.m, net.d, generator=generator, dtype=torch.float64)
        x, y = config.sigma_x * noise, fair_labels(config.m, net.outputs)
    else:
        x, y = start.x.detach() / target.unit, start.y.detach().clone()
        check_start(x, y, net.d)
    x, y = x.to(net.weights[0]), y.to(net.weights[0])
    x = put_back(target, config, 0, x, y)
    check_labels(y, net.outputs)
    shape = (len(x), _per_candidate(net, config))
    drawn = torch.randn if config.contribution == "outputs" else torch.rand
    first = drawn(shape, generator=generator, dtype=torch.float64)
    share = (config.lam_start * first).to(net.weights[0])
    state = first_state(target, config, x, lambda seen, x: _evaluate(
        seen, first_config(config), 0, x, y, share, Moments.zero((x, share))
    ))  # fmt: skip
    if not bool(_finite(state)):
        raise ValueError("the loss is not finite at the start; take candidates closer to the data")
    return state


@few_threads()
def step(target: Target, state: DecoRecoState, config: DecoRecoConfig) -> DecoRecoState:
    """Return one full-batch step on x, and on lam by descent or by projection.

    A step that would not be finite is not taken: the same iterate comes back, `diverged`. Where the
    loss is rounding so is its gradient, and it is taken for 0.
    """
    if config.returns:
        return advance(target, state, config, 1)
    return _step(target, state, config, now)


def _step(
    target: Target, state: DecoRecoState, config: DecoRecoConfig, rare: Rare
) -> DecoRecoState:
    unit, rate = _unit(target, state.coef), config.rate(state.t)
    live = (state.loss > _ROUNDING).to(state.x)
    grads = (
        state.grad_x * live,
        state.grad_coef * (live * unit if config.multipliers == "joint" else 0.0),
    )
    (x, share), moments = descent_step(
        config.optimizer, (state.x, state.coef / unit), state.moments, grads,
        (config.lr_x * rate, config.lr_lam * rate), config.momentum,
    )  # fmt: skip
    if rare(~(torch.isfinite(x).all() & torch.isfinite(share).all())):
        return replace(state, diverged=True)
    after = _evaluate(target, config, state.t + 1, x, state.y, share, moments, rare)
    return replace(state, diverged=True) if rare(~_finite(after)) else after


def terminate(state: DecoRecoState, config: DecoRecoConfig) -> Status:
    """Return how the run stands."""
    return descent_status(state, config.steps, state.grad_x, state.grad_coef)


@few_threads()
def advance(
    target: Target, state: DecoRecoState, config: DecoRecoConfig, steps: int
) -> DecoRecoState:
    """Return the state after so many steps, or the last one where the run is over before.

    The steps are those of `step`, to rounding. On the CPU compiled loops take them;
    on a device numbers are read after a block, see `deferred_checks`.
    """
    return _advance(target, state, config, steps, None)[0]


def _advance(
    target: Target, state: DecoRecoState, config: DecoRecoConfig, steps: int, run: LayersRun | None
) -> tuple[DecoRecoState, LayersRun | None]:
    """Return the state so many steps on, and the loops that have come to it, if any have."""
    end = min(state.t + steps, config.steps)
    if config.returns:
        return _advance_with_returns(target, state, config, end), None
    if state.t < end and not terminate(state, config).over and serves(target, state, config):
        state, run = _leap(target, state, config, end - state.t, run)
    after = in_blocks(
        lambda at, rare: _step(target, at, config, rare), lambda at: terminate(at, config),
        lambda at: (at.grad_x, at.grad_coef), state, end - state.t,
    )  # fmt: skip
    return after, run


def _advance_with_returns(
    target: Target, state: DecoRecoState, config: DecoRecoConfig, end: int
) -> DecoRecoState:
    return steps_with_returns(
        target, state, config, end, terminate,
        lambda seen, at, free, steps: advance(seen, at, free, steps),
        lambda seen, at, x: _state_at(seen, replace(at, x=x), config),
    )  # fmt: skip


@denormals_flushed()
def _state_at(target: Target, state: DecoRecoState, config: DecoRecoConfig) -> DecoRecoState:
    """Return the state with the losses and gradients of its candidates, after one step or more."""
    if serves(target, state, config):
        run = _run_from(target, state, config)
        run.look()
        if run.sound:
            return _state_of(run, state, config)
    share = state.coef / _unit(target, state.coef)
    return _evaluate(target, config, state.t, state.x, state.y, share, state.moments)


def iterate(
    target: Target, state: DecoRecoState, config: DecoRecoConfig, stride: int = 1
) -> Iterator[DecoRecoState]:
    """Yield the states after `state` whose t the stride divides, and the last one."""
    run: LayersRun | None = None
    while not terminate(state, config).over:
        with few_threads():
            state, run = _advance(target, state, config, stride - state.t % stride, run)
        yield state


@in_units_of_data
def report(target: Target, state: DecoRecoState, config: DecoRecoConfig) -> Report:
    """Return what the attacker claims at this iterate; weight decay puts no point on a margin."""
    return claims(target, state.x, state.y, state.lam, banded=config.contribution == "margin")


def _per_candidate(net: Network, config: DecoRecoConfig) -> int:
    """Return how many multipliers a candidate has."""
    if config.contribution == "outputs":
        return net.outputs
    return max(net.outputs - 1, 1) if config.rivals == "all" else 1


def _unit(target: Target, coef: Tensor) -> float:
    """Return the mean multiplier of a margin's KKT point with so many multipliers."""
    return target.mass / coef.numel()


def _finite(state: DecoRecoState) -> Tensor:
    parts = (state.loss, state.grad_x, state.grad_coef, state.coef)
    return torch.stack([torch.isfinite(part).all() for part in parts]).all()


def _basis(values: Tensor, y: Tensor, config: DecoRecoConfig) -> Tensor:
    """Return the covectors that a candidate's multipliers weigh, (m, k, C)."""
    if config.contribution == "outputs":
        eye = torch.eye(values.shape[1], dtype=values.dtype, device=values.device)
        return eye.expand(len(y), -1, -1)
    if config.rivals == "all" and values.shape[1] > 1:
        return all_rivals(y, values.shape[1]).to(values)
    return contrast(values, y, known=True)[:, None, :]


def _towards(pull: Tensor) -> Tensor:
    """Return the label of the class that each covector (m, C) raises most."""
    if pull.shape[1] == 1:
        return torch.where(pull[:, 0] < 0, -1.0, 1.0).to(pull)
    return from_numbers(pull.argmax(1) + 1).to(pull)


@torch.no_grad()
@denormals_flushed()
def _evaluate(
    target: Target,
    config: DecoRecoConfig,
    t: int,
    x: Tensor,
    y: Tensor,
    share: Tensor,
    moments: Moments,
    rare: Rare = now,
) -> DecoRecoState:
    """Return the state at these candidates: losses and gradients.

    Lam is solved for if projected.
    """
    net, alpha = target.merged(config.merge_angle), config.alpha(t, steepness(target, config))
    signed = config.contribution == "outputs"
    rho2 = target.kept(("square", config.merge_angle), lambda: float(net.rho) ** 2)
    unit = _unit(target, share)
    at = values_at(net, x, alpha)
    basis = _basis(at.values[-1], y, config)
    coef = share * unit
    if config.multipliers == "projected":
        coef = multipliers_at(net, at, basis, config.lam_min * unit, signed, alpha, rho2, rare)
    pull = (coef[:, :, None] * basis).sum(1)
    ones = torch.ones_like(y)
    fit = stationarity(net, covector_signals(net, at, pull), ones, ones, alpha)
    grad_coef = (fit.grad_cover[:, None, :] * basis).sum(2) / rho2
    low = (config.lam_min - coef / unit).clamp_min(0) * (not signed)
    outside = (x.abs() - config.half_width).clamp_min(0)
    off = (
        torch.zeros_like(y) if signed else margins(at.values[-1], y, known=True) / target.level - 1
    )
    weight = config.weight_margin * min(t / config.steps, 1.0)
    l_stationary, l_dual = fit.loss / rho2, low.square().sum()
    l_prior, l_margin = outside.square().sum(), off.square().sum()
    loss = l_stationary + config.weight_dual * l_dual + config.weight_prior * l_prior
    grad_x = fit.grad_x / rho2 + config.weight_prior * 2 * outside * x.sign()
    if weight and not signed:
        along = input_gradient(
            net, covector_signals(net, at, contrast(at.values[-1], y, known=True))
        )
        loss = loss + weight * l_margin
        grad_x = grad_x + weight * 2 / target.level * off[:, None] * along
    return DecoRecoState(
        t, x, _towards(pull) if signed else y, pull.norm(dim=1) if signed else coef.sum(1),
        l_stationary, l_dual, l_prior, l_margin, loss, grad_x, moments, coef, pull,
        grad_coef - config.weight_dual * 2 * low / unit,
    )  # fmt: skip


# --- Blocks of steps, in the compiled loops of `kernels.compiled_layers` --------------------------

MOST = 1000  # multipliers of any sign: beyond it LAPACK makes their factor sooner; arbitrary


def serves(target: Target, state: DecoRecoState, config: DecoRecoConfig) -> bool:
    """Return whether compiled loops take these steps: in float64 or float32, on the CPU."""
    net = target.net
    dense = config.contribution == "outputs" and config.multipliers == "projected"
    return (
        net.device.type == state.x.device.type == "cpu"
        and net.dtype == state.x.dtype
        and net.dtype in TOLERANCE
        and not (dense and state.coef.numel() > MOST)
        and compiled_module(LAYERS) is not None
    )


@denormals_flushed()
def _leap(
    target: Target, state: DecoRecoState, config: DecoRecoConfig, steps: int, run: LayersRun | None
) -> tuple[DecoRecoState, LayersRun | None]:
    """Return the state so many steps on and its run; the same and none where it ends before."""
    run = run or _run_from(target, state, config)
    run.advance(steps)
    after = _state_of(run, state, config)
    ends = not (run.sound and _finite(after)) or terminate(after, config) is Status.CONVERGED
    return (state, None) if ends else (after, run)


def _run_from(target: Target, state: DecoRecoState, config: DecoRecoConfig) -> LayersRun:
    net, unit = target.merged(config.merge_angle), _unit(target, state.coef)
    layers = target.kept(("decoreco", config.merge_angle), lambda: lay(net.blocks))
    joint, several = config.multipliers == "joint", net.outputs > 1
    (mean, mean_of), (square, square_of) = state.moments.mean, state.moments.square
    begin = Begin(
        (state.x[None], state.coef[None] / unit), (mean[None], mean_of[None]),
        (square[None], square_of[None]),
        (state.grad_x[None], state.grad_coef[None] * (unit if joint else 0.0)),
        state.y[None], state.t, state.moments.t,
    )  # fmt: skip
    signed = config.contribution == "outputs"
    runner_up = config.rivals == "runner-up" and several and not signed
    dtype = state.x.dtype
    rounding, gain = sum_rounding(state.coef.numel(), dtype), TOLERANCE[dtype]
    kind = Multipliers(signed, not joint, runner_up, unit, RIDGE, rounding, gain, FINE, _ROUNDING)
    basis = _basis(state.x.new_zeros(len(state.x), net.outputs), state.y, config)
    own = class_numbers(state.y) - 1 if several else torch.zeros_like(state.y).long()
    rho2, loss = float(layers[3].sum()), state.loss[None]
    return LayersRun(target, config, begin, layers, rho2, kind, basis[None], own[None], loss)


def _state_of(run: LayersRun, state: DecoRecoState, config: DecoRecoConfig) -> DecoRecoState:
    """Return the state that a run from `state` has come to."""
    made, signed = run.numbers(), config.contribution == "outputs"
    l_stationary, l_dual, l_prior, l_margin, loss = torch.from_numpy(made.losses[:, 0]).to(state.x)
    coef = tensor(made.params[1] * run.mean, state.coef)
    pull = (coef[:, :, None] * torch.from_numpy(run.basis[0]).to(coef)).sum(1)
    y, lam = (_towards(pull), pull.norm(dim=1)) if signed else (state.y, coef.sum(1))
    return DecoRecoState(
        run.t, tensor(made.params[0], state.x), y, lam, l_stationary, l_dual, l_prior, l_margin,
        loss, tensor(made.grad_x, state.x), made.moments(run.moved, (state.x, state.coef)), coef,
        pull, tensor(made.grad_coef, state.coef),
    )  # fmt: skip


def pictures(n: int, outputs: int, steps: int | None) -> DecoRecoConfig:
    """Settings for n training images of two classes or of several."""
    descent = on_pictures(n, steps)
    if outputs == 1:
        return DecoRecoConfig(**descent, contribution="outputs")
    # Nine multipliers per candidate: solving for them takes nine tenths of the time.
    stepped: dict[str, Any] = {"multipliers": "joint", "lam_start": 4.0, "lr_lam": 0.1}
    return DecoRecoConfig(**descent, **stepped, contribution="margin")


ATTACK = Attack(
    place=3, key="decoreco", title="DecoReco", paper="Buzaglo et al. 2023",
    sentence="KKT reconstruction for many classes and for weight decay. Its margin is that to the "
    "rival classes.",
    config=DecoRecoConfig, state=DecoRecoState,
    first=init, step=step, terminate=terminate, report=report,
    curves=(("l_stationary", "stationarity"), ("l_margin", "margin"), ("l_dual", "λ floor"),
            ("l_prior", "prior box")),
    needs=Needs(several=True, anywhere=True), starts=MixedStarts(start_config), pictures=pictures,
    leaps=Leaps(advance, iterate),
)  # fmt: skip
