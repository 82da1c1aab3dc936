"""Tuning: what an attacker can compute, resumed searches, fronts, files, and no truth."""

from __future__ import annotations

import ast
import math
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch

from explorer.engine.attacks import kkt
from explorer.engine.attacks.claims import Report, agreement, survivors
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.network import Network
from explorer.research import tuning as tune
from explorer.research.records import RowFile
from explorer.research.tuning import Trial, TuneConfig
from tests.engine.closed_forms import three_at_120
from tests.engine.pretend import NAME, Pretend

TARGET = Target(three_at_120([1.0, 1.0, -1.0]).net)
SMALL = TuneConfig(trials=4, restarts=2, m=4, steps=3)


def report(*points, label=1.0):
    x = torch.tensor(points, dtype=torch.float64).reshape(-1, 2)
    return Report(x, torch.full((len(x),), label, dtype=torch.float64), torch.ones(len(x)).double())


def same(a: Trial, b: Trial) -> bool:
    return (a.number, a.params, a.config, a.residual, a.agreement, a.claims, a.failure) == (
        b.number, b.params, b.config, b.residual, b.agreement, b.claims, b.failure
    )  # fmt: skip


def row(number, residual, agreed, failure=""):
    return Trial(number, {}, KKTConfig(), residual, agreed, 0.0, failure)


def search_file(path: Path, target=TARGET, config=SMALL) -> RowFile:
    return RowFile(path, tune.search_rows(target, config))


# --- agreement ------------------------------------------------------------------------------
def test_restarts_that_claim_the_same_points_agree_on_all_of_them() -> None:
    one = report((0.0, 1.0), (2.0, -1.0), (0.5, 0.5))
    assert agreement([one, one, one]) == 3


def test_agreement_counts_pairs_of_one_label_within_the_radius() -> None:
    a = report((0.0, 0.0), (1.0, 0.0), (5.0, 5.0))
    b = report((0.02, 0.0), (1.0, 0.04))
    assert survivors(a, b) == survivors(b, a) == 1
    assert survivors(a, report((0.0, 0.0), label=-1.0)) == 0
    assert agreement([a, b]) == pytest.approx(1 * 2 / 5)


def test_one_claim_is_not_paired_twice() -> None:
    assert survivors(report((0.0, 0.0)), report((0.01, 0.0), (-0.01, 0.0))) == 1


def test_claims_that_nobody_repeats_lower_the_agreement() -> None:
    one = report((0.0, 1.0), (2.0, -1.0))
    more = report((0.0, 1.0), (2.0, -1.0), (9.0, 9.0), (8.0, -9.0))
    assert agreement([one, more]) < agreement([one, one])


def test_agreement_is_a_mean_over_all_pairs_of_restarts() -> None:
    a, b = report((0.0, 0.0), (1.0, 0.0)), report((0.025, 0.0), (1.0, 0.0))
    c = report((-0.02, 0.0))  # near one of a, of b none: 2, 1 and 0 survive
    assert agreement([a, b, c]) == pytest.approx((2 + 1 + 0) / 3 * (1 + 2 / 3 + 0) / 3)


def test_agreement_of_nothing_is_none() -> None:
    assert agreement([report(), report()]) == 0
    assert agreement([report(), report((0.0, 1.0))]) == 0
    with pytest.raises(ValueError, match="two restarts"):
        agreement([report()])


# --- search ---------------------------------------------------------------------------------
def test_a_trial_is_the_mean_of_restarts_from_noises_of_their_own() -> None:
    config = replace(SMALL, restarts=3, m=12, steps=120, seed=1)
    trial = tune.attempt(TARGET, config, 5, dict(tune.USUAL))
    ends = []
    for noise in (1001, 1002, 1003):
        state = kkt.init(TARGET, trial.config, torch.Generator().manual_seed(noise))
        *_, state = kkt.iterate(TARGET, state, trial.config)
        ends.append(state)
    left = [float(state.l_stationary) for state in ends]
    found = [kkt.report(TARGET, state, trial.config) for state in ends]
    assert len(set(left)) == 3 and len({len(r.x) for r in found}) > 1
    assert trial.residual == pytest.approx(sum(left) / 3)
    assert trial.claims == pytest.approx(sum(len(r.x) for r in found) / 3)
    assert trial.agreement == pytest.approx(agreement(found))


