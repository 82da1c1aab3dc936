"""Merging undoes splitting, keeps Phi, theta's norm and the certificate, and says its error."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.engine.gradients import residual
from explorer.engine.kernels.batched import Prepared, through
from explorer.engine.merging import merge_neurons
from explorer.engine.network import Network, init_network, phi
from tests.engine.draws import draw, rng


def balanced(k, seed, bias=True):
    """Two layers, |w~_j| = |v_j|."""
    generator = rng(seed)
    net = init_network(2, (k,), generator=generator, first_scale=1.0, bias=bias)
    norm2 = net.weights[0].square().sum(1)
    if bias:
        norm2 = norm2 + net.biases[0].square()
    return Network((net.weights[0], (net.weights[1].sign() * norm2.sqrt())), net.biases)


def split(net, layer, parts):
    """Every neuron j of a hidden layer as copies sqrt(p_t) (in, out), p given (k, copies)."""
    k, copies = parts.shape
    root = parts.sqrt()
    weights, biases = list(net.weights), list(net.biases)
    weights[layer] = (root[:, :, None] * weights[layer][:, None, :]).reshape(k * copies, -1)
    if biases[layer] is not None:
        biases[layer] = (root * biases[layer][:, None]).flatten()
    weights[layer + 1] = (weights[layer + 1][:, :, None] * root).reshape(-1, k * copies)
    return Network(tuple(weights), tuple(biases))


def shares(k, copies, seed):
    return torch.softmax(draw(k, copies, seed=seed), dim=1)


@pytest.mark.parametrize("bias", [True, False])
@given(seed=st.integers(0, 300), copies=st.integers(2, 5))
def test_merging_undoes_splitting(bias, seed, copies):
    net, x, coef = balanced(4, seed, bias), draw(7, 2, seed=seed), draw(7, seed=seed + 1)
    merged = merge_neurons(split(net, 0, shares(4, copies, seed)), angle=1e-7, drop=0.0, probe=x)
    assert merged.net.widths == (4,)
    assert merged.error < 1e-12
    assert float(merged.net.rho) == pytest.approx(float(net.rho), rel=1e-12)
    loss = float(residual(net, x, coef).square().sum())
    assert float(residual(merged.net, x, coef).square().sum()) == pytest.approx(loss, rel=1e-9)


@pytest.mark.parametrize("layer", [0, 1])
@given(seed=st.integers(0, 100))
def test_merging_undoes_splitting_in_any_layer_of_a_deep_network(layer, seed):
    generator = rng(seed)
    net = init_network(2, (4, 3), generator=generator, first_scale=1.0)
    x = draw(7, 2, seed=seed)
    wide = split(net, layer, shares((4, 3)[layer], 3, seed))
    merged = merge_neurons(wide, angle=1e-7, drop=0.0, probe=x)
    assert merged.net.widths == (4, 3)
    torch.testing.assert_close(phi(merged.net, x), phi(net, x), rtol=1e-10, atol=1e-12)


def test_every_neuron_left_is_balanced():
    generator = rng(3)
    net = merge_neurons(init_network(2, (6,), generator=generator, first_scale=2.0)).net
    incoming = net.weights[0].square().sum(1) + net.biases[0].square()
    torch.testing.assert_close(net.weights[1][0].square(), incoming)


def rays(angles, v):
    """Neurons on the circle of (w, 0)."""
    w = [[math.cos(t), math.sin(t)] for t in angles]
    return Network(
        (torch.tensor(w, dtype=torch.float64), torch.tensor([v], dtype=torch.float64)),
        (torch.zeros(len(v), dtype=torch.float64), None),
    )


def test_opposite_signs_and_wide_angles_stay_apart():
    assert merge_neurons(rays([0.3, 0.3], [1.0, -1.0])).net.widths == (2,)
    assert merge_neurons(rays([0.3, 0.33], [1.0, 1.0])).net.widths == (2,)
    assert merge_neurons(rays([0.3, 0.31], [1.0, 1.0])).net.widths == (1,)


def test_a_zero_angle_merges_nothing_and_ends():
    assert merge_neurons(rays([0.3, 0.31], [1.0, 1.0]), angle=0.0).net.widths == (2,)


def test_in_a_deep_network_unlike_outgoing_weights_stay_apart():
    generator = rng(5)
    net = init_network(2, (4, 3), generator=generator, first_scale=1.0)
    first = net.weights[0].clone()
    first[1], bias = 2 * first[0], net.biases[0].clone()
    bias[1] = 2 * bias[0]
    twins = Network((first, *net.weights[1:]), (bias, *net.biases[1:]))
    assert merge_neurons(twins).net.widths == (4, 3)


def test_the_error_is_the_change_on_the_probe():
    net, x = rays([0.3, 0.315, 2.0], [1.0, 0.5, -1.0]), draw(50, 2)
    merged = merge_neurons(net, probe=x)
    change = float((phi(merged.net, x) - phi(net, x)).abs().max())
    assert merged.net.widths == (2,)
    assert merged.error == change
    assert merge_neurons(net).error is None
    # where both twins are on, their sum is exact: only the wedge between their lines differs
    far = torch.tensor([[1.0, 0.2], [0.5, 1.0]], dtype=torch.float64)
    assert merge_neurons(net, probe=far).error < 1e-14


def test_weak_neurons_go_and_one_always_stays():
    assert merge_neurons(rays([0.3, 1.4], [1.0, 1e-7])).net.widths == (1,)
    assert merge_neurons(rays([0.3, 1.4], [1.0, 1e-7]), drop=1e-8).net.widths == (2,)
    dead = merge_neurons(rays([0.3, 1.4], [0.0, 0.0]), probe=draw(4, 2))
    assert dead.net.widths == (1,)
    assert dead.error == 0
    assert torch.isfinite(dead.net.theta).all()


def test_senseless_tolerances_are_refused():
    with pytest.raises(ValueError, match="got angle=-1"):
        merge_neurons(rays([0.3], [1.0]), angle=-1)


def test_light_neurons_fold_into_near_heavy_ones_of_their_sign():
    net = rays([0.3, 0.4, 0.35, 2.0], [1.0, 1e-3, -1e-3, 1.0])
    assert merge_neurons(net, angle=0.0, drop=0.0, fold=1e-3).net.widths == (3,)
    assert merge_neurons(net, angle=0.0, drop=0.0, fold=1e-5).net.widths == (4,)
    net, x = rays([0.3, 0.4, 2.0], [1.0, 1e-3, 1.0]), draw(50, 2, seed=2)
    folded = merge_neurons(net, angle=0.0, drop=0.0, fold=1e-3, probe=x)
    dropped = merge_neurons(net, angle=0.0, drop=2e-3, probe=x)
    reach = 1e-3 * 0.1 * float((1 + x.square().sum(1)).sqrt().max())
    assert 0 < folded.error <= reach < dropped.error


def test_slopes_are_those_of_equal_shares():
    """Copies of one length: with the factors the merged network's loss is that of the whole one."""
    net = balanced(4, 4)
    wide = split(net, 0, torch.full((4, 3), 1 / 3, dtype=torch.float64))
    merged = merge_neurons(wide, angle=1e-6, drop=0.0)
    torch.testing.assert_close(merged.slopes[0], torch.full((4,), 3**-0.5, dtype=torch.float64))
    x, c = draw(5, 2, seed=6), draw(5, seed=7)
    same = through(Prepared.of(merged.net, merged.slopes), x, 20.0).fit(c)
    steeper = through(Prepared.of(merged.net), x, 20.0).fit(c)
    whole = through(Prepared.of(wide), x, 20.0).fit(c)
    for got, wanted in zip(fields(same), fields(whole), strict=True):
        values = getattr(same, got.name), getattr(whole, wanted.name)
        torch.testing.assert_close(*values, rtol=1e-9, atol=1e-10)
    assert abs(float(steeper.loss / whole.loss) - 1) > 1e-3


@pytest.mark.parametrize(("angle", "fold"), [(0.02, 0.0), (0.0, 1e-9)])
def test_neurons_that_differ_late_stay_apart_and_copies_merge(angle, fold):
    first, row = draw(70, 2, seed=1), draw(70, seed=2)
    late = torch.cat([row[:60], -row[60:]])
    net = Network(
        (first, torch.stack([row, late, 1.001 * row]), draw(1, 3, seed=4).abs()), (None,) * 3
    )
    merged = merge_neurons(net, angle=angle, drop=0.0, fold=fold)
    assert merged.net.widths[1] == 2


def test_wide_layers_are_compared_in_few_coordinates(monkeypatch):
    """Else 2-2000-2000-1 takes two minutes, in which its page answers nothing."""
    generator = rng()
    net, read = init_network(2, (300, 300), generator=generator, first_scale=1.0), [0]
    norm = torch.Tensor.norm

    def counted(self, *args, **options):
        read[0] += self.numel()
        return norm(self, *args, **options)

    monkeypatch.setattr(torch.Tensor, "norm", counted)
    merge_neurons(net, drop=0.0, fold=1e-6)
    assert read[0] < 300 * 300 * 300
