"""Small convolutions: shared weights, gradients by autograd, shifts, a KKT point made by hand."""

from dataclasses import replace

import pytest
import torch

from explorer.engine.attacks.convolution import evaluate, iterate
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.convolution import Convolution, residual, trained
from explorer.engine.data.signals import REACH, SIZE, signals
from explorer.engine.gradients import relaxed_slope
from explorer.engine.images import image_scores, shifted_images
from explorer.engine.network import Network, phi
from explorer.engine.optim import Moments

SHAPES = [((1, 11), 4), ((4, 5), 3)]
CONFIG = KKTConfig(m=6, steps=10, weight_margin=0.3)


def drawn(shape, side, pooled, seed=0):
    """A random convolution, and six points with labels."""
    generator = torch.Generator().manual_seed(seed)
    net = Convolution.random(shape, 7, side, pooled, 1.0, generator)
    x = torch.randn(6, shape[0] * shape[1], generator=generator, dtype=torch.float64)
    return net, x, torch.tensor([1.0, 1, 1, -1, -1, -1]).double()


def unrolled(net):
    """The same function as a fully connected network d-kP-1, of repeated weights."""
    (w, b), v, d = (net.net.weights[0], net.net.biases[0]), net.net.weights[1], len(net.places)
    wide = torch.zeros(d, len(w), d).double()
    for place, seen in enumerate(net.places):
        wide[place][:, seen] = w
    read = v.expand(d, -1).reshape(1, -1)
    return Network((wide.flatten(0, 1), read), (b.repeat(d), None))


def shifted(x, shape, by):
    """Points moved in a circle."""
    return x.reshape(-1, *shape).roll(by, (1, 2)).flatten(1)


@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize(("shape", "side"), SHAPES)
def test_a_convolution_is_a_fully_connected_network_of_shared_weights(shape, side, pooled):
    net, x, _ = drawn(shape, side, pooled)
    assert torch.allclose(net.outputs(net.signals(x)), phi(unrolled(net), x))
    if len(x[0]) != shape[1]:  # an image: torch's own convolution says the same
        w = net.net.weights[0].reshape(-1, 1, side, side)
        wide = torch.nn.functional.pad(
            x.reshape(-1, 1, *shape), (0, side - 1, 0, side - 1), mode="circular"
        )
        hidden = torch.conv2d(wide, w, net.net.biases[0]).relu().flatten(2)
        read = net.net.weights[1].expand(len(x[0]), -1)
        assert torch.allclose(net.outputs(net.signals(x)), torch.einsum("mkp,pk->m", hidden, read))


@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize(("shape", "side"), SHAPES)
def test_gradients_on_weights_and_candidates_are_those_of_autograd(shape, side, pooled):
    net, x, y = drawn(shape, side, pooled)
    theta = net.net.theta.requires_grad_()
    free = replace(net, net=net.net.with_theta(theta))
    values = free.outputs(free.signals(x))
    by_torch = torch.stack([torch.autograd.grad(v, theta, retain_graph=True)[0] for v in values])
    assert torch.allclose(net.gradients(net.signals(x)), by_torch)
    for signed in (False, True):
        state = evaluate(net, CONFIG, 10, x, y, Moments.zero((x,)), signed)
        at_x = x.clone().requires_grad_()
        at = net.signals(at_x, relaxed_slope(CONFIG.alpha(10)))
        whole = net.net.theta.detach()
        left = (whole - (state.lam * state.y) @ net.gradients(at)).square().sum()
        loss = left / whole.square().sum()
        assert torch.allclose(loss, state.left)
        if not signed:
            loss = loss + 0.3 * (y * net.outputs(at) - 1).square().sum()
        assert torch.allclose(torch.autograd.grad(loss, at_x)[0], state.grad_x)


@pytest.mark.parametrize(("shape", "side"), SHAPES)
def test_each_candidate_of_a_pooled_one_may_be_shifted_and_of_a_flat_one_not(shape, side):
    net, x, y = drawn(shape, side, pooled=True)
    moved = torch.cat([x[:2], shifted(x[2:], shape, (shape[0] - 1, 2))])
    one, other = (evaluate(net, CONFIG, 10, v, y, Moments.zero((v,))) for v in (x, moved))
    assert torch.allclose(one.left, other.left) and torch.allclose(one.lam, other.lam)
    flat, *_ = drawn(shape, side, pooled=False)
    left = [evaluate(flat, CONFIG, 10, v, y, Moments.zero((v,))).left for v in (x, moved)]
    assert abs(float(left[0] - left[1])) > 1e-3


