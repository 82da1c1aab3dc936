"""The GPU's benchmark, in small on the CPU."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "benchmarks" / "bench_gpu.py"
KEPT = SCRIPT.with_name("gpu.md")


def printed(*words: str) -> str:
    kept = KEPT.read_bytes() if KEPT.exists() else None
    done = subprocess.run(
        [sys.executable, SCRIPT, *words], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (KEPT.read_bytes() if KEPT.exists() else None) == kept  # a table is a GPU's alone
    return done.stdout


def test_the_smoke_run_goes_through_every_row() -> None:
    text = printed("--smoke")
    assert "20-30-30-1, m = 12: 100 steps" in text
    assert re.findall(r"2-30-1, m = 40, (\w+):", text) == ["joint", "projected"]
    assert len(re.findall(r"\b8 starts", text)) == 2
    assert "bench_gpu.py --smoke" in text


def test_starts_at_once_are_compared_on_the_cpu() -> None:
    text = printed("--starts", "2", "--width", "10")
    assert re.findall(r"2-10-1, m = 40, (\w+), 2 starts", text) == ["joint", "projected"]
