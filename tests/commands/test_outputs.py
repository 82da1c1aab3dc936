"""What a verb cannot write is said before its work, and nothing that was there is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from explorer import cli
from explorer.commands import energy, explain, grid, membership
from explorer.commands import sweep as sweep_verbs
from explorer.engine.store import load_run
from explorer.research import runs as headless
from explorer.research import sweep

SMALL = ("--preset", "two-points", "--widths", "20", "--steps", "400")


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()  # no folder: nothing can be written below it

    def invoke(*arguments, code=0):
        result = CliRunner().invoke(cli.app, [str(a) for a in arguments])
        assert result.exit_code == code, result.output
        return result

    return invoke


@pytest.fixture
def no_work(monkeypatch):
    """Nothing may run."""

    def work(*_, **__):
        raise AssertionError("the work was begun")

    for owner, name in (
        (headless, "train"), (headless, "attack"), (grid, "sweep"), (sweep_verbs, "sweep"),
        (membership, "membership_experiment"), (explain, "first_explained"), (energy, "Answers"),
        (sweep, "run_experiment"),
    ):  # fmt: skip
        monkeypatch.setattr(owner, name, work)
    monkeypatch.setattr("explorer.commands.digits.image_runs.train_and_attack", work)


@pytest.mark.parametrize(
    "words",
    [
        ("demo", *SMALL, "--out"),
        ("train", *SMALL, "--out"),
        ("univariate", "--out"),
        ("digits", "--out"),
        ("tune", *SMALL, "--log"),
        ("tune", *SMALL, "--out"),
        ("energy", "--picture"),
        ("explain", "--out"),
        ("explain", "--experiment", "longer", "--out"),
        ("grid", "--out"),
        ("grid", "--csv"),
        ("grid", "--rows"),
        ("bilevel", "--rows"),
        ("membership", "--out"),
        ("sweep", "--out"),
        ("sweep", "--out", "rows.jsonl", "--csv"),
        ("arena", "--out"),
    ],
)
def test_what_cannot_be_written_is_said_before_the_work(call, no_work, words) -> None:
    result = call(*words, "file/x", code=2)
    (line,) = result.stderr.splitlines()
    assert "cannot write" in line and "file/x" in line


@pytest.mark.parametrize(
    "words", [("grid", "--out"), ("energy", "--picture"), ("explain", "--out")]
)
def test_a_kind_of_picture_that_there_is_not_is_said_before_the_work(call, no_work, words) -> None:
    result = call(*words, "p.xyz", code=2)
    assert "p.xyz" in result.stderr and "Try p.png" in result.stderr


def test_two_outputs_are_two_files(call, no_work) -> None:
    assert "one file" in call("sweep", "--out", "a", "--csv", "./a", code=2).stderr
    assert "one file" in call("tune", *SMALL, "--log", "a", "--out", "a", code=2).stderr


def test_an_attack_looks_at_its_file_first(call, monkeypatch) -> None:
    call("train", *SMALL, "--out", "r.safetensors")
    monkeypatch.setattr(headless, "attack", lambda *a, **k: pytest.fail("the work was begun"))
    assert "file/x" in call("attack", "r.safetensors", "--out", "file/x", code=2).stderr
    assert "directory" in call("attack", "r.safetensors", "--out", ".", code=2).stderr


def test_looking_at_a_file_leaves_it_as_it_is(call) -> None:
    Path("mine.safetensors").write_text("mine")
    call("train", *SMALL, "--steps", "0", "--out", "mine.safetensors", code=1)
    assert Path("mine.safetensors").read_text() == "mine"
    call("train", *SMALL, "--steps", "0", "--out", "none.safetensors", code=1)
    assert not Path("none.safetensors").exists()


def test_train_keeps_the_runs_that_nobody_named(call) -> None:
    first, second, third = (
        json.loads(call("train", *SMALL, "--seed", seed, "--json").stdout) for seed in (1, 2, 3)
    )
    assert (first["run"], first["before"]) == ("run.safetensors", None)
    assert (second["before"], third["before"]) == ("run-1.safetensors", "run-2.safetensors")
    runs = ("run-1.safetensors", "run-2.safetensors", "run.safetensors")
    assert [load_run(name).seed for name in runs] == [1, 2, 3]
    assert "run-3.safetensors" in call("train", *SMALL).stdout
    named = json.loads(call("train", *SMALL, "--out", "run.safetensors", "--json").stdout)
    assert named["before"] is None and not Path("run-4.safetensors").exists()
