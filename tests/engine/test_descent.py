"""What descents share: how they end, and one step with a rate per tensor."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from explorer.engine.attacks.descent import descent_status, descent_step
from explorer.engine.optim import Moments, momentum_step
from explorer.engine.status import Status
from tests.engine.draws import draw


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
