"""Weight decay: the gradient against autograd, and theory 4.2's identity, settled and anywhere."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cross_entropy, soft_margin_loss

from explorer.engine.attacks import decoreco
from explorer.engine.attacks.decoreco import DecoRecoConfig, Start
from explorer.engine.attacks.target import Target
from explorer.engine.classes import class_numbers, from_numbers
from explorer.engine.network import phi_all
from explorer.engine.weight_decay import (
    DecayConfig,
    multipliers,
    objective,
    settle,
    stationarity_remainder,
)
from tests.engine.draws import draw, rng
from tests.engine.test_decoreco import biased

torch.set_num_threads(1)

N, MU = 30, 0.003


def points(outputs):
    x = draw(N, 2)
    if outputs == 1:
        return x, torch.where(x[:, 0] > 0.3, 1.0, -1.0).double()
    return x, from_numbers((x[:, 0] > 0).long() + (x[:, 1] > 0).long() + 1)


def by_torch(net, x, y, loss):
    theta = net.theta.requires_grad_()
    values = phi_all(net.with_theta(theta), x)
    if loss == "squared":
        wanted = y[:, None] if net.outputs == 1 else torch.eye(net.outputs)[class_numbers(y) - 1]
        total = (values - wanted.double()).square().sum(1).mean()
    elif net.outputs == 1:
        total = soft_margin_loss(values[:, 0], y)
    else:
        total = cross_entropy(values, class_numbers(y) - 1)
    total = total + MU / 2 * theta.square().sum()
    return total.detach(), torch.autograd.grad(total, theta)[0]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("widths", [(6,), (5, 4)])
def test_the_identity_holds_at_any_weights(loss, outputs, widths):
    net = biased(widths, outputs)
    x, y = points(outputs)
    total, grad = objective(net, x, y, loss, MU)
    expected, autograd = by_torch(net, x, y, loss)
    assert math.isclose(total, float(expected), rel_tol=1e-12)
    torch.testing.assert_close(grad, autograd, rtol=1e-10, atol=1e-13)
    lam = multipliers(net, x, y, loss, MU)
    torch.testing.assert_close(
        stationarity_remainder(net, x, lam), grad / MU, rtol=1e-8, atol=1e-12
    )


def test_torch_counts_weight_decay_as_mu():
    net = biased((6,), 1)
    x, y = points(1)
    theta = net.theta.clone().requires_grad_()
    values = phi_all(net.with_theta(theta), x)
    soft_margin_loss(values[:, 0], y).backward()
    torch.optim.SGD([theta], lr=1.0, weight_decay=MU).step()
    _, grad = objective(net, x, y, "logistic", MU)
    torch.testing.assert_close(net.theta - theta.detach(), grad)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_a_settled_network_is_the_sum_of_its_points(loss, outputs):
    x, y = points(outputs)
    seed = {("squared", 3): 1}.get((loss, outputs), 0)  # some seeds meet many kinks first
    done = settle(x, y, DecayConfig(loss=loss, weight_decay=MU), rng(seed), outputs)
    assert all(b is not None for b in done.net.biases) and not done.net.homogeneous
    assert done.gradient_norm < 1e-10
    assert abs(done.residual - done.gradient_norm / MU) < 1e-8 * float(done.net.rho)
    assert done.residual < 1e-8 * float(done.net.rho)
    # each multiplier is recovered by the attack's own fit at the true points
    config = DecoRecoConfig(
        contribution="outputs", relu_alpha=1e6, relu_alpha_start=None, merge_angle=0.0
    )
    state = decoreco.init(Target(done.net), config, rng(1), Start(x, y))
    assert float(state.l_stationary) < 1e-9


def test_homogeneous_weights_obey_euler():
    x, y = points(1)
    done = settle(x, y, DecayConfig(all_biases=False, loss="squared", weight_decay=MU), rng(3))
    values = phi_all(done.net, x)
    total = done.net.order * float((done.lam * values).sum())
    assert math.isclose(total, float(done.net.rho) ** 2, rel_tol=1e-8)


def test_regression_targets_may_be_any_numbers():
    x = draw(N, 2)
    targets = torch.stack([x[:, 0].relu() + 0.1 * x[:, 1], x[:, 1].abs()], 1)
    done = settle(x, targets, DecayConfig(loss="squared"), rng(0), outputs=2)
    assert done.lam.shape == (N, 2) and done.residual < 1e-8 * float(done.net.rho)


def test_a_run_that_never_settles_says_so():
    x, y = points(1)
    config = DecayConfig(widths=(4,), loss="squared", weight_decay=0.1, tries=1)
    with pytest.raises(ValueError, match="ended on a kink"):
        settle(x, y, config, rng(0))


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"widths": ()}, "widths"), ({"loss": "hinge"}, "loss must be"),
     ({"weight_decay": 0.0}, "weight_decay")],
)  # fmt: skip
def test_settings_that_cannot_run_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        replace(DecayConfig(), **changes)


def test_weights_of_zero_are_no_network_that_settled():
    x, y = points(1)
    config = DecayConfig(loss="logistic", all_biases=False)
    done = settle(x, y, config, rng(2))  # an earlier try ends at zero
    assert float(done.net.rho) > 0.1 and done.residual < 1e-10
    with pytest.raises(ValueError, match="Take a smaller weight decay than 9"):
        settle(x, y, replace(config, weight_decay=9.0, tries=2), rng())
