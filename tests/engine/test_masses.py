"""Forced masses and farthest explanations over all rays: bounds hold, and meet other programs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from explorer.engine.certificate import certify
from explorer.engine.data import preset
from explorer.engine.exact import maximum_margin
from explorer.engine.explanations.assumptions import assumed_cone
from explorer.engine.explanations.certainty import truth_residual
from explorer.engine.explanations.cone import Assumptions, Cone
from explorer.engine.explanations.masses import allowed_residual, farthest, forced_masses
from explorer.engine.margin import normalise
from explorer.engine.progress import Stopped
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.research.runs import train
from tests.engine.test_certainty import exact, points


@pytest.mark.parametrize("seed", range(202, 207))
def test_forced_masses_are_those_of_the_optimum_on_the_line(seed):
    """Exact weights: where multipliers are unique, all of each is forced; never more."""
    data = points(seed)
    net = exact(data)
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
    cone = assumed_cone(exact(data))
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
