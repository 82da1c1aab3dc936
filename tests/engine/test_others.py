"""Other sets as good as given points: masses, forced points and farthest sets, with bounds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import linprog, nnls

from explorer.engine import training
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import certify
from explorer.engine.data import Dataset, preset
from explorer.engine.energy.questions import forced_share
from explorer.engine.exact import maximum_margin
from explorer.engine.explanations.masses import forced_points
from explorer.engine.explanations.others import (
    AS_WELL,
    RADIUS,
    Rivals,
    farthest_set,
    forced_mass,
)
from explorer.engine.explanations.splitting import (
    explanation_of,
    margin_error,
    pinned_points,
    residual,
)
from explorer.engine.gradients import gradient
from explorer.engine.network import Network, init_network, phi
from explorer.engine.training import TrainConfig
from tests.engine.closed_forms import TABLE, chains, tensor
from tests.engine.draws import draw, exact_set, make, rng

O3 = tensor([[-2.0], [-1.0], [0.5], [1.5], [3.0]]), tensor([1.0, -1.0, -1.0, 1.0, -1.0])
BOX = 6.0


def exact(seed, n=6, d=2):
    return exact_set(d, n, seed, 100)


def on_the_margin(net, extent, lines=40):
    """Points with |Phi| = 1 along lines through the box, by bisection."""
    at = torch.linspace(-extent, extent, lines).double()
    t = torch.linspace(-extent, extent, 2001).double()
    found = []
    for s in at.tolist():
        for flip in (False, True):

            def place(t, s=s, flip=flip):
                x = torch.stack([torch.full_like(t, s), t], dim=1)
                return x.flip(1) if flip else x

            for level in (-1.0, 1.0):
                value = phi(net, place(t)) - level
                k = (value[:-1] * value[1:] < 0).nonzero()[:, 0]
                low, high, sign = t[k], t[k + 1], value[k].sign()
                for _ in range(50):
                    middle = (low + high) / 2
                    left = (phi(net, place(middle)) - level).sign() != sign
                    low, high = torch.where(left, low, middle), torch.where(left, middle, high)
                found.append(place(low))
    return torch.cat(found)


@pytest.fixture(scope="module")
def deep():
    """A trained network of three layers at margin 1, its points, and their certificate."""
    data = preset("alternating-circle", 6, 0.0, 0)
    config = TrainConfig(widths=(12, 10), init_scale=1e-2, steps=4000)
    state = training.init(data, config, rng())
    state = training.advance(data, state, config, config.steps)
    made = certify(state.net, data.x, data.y)
    return Target.of(state.net, made.q_min).merged(0.02), data, made


def test_what_is_refused() -> None:
    generator = rng()
    x, y = draw(4, 3), tensor([1.0, -1.0, 1.0, -1.0])
    with pytest.raises(ValueError, match="line or the plane"):
        Rivals.of(init_network(3, (4,), generator=generator, first_scale=1.0), x, y, 2.0)
    with pytest.raises(ValueError, match="extent must be positive"):
        Rivals.of(make((4,)), x[:, :2], y, 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_the_farthest_set_explains_exact_weights_and_no_sampled_one_is_farther(seed: int) -> None:
    net, x, y = exact(seed)
    rivals = Rivals.of(net, x, y, BOX)
    found, e = farthest_set(rivals), rivals.truth
    assert found.explanation.mass == pytest.approx(float(net.rho) ** 2 / 2, rel=1e-5)
    assert residual(net, found.explanation) == found.residual <= AS_WELL
    assert margin_error(net, found.explanation) < 1e-6 and found.as_well
    assert bool((found.explanation.y * phi(net, found.explanation.x) > 0).all())
    assert float(found.explanation.x.abs().max()) <= BOX * (1 + 1e-9)
    assert RADIUS <= found.distance <= found.at_most and found.other
    assert found.distance == pytest.approx(found.at_most, rel=0.02)
    points = torch.cat([e.x, on_the_margin(net, BOX)])  # an independent program on samples
    labels = phi(net, points).sign()
    columns = (labels[:, None] * gradient(net, points)).T.numpy()
    gap = torch.cdist(points, e.x).amin(dim=1).numpy()
    given = (e.y[:, None] * gradient(net, e.x, e.slopes)).T.numpy()
    columns[:, : e.n] = given
    room = 1e-7 * float(net.rho) / len(net.theta) ** 0.5
    theta = net.theta.numpy()
    done = linprog(
        -gap, A_ub=np.concatenate([columns, -columns]),
        b_ub=np.concatenate([theta + room, room - theta]), method="highs",
    )  # fmt: skip
    assert done.status == 0 and -done.fun / rivals.mass <= found.at_most * (1 + 1e-6) + 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_what_is_forced_no_sampled_set_does_without(seed: int) -> None:
    net, x, y = exact(seed)
    rivals = Rivals.of(net, x, y, BOX)
    mass, e = forced_mass(rivals), rivals.truth
    assert bool((mass <= e.lam * (1 + 1e-3) + 1e-3).all()) or len(torch.unique(e.x, dim=0)) < e.n
    points = on_the_margin(net, BOX)
    labels = phi(net, points).sign()
    rows = labels[:, None] * gradient(net, points)
    given = e.y[:, None] * gradient(net, e.x, e.slopes)
    for i in forced_points(mass, rivals.mass)[0].nonzero()[:, 0].tolist():
        far = (points - e.x[i]).abs().amax(1) > RADIUS
        others = (e.x - e.x[i]).abs().amax(1) > RADIUS
        table = torch.cat([rows[far | (labels != e.y[i])], given[others]]).T.numpy()
        left = nnls(table, net.theta.numpy(), maxiter=10_000)[1] / float(net.rho)
        assert left > rivals.allowed


def test_the_five_points_of_o3_are_forced_with_their_multipliers() -> None:
    x, y = O3
    lam = tensor([1.2126781252, 1.4552137502, 2.4091147003, 3.8535007505, 1.2018504252])
    rivals = Rivals.of(maximum_margin(x, y).net, x, y, BOX)
    assert torch.allclose(forced_mass(rivals), lam, atol=1e-3)
    made = farthest_set(rivals)
    assert made.distance <= made.at_most < RADIUS and not made.other


def test_a_point_that_can_be_split_is_not_forced_and_a_single_one_neither() -> None:
    known = TABLE["obtuse, three points"]
    mass = forced_mass(Rivals.of(known.net, known.x, known.y, BOX))
    assert not bool(pinned_points(known.net, explanation_of(known.net, known.x, known.y)).any())
    assert float(mass.max()) < 1e-3


def test_points_without_a_multiplier_are_not_forced() -> None:
    x = tensor([[-3.0], [-2.0], [2.0], [3.0]])
    y = tensor([-1.0, -1.0, 1.0, 1.0])
    share = forced_share(maximum_margin(x, y).net, Dataset(x, y))
    assert share is not None and (share > 0).tolist() == [False, True, True, False]


def test_a_deeper_network_is_bounded_as_well() -> None:
    known = chains([[2.0, 0.0], [-1.0, 1.5], [-1.5, -2.0]], [1.0, 1.0, -1.0], 3)
    rivals = Rivals.of(known.net, known.x, known.y, BOX)
    assert not rivals.cone.places.free.any()
    assert float(forced_mass(rivals).max()) <= float(known.lam.max()) * (1 + 1e-3)


def test_a_trained_network_has_sets_as_good_and_says_what_both_leave(deep) -> None:
    net, data, made = deep
    rivals = Rivals.of(net, data.x, data.y, 2.0, made.tau)
    found = farthest_set(rivals)
    assert found.truth == rivals.missed > AS_WELL
    assert found.residual <= rivals.allowed * (1 + 1e-6)
    gap = torch.cdist(found.explanation.x, rivals.truth.x).amin(dim=1)
    assert found.distance == pytest.approx(float(gap @ found.explanation.lam) / rivals.mass)
    assert found.distance <= found.at_most and margin_error(net, found.explanation) <= 0.05
    share = forced_share(net, data)
    assert share is not None and len(share) == data.n


def test_what_the_given_points_miss_widens_what_others_may() -> None:
    net, x, y = exact(4, n=7)
    rivals = Rivals.of(net, x + 1e-3, y, BOX, tau=1e-2)
    assert rivals.missed <= rivals.allowed and rivals.cone.least.high <= rivals.allowed
    assert rivals.cone.assumptions.tau > 1e-5
    made = farthest_set(rivals)
    assert made.residual <= rivals.allowed * (1 + 1e-6) and made.distance <= made.at_most


def test_a_first_layer_without_biases_asks_for_none() -> None:
    """Weights at a KKT point without biases: gradients have no part of them."""
    net = Network(
        (tensor([[2.0, 0.0], [-2.0, 0.0]]), tensor([[1.0, -1.0]])), (None, None)
    )  # Phi = 2 x_1: points at +-1/2 on the first axis
    x, y = tensor([[0.5, 0.0], [-0.5, 0.0]]), tensor([1.0, -1.0])
    rivals = Rivals.of(net, x, y, 2.0)
    columns = rivals.cone.rays.columns(np.arange(len(rivals.cone.rays)), rivals.cone.neurons.theta)
    assert np.abs(columns[:, [2, 5]]).max() == 0.0
    assert float(forced_mass(rivals).max()) >= 0.0
