"""Certified radii of any depth: two layers as before, brute force, and no false place."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from explorer.engine.attacks.certified import ATTACK
from explorer.engine.attacks.target import Target
from explorer.engine.data import preset
from explorer.engine.explanations.assumptions import (
    assumed_cone,
    extent,
    obstacle,
    rounding,
    threshold,
)
from explorer.engine.explanations.certainty import certainty, radius_map
from explorer.engine.explanations.cone import Assumptions, Cone
from explorer.engine.explanations.masses import allowed_residual, farthest, forced_masses
from explorer.engine.explanations.places import neuron_groups, places
from explorer.engine.explanations.regions import Layers, regions
from explorer.engine.margin import normalise
from explorer.engine.network import Network, init_network
from explorer.engine.training import TrainConfig
from tests.engine import draws
from tests.engine.draws import draw, rng

WIDE = Assumptions(band=0.2, tau=0.05, box=2.5)


def rough(seed, d, *widths):
    """Random weights, brought to a margin that they reach."""
    shapes = [d, *widths, 1]
    weights = [draw(b, a, seed=seed + i) for i, (a, b) in enumerate(pairwise(shapes))]
    net = Network(tuple(weights), (draw(widths[0], seed=seed + 9), *(None,) * len(widths)))
    values = net(2 * draw(50, d, seed=seed + 10)).abs()
    size = float(values[values > 0].median())
    return net.with_theta(net.theta / size ** (1 / net.order))


@pytest.fixture(scope="module")
def trained():
    data = preset("alternating-line", n=4)
    config = TrainConfig(widths=(20, 20), steps=4000)
    return data, normalise(draws.trained(data, config).net, data.x, data.y)[0]


def gradient(net, x, slopes):
    """Phi's gradient on all weights at x (d,) by the chain rule with given slopes, layer by layer.

    In the order of `Layers.theta`: the bias stands beside its row.
    """
    h, going_in = torch.cat([x, torch.ones(1, dtype=x.dtype)]), []
    first = torch.cat([net.weights[0], net.biases[0][:, None]], dim=1)
    for w in (first, *net.weights[1:]):
        going_in.append(h)
        h = (w @ h).clamp_min(0)
    signal, parts = torch.ones(1, dtype=x.dtype), []
    for layer in range(len(net.weights) - 1, -1, -1):
        parts.append(torch.outer(signal, going_in[layer]).reshape(-1))
        if layer:
            signal = slopes[layer - 1] * (net.weights[layer].T @ signal)
    return torch.cat(parts[::-1]).numpy()


def local(net, x):
    """The values before each ReLU at x, and how steep each is there: one (k,) per hidden layer."""
    x = x.clone().requires_grad_()
    h, found = x, []
    for w, b in zip(net.weights[:-1], net.biases[:-1], strict=True):
        z = w @ h + (0 if b is None else b)
        steep = torch.stack([torch.autograd.grad(v, x, retain_graph=True)[0].norm() for v in z])
        found.append((z.detach(), steep))
        h = z.clamp_min(0)
    return found


def sampled(net, made, x, rng_, hole=None, most=64):
    """Rays at given places in the band, with every pattern of free slopes, or many of them."""
    rows = []
    for at in x:
        value = float(net(at[None]))
        y = 1.0 if value > 0 else -1.0
        low, high = made.levels
        if not low <= y * value <= high:
            continue
        if hole is not None and y == hole[2] and bool(((at > hole[0]) & (at < hole[1])).all()):
            continue
        layers = local(net, at)
        hard = torch.cat([(z > 0).double() for z, _ in layers])
        free = torch.cat([z.abs() <= made.tau * s for z, s in layers]).nonzero()[:, 0]
        patterns = list(product((0.0, 1.0), repeat=len(free)))
        chosen = patterns if len(patterns) <= most else rng_.permutation(patterns)[:most]
        for pattern in chosen:
            s = hard.clone()
            s[free] = torch.tensor(np.array(pattern), dtype=torch.float64)
            rows.append(y * gradient(net, at, s.split([len(z) for z, _ in layers])))
    return np.array(rows)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_two_layers_have_the_radii_of_their_own_cone(d, seed):
    net = rough(20 * seed, d, 5)
    one, other = Cone.of(net, WIDE), Cone.of_layers(net, WIDE)
    assert one.tight and other.tight
    assert other.neurons.rho == pytest.approx(one.neurons.rho)
    pairs = [(one.least, other.least)]
    at, label = one.least.x[0], float(one.least.y[0])
    pairs += [
        (one.radius(at - h, at + h, label), other.radius(at - h, at + h, label)) for h in (0.1, 0.5)
    ]
    for a, b in pairs:
        assert a.low <= b.high + 1e-9 and b.low <= a.high + 1e-9
        assert a.high == pytest.approx(b.high, rel=0.03, abs=1e-4)


@pytest.mark.parametrize("d", [1, 2])
def test_a_layer_that_passes_on_leaves_the_places(d):
    """A second layer of two neurons, the sums of either sign, is Phi's own two parts."""
    net = rough(7, d, 6)
    v = net.weights[1][0]
    passing = torch.stack([v.clamp_min(0), (-v).clamp_min(0)])
    deep = Network(
        (net.weights[0], passing, torch.tensor([[1.0, -1.0]]).double()),
        (net.biases[0], None, None),
    )
    found = regions(Layers.of(deep, 2.5), *WIDE.levels)
    before = places(neuron_groups(net, 0.0, 0.0, 2.5), *WIDE.levels)
    for label in (1.0, -1.0):
        sizes = [_size(some.pieces[some.y == label]) for some in (found, before)]
        assert sizes[0] == pytest.approx(sizes[1], rel=1e-6)
    assert _size(found.pieces) > 0


