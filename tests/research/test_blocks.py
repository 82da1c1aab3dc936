"""A run that nobody watches step by step takes its steps in blocks, and comes to the same."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
import torch

from explorer.engine.attacks import kkt
from explorer.engine.attacks.attack import Attack
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.network import init_network
from explorer.research import runs
from explorer.research.grid import GridCell, run_cell

JOINT = KKTConfig(m=6, steps=250, multipliers="joint", lr_x=0.002, lr_lam=0.002)


@pytest.fixture
def no_single_step(monkeypatch):
    def refused(*_):
        raise AssertionError("a single step was taken")

    monkeypatch.setattr(kkt, "step", refused)


def one_by_one(entry, target, state, config, _):
    while not entry.terminate(state, config).over:
        state = entry.step(target, state, config)
        yield state


def attacked(config=JOINT):
    generator = torch.Generator().manual_seed(0)
    target = Target(init_network(2, (20,), generator=generator, first_scale=0.7))
    return runs.attack(target, config, 0)


def test_an_attack_without_a_page_goes_in_blocks(monkeypatch, no_single_step):
    fast = attacked()
    monkeypatch.undo()
    monkeypatch.setattr(Attack, "iterate", one_by_one)
    slow = attacked()
    assert [s.t for s in fast.states] == [s.t for s in slow.states]
    for ours, theirs in zip(fast.states, slow.states, strict=True):
        torch.testing.assert_close(ours.x, theirs.x, rtol=1e-8, atol=1e-10)
        assert ours.numbers() == pytest.approx(theirs.numbers(), rel=1e-8, abs=1e-12)


def test_a_cell_of_the_grid_goes_in_blocks(monkeypatch, no_single_step):
    settings = {k: v for k, v in asdict(JOINT).items() if k in ("multipliers", "steps", "lr_x")}
    cell = GridCell("alternating-circle", "kkt", 0.5, 0.25, n=6, settings=settings)
    fast = run_cell(cell)
    monkeypatch.undo()
    monkeypatch.setattr(Attack, "iterate", one_by_one)
    slow = run_cell(cell)
    assert fast["steps"] == slow["steps"] == JOINT.steps and len(fast["trail"]) >= 20
    for name in ("start", "truth", "heldout", "noise"):
        assert fast[name] == pytest.approx(slow[name], rel=1e-6)


def test_projected_multipliers_go_in_blocks_too(no_single_step):
    states = attacked(replace(JOINT, multipliers="projected", steps=130)).states
    assert [s.t for s in states] == list(range(0, 131, 2))


def test_a_watch_sees_states_between_those_that_are_kept():
    seen = []

    def watch(states, total, label):
        for state in states:
            seen.append(state.t)
            yield state
        assert total == 65 and label == "attack"

    generator = torch.Generator().manual_seed(0)
    target = Target(init_network(2, (5,), generator=generator, first_scale=0.7))
    done = runs.attack(target, KKTConfig(m=4, steps=130), 0, keep=1, watch=watch)
    assert seen == list(range(2, 131, 2)) and [s.t for s in done.states] == [0, 130]
