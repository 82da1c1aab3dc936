"""Joint or projected multipliers: what the KKT attack finds with each, and what it costs.

    python benchmarks/bench_default.py                    presets and ten drawn sets, 2-100-1
    python benchmarks/bench_default.py --widths 1000 100-100 --seeds 0 1

Each row is one set, trained and attacked with the defaults of the engine but for the multipliers,
from the same first candidates: recall is the share of the training points that a claim lies on
(within 0.03), precision the share of the claims that lie on one, and the CPU seconds are those of
the attack alone, both kinds in turns. A drawn set has 8 to 24 points anywhere on the inner plane,
labels by a coin; seeds 300 and up, on which no setting was chosen.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from explorer.engine import training
from explorer.engine.attacks import kkt
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.data import PLANE, PRESETS, Dataset, preset
from explorer.engine.scoring import RADII, score
from explorer.engine.threads import limit_threads
from explorer.engine.training import TrainConfig

KINDS = ("joint", "projected")
DRAWN = 10


@dataclass(frozen=True)
class Row:
    """What one kind of multipliers did on one network."""

    recall: float
    precision: float
    claims: int
    residual: float
    seconds: float


def drawn(seed: int) -> Dataset:
    """A set that no law but chance has made."""
    generator = torch.Generator().manual_seed(300 + seed)
    n = int(torch.randint(8, 25, (), generator=generator))
    x = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    y = 2.0 * torch.randint(2, (n,), generator=generator).double() - 1
    y[:2] = torch.tensor([1.0, -1.0])
    return Dataset((2 * x - 1) * 0.75 * PLANE, y)


def sets(seeds: list[int]) -> Iterator[tuple[str, Dataset, int]]:
    """Presets of two classes, of each seed, and the drawn sets."""
    for name in PRESETS:
        for seed in seeds:
            data = preset(name, seed=seed)
            if data.outputs == 1:
                yield f"{name}, seed {seed}", data, seed
    for seed in range(DRAWN):
        yield f"drawn {seed}", drawn(seed), seed


def attacked(target: Target, truth: Dataset, config: KKTConfig, seed: int) -> Row:
    """One run from the candidates of this seed."""
    begun = time.process_time()
    state = kkt.init(target, config, torch.Generator().manual_seed(seed))
    state = kkt.advance(target, state, config, config.steps)
    seconds = time.process_time() - begun
    claims = kkt.report(target, state, config)
    found = int(score(truth, claims.x, claims.y).found[RADII.index(0.03)])
    return Row(
        found / truth.n, found / max(len(claims.x), 1), len(claims.x), float(state.l_stationary),
        seconds,
    )  # fmt: skip


def cells(row: Row) -> str:
    return (
        f"{row.recall:.2f} | {row.precision:.2f} | {row.claims} | {row.residual:.4f} | "
        f"{row.seconds:.2f}"
    )


def means(rows: list[Row]) -> str:
    each = zip(
        *((r.recall, r.precision, r.claims, r.residual, r.seconds) for r in rows), strict=True
    )
    a, b, c, d, e = (sum(column) / len(rows) for column in each)
    return f"{a:.3f} | {b:.3f} | {c:.1f} | {d:.4f} | {e:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--widths", nargs="+", default=["100"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--train-steps", type=int, default=TrainConfig.steps)
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    args = parser.parse_args()
    limit_threads(1)
    one = "recall | precision | claims | residual | CPU s"
    print(f"| set | network | n | joint: {one} | projected: {one} |")
    print("|" + "---|" * 13)
    kept: dict[str, list[Row]] = {kind: [] for kind in KINDS}
    for widths in args.widths:
        layers = tuple(int(k) for k in widths.split("-"))
        config = TrainConfig(widths=layers, steps=args.train_steps)
        for name, truth, seed in sets(args.seeds):
            state = training.init(truth, config, torch.Generator().manual_seed(seed))
            state = training.advance(truth, state, config, config.steps)
            net = f"{truth.d}-{widths}-1"
            if state.q_min <= 0:
                print(f"| {name} | {net} | {truth.n} | not separated |", flush=True)
                continue
            target = Target.of(state.net, state.q_min)
            target = Target(target.net.to(dtype=getattr(torch, args.dtype)))
            rows = {
                kind: attacked(target, truth, replace(KKTConfig(), multipliers=kind), seed)
                for kind in KINDS
            }
            for kind, row in rows.items():
                kept[kind].append(row)
            line = " | ".join(cells(row) for row in rows.values())
            print(f"| {name} | {net} | {truth.n} | {line} |", flush=True)
    if kept[KINDS[0]]:
        line = " | ".join(means(rows) for rows in kept.values())
        print(f"| **mean of {len(kept[KINDS[0]])}** | | | {line} |")


if __name__ == "__main__":
    main()
