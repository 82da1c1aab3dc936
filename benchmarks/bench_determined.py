"""What weights determine: sparse optimal networks, and dense trained ones, over all explanations.

    python benchmarks/bench_determined.py                    all rows: some ten minutes
    python benchmarks/bench_determined.py --seeds 1 --row circle

For each set, network and seed: neurons of different directions, what the points leave of the
weights, how many points are certified (the radius of half width 0.03 exceeds that), how many every
explanation has mass near (`forced`), and how far an explanation as good as that by the points can
be from them on average: one that was found, and the bound over all of them. Random places,
as many, are asked for as well: a certified one is false where no point is near.
"""

from __future__ import annotations

import argparse
import time

import torch

from explorer.engine.attacks.target import Target
from explorer.engine.data import preset
from explorer.engine.exact import maximum_margin
from explorer.engine.explanations.assumptions import groups_left, obstacle
from explorer.engine.explanations.certainty import certainty
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.research import runs
from explorer.research.determined import determination
from explorer.research.runs import RADIUS, cone_around

TRAINED = {
    "exact": None,
    "gradient, 50": TrainConfig(widths=(50,), steps=20_000),
    "gradient, 100": TrainConfig(widths=(100,), steps=20_000),
}
SETS = {
    "circle": ("alternating-circle", 10),
    "circle 20": ("alternating-circle", 20),
    "moons": ("moons", 12),
    "xor": ("xor", 8),
    "line": ("alternating-line", 6),
}


def network(data, config, seed):
    """Return the target, or why there is none."""
    if config is None:
        net = maximum_margin(data.x, data.y).net
        return Target.of(net, 1.0) if net.depth == 2 else "no network"
    try:
        done = runs.train(Run(data, config, seed=seed))
    except runs.RunFailed as error:
        return str(error).split(".")[0]
    return Target.of(done.net, done.q_min)


def false_places(target, data, seed):
    """Return how many of as many random places are certified without a point near them."""
    cone = cone_around(target, data)
    g = torch.Generator().manual_seed(seed)
    wide = float(data.x.abs().max()) * 1.2
    x = wide * (2 * torch.rand(data.n, data.d, generator=g, dtype=torch.float64) - 1)
    y = torch.where(torch.rand(data.n, generator=g) < 0.5, 1.0, -1.0).double()
    made = certainty(cone, x, y, RADIUS, data)
    near = ((x[:, None] - data.x[None]).abs().amax(2) <= RADIUS + made.reach + 1e-9) & (
        y[:, None] == data.y[None]
    )
    return int((made.certain & ~near.any(1)).sum())


def main():
    """Print one row for each set, network and seed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--row", choices=SETS, default=None)
    options = parser.parse_args()
    print(
        "set | network | seed | groups | left | certified | forced | farthest | bound | false | s"
    )
    for name in SETS if options.row is None else [options.row]:
        kind, n = SETS[name]
        for how, config in TRAINED.items():
            for seed in range(options.seeds if config is not None else 1):
                data = preset(kind, n=n, seed=seed)
                target = network(data, config, seed)
                if isinstance(target, str):
                    print(f"{name} | {how} | {seed} | {target}", flush=True)
                    continue
                groups, why = groups_left(target.net), obstacle(target)
                if why:
                    print(f"{name} | {how} | {seed} | {groups} | refused", flush=True)
                    continue
                began = time.process_time()
                made = determination(target, data)
                spent = time.process_time() - began
                print(
                    f"{name} | {how} | {seed} | {groups} | {made.certainty.truth:.2%} | "
                    f"{int(made.certainty.certain.sum())} of {n} | {int(made.forced.sum())} | "
                    f"{made.farthest.distance:.3f} | {made.farthest.at_most:.3f} | "
                    f"{false_places(target, data, seed)} | {spent:.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
