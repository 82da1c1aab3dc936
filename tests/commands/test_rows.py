"""Verbs of many rows: their tables, exit codes, interrupts, and rows that go on and run again."""

from __future__ import annotations

import csv
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
import torch

from explorer.commands import grid as grids
from explorer.commands import sweep as sweeping
from explorer.commands.rows import collect_rows
from explorer.commands.tables import table_of
from explorer.engine.store import load_run
from explorer.research.grid import GridCell, fingerprint, open_cell
from explorer.research.records import RowFile
from explorer.research.sweep import ROWS, experiments, key_of
from tests.verbs import TINY

SWEEP = f"sweep {TINY} --out rows.jsonl"
LOADED = 10**8  # bytes of a worker that has torch; arbitrary
ARENA = "arena --executor threads --workers 1 --preset blobs --n 8 --widths 16 --steps 300 --seed 0"
ARENA = f"{ARENA} --fast"
GRID = "grid --preset blobs --attack bilevel --side 2 --n 6"
BILEVEL = "bilevel --preset blobs --n 6 --set steps=2 --set width=3 --set mu=0.1"


# --- the table of a sweep -----------------------------------------------------------------------
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


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("early_stop=[0,null]", {"early_stop": [0, None]}),
        ("early_stop=[0, None]", {"early_stop": [0, None]}),
        ("early_stop=null", {"early_stop": None}),
        ("determine=[true,False]", {"determine": [True, False]}),
        ("noise=0.1,0", {"noise": [0.1, 0.0]}),
        ("seed=0,1", {"seed": [0, 1]}),
        ("attack=kkt,inversion", {"attack": ["kkt", "inversion"]}),
        ('attack=["kkt", "hinge"]', {"attack": ["kkt", "hinge"]}),
        ("preset=12", {"preset": "12"}),
        ("attack_config.box=None,2", {"attack_config": {"box": [None, 2.0]}}),
        ("train.lr=[null,0.5]", {"train": {"lr": [None, 0.5]}}),
        ("train.all_biases=true,false", {"train": {"all_biases": [True, False]}}),
    ],
)
def test_every_value_is_read_as_its_field_is_declared(words, found) -> None:
    assert table_of(None, [words]) == found


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


# --- sweeps and arenas --------------------------------------------------------------------------
def test_equal_rows_are_told(call) -> None:
    told = call(f"{SWEEP} --set 'seed=[0, 0, 1, 1]' --json")
    assert told.json["done"] == 2 and "2 rows" in told.err


def test_a_sweep_or_an_arena_without_a_finished_row_exits_with_1(call) -> None:
    bad = call(f"{SWEEP} --set widths=0 --json", code=1)
    assert bad.json["failed"] == 1 and "of 1 rows" in bad.err
    assert "one input" in call(f"{SWEEP} --set attack=univariate", code=1).words
    assert call(f"{SWEEP} --set 'widths=[0, 16]' --json").err == ""
    assert "of 1 rows" in call(f"{ARENA} --attacks univariate", code=1).err
    assert call(f"{ARENA} --attacks univariate --json", code=1).json["attacks"]


def test_an_arena_writes_its_table_rows_and_pictures(call) -> None:
    small = "--n 6 --widths 20 --steps 600 --executor threads --seed 0-1 --json"
    call(f"arena --attacks inversion,univariate {small}")
    names = {path.name for path in Path("arena").iterdir()}
    assert names == {"arena.csv", "rows.csv", "rows.jsonl", "arena.png", "other.png"}
    lines = Path("arena/arena.csv").read_text().splitlines()  # one attack did not run
    assert len(lines) == 3 and not any("nan" in line.split(",") for line in lines)


def test_a_sweep_of_a_table_goes_on_from_its_file(call) -> None:
    Path("t.toml").write_text(
        '[table]\npreset = "blobs"\nn = 8\nsteps = 200\nwidths = 12\nseed = "0-1"\nattack = ""\n'
    )
    for _ in range(2):  # the second finds all there
        call(
            "sweep --table t.toml --set 'early_stop=[0, 20]' --executor threads --out r --csv r.csv"
        )
        assert len(Path("r").read_text().splitlines()) == 4
    assert len(Path("r.csv").read_text().splitlines()) == 5


def test_a_sweep_over_two_settings_in_the_cube_is_a_picture(call) -> None:
    few = "--set attack_config.m=4 --set attack_config.steps=5 --set steps=300"
    line = f"sweep --set d=3 --set n=[3,4] --set widths=[10,20] {few} --executor threads"
    for name, text in (("a.png", line), ("b.png", line.replace("n=[3,4]", "n=3"))):
        call(f"{text} --out {name}.jsonl --picture {name}")
        assert Path(name).read_bytes().startswith(b"\x89PNG")
    rows = [json.loads(text) for text in Path("a.png.jsonl").read_text().splitlines()]
    assert {(r["result"]["d"], r["result"]["parameters"]) for r in rows} == {(3, 50), (3, 100)}
    assert len(rows[0]["result"]["chance"]) == 99


def test_a_sweep_runs_on_points_of_a_file_and_sees_that_it_changed(call) -> None:
    few = "--set attack_config.m=4 --set attack_config.steps=5 --set steps=300 --set widths=10"
    line = f"sweep --data mine.csv --seed 0-1 --executor threads {few} --out rows.jsonl --json"

    def rows():
        return [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]

    for _ in range(2):  # it goes on from its file
        assert call(line).json["done"] == 2
        assert sorted(row["trial"]["seed"] for row in rows()) == [0, 1]
    Path("mine.csv").write_text(Path("mine.csv").read_text() + "0.2,0.9,1\n")
    call(line)  # other content is another row
    assert [row["result"]["n"] for row in rows()] == [3, 3, 4, 4]


