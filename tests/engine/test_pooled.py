"""The pooled attack: its starts, what joins the pool, laws, a circle, errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from explorer.engine.attacks import hinge, kkt, pooled
from explorer.engine.attacks import pooled as largest
from explorer.engine.attacks.pooled import PooledConfig
from explorer.engine.attacks.target import Target
from explorer.engine.data import preset
from explorer.engine.explanations.largest import LargestMiss
from explorer.engine.network import phi
from explorer.engine.scoring import score
from explorer.engine.status import Status
from explorer.engine.training import TrainConfig
from tests.engine.draws import aimed, attacked, make, rng, trained

SMALL = PooledConfig(starts=2, m=20, descent=200, grid=20)


@pytest.fixture(scope="module")
def circle():
    data = preset("alternating-circle", 8, 0.0, 101)
    config = TrainConfig(widths=(20, 20), steps=6000, init_scale=1e-2)
    return data, aimed(trained(data, config, 101))


@pytest.fixture(scope="module")
def states(circle):
    first = pooled.init(circle[1], SMALL, rng(1))
    return [first, *pooled.ATTACK.iterate(circle[1], first, SMALL)]


def test_stages_follow_one_another_and_end(circle, states):
    stages = list(dict.fromkeys(s.stage for s in states))
    assert stages == ["starts", "lines", "cross", "fit", "prove", "weigh", "done"]
    assert [s.t for s in states] == list(range(len(states)))
    assert pooled.terminate(states[-1], SMALL) is Status.COMPLETE
    assert pooled.step(circle[1], states[-1], SMALL) is states[-1]


def test_each_start_is_a_reconstruction_of_its_own(circle, states):
    _, target = circle
    for number in range(SMALL.starts):
        seed = states[0].seed + pooled.STRIDE * number
        _, claimed = attacked(kkt, target, SMALL.reconstruction(), seed)
        mine = states[-1].start == number
        assert torch.equal(states[-1].found[mine], claimed.x)
        assert torch.equal(states[-1].labels[mine], claimed.y)
    first, second = (states[-1].found[states[-1].start == k] for k in (0, 1))
    assert first.shape != second.shape or not torch.equal(first, second)


def test_claims_of_all_starts_stand_in_the_pool_beside_the_crossings(circle, states):
    cross = next(s for s in states if s.stage == "cross")
    apart = torch.cdist(cross.found, cross.pool).min(1).values
    assert float(apart.max()) <= 0.03
    plain = hinge.step(circle[1], hinge.init(circle[1], SMALL, rng()), SMALL)
    assert len(cross.pool) > len(plain.pool)
    assert torch.equal(cross.pool[-len(plain.pool) :], plain.pool)
    assert torch.equal(cross.y, phi(circle[1].net, cross.x).sign())


def test_the_fit_explains_no_less_than_the_starts_and_never_loses(states):
    fits = [s.residual for s in states if s.stage == "fit"]
    assert fits == sorted(fits, reverse=True)
    assert states[-1].residual <= fits[0] < 1


def test_a_claim_has_no_heavier_neighbour_of_its_label(circle, states):
    last = replace(states[-1], rise=states[-1].rise[:0])  # as in two layers: no gathering
    claims = pooled.report(circle[1], last, SMALL)
    assert len(claims.x) > 0
    for x, y, lam in zip(claims.x, claims.y, claims.lam, strict=True):
        near = ((last.x - x).norm(dim=1) <= SMALL.radius) & (last.y == y)
        assert float(last.lam[near].max()) == float(lam)
    one = replace(SMALL, claim="fitted")
    assert len(pooled.report(circle[1], last, one).x) >= len(claims.x)


def test_two_needed_places_of_one_neighbourhood_are_one_claim(circle, states):
    x = torch.tensor([[0.0, 1.0], [0.05, 1.0], [0.0, -1.0]], dtype=torch.float64)
    y, lam = torch.ones(3).double(), torch.tensor([2.0, 1.0, 0.5]).double()
    made = replace(states[-1], x=x, y=y, lam=lam, without=torch.ones(3).double(), limit=0.5,
                   rise=torch.zeros(0))  # fmt: skip
    claims = pooled.report(circle[1], made, SMALL)
    assert claims.x.tolist() == [[0.0, 1.0], [0.0, -1.0]]
    other = replace(made, y=torch.tensor([1.0, -1.0, 1.0]).double())
    assert len(pooled.report(circle[1], other, SMALL).x) == 3


def test_the_second_question_is_asked_of_places_that_raise_the_residual(circle, states):
    last = states[-1]
    first = next(s for s in states if s.stage == "weigh")
    asked = ~last.rise.isnan()
    assert torch.equal(first.without.nan_to_num(-1), last.without.nan_to_num(-1))
    stop = (1 + largest.RESIDUAL) * last.residual
    assert torch.equal(asked, (last.without >= stop) & ~(last.without >= last.limit))
    assert bool((last.rise[last.also] >= largest.LARGEST).all())
    assert torch.equal(last.needed, (last.without >= last.limit) | last.also)


def test_a_place_left_out_needs_a_larger_component(circle, states):
    last, target = states[-1], circle[1]
    net = hinge.explained_network(target, SMALL)
    made = LargestMiss.of(net, last.x, last.y, SMALL.reach, SMALL.tau)
    rho = float(net.rho)
    near = ((made.x - last.x[0]).norm(dim=1) <= 0.1) & (made.y == last.y[0])
    values = []
    for columns in (made.columns, made.columns[:, ~near.numpy()]):  # all rows at once
        table = np.concatenate([columns, -columns])
        table = np.concatenate([table, np.full((len(table), 1), -rho)], axis=1)
        theta = made.theta
        cost = np.append(np.zeros(columns.shape[1]), 1.0)
        done = linprog(cost, A_ub=table, b_ub=np.concatenate([theta, -theta]), method="highs")
        values.append(done.fun)
    assert made.of_all == pytest.approx(values[0], rel=1e-4)
    rise = made.rise(last.x[0], last.y[0], 0.1)
    assert rise == pytest.approx(values[1] / values[0] - 1, abs=1e-3)
    assert rise >= 0 and made.rise(last.x[0] + 50, last.y[0], 0.1) == pytest.approx(0, abs=1e-6)


def test_parts_of_one_point_are_claimed_at_their_mean(circle, states):
    x = torch.tensor([[0.0, 1.0], [0.12, 1.0], [0.0, -1.0]], dtype=torch.float64)
    y, lam = torch.ones(3).double(), torch.tensor([2.0, 1.0, 0.5]).double()
    made = replace(states[-1], x=x, y=y, lam=lam, without=torch.ones(3).double(), limit=0.5,
                   rise=torch.ones(3), also=torch.zeros(3) > 0)  # fmt: skip
    claims = pooled.report(circle[1], made, SMALL)
    assert torch.allclose(claims.x, torch.tensor([[0.04, 1.0], [0.0, -1.0]]).double())
    alone = replace(made, without=torch.tensor([1.0, 0.0, 1.0]).double())
    claims = pooled.report(circle[1], alone, SMALL)  # a part that is not needed moves nothing
    assert torch.equal(claims.x, x[[0, 2]])


def test_in_two_layers_no_second_question_is_asked(circle, states):
    answered = next(s for s in states if s.stage == "weigh")
    asking = replace(answered, stage="prove", rise=answered.rise[:0], also=answered.also[:0])
    made = pooled.step(circle[1], asking, SMALL)
    assert made.stage == "weigh" and made.rise.isnan().all() and len(made.rise) == len(made.x)
    made = pooled.step(Target(make((5,))), asking, SMALL)  # the first one is convex and decides
    assert made.stage == "done" and len(made.rise) == 0


def test_a_circle_in_three_layers_has_no_false_claim(circle, states):
    data, target = circle
    claims = pooled.report(target, states[-1], SMALL)
    found = int(score(data, claims.x, claims.y, (0.1,)).found)
    assert found == len(claims.x) > 0
