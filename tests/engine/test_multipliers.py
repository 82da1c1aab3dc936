"""The kink-aware fit against brute force over all patterns, closed forms and symmetries."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from explorer.engine import multipliers
from explorer.engine.gradients import gradient, hard, residual, signals
from explorer.engine.kernels.loading import compiled_module
from explorer.engine.multipliers import fit_multipliers
from explorer.engine.network import Network, phi
from tests.engine.closed_forms import TABLE, opposite_pair
from tests.engine.draws import draw, make, rng


def labels(n, seed):
    return draw(n, seed=seed).sign()


def exhaustive(net, x, y, tau):
    """scipy's NNLS over every 0/1 pattern of every point, gradients written out. Any depth."""
    weights = [w.numpy() for w in net.weights]
    columns = []
    for point, label in zip(x.numpy(), y.numpy(), strict=True):
        a, inputs, patterns = point, [], []
        for w, b in zip(weights, net.biases, strict=True):
            seen = a if b is None else np.append(a, 1.0)
            rows = w if b is None else np.column_stack([w, b.numpy()])
            inputs.append(seen)
            z = rows @ seen
            free = np.abs(z) <= tau * np.linalg.norm(rows, axis=1) * np.linalg.norm(seen)
            active = (z > 0).astype(float)
            patterns.append([(0.0, 1.0) if f else (s,) for f, s in zip(free, active, strict=True)])
            a = np.maximum(z, 0)
        hidden = [itertools.product(*choices) for choices in patterns[:-1]]
        for slopes in itertools.product(*hidden):
            b, blocks = np.ones(1), []
            for layer in range(len(weights) - 1, -1, -1):
                block = np.outer(b, inputs[layer])
                has_bias = net.biases[layer] is not None
                if has_bias:
                    blocks.append(block[:, -1])
                blocks.append(block[:, : block.shape[1] - has_bias].ravel())
                if layer:
                    b = (b @ weights[layer]) * np.array(slopes[layer - 1])
            columns.append(label * np.concatenate(blocks[::-1]))
    return nnls(np.array(columns).T, net.theta.numpy())[1] / float(net.rho)


def attained(net, x, y, fit):
    """The residual that the returned columns really leave."""
    coef = fit.weight * y[fit.point]
    factors = signals(net, x[fit.point], fit.slopes)
    total = [(b * coef[:, None]).T @ a for b, a in factors]
    left = 0.0
    for t, w, b in zip(total, net.weights, net.biases, strict=True):
        block = w if b is None else torch.cat([w, b[:, None]], dim=1)
        left += float((block - t).square().sum())
    return math.sqrt(left) / float(net.rho)


@pytest.mark.parametrize("bias", [True, False])
@given(seed=st.integers(0, 500), tau=st.sampled_from([0.0, 0.1, 0.3]))
def test_two_layers_reach_the_optimum_over_all_patterns(bias, seed, tau):
    net, x, y = make((5,), seed, bias), draw(4, 2, seed=seed), labels(4, seed + 1)
    fit = fit_multipliers(net, x, y, tau, accuracy=0.0, rounds=500)
    assert fit.residual == pytest.approx(exhaustive(net, x, y, tau), rel=1e-7, abs=1e-9)
    assert float(fit.lam.min()) >= 0


@given(seed=st.integers(0, 500), tau=st.sampled_from([0.02, 0.1]))
def test_deep_fits_lie_between_the_optimum_and_the_strict_fit(seed, tau):
    net, x, y = make((4, 3), seed), draw(3, 2, seed=seed), labels(3, seed + 1)
    fit = fit_multipliers(net, x, y, tau, accuracy=0.0, rounds=500)
    assert fit.residual >= exhaustive(net, x, y, tau) - 1e-9
    assert fit.residual == pytest.approx(attained(net, x, y, fit), rel=1e-9, abs=1e-12)
    strict = fit_multipliers(net, x, y, -1.0, accuracy=0.0, rounds=500)
    assert strict.residual == pytest.approx(exhaustive(net, x, y, -1.0), rel=1e-7, abs=1e-9)
    assert fit.residual <= strict.residual + 1e-9


