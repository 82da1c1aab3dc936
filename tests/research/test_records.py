"""Rows on disk: what is no file of rows stays as it is, and one sweep at a time writes one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from explorer import cli
from explorer.engine.attacks.kkt import KKTConfig
from explorer.research.records import RowFile, RowKind, lock, plain
from explorer.research.sweep import sweep, threads
from tests.engine.test_kept import near
from tests.research.kept_rows.make import numbers
from tests.research.sweep_rows import Small, doubled

ROOT = Path(__file__).resolve().parents[2]
ROW = '{"key":"a","result":{}}\n'
KIND = RowKind("sweep")
# Widths that no training takes: each row fails at once.
QUICK = ("--executor", "threads", "--set", "preset=two-points", "--set", "widths=[0]")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hello\n", "line 1 is not a row of a sweep (it is no JSON)"),
        ("hello", "its only line"),
        (ROW + "hello\n", "line 2"),
        (ROW + "\n", "line 2"),
        ("[1]\n", "it is a list"),
        ('{"key":"a"}\n', "it lacks result"),
        ('{"key":3,"result":{}}\n', "its key is no word"),
        ('{"key":"a","result":3}\n', "its result is no table"),
    ],
)
def test_what_is_no_file_of_rows_is_left_alone(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"notes\.txt") as refused:
        RowFile(path, KIND)
    assert why in str(refused.value)
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("text", "left"),
    [(ROW + '{"key":"b"', ROW), ('{"key":"b","re', ""), ('{"k', ""), ("", ""), (ROW[:-1], ROW)],
)
def test_a_torn_end_is_dropped_and_a_whole_one_ended(tmp_path: Path, text: str, left: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    assert len(RowFile(path, KIND).rows) == left.count("\n")
    assert path.read_text() == left


def test_a_row_of_another_kind_is_refused_by_a_sweep(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(ROW)
    with pytest.raises(ValueError, match="it lacks status, message, trial, seconds"):
        list(sweep([Small(1)], threads(1), path=path, run=doubled))


def test_a_fresh_sweep_checks_everything_before_it_empties_its_file(tmp_path: Path) -> None:
    path, notes = tmp_path / "rows.jsonl", tmp_path / "notes.txt"
    list(sweep([Small(1), Small(2)], threads(1), path=path, run=doubled))
    kept = path.read_text()
    notes.write_text("hello\n")

    def call(*words: str) -> int:
        return CliRunner().invoke(cli.app, ["sweep", *QUICK, "--fresh", *words]).exit_code

    assert call("--out", str(path), "--scheduler", "tcp://nowhere:1") == 2
    assert path.read_text() == kept
    assert call("--out", str(notes)) == 2
    assert notes.read_text() == "hello\n"
    call("--out", str(path))
    (row,) = map(json.loads, path.read_text().splitlines())
    assert row["trial"]["preset"] == "two-points"


def test_two_sweeps_do_not_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "rows.jsonl"
    running = sweep([Small(1), Small(2)], threads(1), path=path, run=doubled)
    next(running)
    with pytest.raises(ValueError, match="another run is writing"):
        next(sweep([Small(3)], threads(1), path=path, run=doubled))
    running.close()
    with lock(path):
        assert len(path.read_text().splitlines()) == 1


# --- row files of commit ca7d2b3 open, are gone on from, and say what they said to its code -------

KEPT = Path(__file__).parent / "kept_rows"
SAID = json.loads((KEPT / "numbers.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """What today's code says of copies: a file that is gone on from is opened to be written."""
    folder = tmp_path_factory.mktemp("rows")
    for path in KEPT.glob("*.jsonl"):
        shutil.copy(path, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    said = json.loads(json.dumps(numbers(folder)))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    return said


def test_every_file_is_read(mine):
    assert set(mine) == set(SAID) == {path.stem for path in KEPT.glob("*.jsonl")}


@pytest.mark.parametrize("name", SAID)
def test_rows_of_before_open_with_their_numbers(name, mine):
    for part, said in SAID[name].items():
        if part in ("rows", "keys", "table", "front", "start", "end"):
            assert mine[name][part] == said, part
        else:  # a setting that came later has the value that it had
            later = plain({k: KKTConfig.absent[k] for k in ("knows", "curve", "components")})
            if part == "trials":
                said = [{**t, "config": later | t["config"]} for t in said]
            if part == "best":
                said = later | said
            assert near(mine[name][part], said), (part, mine[name][part], said)
