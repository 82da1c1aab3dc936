"""The appendix's stretches: standard initialisation, biases everywhere, the published settings."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from explorer.engine import training
from explorer.engine.attacks import inversion, kkt
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.kkt.config import PUBLISHED, Knobs
from explorer.engine.attacks.target import Target
from explorer.engine.data import preset
from explorer.engine.network import init_network, phi
from explorer.engine.roster import by_key
from explorer.engine.training import TrainConfig
from tests.engine.draws import aimed, attacked, make, published_phi, rng, trained

WIDTHS = [(7,), (6, 4), (5, 3, 4)]


def everywhere(widths, seed=0):
    return init_network(2, widths, generator=rng(seed), first_scale=0.8, all_biases=True)


MOONS = preset("moons", 7, seed=1)


@pytest.mark.parametrize("widths", WIDTHS)
def test_standard_initialisation_is_torchs(widths) -> None:
    net = init_network(3, (400, *widths), generator=rng(), first_scale=None, all_biases=True)
    for w, b in zip(net.weights, net.biases, strict=True):
        bound = 1 / math.sqrt(w.shape[1])
        layer = torch.nn.Linear(w.shape[1], w.shape[0])
        assert float(layer.weight.detach().abs().max()) <= bound
        assert float(w.abs().max()) <= bound
        assert float(b.abs().max()) <= bound
    first = net.weights[0]
    assert float(first.std()) == pytest.approx(1 / 3, rel=0.05)  # of U(-1/sqrt 3, 1/sqrt 3)


def test_switches_of_the_initialisation_leave_the_usual_one_as_it_was() -> None:
    usual = make((6, 4))
    with_more = init_network(2, (6, 4), generator=rng(), first_scale=1.0, all_biases=True)
    for a, b in zip(usual.weights, with_more.weights, strict=True):
        assert torch.equal(a, b)
    assert usual.homogeneous
    assert not with_more.homogeneous


@pytest.mark.parametrize(
    "changes",
    [{"init": "standard"}, {"init": "standard", "widths": (20, 10)}, {"batch": 3}, {"steps": 200},
     {"all_biases": True}, {"all_biases": True, "batch": 3, "init": "standard"},
     {"all_biases": True, "step_rule": "constant", "lr": 0.1, "steps": 900, "loss": "logistic"}],
)  # fmt: skip
def test_every_stretch_trains_to_separation(changes) -> None:
    config = TrainConfig(**{"widths": (20,), "steps": 400, **changes})
    state = trained(MOONS, config)
    assert float((MOONS.y * phi(state.net, MOONS.x)).min()) > 0
    assert state.net.homogeneous != config.all_biases
    if config.all_biases:
        assert state.log_scale == 0  # nothing may be scaled


def test_biased_training_follows_autograd() -> None:
    data = MOONS
    config = TrainConfig(widths=(5, 4), all_biases=True, step_rule="constant", lr=0.3, momentum=0.0)
    state = training.init(data, config, rng())
    ps = [p.clone().requires_grad_() for p in state.net.parameters]
    loss = torch.exp(-data.y * phi(state.net.with_parameters(ps), data.x)).mean()
    grads = torch.autograd.grad(loss, ps)
    after = training.step(data, state, config).net
    for p, g, moved in zip(ps, grads, after.parameters, strict=True):
        assert torch.allclose(moved, p.detach() - 0.3 * g, rtol=1e-12, atol=1e-14)


def test_edited_points_are_taken_up_without_scaling() -> None:
    config = TrainConfig(widths=(20,), steps=300, all_biases=True)
    state = trained(MOONS, config)
    moved = MOONS.with_point((0.1, 0.2), -1).with_point((0.12, 0.2), 1)
    after = training.refresh(moved, state, replace(config, revive=False))
    assert after.log_scale == 0
    assert torch.equal(after.net.theta, state.net.theta)


def test_what_biases_everywhere_rule_out() -> None:
    with pytest.raises(ValueError, match="ascent"):
        TrainConfig(all_biases=True, method="ascent")
    with pytest.raises(ValueError, match="bias=True"):
        TrainConfig(all_biases=True, bias=False)
    with pytest.raises(ValueError, match="init must be"):
        TrainConfig(init="xavier")


@pytest.mark.parametrize("multipliers", ["joint", "projected"])
@pytest.mark.parametrize("widths", WIDTHS)
def test_the_attack_on_biased_weights_has_the_gradients_of_autograd(widths, multipliers) -> None:
    net = everywhere(widths)
    target = Target.of(net, 2.5)
    assert target.net is net
    assert target.level == 2.5
    config = KKTConfig(
        m=6, steps=4, multipliers=multipliers, weight_margin=0.7, merge_angle=0.0, prior=0.5,
        relu_alpha=9.0, relu_alpha_start=None, deep_alpha=0.0,
    )  # fmt: skip
    state = kkt.step(target, kkt.init(target, config, rng(1)), config)
    x = state.x.clone().requires_grad_()
    lam = state.lam.clone().requires_grad_()
    ps = [p.clone().requires_grad_() for p in net.parameters]
    values = published_phi(net.with_parameters(ps), x, 9.0)
    grads = torch.autograd.grad((lam * state.y * values).sum(), ps, create_graph=True)
    rho2, mean = float(net.rho) ** 2, target.mass / 6
    loss = sum((p.detach() - g).square().sum() for p, g in zip(ps, grads, strict=True)) / rho2
    loss = loss + 5 * (-lam / mean).clamp_min(0).square().sum()
    loss = loss + (x.abs() - 0.5).clamp_min(0).square().sum()
    off = state.y * published_phi(net, x, 9.0) / 2.5 - 1
    loss = loss + 0.7 / 4 * off.square().sum()
    grad_x, grad_lam = torch.autograd.grad(loss, (x, lam))
    assert torch.allclose(state.loss, loss.detach(), rtol=1e-10)
    assert torch.allclose(state.grad_x, grad_x, rtol=1e-8, atol=1e-12)
    assert torch.allclose(state.grad_lam, grad_lam, rtol=1e-8, atol=1e-12)


def test_biased_targets_say_that_no_theorem_applies() -> None:
    target = Target.of(everywhere((5,)), 0.8)
    assert not target.net.homogeneous and target.level == 0.8
    for key in ("kkt", "inversion"):
        assert by_key(key).refusal(target) == ""


def test_joint_multipliers_find_the_mass_that_no_identity_gives() -> None:
    config = TrainConfig(widths=(30,), steps=1500, all_biases=True)
    target = aimed(trained(MOONS, config))
    hit = KKTConfig(m=14, steps=300, multipliers="joint", weight_margin=0.0)
    first, (end, _) = kkt.init(target, hit, rng()), attacked(kkt, target, hit)
    assert float(end.l_stationary) < 0.2 * float(first.l_stationary)
    assert float(end.lam.sum()) > 0


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_run_is_their_step_in_our_units(name) -> None:
    knobs, target = PUBLISHED[name], Target(make((6, 4), scale=0.8))
    config = KKTConfig.from_paper(target, name, m=6, steps=9)
    start = kkt.init(target, config, rng(2))
    assert config.sigma_x == knobs.sigma_x
    lam_code = (6 * start.lam).requires_grad_()
    assert 0 < float(start.lam.max()) * 6 <= 1  # U(0, 1), whatever the scale of the network
    x = start.x.clone().requires_grad_()
    ps = [p.clone().requires_grad_() for p in target.net.parameters]
    values = published_phi(target.net.with_parameters(ps), x, knobs.relu_alpha)
    grads = torch.autograd.grad((lam_code * start.y * values).sum() / 6, ps, create_graph=True)
    loss = sum((p.detach() - g).square().sum() for p, g in zip(ps, grads, strict=True))
    loss = loss + (x - 1).relu().square().sum() + (-1 - x).relu().square().sum()
    loss = loss + 5 * (knobs.lam_min - lam_code).relu().square().sum()
    grad_x, grad_lam = torch.autograd.grad(loss, (x, lam_code))
    after = kkt.step(target, start, config)
    assert torch.allclose(after.x, x.detach() - knobs.rate_x * grad_x, rtol=1e-9, atol=1e-12)
    assert torch.allclose(6 * after.lam, lam_code.detach() - 1e-4 * grad_lam, rtol=1e-9, atol=0)


def test_published_knobs_of_ones_own_and_unknown_runs() -> None:
    target = Target(make((6,), scale=0.8))
    config = KKTConfig.from_paper(target, Knobs(0.5, 1e-3, 0.02, 20.0))
    assert (config.sigma_x, config.relu_alpha, config.prior) == (0.5, 20.0, 1.0)
    with pytest.raises(ValueError, match="MNIST"):
        KKTConfig.from_paper(target, "ImageNet")


def test_inversion_runs_on_biased_weights_in_units_of_their_margin() -> None:
    target = Target.of(everywhere((8,)), 2.0)
    config = inversion.InversionConfig(m=4, steps=3)
    state = inversion.init(target, config, rng())
    assert torch.allclose(state.output, state.y * phi(target.net, state.x) / 2)
