"""Compiled loops of the KKT attack take the steps that torch's calls take.

Multipliers of candidates that lie close together are hardly determined: what rounding makes of them
is checked by the conditions of their least-squares problem, not by their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from explorer.engine.attacks import descent_loops, kkt
from explorer.engine.attacks.descent import steepness
from explorer.engine.attacks.kkt import KKTConfig, KKTState, Start, loops
from explorer.engine.attacks.target import Target
from explorer.engine.kernels.reference import normal_equations, signals_at
from explorer.engine.network import init_network
from explorer.engine.nonnegative import RIDGE
from tests.engine.draws import draw, rng

CONFIG = KKTConfig(m=8, steps=40, lr_x=0.01)
CASES = {
    "usual": {},
    "line": {"d": 1},
    "sgd": {"optimizer": "sgd", "lr_x": 1e-3},
    "no margin": {"weight_margin": 0.0},
    "box": {"prior": 0.5},
    "floor": {"lam_min": 0.2},
    "without bias": {"bias": False},
    "merged slopes": {"same_slopes": True, "merge_angle": 0.5},
    "not merged": {"merge_angle": 0.0, "relu_alpha_start": None},
    "many starts": {"starts": (3,)},
}
NUMBERS = (
    "x", "lam", "l_stationary", "l_dual", "l_prior", "l_margin", "loss", "grad_x", "grad_lam",
)  # fmt: skip


def begun(
    d: int = 2, bias: bool = True, starts: tuple[int, ...] = (), m: int = 8,
    widths: tuple[int, ...] = (30,), dtype: torch.dtype = torch.float64, all_biases: bool = False,
    **more: object,
) -> tuple[Target, KKTConfig, KKTState]:  # fmt: skip
    """A target, settings and a first state."""
    config = replace(CONFIG, m=m, **more)
    net = init_network(
        d, widths, generator=rng(3), bias=bias, first_scale=0.7, all_biases=all_biases
    )
    x = 1.5 * draw(*starts, m, d, seed=4)
    y = torch.where(torch.arange(m) < m // 2, 1.0, -1.0).double()
    target = Target(net.to(dtype=dtype))
    return target, config, kkt.init(target, config, rng(5), Start(x, y))


def same(mine: KKTState, theirs: KKTState, share: float, numbers: Sequence[str] = NUMBERS) -> None:
    assert mine.t == theirs.t and mine.moments.t == theirs.moments.t
    pairs = [(getattr(mine, name), getattr(theirs, name)) for name in numbers]
    for some in ("mean", "square") if numbers is NUMBERS else ():
        pairs += zip(getattr(mine.moments, some), getattr(theirs.moments, some), strict=True)
    for ours, wanted in pairs:
        size = max(float(wanted.abs().max()), 1e-3)
        torch.testing.assert_close(ours, wanted, rtol=0, atol=share * size)


def by_calls(target: Target, state: KKTState, config: KKTConfig) -> KKTState:
    """One step of torch's calls."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "compiled_module", lambda _: None)
        return kkt.step(target, state, config)


def by_loops(target: Target, state: KKTState, config: KKTConfig) -> KKTState:
    """One step of loops, which must be there."""
    net = target.prepared_network(config.merge_angle, config.same_slopes)
    assert loops.serves(net, state)
    return kkt.step(target, state, config)


