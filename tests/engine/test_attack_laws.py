"""The laws that all attacks of the roster keep, on a small case each."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.engine.attacks import kkt
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import TAU_EXACT, certify
from explorer.engine.controls import control_sets
from explorer.engine.data import Dataset, preset
from explorer.engine.data.highdim import HighDimDraw, sample
from explorer.engine.exact import maximum_margin
from explorer.engine.gradients import residual
from explorer.engine.membership.two_neuron import NotSeparableError, two_neuron
from explorer.engine.network import Network, phi
from explorer.engine.roster import ROSTER
from explorer.engine.scoring import Kind, judge
from explorer.engine.status import Status
from explorer.engine.store import Run, dump, load
from explorer.engine.training import TrainConfig
from tests.engine.closed_forms import one_neuron_per_point, opposite_pair
from tests.engine.draws import aimed, attacked, draw, exact_set, make, rng, trained

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
    "black_box": Case({}, d=1, draws=False, wrong=(
        ({"digits": 0}, "digits"), ({"claims": "none"}, "claims"), ({"reach": NAN}, "reach"),
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
    "snapshots": Case({"steps": 5, "tried": 60}, wrong=(
        ({"steps": 0}, "steps"), ({"knots": 0}, "knots"), ({"box": INF}, "box"),
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
    if data.d == 1:
        return Target(exact_set(1, 5, LINE)[0])
    last = trained(data, TRAINED)
    return replace(aimed(last), before=trained(data, replace(TRAINED, steps=0)).net)


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
    order = torch.randperm(target.net.widths[0], generator=rng(5))

    def other(net: Network) -> Network:
        first, last = net.weights
        return Network((first[order], last[:, order]), (net.biases[0][order], None))

    before = None if target.before is None else other(target.before)
    moved = Target(other(target.net), target.level, before=before)
    state = entry.init(moved, config, rng(1))
    state = entry.advance(moved, state, config, len(run_of(key)))
    one, two = (
        entry.report(aim, last, config) for aim, last in ((target, run_of(key)[-1]), (moved, state))
    )
    assert one.x.shape == two.x.shape
    near = torch.cdist(one.x, two.x) + 9 * (one.y[:, None] != two.y)
    assert not len(one.x) or float(near.amin(1).max()) < 1e-5


@BUILT_IN
def test_its_first_sentence_is_one_line_of_the_comparison(key: str) -> None:
    made = ROSTER[key]
    assert 20 < len(made.in_short) <= 60 and made.sentence.startswith(made.in_short)


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


# --- the whole road: points, training, target, attack from noise, claims, verdict


def test_a_trained_network_gives_its_points_away():
    truth = preset("alternating-circle", n=12, seed=0)
    config = TrainConfig(widths=(300,), steps=4000)
    target = aimed(trained(truth, config))
    _, report = attacked(kkt, target, KKTConfig(m=48, steps=500))
    verdict = judge(truth, control_sets(truth), report.x, report.y, 0.03)
    assert verdict.kind is Kind.FOUND, verdict
    assert len(report.x) <= 20


def test_a_vanishing_loss_is_not_a_reconstruction():
    """The exact network of largest margin has six neurons here: other points explain it as well."""
    truth = preset("alternating-circle", n=8, seed=0)
    target = Target.of(maximum_margin(truth.x, truth.y).net, 1.0)
    state, report = attacked(kkt, target, KKTConfig(m=40, steps=400))
    verdict = judge(truth, control_sets(truth), report.x, report.y, 0.03)
    assert float(state.l_stationary) < 1e-6
    assert verdict.kind is Kind.AMBIGUOUS, verdict


# --- the exact high-dimensional network: KKT to rounding, margins 1, closed forms, a clear refusal

SIZES = ((3, 20), (7, 90), (20, 500), (20, 2000), (50, 1000))


def relative_residual(made, x, y):
    return float(residual(made.net, x, made.lam * y, [made.slopes]).norm() / made.net.rho)


@pytest.mark.parametrize("law", ["sphere", "gaussian", "mixture"])
@pytest.mark.parametrize(("n", "d"), SIZES)
def test_exact_kkt_with_all_points_on_the_margin(law, n, d):
    x, y = sample(HighDimDraw(d, law), n, rng(n + d))
    made = two_neuron(x, y)
    assert made.ok
    assert relative_residual(made, x, y) < 1e-9
    q = y * phi(made.net, x)
    assert bool(((q - 1).abs() < 1e-9).all())
    assert bool((made.lam > 0).all())
    assert bool(((made.slopes >= 0) & (made.slopes <= 1)).all())


def test_norm_identity_balance_and_unit_patterns():
    x, y = sample(HighDimDraw(120), 11, rng(5))
    made = two_neuron(x, y)
    rho2 = float(made.net.rho) ** 2
    assert rho2 == pytest.approx(2 * float(made.lam.sum()), rel=1e-12)
    wt = torch.cat([made.net.weights[0], made.net.biases[0][:, None]], dim=1)
    v = made.net.weights[1][0]
    assert torch.allclose(wt.norm(dim=1), v.abs(), rtol=1e-12)
    assert torch.allclose(v.square(), made.norms, rtol=1e-12)


def test_the_general_certificate_agrees():
    x, y = sample(HighDimDraw(100), 8, rng(1))
    made = two_neuron(x, y)
    found = certify(made.net, x, y, tau=TAU_EXACT)
    assert found.residual < 1e-8
    assert torch.allclose(found.lam, made.lam, rtol=1e-5)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([[0.7]], [1.0]),
        ([[0.4, -1.1, 2.0]], [-1.0]),
        ([[2.0, 0.0, 0.3], [-1.0, 1.5, -0.2]], [1.0, -1.0]),
        ([[1.6], [-1.6]], [-1.0, 1.0]),
    ],
)
def test_one_obtuse_point_per_class_is_the_closed_form(x, y):
    known = one_neuron_per_point(x, y)
    made = two_neuron(known.x, known.y)
    assert made.ok
    assert torch.allclose(made.lam, known.lam, atol=1e-12)
    z = 2 * draw(40, known.x.shape[1])
    assert torch.allclose(phi(made.net, z), phi(known.net, z), atol=1e-12)


@pytest.mark.parametrize("x0", [0.5, 0.9])
def test_a_pair_that_sits_on_the_kinks_has_the_known_slopes(x0):
    known = opposite_pair(x0)
    made = two_neuron(known.x, known.y)
    assert made.ok
    assert torch.allclose(made.lam, known.lam, atol=1e-12)
    other = made.slopes[torch.tensor([0, 1]), torch.tensor([1, 0])]
    assert other.tolist() == pytest.approx([(1 - x0**2) / (1 + x0**2)] * 2)


def test_permuting_points_permutes_multipliers_and_keeps_the_function():
    x, y = sample(HighDimDraw(60), 9, rng(2))
    order = torch.randperm(9, generator=rng(3))
    one, two = two_neuron(x, y), two_neuron(x[order], y[order])
    assert torch.allclose(one.lam[order], two.lam, atol=1e-12)
    z = draw(15, 60)
    assert torch.allclose(phi(one.net, z), phi(two.net, z), atol=1e-10)


def test_flipping_labels_flips_phi_and_rotation_carries_it_along():
    x, y = sample(HighDimDraw(40), 6, rng(4))
    made, flipped = two_neuron(x, y), two_neuron(x, -y)
    z = draw(15, 40)
    assert torch.allclose(phi(made.net, z), -phi(flipped.net, z), atol=1e-10)
    turn = torch.linalg.qr(draw(40, 40)).Q
    turned = two_neuron(x @ turn, y)
    assert torch.allclose(phi(made.net, z), phi(turned.net, z @ turn), atol=1e-9)


def test_one_class_needs_one_neuron():
    x, _ = sample(HighDimDraw(30), 4, rng(6))
    made = two_neuron(x, torch.ones(4, dtype=torch.float64))
    assert made.net.widths == (1,)
    assert relative_residual(made, x, torch.ones(4, dtype=torch.float64)) < 1e-12


def test_too_few_neurons_are_said_and_not_hidden():
    x, y = sample(HighDimDraw(20), 20, rng(20))
    made = two_neuron(x, y)
    assert not made.ok
    q = y * phi(made.net, x)
    assert float(q.min()) == pytest.approx(1, abs=1e-9)
    assert relative_residual(made, x, y) > 1e-3


def test_what_no_pair_of_cones_separates_is_refused_with_a_remedy():
    x, y = sample(HighDimDraw(5), 20, rng(0))
    with pytest.raises(NotSeparableError, match="Raise d"):
        two_neuron(x, y)
    same = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], dtype=torch.float64)
    with pytest.raises(NotSeparableError):
        two_neuron(same, torch.tensor([1.0, -1.0], dtype=torch.float64))


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (torch.zeros(3, 4), torch.ones(2), "expected x"),
        (torch.zeros(0, 4), torch.ones(0), "1 to 500 points"),
        (torch.zeros(2, 4), torch.tensor([1.0, 0.5]), "labels"),
        (torch.full((2, 4), math.nan), torch.ones(2), "finite"),
    ],
)
def test_wrong_input_is_named(x, y, words):
    with pytest.raises(ValueError, match=words):
        two_neuron(x, y)
