"""The verb `membership`: table, JSON, files; rates against hand-counted ones."""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from explorer import cli
from explorer.commands.membership import dims_of
from explorer.engine.membership.experiment import MembershipConfig, membership_experiment
from explorer.research import rates

TINY = ("--width", "40", "--n", "5", "--test", "60", "--trials", "2", "--d", "8,30")


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments, code=0):
        result = CliRunner().invoke(cli.app, ["membership", *arguments])
        assert result.exit_code == code, result.stdout + result.stderr
        return result

    return invoke


def test_prints_a_row_per_dimension_and_writes_csv_and_figures(call):
    result = call(*TINY, "--out", "figures")
    for word in ("|Φ| ≥ m/2", "TPR", "sphere", "on-margin.png"):
        assert word in result.stdout
    with Path("figures/trials.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(r["d"], r["trial"]) for r in rows] == [
        ("8", "0"),
        ("8", "1"),
        ("30", "0"),
        ("30", "1"),
    ]
    assert 0 <= float(rows[0]["tpr_0.1%"]) <= 1
    for name in ("on-margin.png", "fresh-points.png", "roc.png"):
        assert Path("figures", name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("law", ["gaussian", "mixture"])
def test_speaks_json_alone_and_repeats(call, law):
    one, two = (call(*TINY, "--distribution", law, "--json").stdout for _ in range(2))
    assert one == two
    out = json.loads(one)
    assert out["config"]["law"] == law
    assert set(out["summary"]) == {"8", "30"}
    assert len(out["trials"]) == 4
    mean = sum(t["beyond"] for t in out["trials"][:2]) / 2
    assert out["summary"]["8"]["beyond"]["mean"] == pytest.approx(mean)


def test_networks_without_a_margin_are_counted(call):
    """Twenty points of a sphere in space with labels by parity: a narrow network fails."""
    size = ("--width", "40", "--test", "60", "--trials", "2")
    told = call(*size, "--d", "3").stdout
    trials = json.loads(call(*size, "--d", "3", "--json").stdout)["trials"]
    wrong = sum(trial["train_accuracy"] < 1 for trial in trials)
    assert wrong and f"{wrong} of 2 networks" in told
    assert "networks leave" not in call(*TINY).stdout


@pytest.mark.parametrize(
    "wrong",
    [("--d", "no"), ("--d", "9:3"), ("--d", "0"), ("--d", "1:2:3:4"), ("--labels", "component")],
)
def test_mistakes_are_one_line(call, wrong):
    result = call(*wrong, code=2)
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1


def test_dimensions_are_lists_and_ranges_with_their_ends():
    assert dims_of("10,20") == (10, 20)
    assert dims_of("1:4,3,100:300:100") == (1, 2, 3, 4, 100, 200, 300)


def test_roc_by_hand():
    curve = rates.roc(torch.tensor([-4.0, 3.0]), torch.tensor([1.0, -3.5, 0.5, 0.1]))
    # above 3.5 one member and no fresh point; above 3 both and one fresh point
    assert curve.tpr_at(0.0) == 0.5
    assert curve.tpr_at(0.25) == 1.0
    assert curve.auc == pytest.approx(7 / 8)


def test_intervals_are_students_and_skip_what_did_not_separate():
    found = rates.interval([1.0, 2.0, 3.0, math.nan])
    assert found.mean == 2
    assert found.half == pytest.approx(4.302652729911275 / 3**0.5)  # t_0.975 with 2 degrees
    assert math.isnan(rates.interval([math.nan]).mean)
    assert math.isnan(rates.interval([5.0]).low) and rates.interval([5.0]).mean == 5


def test_rated_trials_have_rates():
    config = MembershipConfig(dims=(30,), trials=1, n=5, width=40, test=60)
    (trial,) = membership_experiment(config)
    row = rates.rates(trial)
    assert row["auc"] == rates.roc(trial.members, trial.fresh).auc
    assert {"tpr_0.1%", "tpr_1%"} <= set(row)


def test_without_scikit_learn_the_extra_is_named(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert "margin-explorer[rates]" in call(*TINY, code=2).stderr
    with pytest.raises(ImportError, match="rates"):
        rates.roc(torch.ones(2), torch.ones(2))


@pytest.mark.parametrize(
    ("members", "fresh", "words"),
    [
        (torch.ones(0), torch.ones(2), "both kinds"),
        (torch.ones(2), torch.full((1,), math.nan), "finite"),
    ],
)
def test_rates_refuse_what_they_cannot_rate(members, fresh, words):
    with pytest.raises(ValueError, match=words):
        rates.roc(members, fresh)