def test_deep_pricing_seldom_misses_the_optimum():
    missed = 0
    for seed in range(60):  # local pricing: none of these misses, but it may
        net, x = make((3, 6), seed), draw(2, 2, seed=seed)
        y = phi(net, x).sign()
        best = exhaustive(net, x, y, 0.25)
        missed += fit_multipliers(net, x, y, 0.25, 0.0, rounds=500).residual > best + 1e-6
    assert missed <= 3


@pytest.mark.parametrize("widths", [(30,), (8, 9)])
@given(seed=st.integers(0, 100), rounds=st.integers(1, 6))
def test_a_capped_search_still_attains_what_it_says(widths, seed, rounds):
    net, x, y = make(widths, seed), draw(6, 2, seed=seed), labels(6, seed + 1)
    fit = fit_multipliers(net, x, y, tau=0.2, rounds=rounds)
    assert fit.residual == pytest.approx(attained(net, x, y, fit), rel=1e-9)
    torch.testing.assert_close(
        torch.zeros(6, dtype=torch.float64).index_add(0, fit.point, fit.weight), fit.lam
    )
    free = torch.stack([((s != 0) & (s != 1)).any() for s in fit.slopes])
    assert not free.any()


@pytest.mark.parametrize("name", TABLE)
def test_closed_forms(name):
    case = TABLE[name]
    fit = fit_multipliers(case.net, case.x, case.y, tau=1e-9)
    assert fit.residual < 1e-10
    torch.testing.assert_close(fit.lam, case.lam, rtol=0, atol=1e-8)


