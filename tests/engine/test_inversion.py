"""Model inversion: known directions, the box, the seeds, and what it does not claim."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from explorer.engine.attacks import inversion
from explorer.engine.attacks.inversion import InversionConfig
from explorer.engine.attacks.target import Target
from explorer.engine.network import Network, phi
from explorer.engine.status import Status
from tests.engine.closed_forms import three_at_120
from tests.engine.draws import make, rng

FREE = InversionConfig(m=6, steps=30, box=None)


def linear(w):
    """relu(w . x) - relu(-w . x) = w . x, in any dimension."""
    w = torch.tensor(w, dtype=torch.float64)
    last = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    return Target(Network((torch.stack([w, -w]), last), (None, None)))


def run(target, config, seed=0):
    states = [inversion.init(target, config, rng(seed))]
    states += inversion.ATTACK.iterate(target, states[0], config)
    return states


def test_a_linear_network_sends_every_candidate_along_its_weights() -> None:
    target, w = linear([3.0, -1.0, 0.5]), torch.tensor([3.0, -1.0, 0.5], dtype=torch.float64)
    state = inversion.init(target, FREE, rng(1))
    expected = -state.y[:, None] * w / FREE.m
    assert torch.allclose(state.grad_x, expected, rtol=1e-12, atol=0)
    moved = run(target, FREE, 1)[-1].x - state.x
    assert bool((moved.sign() == (state.y[:, None] * w).sign()).all())


@pytest.mark.parametrize("goal", ["extreme", "value"])
@pytest.mark.parametrize("widths", [(7,), (6, 4), (5, 3, 4)])
def test_the_gradient_is_that_of_autograd(goal, widths) -> None:
    config = replace(FREE, goal=goal, value=1.3)
    target = Target(make(widths, scale=0.8))
    state = inversion.init(target, config, rng(2))
    x = state.x.clone().requires_grad_()
    output = state.y * phi(target.net, x)
    loss = (output - 1.3).square().mean() if goal == "value" else -output.mean()
    (grad,) = torch.autograd.grad(loss, x)
    assert torch.allclose(state.grad_x, grad, rtol=1e-10, atol=1e-14)
    assert math.isclose(float(state.loss), float(loss.detach()), rel_tol=1e-12)


def test_the_box_is_respected_and_reached() -> None:
    config = InversionConfig(m=8, steps=60, lr_x=0.2, sigma_x=3.0, box=0.7)
    states = run(linear([1.0, -2.0, 0.5]), config)
    assert all(float(s.x.abs().max()) <= 0.7 for s in states)
    wanted = states[-1].y[:, None] * torch.tensor([0.7, -0.7, 0.7], dtype=torch.float64)
    assert torch.equal(states[-1].x, wanted)


def test_without_a_box_the_output_has_no_largest_value() -> None:
    steps = [float(s.output.mean()) for s in run(linear([1.0, 2.0]), replace(FREE, steps=50))]
    assert all(b > a for a, b in pairwise(steps))


def test_the_wanted_value_is_reached_and_says_nothing_of_the_points() -> None:
    known = three_at_120([1.0, 1.0, -1.0])
    config = InversionConfig(m=20, steps=400, goal="value", sigma_x=1.5, box=4.0)
    target = Target(known.net)
    state = run(target, config)[-1]
    claimed = inversion.report(target, state, config)
    assert len(claimed.x) > 8
    assert float((claimed.y * phi(known.net, claimed.x) - 1).abs().max()) <= 0.05
    apart = torch.cdist(claimed.x, known.x).min(1).values
    assert float(apart.median()) > 0.1  # on the level set, yet not on the training points
    assert not bool(claimed.lam.any())
    assert not bool(state.lam.any())


def test_claims_of_the_extreme_goal_are_on_their_side() -> None:
    target = Target(make((9,), scale=0.8))
    config = InversionConfig(m=10, steps=20)
    claimed = inversion.report(target, run(target, config)[-1], config)
    assert bool((claimed.y * phi(target.net, claimed.x) > 0).all())


def test_how_a_run_ends() -> None:
    target = linear([1.0, 1.0])
    assert inversion.terminate(run(target, FREE)[-1], FREE) is Status.FINISHED
    state = inversion.init(target, FREE, rng())
    assert inversion.terminate(state, FREE) is Status.RUNNING
    still = replace(state, grad_x=torch.zeros_like(state.grad_x))
    assert inversion.terminate(still, FREE) is Status.CONVERGED
    lost = inversion.step(target, replace(state, grad_x=state.grad_x * math.nan), FREE)
    assert inversion.terminate(lost, FREE) is Status.DIVERGED
    assert torch.equal(lost.x, state.x)
