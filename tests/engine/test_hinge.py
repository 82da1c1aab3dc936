"""The hinge attack: vertices of the margin set against slow lists, laws, exact networks, errors."""

from __future__ import annotations

import math

import pytest
import torch

from explorer.engine.attacks import crossings, hinge, pursuit
from explorer.engine.attacks.crossings import curve_vertices
from explorer.engine.attacks.hinge import HingeConfig
from explorer.engine.attacks.target import Target
from explorer.engine.data import Dataset, preset
from explorer.engine.exact import maximum_margin
from explorer.engine.multipliers import fit_multipliers
from explorer.engine.network import Network, phi, preactivations
from explorer.engine.roster import ROSTER
from explorer.engine.scoring import score
from explorer.engine.status import Status
from explorer.engine.training import TrainConfig
from tests.engine import draws
from tests.engine.closed_forms import TABLE, chains
from tests.engine.draws import draw, make, rng


def run(target, config=None):
    """All states of an attack, and its claims."""
    config = config or HingeConfig()
    states = [hinge.init(target, config, rng())]
    states += hinge.ATTACK.iterate(target, states[0], config)
    return states, hinge.report(target, states[-1], config)


def exact(name="random-circle", n=8, seed=100, noise=0.0):
    data = preset(name, n, noise, seed)
    return data, maximum_margin(data.x, data.y)


def kinked(net, x, tol=1e-7):
    """How many neurons have a kink at each point (n,)."""
    size = net.weights[0].norm(dim=1)
    return ((preactivations(net, x)[0] / size).abs() < tol).sum(1)


def distance(x, others):
    return torch.cdist(x, others).min(1).values


# --- vertices ---------------------------------------------------------------------------------


def test_two_lines_meet_where_both_vanish():
    net = make((7,), seed=3, scale=1.0)
    found = crossings.line_crossings(crossings.lines(net), 50.0)
    zeros = preactivations(net, found.x)[0].abs() / net.weights[0].norm(dim=1)
    assert len(found) > 10
    assert float(zeros.sort(dim=1).values[:, 1].max()) < 1e-9


@pytest.mark.parametrize("widths", [(6,), (5, 4)])
def test_roots_along_a_line_are_exact_and_complete(widths):
    net = make(widths, seed=1)
    net = net.with_parameters([3 * p for p in net.parameters])
    origin, direction = torch.tensor([0.3, -0.2]).double(), torch.tensor([0.6, 0.8]).double()
    found, owner = crossings.line_vertices(net, origin, direction, 3.0)
    level = found.x[found.kind == crossings.LEVEL]
    assert float((phi(net, level).abs() - 1).abs().max() if len(level) else 0.0) < 1e-9
    for place, (layer, unit) in zip(found.x, owner.tolist(), strict=True):
        if layer >= 0:
            assert abs(float(preactivations(net, place[None])[layer][0, unit])) < 1e-9
    t = torch.linspace(-2.9, 2.9, 100_001, dtype=torch.float64)
    values = phi(net, origin + t[:, None] * direction).abs() - 1
    assert len(level) == int((values[:-1] * values[1:] < 0).sum())


def test_curves_of_the_second_layer_meet_each_other_and_the_margin():
    net = make((6, 5), seed=4)
    net = net.with_parameters([2 * p for p in net.parameters])
    _, along, owners = crossings.vertices(net, crossings.lines(net), 4.0)
    met, level = curve_vertices(net, along, owners, 4.0)
    z = preactivations(net, met.x)[1].abs().sort(dim=1).values
    assert len(met) > 3
    assert float(z[:, 1].max()) < 1e-8
    on = preactivations(net, level.x)
    assert float((phi(net, level.x).abs() - 1).abs().max() if len(level) else 0.0) < 1e-8
    assert float(on[1].abs().min(1).values.max() if len(level) else 0.0) < 1e-8


def test_thinning_keeps_one_of_each_neighbourhood_and_label():
    net = make((4,), seed=2)
    x = torch.cat([draw(30, 2), draw(30, 2) + 1e-4])
    found = crossings.sparse_vertices(net, crossings.Vertices(x, torch.zeros(60)), 0.05)
    label = phi(net, found.x).sign()
    apart = torch.cdist(found.x, found.x) + 9 * (label[:, None] != label[None])
    assert float((apart + 9 * torch.eye(len(found))).min()) > 0.05
    assert float(distance(x, found.x).max()) <= 0.05


# --- pursuit ----------------------------------------------------------------------------------


