"""Many starts in one program: each moves as it does alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch

from explorer.engine.attacks import kkt
from explorer.engine.attacks.kkt import KKTConfig, Start
from explorer.engine.attacks.target import Target
from explorer.engine.network import Network, init_network
from explorer.engine.status import Status
from tests.engine.draws import draw, rng, uniform


def drawn(d: int, widths: tuple[int, ...]) -> Network:
    return init_network(d, widths, generator=rng(0), first_scale=0.7)


def points(b: int, m: int, d: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    x = draw(b, m, d, seed=2)
    y = torch.where(torch.arange(m) < m // 2, 1.0, -1.0).double()
    return x, y, uniform(b, m, seed=3)


@pytest.mark.parametrize("multipliers", ["joint", "projected"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize(("width", "m"), [(12, 6), (600, 30)])  # together, and start by start
def test_a_batch_walks_as_its_starts_do_alone(multipliers, optimizer, width, m):
    target = Target(drawn(2, (width,)))
    x, y, _ = points(3, m, 2)
    rate = 0.01 if optimizer == "adam" else 1e-8  # plain descent leaves a random wide net at once
    config = KKTConfig(
        m=m, steps=20, multipliers=multipliers, optimizer=optimizer, lam_start=0.0, prior=1.0,
        lr_x=rate, lr_lam=rate,
    )  # fmt: skip
    together = kkt.init(target, config, rng(0), Start(x, y))
    alone = [kkt.init(target, config, rng(0), Start(x[i], y)) for i in range(3)]
    for _ in range(5):
        together = kkt.step(target, together, config)
        alone = [kkt.step(target, state, config) for state in alone]
    for ours, theirs in zip(kkt.single_states(together), alone, strict=True):
        assert ours.t == theirs.t == 5
        torch.testing.assert_close(ours.x, theirs.x, rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(ours.lam, theirs.lam, rtol=1e-6, atol=1e-8)
        assert ours.numbers() == pytest.approx(theirs.numbers(), rel=1e-7, abs=1e-9)
        assert kkt.terminate(ours, config) is Status.RUNNING


def test_one_start_that_fails_leaves_the_others_alone():
    target = Target(drawn(2, (12,)))
    x, y, _ = points(2, 6, 2)
    config = KKTConfig(
        m=6, steps=20, multipliers="joint", optimizer="sgd", lr_x=1.0, decay=1.0, weight_margin=0.0
    )
    state = kkt.init(target, config, rng(0), Start(x, y))
    velocity = state.moments.mean[0].clone()
    velocity[1] = 1e200  # the second start's next step is not finite
    state.moments.mean[0].copy_(velocity)
    after = kkt.step(target, state, config)
    first, second = kkt.single_states(after)
    assert torch.equal(second.x, x[1]) and not torch.equal(first.x, x[0])
    assert torch.isfinite(first.loss) and not first.diverged
    assert second.diverged and not after.diverged


@pytest.mark.parametrize("widths", [(12,), (7, 5)])
def test_a_projected_start_that_fails_leaves_the_others_to_end_as_alone(widths):
    target = Target(drawn(2, widths))
    x, y, _ = points(3, 6, 2)
    config = KKTConfig(m=6, steps=30)
    state = kkt.init(target, config, rng(0), Start(x, y))
    pulled = state.grad_x.clone()
    pulled[0] = 1e308  # the first start's moments overflow, so that no loop goes past it
    together = kkt.advance(target, replace(state, grad_x=pulled), config, 30)
    alone = kkt.advance(target, state, config, 30)
    assert kkt.single_states(together)[0].diverged
    torch.testing.assert_close(together.x[1:], alone.x[1:], rtol=1e-6, atol=1e-8)


def test_a_single_start_is_its_own_split():
    target = Target(drawn(2, (12,)))
    state = kkt.init(target, KKTConfig(m=4, steps=3), rng(0))
    assert kkt.single_states(state) == [state]


@pytest.mark.parametrize("shape", [(0, 2), (4, 3), (2, 2, 4, 2)])
def test_starts_of_another_shape_are_refused(shape):
    target = Target(drawn(2, (12,)))
    with pytest.raises(ValueError, match="start needs x"):
        kkt.init(target, KKTConfig(m=4), rng(0), Start(torch.zeros(shape), torch.ones(shape[-2])))


def test_what_a_step_gives_is_not_lost_at_the_next():
    target = Target(drawn(2, (12,)))
    config = KKTConfig(m=4, steps=9, multipliers="joint")
    state = kkt.init(target, config, rng(0))
    names = ("x", "lam", "loss", "l_margin", "l_dual", "l_stationary", "grad_x", "grad_lam")
    kept = {name: getattr(state, name).clone() for name in names}
    other = kkt.init(target, config, rng(1))  # the same work arrays
    kkt.step(target, other, replace(config, relu_alpha=7.0))
    assert all(torch.equal(getattr(state, name), was) for name, was in kept.items())
    again = kkt.init(target, config, rng(0))
    assert all(torch.equal(getattr(again, name), was) for name, was in kept.items())


def test_threads_have_work_arrays_of_their_own():
    target = Target(drawn(2, (300,)))
    config = KKTConfig(m=40, steps=60, multipliers="joint")
    target.prepared_network(config.merge_angle)

    def run(seed):
        state = kkt.init(target, config, rng(seed))
        for _ in range(60):
            state = kkt.step(target, state, config)
        return state.x

    alone = [run(seed) for seed in range(2)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(run, range(2)))
    assert all(torch.equal(a, b) for a, b in zip(alone, together, strict=True))
