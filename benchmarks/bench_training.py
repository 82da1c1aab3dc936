"""How soon training reaches its margin, and that it never stops being finite.

    python benchmarks/bench_training.py            the table of seeds (about two minutes, one core)
    python benchmarks/bench_training.py --long     200,000 steps on every preset (about ten minutes)

Published settings, measured on one core: 1e6 epochs, 353 CPU seconds, q spread over 13%
(2-100-100-1, 20 points on the circle with alternating labels).
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import time

import torch

from explorer.engine.data import PRESETS, Dataset, preset
from explorer.engine.training import TrainConfig, TrainState, init, iterate, terminate

SEEDS = range(10)
NETWORKS = ((100, 100), (100,), (1000,))


def level(state: TrainState, within: float) -> int:
    """Points whose margin is at most (1 + within) times the smallest; 0 when not separated."""
    if state.q_min <= 0:
        return 0
    return int((state.q <= (1 + within) * state.q_min).sum())


def one_run(target: Dataset, config: TrainConfig, seed: int) -> dict[str, float]:
    """Train to the planned steps; when 10% and 1% were reached, and how it ended."""
    state = init(target, config, torch.Generator().manual_seed(seed))
    seen: dict[str, float] = {}
    start = time.process_time()
    for state in iterate(target, state, config):  # noqa: B020
        if state.q_min > 0:
            seen.setdefault("separated", state.t)
        if state.t % 100 == 0:
            if level(state, 0.10) == target.n:
                seen.setdefault("all within 10%", state.t)
            if level(state, 0.01) >= target.n - 1:
                seen.setdefault("19 within 1%", state.t)
                seen.setdefault("CPU s to that", time.process_time() - start)
    cpu = time.process_time() - start
    return {
        **seen,
        "within 1%": level(state, 0.01),
        "spread %": 100 * (float(state.q.max()) / state.q_min - 1),
        "gamma_bar": state.gamma_bar,
        "CPU s": cpu,
        "steps/s": state.t / cpu,
    }


COLUMNS = (
    "separated",
    "all within 10%",
    "19 within 1%",
    "CPU s to that",
    "within 1%",
    "spread %",
    "gamma_bar",
    "CPU s",
    "steps/s",
)


def row(name: str, values: dict[str, float]) -> str:
    cells = (f"{values[c]:.4g}" if c in values else "-" for c in COLUMNS)
    return f"{name:>8}" + "".join(f"{cell:>16}" for cell in cells)


def table(config: TrainConfig) -> None:
    target = preset("alternating-circle", 20, 0.0)
    widths = "-".join(map(str, (2, *config.widths, 1)))
    print(f"\n{widths}, {config.method}, {config.loss} loss, {config.steps} steps")
    print(f"{'seed':>8}" + "".join(f"{c:>16}" for c in COLUMNS))
    runs = [one_run(target, config, seed) for seed in SEEDS]
    for seed, values in zip(SEEDS, runs, strict=True):
        print(row(str(seed), values), flush=True)
    # A run that never got there counts as infinitely late.
    middle = {c: statistics.median(r.get(c, math.inf) for r in runs) for c in COLUMNS}
    print(row("median", middle), flush=True)


def long_runs(steps: int, only: list[str]) -> None:
    """Every preset for many steps: finite throughout, the direction settling."""
    print(
        f"{'preset':>20}{'widths':>12}{'status':>10}{'gamma_bar':>12}{'log loss':>12}"
        f"{'half turn':>12}{'last turn':>12}{'CPU s':>8}"
    )
    for name in only or PRESETS:
        for widths in ((100,), (100, 100)):
            target, config = preset(name), TrainConfig(widths=widths, steps=steps)
            state = init(target, config, torch.Generator().manual_seed(0))
            marks: list[torch.Tensor] = []
            start = time.process_time()
            for state in iterate(target, state, config):  # noqa: B020
                assert math.isfinite(state.log_loss) and math.isfinite(state.rho)
                if state.t % 1000 == 0:
                    assert math.isfinite(state.gamma_tilde)
                    assert bool(state.net.theta.isfinite().all())
                if state.t in (steps // 4, steps // 2, steps):
                    marks.append(state.net.theta / state.rho)
            turns = [float((b - a).norm()) for a, b in itertools.pairwise(marks)]
            shown = "".join(f"{t:>12.2e}" for t in turns)
            print(
                f"{name:>20}{widths!s:>12}{terminate(state, config).name:>10}"
                f"{state.gamma_bar:>12.5f}{state.log_loss:>12.4g}{shown}"
                f"{time.process_time() - start:>8.1f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="200,000 steps on every preset")
    parser.add_argument("--steps", type=int, help="another number of steps")
    parser.add_argument("presets", nargs="*", help="presets of --long; all when none is named")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    if options.long:
        long_runs(options.steps or 200_000, options.presets)
        return
    for widths in NETWORKS:
        table(TrainConfig(widths=widths, steps=options.steps or 20_000))
    table(TrainConfig(method="ascent", steps=options.steps or 4000))


if __name__ == "__main__":
    main()