def test_scores_are_those_of_the_slow_residual():
    data, made = exact(n=7)
    pool = pursuit.CandidatePool.of(made.net, data.x, 1e-6)
    now = pursuit.best_explanation(pool, torch.tensor([0, 3, 4]))
    slow = fit_multipliers(made.net, data.x[[0, 3, 4]], data.y[[0, 3, 4]], 1e-6)
    assert now.residual == pytest.approx(slow.residual, rel=1e-9)
    left = torch.cat([b.reshape(-1) for b in now.left]).norm() / made.net.rho
    assert float(left) == pytest.approx(now.residual, rel=1e-9)
    everything = pursuit.best_explanation(pool, torch.arange(data.n), accuracy=1e-4, rounds=60)
    best = float(pursuit.scores(pool, everything.left).max())
    assert everything.residual < 1e-4
    assert best <= everything.residual * float(made.net.rho) + 1e-9


# --- exact networks ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [100, 101, 102, 103])
def test_every_doubly_kinked_support_point_is_a_candidate(seed):
    data, made = exact("random-circle", 9, seed)
    target = Target(made.net)
    states, _ = run(target)
    cross = next(s for s in states if s.stage == "cross")
    wanted = (made.lam > 1e-6) & (kinked(made.net, data.x) >= 2)
    single = (made.lam > 1e-6) & (kinked(made.net, data.x) == 1)
    assert bool(wanted.any())
    far = distance(data.x[wanted], cross.pool)
    assert float(far.max()) <= HingeConfig.spacing
    if bool(single.any()):
        assert float(distance(data.x[single], cross.pool).max()) <= 2 * HingeConfig.spacing


@pytest.mark.parametrize("name", ["random-circle", "alternating-circle", "spiral", "xor", "blobs"])
@pytest.mark.parametrize("seed", [100, 101])
def test_no_claim_on_an_exact_network_is_false(name, seed):
    data, made = exact(name, 9, seed, 0.03)
    states, claims = run(Target(made.net))
    assert states[-1].residual < 0.02
    if name == "spiral":
        assert len(claims.x) > 0
    if len(claims.x):
        assert float(distance(claims.x, data.x).max()) <= HingeConfig.radius


@pytest.mark.parametrize("name", ["pair at 1.6", "pair at 0.5", "pair at 0.9", "like pair at 2.5"])
def test_on_the_line_all_points_of_a_closed_form_are_proven(name):
    known = TABLE[name]
    _, claims = run(Target(known.net), HingeConfig(tau=1e-6))
    assert len(claims.x) == len(known.x)
    assert float(distance(known.x, claims.x).max()) < 1e-6
    assert torch.allclose(claims.lam.sort().values, known.lam.sort().values, atol=1e-4)


