"""Compiled loops of training take the steps that `training.step` takes, state for state."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.engine import classes, training
from explorer.engine.data import Dataset, preset
from explorer.engine.kernels import training_loops
from explorer.engine.status import Status
from explorer.engine.training import TrainConfig, TrainState
from tests.engine.draws import draw, rng

STEPS = 20
RULES = {
    "loss-scaled": {},
    "logistic": {"loss": "logistic"},
    "constant": {"step_rule": "constant", "lr": 0.3},
    "constant, logistic": {"step_rule": "constant", "loss": "logistic", "momentum": 0.5},
    "ascent": {"method": "ascent", "ascent_steps": 100},
    "decay": {"weight_decay": 1e-2, "momentum": 0.9},
    "decay, constant": {"weight_decay": 1e-2, "step_rule": "constant"},
    "without bias": {"bias": False, "momentum": 0.0},
    "mini-batches": {"batch": 3},
}


def drawn(d: int, n: int, outputs: int = 1) -> Dataset:
    x = draw(n, d, seed=d + n)
    labels = torch.tensor(classes.labels(outputs)).double()
    return Dataset(x, labels[torch.arange(n) % len(labels)])


def started(data: Dataset, config: TrainConfig, scale: float = 1.0) -> TrainState:
    first = training.init(data, config, rng(1))
    net = first.net.with_theta(first.net.theta * scale)
    return training.init(data, config, rng(1), net)


def gap(mine: TrainState, theirs: TrainState) -> float:
    """The largest relative difference of any number of two states."""
    assert (mine.t, mine.batch_seed, mine.loss, mine.diverged) == (
        theirs.t, theirs.batch_seed, theirs.loss, theirs.diverged
    )  # fmt: skip
    ours, others = (
        (s.net.theta, s.q, s.grads, s.velocity, *(
            torch.tensor(v).double()
            for v in (s.log_scale, s.log_loss, math.exp(min(s.log_pull, 600)), s.kappa, s.rho)
        ))
        for s in (mine, theirs)
    )  # fmt: skip
    sizes = [float(v.norm()) for v in others]
    return max(
        float((a - b).norm()) / max(size, 1e-3)
        for a, b, size in zip(ours, others, sizes, strict=True)
    )


# Points (d, n) and widths: two layers go by loops over neurons, the others by products of matrices.
SHAPES = [
    (1, 5, (13,)), (2, 8, (13,)), (2, 20, (13,)), (3, 9, (13,)), (7, 17, (13,)), (20, 6, (13,)),
    (2, 9, (8, 7)), (3, 5, (9, 8, 7)), (20, 6, (5, 4)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("d", "n", "widths", "near"),
    [(*shape, training_loops.NEAR) for shape in SHAPES] + [(*shape, 0) for shape in SHAPES[-4:]],
)
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_every_state_is_that_of_single_steps(
    rule: dict, d: int, n: int, widths: tuple, near: int, monkeypatch
) -> None:
    """Whether or not the gradient of products is kept from one step to the next."""
    monkeypatch.setattr(training_loops, "NEAR", near)
    assert_same_steps(drawn(d, n), TrainConfig(widths=widths, **rule))


# Points, widths, outputs, and whether every layer has a bias.
MORE = [
    (2, 10, (13,), 3, False), (9, 21, (7,), 10, False), (2, 9, (9, 7), 4, False),
    (1, 5, (13,), 1, True), (20, 6, (9, 7), 1, True), (2, 9, (13,), 3, True),
]  # fmt: skip
HOMOGENEOUS = ("ascent", "without bias")


@pytest.mark.parametrize("near", [training_loops.NEAR, 0])
@pytest.mark.parametrize(
    ("d", "n", "widths", "outputs", "biased", "rule"),
    [(*more, rule) for more in MORE for rule in RULES if not (more[-1] and rule in HOMOGENEOUS)],
)
def test_classes_and_biases_take_the_same_steps(
    d: int, n: int, widths: tuple, outputs: int, biased: bool, rule: str, near: int, monkeypatch
) -> None:
    monkeypatch.setattr(training_loops, "NEAR", near)
    slow = {"lr": 0.03} if "lr" in RULES[rule] else {}  # at 0.3 some of them diverge
    config = TrainConfig(widths=widths, all_biases=biased, **RULES[rule] | slow)
    assert_same_steps(drawn(d, n, outputs), config)


def assert_same_steps(data: Dataset, config: TrainConfig) -> None:
    first = started(data, config)
    assert training_loops.serves(first.net, data.x)
    plain, whole = first, training.advance(data, first, config, STEPS)
    for stepped in training.iterate(data, first, replace(config, steps=STEPS)):
        plain = training.step(data, plain, config)
        assert gap(stepped, plain) < 1e-9
    assert plain.t == STEPS and gap(whole, plain) < 1e-9


@settings(max_examples=30, deadline=None)
@given(st.integers(-300, 300), st.sampled_from([(6,), (5, 4)]))
def test_weights_of_any_size_take_the_same_steps(power: int, widths: tuple[int, ...]) -> None:
    data, config = drawn(2, 9), TrainConfig(widths=widths, steps=3)
    first = started(data, config, 2.0**power)
    plain = first
    for stepped in training.iterate(data, first, config):
        plain = training.step(data, plain, config)
        assert stepped.log_scale == pytest.approx(plain.log_scale)
        torch.testing.assert_close(stepped.net.theta, plain.net.theta, rtol=1e-9, atol=1e-12)
        if plain.diverged:
            break


@pytest.mark.parametrize("stride", [1, 7, 10])
def test_a_stride_leaves_states_out_and_changes_none(stride: int) -> None:
    data, config = drawn(2, 8), TrainConfig(widths=(9,), steps=25)
    first = started(data, config)
    states = list(training.iterate(data, first, config, stride))
    assert [s.t for s in states] == sorted({*range(stride, 26, stride), 25})
    for state in states:
        assert gap(state, training.advance(data, first, config, state.t)) < 1e-12


def test_calls_of_few_steps_are_one_run(monkeypatch) -> None:
    data, config = drawn(2, 8), TrainConfig(widths=(9,))
    first = started(data, config)
    whole = training.advance(data, first, config, STEPS)
    monkeypatch.setattr(training_loops, "PIECE", 1)
    assert gap(training.advance(data, first, config, STEPS), whole) < 1e-12  # the last bit may turn


@pytest.mark.parametrize("widths", [(9,), (7, 5)])
@pytest.mark.parametrize("lr", [1e6, 1e300])
def test_a_run_diverges_where_single_steps_do(lr: float, widths: tuple[int, ...]) -> None:
    data = preset("moons", 8)
    config = TrainConfig(widths=widths, step_rule="constant", lr=lr, steps=300)
    first = started(data, config)
    plain = first
    while not training.terminate(plain, config).over:
        plain = training.step(data, plain, config)
    end = training.advance(data, first, config, 300)
    assert training.terminate(plain, config) is training.terminate(end, config) is Status.DIVERGED
    assert (end.t, end.diverged) == (plain.t, True)
    torch.testing.assert_close(end.net.theta, plain.net.theta, rtol=1e-9, atol=0)


def test_a_run_ends_where_no_neuron_is_left() -> None:
    data = Dataset(torch.tensor([[1.0], [2.0]]).double(), torch.tensor([1.0, -1.0]).double())
    config = TrainConfig(
        widths=(1,), bias=False, momentum=0.0, step_rule="constant", lr=0.02, steps=500
    )
    first = training.init(data, config, rng(0))
    net = first.net.with_theta(torch.tensor([0.3, 1.0]).double())
    first = training.init(data, config, rng(0), net)
    plain = first
    while not training.terminate(plain, config).over:
        plain = training.step(data, plain, config)
    end = training.advance(data, first, config, 500)
    assert training.terminate(plain, config) is training.terminate(end, config) is Status.DEAD
    assert 0 < end.t == plain.t < 500


@pytest.mark.parametrize("widths", [(9,), (7, 5)])
def test_no_step_is_no_change(widths: tuple[int, ...]) -> None:
    data, config = drawn(2, 8), TrainConfig(widths=widths, steps=30)
    first = started(data, config)
    assert gap(training.advance(data, first, config, 0), first) == 0
    ended = training.advance(data, first, config, 10**6)
    assert ended.t == 30 and gap(training.advance(data, ended, config, 1), ended) == 0


def test_the_past_is_not_changed() -> None:
    data, config = drawn(2, 8), TrainConfig(widths=(9,))
    first = started(data, config)
    before = [v.clone() for v in (first.net.theta, first.velocity, first.grads, first.q)]
    training.advance(data, first, config, 5)
    after = (first.net.theta, first.velocity, first.grads, first.q)
    for old, new in zip(before, after, strict=True):
        assert torch.equal(old, new)


def test_what_has_no_loops_takes_single_steps(monkeypatch) -> None:
    """float32, and all without numba."""
    data = drawn(2, 9)
    assert_single(data.to(dtype=torch.float32), TrainConfig(widths=(5,)))
    monkeypatch.setattr(training_loops, "compiled_module", lambda _: None)
    assert_single(data, TrainConfig(widths=(5,)))


def assert_single(data: Dataset, config: TrainConfig) -> None:
    first = training.init(data, config, rng(0))
    plain = first
    for _ in range(6):
        plain = training.step(data, plain, config)
    assert torch.equal(training.advance(data, first, config, 6).net.theta, plain.net.theta)
