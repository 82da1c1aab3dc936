"""Compiled loops of DecoReco take the steps that `decoreco.step` takes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from explorer.engine.attacks import decoreco, descent_loops
from explorer.engine.attacks.decoreco import DecoRecoConfig, DecoRecoState, Start
from explorer.engine.attacks.target import Target
from explorer.engine.classes import fair_labels
from explorer.engine.data import preset
from explorer.engine.network import init_network
from explorer.engine.roster import by_key
from explorer.engine.status import Status
from explorer.engine.weight_decay import DecayConfig, settle
from tests.engine.draws import draw, rng

STEPS = 25
CONFIG = DecoRecoConfig(m=9, steps=40, lr_x=0.01)
OUTPUTS, JOINT = {"contribution": "outputs"}, {"multipliers": "joint"}
CASES = {
    "usual": {},
    "runner-up": {"rivals": "runner-up"},
    "outputs": OUTPUTS,
    "joint": JOINT,
    "joint, outputs": OUTPUTS | JOINT,
    "joint, runner-up": JOINT | {"rivals": "runner-up"},
    "one output": {"outputs": 1},
    "one output, outputs": {"outputs": 1} | OUTPUTS,
    "two outputs": {"outputs": 2},
    "line": {"d": 1} | JOINT,
    "sgd": JOINT | {"optimizer": "sgd", "lr_x": 1e-3, "lr_lam": 1e-3},
    "box": {"prior": 0.5},
    "floor": {"lam_min": 0.2},
    "joint, floor": JOINT | {"lam_min": 0.7},
    "without bias": {"bias": False},
    "biases": {"all_biases": True},
    "biases, outputs": {"all_biases": True} | OUTPUTS,
    "many": {"d": 9, "outputs": 10, "m": 20},
    "not merged": {"merge_angle": 0.0, "relu_alpha_start": None},
    "no margin": {"weight_margin": 0.0},
    "deep": {"widths": (12, 9)},
    "deep, joint": {"widths": (12, 9)} | JOINT,
    "deep, outputs": {"widths": (12, 9), "all_biases": True} | OUTPUTS,
    "deep, runner-up, floor": {"widths": (12, 9), "rivals": "runner-up", "lam_min": 0.2},
}
NUMBERS = (
    "x", "y", "lam", "l_stationary", "l_dual", "l_prior", "l_margin", "loss", "grad_x", "coef",
    "pull", "grad_coef",
)  # fmt: skip


def begun(
    d: int = 2, outputs: int = 3, bias: bool = True, all_biases: bool = False,
    dtype: torch.dtype = torch.float64, widths: tuple[int, ...] = (30,), **more: object,
) -> tuple[Target, DecoRecoConfig, DecoRecoState]:  # fmt: skip
    """A target, settings and a first state."""
    config = replace(CONFIG, **more)
    net = init_network(
        d, widths, generator=rng(3), bias=bias, first_scale=0.7, all_biases=all_biases,
        outputs=outputs,
    )  # fmt: skip
    x = 1.5 * draw(config.m, d, seed=4)
    start, target = Start(x, fair_labels(config.m, outputs)), Target(net.to(dtype=dtype))
    return target, config, decoreco.init(target, config, rng(5), start)


def same(mine: DecoRecoState, theirs: DecoRecoState, share: float) -> None:
    assert mine.t == theirs.t and mine.moments.t == theirs.moments.t
    pairs = [(getattr(mine, name), getattr(theirs, name)) for name in NUMBERS]
    for some in ("mean", "square"):
        pairs += zip(getattr(mine.moments, some), getattr(theirs.moments, some), strict=True)
    for ours, wanted in pairs:
        assert ours.shape == wanted.shape
        size = max(float(wanted.abs().max()), 1e-3)
        torch.testing.assert_close(ours, wanted, rtol=0, atol=share * size)


@pytest.fixture
def no_single_step(monkeypatch) -> None:
    """From here on `decoreco.step` is refused to the road."""

    def refused(*_: object) -> None:
        raise AssertionError("a single step")

    monkeypatch.setattr(decoreco, "step", refused)


one_by_one = decoreco.step


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_state_is_that_of_single_steps(case: dict, no_single_step) -> None:
    target, config, first = begun(**case)
    plain = first
    for stepped in decoreco.iterate(target, first, config):
        plain = one_by_one(target, plain, config)
        same(stepped, plain, 1e-8)
        if plain.t == STEPS:
            break
    same(decoreco.advance(target, first, config, STEPS), plain, 1e-8)


@pytest.mark.parametrize("more", [{}, OUTPUTS], ids=["margin", "outputs"])
def test_where_nothing_is_left_multipliers_are_as_fine(more: dict, no_single_step) -> None:
    """At a stationary point of weight decay candidates near the truth explain all of theta."""
    truth = preset("three-blobs", seed=0)
    net = settle(truth.x, truth.y, DecayConfig(widths=(3,)), rng(0), truth.outputs).net
    target, config = Target(net), replace(CONFIG, relu_alpha=1e4, relu_alpha_start=None, **more)
    first = decoreco.init(target, config, rng(0), Start(truth.x, truth.y))
    single, block = (f(target, first, config) for f in (one_by_one, in_block))
    assert float(single.l_stationary) < 1e-25 > float(block.l_stationary)
    torch.testing.assert_close(block.coef, single.coef, rtol=0, atol=1e-6 * target.mass)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_loops_in_single_precision_take_the_steps_of_torch(case: dict) -> None:
    target, config, state = begun(**case, dtype=torch.float32)
    assert decoreco.serves(target, state, config)
    for _ in range(12):
        mine, state = in_block(target, state, config), one_by_one(target, state, config)
        torch.testing.assert_close(mine.x, state.x, rtol=0, atol=1e-5)
        torch.testing.assert_close(mine.loss, state.loss, rtol=1e-3, atol=0)
        assert {getattr(mine, name).dtype for name in NUMBERS} == {torch.float32}


def in_block(target: Target, state: DecoRecoState, config: DecoRecoConfig) -> DecoRecoState:
    return decoreco.advance(target, state, config, 1)


@pytest.mark.parametrize("stride", [1, 8, 20])
def test_every_road_takes_them(stride: int, no_single_step) -> None:
    """Page, commands, sweeps and arenas go through the row of the roster, whatever the stride."""
    target, config, first = begun()
    entry = by_key("decoreco")
    states = list(entry.iterate(target, first, config, stride))
    assert [s.t for s in states] == list(range(stride, config.steps + 1, stride))
    same(states[-1], entry.advance(target, first, config, config.steps), 1e-8)


def test_no_step_leaves_the_state_as_it_is() -> None:
    target, config, first = begun()
    assert decoreco.advance(target, first, config, 0).numbers() == first.numbers()


def test_calls_of_few_steps_are_one_run(monkeypatch) -> None:
    target, config, first = begun()
    whole = decoreco.advance(target, first, config, STEPS)
    monkeypatch.setattr(descent_loops, "PIECE", 1)
    same(decoreco.advance(target, first, config, STEPS), whole, 1e-12)


def test_a_run_diverges_where_single_steps_do() -> None:
    target, config, first = begun(optimizer="sgd", lr_x=1e200)
    plain = first
    while not decoreco.terminate(plain, config).over:
        plain = one_by_one(target, plain, config)
    end = decoreco.advance(target, first, config, 40)
    assert decoreco.terminate(end, config) is decoreco.terminate(plain, config) is Status.DIVERGED
    assert end.t == plain.t


def test_without_numba_it_takes_single_steps(monkeypatch) -> None:
    monkeypatch.setattr(decoreco, "compiled_module", lambda _: None)
    target, config, first = begun()
    assert torch.equal(in_block(target, first, config).x, one_by_one(target, first, config).x)
