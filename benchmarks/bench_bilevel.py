"""Table 1 of Runkel et al. on the 8 x 8 digits: how far the weights stay apart, from three starts.

python benchmarks/bench_bilevel.py            five seeds, about two CPU minutes
python benchmarks/bench_bilevel.py --quick    one seed
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from explorer.commands.grid import MODELS, PAPER, THREE
from explorer.engine.attacks.bilevel import BilevelConfig
from explorer.research.grid import GridCell, run_cell


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed")
    parser.add_argument("--n", type=int, default=20, help="digits")
    options = parser.parse_args()
    torch.set_num_threads(1)
    seeds = range(1 if options.quick else 5)
    print(f"8 x 8 digits, odd against even, n = {options.n}, seeds {list(seeds)}; medians")
    print(f"{'model':8}{'start':11}{'before':>11}{'after':>11}{'paper':>11}{'to truth':>18}"
          f"{'to partition':>18}{'ms/step':>9}")  # fmt: skip
    for k, (model, settings) in enumerate(MODELS.items()):
        for start, (a, b) in THREE.items():
            found, cost = [], []
            for seed in seeds:
                begun = time.process_time()
                cell = GridCell("digits", "bilevel", a, b, options.n, seed=seed, settings=settings)
                found.append(run_cell(cell))
                cost.append(1e3 * (time.process_time() - begun) / max(found[-1]["steps"], 1))

            def middle(pick, found=found) -> float:
                return statistics.median(pick(r) for r in found)

            ends = [
                f"{middle(lambda r, s=s: r['start'][s]):10.3f} →{middle(lambda r, s=s: r[s]):6.3f}"
                for s in ("truth", "heldout")
            ]
            before = middle(lambda r: 2 * r["first_numbers"]["l_upper"])
            after = middle(lambda r: 2 * r["numbers"]["l_upper"])
            print(
                f"{model:8}{start:11}{before:11.2e}{after:11.2e}{PAPER[start][k]:11.2e}"
                f"{ends[0]}{ends[1]}{statistics.median(cost):9.1f}"
            )
    print(f"paper: CIFAR-10, 3072 inputs, width 6144; here {BilevelConfig.width} hidden neurons")


if __name__ == "__main__":
    main()
