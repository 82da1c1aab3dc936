"""The verb tune, and settings of training and attack by name on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from explorer import cli
from explorer.engine.store import load_run
from explorer.tuning import search as tune

NET = ("--preset", "two-points", "--widths", "20", "--steps", "400")
SMALL = (*NET, "--trials", "3", "--restarts", "2", "--m", "4", "--trial-steps", "4")


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    usual = tune.full_length
    monkeypatch.setattr(tune, "full_length", lambda trial: usual(trial, 6, 5))

    def invoke(*arguments, code=0):
        result = CliRunner().invoke(cli.app, [str(a) for a in arguments])
        assert result.exit_code == code, result.stdout + result.stderr
        return result

    return invoke


def test_tune_prints_the_front_the_settings_and_an_honest_verdict(call) -> None:
    text = call("tune", *SMALL, "--out", "front.png").stdout
    assert "Front of 3 trials" in text
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


def test_an_interrupt_keeps_what_is_done(call, monkeypatch) -> None:
    attempt = tune.attempt

    def stopped(target, config, number, params):
        if number == 2:
            raise KeyboardInterrupt
        return attempt(target, config, number, params)

    monkeypatch.setattr(tune, "attempt", stopped)
    result = call("tune", *SMALL, "--log", "s.jsonl", "--json")
    assert len(json.loads(result.stdout)["trials"]) == 2
    assert len(Path("s.jsonl").read_text().splitlines()) == 3


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
    assert "no setting 'colour'" in wrong.stderr


def test_demo_with_the_baseline_and_biases_everywhere(call) -> None:
    found = json.loads(
        call("demo", *NET, "--train-set", "all_biases=True", "--attack", "inversion", "--m", "4",
             "--attack-steps", "5", "--set", "goal=value", "--json").stdout
    )  # fmt: skip
    assert found["network"]["homogeneous"] is False
    assert found["attack"]["candidates"] == 4
    assert "output" in found["attack"]
