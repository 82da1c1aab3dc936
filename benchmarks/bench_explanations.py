"""Explanations on exact networks: residuals in the cell, jumps at walls, pins, forced, farthest.

    python benchmarks/bench_explanations.py --quick

Random sets (standard normal times 1.2, labels by a coin), seeds 0 to 19 (4 with `--quick`), on the
plane with 6 and 9 points and on the line with 6; explanations in a box of half width 6.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field

import torch

from explorer.engine.exact import maximum_margin
from explorer.engine.explanations.cells import level_directions
from explorer.engine.explanations.masses import forced_points
from explorer.engine.explanations.others import Rivals, farthest_set, forced_mass
from explorer.engine.explanations.splitting import (
    extent_at,
    pinned_points,
    predicted_jump,
    residual,
    split,
)

BOX, REACH = 6.0, 5.0


@dataclass
class Row:
    """What one kind of set gave, over its seeds."""

    change: float = 0.0
    jump_off: list[float] = field(default_factory=list)
    pinned: list[float] = field(default_factory=list)
    forced: list[float] = field(default_factory=list)
    distance: list[float] = field(default_factory=list)
    bound: list[float] = field(default_factory=list)
    off: float = 0.0
    seconds: list[float] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    skipped: int = 0


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="4 seeds instead of 20")
    seeds = range(4 if options.parse_args().quick else 20)
    torch.set_num_threads(1)
    print(f"seeds 0 to {len(seeds) - 1}, box {BOX}")
    print("d  n  change   jump off  pinned  forced  farthest  bound  residual  s     rays  skipped")
    for d, n in ((2, 6), (2, 9), (1, 6)):
        row = Row()
        for seed in seeds:
            measure(row, d, n, seed)
        mean = lambda v: sum(v) / max(len(v), 1)  # noqa: E731
        print(
            f"{d} {n:2d}  {row.change:.1e}  {max(row.jump_off, default=0):8.1e}  "
            f"{mean(row.pinned):6.0%}  {mean(row.forced):6.0%}  "
            f"{mean(row.distance):8.2f}  {mean(row.bound):5.2f}  {row.off:.1e}  "
            f"{mean(row.seconds):.2f}  {mean(row.columns):7.0f}  {row.skipped}"
        )


def measure(row: Row, d: int, n: int, seed: int) -> None:
    """One set: splits inside and beyond the cell, and the sets that are as good."""
    generator = torch.Generator().manual_seed(seed)
    x = 1.2 * torch.randn(n, d, generator=generator, dtype=torch.float64)
    y = torch.where(torch.rand(n, generator=generator) > 0.5, 1.0, -1.0).double()
    made = maximum_margin(x, y)
    if not made.polished:
        row.skipped += 1
        return
    net = made.net
    begun = time.perf_counter()
    rivals = Rivals.of(net, x, y, BOX)
    found, mass = farthest_set(rivals), forced_mass(rivals)
    row.seconds.append(time.perf_counter() - begun)
    e = rivals.truth
    row.columns.append(len(rivals.cone.rays))
    row.pinned.append(float(pinned_points(net, e).double().mean()))
    row.forced.append(float(forced_points(mass, rivals.mass)[0].double().mean()))
    row.distance.append(found.distance)
    row.bound.append(found.at_most)
    row.off = max(row.off, found.residual)
    for i in range(e.n):
        turns = torch.randn(3, d, generator=generator, dtype=torch.float64)
        for u in (*level_directions(net, e.x[i], e.at(i)).T, *turns):
            extent = extent_at(net, e, i, u)
            a, b = (min(v, REACH) for v in (extent.plus, extent.minus))
            if min(a, b) < 1e-6:
                continue
            inside = split(net, e, i, u, a, b)
            row.change = max(row.change, abs(residual(net, inside) - residual(net, e)))
            if extent.walls_plus and extent.plus < REACH:
                past = split(net, e, i, u, a * (1 + 1e-6), b)
                jump = predicted_jump(net, past.x[i], float(past.lam[i]), extent.walls_plus)
                row.jump_off.append(abs(residual(net, past) / jump - 1))


if __name__ == "__main__":
    main()
