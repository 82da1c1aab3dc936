"""Weight decay in training: the identity at every point, the end of both rules, what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from explorer.engine import training
from explorer.engine.data import Dataset, preset
from explorer.engine.margin import q_of
from explorer.engine.network import Network, phi, scaled_network
from explorer.engine.training import TrainConfig
from tests.engine.draws import rng, trained

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
