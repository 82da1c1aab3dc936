"""Training to the end: points on the margin, CPU seconds, and the margin against more steps.

python benchmarks/bench_finish.py             ten seeds of 2-100-1 and 2-1000-1
python benchmarks/bench_finish.py --long      with 20,000 steps of descent beside each
"""

from __future__ import annotations

import argparse
import time

import torch

from explorer.engine import training
from explorer.engine.data import Dataset, preset
from explorer.engine.exact import maximum_margin
from explorer.engine.margin import q_of
from explorer.engine.training import TrainConfig
from explorer.research.runs import to_the_end

SEEDS = range(10)
WIDTHS = (100, 1000)
LONG = 20_000


def descent(data: Dataset, width: int, seed: int) -> tuple[float, float, int]:
    """CPU seconds of the long run, its normalised margin, and points within 1% of it."""
    config = TrainConfig(widths=(width,), steps=LONG)
    begun = time.process_time()
    for state in training.states(data, config, torch.Generator().manual_seed(seed)):  # noqa: B007
        pass
    on = int((state.q <= 1.01 * state.q_min).sum())
    return time.process_time() - begun, state.gamma_bar, on


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true")
    long = parser.parse_args().long
    torch.set_num_threads(1)
    data = preset("alternating-circle", 20, 0.0)
    best = 1 / (2 * maximum_margin(data.x, data.y).objective)
    print(f"largest margin over all networks: {best:.6f}")
    print(
        "width seed steps | within 1e-6 | CPU s: train finish | cells gap | margin | long: s margin"
    )
    for width in WIDTHS:
        for seed in SEEDS:
            config, begun = TrainConfig(widths=(width,)), time.process_time()
            state, trained, made = (
                training.init(data, config, torch.Generator().manual_seed(seed)), 0.0, None,
            )  # fmt: skip
            for state, made in to_the_end(data, state, config):  # noqa: B020
                if made is None:
                    trained, steps = time.process_time() - begun, state.t
            cpu = time.process_time() - begun
            assert made is not None
            q = q_of(made.net, data.x, data.y)
            on = int(((q - 1).abs() <= 1e-6).sum())
            row = (
                f"{width:5} {seed:4} {steps:5} | {on:2} of {data.n} | {trained:.2f} "
                f"{cpu - trained:.2f} | {made.cells} {made.gap:.0e} | {state.gamma_bar:.6f}"
            )
            if long:
                seconds, margin, level = descent(data, width, seed)
                row += f" | {seconds:.1f} {margin:.6f} ({level} within 1%)"
            print(row, flush=True)


if __name__ == "__main__":
    main()
