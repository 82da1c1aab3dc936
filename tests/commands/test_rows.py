"""Verbs of many rows: mistakes in one line, exit codes, interrupts, and rows that run again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import sleep

import psutil
import pytest
from typer.testing import CliRunner

from explorer import cli
from explorer.commands import grid as grids
from explorer.commands import sweep as sweeping
from explorer.commands.rows import collect_rows
from explorer.commands.tables import table_of
from explorer.research import sweep as sweeps
from explorer.research.records import RowFile
from explorer.research.sweep import experiments

ROOT = Path(__file__).resolve().parents[2]
HERE = ("--executor", "threads", "--workers", "1")
SWEEP = ("sweep", *HERE, "--out", "rows.jsonl")
SWEEPING = ("sweep", "--set", "seed=0-99", "--out", "rows.jsonl")
TINY = ("--set", "preset=blobs", "--set", "n=8", "--set", "widths=16", "--set", "steps=300")
TINY = (*TINY, "--set", "attack_config.steps=20", "--set", "attack_config.m=8")
ARENA = (
    "arena",
    *HERE,
    "--preset",
    "blobs",
    "--n",
    "8",
    "--widths",
    "16",
    "--seed",
    "0",
    "--fast",
)
GRID = ("grid", "--preset", "blobs", "--attack", "bilevel", "--side", "2", "--n", "6")


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def invoke(*words, code=0):
        result = CliRunner().invoke(cli.app, [str(w) for w in words])
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result

    return invoke


# --- what cannot be meant -------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("sweep", "--set", "label_noise=nan"), "label_noise must be a finite number; got 'nan'"),
        (("sweep", "--set", "attack_config=3"), "attack_config must be settings by name"),
        (("sweep", "--set", "seed=[]"), "the axis seed is empty"),
        (("sweep", "--set", "seed=4-2"), "a range of seeds rises"),
        (
            ("sweep", "--table", "three.toml", "--set", "attack_config.m=4"),
            "attack_config.m; got 3",
        ),
        (("sweep", "--table", "five.toml"), "table = 5"),
        (("sweep", "--table", "infinite.toml"), "label_noise must be a finite number; got inf"),
        (("sweep", "--out", "key.jsonl"), "line 1 is not a row of a sweep"),
        (("train", "--train-set", "batch=abc"), "batch must be a whole number or None; got 'abc'"),
        (("train", "--train-set", "all_biases=maybe"), "must be True or False; got 'maybe'"),
        (("demo", "--set", "lr_x=nan"), "lr_x must be a finite number; got 'nan'"),
        (("arena", "--widths", "100,abc"), "--widths takes numbers such as 100,100; got '100,abc'"),
        (("arena", "--seed", "3-1"), "a range of seeds rises"),
        (("grid", "--seed", "3-1"), "a range of seeds rises"),
        (("grid", "--set", "lr_x=nan"), "lr_x must be a finite number; got 'nan'"),
        (("grid", "--set", "m=3"), "m must be even"),
        (("grid", "--n", "0"), "--n"),
        (("bilevel", "--set", "width=wide"), "width must be a whole number; got 'wide'"),
        (("grid", "--digits", "--preset", "xor"), "--digits takes the place of --preset"),
        (("bilevel", "--digits", "--noise", "3"), "has no --noise"),
    ],
)
def test_a_mistake_is_one_line(call, words, why) -> None:
    Path("five.toml").write_text("table = 5\n")
    Path("three.toml").write_text("attack_config = 3\n")
    Path("infinite.toml").write_text("[table]\nlabel_noise = inf\n")
    Path("key.jsonl").write_text('{"key":"abc"}\n')
    result = call(*words, code=2)
    assert result.stdout == "" and why in result.stderr
    assert "Usage" in result.stderr or len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "widths"),
    [
        ("100,100", [(100, 100)]), ("[100, 50]", [(100,), (50,)]), ("7", [(7,)]),
        ("[[100, 50]]", [(100, 50)]), ("[9, [8, 7]]", [(9,), (8, 7)]),
        ("(3, 2), (5,)", [(3, 2), (5,)]),
    ],
)  # fmt: skip
def test_widths_with_a_comma_are_layers_as_in_every_verb(text, widths) -> None:
    assert [row.widths for row in experiments(table_of(None, [f"widths={text}"]))] == widths


def test_words_and_numbers_with_a_comma_are_an_axis() -> None:
    found = table_of(None, ["attack_config.box=None,2", "seed=0,1", "attack=kkt,inversion"])
    assert found["seed"] == [0, 1] and found["attack"] == ["kkt", "inversion"]
    assert found["attack_config"]["box"] == [None, 2.0]


@pytest.mark.parametrize(
    ("word", "field", "values"),
    [
        ("early_stop=[0,null]", "early_stop", [0, None]),
        ("early_stop=[0, None]", "early_stop", [0, None]),
        ("early_stop=null", "early_stop", None),
        ("determine=[true,False]", "determine", [True, False]),
        ("noise=0.1,0", "noise", [0.1, 0.0]),
        ('attack=["kkt", "hinge"]', "attack", ["kkt", "hinge"]),
        ("preset=12", "preset", "12"),
    ],
)
def test_every_value_is_read_as_its_field_is_declared(word, field, values) -> None:
    assert table_of(None, [word]) == {field: values}


def test_settings_of_the_training_are_read_as_declared() -> None:
    found = table_of(None, ["train.lr=[null,0.5]", "train.all_biases=true,false"])
    assert found == {"train": {"lr": [None, 0.5], "all_biases": [True, False]}}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["attack_config.box=off", "attack=inversion"], "box must be a finite number or None"),
        (["attack_config.speed=1"], "kkt has no setting 'speed'"),
        (["attack_config.m=4", "attack=fly"], "no attack 'fly'"),
        (["train.speed=1"], "train has no setting 'speed'"),
        (["speed=1"], "a row has no setting 'speed'"),
        (["early_stop=[0,never]"], "early_stop must be a whole number or None; got 'never'"),
        (["attack_config=3"], "attack_config must be settings by name, such as"),
        (["n.m=3"], "n must be settings by name"),
    ],
)
def test_words_that_no_field_takes_are_refused_before_any_run(words, why) -> None:
    with pytest.raises(ValueError, match=why):
        table_of(None, words)


# --- what is said of the rows ---------------------------------------------------------------
def test_equal_rows_are_told(call) -> None:
    result = call(*SWEEP, *TINY, "--set", "seed=[0, 0, 1, 1]", "--json")
    assert json.loads(result.stdout)["done"] == 2
    assert "2 rows" in result.stderr


def test_a_sweep_or_an_arena_without_a_finished_row_exits_with_1(call) -> None:
    bad = call(*SWEEP, *TINY, "--set", "widths=0", "--json", code=1)
    assert json.loads(bad.stdout)["failed"] == 1
    assert "of 1 rows" in bad.stderr
    refused = call(*SWEEP, *TINY, "--set", "attack=univariate", code=1)
    assert "one input" in " ".join(refused.stdout.replace("│", " ").split())
    assert call(*SWEEP, *TINY, "--set", "widths=[0, 16]", "--json").stderr == ""
    none = call(*ARENA, "--attacks", "univariate", code=1)
    assert "of 1 rows" in none.stderr
    assert json.loads(call(*ARENA, "--attacks", "univariate", "--json", code=1).stdout)["attacks"]


def test_the_table_of_an_arena_holds_no_nan(call) -> None:
    call(*ARENA, "--steps", "300", "--attacks", "univariate,inversion")
    lines = Path("arena/arena.csv").read_text().splitlines()
    assert len(lines) == 3 and not any("nan" in line.split(",") for line in lines)


# --- interrupts -----------------------------------------------------------------------------
def interrupted(after):
    yield from ({"status": "done"} for _ in range(after))
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("after", "path", "words"),
    [
        (2, Path("r.jsonl"), "2 of 9 cells are kept in r.jsonl; the same command goes on"),
        (0, Path("r.jsonl"), "no cells had ended, and none are kept"),
        (2, None, "nothing is kept of 2 cells. With --rows FILE"),
    ],
)
def test_an_interrupt_says_what_is_kept(capfd, after, path, words) -> None:
    with pytest.raises(SystemExit) as ended:
        collect_rows(interrupted(after), 9, "cells", path)
    assert ended.value.code == 130
    assert words in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [(GRID, "--rows FILE"), ((*GRID, "--rows", "r"), "cells are kept in r"),
     (SWEEP, "rows are kept in rows.jsonl")],
)  # fmt: skip
def test_verbs_end_in_words_when_interrupted(call, monkeypatch, words, said) -> None:
    for module in (grids, sweeping):
        monkeypatch.setattr(module, "sweep", lambda *_, **__: interrupted(1))
    result = call(*words, code=130)
    assert said in result.stderr and not Path("grid.png").exists()


# --- cells ----------------------------------------------------------------------------------
def test_what_is_wrong_for_every_cell_is_said_once(call, monkeypatch) -> None:
    def broken(cell):
        raise ValueError("everywhere")

    monkeypatch.setattr(grids, "run_cell", broken)
    result = call(*GRID, code=1)
    assert result.stderr.count("everywhere") == 1
    assert "3 of 3" in result.stderr


def test_failed_cells_run_again(call, monkeypatch) -> None:
    words = (*GRID, "--set", "steps=2", "--rows", "rows.jsonl", "--seed", "0-1", "--json")
    usual, seen = grids.run_cell, []

    def once(cell):
        seen.append(cell)
        if len(seen) == 1:
            raise ValueError("the first time only")
        return usual(cell)

    monkeypatch.setattr(grids, "run_cell", once)
    assert len(json.loads(call(*words).stdout)["cells"]) == 5
    assert len(json.loads(call(*words).stdout)["cells"]) == 6
    assert len(seen) == 7
    assert RowFile(Path("rows.jsonl"), sweeps.ROWS).rows.keys() == {sweeps.key_of(c) for c in seen}


@pytest.fixture
def heard() -> Iterator[None]:
    """What is started hears Ctrl-C, even where the tests run in the background and do not."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_command_leaves_no_worker_and_no_traceback(tmp_path, which) -> None:
    words = [
        sys.executable,
        "-m",
        "explorer.cli",
        "sweep",
        "--set",
        "seed=0-99",
        "--out",
        "rows.jsonl",
    ]
    with subprocess.Popen(
        words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        workers: list[psutil.Process] = []
        while process.poll() is None and len(workers) < 3:  # two, and what tracks their semaphores
            workers = psutil.Process(process.pid).children(recursive=True)
            sleep(0.05)
        if which == signal.SIGINT:  # as a terminal does
            os.killpg(process.pid, which)
        else:
            process.send_signal(which)
        out, told = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert "stopped: " in told and "Traceback" not in told
    assert not psutil.wait_procs(workers, timeout=120)[1]


def test_the_neurons_of_a_network_of_digits_are_numbers(call) -> None:
    small = ("--n", "4", "--widths", "9,7", "--steps", "300", "--attack-steps", "3")
    neurons = json.loads(call("digits", *small, "--json").stdout)["neurons"]
    assert len(neurons) == 2 and all(isinstance(n, int) for n in neurons)
    words = " ".join(call("digits", *small).stdout.replace("│", " ").split())
    assert f"neurons {neurons[0]}-{neurons[1]} " in words
