"""Bounds B1 to B3 on exact networks, rules without error where they are certified, the loss."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice

import pytest
import torch

from explorer.engine.data.highdim import LAWS, HighDimDraw, mean_of, sample, variances_of
from explorer.engine.membership import law as rules
from explorer.engine.membership.experiment import (
    MembershipConfig,
    generator_of,
    membership_experiment,
    membership_trial,
    train_wide,
)
from explorer.engine.membership.two_neuron import two_neuron
from explorer.engine.network import Network, phi, scaled_network
from tests.engine.draws import rng

CERTIFIED = ((2, 900), (3, 2000), (4, 3000))


def scene(n, d, law="sphere", seed=0, fresh=300):
    generator = rng(seed)
    x, y = sample(HighDimDraw(d, law, "random"), n, generator)
    z, _ = sample(HighDimDraw(d, law, "random"), fresh, generator)
    return x, y, z, two_neuron(x, y)


def xi_of(made):
    """The largest lam_i sum_j v_j^2 s_ij over neurons of one sign: one neuron per sign here."""
    return float((made.lam[:, None] * made.norms[None, :] * made.slopes).max())


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("n", "d"), [*CERTIFIED, (5, 4000)])
def test_b1_b2_b3_hold_on_exact_networks(law, n, d):
    for seed in range(4):
        x, y, z, made = scene(n, d, law, seed)
        proof = rules.isolation(x, z)
        assert xi_of(made) <= proof.xi * (1 + 1e-9)
        assert float(phi(made.net, z).abs().max()) <= proof.rho * (1 + 1e-9)
        if proof.all_on_margin:
            assert bool((made.lam > 0).all())
            assert torch.allclose(y * phi(made.net, x), torch.ones_like(y), atol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 2.7])
@pytest.mark.parametrize(("n", "d"), CERTIFIED)
def test_rules_make_no_error_wherever_rho_is_below_one_half(n, d, scale):
    certified = 0
    for seed in range(6):
        x, _, z, made = scene(n, d, seed=seed)
        proof = rules.isolation(x, z)
        if not proof.error_free:
            continue
        certified += 1
        net, margin = scaled_network(made.net, scale), scale**2  # margin scales with the degree, 2
        members, fresh = phi(net, x), phi(net, z)
        suspects = torch.cat([fresh[:9], members[:1]])
        for rule in (
            rules.known_margin(margin),
            rules.leaked_point(suspects),
            rules.bounded_margin(margin * 0.9, proof.rho * margin * 1.2),
        ):
            assert bool(rules.decide(members, rule).all()), rule
            assert not bool(rules.decide(fresh, rule).any()), rule
    assert certified >= 3


def test_certificate_is_vacuous_where_the_attack_already_works():
    x, _, z, made = scene(20, 2000)
    proof = rules.isolation(x, z)
    assert math.isinf(proof.rho) and not proof.error_free
    rule = rules.known_margin(1.0)
    assert bool(rules.decide(phi(made.net, x), rule).all())
    assert not bool(rules.decide(phi(made.net, z), rule).any())


def test_isolation_by_hand():
    x = torch.tensor([[3.0, 0.0, 0.0], [0.0, 4.0, 0.0]])
    z = torch.tensor([[1.0, 0.5, 7.0]])
    proof = rules.isolation(x, z)
    # x~1.x~2 = 1, x~.x~1 = 4, x~.x~2 = 3, |x~1|^2 = 10
    assert (proof.delta, proof.delta_fresh, proof.least) == (1.0, 4.0, 10.0)
    assert proof.xi == pytest.approx(1 / (10 - 2))
    assert proof.rho == pytest.approx(2 * 4 / 8)
    assert proof.all_on_margin and not proof.error_free
    lone = rules.isolation(x[:1], z)
    assert lone.delta == 0 and lone.rho == pytest.approx(4 / 10)
    assert math.isinf(rules.isolation(torch.ones(3, 2), z[:, :2]).rho)


def test_isolation_does_not_depend_on_the_order_of_points():
    x, _, z, _ = scene(4, 50)
    order = torch.randperm(4, generator=rng(1))
    one, two = rules.isolation(x, z), rules.isolation(x[order], z.flip(0))
    assert one.rho == pytest.approx(two.rho) and one.delta == pytest.approx(two.delta)


def test_permuting_neurons_changes_no_decision():
    x, _, z, made = scene(5, 80)
    net = made.net
    swapped = Network(
        (net.weights[0].flip(0), net.weights[1].flip(1)), (net.biases[0].flip(0), None)
    )
    rule = rules.known_margin(1.0)
    points = torch.cat([x, z])
    assert torch.equal(
        rules.decide(phi(net, points), rule), rules.decide(phi(swapped, points), rule)
    )


def test_thresholds_by_hand():
    values = torch.tensor([-2.0, 0.5, 1.2])
    assert rules.known_margin(3.0).threshold == 1.5
    assert rules.known_margin(3.0, 0.9).threshold == pytest.approx(2.7)
    assert rules.leaked_point(values).threshold == 1.0
    assert rules.bounded_margin(4.0, 1.0).threshold == 2.0
    assert rules.bounded_margin(4.0, 0.0).threshold == 2.0
    overlap = rules.bounded_margin(4.0, 5.0)
    assert overlap.threshold == 4.0 and not overlap.separates
    assert rules.decide(values, rules.known_margin(2.4)).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rules.known_margin(0.0), "positive"),
        (lambda: rules.known_margin(math.nan), "positive"),
        (lambda: rules.known_margin(1.0, 1.5), "share"),
        (lambda: rules.leaked_point(torch.zeros(0)), "one suspect"),
        (lambda: rules.leaked_point(torch.zeros(3)), "positive"),
        (lambda: rules.bounded_margin(-1.0, 0.1), "positive"),
        (lambda: rules.bounded_margin(1.0, -0.1), "ceiling"),
        (lambda: rules.isolation(torch.zeros(2, 3), torch.zeros(2, 4)), "expected x"),
    ],
)
def test_what_has_no_meaning_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


# --- the trained experiment: torch's own gradient descent, step by step; what a trial counts ------

SMALL = MembershipConfig(dims=(3, 40), trials=2, n=6, width=70, test=50)


def by_torch(x, y, config, generator):
    """The published experiment with torch's layers, optimiser and schedule."""
    d = x.shape[1]
    k = config.width
    first = (2 * torch.rand(k, d + 1, generator=generator) - 1) * config.init_scale / d**0.5
    last = (2 * torch.rand(k, 1, generator=generator) - 1) * config.init_scale / k**0.5
    layers = (torch.nn.Linear(d, k), torch.nn.ReLU(), torch.nn.Linear(k, 1, bias=False))
    net = torch.nn.Sequential(*layers)
    with torch.no_grad():
        layers[0].weight.copy_(first[:, :d])
        layers[0].bias.copy_(first[:, d])
        layers[2].weight.copy_(last.T)
    sgd = torch.optim.SGD(net.parameters(), lr=config.lr)
    plan = torch.optim.lr_scheduler.StepLR(sgd, config.lr_every, config.lr_factor)
    loss = torch.nn.BCEWithLogitsLoss()
    for _ in range(config.epochs):
        sgd.zero_grad()
        loss(net(x).squeeze(1), (y + 1) / 2).backward()
        sgd.step()
        plan.step()
    return net