@pytest.mark.parametrize("multipliers", ["joint", "projected"])
def test_on_a_device_a_trial_is_that_of_the_cpu(multipliers, monkeypatch) -> None:
    usual = tune.settings_of
    monkeypatch.setattr(tune, "settings_of", lambda *a: replace(usual(*a), multipliers=multipliers))
    config = replace(SMALL, restarts=3, m=6, steps=10)
    plain = tune.attempt(TARGET, config, 0, dict(tune.USUAL))
    with Pretend() as device:
        sent = tune.attempt(TARGET, config, 0, dict(tune.USUAL), device=NAME)
        assert 0 < sum(device.reads.values()) <= 3 * 20  # what comes back of each restart
    assert sent.residual == pytest.approx(plain.residual, rel=1e-6)
    assert sent.claims == plain.claims and sent.agreement == pytest.approx(plain.agreement)
    hot = {"sigma_x": 1e200, "rate_x": 1.0, "lam_min": 0.1, "relu_alpha": 20.0}
    with Pretend():
        assert tune.attempt(TARGET, replace(config, search="random"), 0, hot, device=NAME).failure


def known_answer(target, config, number, params, progress, device):
    """A trial whose two goals are best at the largest lr_x; every fourth one fails."""
    goal = math.log10(params["lr_x"])
    failure = "diverged" if number % 4 == 3 else ""
    return Trial(number, params, KKTConfig(), math.inf if failure else -goal, goal, 0.0, failure)


def test_auto_goes_where_the_residual_is_small_and_the_agreement_large(monkeypatch) -> None:
    monkeypatch.setattr(tune, "attempt", known_answer)
    trials = list(tune.tune(TARGET, replace(SMALL, trials=40)))
    rates = [t.params["lr_x"] for t in trials]
    assert len(set(rates)) == 40
    middle = math.sqrt(1e-3 * 0.3)
    assert 1 < sum(rate > middle for rate in rates[1:12]) < 10
    assert sum(rate > middle for rate in rates[-15:]) > 12


def test_a_search_with_failures_is_resumed_as_if_unbroken(monkeypatch) -> None:
    monkeypatch.setattr(tune, "attempt", known_answer)
    config = replace(SMALL, trials=16)
    whole = list(tune.tune(TARGET, config))
    rest = list(tune.tune(TARGET, config, whole[:13]))
    assert [t.params for t in rest] == [t.params for t in whole[13:]]


@pytest.mark.parametrize("search", ["auto", "random"])
def test_a_resumed_search_is_an_unbroken_one(search) -> None:
    config = replace(SMALL, search=search, trials=10)  # beyond the startup trials of TPE
    whole = list(tune.tune(TARGET, config))
    begun = list(islice(tune.tune(TARGET, config), 3))
    rest = list(tune.tune(TARGET, config, begun))
    assert [t.number for t in whole] == list(range(10))
    assert all(same(a, b) for a, b in zip(whole, begun + rest, strict=True))
    other = next(tune.tune(TARGET, replace(config, seed=1), begun[:1]))
    assert other.params != whole[1].params


def test_the_first_trial_of_auto_are_the_defaults() -> None:
    first = next(tune.tune(TARGET, SMALL))
    assert first.config == KKTConfig(m=4, steps=3)


def test_random_draws_from_the_published_ranges() -> None:
    config = replace(SMALL, search="random", trials=30, steps=1)
    trials = list(tune.tune(TARGET, config))
    ranges = {"sigma_x": (1e-6, 0.1), "rate_x": (1e-5, 1), "lam_min": (0.01, 0.5),
              "relu_alpha": (10, 500)}  # fmt: skip
    for name, (low, high) in ranges.items():
        drawn = [t.params[name] for t in trials]
        assert all(low <= v <= high for v in drawn)
        middle = math.sqrt(low * high) if high / low > 1e3 else (low + high) / 2
        assert 6 < sum(v < middle for v in drawn) < 24
    assert all(t.config.optimizer == "sgd" and t.config.weight_margin == 0 for t in trials)


def test_a_failed_trial_is_a_row_and_the_search_goes_on() -> None:
    hot = {"sigma_x": 0.1, "rate_x": 1.0, "lam_min": 0.1, "relu_alpha": 100.0}
    huge = Target(Network(tuple(1e40 * w for w in TARGET.net.weights), TARGET.net.biases))
    failed = tune.attempt(huge, replace(SMALL, search="random"), 0, hot)
    assert failed.failure
    assert math.isinf(failed.residual)
    following = next(tune.tune(TARGET, replace(SMALL, search="random"), [failed]))
    assert following.number == 1


def test_the_front_and_the_best() -> None:
    trials = [row(0, 0.5, 3.0), row(1, 0.1, 1.0), row(2, 0.2, 1.0), row(3, 0.6, 5.0),
              row(4, math.inf, 0.0, "diverged"), row(5, 0.7, 5.0)]  # fmt: skip
    assert [t.number for t in tune.front(trials)] == [1, 0, 3]
    assert tune.best(trials).number == 3
    assert tune.best(trials, "random").number == 1
    assert tune.best(trials[4:5]) is None
    assert tune.front(trials[4:5]) == []


