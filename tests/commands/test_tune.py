"""The verb tune, and settings of training and attack by name on the command line."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from explorer import cli
from explorer.commands import tune as verb
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.store import load_run
from explorer.research import runs
from explorer.research import tuning as tune
from explorer.research.records import lock

NET = ("--preset", "two-points", "--widths", "20", "--steps", "400")
SMALL = (*NET, "--trials", "3", "--restarts", "2", "--m", "4", "--trial-steps", "4")


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    usual = tune.full_length
    # The settings taken and the defaults are compared by attacks of a few steps.
    monkeypatch.setattr(tune, "full_length", lambda trial: usual(trial, 6, 5))
    monkeypatch.setattr(verb, "KKTConfig", lambda: KKTConfig(m=6, steps=5))

    def invoke(*arguments, code=0):
        result = CliRunner().invoke(cli.app, [str(a) for a in arguments])
        assert result.exit_code == code, result.stdout + result.stderr
        return result

    return invoke


def test_tune_prints_the_front_the_settings_and_an_honest_verdict(call) -> None:
    text = call("tune", *SMALL, "--out", "front.png").stdout
    assert "3 trials" in text
    assert "settings taken" in text
    assert "tuned: verdict" in text
    assert "defaults: verdict" in text
    assert Path("front.png").stat().st_size > 5000


def test_tune_goes_on_from_its_log(call) -> None:
    first = json.loads(call("tune", *SMALL, "--log", "s.jsonl", "--json").stdout)
    more = (*SMALL[:-8], "--trials", "5", *SMALL[-6:])
    second = json.loads(call("tune", *more, "--log", "s.jsonl", "--json").stdout)
    assert second["trials"][:3] == first["trials"]
    assert len(second["trials"]) == 5
    assert second["best"] in [t["number"] for t in second["trials"]]
    assert second["front"]
    assert (
        "another search" in call("tune", *SMALL, "--seed", "4", "--log", "s.jsonl", code=2).stderr
    )
    with lock(Path("s.jsonl")):
        refused = call("tune", *more, "--log", "s.jsonl", code=2)
    assert "writing s.jsonl" in refused.stderr


def stop_at(monkeypatch, last) -> None:
    """An interrupt in the trial `last`; no full attack may begin after it."""
    attempt = tune.attempt

    def stopped(target, config, number, params, progress, device):
        if number == last:
            raise KeyboardInterrupt
        return attempt(target, config, number, params, progress, device)

    monkeypatch.setattr(tune, "attempt", stopped)
    monkeypatch.setattr(runs, "attack", lambda *a, **k: pytest.fail("a full attack began"))


def test_an_interrupt_keeps_what_is_done_and_ends(call, monkeypatch) -> None:
    stop_at(monkeypatch, 2)
    result = call("tune", *SMALL, "--log", "s.jsonl", "--json", code=130)
    assert len(json.loads(result.stdout)["trials"]) == 2
    assert len(Path("s.jsonl").read_text().splitlines()) == 3
    assert "2 trials" in result.stderr
    result = call("tune", *SMALL, code=130)
    assert "--log FILE" in result.stderr and "settings taken" in result.stdout


def test_an_interrupt_before_the_first_trial_says_so(call, monkeypatch) -> None:
    stop_at(monkeypatch, 0)
    result = call("tune", *SMALL, code=130)
    assert "first trial" in result.stderr and result.stdout == ""


def test_an_interrupt_of_any_verb_is_one_line(call, monkeypatch) -> None:
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "train", stopped)
    assert call("train", *NET, code=130).stderr == "margin-explorer: stopped\n"


def test_a_search_whose_trials_all_fail_exits_with_1(call, monkeypatch) -> None:
    def failed(target, config, number, params, progress, device):
        return tune.Trial(number, params, tune.KKTConfig(), math.inf, 0.0, 0.0, "diverged")

    monkeypatch.setattr(tune, "attempt", failed)
    assert "trial failed" in call("tune", *SMALL, code=1).stderr


def test_a_comparison_is_printed(call) -> None:
    found = json.loads(call("tune", *SMALL, "--json").stdout)
    assert "which found" in found["comparison"]
    text = " ".join(call("tune", *SMALL).stdout.replace("│", " ").split())
    assert "tuned settings" in text


def test_a_margin_is_used_or_spoken_of(call) -> None:
    call("train", *NET, "--out", "run.safetensors")
    tail = SMALL[-8:]
    for words in (("--margin", "nan"), ("--margin", "-1")):
        assert "must be" in call("tune", "run.safetensors", *tail, *words, code=2).stderr
    told = json.loads(call("tune", "run.safetensors", *tail, "--margin", "3", "--json").stdout)
    assert told["note"].startswith("The margin")
    assert "a file" in call("tune", *SMALL, "--margin", "3", code=2).stderr


def test_tune_on_a_file_and_the_published_draws(call) -> None:
    call("train", *NET, "--out", "run.safetensors")
    tail = SMALL[-8:]
    found = json.loads(
        call("tune", "run.safetensors", *tail, "--search", "random", "--json").stdout
    )
    assert found["attacks"]["tuned"]["verdict"]
    assert all(t["config"]["optimizer"] == "sgd" for t in found["trials"])


def test_stretches_of_the_training_by_name(call) -> None:
    more = ("--train-set", "all_biases=True", "--train-set", "init=standard")
    text = call("train", *NET, *more, "--train-set", "batch=1").stdout
    assert "no theorem" in " ".join(text.replace("│", " ").split())
    config = load_run(Path("run.safetensors")).train_config
    assert (config.all_biases, config.init, config.batch) == (True, "standard", 1)
    wrong = call("train", *NET, "--train-set", "colour=red", code=2)
    assert "'colour'" in wrong.stderr


def test_demo_with_the_baseline_and_biases_everywhere(call) -> None:
    found = json.loads(
        call("demo", *NET, "--train-set", "all_biases=True", "--attack", "inversion", "--m", "4",
             "--attack-steps", "5", "--set", "goal=value", "--json").stdout
    )  # fmt: skip
    assert found["network"]["homogeneous"] is False
    assert found["attack"]["candidates"] == 4
    assert "output" in found["attack"]
