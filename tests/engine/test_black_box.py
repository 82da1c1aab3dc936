"""The black box attack on the line: its graph, what it claims, and what it takes from outputs."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from explorer.engine.attacks.black_box import ATTACK, BlackBoxConfig, shown_graph
from explorer.engine.attacks.target import Target
from explorer.engine.exact import maximum_margin
from explorer.engine.network import Network
from explorer.engine.piecewise import describe
from explorer.engine.roster import by_key
from explorer.engine.status import Status
from tests.engine.draws import rng


def exact(seed):
    """An exact network of 3 to 8 points of the line, and the points."""
    g = np.random.default_rng(seed)
    n = int(g.integers(3, 9))
    x, y = np.sort(g.uniform(-2, 2, n)), g.choice([-1.0, 1.0], n)
    y[:2] = 1.0, -1.0
    x = torch.from_numpy(x)[:, None]
    return Target.of(maximum_margin(x, torch.from_numpy(y)).net, 1.0), x


def last(target, **settings):
    config = BlackBoxConfig(**settings)
    *_, state = ATTACK.states(target, config, rng(0))
    return state, config


def random_graph(seed, neurons=10):
    """A network of the line with so many neurons, breakpoints within [-2, 2]."""
    g = torch.Generator().manual_seed(seed)
    w, v = (torch.randn(neurons, generator=g, dtype=torch.float64) for _ in range(2))
    beta = 4 * torch.rand(neurons, generator=g, dtype=torch.float64) - 2
    return Target(Network((w[:, None], v[None]), (-w * beta, None)))


@pytest.mark.parametrize("seed", range(6))
def test_queries_find_the_graph_within_the_error_they_say(seed: int) -> None:
    target = random_graph(seed)
    state, config = last(target, claims="all places")
    found, truth = shown_graph(state), describe(target.net)
    assert len(found) == len(truth) and len(state.asked) <= config.queries
    assert np.abs(found.breaks - truth.breaks).max() <= max(state.error, 1e-13) <= 1e-6
    np.testing.assert_allclose(found.slope, truth.slope, atol=1e-7)


@cache
def whole(seed):
    """An exact network, its points, and the attack on outputs with all digits, at its end."""
    target, x = exact(seed)
    return target, x, *last(target)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 6, 7])  # 4 has as many cases as 2
def test_it_claims_training_points_alone(seed: int) -> None:
    target, x, state, config = whole(seed)
    claims = ATTACK.report(target, state, config).x
    assert state.cases and len(claims)
    assert float(torch.cdist(claims, x).min(1).values.max()) < 1e-6
    provable = by_key("univariate")
    *_, known = provable.states(target, provable.config(), rng(0))
    assert len(claims) <= int(known.proven.sum())  # weights tell no less than outputs


@pytest.mark.parametrize("digits", [3, 6, 9])
def test_fewer_digits_claim_less_and_nothing_false(digits: int) -> None:
    for seed in (0, 1, 3):  # of few cases
        target, x, full, _ = whole(seed)
        state, config = last(target, digits=digits)
        claims = ATTACK.report(target, state, config).x
        assert len(claims) <= int((full.lam > 0).sum())
        near = torch.cdist(claims, x).min(1).values
        assert bool((near <= 1e-6 + 100 * state.error).all())


def test_it_reads_outputs_and_not_weights() -> None:
    target, _ = exact(1)
    w, b, v = target.net.weights[0], target.net.biases[0], target.net.weights[1]
    halves = Network(
        (torch.cat([2 * w, w]), torch.cat([v / 4, v / 2], 1)), (torch.cat([2 * b, b]), None)
    )
    one, other = (last(Target(net))[0] for net in (target.net, halves))
    assert one.cases == other.cases > 0
    torch.testing.assert_close(one.x, other.x, atol=1e-8, rtol=0)
    assert torch.equal(one.lam > 0, other.lam > 0)


def test_weights_off_a_kkt_point_and_too_few_queries_claim_nothing() -> None:
    net = exact(0)[0].net
    moved = net.with_theta(net.theta + 1e-3 * torch.randn(len(net.theta), generator=rng(0)))
    rough, short = last(Target(moved)), last(Target(net), queries=20)
    assert rough[0].cases == 0 and short[0].over
    for (ended, config), word in ((rough, "nothing is claimed"), (short, "more queries")):
        assert ATTACK.terminate(ended, config) is Status.COMPLETE
        assert not int((ended.lam > 0).sum()) and word in ATTACK.words(ended, config)
