"""What attacks find in float32 beside float64, on all presets.

    python benchmarks/bench_types.py                 2-100-1, seeds 0 to 2
    python benchmarks/bench_types.py --seeds 0 --presets moons spiral

Every attack of the roster that takes its weights in float32, with its defaults, from the same first
candidates; training is in float64. One row for each attack: points within 0.03 of a claim, and
claims, over all presets that are separated and that the attack fits, and in how many runs float32
found more and in how many float64 did. All other attacks compute in float64, whatever the type.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import torch

from explorer.engine import training
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.data import PRESETS, preset
from explorer.engine.margin import q_of
from explorer.engine.roster import ROSTER
from explorer.engine.scoring import RADII, score
from explorer.engine.training import TrainConfig
from explorer.research import runs

N = 20
TYPES = (torch.float32, torch.float64)


def aimed(name, seed, width):
    """The points, and a network that separates them; None where it does not."""
    kind = PRESETS[name]
    truth = preset(name, n=min(max(N, kind.n_min), kind.n_max), seed=seed)
    config = TrainConfig(widths=(width,), steps=20_000)
    state = training.init(truth, config, torch.Generator().manual_seed(seed))
    net = training.advance(truth, state, config, config.steps).net
    least = float(q_of(net, truth.x, truth.y).min())
    return (truth, Target.of(net, least)) if least > 0 else None


def ways():
    """Every attack that takes its weights in float32; KKT with both ways of its multipliers."""
    for key, entry in ROSTER.items():
        if entry.needs.anywhere:
            yield key, key, entry.config()
    yield "kkt, joint", "kkt", replace(KKTConfig(), multipliers="joint")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--presets", nargs="+", default=list(PRESETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--width", type=int, default=100)
    args = parser.parse_args()
    torch.set_num_threads(1)  # threads change the rounding, and with it what is found
    sets = [aimed(name, seed, args.width) for name in args.presets for seed in args.seeds]
    print(f"{sum(made is not None for made in sets)} of {len(sets)} sets are separated")
    print("| attack | runs | points | found, float32 / float64 | claims | runs with more found |")
    print("|---|---|---|---|---|---|")
    for name, key, config in ways():
        rows = []
        for truth, target in filter(None, sets):
            if ROSTER[key].refusal(target):
                continue
            made = [runs.attack(target, config, 0, name=key, dtype=dtype).claims for dtype in TYPES]
            found = [int(score(truth, c.x, c.y).found[RADII.index(0.03)]) for c in made]
            rows.append((truth.n, *found, *(len(c.x) for c in made)))
        n, low, high, fewer, more = (sum(column) for column in zip(*rows, strict=True))
        ahead = sum(row[1] > row[2] for row in rows), sum(row[1] < row[2] for row in rows)
        print(f"| {name} | {len(rows)} | {n} | {low} / {high} | {fewer} / {more} | "
              f"{ahead[0]} / {ahead[1]} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
