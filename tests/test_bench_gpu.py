"""The GPU's benchmark, in small on the CPU."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks import bench_gpu
from tests.engine.pretend import NAME, Pretend

KEPT = Path(bench_gpu.__file__).with_name("gpu.md")


Printed = Callable[..., str]


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Printed:
    """What the script prints; a table is a GPU's alone, so that it keeps none here."""

    def run(*words: str) -> str:
        kept = KEPT.read_bytes() if KEPT.exists() else None
        monkeypatch.setattr(sys, "argv", [bench_gpu.__file__, *words])
        bench_gpu.main()
        assert (KEPT.read_bytes() if KEPT.exists() else None) == kept
        return capsys.readouterr().out

    return run


def test_the_smoke_run_goes_through_every_row(printed: Printed) -> None:
    text = printed("--smoke")
    assert "20-30-30-1, m = 12: 100 steps" in text
    for row in (
        "attack_starts", "tune, 8 restarts", "training 2-30-3", "weight decay",
        "training 20-30-30-1", "decoreco, joint", "inversion", "reckoned to fit",
    ):  # fmt: skip
        assert row in text, row
    assert re.findall(r"2-30-1, m = 40, (\w+):", text) == ["joint", "projected"]
    assert len(re.findall(r"\b8 starts", text)) == 3
    assert "bench_gpu.py --smoke" in text


def test_starts_at_once_are_compared_on_the_cpu(printed: Printed) -> None:
    text = printed("--starts", "2", "--width", "10")
    assert re.findall(r"2-10-1, m = 40, (\w+), 2 starts", text) == ["joint", "projected"]


def test_parts_that_would_begin_too_late_are_named(printed: Printed) -> None:
    assert printed("--smoke", "--minutes", "0").count("not run") == 7


@pytest.mark.slow
def test_the_whole_table_runs_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_gpu, "BLOCK", 3)
    small = replace(bench_gpu.SMOKE, width=5, steps=9, starts=2, widths=(4,), m=6, points=6)
    with Pretend():
        found = list(bench_gpu.table(small, NAME))
    text = "\n".join(found)
    assert "training 20-5-5-1" in text and "not run" not in text


def test_a_part_that_fills_the_memory_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> Iterator[str]:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.\nmore")
        yield ""

    for name in ("starts", "verbs", "attack", "training", "single"):
        monkeypatch.setitem(bench_gpu.PARTS, name, full)
    found = list(bench_gpu.table(bench_gpu.SMOKE, "cpu"))
    assert sum("20.00 GiB" in row for row in found) == 5
    assert "m = 40" in found[-1]