@pytest.mark.parametrize(("d", "epochs"), [(3, 40), (40, 100)])
def test_it_is_torchs_gradient_descent(d, epochs):
    config = replace(SMALL, epochs=epochs, init_scale=0.5)
    generator = generator_of(1, d, 0)
    x = torch.randn(config.n, d, generator=generator)
    y = torch.where(torch.arange(config.n) % 2 == 0, 1.0, -1.0)
    fresh = torch.randn(9, d, generator=generator)
    ours = train_wide(x, y, config, generator_of(2, d, 0))
    theirs = by_torch(x, y, config, generator_of(2, d, 0))
    with torch.no_grad():
        for z in (x, fresh):
            assert torch.allclose(ours.phi(z), theirs(z).squeeze(1), rtol=2e-3, atol=2e-3)


def test_points_in_float64_are_trained_on_in_float32():
    config = replace(SMALL, epochs=3)
    x = torch.randn(config.n, 3, generator=generator_of(1, 3, 0))
    y = torch.where(torch.arange(config.n) % 2 == 0, 1.0, -1.0)
    single = train_wide(x, y, config, generator_of(2, 3, 0))
    double = train_wide(x.double(), y.double(), config, generator_of(2, 3, 0))
    assert torch.equal(single.phi(x), double.phi(x.double()))


