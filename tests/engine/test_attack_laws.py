"""The laws that all attacks of the roster keep, on a small case each."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.engine.attacks.target import Target
from explorer.engine.data import Dataset, preset
from explorer.engine.network import Network
from explorer.engine.roster import ROSTER
from explorer.engine.status import Status
from explorer.engine.store import Run, dump, load
from explorer.engine.training import TrainConfig
from tests.engine.draws import aimed, exact_set, make, rng, trained

PLANE, LINE = preset("blobs", n=8, seed=3), 7  # the seed of points on the line
TRAINED = TrainConfig(widths=(12,), steps=1500)


@dataclass(frozen=True)
class Case:
    """What an attack is tried on.

    Attributes:
        settings: of a short run.
        d: of the points.
        draws: whether it draws anything.
        wrong: settings that it refuses, with a word of the reason.
    """

    settings: dict[str, Any]
    d: int = 2
    draws: bool = True
    wrong: tuple[tuple[dict[str, Any], str], ...] = ()


NAN, INF = math.nan, math.inf
CASES = {
    "kkt": Case({"m": 6, "steps": 13}, wrong=(({"m": 7}, "even"), ({"lr_x": INF}, "lr_x"))),
    "decoreco": Case({"m": 6, "steps": 13}, wrong=(({"rivals": "some"}, "rivals"),)),
    "inversion": Case({"m": 6, "steps": 13}, wrong=(
        ({"m": 5}, "even"), ({"goal": "most"}, "goal"), ({"steps": 0}, "steps"),
        ({"box": -1.0}, "box"), ({"value": NAN}, "value"), ({"decay": 2.0}, "decay"),
        ({"sigma_x": -1.0}, "sigma_x"), ({"lr_x": INF}, "lr_x"),
    )),
    "univariate": Case({}, d=1, draws=False, wrong=(
        ({"mode": "all"}, "mode"), ({"weights": "old"}, "weights"), ({"slack": 0.5}, "slack"),
        ({"tau": -1.0}, "tau"), ({"merge_angle": NAN}, "merge_angle"),
    )),
    "bilevel": Case({"m": 6, "steps": 13}, wrong=(
        ({"model": "deeper"}, "model"), ({"loss": "hinge"}, "loss"), ({"m": 3}, "m"),
        ({"solver": "newton"}, "solver"), ({"optimizer": "sgd"}, "optimizer"), ({"mu": 0.0}, "mu"),
        ({"damping": -1.0}, "damping"), ({"momentum": 1.0}, "momentum"), ({"lr_x": NAN}, "lr_x"),
    )),
    "hinge": Case({"grid": 6}, draws=False, wrong=(
        ({"claim": "all"}, "claim"), ({"radius": 0.0}, "radius"), ({"tau": -1.0}, "tau"),
        ({"batch": 0}, "batch"), ({"reach": INF}, "reach"), ({"rise": NAN}, "rise"),
    )),
    "pooled": Case({"grid": 6, "starts": 2, "m": 6, "descent": 40}, wrong=(
        ({"starts": 0}, "starts"), ({"m": 7}, "m must be even"),
    )),
    "certified_places": Case({"per_step": 1}, d=1, draws=False, wrong=(
        ({"widest": 0.01, "narrowest": 0.1}, "widest"), ({"threshold": 1.0}, "threshold"),
    )),
}  # fmt: skip
BUILT_IN = pytest.mark.parametrize("key", CASES)
SEVERAL = Target(Network((torch.ones(4, 2), torch.ones(3, 4)), (None, None)))


@cache
def data_of(key: str) -> Dataset:
    if CASES[key].d == 2:
        return PLANE
    _, x, y = exact_set(1, 5, LINE)
    return Dataset(x, y)


@cache
def target_of(key: str) -> Any:
    """The weights that the attack sees: trained ones, on the line exact ones, or its own."""
    data, entry = data_of(key), ROSTER[key]
    own = entry.target_for(None, data.x, data.y, config_of(key), 0)
    if own is not None:
        return own
    return Target(exact_set(1, 5, LINE)[0]) if data.d == 1 else aimed(trained(data, TRAINED))


def config_of(key: str) -> Any:
    return ROSTER[key].config(**CASES[key].settings)


@cache
def run_of(key: str, seed: int = 1) -> tuple[Any, ...]:
    """All states of a run."""
    return tuple(ROSTER[key].states(target_of(key), config_of(key), rng(seed)))


def same(one: Any, other: Any, rtol: float = 0.0) -> None:
    """Equal field by field, tensors and numbers up to a share of them."""
    if isinstance(one, Tensor):
        torch.testing.assert_close(one, other, rtol=rtol, atol=rtol, equal_nan=True)
    elif is_dataclass(one):
        for f in fields(one):
            same(getattr(one, f.name), getattr(other, f.name), rtol)
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b, rtol)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=rtol, abs=rtol, nan_ok=True)
    else:
        assert one == other


def test_every_attack_has_a_case() -> None:
    assert set(CASES) == {key for key, entry in ROSTER.items() if entry.paper}


@BUILT_IN
def test_a_run_begins_with_its_first_state_and_ends_where_it_says(key: str) -> None:
    entry, states, config = ROSTER[key], run_of(key), config_of(key)
    same(states[0], entry.init(target_of(key), config, rng(1)))
    assert [state.t for state in states] == list(range(len(states))) and len(states) > 4
    told = [entry.terminate(state, config) for state in states]
    assert set(told[:-1]) == {Status.RUNNING} and told[-1].over
    assert told[-1] in (Status.FINISHED, Status.COMPLETE)
    first, last = (set(state.numbers()) for state in (states[0], states[-1]))
    assert {name for name, _ in entry.curves} <= first <= last


@BUILT_IN
@pytest.mark.parametrize("steps", [1, 3, 1000])
def test_steps_in_one_go_are_single_steps(key: str, steps: int) -> None:
    entry, states, config = ROSTER[key], run_of(key), config_of(key)
    later = states[min(2 + steps, len(states) - 1)]
    alone = states[2]
    for _ in range(steps):
        if not entry.terminate(alone, config).over:
            alone = entry.step(target_of(key), alone, config)
    same(alone, later, rtol=1e-6)
    same(entry.advance(target_of(key), states[2], config, steps), later, rtol=1e-6)


@BUILT_IN
def test_a_stride_leaves_states_out_and_changes_none(key: str) -> None:
    states = run_of(key)
    found = list(ROSTER[key].iterate(target_of(key), states[1], config_of(key), 4))
    last = len(states) - 1
    assert [state.t for state in found] == [*range(4, last, 4), last]
    for state in found:
        same(state, states[state.t], rtol=1e-6)


@BUILT_IN
def test_a_saved_run_is_the_same_and_goes_on_alike(key: str) -> None:
    entry, states, config = ROSTER[key], run_of(key), config_of(key)
    run = Run(data_of(key), TrainConfig(), (), config, states, attack_name=key)
    again = load(dump(run))
    assert again.attack_config == config
    same(again.attack_states, states)
    for before, after in pairwise(states):
        if before.t in (1, len(states) // 2, len(states) - 2):
            fresh = target_of.__wrapped__(key)
            made = entry.step(fresh, again.attack_states[before.t], config)
            same(made, after, rtol=1e-6)


@BUILT_IN
def test_a_seed_is_a_run_and_another_one_is_another(key: str) -> None:
    again, other = run_of.__wrapped__(key), run_of(key, 2)
    same(again, run_of(key))
    assert torch.equal(other[-1].x, again[-1].x) is not CASES[key].draws


@BUILT_IN
def test_a_run_begins_at_the_candidates_given_or_takes_none(key: str) -> None:
    entry, data = ROSTER[key], data_of(key)
    state = entry.init(target_of(key), config_of(key), rng(1), (data.x, data.y))
    if entry.takes_start:
        assert torch.equal(state.x, data.x) and torch.equal(state.y, data.y)
    else:
        same(state, run_of(key)[0])


@BUILT_IN
def test_the_order_of_the_neurons_is_nothing(key: str) -> None:
    entry, target, config = ROSTER[key], target_of(key), config_of(key)
    if entry.own is not None:
        pytest.skip("its weights are of its own training")
    net, order = target.net, torch.randperm(target.net.widths[0], generator=rng(5))
    first, last = net.weights
    other = Network((first[order], last[:, order]), (net.biases[0][order], None))
    moved = Target(other, target.level)
    state = entry.init(moved, config, rng(1))
    state = entry.advance(moved, state, config, len(run_of(key)))
    one, two = (
        entry.report(aim, last, config) for aim, last in ((target, run_of(key)[-1]), (moved, state))
    )
    assert one.x.shape == two.x.shape
    near = torch.cdist(one.x, two.x) + 9 * (one.y[:, None] != two.y)
    assert not len(one.x) or float(near.amin(1).max()) < 1e-5


@BUILT_IN
def test_a_claim_has_a_place_a_label_and_a_multiplier(key: str) -> None:
    target, config = target_of(key), config_of(key)
    for state in run_of(key):
        made = ROSTER[key].report(target, state, config)
        assert made.x.shape == (len(made.y), data_of(key).d) and made.lam.shape == made.y.shape
        assert bool(made.x.isfinite().all() & (made.y.abs() == 1).all() & (made.lam >= 0).all())
        assert torch.equal(made.lam, made.lam.sort(descending=True).values)


@pytest.mark.parametrize(("key", "changes", "word"), [
    (key, *wrong) for key, case in CASES.items() for wrong in case.wrong
])  # fmt: skip
def test_settings_that_cannot_run_are_refused_by_name(key: str, changes, word) -> None:
    with pytest.raises(ValueError, match=word):
        ROSTER[key].config(**changes)


@BUILT_IN
def test_weights_that_do_not_fit_are_refused_in_a_sentence(key: str) -> None:
    entry, config = ROSTER[key], config_of(key)
    assert isinstance(target_of(key), Target) is (entry.own is None)
    if entry.own is None:
        assert entry.refusal(target_of(key)) == ""
    if not entry.needs.several:
        assert "one output" in entry.refusal(SEVERAL)
    for other in (
        SEVERAL,
        Target(make((3, 3, 3))),
        Target(exact_set(1, 5, LINE)[0]),
        Target(make((4,))),
    ):
        why = entry.refusal(other)
        if why:
            with pytest.raises(ValueError) as refused:
                entry.init(other, config, rng())
            assert str(refused.value) == why and why.endswith(".")
