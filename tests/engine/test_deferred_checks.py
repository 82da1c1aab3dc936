"""Attacks step by step on a device read numbers after a block, and take what is rare one by one."""

from __future__ import annotations

import pytest
import torch

from explorer.engine.attacks.target import Target
from explorer.engine.deferred_checks import BLOCK, DeferredChecks
from explorer.engine.network import Network, init_network
from explorer.engine.roster import ROSTER
from explorer.engine.status import Status
from explorer.research.devices import target_on
from tests.engine.draws import rng
from tests.engine.pretend import NAME, Pretend

KINDS = {
    "inversion": ("inversion", {}, 1),
    "joint": ("decoreco", {"multipliers": "joint"}, 1),
    "projected": ("decoreco", {}, 1),
    "of any sign": ("decoreco", {"contribution": "outputs"}, 1),
    "classes": ("decoreco", {}, 3),
    "classes, joint, runner-up": ("decoreco", {"multipliers": "joint", "rivals": "runner-up"}, 3),
    "classes, of any sign": ("decoreco", {"contribution": "outputs"}, 3),
}


def aimed(outputs: int = 1) -> Target:
    return Target(init_network(2, (20,), generator=rng(0), first_scale=0.7, outputs=outputs))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_block_reads_a_number_or_two_and_is_its_steps(kind):
    key, more, outputs = kind
    entry, steps = ROSTER[key], 10
    config, target = entry.config(m=6, steps=200, **more), aimed(outputs)
    plain = entry.init(target, config, rng(1))
    first = plain
    for _ in range(steps):
        plain = entry.step(target, plain, config)
    with Pretend() as device:
        there = target_on(target, entry, NAME)
        sent = entry.init(there, config, rng(1))
        device.reads.clear()
        sent = entry.advance(there, sent, config, steps)
        assert sum(device.reads.values()) <= 8, device.reads
        back = sent.x.to("cpu"), sent.lam.to("cpu")
    assert sent.t == plain.t == steps < BLOCK
    assert not torch.equal(plain.x, first.x)
    torch.testing.assert_close(back[0], plain.x, rtol=0, atol=1e-6)
    torch.testing.assert_close(back[1], plain.lam, rtol=1e-5, atol=1e-6)


def test_a_run_that_cannot_go_on_ends_where_it_ends_step_by_step():
    entry, target = ROSTER["decoreco"], aimed()
    config = entry.config(m=6, steps=60, multipliers="joint", optimizer="sgd", lr_x=1e20)
    plain = entry.init(target, config, rng(1))
    while not entry.terminate(plain, config).over:
        plain = entry.step(target, plain, config)
    assert entry.terminate(plain, config) is Status.DIVERGED and 0 < plain.t < 60
    with Pretend():
        there = target_on(target, entry, NAME)
        sent = entry.advance(there, entry.init(there, config, rng(1)), config, 60)
        assert sent.diverged and sent.t == plain.t
        torch.testing.assert_close(sent.x.to("cpu"), plain.x)


def test_where_the_truth_is_reached_the_residual_is_refined_as_step_by_step():
    """A network that one candidate explains whole: what is left is rounding from the start on."""
    entry = ROSTER["decoreco"]
    config = entry.config(m=2, steps=4, contribution="outputs", merge_angle=0.0, relu_alpha=1e4,
                          relu_alpha_start=None, deep_alpha=0.0)  # fmt: skip
    x = torch.tensor([[2.0, 0.5], [-2.0, 1.0]]).double()
    one = torch.cat([x, torch.ones(2, 1).double()], 1)  # each switches one neuron on
    w = one / one.norm(dim=1, keepdim=True)
    net = Network((w[:, :2].clone(), torch.ones(1, 2).double()), (w[:, 2].clone(), None))
    target, start = Target(net), (x, torch.ones(2).double())
    plain = entry.init(target, config, rng(1), start)
    assert float(plain.l_stationary) < 1e-12
    for _ in range(4):
        plain = entry.step(target, plain, config)
    with Pretend():
        there = target_on(target, entry, NAME)
        sent = entry.init(there, config, rng(1), start)
        sent = entry.advance(there, sent, config, 4)
        torch.testing.assert_close(sent.x.to("cpu"), plain.x, rtol=0, atol=1e-9)
        assert float(sent.l_stationary) < 1e-12


def test_what_is_noted_is_told_once():
    noted = DeferredChecks()
    assert not noted.any_held()
    assert noted(torch.tensor(False)) is False and not noted.any_held()
    assert noted(torch.tensor(True)) is False and noted.any_held()
