"""The GPU's benchmark, in small on the CPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "benchmarks" / "bench_gpu.py"


def test_the_smoke_run_writes_its_table(tmp_path):
    out = tmp_path / "gpu.md"
    done = subprocess.run(
        [sys.executable, SCRIPT, "--smoke", "--out", out],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = out.read_text(encoding="utf-8")
    assert "20-30-30-1, m = 12: 100 steps" in text
    assert "8 starts" in text
    assert "bench_gpu.py --smoke" in text
