"""What merging leaves of a trained 2-1000-1, and by how much Phi and the attack's loss change.

    python benchmarks/bench_merging.py

The alternating circle, 20,000 steps; Phi on 4000 points of [-2, 2]^2; the loss at three draws of 40
candidates, as relative difference from that of the whole network, the largest of the three.
"""

from __future__ import annotations

import bench_speed
import reference
import torch

from explorer.engine.kernels.batched import Prepared, through
from explorer.engine.merging import merge_neurons

WAYS = ((0.02, 1e-6, 0.0), (0.1, 1e-6, 0.0), (0.02, 1e-4, 0.0), (0.02, 0.0, 1e-6),
        (0.02, 0.0, 1e-5), (0.02, 0.0, 3e-5))  # fmt: skip
ALPHAS = (5.0, 50.0, 200.0)


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    target = bench_speed.trained(1000, 20_000)
    net = target.net
    probe = 4 * torch.rand(4000, 2, generator=torch.Generator().manual_seed(0)).double() - 2
    draws = []
    for seed in range(3):
        _, x, y, lam = reference.problem(2, (1,), 40, seed)
        draws.append((0.7 * x, 2 * lam * target.mass / 40 * y))

    def losses(prepared: Prepared, alpha: float) -> torch.Tensor:
        return torch.stack([through(prepared, x, alpha).fit(c).loss for x, c in draws])

    share = merge_neurons(net).net.weights[1][0].square().sort(descending=True).values
    share = share / share.sum()
    print(f"path weight of the heaviest 60 merged neurons: {float(share[:60].sum()):.1%}\n")
    heads = [f"alpha {a:g} | slopes kept" for a in ALPHAS]
    print(f"| angle, drop, fold | neurons | Phi changes | {' | '.join(heads)} |")
    print("|---" * (3 + 2 * len(ALPHAS)) + "|")
    for angle, drop, fold in WAYS:
        merged = merge_neurons(net, angle, drop, probe, fold)
        cells = []
        for alpha in ALPHAS:
            whole = losses(Prepared.of(net), alpha)
            for slopes in (None, merged.slopes):
                off = losses(Prepared.of(merged.net, slopes), alpha) / whole - 1
                cells.append(f"{float(off.abs().max()):.0e}")
        row = (f"{angle}, {drop:g}, {fold:g}", merged.net.widths[0], f"{merged.error:.1e}", *cells)
        print(f"| {' | '.join(map(str, row))} |", flush=True)


if __name__ == "__main__":
    main()
