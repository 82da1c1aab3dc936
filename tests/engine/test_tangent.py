"""The tangent kernel against torch's derivatives, Euler's identity, Haim's double backward."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.engine.gradients import (
    gradient,
    gram,
    hard,
    inner_theta,
    relaxed_slope,
    residual,
    signals,
)
from explorer.engine.network import Network, phi
from tests.engine.draws import draw, make, published_phi, rng

WIDTHS = [(7,), (6, 4), (4, 3, 5)]


def biased_everywhere(net):
    return Network(net.weights, tuple(draw(len(w), seed=9) for w in net.weights))


def published_loss(net, x, coef, alpha):
    """|| theta - sum_i coef_i grad Phi(x_i) ||^2 and its derivatives by a double backward."""
    parameters = [p.clone().requires_grad_() for p in net.parameters]
    x, coef = x.clone().requires_grad_(), coef.clone().requires_grad_()
    total = (coef * published_phi(net.with_parameters(parameters), x, alpha)).sum()
    grads = torch.autograd.grad(total, parameters, create_graph=True)
    loss = sum((p.detach() - g).square().sum() for p, g in zip(parameters, grads, strict=True))
    return loss, *torch.autograd.grad(loss, (x, coef))


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("bias", [True, False])
def test_gradient_is_torchs(widths, bias):
    net, x = make(widths, bias=bias), draw(5, 2)
    jacobian = torch.autograd.functional.jacobian(lambda t: phi(net.with_theta(t), x), net.theta)
    torch.testing.assert_close(gradient(net, x), jacobian, rtol=0, atol=1e-12)


def test_gradient_is_torchs_with_biases_everywhere():
    net, x = biased_everywhere(make((6, 4))), draw(5, 2)
    jacobian = torch.autograd.functional.jacobian(lambda t: phi(net.with_theta(t), x), net.theta)
    torch.testing.assert_close(gradient(net, x), jacobian, rtol=0, atol=1e-12)


@pytest.mark.parametrize("slope", [hard, relaxed_slope(7.0)], ids=["hard", "relaxed"])
@pytest.mark.parametrize("widths", WIDTHS)
@given(seed=st.integers(0, 1000))
def test_kernel_identity(widths, slope, seed):
    net, x, z = make(widths, seed), draw(5, 2, seed=seed), draw(3, 2, seed=seed + 1)
    left, right = gradient(net, x, slope), gradient(net, z, slope)
    torch.testing.assert_close(gram(net, x, z, slope), left @ right.T, rtol=0, atol=1e-10)
    torch.testing.assert_close(gram(net, x, slope=slope), left @ left.T, rtol=0, atol=1e-10)
    inner = inner_theta(net, x, slope)
    torch.testing.assert_close(inner, left @ net.theta, rtol=0, atol=1e-10)


@pytest.mark.parametrize("widths", WIDTHS)
@given(seed=st.integers(0, 1000))
def test_euler_identity(widths, seed):
    net, x = make(widths, seed), draw(5, 2, seed=seed)
    expected = net.order * phi(net, x)
    torch.testing.assert_close(inner_theta(net, x), expected, rtol=0, atol=1e-10)


def test_two_layer_kernel_is_the_closed_form():
    net, x, z = make((7,)), draw(5, 2), draw(3, 2, seed=2)
    (w, v), b = net.weights, net.biases[0]
    p, q = x @ w.T + b, z @ w.T + b
    augmented = x @ z.T + 1
    closed = p.clamp_min(0) @ q.clamp_min(0).T
    closed += augmented * (((p > 0) * v[0] ** 2) @ (q > 0).double().T)
    torch.testing.assert_close(gram(net, x, z), closed, rtol=0, atol=1e-12)


def test_a_slope_at_a_kink_is_zero_in_torch_and_free_when_given():
    net = make((7,))
    x = torch.tensor([[0.3, -0.2]], dtype=torch.float64)
    bias = net.biases[0].clone()
    bias[0] = -(net.weights[0][0] @ x[0])
    net = Network(net.weights, (bias, None))
    free = [torch.full((1, 7), 0.25, dtype=torch.float64)]
    assert signals(net, x)[0][0][0, 0] == 0
    signal = signals(net, x, free)[0][0][0]
    torch.testing.assert_close(signal, 0.25 * net.weights[1][0], rtol=0, atol=1e-15)


@pytest.mark.parametrize("alpha", [3.0, 100.0])
@pytest.mark.parametrize("widths", [(7,), (6, 4), (4, 3, 5)])
def test_relaxed_loss_and_derivatives_are_the_published_double_backward(widths, alpha):
    net, x, coef = make(widths), draw(5, 2), draw(5, seed=3)
    loss, by_x, by_coef = published_loss(net, x, coef, alpha)
    ours_x, ours_coef = x.clone().requires_grad_(), coef.clone().requires_grad_()
    ours = residual(net, ours_x, ours_coef, relaxed_slope(alpha)).square().sum()
    grads = torch.autograd.grad(ours, (ours_x, ours_coef))
    torch.testing.assert_close(ours, loss, rtol=1e-11, atol=0)
    torch.testing.assert_close(grads[0], by_x, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(grads[1], by_coef, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("widths", WIDTHS)
def test_gram_form_and_residual_form_agree_with_their_derivatives(widths):
    net, coef, slope = make(widths), draw(5, seed=3), relaxed_slope(11.0)
    x, x2 = (draw(5, 2).requires_grad_() for _ in range(2))
    by_residual = residual(net, x, coef, slope).square().sum()
    kernel = coef @ gram(net, x2, slope=slope) @ coef
    by_gram = net.rho**2 - 2 * coef @ inner_theta(net, x2, slope) + kernel
    torch.testing.assert_close(by_gram, by_residual, rtol=1e-10, atol=1e-10)
    (one,), (two,) = torch.autograd.grad(by_residual, x), torch.autograd.grad(by_gram, x2)
    torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-10)


def test_relaxed_slopes_become_hard_ones():
    net, x = make((6, 4)), draw(5, 2)
    torch.testing.assert_close(gram(net, x, slope=relaxed_slope(1e6)), gram(net, x))


@pytest.mark.parametrize("widths", WIDTHS)
@given(seed=st.integers(0, 1000))
def test_kernel_ignores_the_order_of_neurons(widths, seed):
    net, x = make(widths, seed), draw(5, 2, seed=seed)
    order = torch.randperm(widths[0], generator=rng(seed))
    shuffled = Network(
        (net.weights[0][order], net.weights[1][:, order], *net.weights[2:]),
        (net.biases[0][order], *net.biases[1:]),
    )
    torch.testing.assert_close(gram(shuffled, x), gram(net, x), rtol=0, atol=1e-10)


@pytest.mark.parametrize("widths", WIDTHS)
@given(seed=st.integers(0, 1000), c=st.floats(0.2, 5))
def test_kernel_is_homogeneous(widths, seed, c):
    net, x = make(widths, seed), draw(5, 2, seed=seed)
    scaled = net.with_theta(c * net.theta)
    expected = c ** (2 * net.order - 2) * gram(net, x)
    torch.testing.assert_close(gram(scaled, x), expected, rtol=1e-9, atol=1e-10)


def test_empty_batch_and_misfits():
    net = make((6, 4))
    none = torch.zeros(0, 2, dtype=torch.float64)
    assert gram(net, none, draw(3, 2)).shape == (0, 3)
    assert inner_theta(net, none).shape == (0,)
    assert torch.equal(residual(net, none, none[:, 0]), net.theta)
    with pytest.raises(ValueError, match=r"x must be \(m, 2\)"):
        gram(net, draw(3, 4))
    with pytest.raises(ValueError, match="relu_alpha must be positive"):
        relaxed_slope(0.0)
