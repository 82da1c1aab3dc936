"""Print docs/measured/digits.md: share of training digits matched, against held-out digits.

    python benchmarks/bench_digits.py            # minutes of one core
    python benchmarks/bench_digits.py --quick    # half a minute: n = 20, one seed, fewer steps
    python benchmarks/bench_digits.py --n 60 --seeds 1
    python benchmarks/bench_digits.py --task ten

Odd against even digits, or all ten, seeds 0 and 1 of draw, weights and candidates (settings were
chosen on seeds 100 and up). Matched: the nearest of all images to a candidate
(`explorer/engine/images.py`).
"""

from __future__ import annotations

import argparse
import sys
import time

import torch

from explorer.engine.attacks.bilevel import PICTURE_WIDTH
from explorer.engine.data.images import Choice, draw
from explorer.research import image_runs
from explorer.research.image_runs import ImageRun, carried_numbers

NETWORKS = ((1000,), (300, 300))
ROWS = (
    ("kkt", ("noise", "partition", "truth")),
    ("decoreco", ("noise", "partition", "truth")),
    ("inversion", ("noise",)),
)
BILEVEL = ("noise", "partition", "truth")
HEAD = ("network", "n", "attack", "start", "matched", "held out", "start's", "nearer", "p", "CPU s")


def last(states):
    for state in states:
        kept = state
    return kept


def distances(drawn, x):
    """Mean distance of the candidates to the nearest training image, and to the nearest other."""
    return [float(torch.cdist(x, s.x).min(1).values.mean()) for s in (drawn.train, drawn.other)]


def row(drawn, run, trained):
    """One attack: shares, control, distances, CPU seconds."""
    begun = time.process_time()
    aimed = image_runs.aim(drawn, run, trained)
    state = last(image_runs.attack(drawn, run, aimed))
    seconds = time.process_time() - begun
    found = image_runs.assess(drawn, aimed, [state])
    truth, other = distances(drawn, state.x.double())
    return (found.verdict.share, found.chance, found.start_share, truth, other,
            found.verdict.p_value, seconds)  # fmt: skip


def shown(name, n, attack, start, rows):
    """Print the mean over seeds."""
    matched, chance, other, to_truth, to_other, p, seconds = (
        sum(column) / len(column) for column in zip(*rows, strict=True)
    )
    nearer = "truth" if to_truth < to_other else "partition"
    each = "/".join(f"{r[0]:.0%}" for r in rows)
    cells = (name, n, attack, start, f"{matched:.0%} ({each})", f"{chance:.1%}", f"{other:.0%}",
             f"{nearer} ({to_truth:.2f}, {to_other:.2f})", f"{p:.2f}",
             f"{seconds:.1f}")  # fmt: skip
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def networks(task, n, seeds, quick):
    """All rows of one n; ten classes are for DecoReco alone."""
    outputs = 1 if task == "two" else 10
    for widths in NETWORKS:
        made, name = {}, f"64-{'-'.join(map(str, widths))}-{outputs}"
        for seed in seeds:
            run = ImageRun(Choice(task=task, n=n, seed=seed), widths, attack="decoreco", seed=seed)
            drawn, begun = draw(run.choice), time.process_time()
            made[seed] = drawn, last(image_runs.train(drawn, run))
            net, q = made[seed][1].net, made[seed][1].q
            print(
                f"{name}, n = {n}, seed {seed}: trained "
                f"{time.process_time() - begun:.1f} CPU s, q max/min "
                f"{float(q.max() / q.min()):.2f}, {carried_numbers(net):,} numbers for "
                f"{n * 64:,} pixels",
                file=sys.stderr,
            )
        for attack, starts in ROWS:
            if task == "ten" and attack != "decoreco":
                continue
            for start in starts:
                runs = [
                    ImageRun(Choice(task=task, n=n, seed=seed), widths, attack=attack, start=start,
                             seed=seed, steps=100 if quick else None)
                    for seed in seeds
                ]  # fmt: skip
                rows = [row(*made[r.seed][:1], r, made[r.seed][1]) for r in runs]
                shown(name, n, attack, start, rows)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="n = 20, one seed, fewer steps")
    parser.add_argument("--task", choices=("two", "ten"), default="two", help="classes")
    parser.add_argument("--n", type=int, nargs="*", default=[20, 60], help="training images")
    parser.add_argument("--seeds", type=int, default=2, help="how many")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them")
    asked = parser.parse_args()
    quick = asked.quick
    torch.set_num_threads(1)
    seeds = range(asked.first_seed, asked.first_seed + (1 if quick else asked.seeds))
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|")
    for n in [20] if quick else asked.n:
        networks(asked.task, n, seeds, quick)
        for start in BILEVEL if asked.task == "two" else ():
            runs = [
                ImageRun(Choice(n=n, seed=s), attack="bilevel", start=start, seed=s,
                         steps=30 if quick else None)
                for s in seeds
            ]  # fmt: skip
            rows = [row(draw(r.choice), r, None) for r in runs]
            shown(f"64-{PICTURE_WIDTH}-1, own", n, "bilevel", start, rows)


if __name__ == "__main__":
    main()
