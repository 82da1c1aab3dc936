"""One spelling of where points come from, where a run is made, and what it is drawn from."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from explorer import cli
from explorer.commands import VERBS

POINTS = "x1,x2,y\n1.0,0.5,1\n-0.5,0.25,-1\n0.75,-1.0,1\n-1.0,-0.5,-1\n"
DATA = {"demo", "train", "weight-decay", "energy", "explain", "tune", "univariate", "grid",
        "bilevel", "sweep", "arena"}  # fmt: skip
DEVICE = {"audit", "demo", "train", "attack", "weight-decay", "energy", "explain", "tune",
          "univariate", "grid", "sweep", "arena", "digits"}  # fmt: skip
SEEDED = DATA | DEVICE | {"membership"}
FEW = ("--set", "attack_config.m=4", "--set", "attack_config.steps=5")


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("points.csv").write_text(POINTS)

    def called(*words: str, code: int = 0):
        result = CliRunner().invoke(cli.app, list(words))
        assert result.exit_code == code, result.output
        return result

    return called


@pytest.mark.parametrize(
    ("option", "verbs"), [("--data", DATA), ("--device", DEVICE), ("--seed", SEEDED)]
)
def test_a_verb_that_can_take_it_spells_it_so(option: str, verbs: set[str]) -> None:
    options = {}
    for verb, (module, _) in VERBS.items():
        app = typer.Typer()
        app.command()(import_module(f"explorer.commands.{module}").VERBS[verb])
        options[verb] = {name for each in typer.main.get_command(app).params for name in each.opts}
    assert {verb for verb, names in options.items() if option in names} == verbs


def test_the_help_of_a_verb_is_the_first_line_of_its_docstring() -> None:
    """It is read from the source: a verb is one file, and nothing else names it."""
    for verb, (module, words) in VERBS.items():
        function = import_module(f"explorer.commands.{module}").VERBS[verb]
        assert function.__doc__.partition("\n")[0] == words
    for path in (Path(cli.__file__).parent / "commands").glob("[!_]*.py"):
        offered = getattr(import_module(f"explorer.commands.{path.stem}"), "VERBS", {})
        assert {verb for verb, (module, _) in VERBS.items() if module == path.stem} == {*offered}


def test_a_sweep_runs_on_points_of_a_file_and_refuses_them_once_changed(call) -> None:
    words = (
        "sweep", "--data", "points.csv", "--seed", "0-1", "--executor", "threads", *FEW,
        "--set", "steps=300", "--set", "widths=10", "--out", "rows.jsonl", "--json",
    )  # fmt: skip
    assert json.loads(call(*words).stdout)["done"] == 2
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert {row["trial"]["seed"] for row in rows} == {0, 1}
    assert all(row["result"]["n"] == 4 for row in rows)
    assert json.loads(call(*words).stdout)["done"] == 2  # goes on from its file
    assert len(Path("rows.jsonl").read_text().splitlines()) == 2
    Path("points.csv").write_text(POINTS + "0.2,0.9,1\n")
    call(*words)  # other content is another row
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert [row["result"]["n"] for row in rows] == [4, 4, 5, 5]


def test_a_grid_and_the_bilevel_verb_run_on_points_of_a_file(call) -> None:
    done = call("grid", "--data", "points.csv", "--side", "2", "--set", "steps=3", "--json")
    assert len(json.loads(done.stdout)["cells"]) == 3
    given = ("--set", "steps=2", "--set", "width=3", "--set", "mu=0.1", "--json")
    assert (
        json.loads(call("bilevel", "--data", "points.csv", *given).stdout)["data"] == "points.csv"
    )
    for words in (("--n", "5"), ("--preset", "xor"), ("--digits",)):
        refused = call("grid", "--data", "points.csv", *words, code=2)
        assert "--data" in refused.stderr


def test_a_device_that_is_not_there_is_said_before_the_work(call, monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for words in (("grid",), ("sweep", "--out", "rows.jsonl"), ("arena",), ("digits",)):
        assert "no cuda" in call(*words, "--device", "cuda", code=2).stderr
    assert not Path("rows.jsonl").exists()