def test_a_trial_at_full_length_keeps_its_knobs() -> None:
    trial = next(tune.tune(TARGET, SMALL))
    assert tune.full_length(trial) == KKTConfig()


# --- file -----------------------------------------------------------------------------------
def test_a_search_lives_on_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    kept = search_file(path)
    assert not kept.rows
    trials = list(islice(tune.tune(TARGET, SMALL), 2))
    for trial in (*trials, row(2, math.inf, 0.0, "diverged")):
        kept.append(tune.row_of(trial))
    with path.open("a") as file:
        file.write('{"number": 3, "par')  # killed while writing
    kept = search_file(path, config=replace(SMALL, trials=9))
    read = [tune.trial_of(each) for each in kept.rows.values()]
    assert all(same(a, b) for a, b in zip(read[:2], trials, strict=True))
    assert math.isinf(read[2].residual)
    kept.append(tune.row_of(row(3, 0.5, 1.0)))
    assert len(search_file(path).rows) == 4


def test_a_file_of_another_search_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    search_file(path)
    with pytest.raises(ValueError, match="differs in seed"):
        search_file(path, config=replace(SMALL, seed=3))
    with pytest.raises(ValueError, match="differs in weights"):
        search_file(path, Target(three_at_120([1.0, 1.0, 1.0]).net))
    path.write_text("x1,x2,y\n")
    with pytest.raises(ValueError, match="no file of a search"):
        search_file(path)


def test_a_log_with_only_its_head_is_kept_and_a_cut_head_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    search_file(path)
    head = path.read_text()
    assert not search_file(path).rows
    for text in (head, head[:9], ""):
        path.write_text(text)
        assert not search_file(path).rows
        assert path.read_text() == head
    # a head of another search may be whole but for its end: nothing says so, and nothing is lost
    other = head.replace('"seed": 0', '"seed": 5')[:-1]
    path.write_text(other)
    with pytest.raises(ValueError, match="no file of a search"):
        search_file(path)
    assert path.read_text() == other


@pytest.mark.parametrize("text", ["[1]\n", "3\n", "{}\n", "hello", "hello\n", "\xff\n", "HEADx\n",
                                  "HEAD[1]\n", "HEAD{}\n", 'HEAD{"residual":1}\n'])  # fmt: skip
def test_what_is_no_search_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "search.jsonl"
    search_file(path)
    text = text.replace("HEAD", path.read_text())
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match="no file of a search"):
        search_file(path)
    assert path.read_text(encoding="latin-1") == text


# --- walls ----------------------------------------------------------------------------------
def test_no_truth_is_in_reach() -> None:
    tree = ast.parse(Path(tune.__file__).read_text())
    taken = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    ours = {m for m in taken if m and m.startswith("explorer.")}
    files = {  # none of them holds any truth
        f"explorer.{m}" for m in ("research.records", "engine.store.codec", "research.devices")
    }
    assert ours == files | {
        f"explorer.{m}"
        for m in (
            "engine.extras",
            "engine.progress",
            "engine.settings",
            "engine.status",
            "research.words",
        )
    } | {f"explorer.engine.attacks{m}" for m in ("", ".claims", ".kkt", ".kkt.config", ".target")}


def test_without_optuna_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"margin-explorer\[tune\]"):
        next(tune.tune(TARGET, SMALL))


@pytest.mark.parametrize(
    ("changes", "word"),
    [({"search": "grid"}, "search"), ({"restarts": 1}, "restarts"), ({"m": 3}, "even"),
     ({"trials": 0}, "trials"), ({"steps": 0}, "steps"), ({"seed": -1}, "seed")],
)  # fmt: skip
def test_what_cannot_run_is_refused(changes, word) -> None:
    with pytest.raises(ValueError, match=word):
        TuneConfig(**changes)


@pytest.mark.parametrize("seed", [0, 7])
def test_the_verdict_has_a_noise_that_no_trial_had(seed, monkeypatch) -> None:
    used, real = [], tune.TUNED

    def watched(target, config, generator, start):
        used.append(generator.initial_seed())
        return real.first(target, config, generator, start)

    monkeypatch.setattr(tune, "TUNED", replace(real, first=watched))
    config = replace(SMALL, seed=seed)
    tune.attempt(TARGET, config, 0, tune.USUAL)
    fresh = {tune.fresh_seed(replace(config, seed=other)) for other in range(20)}
    assert len(used) == config.restarts and not fresh & set(used)
