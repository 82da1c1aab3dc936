"""Laws of Phi: homogeneity, symmetries, shapes that do not fit."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.engine.network import (
    Network,
    init_network,
    phi,
    phi_all,
    preactivations,
    scaled_network,
)
from tests.engine.draws import draw, make, rng

WIDTHS = [(5,), (6, 4), (4, 3, 5)]


def test_phi_is_the_formula():
    net = Network(
        (torch.tensor([[1.0, -1.0], [0.5, 2.0]]), torch.tensor([[3.0, -1.0]])),
        (torch.tensor([0.0, -1.0]), None),
    )
    x = torch.tensor([[2.0, 1.0], [0.0, 1.0], [-1.0, 0.0]])
    # neuron 1: 1, -1, -1; neuron 2: 2, 1, -1.5
    assert phi(net, x).tolist() == [3.0 * 1 - 2.0, -1.0, 0.0]


def test_a_network_is_called_on_points():
    one, x = make((5,)), draw(3, 2)
    assert torch.equal(one(x), phi(one, x)) and one(x).shape == (3,)
    several = init_network(2, (5,), generator=rng(), first_scale=1.0, outputs=3)
    assert torch.equal(several(x), phi_all(several, x)) and several(x).shape == (3, 3)
    with pytest.raises(ValueError, match="x must be"):
        one(x[:, :1])


def test_a_network_is_shown_in_one_line_without_its_weights():
    drawn = rng()
    deep = init_network(3, (5, 4), generator=drawn, first_scale=1.0, outputs=2)
    assert repr(deep) == "Network(3-5-4-2, order 3, 2 outputs, float64)"
    biased = init_network(
        2, (6,), generator=drawn, first_scale=1.0, all_biases=True, dtype=torch.float32
    )
    assert repr(biased) == "Network(2-6-1, biases in several layers, 1 output, float32)"


def test_a_bias_of_the_output_is_added_and_breaks_the_order():
    net = make((5,))
    biased = Network(net.weights, (net.biases[0], torch.tensor([0.7], dtype=torch.float64)))
    x = draw(3, 2)
    torch.testing.assert_close(phi(biased, x), phi(net, x) + 0.7, rtol=0, atol=1e-14)
    assert not biased.homogeneous
    with pytest.raises(ValueError, match="homogeneous"):
        _ = biased.order


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("bias", [True, False])
@given(c=st.floats(0.1, 10), seed=st.integers(0, 1000))
def test_phi_is_homogeneous_of_its_order(widths, bias, c, seed):
    net, x = make(widths, seed, bias=bias), draw(7, 2, seed=seed)
    assert net.order == len(widths) + 1
    expected = c**net.order * phi(net, x)
    torch.testing.assert_close(phi(scaled_network(net, c), x), expected, rtol=1e-11, atol=1e-12)


@given(seed=st.integers(0, 1000), angle=st.floats(0, 6.3))
def test_phi_is_unchanged_by_rotating_points_and_weights(seed, angle):
    net, x = make((6, 4), seed), draw(7, 2, seed=seed)
    c, s = math.cos(angle), math.sin(angle)
    turn = torch.tensor([[c, -s], [s, c]], dtype=torch.float64)
    turned = Network((net.weights[0] @ turn, *net.weights[1:]), net.biases)
    torch.testing.assert_close(phi(turned, x @ turn), phi(net, x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("widths", WIDTHS)
def test_theta_goes_there_and_back_in_the_order_of_parameters(widths):
    net = make(widths)
    theta = net.theta
    assert theta.shape == (sum(p.numel() for p in net.parameters),)
    assert torch.equal(theta[: net.weights[0].numel()], net.weights[0].flatten())
    shifted = net.with_theta(theta + 1)
    for a, b in zip(shifted.parameters, net.parameters, strict=True):
        assert torch.equal(a, b + 1)
    assert float(net.rho) == pytest.approx(float(theta.norm()), rel=1e-14)


def test_preactivations_chain():
    net, x = make((6, 4)), draw(3, 2)
    z = preactivations(net, x)
    assert [tuple(t.shape) for t in z] == [(3, 6), (3, 4), (3, 1)]
    torch.testing.assert_close(z[1], z[0].clamp_min(0) @ net.weights[1].T)


def test_no_points_give_no_values():
    assert phi(make((6, 4)), torch.zeros(0, 2, dtype=torch.float64)).shape == (0,)


def test_one_seed_gives_one_network_and_the_scale_is_the_first_layers():
    a, b, other = make((6, 4)), make((6, 4)), make((6, 4), seed=1)
    assert torch.equal(a.theta, b.theta)
    assert not torch.equal(a.theta, other.theta)
    generator = rng()
    small = init_network(2, (6, 4), generator=generator, first_scale=1e-4)
    torch.testing.assert_close(small.weights[0], a.weights[0] * 1e-4)
    assert torch.equal(small.weights[1], a.weights[1])


def test_misfits_are_refused_with_both_shapes():
    with pytest.raises(ValueError, match=r"x must be \(m, 2\).*\(4, 3\)"):
        phi(make((5,)), torch.zeros(4, 3, dtype=torch.float64))
    with pytest.raises(ValueError, match="layer 2: expected a weight"):
        Network((torch.zeros(5, 2), torch.zeros(1, 4)), (None, None))
    with pytest.raises(ValueError, match="one output is expected here; this network has 3"):
        phi(Network((torch.zeros(3, 2),), (None,)), torch.zeros(4, 2))
    with pytest.raises(ValueError, match="one output or more; got 0"):
        Network((torch.zeros(0, 2),), (None,))
    with pytest.raises(ValueError, match="one bias"):
        Network((torch.zeros(1, 2),), ())
