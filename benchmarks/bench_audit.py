"""What audits say of digits: of images that a network learnt, and of others.

    python benchmarks/bench_audit.py [--seeds 6] [--others 8]

Networks 64-1000-1, 20 images, 300 steps; 400 images that were not learnt are held out. "Others" are
audits of as many images that were not learnt, and that the network gets right.
"""

from __future__ import annotations

import argparse

import torch

from explorer.engine.data import Dataset
from explorer.engine.data.images import Choice, draw
from explorer.engine.network import Network
from explorer.engine.ranks import RankVerdict
from explorer.engine.scoring import LEVEL
from explorer.research import runs
from explorer.research.audit import audit
from explorer.research.image_runs import ImageRun

N = 20


def digits(seed: int) -> tuple[Dataset, Dataset, Network]:
    """The images learnt, 400 others, and the network."""
    run = ImageRun(Choice(n=N, seed=seed), seed=seed)
    drawn = draw(run.choice)
    sets = (drawn.other, *drawn.controls)
    unseen = Dataset(torch.cat([s.x for s in sets]), torch.cat([s.y for s in sets]))
    return drawn.train, unseen, runs.train(run.run_on(drawn), keep=1).net


def exchanged(unseen: Dataset, net: Network, seed: int) -> tuple[Dataset, Dataset]:
    """Images that the network gets right, as many as it learnt, and all the others."""
    right = unseen.y * net(unseen.x) > 0
    g = torch.Generator().manual_seed(seed)
    chosen = torch.zeros(unseen.n, dtype=torch.bool)
    for label in (-1, 1):
        able = ((unseen.y == label) & right).nonzero().squeeze(1)
        chosen[able[torch.randperm(len(able), generator=g)[: N // 2]]] = True
    return (Dataset(unseen.x[chosen], unseen.y[chosen]),
            Dataset(unseen.x[~chosen], unseen.y[~chosen]))  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=6, help="networks")
    parser.add_argument("--others", type=int, default=8, help="audits of other images, of each")
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(
        "| seed | p | found | by chance | held out | others: p at most 0.05 |\n" + "|---" * 6 + "|"
    )
    for seed in range(args.seeds):
        data, unseen, net = digits(seed)
        made = audit(net, data, heldout=unseen)
        assert made.best is not None and isinstance(made.best.verdict, RankVerdict)
        verdict = made.best.verdict
        said = 0
        for k in range(args.others):
            wrong, rest = exchanged(unseen, net, 1000 * seed + k)
            said += audit(net, wrong, heldout=rest, seed=k).p_value <= LEVEL
        cells = (seed, f"{made.p_value:.3f}", verdict.found, f"{verdict.chance:.2g}",
                 verdict.held_out, f"{said} of {args.others}")  # fmt: skip
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
