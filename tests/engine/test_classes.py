"""Margins with several classes: against loops, autograd, and the laws of homogeneous networks."""

from __future__ import annotations

import math

import pytest
import torch

from explorer.engine import training
from explorer.engine.attacks import decoreco
from explorer.engine.attacks.decoreco import DecoRecoConfig
from explorer.engine.certificate import certify
from explorer.engine.classes import (
    class_labels,
    class_numbers,
    contrast,
    fair_labels,
    from_numbers,
    labels,
    margins,
    outputs_for,
    rivals,
    soft_contrast,
)
from explorer.engine.data import Dataset
from explorer.engine.gradients import gradient, gram, inner_theta, residual
from explorer.engine.margin import q_of
from explorer.engine.merging import merge_neurons
from explorer.engine.multipliers import fit_multipliers
from explorer.engine.network import Network, init_network, phi_all
from explorer.engine.training import TrainConfig
from tests.engine import draws
from tests.engine.draws import draw, rng

Y = torch.tensor([1.0, -1, 3, 4, 1, -1, 3], dtype=torch.float64)


def make(widths=(6, 5), outputs=4, seed=0, scale=0.8):
    return init_network(2, widths, generator=rng(seed), first_scale=scale, outputs=outputs)


def by_autograd(net, x, value):
    """Rows d value(net, x)_i / d theta."""
    theta = net.theta.clone().requires_grad_()
    out = value(net.with_theta(theta), x)
    return torch.stack([torch.autograd.grad(v, theta, retain_graph=True)[0] for v in out])


def test_labels_and_class_numbers_are_inverse():
    assert labels(1) == (1, -1) and labels(4) == (1, -1, 3, 4)
    assert torch.equal(from_numbers(class_numbers(Y)), Y)
    assert class_numbers(Y).tolist() == [1, 2, 3, 4, 1, 2, 3]
    assert (outputs_for(Y), outputs_for(Y[:2]), outputs_for(Y[:0])) == (4, 1, 1)
    assert fair_labels(7, 3).tolist() == [1, 1, 1, -1, -1, 3, 3]
    assert fair_labels(6, 1).tolist() == [1, 1, 1, -1, -1, -1]


def test_margins_by_the_definition():
    values = draw(7, 4)
    own = class_numbers(Y) - 1
    expected = [
        float(v[k]) - max(float(v[c]) for c in range(4) if c != k)
        for v, k in zip(values, own.tolist(), strict=True)
    ]
    torch.testing.assert_close(margins(values, Y), torch.tensor(expected).double())
    torch.testing.assert_close((contrast(values, Y) * values).sum(1), margins(values, Y))


def test_rivals_hold_every_tie_and_all_without_a_bound():
    values = torch.tensor([[3.0, 1.0, 0.99, -2.0], [3.0, 1.0, 0.5, -2.0]], dtype=torch.float64)
    y = Y[:1].repeat(2)
    owner, cover = rivals(values, y, 0.01)
    assert owner.tolist() == [0, 0, 1]
    assert cover.tolist() == [[1, -1, 0, 0], [1, 0, -1, 0], [1, -1, 0, 0]]
    assert len(rivals(values, y, math.inf)[0]) == 6
    assert len(rivals(values, y, -1.0)[0]) == 2


@pytest.mark.parametrize("gain", [0.7, 40.0])
def test_cross_entropy_of_the_smooth_margin(gain):
    values = draw(7, 4)
    soft, _ = soft_contrast(values, Y, gain)
    expected = torch.nn.functional.cross_entropy(
        gain * values, class_numbers(Y) - 1, reduction="none"
    )
    torch.testing.assert_close((1 + (-gain * soft).exp()).log(), expected, rtol=1e-10, atol=1e-14)
    assert bool((soft <= margins(values, Y) + 1e-15).all())


def test_soft_contrast_survives_any_gain():
    for gain in (1e-200, 1e260):
        soft, cover = soft_contrast(draw(7, 4), Y, gain)
        assert bool(torch.isfinite(cover).all()) and not bool(soft.isnan().any())


@pytest.mark.parametrize("widths", [(7,), (6, 5)])
def test_tangent_signals_take_a_covector(widths):
    net, x = make(widths), draw(7, 2, seed=4)
    cover = contrast(phi_all(net, x), Y)
    expected = by_autograd(net, x, lambda n, z: (phi_all(n, z) * cover).sum(1))
    rows = gradient(net, x, cover=cover)
    torch.testing.assert_close(rows, expected, rtol=1e-10, atol=1e-13)
    torch.testing.assert_close(gram(net, x, cover=cover), rows @ rows.T)
    torch.testing.assert_close(inner_theta(net, x, cover=cover), rows @ net.theta)
    coef = draw(7, seed=9)
    torch.testing.assert_close(residual(net, x, coef, cover=cover), net.theta - coef @ rows)
    # Euler: the margin is as homogeneous as the outputs
    torch.testing.assert_close(rows @ net.theta, net.order * q_of(net, x, Y))


