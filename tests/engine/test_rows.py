"""Rows taken in where they are missed: the minimum is that of the program with all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from explorer.engine import training
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import certify
from explorer.engine.data import preset
from explorer.engine.explanations import programs
from explorer.engine.explanations.alternatives import determination, sharper_sample
from explorer.engine.explanations.programs import Rows, farthest, forced_mass, sample_of
from explorer.engine.explanations.splitting import residual
from explorer.engine.training import TrainConfig
from tests.engine.draws import draw
from tests.engine.test_consistent import BOX, exact


def all_at_once(sample, cost):
    """The program as it is written: every row, from both sides. -> its least value."""
    (p, c), m = sample.columns.shape, len(sample.x)
    theta, room = sample.net.theta.numpy(), sample.tolerance * float(sample.net.rho)
    bound = np.zeros((c - m, c))
    for k, owner in enumerate(sample.owner):
        bound[k, owner], bound[k, m + k] = -1.0, 1.0
    table = np.concatenate([sample.columns, -sample.columns, bound])
    b = np.concatenate([theta + room, room - theta, np.zeros(c - m)])
    done = linprog(np.concatenate([cost, np.zeros(c - m)]), A_ub=table, b_ub=b, method="highs")
    assert done.status == 0 and len(b) == 2 * p + c - m
    return float(done.fun)


def lazily(monkeypatch: pytest.MonkeyPatch, start: int = 8, batch: int = 5) -> None:
    for name, value in (("WHOLE", 0), ("START", start), ("BATCH", batch)):
        monkeypatch.setattr(programs, name, value)


def masses(sample):
    gap = torch.cdist(sample.x, sample.truth.x).numpy()
    return [all_at_once(sample, (g < sample.radius * (1 - 1e-3)).astype(float)) for g in gap.T]


@pytest.fixture(scope="module")
def deep():
    """A trained network of three layers, its sharp sample, and its points."""
    data = preset("alternating-circle", 6, 0.0, 0)
    config = TrainConfig(widths=(12, 10), init_scale=1e-2, steps=4000)
    state = training.init(data, config, torch.Generator().manual_seed(0))
    for following in training.iterate(data, state, config):
        state = following
    made = certify(state.net, data.x, data.y)
    net = Target.of(state.net, made.q_min).merged(0.02)
    sample = sample_of(net, data.x, data.y, 2.0, made.tau, 0)
    return net, sharper_sample(sample), data, made


@pytest.mark.parametrize("seed", range(3))
def test_two_layers_keep_their_masses(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    net, x, y = exact(seed)
    sample = sample_of(net, x, y, BOX, grid=0)
    whole, old = forced_mass(sample).numpy(), np.array(masses(sample))
    lazily(monkeypatch)
    few = replace(sample, rows=[])
    found = forced_mass(few).numpy()
    room = 1e-5 * sample.mass  # the solver's tolerance, times the size of the multipliers
    assert np.abs(whole - old).max() <= room and np.abs(found - old).max() <= room
    assert len(few.rows[0].taken) < 2 * len(net.theta) == len(sample.rows[0].taken)


def test_three_layers_keep_their_masses(deep, monkeypatch: pytest.MonkeyPatch) -> None:
    _, sample, _, _ = deep
    lazily(monkeypatch)
    old, found = np.array(masses(sample)), forced_mass(replace(sample, rows=[])).numpy()
    assert np.abs(found - old).max() <= 1e-5 * sample.mass
    assert old.max() > 1e-3 * sample.mass  # some point is determined, or this test says little


def test_three_layers_say_their_tolerance_and_sampling(deep) -> None:
    net, sample, data, made = deep
    found = determination(net, data.x, data.y, made.lam, 2.0, made.tau, sharp=True)
    assert 0 < int(found.forced.sum()) <= sample.truth.n
    assert not found.scope.exact and found.scope.tolerance > 1e-6


def test_the_farthest_set_is_the_same_and_bounded(deep, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cost below 0 on every point: without the implied row the first program is unbounded."""
    net, sample, _, _ = deep
    gap = torch.cdist(sample.x, sample.truth.x).amin(dim=1).numpy()
    best = all_at_once(sample, -gap)
    lazily(monkeypatch, start=1, batch=3)
    z, value = Rows(
        sample.columns, sample.net.theta.numpy(), sample.tolerance * float(sample.net.rho),
        sample.owner,
    ).least(-gap)  # fmt: skip
    assert value == pytest.approx(best, rel=1e-5)
    off = np.abs(sample.columns @ z - sample.net.theta.numpy()).max()
    assert off <= sample.tolerance * float(sample.net.rho) + 2 * programs.MISSED
    made = farthest(replace(sample, rows=[]))
    assert made.residual == pytest.approx(residual(net, made.explanation))


def test_an_empty_program_is_refused_from_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    lazily(monkeypatch, start=2, batch=1)
    columns, theta = draw(9, 3, seed=1).abs().numpy(), -np.ones(9)
    with pytest.raises(ValueError, match="no solution"):
        Rows(columns, theta, 0.5, np.zeros(0, dtype=np.int64)).least(np.ones(3))