def test_on_the_line_the_table_of_five_points():
    x = torch.tensor([[-2.0], [-1.0], [0.5], [1.5], [3.0]], dtype=torch.float64)
    y = torch.tensor([1.0, -1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    _, claims = run(Target(maximum_margin(x, y).net), HingeConfig(reach=4.0, tau=1e-6))
    assert sorted(round(v, 6) for v in claims.x[:, 0].tolist()) == [-2.0, -1.0, 0.5, 1.5, 3.0]


def test_three_layers_of_a_closed_form_are_explained():
    known = chains([[2.0, 0.0], [-1.0, 1.5], [-1.5, -2.0]], [1.0, 1.0, -1.0], 3)
    states, _ = run(Target(known.net))
    assert states[-1].residual < 0.05
    assert states[-1].stage == "done"


# --- laws -------------------------------------------------------------------------------------


def turned(net, angle, order):
    """The network on turned inputs, neurons permuted, the first split in two."""
    c, s = math.cos(angle), math.sin(angle)
    turn = torch.tensor([[c, -s], [s, c]], dtype=torch.float64)
    w, b, v = net.weights[0] @ turn.T, net.biases[0], net.weights[1]
    share = torch.tensor([0.3, 0.7], dtype=torch.float64).sqrt()
    w = torch.cat([w[1:], share[:, None] * w[:1]])[order]
    b = torch.cat([b[1:], share * b[:1]])[order]
    v = torch.cat([v[:, 1:], share[None] * v[:, :1]], dim=1)[:, order]
    return Network((w, v), (b, None)), turn


def test_claims_turn_with_the_data_and_do_not_see_splits_or_order():
    data, target = trained(8, (60,), 101, 3000)
    order = torch.randperm(61, generator=rng(1))
    other, turn = turned(target.net, 0.7, order)
    _, plain = run(target)
    _, moved = run(Target(other))
    assert torch.allclose(phi(other, data.x @ turn.T), phi(target.net, data.x), atol=1e-9)
    assert len(plain.x) == len(moved.x) > 0
    assert float(distance(plain.x @ turn.T, moved.x).max()) < 0.03


def test_the_margin_of_a_target_is_divided_out():
    _, made = exact("xor", 8, 1)
    _, plain = run(Target.of(made.net, 1.0))
    assert len(plain.x) > 0
    for gain in (2.0, 3.0):  # 2 changes no digit, 3 changes the last ones
        loud = made.net.with_parameters([gain * p for p in made.net.parameters])
        _, same = run(Target.of(loud, gain**2))
        assert torch.allclose(ordered(plain.x), ordered(same.x), atol=1e-9)
        if gain == 2.0:  # else it depends on which of many explanations was met
            assert torch.allclose(plain.lam, same.lam, atol=1e-6)


def ordered(x):
    return x[x[:, 0].argsort()]


@pytest.mark.parametrize("size", [1e-16, 1e-12, 1e-9])
def test_what_is_needed_is_no_matter_of_the_last_bits(size):
    """Once a claim stood on which candidates six rounds of search had met: 1 or none."""
    _, made = exact("random-circle", 12, 100, 0.03)
    net = made.net.with_parameters(
        [p * (1 + size * draw(*p.shape, seed=0)) for p in made.net.parameters]
    )
    states, claims = run(Target.of(net, 1.0))
    assert len(claims.x) == 0 and states[-1].stage == "done" and not states[-1].needed.any()


def test_what_cannot_be_made_up_for_is_bounded_from_below():
    """Of every explanation on the pool, the best one among them, and above 0 without a needed."""
    _, made = exact("xor", 8, 1)
    states, claims = run(Target.of(made.net, 1.0))
    last, config = states[-1], HingeConfig()
    pool = pursuit.CandidatePool.of(
        hinge.explained_network(Target.of(made.net, 1.0), config), last.pool, config.tau
    )
    for x, y in zip(claims.x, claims.y, strict=True):
        rest = pool.take(~(((pool.x - x).norm(dim=1) <= config.radius) & (pool.y == y)))
        now = pursuit.best_explanation(rest, torch.arange(0, len(rest.x), 7))
        best = pursuit.best_explanation(rest, torch.arange(len(rest.x)), 1e-9, 400)
        assert pursuit.at_least(rest, now) <= best.residual
        assert pursuit.at_least(rest, best) == pytest.approx(best.residual, rel=1e-6)
        assert last.limit < best.residual


# --- trained networks -------------------------------------------------------------------------


def trained(n, widths, seed, steps=6000, name="alternating-circle"):
    data = preset(name, n, 0.0, seed)
    config = TrainConfig(widths=widths, steps=steps, init_scale=1e-3)
    return data, draws.aimed(draws.trained(data, config, seed))


def test_a_trained_circle_is_recovered_without_a_false_claim():
    data, target = trained(10, (100,), 100)
    states, claims = run(target)
    found = int(score(data, claims.x, claims.y, (0.03,)).found)
    assert (len(claims.x), found) == (10, 10)
    assert [s.t for s in states] == list(range(len(states)))
    stages = [s.stage for s in states]
    assert stages[0] == "lines" and stages[1] == "cross" and stages[-1] == "done"
    assert hinge.terminate(states[-1], HingeConfig()) is Status.COMPLETE
    assert hinge.step(target, states[-1], HingeConfig()) is states[-1]


@pytest.mark.slow
def test_three_layers_on_twenty_points():
    data, target = trained(20, (100, 100), 101, 40_000)
    _, claims = run(target)
    found = int(score(data, claims.x, claims.y, (0.03,)).found)
    assert found >= 18
    assert found >= 0.9 * len(claims.x)


# --- what it refuses --------------------------------------------------------------------------


def test_it_says_where_it_stops():
    deep = make((3, 3, 3))
    assert "three layers" in hinge.fits(Target(deep))
    flat = Network((draw(4, 3), draw(1, 4)), (draw(4), None))
    assert "1 or 2 coordinates" in hinge.fits(Target(flat))
    with pytest.raises(ValueError, match="1 or 2 coordinates"):
        hinge.init(Target(flat), HingeConfig(), rng())
    assert ROSTER["hinge"].refusal(Target(flat)) == hinge.fits(Target(flat))
    assert hinge.fits(Target(make((4,)))) == ""


def test_a_network_without_lines_ends_without_claims():
    zero = torch.zeros(1, 2, dtype=torch.float64)
    one = torch.ones(1, dtype=torch.float64)
    states, claims = run(Target(Network((zero, one[None]), (one, None))))
    assert states[-1].stage == "done"
    assert len(claims.x) == 0
    assert isinstance(states[-1].numbers()["residual"], float)
    assert Dataset(claims.x, claims.y).n == 0
