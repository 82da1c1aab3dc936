"""The trained experiment on membership beside its reference values, and the total time.

    python benchmarks/bench_membership.py               five trials per dimension, about a minute
    python benchmarks/bench_membership.py --trials 40   the same with smaller errors
    python benchmarks/bench_membership.py --quick       three dimensions
    python benchmarks/bench_membership.py --exact       exact two-neuron networks instead: time of a
                                                        redraw at d = 2000, rates, and rho

The reference is an independent run of the published settings by torch's layers and optimiser, of
five trials (three from d = 600), given to the digits below. z is the difference in units of
its standard error, from our spread over trials and both numbers of trials; sampling alone keeps
it within 3 nearly always. Differences below half the reference's last digit count as none.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from dataclasses import replace

import numpy as np
import torch

from explorer.engine.data.highdim import LAWS
from explorer.engine.membership.experiment import (
    DIMS,
    MembershipConfig,
    MembershipTrial,
    membership_experiment,
)
from explorer.page.apps.membership_scene import MembershipScene, outcome, world

NAMES = ("on_margin", "beyond_signed", "beyond", "beyond_half")
TITLES = ("train within 10% of m", "test y Phi >= m", "test |Phi| >= m", "test |Phi| >= m/2")
# d: (value, half its last digit) of each column
REFERENCE = {
    10: ((0.05, 5e-3), (0.435, 5e-4), (0.87, 5e-3), (0.93, 5e-3)),
    20: ((0.08, 5e-3), (0.187, 5e-4), (0.37, 5e-3), (0.65, 5e-3)),
    30: ((0.11, 5e-3), (0.109, 5e-4), (0.22, 5e-3), (0.54, 5e-3)),
    50: ((0.17, 5e-3), (0.045, 5e-4), (0.09, 5e-3), (0.38, 5e-3)),
    100: ((0.24, 5e-3), (0.005, 5e-4), (0.010, 5e-4), (0.18, 5e-3)),
    200: ((0.54, 5e-3), (1e-4, 5e-5), (5e-4, 5e-5), (0.05, 5e-3)),
    400: ((0.59, 5e-3), (0.0, 5e-5), (0.0, 5e-5), (0.005, 5e-4)),
    600: ((0.77, 5e-3), (0.0, 5e-5), (0.0, 5e-5), (5e-4, 5e-5)),
    1000: ((0.78, 5e-3), (0.0, 5e-5), (0.0, 5e-5), (0.0, 5e-5)),
}
LIMIT = 3.0


def reference_trials(d: int) -> int:
    return 5 if d <= 400 else 3


def column(trials: list[MembershipTrial], name: str) -> tuple[float, float, float]:
    """Mean, its standard error, and the spread of one trial."""
    values = np.array([getattr(t, name) for t in trials])
    # With few hits the spread over trials may come out as 0: counting has a spread of its own.
    count = trials[0].members.numel() if name == "on_margin" else trials[0].fresh.numel()
    share = (values.sum() * count + 0.5) / (len(values) * count + 1)
    spread = max(float(values.std(ddof=1)), math.sqrt(share * (1 - share) / count))
    return float(values.mean()), spread / math.sqrt(len(values)), spread


def z_of(mean: float, spread: float, trials: int, d: int, known: tuple[float, float]) -> float:
    value, rounding = known
    away = max(abs(mean - value) - rounding, 0.0)
    return away / (spread * math.sqrt(1 / trials + 1 / reference_trials(d)))


def exact_networks() -> None:
    """What the page computes: how long a redraw takes, and what it shows over ten seeds."""
    from explorer.page.apps.membership import MembershipApp

    app = MembershipApp(MembershipScene(d=2000))
    for n in (3, 20, 50):
        times = []
        for seed in range(7):
            app.controls.put("n", value=n)
            app.controls.put("seed", value=seed)
            app.redraw()  # points and network are kept, so clear them
            app._world = None
            app.redraw()
            times.append(app.drawn_ms)
        print(f"redraw at d = 2000, n = {n}: median {statistics.median(times):.0f} ms, "
              f"longest {max(times):.0f} ms of 7")  # fmt: skip
    print(f"\n{'law':>10}{'d':>6}{'KKT':>8}{'FPR at m/2':>12}{'at 0.95 m':>12}   n = 20, ten seeds")
    for law in LAWS:
        for d in (50, 100, 200, 400, 1000, 2000):
            settings = [MembershipScene(d=d, law=law, seed=seed) for seed in range(10)]
            worlds = [world(*s.points) for s in settings]
            half, high = (
                np.mean([outcome(replace(s, share=c), v).fpr
                         for s, v in zip(settings, worlds, strict=True)])
                for c in (0.5, 0.95)
            )  # fmt: skip
            ok = sum(v.made.ok for v in worlds)
            print(f"{law:>10}{d:>6}{ok:>5}/10{half:>12.2%}{high:>12.2%}")
    print(f"\n{'n':>3}{'d':>6}{'rho < 1/2':>11}{'median rho':>12}   sphere, ten seeds")
    for n in (2, 3, 4, 5, 8):
        for d in (500, 1000, 2000):
            rho = [world(d, n, "sphere", "parity", seed).proof.rho for seed in range(10)]
            print(f"{n:>3}{d:>6}{sum(r < 0.5 for r in rho):>8}/10{statistics.median(rho):>12.3g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="d = 20, 100, 400 alone")
    parser.add_argument("--exact", action="store_true", help="what the page computes")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.exact:
        exact_networks()
        return
    dims = (20, 100, 400) if options.quick else DIMS
    config = MembershipConfig(dims=dims, trials=options.trials, seed=options.seed)
    print(f"sphere, parity labels, n = 20, width 10000, 5000 test points, seed {config.seed}, "
          f"{config.trials} trials, one thread: mean +- standard error (reference, z)")  # fmt: skip
    print(f"{'d':>5}" + "".join(f"{t:>34}" for t in TITLES) + f"{'below m':>9}{'s':>6}")
    begun = mark = time.perf_counter()
    made: list[MembershipTrial] = []
    off = []
    for trial in membership_experiment(config):
        made.append(trial)
        if trial.trial + 1 < config.trials:
            continue
        mine, d = made[-config.trials :], trial.d
        cells = []
        for name, known in zip(NAMES, REFERENCE[d], strict=True):
            mean, error, spread = column(mine, name)
            z = z_of(mean, spread, config.trials, d, known)
            off.append(z)
            cells.append(f"{mean:.4f}+-{error:.4f} ({known[0]:g}, {z:.1f})")
        below = 1 - np.mean([t.beyond_signed for t in mine])
        now = time.perf_counter()
        print(f"{d:>5}" + "".join(f"{c:>34}" for c in cells) + f"{below:>9.2%}{now - mark:>6.1f}",
              flush=True)  # fmt: skip
        mark = now
    inside = sum(z <= LIMIT for z in off)
    print(f"{inside} of {len(off)} figures within {LIMIT:g} standard errors, largest "
          f"{max(off):.1f}; {time.perf_counter() - begun:.0f} s in all")  # fmt: skip


if __name__ == "__main__":
    main()
