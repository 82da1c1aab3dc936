"""The sweep: every row comes back once, whatever dies; files go on; executors agree."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import warnings
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep

import pytest
import torch

from explorer.engine.data import preset
from explorer.engine.private import epsilon_of, separation
from explorer.research.records import RowFile, flat, write_csv
from explorer.research.runs import train
from explorer.research.sweep import (
    ROWS,
    Experiment,
    experiments,
    key_of,
    processes,
    seeds_of,
    sweep,
    threads,
)
from explorer.research.sweep.executors import Pool
from explorer.research.sweep.experiment import run_experiment, victim_of
from tests.research.sweep_rows import Small, deadly, doubled, slow

KEY = "fafe4d6148aedf39"  # of a row, on any machine
TINY = {
    "preset": "blobs", "n": 8, "noise": 0.2, "widths": (16,), "steps": 300,
    "attack_config": {"steps": 20, "m": 8},
}  # fmt: skip


def without_time(rows):
    return {row["key"]: {k: v for k, v in row.items() if k != "seconds"} for row in rows}


def started(table: str, executor: str, path: Path, folder: Path) -> subprocess.Popen[bytes]:
    """A process that runs slow rows, once two of them are kept."""
    program = folder / "main.py"
    program.write_text(
        "from pathlib import Path; from explorer.research.sweep import *; "
        "from tests.research.sweep_rows import Small, slow\n"
        "if __name__ == '__main__':\n"
        f"    list(sweep({table}, {executor}, path=Path({str(path)!r}), run=slow))"
    )
    root = Path(__file__).resolve().parents[2]
    env = {**os.environ, "PYTHONPATH": str(root)}
    process = subprocess.Popen([sys.executable, program], cwd=root, env=env)
    until = monotonic() + 300
    while monotonic() < until and (not path.exists() or path.read_text().count("\n") < 2):
        sleep(0.05)
    return process


def test_a_table_is_a_product_and_attacks_vary_fastest() -> None:
    rows = list(experiments({
        "preset": ["xor", "moons"], "widths": [8, [9, 7]], "seed": 3, "attack": ["kkt"],
        "attack_config": {"m": [8, 10]}, "train": {"momentum": 0.9},
    }))  # fmt: skip
    assert len(rows) == 8 and len({key_of(r) for r in rows}) == 8
    assert {r.widths for r in rows} == {(8,), (9, 7)}
    assert rows[0].attack_config == {"m": 8} and rows[1].attack_config == {"m": 10}
    with pytest.raises(ValueError, match="no setting 'sead'"):
        list(experiments({"sead": 1}))


def test_points_in_the_cube_and_their_controls_are_independent_draws() -> None:
    row = Experiment(d=5, n=6, widths=(30,), steps=500, seed=2)
    one, other = victim_of(row), victim_of(replace(row, data_seed=3))
    sets = [one.truth, other.truth, *one.controls.sets]
    assert {s.x.shape for s in sets} == {(6, 5)} and len(one.controls) == 99
    x = torch.cat([s.x for s in sets])
    assert len(x.unique(dim=0)) == len(x) and float(x.abs().max()) <= 1
    assert float(x.mean().abs()) < 5 * (3 * x.numel()) ** -0.5
    for wrong in ({"noise": 0.1}, {"data": "points.csv"}):
        with pytest.raises(ValueError, match="leave"):
            Experiment(d=2, **wrong)


def test_keys_are_stable_over_processes_and_releases() -> None:
    # Written down: a change here makes every file of rows that people have start anew.
    assert key_of(Small(3)) == "32a548ed525368aa"
    one, same, other = (Experiment(widths=w) for w in ([4], (4,), (5,)))
    assert key_of(one) == key_of(same) != key_of(other)
    assert key_of(Experiment(seed=7, train={"a": 2, "b": 1})) == KEY
    assert key_of(Experiment(seed=7, train={"b": 1, "a": 2})) == KEY


def test_failing_rows_are_rows() -> None:
    rows = list(sweep([Small(1), Small(-1), Small(2), Small(1)], threads(2), run=doubled))
    found = {row["trial"]["number"]: row for row in rows}
    assert len(rows) == 3
    assert found[2]["result"] == {"double": 4, "pair": [2, None]}
    assert found[-1]["status"] == "failed" and found[-1]["message"].endswith("double of -1")


def test_bad_settings_fail_their_own_row_alone() -> None:
    rows = [
        {**TINY, "attack_config": {"speed": 1}}, {**TINY, "widths": (1,), "steps": 1},
        {**TINY, "train": {"lr": -1}}, TINY,
    ]  # fmt: skip
    found = list(sweep(rows, threads(1)))
    assert [row["status"] for row in found].count("done") == 1
    messages = " ".join(row["message"] for row in found)
    assert "'speed'" in messages and "not separated" in messages and "lr must" in messages


def test_threads_and_processes_give_identical_rows() -> None:
    rows = [{**TINY, "seed": seed} for seed in (0, 1)]
    one = list(sweep(rows, threads(2)))
    two = list(sweep(rows, processes(1)))
    assert without_time(one) == without_time(two)
    assert [row["message"] for row in one] == ["", ""]
    assert all(row["seconds"]["attack"] > 0 for row in one)


def test_a_row_that_kills_its_worker_costs_only_itself(tmp_path: Path) -> None:
    table = [Small(k, str(tmp_path)) for k in range(7)]
    rows = list(sweep(table, processes(2), run=deadly, in_flight=3, retries=1))
    found = {row["trial"]["number"]: row for row in rows}
    assert sorted(found) == list(range(7))
    assert [k for k in found if found[k]["status"] == "failed"] == [3]
    assert "died 2 times" in found[3]["message"]
    assert (tmp_path / "died").exists() and found[5]["result"] == {"double": 10}


def test_a_broken_executor_of_the_caller_leaves_its_rows_for_another_time(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with ThreadPoolExecutor(1) as closed:
        pass
    with pytest.raises(BrokenExecutor, match="3 rows did not run"):
        list(sweep([Small(k) for k in range(3)], closed, run=doubled, path=path))
    assert path.read_text() == ""
    table = [Small(k, str(tmp_path)) for k in (1, 2, 3, 4)]
    context = multiprocessing.get_context("spawn")
    seen = []
    with (
        ProcessPoolExecutor(1, mp_context=context) as mine,
        pytest.raises(BrokenExecutor, match="2 rows did not run"),
    ):
        seen += sweep(table, mine, run=deadly, path=path, in_flight=1)
    assert [row["status"] for row in RowFile(path, ROWS).rows.values()] == ["done", "done"]
    assert len(list(sweep(table, threads(1), run=doubled, path=path))) == 4


@pytest.mark.parametrize("none", [None, 2, "threads"])
def test_what_makes_no_executor_is_refused(none: object) -> None:
    with pytest.raises(TypeError, match=r"such as processes\(2\).*; got"):
        next(sweep([Small(1)], none, run=doubled))  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows has no masks")
def test_workers_are_deaf_to_an_interrupt_from_their_first_moment() -> None:
    context = multiprocessing.get_context("spawn")
    pool = Pool(lambda: ProcessPoolExecutor(1, mp_context=context))
    asked = pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, ())
    assert signal.SIGINT in asked.result()
    pool.close((), at_once=False)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    table = "[Small(k) for k in range(400)]"
    with started(table, "processes(2)", tmp_path / "rows.jsonl", tmp_path) as process:
        workers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
    assert len(workers) >= 2
    assert not psutil.wait_procs(workers, timeout=120)[1]


def test_a_file_goes_on_and_a_torn_line_is_run_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    table = [Small(k) for k in range(5)]
    first = sweep(table, threads(1), path=path, run=doubled, in_flight=1)
    next(first), next(first)
    first.close()
    kept = path.read_text().splitlines()
    assert len(kept) == 2
    torn = '{"key": "x", "status": "do'
    path.write_text("\n".join(kept) + "\n" + torn)
    seen = list(sweep(table, threads(1), path=path, run=doubled))
    assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == [
        row["key"] for row in seen
    ]
    assert len(seen) == 5
    # a whole row that lacks the end of its line is no torn one: what is cut short is no JSON
    path.write_text(path.read_text()[:-1])
    assert len(RowFile(path, ROWS).rows) == 5 and path.read_text().endswith("\n")
    path.write_text("nonsense\n" + path.read_text())
    with pytest.raises(ValueError, match="line 1"):
        RowFile(path, ROWS)
    assert path.read_text().startswith("nonsense")


def test_failed_rows_are_kept_or_run_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for again, runs in ((False, 1), (True, 2)):
        list(sweep([Small(-1), Small(1)], threads(1), path=path, run=doubled, again=again))
        assert len(path.read_text().splitlines()) == 1 + runs
    assert len(RowFile(path, ROWS).rows) == 2


def test_kill_and_resume(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with started("[Small(k) for k in range(40)]", "threads(1)", path, tmp_path) as process:
        process.send_signal(signal.SIGKILL)
    before = path.read_text().count("\n")
    assert 2 <= before < 40
    table = [Small(k) for k in range(before + 2)]
    seen = list(sweep(table, threads(4), path=path, run=doubled))
    assert sum("pid" in row["result"] for row in seen) == before
    assert len(seen) == before + 2


@pytest.mark.slow  # a cluster of processes; of one pool's: test_a_row_that_kills_its_worker_...
def test_every_row_comes_back_when_a_dask_worker_is_killed(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="distributed")
        warnings.filterwarnings("ignore", message=".*distributed.*")
        distributed = pytest.importorskip("distributed")
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
                silence_logs=50, local_directory=str(tmp_path),
            ) as cluster,
            distributed.Client(cluster) as client,
        ):  # fmt: skip
            pids = list(client.run(os.getpid).values())
            table, seen = [Small(k) for k in range(16)], []
            for row in sweep(table, client.get_executor, run=slow, in_flight=4):
                seen.append(row)
                if len(seen) == 3:
                    os.kill(pids[0], signal.SIGKILL)
            # One, or a new one beside it; the dead one may still be on the cluster's list.
            left = set(client.run(os.getpid, on_error="ignore").values())
    assert sorted(row["result"]["double"] for row in seen) == [2 * k for k in range(16)]
    assert left and pids[0] not in left


def test_defences_do_what_they_say() -> None:
    row = Experiment(**TINY, attack="")
    whole = run_experiment(row)
    early = run_experiment(replace(row, early_stop=0))
    assert early["gamma_bar"] < whole["gamma_bar"]
    seen = train(row.run_on(victim_of(row).truth)).states  # every third of 300
    begun = next(state.t for state in seen if state.q_min > 0)
    end = next(state for state in seen if state.t >= begun + 40)
    assert end.t < 200 and run_experiment(replace(row, early_stop=40))["gamma_bar"] == end.gamma_bar
    victim, clean = victim_of(replace(row, label_noise=0.25)), victim_of(row)
    assert int((victim.truth.y != clean.truth.y).sum()) == 2
    assert all(
        int((a.y != b.y).sum())
        for a, b in zip(victim.controls.sets, clean.controls.sets, strict=True)
    )
    decayed = run_experiment(replace(row, weight_decay=1e-3))
    assert decayed["gamma_bar"] != whole["gamma_bar"]


def test_epsilon_sets_the_noise_for_the_planned_steps() -> None:
    row = Experiment(**{**TINY, "steps": 30}, attack="", epsilon=5, train={"private_clip": 0.5})
    config = row.run_on(preset("blobs", 8, 0.2)).train_config
    assert epsilon_of(separation(config.private_noise, 30)) == pytest.approx(5)
    assert config.private_clip == 0.5
    found, free = (run_experiment(replace(row, epsilon=e)) for e in (0.01, 1e6))
    assert found["accuracy"] <= free["accuracy"] and 0 <= found["fresh_accuracy"] <= 1
    rows = list(sweep([replace(row, early_stop=3), replace(row, train={"private_noise": 1.0}),
                       replace(row, train={"batch": 4})], threads(1)))  # fmt: skip
    assert [r["status"] for r in rows] == ["refused", "failed", "failed"]
    assert "fewer steps" in rows[0]["message"] and "say epsilon" in rows[1]["message"]


@pytest.mark.parametrize("defence", [{"early_stop": 0}, {"weight_decay": 1e-3}, {"epsilon": 1}])
def test_a_defence_that_an_exact_network_passes_over_is_refused(defence) -> None:
    exact = {**TINY, "method": "exact"}
    noisy = {**exact, "label_noise": 0.2}
    rows = list(sweep([{**exact, **defence}, exact, noisy], threads(1)))
    assert [row["status"] for row in rows] == ["refused", "done", "done"]
    assert next(iter(defence)) in rows[0]["message"] and "method='gradient'" in rows[0]["message"]
    assert rows[1]["result"]["gamma_bar"] != rows[2]["result"]["gamma_bar"]


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"label_noise": math.nan}, "label_noise must be a finite number; got nan"),
        ({"label_noise": "nan"}, "label_noise must be a finite number; got 'nan'"),
        ({"seed": 1.5}, "seed must be a whole number; got 1.5"),
        ({"seed": True}, "seed must be a whole number; got True"),
        ({"n": "6"}, "n must be a whole number or None; got '6'"),
        ({"widths": "100,100"}, "widths must be whole numbers such as"),
        ({"attack_config": 3}, "attack_config must be settings by name"),
        ({"determine": "false"}, "determine must be True or False; got 'false'"),
        ({"preset": []}, "the axis preset is empty"),
        ({"attack_config": {"m": []}}, "the axis attack_config.m is empty"),
    ],
)
def test_a_table_says_which_field_is_wrong(field, words) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        list(experiments(field))


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"attack_config": {"lr_x": "fast"}}, "lr_x must be a finite number; got 'fast'"),
        ({"attack_config": {"optimizer": "lion"}}, "optimizer must be one of sgd, adam"),
        ({"train": {"batch": "abc"}}, "batch must be a whole number or None; got 'abc'"),
        ({"train": {"colour": 1}}, "train has no setting 'colour'"),
        ({"train": {"steps": 3}}, "train.steps is a field of the row itself"),
    ],
)
def test_a_row_says_which_setting_is_wrong(field, words) -> None:
    (row,) = sweep([{**TINY, **field}], threads(1))
    assert row["status"] == "failed" and words in row["message"]


def test_a_row_that_no_file_can_hold_is_refused_with_its_reason() -> None:
    with pytest.raises(ValueError, match="finite numbers"):
        key_of(Experiment(attack_config={"lr_x": math.nan}))


def test_csv_holds_one_line_a_row(tmp_path: Path) -> None:
    rows = list(sweep([TINY, {**TINY, "widths": (1,), "steps": 1}], threads(1)))
    write_csv(tmp_path / "a" / "rows.csv", rows)
    lines = (tmp_path / "a" / "rows.csv").read_text().splitlines()
    assert len(lines) == 3 and "found@0.03" in lines[0] and "seconds.attack" in lines[0]
    assert flat(next(r for r in rows if r["status"] == "done"))["widths"] == "16"


def test_seeds_are_numbers_and_rising_ranges() -> None:
    for text, seeds in (("3", [3]), ("0-2", [0, 1, 2]), ("1, 4-5", [1, 4, 5])):
        assert seeds_of(text) == seeds
    refused = {"seeds are": ("", "a", "1-", "-3"), "rises": ("4-2", "0,3-1")}
    for words, texts in refused.items():
        for text in texts:
            with pytest.raises(ValueError, match=words):
                seeds_of(text)
