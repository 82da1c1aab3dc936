"""What the attacks recover on the ten sets of the suite, with two networks each.

    python benchmarks/bench_suite.py                    all sets, 2-1000-1 and 2-100-100-1
    python benchmarks/bench_suite.py --cases 0 7 --nets 2-1000-1
    python benchmarks/bench_suite.py --shift 100        the seeds that settings are tuned on
    python benchmarks/bench_suite.py --sketch           20 circle points of random labels, 2 nets
    python benchmarks/bench_suite.py --attacks pooled   one attack only
    python benchmarks/bench_suite.py --keep FOLDER      keep the trained networks there
    python benchmarks/bench_suite.py --forced           also the forced masses and other sets

One row per set and network: points on the margin (within 1%); "forced": those that all sets share
that explain the weights as well; "needed": those without which no other points of the margin were
found that explain the weights as well; and for each attack claims / needed points among the found
/ points on the margin among the found, within 0.03, its precision over all training points, and
CPU seconds. With --forced, a fourth figure after "/" is of the forced points. The verdict
is of the best attack: "recovered" where at least 90% of the needed points are found at a
precision of at least 0.9. With --forced it goes on: of the points that are forced,
whether they are recovered; how many of the points on the margin are not determined, and so not
recoverable with certainty; and the farthest other set found that leaves no more of the weights
than the training points do, with what both leave, its mean distance from them, and the distance
that no such set exceeds. Without --forced, where fewer than half are needed, the fitted set
instead.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import suite
import torch

from explorer.engine.attacks import hinge, kkt, pooled
from explorer.engine.attacks.hinge import HingeConfig
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.pooled import PooledConfig
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import certify
from explorer.engine.data import Dataset, Source
from explorer.engine.margin import q_of
from explorer.engine.scoring import score
from explorer.research.sweep.experiment import other_set

RADIUS = 0.03
RECALL, PRECISION = 0.9, 0.9
ATTACKS = {
    "kkt": (kkt, KKTConfig()), "hinge": (hinge, HingeConfig()), "pooled": (pooled, PooledConfig()),
}  # fmt: skip


def run(engine, target, config, seed):
    began = time.process_time()
    state = engine.init(target, config, torch.Generator().manual_seed(seed))
    for following in engine.iterate(target, state, config):
        state = following
    seconds = time.process_time() - began
    return state, engine.report(target, state, config), seconds


def found(data, mask, claims):
    if not bool(mask.any()) or not len(claims.x):
        return 0
    return int(score(Dataset(data.x[mask], data.y[mask]), claims.x, claims.y, (RADIUS,)).found)


def met(results, name, count):
    """The attacks that reach the target on `count` points, counted under `name`."""
    right = {k: r for k, r in results.items() if r[name] >= RECALL * count}
    return [k for k, r in right.items() if r["claims"] and r["precision"] >= PRECISION]


def not_determined(known, forced, net, target, data):
    """How many points are not recoverable, and another set that explains the weights as well."""
    open_, on = int((known.on_margin & ~forced).sum()), int(known.on_margin.sum())
    if not open_:
        return ""
    far = other_set(target, data, certify(net, data.x, data.y))
    if far.distance < RADIUS:
        return f"; {open_} of {on} not determined, yet no set as good over {far.at_most:.2f} apart"
    return (
        f"; {open_} of {on} not recoverable: {far.explanation.n} others leave {far.residual:.4f}, "
        f"the truth {far.truth:.4f}, {far.distance:.2f} apart ({far.at_most:.2f} at most)"
    )


def verdict(known, forced, results, fitted, data):
    count, on = int(known.needed.sum()), int(known.on_margin.sum())
    good = ", ".join(met(results, "needed", count))
    words = f"recovered ({good})" if good and count else "not recovered" if count else ""
    if forced is not None and bool(forced.any()):
        good = ", ".join(met(results, "forced", int(forced.sum())))
        words += f"; of determined: {f'recovered ({good})' if good else 'not recovered'}"
    if forced is None and 2 * count < on and fitted is not None:
        apart = torch.cdist(fitted.x, data.x).min(1).values
        mean = float(fitted.lam @ apart / fitted.lam.sum())
        words += (
            f"{'; rest ' if count else ''}not recoverable: {len(fitted.x)} other points leave "
            f"{fitted.residual:.3f}, the truth {known.truth:.3f}, {mean:.2f} apart"
        )
    return words


def row(case, label, net, ask, names, seed):
    data = case.dataset()
    q = q_of(net, data.x, data.y)
    if float(q.min()) <= 0:
        return f"{case.name:31}{label:13}not separated"
    known, target = suite.needed_points(net, data), Target.of(net, float(q.min()))
    forced = suite.determined_points(net, data) if ask else None
    results, fitted = {}, None
    for name in names:
        engine, config = ATTACKS[name]
        state, claims, seconds = run(engine, target, config, seed)
        fitted = state if isinstance(state, hinge.HingeState) else fitted
        everyone = found(data, torch.ones(data.n, dtype=torch.bool), claims)
        results[name] = {
            "claims": len(claims.x), "needed": found(data, known.needed, claims),
            "on": found(data, known.on_margin, claims),
            "forced": 0 if forced is None else found(data, forced, claims),
            "precision": everyone / max(len(claims.x), 1), "s": seconds,
        }  # fmt: skip
    told = f"{'–' if forced is None else int(forced.sum()):>7}"
    cells = "".join(
        f" |{r['claims']:>4} {r['needed']:>3} {r['on']:>3} {r['precision']:.2f} {r['s']:>5.1f}"
        + ("" if forced is None else f" /{r['forced']:>2}")
        for r in results.values()
    )
    head = f"{case.name:31}{label:13}{int(known.on_margin.sum()):>3}{int(known.needed.sum()):>7}"
    words = verdict(known, forced, results, fitted, data)
    words += "" if forced is None else not_determined(known, forced, net, target, data)
    return head + told + cells + "   " + words.removeprefix("; ")


def kept(case, label, widths, folder):
    """The trained network, from the folder where it is there."""
    if folder is None:
        return suite.trained_network(case, widths)
    path = folder / f"{case.source.preset}-{case.source.n}-{case.source.seed}-{label}.pt"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(suite.trained_network(case, widths), path)
    return torch.load(path, weights_only=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", type=int, default=list(range(len(suite.SUITE))))
    parser.add_argument("--nets", nargs="+", default=list(suite.NETS))
    parser.add_argument("--shift", type=int, default=0)
    parser.add_argument("--forced", action="store_true")
    parser.add_argument("--attacks", nargs="+", default=list(ATTACKS), choices=list(ATTACKS))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--sketch", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    nets, cases = dict(suite.NETS), [suite.SUITE[i] for i in args.cases]
    if args.sketch:
        nets = {"2-100-1": (100,), "2-1000-1": (1000,)}
        cases = [suite.Case(f"random circle, seed {s}", Source("random-circle", 20, 0.0, s))
                 for s in range(3)]  # fmt: skip
        args.nets = list(nets)
    print(HingeConfig())
    print(f"{'set':31}{'network':13}{'on':>3}{'needed':>7}{'forced':>7}", end="")
    print("".join(f" |{name}: claims needed on prec s" for name in args.attacks))
    for case in cases:
        case = case.with_seed_offset(args.shift) if args.shift else case
        for label in args.nets:
            net = kept(case, label, nets[label], args.keep)
            print(row(case, label, net, args.forced, args.attacks, case.source.seed), flush=True)


if __name__ == "__main__":
    main()
