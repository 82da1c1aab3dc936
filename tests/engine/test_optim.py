"""The pure updates against the reference implementations and known points."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from explorer.engine.attacks.descent import descent_status, descent_step
from explorer.engine.optim import Moments, adam_step, momentum_step, zeros_like
from explorer.engine.status import Status
from tests.engine.draws import draw, rng

SHAPES = [(5, 3), (4,), (2, 7)]


def tensors(seed: int) -> tuple[torch.Tensor, ...]:
    generator = rng(seed)
    return tuple(torch.randn(s, generator=generator, dtype=torch.float64) for s in SHAPES)


@pytest.mark.parametrize("beta", [0.0, 0.9])
def test_momentum_follows_the_reference(beta: float) -> None:
    params, velocity = tensors(0), zeros_like(tensors(0))
    theirs = [p.clone().requires_grad_() for p in params]
    optimiser = torch.optim.SGD(theirs, lr=0.03, momentum=beta)
    for t in range(7):
        grads = tensors(t + 1)
        for p, g in zip(theirs, grads, strict=True):
            p.grad = g.clone()
        optimiser.step()
        params, velocity = momentum_step(params, velocity, grads, 0.03, beta)
        for p, q in zip(params, theirs, strict=True):
            assert torch.allclose(p, q, rtol=0, atol=1e-13)


def test_a_changed_rate_leaves_the_steps_taken_alone() -> None:
    params, grads = tensors(0), tensors(1)
    moved, velocity = momentum_step(params, zeros_like(params), grads, 0.5, 0.9)
    coasted, _ = momentum_step(moved, velocity, zeros_like(params), 123.0, 0.9)
    for p, g, q in zip(params, grads, coasted, strict=True):
        assert torch.allclose(q, p - 0.5 * g - 0.45 * g, rtol=0, atol=1e-13)


def test_adam_follows_the_reference() -> None:
    params = tensors(0)
    moments = Moments.zero(params)
    theirs = [p.clone().requires_grad_() for p in params]
    rates = [0.03, 0.1, 0.002]
    optimiser = torch.optim.Adam(
        [{"params": [p], "lr": r} for p, r in zip(theirs, rates, strict=True)]
    )
    for t in range(7):
        grads = tensors(t + 1)
        for p, g in zip(theirs, grads, strict=True):
            p.grad = g.clone()
        optimiser.step()
        params, moments = adam_step(params, moments, grads, rates)
        for p, q in zip(params, theirs, strict=True):
            assert torch.allclose(p, q, rtol=0, atol=1e-13)
    assert moments.t == 7


def test_adams_first_step_has_the_length_of_the_rate() -> None:
    params, grads = tensors(0), tensors(1)
    moved, _ = adam_step(params, Moments.zero(params), grads, 0.25)
    for p, g, q in zip(params, grads, moved, strict=True):
        assert torch.allclose(q - p, -0.25 * g.sign(), rtol=1e-4)


def test_nothing_is_changed_in_place() -> None:
    params, grads = tensors(0), tensors(1)
    moments = Moments.zero(params)
    momentum_step(params, moments.mean, grads, 0.1, 0.9)
    adam_step(params, moments, grads, 0.1)
    for mine, fresh in ((params, tensors(0)), (grads, tensors(1)), (moments.mean, moments.square)):
        assert all(torch.equal(a, b) for a, b in zip(mine, fresh, strict=True))
    assert not any(bool(m.any()) for m in moments.square)


def test_zero_gradients_move_nothing() -> None:
    params = tensors(0)
    moved, _ = adam_step(params, Moments.zero(params), zeros_like(params), 0.1)
    assert all(torch.equal(a, b) for a, b in zip(moved, params, strict=True))


def test_lists_of_unequal_length_are_refused() -> None:
    params = tensors(0)
    with pytest.raises(ValueError, match=r"shorter|longer"):
        momentum_step(params, zeros_like(params), params[:2], 0.1, 0.9)
    with pytest.raises(ValueError, match=r"shorter|longer"):
        adam_step(params, Moments.zero(params), params, [0.1, 0.1])


# --- what descents share: how they end, and one step with a rate per tensor -----------------------


@dataclass(frozen=True)
class Now:
    t: int
    diverged: bool = False


ZERO, SOME = torch.zeros(3, 2), torch.eye(3)[:, :2]


@pytest.mark.parametrize(
    ("state", "grads", "status"),
    [
        (Now(0), (SOME, ZERO), Status.RUNNING),  # one that is not zero is enough to go on
        (Now(0), (ZERO, SOME), Status.RUNNING),
        (Now(0), (ZERO, ZERO), Status.CONVERGED),
        (Now(6), (SOME,), Status.RUNNING),
        (Now(7), (SOME,), Status.FINISHED),
        (Now(7), (ZERO,), Status.CONVERGED),
        (Now(7, diverged=True), (ZERO,), Status.DIVERGED),
        (Now(0, diverged=True), (SOME,), Status.DIVERGED),
    ],
)
def test_a_descent_ends_where_it_cannot_or_need_not_go_on(state, grads, status) -> None:
    assert descent_status(state, 7, *grads) is status


def test_the_heavy_ball_takes_one_rate_per_tensor() -> None:
    params, grads = (draw(3, 2, seed=1), draw(4, seed=2)), (draw(3, 2, seed=3), draw(4, seed=4))
    velocity = (draw(3, 2, seed=5), draw(4, seed=6))
    made = momentum_step(params, velocity, grads, [0.1, 0.7], 0.9)
    for i, rate in enumerate((0.1, 0.7)):
        one = momentum_step(params[i : i + 1], velocity[i : i + 1], grads[i : i + 1], rate, 0.9)
        assert torch.equal(made[0][i], one[0][0]) and torch.equal(made[1][i], one[1][0])
    moments = Moments(4, velocity, velocity)
    places, after = descent_step("sgd", params, moments, grads, (0.1, 0.7), 0.9)
    assert all(torch.equal(a, b) for a, b in zip(places, made[0], strict=True))
    assert after.t == 5 and torch.equal(after.mean[1], made[1][1])
    assert after.square is moments.square
