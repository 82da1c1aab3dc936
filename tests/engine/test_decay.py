"""Weight decay in training: the identity at every point, the end of both rules, what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cross_entropy, soft_margin_loss

from explorer.engine import training
from explorer.engine.attacks import decoreco
from explorer.engine.attacks.decoreco import DecoRecoConfig, Start
from explorer.engine.attacks.target import Target
from explorer.engine.classes import class_numbers, from_numbers
from explorer.engine.data import Dataset, preset
from explorer.engine.margin import q_of
from explorer.engine.network import Network, phi, phi_all, scaled_network
from explorer.engine.training import TrainConfig
from explorer.engine.weight_decay import (
    DecayConfig,
    multipliers,
    objective,
    settle,
    stationarity_remainder,
)
from tests.engine.draws import draw, rng, trained
from tests.engine.test_decoreco import biased

POINTS = preset("moons", 7, seed=3)


def true_weights(state):
    return scaled_network(state.net, math.exp(state.log_scale))


def gradient(net, data, mu, loss):
    """Of mean loss + mu/2 |theta|^2, by autograd."""
    theta = net.theta.clone().requires_grad_()
    q = data.y * phi(net.with_theta(theta), data.x)
    each = (-q).exp() if loss == "exponential" else torch.nn.functional.softplus(-q)
    total = each.mean() + mu / 2 * theta.dot(theta)
    return torch.autograd.grad(total, theta)[0]


@pytest.mark.parametrize("widths", [(9,), (6, 5)])
@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_constant_rule_is_plain_gradient_descent(widths, loss) -> None:
    mu, rate = 0.02, 0.05
    config = TrainConfig(
        widths=widths, loss=loss, step_rule="constant", lr=rate, momentum=0.0, weight_decay=mu,
        init_scale=0.5, steps=40,
    )  # fmt: skip
    state = training.init(POINTS, config, rng())
    net = true_weights(state)
    for _ in range(40):
        net = net.with_theta(net.theta - rate * gradient(net, POINTS, mu, loss))
        state = training.step(POINTS, state, config)
    torch.testing.assert_close(true_weights(state).theta, net.theta, rtol=1e-10, atol=1e-12)


def test_carried_scale_does_not_matter() -> None:
    for rule in ("constant", "loss-scaled"):
        config = TrainConfig(widths=(8,), step_rule=rule, weight_decay=0.01, momentum=0.9, lr=0.05)
        state = training.init(POINTS, config, rng(2))
        half = replace(
            state, net=scaled_network(state.net, 0.5), log_scale=state.log_scale + math.log(2),
            velocity=state.velocity / 2,
        )  # fmt: skip
        other = training.refresh(POINTS, half, replace(config, revive=False))
        for _ in range(30):
            state = training.step(POINTS, state, config)
            other = training.step(POINTS, other, config)
        torch.testing.assert_close(
            true_weights(state).theta, true_weights(other).theta, rtol=1e-9, atol=1e-12
        )


RULES = pytest.mark.parametrize("rule,lr", [("constant", 0.2), ("loss-scaled", None)])


@RULES
def test_every_weight_is_explained_at_the_end_where_no_kink_is_near(rule, lr) -> None:
    # Points and weights above 0: all neurons stay on, and the objective is smooth.
    mu = 0.05
    x = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)
    data = Dataset(x, torch.ones(3, dtype=torch.float64))
    net = Network(
        (torch.tensor([[0.5], [0.9]]).double(), torch.tensor([[0.7, 0.2]]).double()),
        (torch.tensor([0.3, 0.1]).double(), None),
    )
    config = TrainConfig(
        loss="logistic", step_rule=rule, lr=lr, momentum=0.9, weight_decay=mu, steps=1500
    )
    net = true_weights(trained(data, config, net=net))
    lam = data.y / (data.n * mu) * torch.sigmoid(-q_of(net, data.x, data.y))
    assert float((net.theta - explained(net, data, lam)).norm() / net.theta.norm()) < 1e-6
    # of a homogeneous network: |theta|^2 = order sum lam Phi
    assert float(net.rho) ** 2 == pytest.approx(2 * float(lam @ phi(net, data.x)), rel=1e-5)


def explained(net, data, lam):
    theta = net.theta.clone().requires_grad_()
    return torch.autograd.grad(phi(net.with_theta(theta), data.x) @ lam, theta)[0]


def test_both_rules_end_alike_and_the_residual_is_the_gradient_over_mu() -> None:
    mu, data, objectives = 0.02, preset("blobs", 5, seed=1), []
    for rule, lr, steps in (("constant", 0.2, 4000), ("loss-scaled", None, 2500)):
        config = TrainConfig(
            widths=(5,), loss="logistic", step_rule=rule, lr=lr, momentum=0.9, weight_decay=mu,
            init_scale=0.5, steps=steps,
        )  # fmt: skip
        net = true_weights(trained(data, config, 1))
        q = q_of(net, data.x, data.y)
        lam = data.y / (data.n * mu) * torch.sigmoid(-q)
        off = gradient(net, data, mu, "logistic") / mu
        torch.testing.assert_close(net.theta - explained(net, data, lam), off, rtol=1e-8, atol=1e-9)
        # Points end on kinks, where plain gradients chatter: the objectives agree, not the weights.
        loss = torch.nn.functional.softplus(-q).mean()
        objectives.append(float(loss + mu / 2 * net.theta.dot(net.theta)))
    assert objectives[0] == pytest.approx(objectives[1], rel=0.02)


def test_no_decay_is_the_limit_of_little() -> None:
    config = TrainConfig(widths=(8,), momentum=0.9, steps=20)  # later, any decay outweighs the loss
    plain, little = (
        trained(POINTS, replace(config, weight_decay=mu), 1).net.theta for mu in (0.0, 1e-14)
    )
    torch.testing.assert_close(plain, little, rtol=1e-6, atol=1e-8)


def test_too_much_decay_ends_at_no_network_and_stays_finite() -> None:
    state = trained(POINTS, TrainConfig(widths=(8,), weight_decay=1e3, steps=3000), 1)
    assert torch.isfinite(state.net.theta).all()
    assert state.log_scale + math.log(state.rho) < math.log(1e-2)


@pytest.mark.parametrize("bad", [-1.0, math.inf, math.nan])
def test_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="weight_decay"):
        TrainConfig(weight_decay=bad)
    with pytest.raises(ValueError, match="gradient"):
        TrainConfig(weight_decay=0.1, method="ascent")


# --- weight decay: the gradient against autograd, and theory 4.2's identity, settled and anywhere

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
