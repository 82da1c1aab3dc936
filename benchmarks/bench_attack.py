"""How many training points the KKT reconstruction finds from noise, against control sets.

    python benchmarks/bench_attack.py             all presets and networks below, seeds 0 to 2
    python benchmarks/bench_attack.py --presets moons --widths 100 --seeds 0
    python benchmarks/bench_attack.py --dtype float32 --presets alternating-circle

One row per run: points on the margin (within 1%), claims, then found at each radius with the mean
that the control sets give for the same claims, the verdict and the seconds. The default settings
of the attack were chosen on seeds 100 and up; none of those is used here. The same integer seeds
the points, the first weights and the first candidates.
"""

from __future__ import annotations

import argparse
import time

import torch

from explorer.engine import training
from explorer.engine.attacks import kkt
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.controls import control_sets, meeting_counts
from explorer.engine.data import preset
from explorer.engine.margin import q_of
from explorer.engine.scoring import RADII, judge, score
from explorer.engine.training import TrainConfig

PRESETS = ("alternating-circle", "random-circle", "moons")
NETS = ((100,), (1000,), (100, 100))
N = 20


def trained(truth, widths, seed, steps):
    steps = steps or (10_000 if max(widths) > 100 else 20_000)
    config = TrainConfig(widths=widths, steps=steps)
    state = training.init(truth, config, torch.Generator().manual_seed(seed))
    return training.advance(truth, state, config, config.steps).net


def row(name, widths, seed, config, dtype, steps):
    truth = preset(name, n=N, seed=seed)
    net = trained(truth, widths, seed, steps)
    q = q_of(net, truth.x, truth.y)
    on_margin = q <= 1.01 * q.min()
    if float(q.min()) <= 0:
        return f"{name:20}{widths!s:12}{seed:>3}  not separated"
    target = Target.of(net.to(dtype=dtype), float(q.min()))
    began = time.perf_counter()
    state = kkt.init(target, config, torch.Generator().manual_seed(seed))
    for following in kkt.iterate(target, state, config):
        state = following
    seconds = time.perf_counter() - began
    claims = kkt.report(target, state, config)
    controls = control_sets(truth)
    found = score(truth, claims.x, claims.y).found.tolist()
    mean = meeting_counts(controls, claims.x, claims.y, RADII).double().mean(0).tolist()
    verdict = judge(truth, controls, claims.x, claims.y, RADII[1], on_margin)
    cells = "  ".join(f"{f:>3} ({c:.1f})" for f, c in zip(found, mean, strict=True))
    return (
        f"{name:20}{widths!s:12}{seed:>3}{int(on_margin.sum()):>6}{len(claims.x):>8}   {cells}  "
        f"{float(state.l_stationary):>9.4f}{seconds:>7.1f}  {verdict.kind.name}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--presets", nargs="+", default=PRESETS)
    parser.add_argument("--widths", nargs="+", default=["-".join(map(str, w)) for w in NETS])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=KKTConfig.steps)
    parser.add_argument("--train-steps", type=int, help="20,000; of more than 100 neurons 10,000")
    parser.add_argument("--m", type=int, default=KKTConfig.m)
    parser.add_argument("--published", action="store_true", help="joint, no annealing, no margin")
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64",
                        help="of the attack; training is in float64")  # fmt: skip
    args = parser.parse_args()
    torch.set_num_threads(1)  # threads change the rounding, and with it what is found
    config = KKTConfig(m=args.m, steps=args.steps)
    if args.published:
        config = KKTConfig(
            m=args.m, steps=args.steps, multipliers="joint", relu_alpha_start=None,
            relu_alpha=20.0, weight_margin=0.0, merge_angle=0.0,
        )  # fmt: skip
    print(config)
    cells = "  ".join(f"{'at ' + str(r):>9}" for r in RADII)
    print(f"{'preset, n = 20':20}{'widths':12}{'seed':>3}{'on':>5}{'claims':>8}   {cells}", end="")
    print(f"  {'residual':>9}{'s':>7}  verdict; found (chance)")
    for name in args.presets:
        for widths in args.widths:
            for seed in args.seeds:
                sizes = tuple(int(k) for k in widths.split("-"))
                dtype = getattr(torch, args.dtype)
                print(row(name, sizes, seed, config, dtype, args.train_steps), flush=True)


if __name__ == "__main__":
    main()
