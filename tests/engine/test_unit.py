"""Points of any size: the same run in their unit, and the same places found."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from itertools import islice

import pytest
import torch

from explorer import (
    KKTConfig,
    Network,
    Run,
    Start,
    Target,
    TrainConfig,
    by_key,
    certify,
    control_sets,
    judge,
    kkt,
    load_run,
    maximum_margin,
    preset,
    save_run,
    training,
    unit_of,
)
from explorer.engine.data import PRESETS, Dataset
from explorer.engine.training import TrainState
from tests.engine.draws import aimed, attacked, rng, trained

CIRCLE = preset("alternating-circle", n=12)
MOONS = preset("moons", n=10)
SHORT = TrainConfig(widths=(20, 10), steps=40, batch=7)


def times(data: Dataset, scale: float, shift: float = 0.0) -> Dataset:
    return Dataset(data.x * scale + shift, data.y)


def test_the_unit_is_one_wherever_points_are_about_as_large_as_the_plane() -> None:
    for name, row in PRESETS.items():
        for seed in range(5):
            assert unit_of(preset(name, n=row.n_min, seed=seed)) == 1
    assert unit_of(times(MOONS, 1.0, 500.0)) == 1, "far away is not large"
    assert unit_of(times(MOONS, 1e-3, 5.0)) == 1, "close together is not small"
    assert unit_of(Dataset(CIRCLE.x[:0], CIRCLE.y[:0])) == 1
    assert unit_of(Dataset(torch.zeros(3, 2), torch.ones(3))) == 1
    assert unit_of(Dataset(1e300 * CIRCLE.x, CIRCLE.y)) == 1, "no number says how large"
    assert unit_of(Dataset(100 * torch.randn(5, 4, generator=rng()), torch.ones(5))) == 1
    for scale in (0.01, 0.1, 10.0, 100.0):
        unit = unit_of(times(CIRCLE, scale))
        assert math.log2(unit).is_integer() and 0.7 < scale / unit < 1.42


@pytest.mark.parametrize("power", [-40, -7, -3, 3, 7, 40])
def test_training_and_attack_of_points_times_a_power_of_two_are_the_same_to_the_bit(
    power: int,
) -> None:
    scale = 2.0**power
    here, there = trained(CIRCLE, SHORT), trained(times(CIRCLE, scale), SHORT)
    assert there.net.unit == scale and here.net.unit == 1
    for one in fields(TrainState):
        if one.name != "net":
            a, b = getattr(here, one.name), getattr(there, one.name)
            assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b, one.name
    assert torch.equal(here.net(CIRCLE.x), there.net(CIRCLE.x * scale))
    assert torch.equal(here.net.theta, there.net.in_unit().theta)
    more = Dataset(CIRCLE.x[:5], CIRCLE.y[:5])
    again = [training.refresh(d, s, SHORT) for d, s in ((more, here), (times(more, scale), there))]
    assert torch.equal(again[0].q, again[1].q) and again[1].net.unit == scale
    config = KKTConfig(m=20, steps=30)
    ends = [attacked(kkt, Target.of(s.net, 0.1), config)[0] for s in (here, there)]
    assert torch.equal(ends[0].x, ends[1].x) and torch.equal(ends[0].lam, ends[1].lam)


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_the_circle_is_found_at_every_scale_by_the_defaults(scale: float) -> None:
    data = times(CIRCLE, scale)
    state = trained(data, TrainConfig())
    made = certify(state.net, data.x, data.y)
    assert made.residual < 0.1 and int(made.on_margin.sum()) >= 11
    claims = attacked(kkt, aimed(state), KKTConfig())[1]
    verdict = judge(data, control_sets(data), claims.x, claims.y, 0.03 * scale)
    assert verdict.found >= 10 and verdict.p_value <= 0.05


def test_what_is_given_and_what_is_claimed_is_in_units_of_the_data() -> None:
    data = times(CIRCLE, 256.0)
    state = trained(data, TrainConfig(steps=2000))
    target = Target.of(state.net, state.q_min)
    assert target.unit == 256 and target.net.unit == 1
    for key in ("kkt", "decoreco"):
        entry = by_key(key)
        config = entry.config(steps=1)
        first = entry.init(target, config, rng(), (data.x, data.y))
        assert torch.equal(first.x, CIRCLE.x)
        claimed = entry.report(target, first, config).x
        assert torch.equal(claimed, 256 * entry.report(target.inside, first, config).x)
    start = kkt.init(target, KKTConfig(), rng(), Start(data.x, data.y))
    assert torch.equal(start.x, CIRCLE.x)


@pytest.mark.parametrize("key", ["hinge", "inversion", "pooled", "univariate", "certified_places"])
def test_each_attack_claims_in_units_of_the_data(key: str) -> None:
    data = times(preset("alternating-line", n=4), 256.0)
    state = trained(data, TrainConfig(widths=(20,), steps=3000))
    target, entry = Target.of(state.net, state.q_min), by_key(key)
    run = entry.states(target, config := entry.config(), rng(), None, 100)
    last = list(islice(run, 30))[-1]
    outside, inside = (entry.report(t, last, config).x for t in (target, target.inside))
    assert len(inside) and torch.equal(outside, 256 * inside)


def test_given_weights_stay_in_their_own_unit_and_a_file_keeps_it(tmp_path) -> None:
    data = times(CIRCLE, 100.0)
    exact = maximum_margin(data.x, data.y).net
    state = training.init(data, TrainConfig(steps=0), rng(), exact)
    assert state.net.unit == 1 and Target.of(state.net, 1.0).unit == 1
    state = trained(data, SHORT)
    save_run(Run(data, SHORT, (state,)), tmp_path / "run.safetensors")
    opened = load_run(tmp_path / "run.safetensors")
    assert opened.net.unit == state.net.unit == 128
    later = [training.step(data, s, SHORT) for s in (state, opened.train_states[0])]
    assert torch.equal(later[0].net.theta, later[1].net.theta)
    leapt = training.advance(data, state, replace(SHORT, steps=50), 1)
    assert torch.allclose(later[0].q, leapt.q, rtol=1e-12, atol=0)
    with pytest.raises(ValueError, match="unit must be positive"):
        Network(exact.weights, exact.biases, unit=0.0)
