"""The command's start, its one spelling of options, and what a pipe gets of it."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from rich.table import Table
from typer.testing import CliRunner

import explorer
import margin_explorer
from explorer.cli import app, load_verb
from explorer.commands import READER_LEFT, VERBS
from explorer.commands.base import Printer

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("torch", "numpy", "scipy", "matplotlib", "tqdm")  # typer itself takes pydantic
LOADED = f"print([n for n in {HEAVY!r} if n in sys.modules], file=sys.stderr)"
HELP = f"""
import sys
from explorer.cli import main
try:
    main()
finally:
    {LOADED}
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}


def process(*words: str, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], env=ENVIRONMENT, text=True, check=False, timeout=300, **more
    )


# --- the start ------------------------------------------------------------------------------
@pytest.mark.parametrize("word", ["--help", "--version", "no-such-verb"])
def test_what_calls_no_verb_loads_no_library_of_the_engine(word) -> None:
    assert process("-c", HELP, word, capture_output=True).stderr.endswith("[]\n")


def test_importing_the_package_loads_nothing_until_a_name_is_asked_for() -> None:
    program = f"import sys, explorer, margin_explorer; {LOADED}; explorer.kkt; {LOADED}"
    before, after = process("-c", program, capture_output=True).stderr.splitlines()
    assert before == "[]" and "torch" in after


def test_the_table_of_verbs_is_that_of_their_files() -> None:
    files = sorted({file for file, _ in VERBS.values()})
    folder = ROOT / "explorer" / "commands"
    assert files == sorted(
        p.stem for p in folder.glob("*.py") if "\nVERBS" in p.read_text() and p.stem != "__init__"
    )
    there = {}
    for file in files:
        for verb, function in import_module(f"explorer.commands.{file}").VERBS.items():
            there[verb] = (file, inspect.getdoc(function).splitlines()[0])
    assert there == VERBS


def test_help_shows_every_verb_in_the_words_of_its_own_help() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    for verb, (_, words) in VERBS.items():
        assert verb in shown and words in shown
        assert load_verb(verb).help.startswith(words)


# --- the package ----------------------------------------------------------------------------
def test_public_names_are_the_same_for_a_reader_of_types() -> None:
    tree = ast.parse(Path(explorer.__file__).read_text(encoding="utf-8"))
    (typed,) = (node for node in tree.body if isinstance(node, ast.If))
    names = {(n.module, a.name) for n in typed.body for a in n.names}
    assert {name for _, name in names} == {
        *explorer.__all__,
        "app",
        "digits",
        "lessons",
        "membership",
    } - {"__version__"}
    for module, name in names:
        home = import_module(module)
        found = getattr(home, name, None) or import_module(f"{module}.{name}")
        assert getattr(explorer, name) is found


def test_dir_lists_what_was_not_yet_asked_for() -> None:
    program = "import explorer; print({*explorer.__all__, 'app'} <= set(dir(explorer)))"
    assert process("-c", program, capture_output=True).stdout == "True\n"


def test_the_other_name_is_the_same_package() -> None:
    assert margin_explorer.__all__ == explorer.__all__
    for name in explorer.__all__:
        assert getattr(margin_explorer, name) is getattr(explorer, name)
    with pytest.raises(AttributeError, match="nothing"):
        _ = margin_explorer.nothing
    taken: dict = {}
    exec("from margin_explorer import *", taken)
    assert taken["preset"]("moons", n=4).n == 4
    shown = process("-m", "margin_explorer", "--version", capture_output=True).stdout
    assert shown.strip() == explorer.__version__


def test_both_packages_say_that_they_are_typed() -> None:
    for package in (explorer, margin_explorer):
        assert (Path(package.__file__).parent / "py.typed").is_file()


# --- one spelling ---------------------------------------------------------------------------
def options(verb: str) -> dict[str, str]:
    return {option: p.help or "" for p in load_verb(verb).params for option in p.opts}


def test_every_verb_that_draws_has_a_seed_of_one_name() -> None:
    for verb in VERBS:
        assert "--seeds" not in options(verb)
    without = {verb for verb in VERBS if "--seed" not in options(verb)}
    assert without == {"repeat", "film", "show", "serve", "settings"}, "a link holds its seeds"


def test_every_verb_that_trains_on_points_of_the_plane_takes_a_file_of_them() -> None:
    training = {"demo", "train", "energy", "explain", "tune", "univariate"}
    for verb in training:
        assert {"--data", "--device"} <= set(options(verb)), verb
    for name in ("--data", "--device", "--json"):
        told = {options(v)[name] for v in VERBS if name in options(v) and v != "settings"}
        assert len(told) == 1, told


def test_explain_takes_points_of_a_file(tmp_path) -> None:
    points = tmp_path / "mine.csv"
    points.write_text("x1,x2,y\n0.5,0.25,1\n-0.5,0,-1\n0,-1,-1\n")
    words = ["explain", "--data", str(points), "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["points"] == 3


@pytest.mark.parametrize("verb", ["energy", "explain", "tune", "univariate"])
def test_a_device_that_is_not_there_is_refused(verb, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, [verb, "--device", "mps"])
    assert result.exit_code == 2 and "Take --device cpu" in result.stderr


@pytest.mark.parametrize("words", [["--seeds", "3-1"], ["--seeds=3-1"], ["--seed", "3-1"]])
def test_the_old_name_of_seeds_is_still_understood(words) -> None:
    for verb in ("grid", "arena"):
        result = CliRunner().invoke(app, [verb, *words])
        assert result.exit_code == 2 and "seeds rises" in result.stderr


def test_a_sweep_without_a_file_asks_for_one_and_writes_none(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in ([], ["--set", "seed=0"], ["--fresh", "--csv", "rows.csv"]):
        result = CliRunner().invoke(app, ["sweep", *words])
        assert result.exit_code == 2 and "--out rows.jsonl" in result.stderr
    assert not list(tmp_path.iterdir())


# --- pipes ----------------------------------------------------------------------------------
@pytest.mark.parametrize("words", [("settings", "kkt"), ("settings", "kkt", "--json")])
def test_a_reader_that_leaves_ends_the_command_without_a_word(words) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = process("-m", "explorer", *words, stdout=write, stderr=subprocess.PIPE)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (READER_LEFT, "")


def test_a_table_in_a_pipe_is_not_cut(capsys) -> None:
    table = Table(*map(str, range(40)))
    table.add_row(*(f"{k:_>30}" for k in range(40)))
    Printer().print(table)
    shown = capsys.readouterr().out
    assert "…" not in shown
    for k in range(40):
        assert f"{k:_>30}" in shown


def test_no_verb_prints_its_table_by_a_console_of_its_own() -> None:
    for path in (ROOT / "explorer" / "commands").glob("*.py"):
        assert "Console(" not in path.read_text(encoding="utf-8"), path
