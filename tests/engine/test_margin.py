"""Margins: scale freedom, the sandwich of Lyu and Li, and nothing that overflows."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.engine.margin import (
    gamma_bar,
    log_loss,
    log_slopes,
    normalise,
    q_of,
    smoothed_margin,
)
from explorer.engine.network import init_network, phi, scaled_network
from tests.engine.draws import rng

LOSSES = ["exponential", "logistic"]


def separated(widths=(6,), seed=0, n=5):
    """A random network and labels it gets right."""
    generator = rng(seed)
    net = init_network(2, widths, generator=generator, first_scale=1.0)
    x = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    return net, x, torch.where(phi(net, x) >= 0, 1.0, -1.0).double()


def gamma_tilde(q, rho, order, loss, log_gain=0.0):
    return smoothed_margin(log_loss(q, loss, log_gain), rho, order, loss, log_gain)


def vector(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_q_is_label_times_value():
    net, x, y = separated()
    assert torch.equal(q_of(net, x, -y), -y * phi(net, x))
    with pytest.raises(ValueError, match=r"y must be \(5,\).*\(4,\)"):
        q_of(net, x, y[:4])


@pytest.mark.parametrize("loss", LOSSES)
@given(q=st.lists(st.floats(-3, 30), min_size=1, max_size=6))
def test_log_loss_is_the_naive_one_where_that_works(loss, q):
    q = torch.tensor(q, dtype=torch.float64)
    naive = (torch.exp(-q) if loss == "exponential" else torch.log1p(torch.exp(-q))).sum().log()
    assert log_loss(q, loss) == pytest.approx(float(naive), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_slopes_are_the_derivative_of_the_loss(loss):
    q = vector(-3.0, 0.0, 0.5, 20.0).requires_grad_()
    total = (torch.exp(-q) if loss == "exponential" else torch.log1p(torch.exp(-q))).sum()
    (grad,) = torch.autograd.grad(total, q)
    torch.testing.assert_close(log_slopes(q, loss).exp(), -grad, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("loss", LOSSES)
@given(
    q=st.lists(st.floats(0.01, 50), min_size=1, max_size=6),
    rho=st.floats(0.3, 20),
    order=st.integers(2, 4),
)
def test_smoothed_margin_lies_below_the_margin(loss, q, rho, order):
    q = torch.tensor(q, dtype=torch.float64)
    bar, tilde = (
        gamma_bar(q.min(), rho, order),
        gamma_tilde(q, rho, order, loss),
    )
    slack = 1e-12 * (1 + abs(bar))
    assert tilde <= bar + slack
    if loss == "exponential":
        assert bar - math.log(len(q)) / rho**order <= tilde + slack


@pytest.mark.parametrize("loss", LOSSES)
def test_one_point_has_no_smoothing(loss):
    q = vector(3.7)
    assert gamma_tilde(q, 1.3, 3, loss) == pytest.approx(gamma_bar(q[0], 1.3, 3), rel=1e-13)


def test_known_values():
    q = vector(0.5, 1.0, 2.0)
    expected = -math.log(math.exp(-0.5) + math.exp(-1) + math.exp(-2)) / 4
    assert gamma_tilde(q, 2.0, 2, "exponential") == pytest.approx(expected, rel=1e-14)
    total = sum(math.log1p(math.exp(-float(t))) for t in q)
    expected = -math.log(math.expm1(total)) / 4
    assert gamma_tilde(q, 2.0, 2, "logistic") == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("loss", LOSSES)
@given(log_scale=st.floats(-2, 3))
def test_a_carried_scale_is_the_scale(loss, log_scale):
    q, rho, order = vector(0.5, 1.0, 2.0), 1.7, 3
    c = math.exp(log_scale)
    plain = gamma_tilde(q * c**order, rho * c, order, loss)
    carried = gamma_tilde(q, rho, order, loss, log_gain=order * log_scale)
    assert carried == pytest.approx(plain, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("log_gain", [0.0, 500.0, 1e6])
@pytest.mark.parametrize("q", [(0.5, 2.0), (-0.5, 2.0), (0.0, 1e-3), (700.0, 9e5), (-900.0, 3.0)])
def test_nothing_overflows(loss, log_gain, q):
    q = vector(*q)
    numbers = [log_loss(q, loss, log_gain), gamma_tilde(q, 2.0, 2, loss, log_gain)]
    assert all(math.isfinite(t) for t in numbers)
    assert torch.isfinite(torch.softmax(log_slopes(q, loss, log_gain), 0)).all()
    if float(q.min()) > 0 and log_gain > 100:
        assert numbers[1] == pytest.approx(gamma_bar(q.min(), 2.0, 2), rel=1e-12)


def test_logistic_tail_joins_smoothly():
    for t in (27.0, 28.0, 36.0 - 1e-9, 36.0 + 1e-9, 80.0):
        assert gamma_tilde(vector(t), 1.0, 2, "logistic") == pytest.approx(t, rel=1e-11)


def test_no_points_and_no_weights():
    assert log_loss(vector(), "exponential") == -math.inf
    assert gamma_bar(0.0, 0.0, 2) == 0
    with pytest.raises(ValueError, match="'hinge'"):
        log_loss(vector(1.0), "hinge")


@pytest.mark.parametrize("widths", [(6,), (5, 4)])
@given(seed=st.integers(0, 200), c=st.floats(0.2, 5))
def test_normalising_forgets_the_scale(widths, seed, c):
    net, x, y = separated(widths, seed)
    if float(q_of(net, x, y).min()) < 1e-6:
        return
    one, q_min = normalise(net, x, y)
    two, q_min2 = normalise(scaled_network(net, c), x, y)
    assert float(q_of(one, x, y).min()) == pytest.approx(1, rel=1e-10)
    assert q_min2 == pytest.approx(c**net.order * q_min, rel=1e-9)
    torch.testing.assert_close(two.theta, one.theta, rtol=1e-9, atol=1e-9)
    before = q_of(net, x, y) / net.rho**net.order
    after = q_of(one, x, y) / one.rho**one.order
    torch.testing.assert_close(after, before, rtol=1e-9, atol=1e-12)


def test_normalising_refuses_what_has_no_margin():
    net, x, y = separated()
    with pytest.raises(ValueError, match=r"not separated: 5 of 5 points"):
        normalise(net, x, -y)
    with pytest.raises(ValueError, match="at least one point"):
        normalise(net, x[:0], y[:0])
