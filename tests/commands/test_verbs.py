"""Every verb by the tables of tests/verbs.py: what it prints, what it refuses, how it ends."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from explorer import cli
from explorer.cli import load_verb
from explorer.commands import VERBS, energy, explain, grid, membership
from explorer.commands import sweep as sweep_verbs
from explorer.research import runs, sweep
from tests.commands.conftest import answer
from tests.verbs import FAILED, FILES, REFUSED, SHOWN, UNWRITABLE, USAGE

DATA = {"demo", "train", "weight-decay", "energy", "explain", "tune", "univariate", "grid",
        "bilevel", "sweep", "arena", "census"}  # fmt: skip
DEVICE = DATA - {"bilevel"} | {"audit", "attack", "digits"}
SEEDED = set(VERBS) - {"repeat", "film", "show", "serve", "settings"}  # a link holds its seeds


@pytest.mark.parametrize(("line", "words", "keys"), SHOWN)
def test_a_verb_prints_a_table_or_json_alone(call, line: str, words: str, keys: str) -> None:
    shown, held = call(line), call(f"{line} --json").json
    missing = [word for word in words.split(", ") if word not in shown.words]
    assert not missing and set(keys.split(", ")) <= set(held)


@pytest.mark.parametrize(("line", "words"), REFUSED)
def test_a_mistake_is_one_line_and_ends_with_2(call, tmp_path, line: str, words: str) -> None:
    assert words in call(line, code=2).line
    assert {path.name for path in tmp_path.iterdir()} == set(FILES)


@pytest.mark.parametrize("line", USAGE)
def test_usage_is_explained_with_2(call, line: str) -> None:
    told = call(line, code=2)
    assert told.out == "" and "Usage" in told.err


@pytest.mark.parametrize(("line", "words"), FAILED)
def test_a_run_that_fails_ends_with_1(call, line: str, words: str) -> None:
    assert words in call(line, code=1).line
    assert not Path("run.safetensors").exists()


# --- files that cannot be written ---------------------------------------------------------------
@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may run."""

    def work(*_: object, **__: object) -> None:
        raise AssertionError("the work was begun")

    for owner, name in (
        (runs, "train"), (runs, "attack"), (grid, "sweep"), (sweep_verbs, "sweep"),
        (membership, "membership_experiment"), (explain, "first_explained"), (energy, "Answers"),
        (sweep, "run_experiment"),
    ):  # fmt: skip
        monkeypatch.setattr(owner, name, work)
    monkeypatch.setattr("explorer.commands.digits.image_runs.train_and_attack", work)


@pytest.mark.parametrize("line", UNWRITABLE)
def test_what_cannot_be_written_is_said_before_the_work(call, no_work, line: str) -> None:
    told = call(line, "file/x", code=2).line
    assert "cannot write" in told and "file/x" in told


def test_an_attack_looks_at_its_file_first(call, no_work, saved: Path) -> None:
    assert "file/x" in call("attack", saved, "--out", "file/x", code=2).line
    assert "directory" in call("attack", saved, "--out", ".", code=2).line


def test_looking_at_a_file_leaves_it_as_it_is(call) -> None:
    Path("mine").write_text("mine")
    for name in ("mine", "none"):
        call("train --preset two-points --widths 20 --steps 0 --out", name, code=1)
    assert Path("mine").read_text() == "mine" and not Path("none").exists()


# --- one spelling --------------------------------------------------------------------------------
def options(verb: str) -> dict[str, str]:
    return {name: p.help or "" for p in load_verb(verb).params for name in p.opts}


def test_the_table_of_verbs_is_that_of_their_files_and_help_is_their_first_line() -> None:
    """It is read from the source: a verb is one file, and nothing else names it."""
    shown = answer("--help").words
    for verb, (module, words) in VERBS.items():
        function = import_module(f"explorer.commands.{module}").VERBS[verb]
        assert function.__doc__.partition("\n")[0] == words
        assert load_verb(verb).help.startswith(words) and verb in shown
    for path in (Path(cli.__file__).parent / "commands").glob("[!_]*.py"):
        offered = getattr(import_module(f"explorer.commands.{path.stem}"), "VERBS", {})
        assert {verb for verb, (module, _) in VERBS.items() if module == path.stem} == {*offered}
        assert "Console(" not in path.read_text(encoding="utf-8")  # tables go through `Printer`


@pytest.mark.parametrize(
    ("option", "verbs"),
    [("--data", DATA), ("--device", DEVICE), ("--seed", SEEDED), ("--seeds", set())],
)
def test_a_verb_that_can_take_it_spells_it_so(option: str, verbs: set[str]) -> None:
    assert {verb for verb in VERBS if option in options(verb)} == verbs


def test_an_option_of_many_verbs_has_one_help() -> None:
    for name in ("--data", "--device", "--json"):
        told = {options(v)[name] for v in VERBS if name in options(v) and v != "settings"}
        assert len(told) == 1, told


def test_a_device_that_is_not_there_is_said_before_the_work(call, no_work, monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for line in ("grid", "sweep --out rows.jsonl", "arena", "digits"):
        assert "no cuda" in call(line, "--device", "cuda", code=2).line
    assert not Path("rows.jsonl").exists()