def test_rows_come_one_by_one_and_any_trial_repeats_alone():
    rows = list(membership_experiment(SMALL))
    assert [(r.d, r.trial) for r in rows] == [(3, 0), (3, 1), (40, 0), (40, 1)]
    again = membership_trial(SMALL, 40, 1)
    assert again.margin == rows[3].margin
    assert torch.equal(again.fresh, rows[3].fresh)
    assert rows[2].margin != rows[3].margin
    first = next(islice(membership_experiment(replace(SMALL, seed=5)), 1))
    assert first.margin != rows[0].margin


def test_another_default_type_changes_nothing():
    here = membership_trial(SMALL, 3, 0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        there = membership_trial(SMALL, 3, 0)
    finally:
        torch.set_default_dtype(before)
    assert torch.equal(here.members, there.members) and here.margin == there.margin


def test_a_trial_counts_what_it_says():
    trial = membership_trial(SMALL, 40, 0)
    assert trial.train_accuracy == 1
    assert float(trial.members.min()) == pytest.approx(1, abs=1e-5)
    assert trial.on_margin == pytest.approx(float((trial.members < 1.1).float().mean()))
    assert trial.beyond == pytest.approx(float((trial.fresh >= 1).float().mean()))
    assert trial.beyond_signed <= trial.beyond <= trial.beyond_half
    assert set(trial.row()) >= {"d", "trial", "margin", "on_margin", "beyond"}
    assert "fresh" not in trial.row()


def test_fewer_fresh_points_pass_the_margin_as_d_grows():
    config = MembershipConfig(dims=(10, 300), trials=1, width=400, test=400)
    low, high = membership_experiment(config)
    assert low.beyond > 0.4
    assert high.beyond < 0.02


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"dims": ()}, "dims"),
        ({"dims": (0,)}, "d must be"),
        ({"n": 0}, "n must be"),
        ({"width": 0}, "width"),
        ({"lr": 0.0}, "lr must be"),
        ({"seed": -1}, "seed"),
        ({"law": "cauchy"}, "law must be one of"),
    ],
)
def test_wrong_settings_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        MembershipConfig(**wrong)


# --- the three laws have the moments they claim; labels are what they are called ------------------


def test_sphere_has_radius_root_d_and_coordinates_of_mean_zero():
    x, _ = sample(HighDimDraw(31), 4000, rng(1))
    assert torch.allclose(x.norm(dim=1), torch.full((4000,), 31**0.5, dtype=torch.float64))
    assert float(x.mean(dim=0).abs().max()) < 5 / 4000**0.5


def test_gaussian_has_its_mean_and_variances():
    how = HighDimDraw(17, "gaussian")
    x, _ = sample(how, 20_000, rng(2))
    assert torch.allclose(x.mean(dim=0), mean_of(how), atol=5 * 1.3 / 20_000**0.5)
    assert torch.allclose(x.var(dim=0), variances_of(how), rtol=0.06)
    assert float(variances_of(how).sum()) == pytest.approx(17)
    assert float(mean_of(how).square().sum()) == pytest.approx(17**0.5)


def test_mixture_has_both_components_and_labels_by_component():
    how = HighDimDraw(12, "mixture", "component")
    x, y = sample(how, 8000, rng(3))
    assert 0.45 < float((y > 0).double().mean()) < 0.55
    for label in (1.0, -1.0):
        mine = x[y == label]
        assert torch.allclose(mine.mean(dim=0), label * mean_of(how), atol=5 / 4000**0.5)
    assert float(mean_of(how).norm()) == pytest.approx(12**0.33)


def test_parity_is_odd_number_of_positive_coordinates():
    x, y = sample(HighDimDraw(6), 50, rng(4))
    expected = [1.0 if sum(v > 0 for v in row) % 2 else -1.0 for row in x.tolist()]
    assert y.tolist() == expected


@pytest.mark.parametrize("law", LAWS)
def test_random_labels_are_fair_and_seeds_repeat(law):
    how = HighDimDraw(3, law, "random")
    x, y = sample(how, 4000, rng(5))
    x2, y2 = sample(how, 4000, rng(5))
    assert torch.equal(x, x2) and torch.equal(y, y2)
    assert abs(float(y.mean())) < 5 / 4000**0.5


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"d": 0}, "d must be"),
        ({"d": 3, "law": "cauchy"}, "distribution"),
        ({"d": 3, "labels": "hair"}, "labels are"),
        ({"d": 3, "labels": "component"}, "mixture"),
    ],
)
def test_wrong_draws_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        HighDimDraw(**wrong)