def test_a_kkt_point_made_by_hand_is_explained_whole_by_the_point_and_its_shifts():
    # One filter, on at every patch of one point: with s the sum of the patches, each with a 1,
    # (w, b) = a s / |s| and v = a give Phi = a^2 |s|, so a^2 = 1 / |s|, lam = 1 / |s|.
    x = 2 + signals(1, 9, torch.Generator().manual_seed(3))
    empty = Convolution.random((1, 9), 1, 3, True, 1.0, torch.Generator())
    s = torch.cat([x[:, empty.places], torch.ones(1, 9, 1)], 2).sum((0, 1))
    a = s.norm() ** -0.5
    w = a * s / s.norm()
    net = replace(empty, net=Network((w[None, :3], a.reshape(1, 1)), (w[3:], None)))
    one = torch.ones(1).double()
    assert float(net.outputs(net.signals(x))[0]) == pytest.approx(1)
    for by in range(9):
        left, lam = residual(net, shifted(x, (1, 9), (0, by)), one)
        assert left < 1e-7 and float(lam[0]) == pytest.approx(1 / float(s.norm()))
    assert residual(net, x.flip(1) * torch.linspace(0.5, 1, 9), one)[0] > 1e-3


def test_training_separates_at_margin_1_and_says_when_it_does_not():
    x, y = signals(6, 8, torch.Generator().manual_seed(0)), torch.tensor([1.0, -1] * 3).double()
    first = Convolution.random((1, 8), 30, 4, False, 0.8, torch.Generator().manual_seed(1))
    net = trained(first, x, y, 400)
    q = y * net.outputs(net.signals(x))
    assert float(q.min()) == pytest.approx(1) and residual(net, x, y)[0] < 0.5
    same = torch.cat([x[:1], x[:1].roll(3, 1)])  # a pooled one cannot tell a point from its shift
    pooled = Convolution.random((1, 8), 30, 4, True, 0.8, torch.Generator().manual_seed(1))
    with pytest.raises(ValueError, match="not separated after 50 steps"):
        trained(pooled, same, y[:2], 50)


def test_an_attack_descends_and_ends_in_the_box():
    net, *_ = drawn((1, 11), 4, pooled=False)
    end = torch.full((11,), 0.5).double()
    box = (-end, end)
    states = list(iterate(net, CONFIG, box, False, torch.Generator().manual_seed(0)))
    assert [s.t for s in states] == list(range(11)) and states[-1].left < states[0].left
    assert float(states[-1].x.abs().max()) <= 0.5


def test_a_filter_larger_than_a_point_is_refused():
    with pytest.raises(ValueError, match="a filter of side 5 is larger than points of 4 x 6"):
        Convolution.random((4, 6), 2, 5, True, 1.0, torch.Generator())


def test_signals_have_one_size_and_no_special_place():
    x = signals(2000, 16, torch.Generator().manual_seed(0))
    assert torch.allclose(x.square().mean(1), torch.full((2000,), SIZE**2).double())
    assert float(x.abs().max()) < REACH and float(x.mean(1).abs().max()) < 1e-12
    assert float(x.square().mean(0).std()) < 0.02  # of 1/4
    with pytest.raises(ValueError, match="4 samples or more; got 3"):
        signals(1, 3, torch.Generator())


def test_a_shifted_copy_counts_up_to_shifts_alone():
    images = torch.rand(6, 1, 1, 12, generator=torch.Generator().manual_seed(0)).double()
    found = images[:2].roll(5, 3)
    as_they_are, _ = image_scores(images.split(2), found)[:2]
    truth, other, third = image_scores(images.split(2), found, shifts=True)
    assert truth.named.all() and not other.named.any() and not third.named.any()
    assert torch.allclose(truth.ncc, torch.ones(2).double())
    assert torch.allclose(truth.ssim, torch.ones(2).double())
    assert float(as_they_are.ncc.max()) < 0.9
    assert shifted_images(found).shape == (24, 1, 1, 12)
