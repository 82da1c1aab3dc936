"""What tuning without the truth is worth: the published search, the defaults and the auto-tuner.

    python benchmarks/bench_tune.py            seeds 0 to 2, 16 trials of the auto-tuner
    python benchmarks/bench_tune.py --quick    one seed, 8 trials
    python benchmarks/bench_tune.py --published    the published search alone

The alternating circle of 20 points and a 2-100-100-1 network. Each way to settings sees the weights
alone. Then its settings run from two fresh noises (none used in tuning), and recall and precision
of the claims are counted one to one at each radius, with the mean recall that ten held-out sets
give for the same claims. "near" is the looser count of published tables: the share of points with
any candidate of their label within 0.03 and 0.1, claimed or not, and the same for held-out points.
Last: rank correlations over the auto-tuner's trials, of what an attacker can compute on one side
and the true recall within 0.03 of the same settings from a fresh noise on the other.
"""

from __future__ import annotations

import argparse
import time

import torch
from scipy.stats import spearmanr

from explorer.engine import training
from explorer.engine.attacks import kkt
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.controls import control_sets
from explorer.engine.data import preset
from explorer.engine.scoring import RADII, score
from explorer.engine.training import TrainConfig
from explorer.research import tuning as tune
from explorer.research.tuning import TuneConfig

N, WIDTHS, TRAIN_STEPS, CONTROLS = 20, (100, 100), 20_000, 10
FRESH = (7001, 7002)  # seeds of noises that no search used
DRAWS, DRAW_STEPS = 8, 2000  # the measured baseline took 8 draws of 10,000 steps


def attacked(target, config, seed):
    state = kkt.init(target, config, torch.Generator().manual_seed(seed))
    for following in kkt.iterate(target, state, config):
        state = following
    return state, kkt.report(target, state, config)


def row(name, truth, target, config, seconds):
    """Mean over fresh noises: residual, claims, recall and precision, chance."""
    controls = control_sets(truth, CONTROLS).sets
    cells, residual, claims = [], 0.0, 0.0
    found = torch.zeros(len(RADII)).double()
    near = torch.zeros(1 + CONTROLS, 2)
    right, chance = torch.zeros_like(found), torch.zeros_like(found)
    for seed in FRESH:
        state, report = attacked(target, config, seed)
        got = score(truth, report.x, report.y)
        found += got.recall / len(FRESH)
        right += got.precision / len(FRESH)
        for control in controls:
            chance += score(control, report.x, report.y).recall / len(FRESH) / CONTROLS
        residual += float(state.l_stationary) / len(FRESH)
        near += torch.tensor([within(truth, state), *[within(c, state) for c in controls]])
        claims += len(report.x) / len(FRESH)
    for f, p, c in zip(found.tolist(), right.tolist(), chance.tolist(), strict=True):
        cells.append(f"{f:.2f} {p:.2f} ({c:.2f})")
    print(f"  {name:34}{residual:>9.3f}{claims:>8.1f}   {'   '.join(cells)}{seconds:>8.0f}")
    truth_near, chance_near = near[0] / len(FRESH), near[1:].mean(0) / len(FRESH)
    pairs = zip(RADII[1:], truth_near.tolist(), chance_near.tolist(), strict=True)
    print(
        "    near: " + ", ".join(f"{a:.2f} ({b:.2f}) within {r}" for r, a, b in pairs), flush=True
    )
    return found


def within(data, state):
    """Share of points with any candidate of their label within 0.03 and 0.1."""
    apart = torch.cdist(data.x, state.x).masked_fill(data.y[:, None] != state.y[None], torch.inf)
    return [float((apart.min(1).values <= r).double().mean()) for r in RADII[1:]]


def searched(target, config):
    began = time.process_time()
    trials = list(tune.tune(target, config))
    return trials, time.process_time() - began


def correlations(truth, target, trials):
    """Spearman's, of agreement, number of claims and residual with the true recall."""
    good = [t for t in trials if not t.failure]
    recall = [
        float(score(truth, r.x, r.y).recall[1])
        for r in (attacked(target, t.config, FRESH[0])[1] for t in good)
    ]
    columns = {
        "agreement": [t.agreement for t in good],
        "claims": [t.claims for t in good],
        "minus residual": [-t.residual for t in good],
    }
    rho = {name: float(spearmanr(v, recall).statistic) for name, v in columns.items()}
    print("  rank correlation with recall: " + ", ".join(f"{k} {v:.2f}" for k, v in rho.items()))
    return rho


def one_seed(seed, trials, published_only, draw_steps):
    truth = preset("alternating-circle", n=N, seed=seed)
    config = TrainConfig(widths=WIDTHS, steps=TRAIN_STEPS)
    state = training.init(truth, config, torch.Generator().manual_seed(seed))
    for following in training.iterate(truth, state, config):
        state = following
    target = Target.of(state.net, float(state.q.min()))
    print(f"seed {seed}")
    rows = {}
    random, seconds = searched(
        target, TuneConfig("random", trials=DRAWS, restarts=2, m=60, steps=draw_steps, seed=seed)
    )
    chosen = tune.best(random, "random")
    rows["published"] = row(
        "published search, lowest residual", truth, target, chosen.config, seconds
    )
    if published_only:
        return rows, {}
    rows["defaults"] = row("defaults", truth, target, KKTConfig(), 0)
    auto, seconds = searched(target, TuneConfig(trials=trials, seed=seed))
    chosen = tune.best(auto)
    rows["auto"] = row(
        "auto-tuned, largest agreement", truth, target, tune.full_length(chosen), seconds
    )
    print(f"  auto-tuned: {chosen.params}")
    return rows, correlations(truth, target, auto)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--draw-steps", type=int, default=DRAW_STEPS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    seeds, trials = ([0], 8) if args.quick else (args.seeds, args.trials)
    began = time.process_time()
    heads = "   ".join(f"at {r:<14}" for r in RADII)
    print(f"  {'recall precision (chance)':34}{'residual':>9}{'claims':>8}   {heads}tuning s")
    results = [one_seed(seed, trials, args.from_paper, args.draw_steps) for seed in seeds]
    print("mean over seeds")
    for name in results[0][0]:
        mean = torch.stack([rows[name] for rows, _ in results]).mean(0)
        print(f"  {name:34}recall " + "  ".join(f"{v:.2f}" for v in mean.tolist()))
    for name in results[0][1]:
        print(f"  {name:34}correlation {sum(c[name] for _, c in results) / len(results):.2f}")
    print(f"{time.process_time() - began:.0f} CPU seconds")


if __name__ == "__main__":
    main()