# --- interrupts ---------------------------------------------------------------------------------
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
    ("line", "said"),
    [(GRID, "--rows FILE"), (f"{GRID} --rows r", "cells are kept in r"),
     (SWEEP, "rows are kept in rows.jsonl")],
)  # fmt: skip
def test_verbs_end_in_words_when_interrupted(call, monkeypatch, line, said) -> None:
    for module in (grids, sweeping):
        monkeypatch.setattr(module, "sweep", lambda *_, **__: interrupted(1))
    assert said in call(line, code=130).err and not Path("grid.png").exists()


@pytest.fixture
def heard() -> Iterator[None]:
    """What is started hears Ctrl-C, even where the tests run in the background and do not."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_command_leaves_no_worker_and_no_traceback(tmp_path, root, which) -> None:
    words = "-m explorer.cli sweep --set seed=0-99 --out rows.jsonl".split()
    with subprocess.Popen(
        [sys.executable, *words], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(root)},
        start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        workers: list[psutil.Process] = []
        loaded: list[psutil.Process] = []  # one that is still being told what to load may complain
        while process.poll() is None and len(loaded) < 2:  # beside what tracks their semaphores
            workers = psutil.Process(process.pid).children(recursive=True)
            loaded = [each for each in workers if each.memory_info().rss > LOADED]
            sleep(0.05)
        if which == signal.SIGINT:  # as a terminal does
            os.killpg(process.pid, which)
        else:
            process.send_signal(which)
        out, told = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert "stopped: " in told and "Traceback" not in told
    assert not psutil.wait_procs(workers, timeout=120)[1]


# --- the grid and the bilevel verb ----------------------------------------------------------------
def test_what_is_wrong_for_every_cell_is_said_once(call, monkeypatch) -> None:
    def broken(cell):
        raise ValueError("everywhere")

    monkeypatch.setattr(grids, "run_cell", broken)
    told = call(GRID, code=1).err
    assert told.count("everywhere") == 1 and "3 of 3" in told


def test_failed_cells_run_again(call, monkeypatch) -> None:
    line = f"{GRID} --set steps=2 --rows rows.jsonl --seed 0-1 --json"
    usual, seen = grids.run_cell, []

    def once(cell):
        seen.append(cell)
        if len(seen) == 1:
            raise ValueError("the first time only")
        return usual(cell)

    monkeypatch.setattr(grids, "run_cell", once)
    assert [len(call(line).json["cells"]) for _ in range(2)] == [5, 6]
    assert len(seen) == 7
    assert RowFile(Path("rows.jsonl"), ROWS).rows.keys() == {key_of(c) for c in seen}


def test_grid_writes_a_picture_a_table_and_goes_on(call) -> None:
    line = f"{GRID} --side 3 --set steps=2 --json --out g.png --csv cells.csv --rows rows.jsonl"
    first = call(line).json
    assert len(first["cells"]) == 7 and "Of 9 cells" in first["sentence"]
    assert Path("g.png").stat().st_size > 10_000
    with Path("cells.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 7 and float(lines[0]["truth"]) >= 0
    kept = Path("rows.jsonl").read_text(encoding="utf-8")
    assert call(line).json["cells"] == first["cells"]
    assert Path("rows.jsonl").read_text(encoding="utf-8") == kept  # nothing ran twice


def test_a_saved_run_is_attacked_with_its_own_weights(call) -> None:
    train = "train --preset blobs --n 6 --widths 9 --out run.safetensors --steps"
    call(train, 300)
    line = "grid run.safetensors --side 2 --set steps=2 --json --rows rows.jsonl"
    found = call(line).json
    assert found["data"] == "run.safetensors" and len(found["cells"]) == 3
    truth = next(c for c in found["cells"] if (c["mix_truth"], c["mix_data"]) == (1, 1))
    assert truth["truth_before"] == 0  # its points
    cell = GridCell("run.safetensors", "kkt", 0, 0, file=fingerprint("run.safetensors"))
    points, target = open_cell(cell)
    kept = load_run("run.safetensors")
    assert torch.equal(points.x, kept.dataset.x)
    cosine = target.net.theta @ kept.net.theta / (target.net.rho * kept.net.rho)
    assert float(cosine) == pytest.approx(1)  # rescaled to margin 1
    call(f"{line} --n 4", code=2)
    call(train, 301)
    with pytest.raises(ValueError, match="has changed since"):
        open_cell(cell)
    assert call(line).json["cells"] != found["cells"]


def test_a_grid_runs_on_points_of_a_file(call) -> None:
    assert len(call("grid --data mine.csv --side 2 --set steps=3 --json").json["cells"]) == 3


def test_bilevel_prints_the_three_starts_of_both_models(call) -> None:
    rows = {(row["model"], row["start"]): row for row in call(f"{BILEVEL} --json").json["rows"]}
    assert len(rows) == 6
    for model in ("affine", "hidden"):
        truth = rows[model, "truth"]
        assert truth["before"] == truth["after"] == truth["truth"] == 0
        assert truth["converged"] == truth["seeds"] == 1 > rows[model, "random"]["converged"]
        assert rows[model, "partition"]["heldout"] < rows[model, "partition"]["truth"]
    assert rows["affine", "random"]["paper"] == 1.1214e-3
    assert call(BILEVEL).out.partition("converged:")[2].count("random") == 2
    of_file = "bilevel --data mine.csv --set steps=2 --set width=3 --set mu=0.1 --json"
    assert call(of_file).json["data"] == "mine.csv"