def _size(pieces):
    """Length of intervals, or area of polygons."""
    if pieces.shape[2] == 1:
        return float((pieces.max(axis=1) - pieces.min(axis=1)).sum())
    x, y = pieces[..., 0], pieces[..., 1]
    return float(abs(x * np.roll(y, -1, 1) - y * np.roll(x, -1, 1)).sum(axis=1).sum() / 2)


@pytest.mark.parametrize(
    ("d", "widths", "tau"),
    [(1, (5, 4), 0.0), (1, (5, 4), 0.1), (1, (4, 3, 3), 0.05), (2, (5, 4), 0.0), (2, (4, 3), 0.05)],
)
def test_no_sampled_explanation_is_below_the_bound(d, widths, tau):
    """The oracle knows nothing of regions: dense places, the chain rule, patterns, scipy's NNLS."""
    for seed in range(2):
        net = rough(30 * seed + 3, d, *widths)
        made = Assumptions(band=0.3, tau=tau, box=2.0)
        cone, some = Cone.of(net, made), np.random.default_rng(seed)
        x = torch.from_numpy(some.uniform(-2, 2, (500 if d == 1 else 800, d)))
        theta, rho = cone.neurons.theta, cone.neurons.rho
        rows = sampled(net, made, x, some)
        best = nnls(rows.T, theta, maxiter=10**5)[1] / rho
        assert cone.least.low <= best * (1 + 1e-9) + 1e-9
        at, label = cone.least.x[0], float(cone.least.y[0])
        low, high = at - 0.2, at + 0.2
        radius = cone.radius(low, high, label)
        rest = sampled(net, made, x, some, (torch.from_numpy(low), torch.from_numpy(high), label))
        best = nnls(rest.T, theta, maxiter=10**5)[1] / rho if len(rest) else 1.0
        assert radius.low <= best * (1 + 1e-9) + 1e-9
        assert radius.high <= 1 + 1e-12 and radius.low >= cone.least.low - 1e-12


def around(found, x, y):
    """Which pieces of label y hold x (d,): between the ends, or on one side of all edges."""
    corners = found.pieces
    if corners.shape[2] == 1:
        inside = (corners.min(axis=1) <= x + 1e-12) & (corners.max(axis=1) >= x - 1e-12)
        return inside[:, 0] & (found.y == y)
    side, to = np.roll(corners, -1, axis=1) - corners, x - corners
    turns = side[..., 0] * to[..., 1] - side[..., 1] * to[..., 0]
    return ((turns >= -1e-12).all(axis=1) | (turns <= 1e-12).all(axis=1)) & (found.y == y)