@pytest.mark.parametrize("multipliers", ["projected", "joint"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_state_is_that_of_calls(case: dict, multipliers: str, monkeypatch) -> None:
    monkeypatch.setattr(descent_loops, "PIECE", 1)  # every step a call of its own
    target, config, first = begun(**case, multipliers=multipliers)
    plain, mine = first, first
    for stepped in kkt.iterate(target, first, config):
        plain, mine = by_calls(target, plain, config), by_loops(target, mine, config)
        same(stepped, plain, 1e-8)
        same(mine, plain, 1e-8)
        if plain.t == 25:
            break
    same(kkt.advance(target, first, config, 25), plain, 1e-8)
    if multipliers == "projected":  # some are held
        assert bool((plain.lam <= config.lam_min * target.mass / 8 * 1.001).any())


def problem(target: Target, config: KKTConfig, state: KKTState) -> tuple[Tensor, Tensor]:
    """Gram matrix and gains of the candidates' own gradients, by the definition."""
    alpha = config.alpha(state.t, steepness(target, config))
    at = signals_at(target.merged(config.merge_angle), state.x, alpha)
    gram, inner = normal_equations(at)
    return gram * state.y * state.y[:, None], inner * state.y


LOOPS = {
    "usual": {},
    "many inputs": {"d": 65},
    "box": {"prior": 0.5},
    "without bias": {"bias": False},
    "merged slopes": {"same_slopes": True, "merge_angle": 0.5},
    "four layers": {"widths": (9, 8, 7)},
    "wide": {"widths": (40, 50), "m": 6},
    "sgd": {"optimizer": "sgd", "lr_x": 1e-3},
    "no margin": {"weight_margin": 0.0},
    "many starts": {"starts": (3,)},
    "two layers": {"widths": (30,), "d": 3},
    "two layers, many inputs": {"widths": (60,), "d": 40, "m": 12},
    "all biases": {"all_biases": True},
    "floor": {"lam_min": 0.2},
}


@pytest.mark.parametrize("case", LOOPS.values(), ids=LOOPS)
def test_deep_loops_take_the_steps_of_calls(case: dict) -> None:
    target, config, state = begun(**{"widths": (12, 9), "m": 20} | case)
    states = [state]
    for _ in range(12):
        states.append(by_calls(target, states[-1], config))
    for before, after in pairwise(states):
        same(by_loops(target, before, config), after, 1e-7)
    held = config.lam_min * target.mass / config.m * 1.001
    assert any(bool((s.lam <= held).any()) for s in states[1:])


MANY = {"m": 140, "d": 150}  # as many as make a Gram matrix in strips
JOINT = LOOPS | {
    "many": {"widths": (160, 150)} | MANY,
    "two layers of many": {"widths": (160,)} | MANY,
}


@pytest.mark.parametrize("case", JOINT.values(), ids=JOINT)
def test_deep_loops_take_the_joint_steps_of_calls(case: dict) -> None:
    target, config, state = begun(**{"widths": (12, 9), "m": 20, "multipliers": "joint"} | case)
    for _ in range(6):
        mine, state = by_loops(target, state, config), by_calls(target, state, config)
        same(mine, state, 1e-8)


@pytest.mark.parametrize("multipliers", ["projected", "joint"])
@pytest.mark.parametrize("case", [*CASES.values(), *LOOPS.values()], ids=[*CASES, *LOOPS])
def test_a_look_moves_nothing(case: dict, multipliers: str) -> None:
    target, config, first = begun(**{"multipliers": multipliers} | case)
    net = target.prepared_network(config.merge_angle, config.same_slopes)
    state = kkt.advance(target, first, config, 3)
    run = loops.KKTRun(target, net, state, config)
    run.look()
    same(run.state(), state, 1e-8)


def test_deep_loops_take_many_steps_in_one_go() -> None:
    target, config, state = begun(widths=(12, 9), m=20)
    whole = kkt.advance(target, state, config, 9)
    for _ in range(9):
        state = kkt.advance(target, state, config, 1)
    same(whole, state, 1e-9)


SINGLE = {f"deep, {name}": {"widths": (12, 9), "m": 20} | case for name, case in LOOPS.items()} | {
    f"two layers, {name}": CASES[name] for name in ("usual", "line", "floor", "many starts")
}
WHERE = ("x", "l_dual", "l_prior", "l_margin")


@pytest.mark.parametrize("case", SINGLE.values(), ids=SINGLE)
def test_loops_in_single_precision_take_the_steps_of_torch(case: dict) -> None:
    target, config, state = begun(**case, dtype=torch.float32)
    for _ in range(12):
        mine, state = by_loops(target, state, config), by_calls(target, state, config)
        same(mine, state, 2e-6, WHERE)
        same(mine, state, 3e-4, ("l_stationary", "loss"))
        same(mine, state, 0.1)  # lam is hardly determined where candidates lie close together
        tensors = [getattr(mine, name) for name in NUMBERS]
        tensors += [*mine.moments.mean, *mine.moments.square]
        assert {v.dtype for v in tensors} == {torch.float32}


@pytest.mark.parametrize("widths", [(30,), (30, 20)])
def test_a_run_in_single_precision_explains_as_much(widths: tuple[int, ...]) -> None:
    """And goes through loops from its first step to its last."""
    left = []
    for dtype in (torch.float64, torch.float32):
        target, config, state = begun(m=40, steps=300, lr_x=0.02, widths=widths, dtype=dtype)
        state = kkt.advance(target, state, config, 300)
        assert state.t == 300 and not state.diverged
        left.append(float(state.loss))
    assert left[1] < 1.25 * left[0]  # runs part where rounding decides, either way


@pytest.mark.parametrize("widths", [(30,), (12, 9)])
@pytest.mark.parametrize("m", [20, 60, 120])
def test_multipliers_are_the_best_there_are(m: int, widths: tuple[int, ...]) -> None:
    """Also where candidates outnumber what determines them."""
    target, config, state = begun(m=m, steps=300, widths=widths)
    for _ in range(6):
        state = kkt.advance(target, state, config, 40)
        gram, inner = problem(target, config, state)
        gains = inner - gram @ state.lam - RIDGE * gram.trace() * state.lam
        size = float(inner.abs().max())
        assert bool((state.lam >= 0).all()) and float(gains.max()) <= 1e-9 * size
        assert float((gains * state.lam).abs().max()) <= 1e-9 * size * float(state.lam.max())
        plain = by_calls(target, state, config)
        assert float(plain.loss) == pytest.approx(
            float(kkt.advance(target, state, config, 1).loss), rel=1e-7
        )


def test_candidates_in_one_place_are_solved_for() -> None:
    target, config, _ = begun()
    x = torch.full((8, 2), 0.3).double()
    x[5] += 1e-9
    y = torch.tensor([1.0, 1, 1, 1, -1, -1, -1, -1]).double()
    first = kkt.init(target, config, rng(5), Start(x, y))
    state, plain = by_loops(target, first, config), by_calls(target, first, config)
    assert state.t == 1 and not state.diverged
    assert float(state.loss) == pytest.approx(float(plain.loss), rel=1e-6)
    assert single(target, state, config, 5).t == kkt.advance(target, state, config, 5).t == 6


def single(target: Target, state: KKTState, config: KKTConfig, steps: int) -> KKTState:
    for _ in range(steps):
        state = by_calls(target, state, config)
    return state


def test_moments_of_a_joint_run_go_on() -> None:
    target, config, state = begun()
    state = single(target, state, replace(config, multipliers="joint"), 4)
    same(kkt.advance(target, state, config, 6), single(target, state, config, 6), 1e-8)


def test_a_run_diverges_where_single_steps_do() -> None:
    target, config, first = begun(optimizer="sgd", lr_x=1e120, decay=1.0, steps=400)
    slow = first
    while not kkt.terminate(slow, config).over:
        slow = by_calls(target, slow, config)
    fast = kkt.advance(target, first, config, 400)
    assert slow.diverged and fast.diverged and slow.t == fast.t < 400
    torch.testing.assert_close(fast.x, slow.x, rtol=1e-6, atol=0)


def test_no_step_is_no_change() -> None:
    target, config, first = begun()
    assert kkt.advance(target, first, config, 0) is first
    ended = kkt.advance(target, first, config, 10**6)
    assert ended.t == config.steps and kkt.advance(target, ended, config, 1) is ended


def test_the_past_is_not_changed() -> None:
    target, config, first = begun()
    before = first.x.clone(), first.lam.clone(), first.moments.mean[0].clone()
    states = list(kkt.iterate(target, first, replace(config, steps=9), 3))
    assert [s.t for s in states] == [3, 6, 9]
    assert not torch.equal(states[0].x, states[1].x)
    for old, new in zip(before, (first.x, first.lam, first.moments.mean[0]), strict=True):
        assert torch.equal(old, new)


def test_without_compiled_loops_there_are_single_steps(monkeypatch) -> None:
    monkeypatch.setattr(loops, "compiled_module", lambda _: None)
    assert_single(Target(init_network(2, (9,), generator=rng(1), first_scale=0.7)), CONFIG)


def assert_single(target: Target, config: KKTConfig) -> None:
    first = kkt.init(target, config, rng(2))
    plain = single(target, first, config, 4)
    assert torch.equal(kkt.advance(target, first, config, 4).x, plain.x)