def test_slopes_at_the_kinks_of_a_close_pair():
    x0 = 0.5
    case = opposite_pair(x0)
    fit = fit_multipliers(case.net, case.x, case.y, tau=1e-9)
    mean = torch.zeros(2, 2, dtype=torch.float64)
    mean.index_add_(0, fit.point, fit.weight[:, None] * fit.slopes[0])
    mean /= fit.lam[:, None]
    s = (1 - x0**2) / (1 + x0**2)
    expected = torch.tensor([[1.0, s], [s, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(mean, expected, rtol=0, atol=1e-8)
    assert fit.n_kinks == 2
    assert fit_multipliers(case.net, case.x, case.y, tau=-1.0).residual > 0.1


@pytest.mark.parametrize("widths", [(6,), (5, 4)])
@given(seed=st.integers(0, 200))
def test_optimality_conditions_of_the_strict_fit(widths, seed):
    net, x, y = make(widths, seed), draw(7, 2, seed=seed), labels(7, seed + 1)
    fit = fit_multipliers(net, x, y, -1.0, accuracy=0.0, rounds=200)
    left = residual(net, x, fit.lam * y)
    slope = gradient(net, x, hard) @ left * y
    scale = float(net.rho) * (1 + float(gradient(net, x).norm()))
    assert float(slope.max()) < 1e-9 * scale
    assert abs(float(fit.lam @ slope)) < 1e-8 * scale
    assert fit.residual == pytest.approx(float(left.norm() / net.rho), rel=1e-10)


def fit_of(net, x, y, tau):
    return fit_multipliers(net, x, y, tau, accuracy=0.0, rounds=300)


def explained(net, x, y, fit):
    """The part of theta that the strict fit explains: unique, unlike lam."""
    return net.theta - residual(net, x, fit.lam * y)


@pytest.mark.parametrize("tau", [-1.0, 0.1])
@pytest.mark.parametrize("widths", [(6,), (5, 4)])
@given(seed=st.integers(0, 200), c=st.floats(0.3, 3))
def test_scaling(widths, tau, seed, c):
    net, x, y = make(widths, seed), draw(5, 2, seed=seed), labels(5, seed + 1)
    one, other = fit_of(net, x, y, tau), fit_of(net.with_theta(c * net.theta), x, y, tau)
    assert other.residual == pytest.approx(one.residual, rel=1e-5, abs=1e-8)
    if tau < 0:  # lam' = c^(2 - order) lam: compare G lam, which is unique
        coef = c ** (net.order - 2) * other.lam * y
        torch.testing.assert_close(
            net.theta - residual(net, x, coef), explained(net, x, y, one), rtol=1e-6, atol=1e-6
        )


@pytest.mark.parametrize("tau", [-1.0, 0.1])
@given(seed=st.integers(0, 200))
def test_permuting_and_splitting_neurons(tau, seed):
    net, x, y = make((6,), seed), draw(5, 2, seed=seed), labels(5, seed + 1)
    one = fit_of(net, x, y, tau).residual
    generator = rng(seed)
    order = torch.cat([torch.randperm(6, generator=generator)] * 2)
    p = torch.rand(6, generator=generator, dtype=torch.float64)
    root = torch.cat([p, 1 - p])[torch.cat([order[:6], order[:6] + 6])].sqrt()
    w, b, v = net.weights[0][order], net.biases[0][order], net.weights[1][:, order]
    wide = Network((w * root[:, None], v * root), (b * root, None))
    assert float(wide.rho) == pytest.approx(float(net.rho), rel=1e-12)
    assert fit_of(wide, x, y, tau).residual == pytest.approx(one, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("tau", [-1.0, 0.1])
@given(seed=st.integers(0, 200), angle=st.floats(0, 6.3))
def test_rotation_and_label_flip(tau, seed, angle):
    net, x, y = make((6,), seed), draw(5, 2, seed=seed), labels(5, seed + 1)
    c, s = math.cos(angle), math.sin(angle)
    turn = torch.tensor([[c, -s], [s, c]], dtype=torch.float64)
    turned = Network((net.weights[0] @ turn, -net.weights[1]), net.biases)
    one, other = fit_of(net, x, y, tau), fit_of(turned, x @ turn, -y, tau)
    assert other.residual == pytest.approx(one.residual, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("widths", [(6,), (5, 4)])
@given(seed=st.integers(0, 200))
def test_duplicates_share_their_multiplier(widths, seed):
    net, x, y = make(widths, seed), draw(5, 2, seed=seed), labels(5, seed + 1)
    twice = torch.tensor([0, 1, 2, 3, 4, 0, 3])
    one, other = fit_of(net, x, y, -1.0), fit_of(net, x[twice], y[twice], -1.0)
    torch.testing.assert_close(
        explained(net, x[twice], y[twice], other), explained(net, x, y, one), rtol=1e-6, atol=1e-6
    )


def test_price_decides_between_duplicates():
    case = opposite_pair(1.6)
    x, y = torch.cat([case.x, case.x]), torch.cat([case.y, case.y])
    price = torch.tensor([1.0, 0.0, 0.0, 1.0], dtype=torch.float64)
    fit = fit_multipliers(case.net, x, y, tau=1e-9, price=price)
    expected = torch.tensor([0.0, case.lam[1], case.lam[0], 0.0], dtype=torch.float64)
    torch.testing.assert_close(fit.lam, expected, rtol=0, atol=1e-8)


def test_empty_and_dead():
    net = make((5,))
    none = torch.zeros(0, 2, dtype=torch.float64)
    fit = fit_multipliers(net, none, none[:, 0])
    assert (fit.residual, len(fit.lam)) == (1.0, 0)
    dead = net.with_theta(torch.zeros_like(net.theta))
    assert fit_multipliers(dead, draw(3, 2), labels(3, 2)).residual == 1.0


@pytest.mark.parametrize("price", [None, 0.3])
def test_loops_leave_the_fit_that_lapack_leaves(price, monkeypatch):
    """Of many columns, of which some leave; and where there is no factor LAPACK goes on."""
    net, x = make((40,), seed=5), draw(60, 2, seed=6)
    y, cost = labels(60, 7), None if price is None else torch.full((60,), price).double()
    made = []
    for many in (10**9, 1):
        monkeypatch.setattr(multipliers, "MANY", many)
        made.append(fit_multipliers(net, x, y, tau=0.05, accuracy=1e-9, rounds=60, price=cost))
    plain, looped = made
    assert 0 < len(looped.weight) and bool((looped.lam == 0).any())
    assert torch.equal(looped.point, plain.point)
    torch.testing.assert_close(looped.lam, plain.lam, rtol=1e-7, atol=1e-9)
    assert looped.residual == pytest.approx(plain.residual, rel=1e-9)
    loops = compiled_module("compiled_nonnegative")
    before = np.ones(2)
    assert not loops.positive(np.array([[1.0, 2.0], [2.0, 1.0]]), np.ones(2), before, 0.0)
    assert before.tolist() == [1.0, 1.0]