@pytest.mark.parametrize(
    ("d", "widths", "tau"),
    [(1, (5, 4), 0.0), (1, (6, 5), 0.2), (1, (4, 3, 3), 0.4), (2, (5, 4), 0.0), (2, (4, 4), 0.2)],
)
def test_every_gradient_lies_among_the_rays_of_its_piece(d, widths, tau):
    """For any u no gradient with free slopes at a place gains more than the rays around it."""
    some, looked, free = np.random.default_rng(0), 0, 0
    for seed in range(4):
        net = rough(30 * seed + 3, d, *widths)
        cone = Cone.of(net, Assumptions(band=1.0, tau=tau, box=2.0))
        found, rays = cone.places, cone.rays
        for x in torch.from_numpy(some.uniform(-2, 2, (200, d))):
            rows = sampled(net, cone.assumptions, x[None], some, most=8)
            if not len(rows):
                continue
            near = around(found, x.numpy(), np.sign(float(net(x[None]))))[rays.piece]
            assert near.any()  # no place is missing
            looked, free = looked + 1, free + (len(rows) > 1)
            for g in rows:
                aims = [g, *some.normal(size=(3, len(g)))]
                mean = np.mean(
                    [rays.columns(np.flatnonzero(near), u).mean(axis=0) for u in aims[1:]], 0
                )
                for u in (*aims, g - mean):
                    assert u @ g <= rays.gains(u)[near].max() + 1e-9 * np.linalg.norm(u)
    assert looked > 40 and (free > 5) == (tau > 0)


@pytest.mark.parametrize("widths", [(5, 4), (4, 3, 3)])
def test_where_rounding_turns_a_neuron_its_slope_is_free(widths):
    """Weights within a share of those given: who is on the other side with them is free."""
    some, turned, share = np.random.default_rng(1), 0, 0.02
    for seed in range(3):
        net = rough(30 * seed + 3, 1, *widths)
        layers = Layers.of(net, 2.0)
        found = regions(layers, 0.2, 3.0, 1e-9, share)
        for other in range(10):
            sides = torch.from_numpy(some.choice([-1.0, 1.0], size=len(net.theta)))
            moved = net.with_theta(net.theta * (1 + share * sides))
            for piece in some.permutation(len(found.y))[:60]:
                x = torch.from_numpy(found.pieces[piece].mean(axis=0))
                before, after = (
                    torch.cat([z for z, _ in local(one, x)]) > 0 for one in (net, moved)
                )
                apart = (before != after).numpy()
                turned += int(apart.sum())
                assert found.free[piece][apart].all(), (seed, other)
    assert turned > 10


def test_without_free_slopes_the_bound_is_that_of_all_corners():
    """At tau 0 nothing is relaxed: the rays at corners, by the chain rule, are the whole cone."""
    net = rough(5, 1, 5, 4)
    made = Assumptions(band=0.3, tau=0.0, box=2.0)
    cone = Cone.of(net, made)
    rows = []
    for piece, y, on in zip(cone.places.pieces, cone.places.y, cone.places.on, strict=True):
        slopes = torch.from_numpy(on.astype(float)).split([5, 4])
        rows += [y * gradient(net, torch.from_numpy(x), slopes) for x in piece]
    best = nnls(np.array(rows).T, cone.neurons.theta)[1] / cone.neurons.rho
    assert cone.least.low <= best * (1 + 1e-9)
    assert cone.least.high == pytest.approx(best, rel=0.03, abs=1e-4)