def test_without_a_covector_several_outputs_are_refused():
    with pytest.raises(ValueError, match="this network has 4"):
        gram(make(), draw(3, 2))
    with pytest.raises(ValueError, match=r"cover must be \(3, 4\)"):
        gram(make(), draw(3, 2), cover=draw(3, 3))


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_the_gradient_of_training_is_that_of_autograd(loss):
    data = Dataset(draw(7, 2, seed=4), Y)
    config = TrainConfig(widths=(6, 5), loss=loss, init_scale=0.8)
    state = training.init(data, config, rng(1))
    assert state.net.outputs == 4

    def mean_loss(net, x):
        values = phi_all(net, x)
        if loss == "logistic":
            return [torch.nn.functional.cross_entropy(values, class_numbers(Y) - 1)]
        index = class_numbers(Y) - 1
        apart = values - values.gather(1, index[:, None])
        return [(apart.exp().sum(1) - 1).mean()]

    expected = by_autograd(state.net, data.x, mean_loss)[0]
    torch.testing.assert_close(draws.loss_gradient(state), expected, rtol=1e-9, atol=1e-12)
    total = float(mean_loss(state.net, data.x)[0]) * 7
    assert math.isclose(state.log_loss, math.log(total), rel_tol=1e-12)


@pytest.fixture(scope="module")
def trained():
    angle = torch.arange(9, dtype=torch.float64) * (2 * math.pi / 9)
    x = torch.stack([angle.cos(), angle.sin()], 1)
    data = Dataset(x, from_numbers(torch.arange(9) % 3 + 1))
    config = TrainConfig(widths=(40,), steps=3000)
    return data, draws.trained(data, config)


def test_training_ends_near_a_kkt_point_of_the_margin_of_all_classes(trained):
    data, state = trained
    made = certify(state.net, data.x, data.y)
    assert made.q_min > 0 and made.residual < 0.1
    assert made.norm_identity < 0.1 and made.balance < 0.1
    assert state.gamma_tilde <= state.gamma_bar
    assert state.gamma_tilde > 0.9 * state.gamma_bar


def test_free_rivals_never_fit_worse(trained):
    data, state = trained
    strict = fit_multipliers(state.net, data.x, data.y, tau=-1.0, rounds=60)
    free = fit_multipliers(state.net, data.x, data.y, tau=0.01, rounds=60)
    assert free.residual <= strict.residual + 1e-9
    assert free.lam.shape == (9,)


def test_merging_keeps_all_outputs(trained):
    data, state = trained
    merged = merge_neurons(state.net, 0.02, probe=data.x)
    assert merged.net.widths < state.net.widths
    assert merged.error < 0.02 * float(phi_all(state.net, data.x).abs().max())


def test_a_class_too_many_is_refused():
    with pytest.raises(ValueError, match="labels must be among"):
        q_of(make(outputs=3), draw(7, 2), Y)
    with pytest.raises(ValueError, match="labels must be -1 or 1 for a network with one output"):
        training.init(Dataset(draw(7, 2), Y), TrainConfig(), rng(0), make(outputs=1))
    with pytest.raises(ValueError, match=r"labels must be -1 or 1, and 3, 4"):
        Dataset(draw(2, 2), torch.tensor([2.0, 1.0]).double())


def test_one_output_is_what_it_was():
    net, x, y = make(outputs=1), draw(5, 2), Y[[0, 1, 1, 0, 1]]
    q = q_of(net, x, y)
    torch.testing.assert_close(q, y * phi_all(net, x)[:, 0])
    soft, cover = soft_contrast(phi_all(net, x), y, 3.0)
    assert torch.equal(soft, q) and torch.equal(cover, y[:, None])
    assert isinstance(net, Network) and net.outputs == 1


def test_ten_classes_train_and_are_attacked():
    x, y = draw(20, 8), from_numbers(torch.arange(20) % 10 + 1)
    data, config = Dataset(x, y), TrainConfig(widths=(40,), steps=600)
    state = draws.trained(data, config)
    assert state.net.outputs == 10 and state.q_min > 0
    target = draws.aimed(state)
    attack = DecoRecoConfig(m=20, steps=3)
    first = decoreco.init(target, attack, rng(1), decoreco.Start(x, y))
    last = list(decoreco.iterate(target, first, attack))[-1]
    assert first.coef.shape == (20, 9) and math.isfinite(float(last.loss))


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.uint8, torch.bool])
def test_tensors_of_few_bits_are_points_and_classes(kind):
    """NumPy has no bfloat16, and refused it with a TypeError of its own."""
    y = torch.tensor([0, 1, 1]).to(kind)
    assert class_labels(y)[0].tolist() == [-1, 1, 1]
    data = Dataset.of(torch.tensor([[0.5], [1.0], [2.0]]).to(kind), y)
    assert data.x.dtype == torch.float64 and data.y.tolist() == [-1, 1, 1]
