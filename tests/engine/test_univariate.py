"""The provable attack: the tables of exact networks, the laws of its groups, and its proofs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer.engine.attacks import univariate
from explorer.engine.attacks.target import Target
from explorer.engine.attacks.univariate.config import CERTIFIED, EXACT, UnivariateConfig
from explorer.engine.attacks.univariate.doubt import Inexact
from explorer.engine.attacks.univariate.graph import defect, sweep
from explorer.engine.attacks.univariate.intervals import crossings, distinct, guarantee
from explorer.engine.attacks.univariate.proof import Programs, System, system
from explorer.engine.data import preset
from explorer.engine.exact import maximum_margin
from explorer.engine.margin import q_of
from explorer.engine.merging import merge_neurons
from explorer.engine.network import Network, phi
from explorer.engine.piecewise import describe
from explorer.engine.roster import ROSTER
from explorer.engine.status import Status
from explorer.engine.training import TrainConfig
from tests.engine.draws import rng, trained


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def rows(*neurons):
    """A network from rows (w, b, v)."""
    table = tensor(neurons)
    return Network((table[:, :1], table[:, 2:].T), (table[:, 1], None))


def exact(x, y):
    return Target.of(maximum_margin(tensor(x)[:, None], tensor(y)).net, 1.0)


def walked(target, **settings):
    config = UnivariateConfig(**settings)
    state = univariate.init(target, config, torch.Generator())
    states = [state, *univariate.ATTACK.iterate(target, state, config)]
    return states, univariate.report(target, states[-1], config)


def places(report):
    return sorted(report.x[:, 0].tolist())


T33 = rows(  # -relu(1) + 2 relu(x - 3) - 2 relu(x - 4) - 2 relu(x - 6) + 2 relu(x - 7)
    (0, 1, -1), (1, -3, 2), (1, -4, -2), (1, -6, -2), (1, -7, 2)
)
FIVE = ([-2, -1, 0.5, 1.5, 3], [1, -1, -1, 1, -1])


# --- tables -------------------------------------------------------------------------------------
def test_two_points():
    target = exact([-2, 2], [-1, 1])
    states, claims = walked(target, mode="algorithm 1")
    line = univariate.view(target, states[-1])
    assert line.breaks.tolist() == pytest.approx([-0.5, 0.5])
    assert places(claims) == pytest.approx([-2])  # the third interval is passed over
    assert places(walked(target, mode="all crossings")[1]) == pytest.approx([-2, 2])
    assert places(walked(target)[1]) == pytest.approx([-2, 2])


def test_four_points_of_which_an_odd_interval_is_passed_over():
    target = exact([-2, -1, 1, 2], [-1, 1, 1, -1])
    states, claims = walked(target, mode="algorithm 1")
    line = univariate.view(target, states[-1])
    assert line.breaks.tolist() == pytest.approx([-(3**-0.5), 3**-0.5])
    assert line.slope.tolist() == pytest.approx([2, 0, -2], abs=1e-9)
    assert line.value(0.0) == pytest.approx(3 - 2 / 3**0.5)
    assert places(claims) == pytest.approx([-2, -1])
    assert states[-1].alone == (2,)
    assert places(walked(target, mode="all crossings")[1]) == pytest.approx([-2, -1, 1, 2])


def test_five_points():
    target = exact(*FIVE)
    states, claims = walked(target, mode="algorithm 1")
    line = univariate.view(target, states[-1])
    assert line.breaks.tolist() == pytest.approx([-0.25, 1.5])
    assert line.slope.tolist() == pytest.approx([-2, 2, -4 / 3])
    assert line.intercept.tolist() == pytest.approx([-3, -2, 3])
    assert places(claims) == pytest.approx([-2, -1, 0.5, 1.5])
    assert len(states[-1].groups) == 1
    assert places(walked(target, mode="all crossings")[1]) == pytest.approx(FIVE[0])
    states, claims = walked(target)
    assert places(claims) == pytest.approx(FIVE[0])
    lam = [1.2126781252, 1.4552137502, 2.4091147003, 3.8535007505, 1.2018504252]
    assert states[-1].least.tolist() == pytest.approx(lam, abs=1e-6)
    assert states[-1].most.tolist() == pytest.approx(lam, abs=1e-6)
    assert states[-1].lam.tolist() == pytest.approx(lam, abs=1e-6)


def test_ramps_between_levels_by_the_other_rule():
    states, claims = walked(Target.of(T33, 1.0), mode="algorithm 1", weights="exact")
    assert [g.rule for g in states[-1].groups] == ["3.3", "3.3"]
    assert [g.x for g in states[-1].groups] == [(3.0, 4.0), (6.0, 7.0)]
    assert places(claims) == [3, 4, 6, 7]
    assert [(s.looked, s.at) for s in states[1:]] == [((0, 2), 2), ((2, 4), 4), ((4, 4), 5)]
    assert guarantee(states[-1].groups, 4) == 0.5
    assert (
        states[-1].guaranteed_share == 0
    )  # these weights are no KKT point: the theorems do not hold
    assert states[1].seen == "3.3" and states[1].doubt is not None


def test_points_off_the_margin_leave_no_trace():
    target = exact([-3, -2, 2, 3], [-1, -1, 1, 1])
    assert places(walked(target)[1]) == pytest.approx([-2, 2])


def test_a_constant_network_says_nothing():
    target = exact([-1, 1], [1, 1])
    states, claims = walked(target)
    assert len(claims.x) == 0
    assert states[1].seen == "flat everywhere"
    assert states[-1].phase == "done"


def test_a_constant_network_off_its_margin_has_no_crossing_and_is_unexplained():
    states, claims = walked(Target.of(rows((0, 1, 3)), 1.0))
    assert len(claims.x) == 0 and states[-1].phase == "done"
    assert defect(Target.of(rows((0, 1, 3)), 1.0)) == 1


def test_a_level_stretch_of_an_exact_network_is_allowed_for_in_the_proofs():
    """Phi is -1 on [-0.3, 0.3], where points may lie; the outer two stand on slopes of theirs."""
    target = exact([-0.4, -0.3, 0.3, 0.4], [1, -1, -1, 1])
    states, claims = walked(target)
    line = univariate.view(target, states[-1])
    assert line.on_margin(1, 1.0, 1e-6)
    found = {round(x, 9) for x in places(claims)}
    assert {-0.4, 0.4} <= found <= {-0.4, -0.3, 0.3, 0.4}


# --- laws ---------------------------------------------------------------------------------------
def drawn(seed):
    g = rng(seed)
    n = int(torch.randint(3, 10, (), generator=g))
    x = 4 * torch.rand(n, generator=g, dtype=torch.float64) - 2
    y = torch.where(torch.rand(n, generator=g) < 0.5, 1.0, -1.0).double()
    y[0], y[1] = 1.0, -1.0
    return x, y


@pytest.fixture(scope="module")
def random_sets():
    sets = [drawn(seed) for seed in range(500, 512)]
    return [(x, y, maximum_margin(x[:, None], y)) for x, y in sets]


def test_groups_hold_training_points_and_proofs_are_true(random_sets):
    proven = support = 0
    for x, y, made in random_sets:
        states, claims = walked(Target.of(made.net, 1.0))
        last = states[-1]
        assert last.exact
        for group in last.groups:
            assert 1 <= len(group.x) <= {"3.2": 4, "3.3": 2}[group.rule]
            near = np.abs(np.array(group.x)[:, None] - x.numpy()) < 1e-6
            assert (near & (np.array(group.y)[:, None] == y.numpy())).any()
        near = ((claims.x - x).abs() < 1e-6) & (claims.y[:, None] == y)
        assert near.any(1).all()
        proven += len(claims.x)
        support += int((made.lam > 1e-6 * made.lam.max()).sum())
        off = (phi(made.net, last.x) - last.y).abs()
        assert float(off.max()) < 1e-9
        assert (last.least <= last.lam + 1e-6).all()
        assert (last.lam <= last.most + 1e-6).all()
    assert proven == support  # multipliers are unique here, and the programs find that out


def test_the_strict_count_guarantees_a_quarter(random_sets):
    for _, _, made in random_sets:
        states, claims = walked(Target.of(made.net, 1.0), mode="algorithm 1", strict=True)
        if len(claims.x):
            assert states[-1].guaranteed_share >= 0.25
        names = [x for g in states[-1].groups for x in g.x]
        assert len(names) == len(set(names))


def test_order_and_splitting_of_neurons_change_nothing(random_sets):
    _, _, made = random_sets[3]
    net, k = made.net, made.net.widths[0]
    share = tensor([0.2, 0.8]).sqrt()
    order = torch.randperm(2 * k, generator=rng(1))
    w, b, v = (
        torch.cat([t * share[0], t * share[1]])[order]
        for t in (net.weights[0][:, 0], net.biases[0], net.weights[1][0])
    )
    other = Network((w[:, None], v[None]), (b, None))
    (one, _), (two, _) = walked(Target.of(net, 1.0)), walked(Target.of(other, 1.0))
    assert len(one) == len(two)
    assert torch.allclose(one[-1].x, two[-1].x, atol=1e-9)
    assert torch.allclose(one[-1].least, two[-1].least, atol=1e-5)
    assert [g.rule for g in one[-1].groups] == [g.rule for g in two[-1].groups]


def test_every_interval_is_grouped_or_alone(random_sets):
    for _, _, made in random_sets[:4]:
        target = Target.of(made.net, 1.0)
        states, _ = walked(target, mode="algorithm 1")
        assert [s.t for s in states] == list(range(len(states)))
        assert states[-1].at >= len(univariate.view(target, states[-1]))
        assert len(states) - 1 == len(states[-1].groups) + len(states[-1].alone)


# --- what may be called proven ------------------------------------------------------------------
STORED = (torch.float32, torch.float16, torch.bfloat16)


def moved(net, share, seed):
    step = torch.randn(net.theta.shape, generator=rng(seed)).double()
    return net.with_theta(net.theta + share * net.rho * step / step.norm())


def at_margin(net, x, y):
    """The network at its margin on these points; None where they are not separated."""
    q = float(q_of(net, x, y).min())
    return Target.of(net, q) if q > 0 else None


def true_within(x, y, radius, places, labels):
    near = ((places[:, None] - x).abs() <= radius) & (labels[:, None] == y)
    return near.any(1)


@pytest.fixture(scope="module")
def fresh_sets():
    """Sets that no tolerance was chosen on, solved exactly."""
    sets = [drawn(seed) for seed in range(9000, 9012)]
    return [(x, y, maximum_margin(x[:, None], y)) for x, y in sets]


def test_exact_weights_prove_all_their_support_points_and_no_other(fresh_sets):
    proven = support = 0
    for x, y, made in fresh_sets:
        last = walked(Target.of(made.net, 1.0))[0][-1]
        assert last.doubt is None and last.defect <= CERTIFIED / 10
        assert not last.likely.any()
        found = last.x[last.proven, 0], last.y[last.proven]
        assert true_within(x, y, 1e-6, *found).all()
        proven += len(found[0])
        support += int((made.lam > 1e-6 * made.lam.max()).sum())
    assert proven == support > 40


@pytest.mark.parametrize("kind", STORED)
def test_exact_weights_in_fewer_bits_prove_nothing(fresh_sets, kind):
    likely = 0
    for x, y, made in fresh_sets:
        net = made.net.with_parameters([p.to(kind).double() for p in made.net.parameters])
        target = at_margin(net, x[:, None], y)
        if target is None:
            continue
        last = walked(target)[0][-1]
        assert not last.proven.any() and last.guaranteed_share == 0
        assert last.doubt is Inexact.OFF
        likely += int(last.likely.sum())
    assert likely > 30


@pytest.mark.parametrize("share", [1e-8, 1e-6, 1e-4, 1e-2])
def test_exact_weights_that_were_moved_prove_nothing(fresh_sets, share):
    likely = 0
    for seed, (x, y, made) in enumerate(fresh_sets):
        target = at_margin(moved(made.net, share, seed), x[:, None], y)
        if target is None:
            continue
        last = walked(target)[0][-1]
        assert not last.proven.any()
        assert last.defect > 5 * CERTIFIED  # no verdict at the edge
        likely += int(last.likely.sum())
    assert likely > 10


@pytest.fixture(scope="module")
def trained_line():
    # Long enough that the imbalance, 0.08%, lies far below its limit of 1% in every arithmetic.
    data, config = preset("alternating-line", n=5), TrainConfig(widths=(100,), steps=5000)
    return data, trained(data, config).net


def test_trained_and_merged_weights_prove_nothing(trained_line):
    data, net = trained_line
    for each in (net, merge_neurons(net, 0.02).net):
        for weights in ("automatic", "exact", "trained"):
            states, claims = walked(at_margin(each, data.x, data.y), weights=weights)
            last = states[-1]
            assert not last.proven.any() and last.defect > 1e-6
            assert all(s.doubt is not None for s in states)
            assert len(claims.x) == int(last.likely.sum())
    last = walked(at_margin(net, data.x, data.y))[0][-1]
    assert last.likely.any()
    assert last.numbers()["likely"] == int(last.likely.sum()) and last.numbers()["proven"] == 0


def test_proofs_need_the_tolerances_of_rounding():
    last = walked(exact(*FIVE), weights="trained")[0][-1]
    assert last.likely.any() and not last.proven.any()
    assert last.doubt is Inexact.TOLERANCES


def test_a_run_that_does_not_say_how_exact_it_was_proves_nothing():
    last = walked(exact(*FIVE))[0][-1]
    assert last.proven.all()
    old = replace(last, defect=float("nan"))
    assert not old.proven.any() and old.likely.all()
    assert old.doubt is Inexact.UNKNOWN


def test_imbalance_alone_forbids_a_proof():
    """The same function of x, another theta: balance is a condition of its own."""
    net = exact(*FIVE).net
    w, b, v = net.weights[0].clone(), net.biases[0].clone(), net.weights[1].clone()
    w[0], b[0], v[0, 0] = w[0] * 1.001, b[0] * 1.001, v[0, 0] / 1.001
    other = Target.of(Network((w, v), (b, None)), 1.0)
    assert defect(exact(*FIVE)) < 1e-12
    assert defect(other) > 1e-5


def test_a_neuron_that_breaks_beside_its_point_is_not_exact():
    """Balanced, both kinks 4e-7 off the margin: so are merged neurons that were trained long."""
    net = exact([-0.5, 0.5], [-1, 1]).net
    w, b, v = net.weights[0][:, 0], net.biases[0], net.weights[1]
    turned = Network(((w - 3e-7 * b)[:, None], v), (b + 3e-7 * w, None))
    target = at_margin(turned, tensor([[-0.5], [0.5]]), tensor([-1, 1]))
    assert defect(target) > 1e-3  # with slopes free 1e-6 beside a kink it would be 3e-8
    assert not walked(target)[0][-1].proven.any()


def test_split_neurons_are_as_exact_as_whole_ones(fresh_sets):
    for _, _, made in fresh_sets[:3]:
        net, share = made.net, tensor([0.3, 0.7]).sqrt()
        w, b, v = (
            torch.cat([t * share[0], t * share[1]])
            for t in (net.weights[0][:, 0], net.biases[0], net.weights[1][0])
        )
        assert defect(Target.of(Network((w[:, None], v[None]), (b, None)), 1.0)) < CERTIFIED / 10


@pytest.mark.parametrize(("over", "places"), [(5e-7, 1), (-5e-9, 1), (1e-3, 2)])
def test_two_crossings_at_one_peak_are_one(over, places):
    """A tent of slope 0.01, its top off the margin by `over`: its sides cross beside the top."""
    a, top = 0.01, 1 + over
    tent = rows((1, top / a, a), (1, 0, -2 * a))
    line = describe(tent)
    found = [x for x, y in crossings(line, EXACT) if y > 0]
    assert len(found) == places
    assert found[0] == (0 if places == 1 else pytest.approx(-over / a))
    for mode, most in (("all crossings", 2), ("algorithm 1", 1)):  # the first group ends at the top
        claims = walked(Target.of(tent, 1.0), mode=mode, weights="exact")[1]
        top_x = claims.x[claims.y > 0, 0]
        assert top_x.tolist() == pytest.approx(found[: min(places, most)])


MARGINS = (0.5, 0.9, 1.0, 1.1, 2.0)


def test_at_the_true_margin_nothing_is_missed(random_sets):
    for _, _, made in random_sets:
        seen = list(sweep(Target.of(made.net, 1.0), UnivariateConfig(), MARGINS))
        assert [p.margin for p in seen] == list(MARGINS)
        assert seen[2].miss < 1e-8


def test_points_on_kinks_give_the_margin_away():
    seen = list(sweep(exact([-0.5, 0.5], [-1, 1]), UnivariateConfig(), MARGINS))
    assert [p.miss < 1e-8 for p in seen] == [False, False, True, False, False]
    assert [p.size for p in seen] == [2, 2, 2, 2, 2]


def test_without_kinks_other_margins_explain_the_weights_as_well(random_sets):
    """Points inside their intervals can move if masses and first moments stay as they are."""
    seen = [
        [p.miss < 1e-8 for p in sweep(Target.of(made.net, 1.0), UnivariateConfig(), MARGINS)]
        for _, _, made in random_sets
    ]
    assert any(row[1] for row in seen)
    assert not all(row[1] for row in seen)


def test_a_lie_about_the_margin_proves_nothing():
    made = maximum_margin(tensor(FIVE[0])[:, None], tensor(FIVE[1]))
    states, claims = walked(Target.of(made.net, 1.2))
    assert not states[-1].exact
    assert len(claims.x) == 0
    assert states[-1].left_alone


# --- parts --------------------------------------------------------------------------------------
def test_the_equations_hold_with_the_true_multipliers():
    """At kinks by hand: x0 = 0.5 has s = (1 - x0^2) / (1 + x0^2) there, and lam by closed form."""
    x0 = 0.5
    lam, s = (1 + x0**2) ** 0.5 / (2 * x0), (1 - x0**2) / (1 + x0**2)
    net = exact([-x0, x0], [-1, 1]).net
    made = system(net, np.array([-x0, x0]), np.array([-1.0, 1.0]), 1e-6)
    assert made.table.shape == (6, 4)  # not square: two candidates, two kinks
    z = np.array([lam, lam, lam * s, lam * s])
    assert np.abs(made.table @ z - made.theta).max() < 1e-12
    low, high = Programs.of(made).bounds(0, 1e-9)
    assert low == pytest.approx(lam, abs=1e-6)
    assert high == pytest.approx(lam, abs=1e-6)


def test_a_slope_at_a_kink_is_at_most_one():
    """theta = (1, 2, 0) from lam (1, 0, 0) + a (0, 1, 0), a <= lam: best is lam = a = 1.5."""
    table, theta = np.eye(3)[:, :2], np.array([1.0, 2.0, 0.0])
    lam, miss = Programs.of(System(table, theta, np.array([0]), 1)).fit()
    assert lam.tolist() == pytest.approx([1.5])
    assert miss == pytest.approx(0.5 / 5**0.5)


def test_a_flat_interval_spans_the_gradients_of_its_inside():
    net = Target.of(T33, 1.0).net
    table = system(
        net, np.zeros(0), np.zeros(0), 1e-6, [(4.0, 6.0, 1.0), (7.0, np.inf, -1.0)]
    ).table
    for x, label, at in ((4.5, 1.0, (0.75, 0.25)), (9.0, -1.0, (1.0, 2.0))):
        inside = system(net, np.array([x]), np.array([label]), 1e-6).table[:, 0]
        edges = table[:, :2] if label > 0 else table[:, 2:]
        assert np.allclose(edges @ np.array(at), inside, atol=1e-12)


def test_bunches_become_one_per_label():
    points = [(0.0, 1.0), (0.01, 1.0), (0.02, -1.0), (0.5, 1.0)]
    assert distinct(points, 0.03) == [(0.005, 1.0), (0.02, -1.0), (0.5, 1.0)]
    assert distinct([], 0.03) == []


def test_an_empty_group_voids_the_guarantee():
    states, _ = walked(Target.of(T33, 1.0), mode="algorithm 1", weights="exact")
    groups = states[-1].groups
    assert guarantee(groups, 4) == 0.5
    assert guarantee((*groups, replace(groups[0], x=(), y=(), counted=False)), 4) == 0.0
    assert guarantee((), 0) == 0.0


def test_it_stands_in_the_roster_and_refuses_what_does_not_fit():
    entry = ROSTER["univariate"]
    assert entry.refusal(exact(*FIVE)) == ""
    plane = maximum_margin(tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0]]), tensor([1.0, -1.0, 1.0]))
    target = Target.of(plane.net, 1.0)
    assert "one input" in entry.refusal(target)
    with pytest.raises(ValueError, match="does not apply"):
        univariate.init(target, UnivariateConfig(), torch.Generator())


def test_the_end_is_told():
    config, target = UnivariateConfig(), exact(*FIVE)
    states, _ = walked(target)
    assert univariate.terminate(states[0], config) is Status.RUNNING
    assert univariate.terminate(states[-1], config) is Status.COMPLETE
    assert univariate.step(target, states[-1], config) is states[-1]
    assert states[-1].numbers()["proven"] == 5
