"""Bounds B1 to B3 on exact networks, rules without error where they are certified, the loss."""

from __future__ import annotations

import math

import pytest
import torch

from explorer.engine.data.highdim import LAWS, HighDimDraw, sample
from explorer.engine.membership import law as rules
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
