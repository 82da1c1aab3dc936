"""How much two worker processes save over one, on a sweep of 64 runs. Start-up is counted.

python benchmarks/bench_sweep.py            five repetitions, with --quick one of 16 runs
"""

from __future__ import annotations

import argparse
import os
from statistics import median
from time import perf_counter

import torch

from explorer.research.sweep import experiments, processes, sweep

ROWS, QUICK_ROWS, REPEATS = 64, 16, 5
GOAL = 1.7
TABLE = {
    "preset": ["alternating-circle", "blobs"], "n": 10, "widths": 40, "steps": 1200,
    "attack": "kkt", "attack_config": {"m": 20, "steps": 150},
}  # fmt: skip


def seconds(workers: int, count: int) -> float:
    """Of a sweep of `count` rows on so many processes, from nothing to the last row."""
    rows = list(experiments({**TABLE, "seed": list(range(count // 2))}))
    begun = perf_counter()
    found = list(sweep(rows, processes(workers), in_flight=2 * workers))
    taken = perf_counter() - begun
    failed = [row["message"] for row in found if row["status"] == "failed"]
    if len(found) != count or any("not separated" not in text for text in failed):
        raise SystemExit(f"rows are missing or failed: {len(found)} of {count}, {failed[:3]}")
    return taken


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    count, repeats = (QUICK_ROWS, 1) if quick else (ROWS, REPEATS)
    torch.set_num_threads(1)
    print(f"{count} rows, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start")
    print("repetition  one process  two processes  ratio")
    ratios = []
    for k in range(repeats):
        one, two = seconds(1, count), seconds(2, count)
        ratios.append(one / two)
        print(f"{k + 1:>10}  {one:>9.1f} s  {two:>11.1f} s  {one / two:>5.2f}", flush=True)
    word = "reached" if median(ratios) >= GOAL else "not reached"
    print(f"median {median(ratios):.2f} (goal {GOAL}: {word})")


if __name__ == "__main__":
    main()
