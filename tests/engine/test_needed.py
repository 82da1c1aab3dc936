"""Needed places and holes: every place holds a point, a hole is left empty, brute force agrees."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from explorer.engine.data import preset
from explorer.engine.exact import maximum_margin
from explorer.engine.explanations.assumptions import assumed_cone
from explorer.engine.explanations.certainty import truth_residual
from explorer.engine.explanations.cone import Assumptions, Cone
from explorer.engine.explanations.needed import Needed, needed_places
from explorer.engine.explanations.places import SIDES, Hole
from explorer.engine.gradients import gradient
from explorer.engine.margin import normalise
from explorer.engine.progress import Stopped
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.research.runs import train
from tests.engine.draws import uniform
from tests.engine.test_certified import brute, exact, rough


def of_line(seed):
    x, y, net = exact(seed)
    return assumed_cone(net), x.numpy(), y.numpy()


def of_plane():
    data = preset("alternating-circle", n=8)
    net = normalise(train(Run(data, TrainConfig(steps=3000, widths=(30,)))).net, data.x, data.y)[0]
    return assumed_cone(net), data


@pytest.mark.parametrize("seed", range(4))
def test_every_needed_place_of_the_line_holds_a_point(seed):
    cone, x, y = of_line(210 + seed)
    *_, last = needed_places(cone, 0.02, 0.03)
    assert len(last.rows) and last.holds(x, y).all()


def test_places_of_the_plane_hold_points_and_close_in():
    cone, data = of_plane()
    limit = truth_residual(cone, data)
    pictures = list(needed_places(cone, limit, 0.03))
    last = pictures[-1]
    assert 0 < len(last.rows) <= data.n and last.holds(data.x.numpy(), data.y.numpy()).all()
    assert [len(made.log) for made in pictures[:-1]] == list(range(len(last.log) + 1))
    for k in np.unique(last.log[:, 0]):
        own = last.log[last.log[:, 0] == k]
        assert (np.diff(own[:, 3]) < 0).all() and (own[:, -1] > limit).all()
    assert (np.diff(last.log[:, 3]) <= 1e-12).all(), "wide places come first"
    at, label, half = last.rows[:, :2], last.rows[:, -2], last.rows[:, 2]
    for i, j in zip(*np.triu_indices(len(at), 1), strict=True):
        apart = np.abs(at[i] - at[j]).max() >= half[i] + half[j] + 2 * last.reach
        assert label[i] != label[j] or apart
    assert np.array_equal(last.until(3).log, pictures[3].log)


def test_no_place_is_needed_where_an_explanation_may_leave_all():
    cone, *_ = of_line(210)
    *_, last = needed_places(cone, 1.0, 0.03)
    assert not len(last.rows) and last.asked > 0
    with pytest.raises(ValueError, match="finest"):
        next(needed_places(cone, 0.1, 0.0))


def test_needed_places_end_when_nobody_wants_them():
    def end(_):
        raise Stopped("enough")

    with pytest.raises(Stopped):
        list(needed_places(of_line(210)[0], 0.02, 0.03, end))


def test_of_two_points_in_one_place_the_nearest_stands_for_it():
    log = np.array([[0, -1.0, 0.3, 1.0, 0.2], [1, 1.0, 0.3, -1.0, 0.15], [2, 3.0, 0.1, 1.0, 0.1]])
    made = Needed(log, 0.1, 0.0, 0.06, 7, 7, 5.0, 1.01)  # by width: at 3, at -1, at 1
    x, y = np.array([[-1.2], [-0.9], [1.1], [1.0]]), np.array([1.0, 1.0, -1.0, 1.0])
    assert made.rows[:, 0].tolist() == [3.0, -1.0, 1.0]
    assert made.points_of(x, y).tolist() == [-1, 1, 2]
    assert made.points_of(x[:0], y[:0]).tolist() == [-1, -1, -1]
    assert made.until(0).points_of(x, y).tolist() == []


@pytest.mark.parametrize(("d", "seed"), [(1, 0), (1, 3), (2, 1), (2, 4)])
def test_best_explanation_without_a_disc_is_that_of_brute_force(d, seed):
    net, made = rough(300 + 10 * seed, d), Assumptions(band=0.05, tau=0.0, box=3.0)
    cone = Cone.of(net, made)
    heavy = cone.least.x[np.argmax(cone.least.lam)]
    for radius in (0.1, 0.5, 1.5):
        hole = Hole.disc(heavy, radius)
        found, best = cone.best_without(hole), brute(net, made, hole)
        assert found.low <= best + 1e-7 and found.high >= best - 1e-7
        assert found.high - found.low <= max(0.02 * found.high, 1e-4) + 1e-9
        assert found.avoids(hole) and (found.lam > 0).all()
        left = np.linalg.norm(found.remainder(cone.neurons.theta)) / cone.neurons.rho
        assert left == pytest.approx(found.high, rel=1e-9)


@pytest.mark.parametrize("d", [1, 2])
def test_no_points_outside_a_disc_leave_less_than_is_proven(d):
    net = rough(360, d)
    cone = Cone.of(net, Assumptions(band=0.05, tau=0.0, box=3.0))
    hole = Hole.disc(cone.least.x[np.argmax(cone.least.lam)], 0.7)
    found = cone.best_without(hole)
    x = 6 * uniform(40_000, d, seed=5) - 3
    q = net(x).flatten().abs()
    x = x[(q >= 1) & (q <= 1.05) & ~torch.from_numpy(hole.holds(x.numpy()))][:400]
    y = net(x).flatten().sign()
    rows = y[:, None] * gradient(net, x)
    left = nnls(rows.T.numpy(), net.theta.numpy(), maxiter=10**6)[1] / float(net.rho)
    assert len(x) > 20 and left >= found.low * (1 - 1e-9)
    assert found.high >= cone.least.low


def test_few_rounds_bound_the_same_and_a_wider_disc_costs_more():
    cone, data = of_plane()
    at, before, last = data.x[0].numpy(), None, cone.least.high
    for radius in (0.05, 0.15, 0.3, 0.5):
        hole = Hole.disc(at, radius)
        before = cone.best_without(hole, before=before, rounds=2)
        whole = cone.best_without(hole)
        assert before.avoids(hole) and whole.low <= before.high * (1 + 1e-9)
        assert before.low <= whole.high * (1 + 1e-9) and whole.high >= last * 0.98
        last = whole.high
    assert last > 1.2 * cone.least.high


def test_disc_is_inside_its_circle_and_nearly_fills_it():
    hole = Hole.disc(np.array([0.3, -0.2]), 0.5)
    turns = np.linspace(0, 2 * np.pi, 200)
    ways = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    assert len(hole.walls) == SIDES
    assert not hole.holds([0.3, -0.2] + 0.5001 * ways).any()
    assert hole.holds([0.3, -0.2] + 0.98 * 0.5 * ways).all()
    line = Hole.disc(np.array([1.0]), 0.25)
    assert (
        line.holds(np.array([[0.76], [1.24], [0.74], [1.26]])).tolist() == [True] * 2 + [False] * 2
    )


def test_exact_network_needs_its_points_in_any_unit():
    data = preset("alternating-line", n=4)
    for size in (1e-3, 1.0, 1e3):
        scaled = data.over(1 / size)
        net = normalise(maximum_margin(scaled.x, scaled.y).net, scaled.x, scaled.y)[0]
        *_, last = needed_places(assumed_cone(net), 0.01, 0.03 * size)
        assert len(last.rows) == data.n
        assert last.holds(scaled.x.numpy(), scaled.y.numpy()).all()
