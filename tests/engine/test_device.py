"""The attack follows its weights to their device: here to one that is none, see `pretend`."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from explorer.engine import training
from explorer.engine.attacks import kkt
from explorer.engine.attacks.attack import Needs
from explorer.engine.attacks.descent import step_table
from explorer.engine.attacks.kkt import KKTConfig, Start
from explorer.engine.attacks.kkt.blocks import Replay
from explorer.engine.attacks.target import Target
from explorer.engine.classes import from_numbers
from explorer.engine.data import Dataset, preset
from explorer.engine.network import init_network
from explorer.engine.roster import ROSTER
from explorer.engine.status import Status
from explorer.engine.training import TrainConfig
from explorer.research import runs
from explorer.research.devices import to_cpu
from tests.engine.draws import draw, rng
from tests.engine.pretend import NAME, Pretend


def aimed(widths=(20,), dtype=torch.float64):
    return Target(init_network(2, widths, generator=rng(), first_scale=0.7, dtype=dtype))


@pytest.mark.parametrize("multipliers", ["joint", "projected"])
@pytest.mark.parametrize("widths", [(12,), (9, 7)], ids=["two layers", "three layers"])
@pytest.mark.parametrize("starts", [None, (), (3,)], ids=["drawn", "single", "batch"])
def test_all_is_made_where_the_weights_are(multipliers, widths, starts):
    target = aimed(widths)
    config = KKTConfig(m=6, steps=8, multipliers=multipliers, prior=0.5)
    y = torch.tensor([1.0, 1, 1, -1, -1, -1]).double()
    start = None
    if starts is not None:
        start = Start(draw(*starts, 6, 2), y)
    with torch.device("meta"):  # what names no device is made there, and meets nothing here
        state = kkt.init(target, config, rng(2), start)
        for stride in (1, 4):
            for state in kkt.iterate(target, state, config, stride):  # noqa: B020
                if state.t in (3, 8):
                    break
    assert state.t == 8 and kkt.terminate(state, config) is Status.FINISHED
    for tensor in (state.x, state.y, state.lam, state.loss, state.grad_lam, *state.moments.square):
        assert tensor.device.type == "cpu" and bool(torch.isfinite(tensor).all())


@pytest.mark.parametrize("multipliers", ["joint", "projected"])
@pytest.mark.parametrize(
    ("widths", "starts", "dtype"),
    [
        ((12,), (), torch.float32),
        ((12,), (3,), torch.float64),
        ((9, 7), (), torch.float64),
        ((9, 7), (3,), torch.float32),
    ],
    ids=["two layers", "two layers, batch", "three layers", "three layers, batch"],
)
def test_no_number_is_read_back_inside_a_block(widths, multipliers, dtype, starts):
    config = KKTConfig(m=6, steps=40, multipliers=multipliers, prior=0.5, lam_min=0.1)
    x = draw(*starts, 6, 2)
    with Pretend() as device:
        target = Target(aimed(widths, dtype).net.to(device=NAME))
        state = kkt.init(target, config, rng(2), Start(x, torch.tensor([1.0, -1] * 3)))
        run = Replay(target, state, config, block=2)
        assert device.reads  # a start is looked at
        device.reads.clear()
        run.descend(run.held, step_table(config, 0, 0, 2, run.steep))
        assert not device.reads
        run.descend(
            run.held, torch.tensor(step_table(config, 2, 2, 1, run.steep), dtype=dtype).to(NAME)
        )
        assert not device.reads  # as a graph has them
        run.advance(4)
        wanted = 2 if multipliers == "projected" else 0  # one a block, where the rounds suffice
        assert wanted <= sum(device.reads.values()) <= 4 * wanted
        assert run.state().x.device.type == NAME
        assert bool(run.state().x.isfinite().all())


STEPS = 12
WAYS = {
    "usual": {}, "ascent": {"method": "ascent"}, "constant": {"step_rule": "constant", "lr": 0.1},
    "mini-batches": {"batch": 4, "step_rule": "constant"}, "logistic": {"loss": "logistic"},
    "three layers": {"widths": (12, 9)}, "biases": {"all_biases": True, "lr": 0.1},
    "weight decay": {"weight_decay": 0.01}, "constant decay": {
        "weight_decay": 0.01, "step_rule": "constant", "momentum": 0.5},
    "decay of biases": {"weight_decay": 0.01, "all_biases": True, "lr": 0.1},
    "three classes": {"classes": 3}, "classes, logistic": {"classes": 4, "loss": "logistic"},
    "classes, ascent": {"classes": 3, "method": "ascent"},
    "classes, decay, mini-batches": {"classes": 3, "weight_decay": 0.02, "batch": 4},
    "too fast": {"step_rule": "constant", "lr": 1e200}, "dead": {"init_scale": 1e-200},
}  # fmt: skip


IN_FLOAT32 = ("usual", "three layers", "classes, decay, mini-batches", "too fast")


@pytest.mark.parametrize(
    ("way", "dtype"),
    [*((way, torch.float64) for way in WAYS), *((way, torch.float32) for way in IN_FLOAT32)],
)
def test_training_on_a_device_is_that_step_by_step_and_reads_once_a_block(way, dtype):
    settings = {"widths": (20,), "steps": 80, **WAYS[way]}
    classes = settings.pop("classes", 2)
    config = TrainConfig(**settings)
    points = preset("alternating-circle", 8).to(dtype=dtype)
    if classes > 2:
        points = Dataset(points.x, from_numbers(torch.arange(8) % classes + 1).to(dtype))
    plain = first = training.init(points, config, rng(3))
    while plain.t < STEPS and not training.terminate(plain, config).over:
        plain = training.step(points, plain, config)
    with Pretend() as device:
        there = points.to(device=NAME)
        state = training.init(there, config, rng(3))
        assert state.net.device.type == NAME
        device.reads.clear()
        sent = training.advance(there, state, config, STEPS)
        once = sum(device.reads.values())
        back = to_cpu(sent.net.theta), to_cpu(sent.q)
    assert sent.t == plain.t and sent.diverged == plain.diverged
    if plain.t == STEPS:
        assert once <= 2
    near = 1e-9 if dtype == torch.float64 else 1e-3
    size = float(first.net.theta.abs().max()) + float(plain.net.theta.abs().max())
    torch.testing.assert_close(back[0], plain.net.theta.double(), rtol=0, atol=near * size)
    for name in ("log_scale", "log_loss", "log_pull", "kappa", "rho"):
        ours, wanted = getattr(sent, name), getattr(plain, name)
        assert ours == pytest.approx(wanted, rel=near, abs=near), name


SENT = [
    ("kkt", {"multipliers": "joint"}), ("kkt", {}), ("inversion", {}),
    ("decoreco", {"multipliers": "joint"}), ("decoreco", {"rivals": "all"}),
    ("decoreco", {"contribution": "outputs"}),
]  # fmt: skip


CLASSES = [(key, more, outputs) for key, more in SENT for outputs in (1, 3)
           if outputs == 1 or ROSTER[key].needs.several]  # fmt: skip


@pytest.mark.parametrize(("key", "more", "outputs"), CLASSES)
def test_an_attack_on_a_device_is_that_on_the_cpu(key, more, outputs):
    entry = ROSTER[key]
    config = entry.config(m=6, steps=5, **more)
    target = Target(init_network(2, (20,), generator=rng(), first_scale=0.7, outputs=outputs))
    plain = runs.attack(target, config, 3, name=key)
    with Pretend() as device:
        sent = runs.attack(target, config, 3, name=key, device=NAME)
    assert device.reads
    assert [s.t for s in sent.states] == [s.t for s in plain.states]
    assert sent.states[-1].x.device.type == sent.claims.x.device.type == "cpu"
    torch.testing.assert_close(sent.states[-1].x, plain.states[-1].x, rtol=0, atol=1e-6)


@pytest.mark.parametrize("multipliers", ["joint", "projected"])
def test_an_attack_sent_to_a_device_is_judged_on_the_cpu(multipliers):
    config = KKTConfig(m=6, steps=120, multipliers=multipliers)
    plain = runs.attack(aimed(), config, 3)
    sent = runs.attack(aimed(), config, 3, device="cpu:0")  # the CPU by another name
    assert [s.t for s in sent.states] == [s.t for s in plain.states]
    torch.testing.assert_close(sent.states[-1].x, plain.states[-1].x, rtol=0, atol=0)
    assert torch.equal(sent.claims.x, plain.claims.x)


def test_what_comes_back_is_float64():
    state = kkt.init(aimed(dtype=torch.float32), KKTConfig(m=4, steps=2), rng())
    assert state.x.dtype == torch.float32
    back = to_cpu((state,))[0]
    assert back.x.dtype == back.loss.dtype == back.moments.mean[1].dtype == torch.float64
    assert back.t == 0 and torch.equal(back.x, state.x.double())


def test_attacks_that_need_the_cpu_stay_there():
    there = [key for key, entry in ROSTER.items() if entry.needs.anywhere]
    assert sorted(there) == sorted({key for key, _ in SENT})
    target, seen = aimed(), []
    entry = ROSTER["inversion"]

    def first(given, *more):
        seen.append(given is target)
        return entry.first(given, *more)

    bound = replace(entry, first=first, needs=Needs())
    runs.attack(target, entry.config(steps=3), 0, name=bound, device="cpu:0")
    assert seen == [True]
