"""Damaged files of every kind, by the thousand: each is taken, or refused in one sentence."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random

import numpy as np
import pytest
from typer.testing import CliRunner

from explorer.cli import app
from explorer.engine.data.images import MNIST
from explorer.engine.files import MOST_WORDS
from tests import mutants
from tests.engine.test_images import idx


def test_a_damaged_file_is_taken_or_refused_in_one_sentence(tmp_path: Path) -> None:
    """Twenty of each kind; fifty thousand are a slow test."""
    assert not list(mutants.faults(20 * len(mutants.KINDS), 1, tmp_path))


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_so_are_fifty_thousand(tmp_path: Path) -> None:
    found = list(mutants.faults(50_000, 2, tmp_path))
    print(f"{len(found)} of 50,000 mutated inputs ended otherwise than in one sentence")
    assert not found


def test_every_whole_file_is_taken_but_those_with_code(tmp_path: Path) -> None:
    """Else the damaged ones would be refused for what was wrong before."""
    for kind in mutants.KINDS:
        for data in kind.whole():
            fault = mutants.fault_of(kind, tmp_path, data)
            assert not fault, f"{kind.name}: {fault}"
            if mutants.MARK.name.encode() not in data:
                kind.read(tmp_path, data)


VERBS = {
    "pt": ("show", "attack"), "run": ("show", "attack", "explain"), "csv": ("train",),
    "table": ("sweep",), "idx": ("digits",), "search": ("tune",),
}  # fmt: skip


@pytest.mark.parametrize("name", VERBS)
def test_the_command_line_shows_no_traceback(name: str, tmp_path: Path) -> None:
    """A file that is refused is refused in one line."""
    kind = next(kind for kind in mutants.KINDS if kind.name == name)
    path, out = tmp_path / "given", str(tmp_path / "out")
    (tmp_path / MNIST[1]).write_bytes(idx(np.array([3, 1], dtype=np.uint8)))
    options = {
        "train": ["--data", str(path)],
        "sweep": ["--table", str(path), "--out", out],
        "digits": ["--images", "mnist", "--folder", str(tmp_path)],
        "tune": ["--preset", "two-points", "--widths", "8", "--steps", "300", "--log", str(path)],
    }
    refused = 0
    for _, data in zip(range(12), damaged(kind, tmp_path), strict=False):
        for verb in VERBS[name]:
            (tmp_path / MNIST[0] if verb == "digits" else path).write_bytes(data)
            done = CliRunner().invoke(app, [verb, *options.get(verb, [str(path)])])
            assert isinstance(done.exception, SystemExit) and done.exit_code == 2, done.output
            told = done.stderr.splitlines()
            assert len(told) == 1 and len(told[0]) <= MOST_WORDS + 20, told
            assert str(tmp_path) not in told[0]
            refused += 1
    assert refused >= 12


def damaged(kind: mutants.Kind, folder: Path) -> Iterator[bytes]:
    """Damaged files of a kind that are refused."""
    whole = kind.whole()
    for number in count():
        data = mutants.bent(whole[number % len(whole)], Random(number))
        try:
            kind.read(folder, data)
        except ValueError:
            yield data


def test_the_files_with_code_would_run_it() -> None:
    assert not mutants.MARK.exists()
    pickle.loads(mutants.batches()[1])
    assert mutants.MARK.exists()
    mutants.MARK.unlink()


def test_the_mutants_of_a_seed_are_always_the_same() -> None:
    first = [(kind.name, data) for kind, _, data in mutants.mutants(20, 5)]
    mutants.runs.cache_clear()  # the whole files are written anew
    assert [(kind.name, data) for kind, _, data in mutants.mutants(20, 5)] == first


# --- files made to take more than they have: none takes a gigabyte, and each has its answer -------

MOST_MB = 1000


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(sys.platform == "win32", reason="a process is measured by wait4")
def test_no_crafted_file_takes_a_gigabyte(root: Path) -> None:
    """Each is read in a process of its own, which a limit of the processor's time ends."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.crafted"], cwd=root, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    print(done.stdout)
    assert len(rows) >= 81
    for row in rows:
        assert row["peak_mb"] < MOST_MB, row
        assert not row["answer"].startswith("RAISED"), row
        assert (row["answer"] == "taken") or row["name"] != "link: largest", row
        assert len(row["answer"]) <= MOST_WORDS and row["answer"].isprintable(), row
