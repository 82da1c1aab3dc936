"""The trained experiment: torch's own gradient descent, step by step; what a trial counts."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest
import torch

from explorer.engine.membership.experiment import (
    MembershipConfig,
    generator_of,
    membership_experiment,
    membership_trial,
    train_wide,
)

SMALL = MembershipConfig(dims=(3, 40), trials=2, n=6, width=70, test=50)


def by_torch(x, y, config, generator):
    """The published experiment with torch's layers, optimiser and schedule."""
    d = x.shape[1]
    k = config.width
    first = (2 * torch.rand(k, d + 1, generator=generator) - 1) * config.init_scale / d**0.5
    last = (2 * torch.rand(k, 1, generator=generator) - 1) * config.init_scale / k**0.5
    layers = (torch.nn.Linear(d, k), torch.nn.ReLU(), torch.nn.Linear(k, 1, bias=False))
    net = torch.nn.Sequential(*layers)
    with torch.no_grad():
        layers[0].weight.copy_(first[:, :d])
        layers[0].bias.copy_(first[:, d])
        layers[2].weight.copy_(last.T)
    sgd = torch.optim.SGD(net.parameters(), lr=config.lr)
    plan = torch.optim.lr_scheduler.StepLR(sgd, config.lr_every, config.lr_factor)
    loss = torch.nn.BCEWithLogitsLoss()
    for _ in range(config.epochs):
        sgd.zero_grad()
        loss(net(x).squeeze(1), (y + 1) / 2).backward()
        sgd.step()
        plan.step()
    return net


@pytest.mark.parametrize(("d", "epochs"), [(3, 40), (40, 100)])
def test_it_is_torchs_gradient_descent(d, epochs):
    config = replace(SMALL, epochs=epochs, init_scale=0.5)
    generator = generator_of(1, d, 0)
    x = torch.randn(config.n, d, generator=generator)
    y = torch.where(torch.arange(config.n) % 2 == 0, 1.0, -1.0)
    fresh = torch.randn(9, d, generator=generator)
    ours = train_wide(x, y, config, generator_of(2, d, 0))
    theirs = by_torch(x, y, config, generator_of(2, d, 0))
    with torch.no_grad():
        for z in (x, fresh):
            assert torch.allclose(ours.phi(z), theirs(z).squeeze(1), rtol=2e-3, atol=2e-3)


def test_points_in_float64_are_trained_on_in_float32():
    config = replace(SMALL, epochs=3)
    x = torch.randn(config.n, 3, generator=generator_of(1, 3, 0))
    y = torch.where(torch.arange(config.n) % 2 == 0, 1.0, -1.0)
    single = train_wide(x, y, config, generator_of(2, 3, 0))
    double = train_wide(x.double(), y.double(), config, generator_of(2, 3, 0))
    assert torch.equal(single.phi(x), double.phi(x.double()))


def test_rows_come_one_by_one_and_any_trial_repeats_alone():
    rows = list(membership_experiment(SMALL))
    assert [(r.d, r.trial) for r in rows] == [(3, 0), (3, 1), (40, 0), (40, 1)]
    again = membership_trial(SMALL, 40, 1)
    assert again.margin == rows[3].margin
    assert torch.equal(again.fresh, rows[3].fresh)
    assert rows[2].margin != rows[3].margin
    first = next(islice(membership_experiment(replace(SMALL, seed=5)), 1))
    assert first.margin != rows[0].margin


def test_another_default_type_changes_nothing():
    here = membership_trial(SMALL, 3, 0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        there = membership_trial(SMALL, 3, 0)
    finally:
        torch.set_default_dtype(before)
    assert torch.equal(here.members, there.members) and here.margin == there.margin


def test_a_trial_counts_what_it_says():
    trial = membership_trial(SMALL, 40, 0)
    assert trial.train_accuracy == 1
    assert float(trial.members.min()) == pytest.approx(1, abs=1e-5)
    assert trial.on_margin == pytest.approx(float((trial.members < 1.1).float().mean()))
    assert trial.beyond == pytest.approx(float((trial.fresh >= 1).float().mean()))
    assert trial.beyond_signed <= trial.beyond <= trial.beyond_half
    assert set(trial.row()) >= {"d", "trial", "margin", "on_margin", "beyond"}
    assert "fresh" not in trial.row()


def test_fewer_fresh_points_pass_the_margin_as_d_grows():
    config = MembershipConfig(dims=(10, 300), trials=1, width=400, test=400)
    low, high = membership_experiment(config)
    assert low.beyond > 0.4
    assert high.beyond < 0.02


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"dims": ()}, "dims"),
        ({"dims": (0,)}, "d must be"),
        ({"n": 0}, "n must be"),
        ({"width": 0}, "width"),
        ({"lr": 0.0}, "lr must be"),
        ({"seed": -1}, "seed"),
        ({"law": "cauchy"}, "law must be one of"),
    ],
)
def test_wrong_settings_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        MembershipConfig(**wrong)
