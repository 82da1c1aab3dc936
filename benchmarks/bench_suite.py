"""What the attacks recover on the ten sets of the suite, with two networks each.

    python benchmarks/bench_suite.py                    all sets, 2-1000-1 and 2-100-100-1
    python benchmarks/bench_suite.py --cases 0 7 --nets 2-1000-1
    python benchmarks/bench_suite.py --shift 100        the seeds that settings are tuned on
    python benchmarks/bench_suite.py --sketch           20 circle points of random labels, 2 nets
    python benchmarks/bench_suite.py --lp               also the forced masses, two layers (slow)

One row per set and network: points on the margin (within 1%), those that the weights determine
("needed": without them no other points of the margin explain the weights as well), and for each
attack claims / needed points among the found / points on the margin among the found, within 0.03,
its precision over all training points, and seconds. The verdict is of the best attack: "recovered"
where at least 90% of the needed points are found at a precision of at least 0.9; where fewer than
half of the points on the margin are needed it adds "rest not recoverable", with the residual of
another set of points on the margin beside that of the training points, and the mean distance of
its mass from them.
"""

from __future__ import annotations

import argparse
import time

import torch

from explorer.engine import suite
from explorer.engine.attacks import hinge, kkt
from explorer.engine.attacks.hinge import HingeConfig
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import TAU_TRAINED
from explorer.engine.data import Dataset, Source
from explorer.engine.determined import determined
from explorer.engine.margin import q_of
from explorer.engine.scoring import score

RADIUS = 0.03
RECALL, PRECISION = 0.9, 0.9


def run(engine, target, config, seed):
    began = time.perf_counter()
    state = engine.init(target, config, torch.Generator().manual_seed(seed))
    for following in engine.iterate(target, state, config):
        state = following
    seconds = time.perf_counter() - began
    return state, engine.report(target, state, config), seconds


def found(data, mask, claims):
    if not bool(mask.any()) or not len(claims.x):
        return 0
    return int(score(Dataset(data.x[mask], data.y[mask]), claims.x, claims.y, (RADIUS,)).found)


def verdict(known, results, fitted, data):
    count, on = int(known.needed.sum()), int(known.on_margin.sum())
    right = {k: r for k, r in results.items() if r["needed"] >= RECALL * count}
    good = [k for k, r in right.items() if r["claims"] and r["precision"] >= PRECISION]
    words = f"recovered ({good[0]})" if good and count else "not recovered" if count else ""
    if 2 * count < on:
        apart = torch.cdist(fitted.x, data.x).min(1).values
        mean = float(fitted.lam @ apart / fitted.lam.sum())
        words += (
            f"{'; rest ' if count else ''}not recoverable: {len(fitted.x)} other points leave "
            f"{fitted.residual:.3f}, the truth {known.truth:.3f}, {mean:.2f} apart"
        )
    return words


def row(case, label, net, lp, seed):
    data = case.dataset()
    q = q_of(net, data.x, data.y)
    if float(q.min()) <= 0:
        return f"{case.name:31}{label:13}not separated"
    known, target = suite.needed_points(net, data), Target.of(net, float(q.min()))
    results = {}
    for name, engine, config in (("kkt", kkt, KKTConfig()), ("hinge", hinge, HingeConfig())):
        state, claims, seconds = run(engine, target, config, seed)
        everyone = found(data, torch.ones(data.n, dtype=torch.bool), claims)
        results[name] = {
            "claims": len(claims.x), "needed": found(data, known.needed, claims),
            "on": found(data, known.on_margin, claims),
            "precision": everyone / max(len(claims.x), 1), "s": seconds,
        }  # fmt: skip
    forced = "    "
    if lp and len(net.weights) == 2:
        merged = target.merged(HingeConfig.merge_angle)
        try:
            forced = f"{int(determined(merged, data.x, data.y, tau=TAU_TRAINED).forced.sum()):>4}"
        except ValueError:
            forced = "   –"
    cells = "".join(
        f" |{r['claims']:>4} {r['needed']:>3} {r['on']:>3}  {r['precision']:.2f} {r['s']:>6.1f}"
        for r in results.values()
    )
    head = f"{case.name:31}{label:13}{int(known.on_margin.sum()):>3}{int(known.needed.sum()):>7}"
    return head + forced + cells + "   " + verdict(known, results, state, data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", type=int, default=list(range(len(suite.SUITE))))
    parser.add_argument("--nets", nargs="+", default=list(suite.NETS))
    parser.add_argument("--shift", type=int, default=0)
    parser.add_argument("--lp", action="store_true")
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
    print(f"{'set':31}{'network':13}{'on':>3}{'needed':>7}{'LP':>4}", end="")
    print("".join(f" |{name + ': claims needed on prec  s':>25}" for name in ("kkt", "hinge")))
    for case in cases:
        case = case.shifted(args.shift) if args.shift else case
        for label in args.nets:
            net = suite.trained(case, nets[label])
            print(row(case, label, net, args.lp, case.source.seed), flush=True)


if __name__ == "__main__":
    main()
