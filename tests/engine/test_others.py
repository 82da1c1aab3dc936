"""Other sets as good as given points: masses, forced points and farthest sets, with bounds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import linprog, nnls

from explorer.engine import training
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import TAU_TRAINED, certify
from explorer.engine.classes import from_numbers
from explorer.engine.data import Dataset, preset
from explorer.engine.energy.questions import forced_share
from explorer.engine.exact import maximum_margin
from explorer.engine.explanations.assumptions import assumed_cone
from explorer.engine.explanations.certainty import truth_residual
from explorer.engine.explanations.cone import Assumptions, Cone
from explorer.engine.explanations.masses import (
    allowed_residual,
    farthest,
    forced_masses,
    forced_points,
)
from explorer.engine.explanations.others import AS_WELL, RADIUS, Rivals, farthest_set, forced_mass
from explorer.engine.explanations.splitting import (
    TRAINED_MARGIN,
    explanation_of,
    margin_error,
    pinned_points,
    residual,
    training_explanation,
)
from explorer.engine.gradients import gradient
from explorer.engine.margin import normalise, q_of
from explorer.engine.network import Network, init_network, phi
from explorer.engine.progress import Stopped
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.research.runs import train
from tests.engine.closed_forms import TABLE, chains, tensor
from tests.engine.draws import aimed, draw, exact_set, make, rng, trained
from tests.engine.test_certainty import exact as exact_of
from tests.engine.test_certainty import points

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


@pytest.mark.parametrize("name", ["three-blobs", "spiral-arms", "four-blobs"])
def test_of_several_classes_the_farthest_set_is_as_good_and_forced_mass_is_there(name) -> None:
    data = preset(name, n=12)
    target = aimed(trained(data, TrainConfig(widths=(20,), steps=2000)))
    net, e, _ = training_explanation(target, data.x, data.y)
    points = e.origin.unique()
    rivals = Rivals.of(net, data.x[points], data.y[points], 2.0, TAU_TRAINED)
    found = farthest_set(rivals)
    made, q = found.explanation, q_of(net, found.explanation.x, found.explanation.y)
    assert found.other and found.distance <= found.at_most <= 1.1 * found.distance
    assert residual(net, made) == found.residual <= rivals.allowed * (1 + 1e-6)
    assert float(q.min()) > 1 - TRAINED_MARGIN - 1e-6 and margin_error(net, made) <= TRAINED_MARGIN
    assert torch.equal(made.y, from_numbers(made.cover.argmax(1) + 1))
    given = rivals.truth
    near = (torch.cdist(given.x, given.x) <= RADIUS) & (given.y[:, None] == given.y)
    assert bool((forced_mass(rivals) <= near.double() @ given.lam * (1 + 1e-6)).all())


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


# --- forced masses and farthest explanations over all rays: bounds hold, and meet other programs


@pytest.mark.parametrize("seed", range(202, 207))
def test_forced_masses_are_those_of_the_optimum_on_the_line(seed):
    """Exact weights: where multipliers are unique, all of each is forced; never more."""
    data = points(seed)
    net = exact_of(data)
    lam, cone = certify(net, data.x, data.y, 1e-6).lam, assumed_cone(net)
    allowed = allowed_residual(cone, truth_residual(cone, data))
    made = forced_masses(cone, data.x, data.y, 0.03, allowed)
    for i, mass in enumerate(made.tolist()):
        near = ((data.x - data.x[i]).abs()[:, 0] <= 0.03) & (data.y == data.y[i])
        assert mass <= float(lam[near].sum()) * (1 + 1e-6) + 1e-6
    assert float(made.sum()) > 0.9 * float(lam.sum())


def brute(cone, price):
    """The least cost of explanations that leave nothing, over all rays at their 0/1 slopes."""
    neurons, rays = cone.neurons, cone.rays
    rows = np.arange(len(rays))
    columns = [rays.columns(rows, s * neurons.theta) for s in (1.0, -1.0)]
    columns += [rays.columns(rows, u) for u in np.random.default_rng(0).normal(
        size=(40, len(neurons.theta)))]  # fmt: skip
    table = np.concatenate(columns)
    left = linprog(np.tile(price, len(columns)), A_eq=table.T, b_eq=neurons.theta)
    return left.fun if left.status == 0 else None


@pytest.mark.parametrize("seed", range(202, 207))
def test_no_explanation_is_farther_than_the_bound(seed):
    data = points(seed)
    cone = assumed_cone(exact_of(data))
    gaps = np.abs(cone.rays.x[:, :1] - data.x[:, 0].numpy()).min(axis=1)
    made = farthest(cone, data.x, allowed_residual(cone))
    assert made.distance <= made.at_most * (1 + 1e-9)
    assert made.residual <= made.allowed * (1 + 1e-6)
    own = np.abs(made.x.numpy() - data.x[:, 0].numpy()).min(axis=1)
    mass = cone.neurons.rho**2 / 2
    assert made.distance == pytest.approx(float(made.lam.numpy() @ own) / mass)
    best = brute(cone, -gaps)
    if best is not None:  # over some of the rays alone, so it is no farther
        assert -best / mass <= made.at_most + 1e-6


@pytest.fixture(scope="module")
def circle():
    """Points of the plane that trained weights determine."""
    data = preset("alternating-circle", n=6)
    net = train(Run(data, TrainConfig(steps=20_000, widths=(20,)))).net
    return data, assumed_cone(normalise(net, data.x, data.y)[0])


def test_other_explanations_in_the_plane_keep_both_bounds(circle):
    """Explanations without a point of one label somewhere, as the radius finds them."""
    data, cone = circle
    x, y = data.x.numpy(), data.y.tolist()
    others = [cone.radius(x[i] - 0.05, x[i] + 0.05, y[i]) for i in (0,)]
    allowed = max(other.high for other in others)
    few = [0, 1]
    forced = forced_masses(cone, data.x[few], data.y[few], 0.15, allowed)
    far = farthest(cone, data.x, allowed)
    assert float(forced.max()) > 0 and far.at_most > far.distance > 0
    mass = cone.neurons.rho**2 / 2
    for other in [*others, cone.least]:
        gaps = np.linalg.norm(other.x[:, None] - x[None], axis=2).min(axis=1)
        assert float(other.lam @ gaps) / mass <= far.at_most * (1 + 1e-9)
        for k, i in enumerate(few):
            inside = (np.abs(other.x - x[i]) <= 0.15 + 1e-9).all(axis=1) & (other.y == y[i])
            assert float(other.lam[inside].sum()) >= float(forced[k]) * (1 - 1e-9)


@pytest.mark.slow
def test_more_residual_forces_less_and_reaches_farther(circle):
    data, cone = circle
    tight, loose = (cone.least.high * s for s in (1.02, 1.6))
    few = data.x[:2], data.y[:2]
    first, second = (forced_masses(cone, *few, 0.1, r) for r in (tight, loose))
    assert bool((second <= first * 1.02 + 1e-9).all()) and float(first.max()) > 0
    near, far = (farthest(cone, data.x, r) for r in (tight, loose))
    assert near.distance <= far.at_most and far.distance > near.distance


def test_without_any_place_nothing_is_forced_and_nothing_far():
    net = maximum_margin(*(getattr(points(202), name) for name in "xy")).net
    empty = Cone.of(net.with_theta(1e-3 * net.theta), Assumptions(box=1.0))
    assert not len(empty.rays)
    made = farthest(empty, torch.zeros(1, 1).double(), 1.0)
    assert made.distance == made.at_most == 0.0
    forced = forced_masses(empty, torch.zeros(1, 1).double(), torch.ones(1), 0.1, 1.0)
    assert forced.tolist() == [0.0]


def test_questions_that_have_no_answer_are_refused_and_work_ends(circle):
    data, cone = circle
    with pytest.raises(ValueError, match="no explanation leaves"):
        forced_masses(cone, data.x, data.y, 0.1, 0.5 * cone.least.low)
    with pytest.raises(ValueError, match="no points"):
        farthest(cone, data.x[:0], 0.5)

    def end(_):
        raise Stopped

    with pytest.raises(Stopped):
        farthest(cone, data.x, 2 * cone.least.high, end)
    with pytest.raises(Stopped):
        forced_masses(cone, data.x, data.y, 0.1, 2 * cone.least.high, end)
    assert torch.equal(forced_masses(cone, data.x[:0], data.y[:0], 0.1, 1.0), torch.zeros(0))
