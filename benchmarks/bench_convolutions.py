"""Attacks on small convolutions: what is found of signals and digits, up to shifts where pooled.

    python benchmarks/bench_convolutions.py                        ten seeds of each row
    python benchmarks/bench_convolutions.py --rows "signals 16" --seeds 3 --start 100
    python benchmarks/bench_convolutions.py --set train_steps=3000

Found: of all points, unseen ones included, the nearest by NCC to a candidate; pooled convolutions
up to shifts in a circle, and without. Shares with their intervals over the seeds; "leaves" are
shares of the squared norm, medians. Rows are printed as they are done; --workers takes several
seeds at once.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: small steps wait for each other

from explorer.commands.base import assignments
from explorer.engine.confidence import share
from explorer.engine.threads import limit_threads
from explorer.research.convolutions import ConvolutionRun, convolution_run
from explorer.research.runs import RunFailed

SIGNALS, DIGITS = ConvolutionRun(), ConvolutionRun(points="digits")
HEAD = (
    "| what | seeds | truth leaves | candidates leave | found, unseen | NCC > 0.9, unseen | "
    "found without shifts | NCC without shifts |\n|---|---|---|---|---|---|---|---|"
)
POOLED: dict[str, Any] = {"pooled": True, "train_steps": 3000}  # their margins level later
ROWS = {
    "signals 16": replace(SIGNALS, samples=16),
    "signals 16, pooled": replace(SIGNALS, samples=16, side=16, **POOLED),
    "digits": DIGITS,
    "signals 32": SIGNALS,
    "digits, pooled": replace(DIGITS, side=8, **POOLED),
    "signals 16, decoreco": replace(SIGNALS, samples=16, attack="decoreco"),
    "digits, decoreco": replace(DIGITS, attack="decoreco"),
    "signals 32, pooled": replace(SIGNALS, side=32, **POOLED),
    "signals 16, pooled, decoreco": replace(
        SIGNALS, samples=16, side=16, attack="decoreco", **POOLED
    ),
    "signals 64": replace(SIGNALS, samples=64),
}


def counts(run: ConvolutionRun, seed: int) -> dict[str, Any] | None:
    """Return what was counted on one seed; None where the points are not separated."""
    limit_threads(1)
    try:
        made = convolution_run(replace(run, seed=seed))
    except RunFailed:
        return None
    kinds = {"rank": made.verdicts["rank"], "ncc": made.verdicts["ncc"]}
    if run.pooled:
        kinds |= {"plain": made.as_they_are["rank"], "plain ncc": made.as_they_are["ncc"]}
    return {
        "truth": made.residual**2, "left": float(made.state.left),
        **{k: (v.found, v.n, round(v.of_controls * v.unseen), v.unseen) for k, v in kinds.items()},
    }  # fmt: skip


def row(name: str, rows: list[dict[str, Any] | None]) -> str:
    """Return one line of the table."""
    done = [r for r in rows if r is not None]
    if not done:
        return f"| {name} | 0 of {len(rows)} separated |"

    def cell(kind: str) -> str:
        if kind not in done[0]:
            return "–"
        found, n, others, unseen = zip(*(r[kind] for r in done), strict=True)
        return f"{share(found, n)}, {sum(others) / sum(unseen):.3f}"

    leaves = " | ".join(f"{median(r[k] for r in done):.3f}" for k in ("truth", "left"))
    cells = " | ".join(cell(kind) for kind in ("rank", "ncc", "plain", "plain ncc"))
    return f"| {name} | {len(done)} | {leaves} | {cells} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--set", nargs="*", default=[], help="NAME=VALUE for all rows")
    options = parser.parse_args()
    given = assignments(ConvolutionRun, options.set, "a convolution")
    print(HEAD, flush=True)
    seeds = range(options.start, options.start + options.seeds)
    with ProcessPoolExecutor(options.workers) as pool:
        made = {
            name: pool.map(partial(counts, replace(ROWS[name], **given)), seeds)
            for name in options.rows
        }
        for name, rows in made.items():
            print(row(name, list(rows)), flush=True)


if __name__ == "__main__":
    main()