def test_a_planted_explanation_outside_of_a_place_is_never_refuted():
    """Whatever weights: the best explanation by points elsewhere leaves at least the radius."""
    for seed in range(6):
        net = rough(11 * seed, 1, 6, 5)
        made = Assumptions(band=0.3, tau=0.05, box=2.0)
        cone, some = Cone.of(net, made), np.random.default_rng(seed)
        of = cone.places
        middle = of.pieces.mean(axis=1)
        planted = some.permutation(len(middle))[: max(1, len(middle) // 2)]
        found = cone.bound_near(middle[planted], of.y[planted], 0.0)
        for at, label in zip(middle, of.y, strict=True):
            low, high = at - 0.15, at + 0.15
            inside = ((middle[planted] > low) & (middle[planted] < high)).all(axis=1)
            if not (inside & (of.y[planted] == label)).any():
                assert cone.radius(low, high, label).low <= found.high * (1 + 1e-9) + 1e-9


def test_a_trained_network_has_no_false_place_and_its_points_are_certified(trained):
    data, net = trained
    cone = assumed_cone(net)
    made = certainty(cone, data.x, data.y, 0.05, data)
    assert bool(made.certain.all()) and cone.least.high < 0.3
    assert cone.assumptions.box > float(data.x.abs().max())
    for label in (1.0, -1.0):
        for at in np.arange(-2.0, 2.0, 0.1):
            found = cone.radius(np.array([at - 0.1]), np.array([at + 0.1]), label, made.limit)
            near = ((data.x[:, 0] - at).abs() <= 0.1 + 1e-9) & (data.y == label)
            assert found.low <= made.limit or bool(near.any())
    *_, picture = radius_map(cone, -1.5, 1.5, 32, 0.05)
    pixels = -1.5 + 3.0 * (np.arange(32) + 0.5) / 32
    for label, values in zip((1.0, -1.0), picture.values, strict=True):
        needed = pixels[values > picture.limit]
        assert len(needed)
        for at in needed:
            near = (data.x[:, 0] - at).abs() <= 0.05 + picture.reach + 1e-9
            assert bool((near & (data.y == label)).any())
    mass = forced_masses(cone, data.x, data.y, 0.05, allowed_residual(cone, made.truth))
    assert bool((mass > 0).all())


def test_how_far_an_explanation_is_counts_the_multipliers_of_three_layers(trained):
    """At a KKT point they sum to a third of the squared norm: of far points that share is far."""
    data, net = trained
    cone = assumed_cone(net)
    made = farthest(cone, data.x[:1] + 1000.0, allowed_residual(cone))
    gaps = (1000.0 + data.x[0] - made.x).norm(dim=1)
    assert made.distance == pytest.approx(float(made.lam @ gaps) * 3 / cone.neurons.rho**2)
    assert made.distance > 0.8 * 1000 and made.at_most >= made.distance


def test_scale_and_order_of_neurons_leave_three_layers_alone():
    net = rough(4, 1, 5, 4)
    cone = Cone.of(net, WIDE)
    first, second = (torch.randperm(k, generator=rng(k)) for k in (5, 4))
    w1, w2, w3 = net.weights
    assert net.biases[0] is not None
    mixed = Network(
        (w1[first], w2[second][:, first], w3[:, second]), (net.biases[0][first], None, None)
    )
    assert Cone.of(mixed, WIDE).least.high == pytest.approx(cone.least.high, rel=0.03, abs=1e-4)
    flipped = Network((w1, w2, -w3), net.biases)
    at, label = cone.least.x[0], float(cone.least.y[0])
    one = cone.radius(at - 0.1, at + 0.1, label)
    other = Cone.of(flipped, WIDE).radius(at - 0.1, at + 0.1, -label)
    assert other.high == pytest.approx(one.high, rel=0.03, abs=1e-4)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_storage_of_three_layers_is_seen_and_asks_for_more(trained, kind):
    data, net = trained
    stored = net.with_parameters([p.to(kind).double() for p in net.parameters])
    stored = normalise(stored, data.x, data.y)[0]
    assert rounding(net) == 0.0 and rounding(stored) == 2.0 ** -(11 if kind is torch.float16 else 8)
    before, after = assumed_cone(net), assumed_cone(stored)
    assert after.assumptions.stray > 0 and after.assumptions.band > before.assumptions.band
    assert threshold(after) > 3 * after.least.high


def test_what_is_certified_of_itself_and_when_asked():
    def drawn(d, width):
        return Target(init_network(d, (width, width), generator=rng(0), first_scale=1.0))

    assert not obstacle(drawn(1, 4)) and not obstacle(drawn(2, 4))
    assert obstacle(drawn(2, 80)) and not ATTACK.refusal(drawn(2, 80))
    assert obstacle(drawn(1, 600)) and ATTACK.refusal(drawn(1, 600))
    assert obstacle(drawn(2, 80)) != obstacle(
        drawn(2, 600)
    )  # asked for, it takes minutes; or not at all


def test_beyond_the_box_no_place_is_at_the_margin(trained):
    data, net = trained
    wide = extent(net).box
    assert wide > float(data.x.abs().max())
    for side in (1.0, -1.0):
        far = side * torch.linspace(wide, 5 * wide, 400, dtype=torch.float64)[:, None]
        above = net(far).abs() > 1
        assert bool((above == above[0]).all())
