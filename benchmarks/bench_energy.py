"""Energy maps: time against a slow oracle, redraws of the page, and how cost grows.

    python benchmarks/bench_energy.py --quick

The oracle solves one non-negative least-squares problem a pixel, kinks as bounded columns; it is
timed on 1 of 20 pixels (of 60 with `--quick`) and scaled. Medians of five, one thread.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import torch
from energy_oracle import oracle

from explorer.engine.data import preset
from explorer.engine.energy.maps import grid, tau_of
from explorer.engine.energy.points import moving_point
from explorer.engine.exact import maximum_margin
from explorer.page import play
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.train import commands as train

EXTENT, TAU = 2.0, tau_of(2.0, 61, 0.12)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="fewer sizes, fewer oracle pixels")
    quick = options.parse_args().quick
    torch.set_num_threads(1)
    against_oracle(60 if quick else 20)
    growth(quick)
    page()


def drawn(n: int, seed: int):
    """Random points with labels by a coin, and their exact network."""
    rng = torch.Generator().manual_seed(seed)
    x = 1.2 * torch.randn(n, 2, generator=rng, dtype=torch.float64)
    y = torch.randn(n, generator=rng, dtype=torch.float64).sign()
    return maximum_margin(x, y).net, x, y


def moving(net, x, y, index, places, *more, **named):
    """Return the energies with one point at each of the places."""
    return moving_point(net, x, y, index, *more, **named).energies_at(places)


def timed(call, rounds: int = 5) -> float:
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def against_oracle(every: int) -> None:
    print("61 x 61, n = 10, exact network: seconds, the oracle's, ratio, largest difference")
    for seed in range(4):
        net, x, y = drawn(10, seed)
        places = grid(EXTENT, 61)
        index = seed % 10
        given = (net, x, y, index, places, TAU)
        ours = timed(lambda given=given: moving(*given))
        values = moving(net, x, y, index, places, TAU).values
        some = range(every // 2, len(places), every)
        begun = time.perf_counter()
        slow = []
        for i in some:
            z = x.clone()
            z[index] = places[i]
            slow.append(oracle(net, z, y, TAU))
        theirs = (time.perf_counter() - begun) / len(some) * len(places)
        off = np.abs(values[list(some)] - slow).max()
        print(
            f"seed {seed}  k {net.widths[0]:2d}  {ours:.3f} s  {theirs:.2f} s  "
            f"{theirs / ours:5.1f} x  {off:.1e}"
        )


def growth(quick: bool) -> None:
    print("growth of one map, seconds; the exponent of the last column is fitted")
    sizes = (31, 61, 121) if quick else (31, 61, 121, 241)
    net, x, y = drawn(10, 0)
    line("pixels a side", sizes, [
        timed(lambda s=s: moving(net, x, y, 0, grid(EXTENT, s), TAU), 3) for s in sizes
    ])  # fmt: skip
    counts = (6, 10, 14) if quick else (6, 8, 10, 12, 14, 18)
    seconds, widths = [], []
    for n in counts:
        runs = []
        for seed in range(3):
            net, x, y = drawn(n, 10 + seed)
            runs.append(timed(lambda a=(net, x, y): moving(*a, 0, grid(EXTENT, 61), TAU), 3))
            widths.append((net.widths[0], runs[-1]))
        seconds.append(statistics.median(runs))
    line("points n", counts, seconds)
    line("neurons k, over the same sets", [k for k, _ in widths], [s for _, s in widths])


def line(name: str, sizes, seconds) -> None:
    known = np.array(sizes) > 0
    slope = np.polyfit(np.log(np.array(sizes)[known]), np.log(np.array(seconds)[known]), 1)[0]
    cells = "  ".join(f"{a}: {b:.3f}" for a, b in zip(sizes, seconds, strict=True))
    print(f"{name}: {cells}  exponent {slope:.2f}")


def page() -> None:
    """Drag a point through the page's session, without a browser."""
    from explorer.page.apps.explorer import App

    made = App(preset("moons", n=10))
    play.go(made.session, "train")
    train.jump_to_exact(made.session)
    play.go(made.session, "landscape")
    panel = made.panels["EnergyPanel"]
    times = []
    for k in range(20):
        place = (
            landscape.candidates(made.session).x[1]
            + torch.tensor([0.02, 0.01 * (-1) ** k]).double()
        )
        begun = time.perf_counter()
        landscape.move_point(made.session, 1, place, 1)
        times.append(time.perf_counter() - begun)
        assert panel.picture.size == 61
    made.close()
    print(
        f"redraw of the page at 61 x 61 (moons, 10 points, without a browser): median "
        f"{1e3 * statistics.median(times):.0f} ms, largest {1e3 * max(times):.0f} ms"
    )


if __name__ == "__main__":
    main()
