"""Blocks of steps on static buffers descend as single steps do."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest
import torch

from explorer.engine.attacks import kkt
from explorer.engine.attacks.kkt import KKTConfig, Start, loops, loss
from explorer.engine.attacks.kkt.blocks import Replay
from explorer.engine.attacks.target import Target
from explorer.engine.network import init_network
from tests.engine.draws import draw, rng

CONFIG = KKTConfig(m=6, steps=40, multipliers="joint", lr_x=0.01, lr_lam=0.01, prior=0.8)
PLAIN = replace(CONFIG, optimizer="sgd", lr_x=1e-8, lr_lam=1e-8, weight_margin=0.0, prior=None)
FLOOR = replace(CONFIG, lam_min=0.3, relu_alpha_start=None)


@pytest.mark.parametrize("config", [CONFIG, PLAIN, FLOOR], ids=["adam", "sgd", "floor"])
@pytest.mark.parametrize("widths", [(12,), (9, 7)], ids=["two layers", "three layers"])
@pytest.mark.parametrize("d", [2, 65], ids=["few inputs", "many"])
@pytest.mark.parametrize("room", [2**15, 150, 1], ids=["at once", "two of three", "one by one"])
def test_a_block_of_starts_is_as_many_steps(config, widths, d, room, monkeypatch):
    monkeypatch.setattr(loss, "CACHED", room)
    target = Target(init_network(d, widths, generator=rng(0), first_scale=0.7))
    y = torch.tensor([1.0, 1, 1, -1, -1, -1]).double()
    slow = first = kkt.init(target, config, rng(2), Start(draw(3, 6, d), y))
    for _ in range(7):
        slow = kkt.step(target, slow, config)
    run = Replay(target, first, config)
    run.advance(7)
    fast = run.state()
    assert fast.t == slow.t == 7 and fast.moments.t == 7
    for name in ("x", "lam", "grad_x", "grad_lam", "loss", "l_margin"):
        torch.testing.assert_close(getattr(fast, name), getattr(slow, name), rtol=1e-10, atol=1e-10)
    for ours, theirs in zip(fast.moments.mean, slow.moments.mean, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_the_states_taken_on_the_way_are_not_moved():
    target = Target(init_network(2, (12,), generator=rng(0), first_scale=0.7))
    run = Replay(target, kkt.init(target, CONFIG, rng(2)), CONFIG)
    run.advance(3)
    there = run.state()
    x = there.x.clone()
    run.advance(3)
    assert torch.equal(there.x, x) and run.state().t == 6


@pytest.fixture(params=[True, False], ids=["loops", "calls"])
def way(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(loops, "compiled_module", lambda _: None)


@pytest.mark.usefixtures("way")
def test_steps_that_are_not_finite_are_not_taken():
    target = Target(init_network(2, (12,), generator=rng(0), first_scale=0.7))
    wild = replace(PLAIN, lr_x=1e160, decay=1.0)
    first = kkt.init(target, wild, rng(2))
    after = kkt.advance(target, first, wild, 20)
    assert after.diverged and torch.equal(after.x, first.x)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("multipliers", ["joint", "projected"])
@pytest.mark.parametrize("starts", [(), (2,)], ids=["single", "batch"])
def test_a_stride_leaves_states_out_and_changes_none(multipliers, starts):
    target = Target(init_network(2, (12,), generator=rng(0), first_scale=0.7))
    config = replace(CONFIG, multipliers=multipliers, steps=25)
    x = draw(*starts, 6, 2)
    first = kkt.init(target, config, rng(2), Start(x, torch.tensor([1.0, 1, 1, -1, -1, -1])))
    for _ in range(3):  # a run may be taken up anywhere
        first = kkt.step(target, first, config)
    one_by_one = {state.t: state for state in kkt.iterate(target, first, config)}
    strided = list(kkt.iterate(target, first, config, 10))
    assert [state.t for state in strided] == [10, 20, 25]
    for state in strided:
        for name in ("x", "lam", "loss", "grad_x", "grad_lam"):
            wanted = getattr(one_by_one[state.t], name)
            torch.testing.assert_close(getattr(state, name), wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("way")
def test_a_stride_ends_where_the_steps_do():
    target = Target(init_network(2, (12,), generator=rng(0), first_scale=0.7))
    wild = replace(PLAIN, lr_x=10.0, lr_lam=10.0, decay=1.0, steps=400)
    first = kkt.init(target, wild, rng(2))
    slow, fast = (deque(kkt.iterate(target, first, wild, n), 1)[0] for n in (1, 100))
    assert slow.diverged and fast.diverged and slow.t == fast.t < 400
    torch.testing.assert_close(fast.x, slow.x, rtol=1e-6, atol=0)
