"""The exact high-dimensional network: KKT to rounding, margins 1, closed forms, a clear refusal."""

from __future__ import annotations

import math

import pytest
import torch

from explorer.engine.certificate import TAU_EXACT, certify
from explorer.engine.data.highdim import HighDimDraw, sample
from explorer.engine.gradients import residual
from explorer.engine.membership.two_neuron import NotSeparableError, two_neuron
from explorer.engine.network import phi
from tests.engine.closed_forms import one_neuron_per_point, opposite_pair
from tests.engine.draws import draw, rng

SIZES = ((3, 20), (7, 90), (20, 500), (20, 2000), (50, 1000))


def relative_residual(made, x, y):
    return float(residual(made.net, x, made.lam * y, [made.slopes]).norm() / made.net.rho)


@pytest.mark.parametrize("law", ["sphere", "gaussian", "mixture"])
@pytest.mark.parametrize(("n", "d"), SIZES)
def test_exact_kkt_with_all_points_on_the_margin(law, n, d):
    x, y = sample(HighDimDraw(d, law), n, rng(n + d))
    made = two_neuron(x, y)
    assert made.ok
    assert relative_residual(made, x, y) < 1e-9
    q = y * phi(made.net, x)
    assert bool(((q - 1).abs() < 1e-9).all())
    assert bool((made.lam > 0).all())
    assert bool(((made.slopes >= 0) & (made.slopes <= 1)).all())


def test_norm_identity_balance_and_unit_patterns():
    x, y = sample(HighDimDraw(120), 11, rng(5))
    made = two_neuron(x, y)
    rho2 = float(made.net.rho) ** 2
    assert rho2 == pytest.approx(2 * float(made.lam.sum()), rel=1e-12)
    wt = torch.cat([made.net.weights[0], made.net.biases[0][:, None]], dim=1)
    v = made.net.weights[1][0]
    assert torch.allclose(wt.norm(dim=1), v.abs(), rtol=1e-12)
    assert torch.allclose(v.square(), made.norms, rtol=1e-12)


def test_the_general_certificate_agrees():
    x, y = sample(HighDimDraw(100), 8, rng(1))
    made = two_neuron(x, y)
    found = certify(made.net, x, y, tau=TAU_EXACT)
    assert found.residual < 1e-8
    assert torch.allclose(found.lam, made.lam, rtol=1e-5)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([[0.7]], [1.0]),
        ([[0.4, -1.1, 2.0]], [-1.0]),
        ([[2.0, 0.0, 0.3], [-1.0, 1.5, -0.2]], [1.0, -1.0]),
        ([[1.6], [-1.6]], [-1.0, 1.0]),
    ],
)
def test_one_obtuse_point_per_class_is_the_closed_form(x, y):
    known = one_neuron_per_point(x, y)
    made = two_neuron(known.x, known.y)
    assert made.ok
    assert torch.allclose(made.lam, known.lam, atol=1e-12)
    z = 2 * draw(40, known.x.shape[1])
    assert torch.allclose(phi(made.net, z), phi(known.net, z), atol=1e-12)


@pytest.mark.parametrize("x0", [0.5, 0.9])
def test_a_pair_that_sits_on_the_kinks_has_the_known_slopes(x0):
    known = opposite_pair(x0)
    made = two_neuron(known.x, known.y)
    assert made.ok
    assert torch.allclose(made.lam, known.lam, atol=1e-12)
    other = made.slopes[torch.tensor([0, 1]), torch.tensor([1, 0])]
    assert other.tolist() == pytest.approx([(1 - x0**2) / (1 + x0**2)] * 2)


def test_permuting_points_permutes_multipliers_and_keeps_the_function():
    x, y = sample(HighDimDraw(60), 9, rng(2))
    order = torch.randperm(9, generator=rng(3))
    one, two = two_neuron(x, y), two_neuron(x[order], y[order])
    assert torch.allclose(one.lam[order], two.lam, atol=1e-12)
    z = draw(15, 60)
    assert torch.allclose(phi(one.net, z), phi(two.net, z), atol=1e-10)


def test_flipping_labels_flips_phi_and_rotation_carries_it_along():
    x, y = sample(HighDimDraw(40), 6, rng(4))
    made, flipped = two_neuron(x, y), two_neuron(x, -y)
    z = draw(15, 40)
    assert torch.allclose(phi(made.net, z), -phi(flipped.net, z), atol=1e-10)
    turn = torch.linalg.qr(draw(40, 40)).Q
    turned = two_neuron(x @ turn, y)
    assert torch.allclose(phi(made.net, z), phi(turned.net, z @ turn), atol=1e-9)


def test_one_class_needs_one_neuron():
    x, _ = sample(HighDimDraw(30), 4, rng(6))
    made = two_neuron(x, torch.ones(4, dtype=torch.float64))
    assert made.net.widths == (1,)
    assert relative_residual(made, x, torch.ones(4, dtype=torch.float64)) < 1e-12


def test_too_few_neurons_are_said_and_not_hidden():
    x, y = sample(HighDimDraw(20), 20, rng(20))
    made = two_neuron(x, y)
    assert not made.ok
    q = y * phi(made.net, x)
    assert float(q.min()) == pytest.approx(1, abs=1e-9)
    assert relative_residual(made, x, y) > 1e-3


def test_what_no_pair_of_cones_separates_is_refused_with_a_remedy():
    x, y = sample(HighDimDraw(5), 20, rng(0))
    with pytest.raises(NotSeparableError, match="Raise d"):
        two_neuron(x, y)
    same = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], dtype=torch.float64)
    with pytest.raises(NotSeparableError):
        two_neuron(same, torch.tensor([1.0, -1.0], dtype=torch.float64))


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (torch.zeros(3, 4), torch.ones(2), "expected x"),
        (torch.zeros(0, 4), torch.ones(0), "1 to 500 points"),
        (torch.zeros(2, 4), torch.tensor([1.0, 0.5]), "labels"),
        (torch.full((2, 4), math.nan), torch.ones(2), "finite"),
    ],
)
def test_wrong_input_is_named(x, y, words):
    with pytest.raises(ValueError, match=words):
        two_neuron(x, y)
