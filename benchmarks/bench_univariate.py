"""The univariate attack on random sets of the line: exact networks, changed ones, trained ones.

    python benchmarks/bench_univariate.py                 300 exact sets, 36 trained ones
    python benchmarks/bench_univariate.py --quick         30 and 4
    python benchmarks/bench_univariate.py --start 1000    other seeds

Set s has n points, uniform on [-2, 2], labels at random with both classes there; s seeds n, the
points, the labels and the first weights. Exact: n is 3 to 15. Trained: n is 3 to 10, the default
training, and only sets that it separates. A point counts as met within 1e-6 of its place (exact)
or 0.03 (trained). Support points have a multiplier above a thousandth of the largest and lie on the
margin (within 1%).

Changed: each exact network with its weights stored in fewer bits, or moved along a normal direction
by a share of their norm; each trained one with its parallel neurons merged (0.02 radians). Points
count as proven only where the weights are an exact KKT point, elsewhere as likely.

The settings of the attack were chosen on sets 1000 to 1029.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from itertools import islice

import torch

from explorer.engine import training
from explorer.engine.attacks import univariate
from explorer.engine.attacks.target import Target
from explorer.engine.attacks.univariate.config import UnivariateConfig
from explorer.engine.certificate import SUPPORT, certify
from explorer.engine.data import Dataset
from explorer.engine.exact import maximum_margin
from explorer.engine.margin import q_of
from explorer.engine.merging import merge_neurons
from explorer.engine.training import TrainConfig


def drawn(seed, most):
    """N points, uniform on [-2, 2], labels at random with both classes there."""
    g = torch.Generator().manual_seed(seed)
    n = int(torch.randint(3, most + 1, (), generator=g))
    x = 4 * torch.rand(n, 1, generator=g, dtype=torch.float64) - 2
    y = torch.where(torch.rand(n, generator=g) < 0.5, 1.0, -1.0).double()
    y[0], y[1] = 1.0, -1.0
    return Dataset(x, y)


def run(target, config):
    state = univariate.init(target, config, torch.Generator())
    for following in univariate.ATTACK.iterate(target, state, config):
        state = following
    return state, univariate.report(target, state, config)


def met(data, x, y, radius):
    """Which claims are training points (c,), and which points are claimed (n,)."""
    near = (data.x - x.T).abs() <= radius
    near &= data.y[:, None] == y
    return near.any(0), near.any(1)


STORED = (torch.float32, torch.float16, torch.bfloat16)
MOVED = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)


def changes(net, seed):
    """(name, network) for each way to store or to move the weights; `seed` draws the direction."""
    for kind in STORED:
        stored = [p.to(kind).double() for p in net.parameters]
        yield f"stored in {str(kind).split('.')[1]}", net.with_parameters(stored)
    g = torch.Generator().manual_seed(seed)
    for share in MOVED:
        step = torch.randn(net.theta.shape, generator=g, dtype=torch.float64)
        step *= share * net.rho / step.norm()
        yield f"moved by {share:g}", net.with_theta(net.theta + step)


def claimed(data, net, count):
    """Add the proven and the likely points of one network to `count`, and those that are false.

    A proven point counts as met within 1e-6 of its place, a likely one within 0.03.
    """
    q = float(q_of(net, data.x, data.y).min())
    if q <= 0:
        count["not separated"] += 1
        return
    state, report = run(Target.of(net, q), UnivariateConfig())
    kind, radius = ("likely", 0.03) if state.doubt else ("proven", 1e-6)
    right, _ = met(data, report.x, report.y, radius)
    count["sets"] += 1
    count[kind] += len(right)
    count[f"false {kind}"] += int((~right).sum())
    count["least defect"] = min(count.get("least defect", 1.0), state.defect)


def attacked(data, net, support, radius, count):
    """Add what the three modes give on one network to `count`."""
    target = Target.of(net, float(q_of(net, data.x, data.y).min()))
    began = time.perf_counter()
    state, needed = run(target, UnivariateConfig())
    count["seconds"] += time.perf_counter() - began
    _, union = run(target, UnivariateConfig(mode="algorithm 1"))
    _, strict = run(target, UnivariateConfig(mode="algorithm 1", strict=True))
    _, everything = run(target, UnivariateConfig(mode="all crossings"))
    count["sets"] += 1
    count["points"] += data.n
    count["support"] += int(support.sum())
    count["exact"] += state.exact
    for group in state.groups:
        x, y = (torch.tensor(part, dtype=torch.float64) for part in (group.x, group.y))
        right = met(data, x[:, None], y, radius)[0]
        count["groups"] += 1
        count["empty groups"] += not len(x)
        count["groups without a training point"] += not bool(right.any())
        count["largest group"] = max(count["largest group"], len(x))
    for name, claims in (("S", union), ("strict", strict), ("all", everything)):
        right, found = met(data, claims.x, claims.y, radius)
        count[f"{name} claims"] += len(right)
        count[f"{name} recall"] += int((found & support).sum())
        share = float(right.double().mean()) if len(right) else 1.0
        count[f"{name} precision"] += share
        count[f"{name} least"] = min(count.get(f"{name} least", 1.0), share)
    right, found = met(data, needed.x, needed.y, radius)
    kind = "likely" if state.doubt else "proven"
    count[kind] += len(right)
    count[f"false {kind}"] += int((~right).sum())
    count["support needed"] += int((found & support).sum())
    count["largest defect"] = max(count["largest defect"], state.defect)
    count["least defect"] = min(count.get("least defect", 1.0), state.defect)
    count["left alone"] += state.left_alone
    return state


def exact(seeds):
    count, changed = Counter(), {}
    for seed in seeds:
        data = drawn(seed, 15)
        made = maximum_margin(data.x, data.y)
        if not made.polished:
            count["not solved to rounding"] += 1
            continue
        attacked(data, made.net, made.lam > 1e-6 * made.lam.max(), 1e-6, count)
        for name, net in changes(made.net, seed):
            claimed(data, net, changed.setdefault(name, Counter()))
    show("exact networks", seeds, count)
    show_changed("exact networks, changed", changed)


def trained(seeds, each):
    count, merged = Counter(), Counter()
    for seed in seeds:
        data = drawn(seed, 10)
        config = TrainConfig()
        state = training.init(data, config, torch.Generator().manual_seed(seed))
        for following in islice(training.iterate(data, state, config), config.steps):
            state = following
        if float(state.q.min()) <= 0:
            count["not separated"] += 1
            continue
        made = certify(state.net, data.x, data.y)
        support = (made.lam > SUPPORT * made.lam.max()) & made.on_margin
        before = count["support needed"], count["false likely"]
        seen = attacked(data, state.net, support, 0.03, count)
        claimed(data, merge_neurons(state.net, 0.02).net, merged)
        if each:
            print(
                f"  set {seed}: n {data.n}, support {int(support.sum())}, "
                f"likely {count['support needed'] - before[0]}, "
                f"false {count['false likely'] - before[1]}, residual {made.residual:.3f}, "
                f"slackness {made.slackness:.3f}; attacker: {seen.residual:.3f}, {seen.miss:.4f}",
                flush=True,
            )
    show("trained networks", seeds, count)
    show_changed("trained networks, changed", {"merged": merged})


def show_changed(title, changed):
    print(f"\n{title}")
    print("                      sets  proven  false  likely  false  least defect  not separated")
    for name, c in changed.items():
        print(
            f"  {name:18} {c['sets']:6} {c['proven']:7} {c['false proven']:6} {c['likely']:7} "
            f"{c['false likely']:6} {c['least defect']:13.1e} {c['not separated']:14}"
        )


def show(name, seeds, c):
    sets, support = max(c["sets"], 1), max(c["support"], 1)
    print(f"\n{name}: seeds {seeds[0]} to {seeds[-1]}, {c['sets']} sets, {c['points']} points, ")
    print(f"  {c['support']} of them support points; exact tolerances on {c['exact']} sets")
    for word in ("not solved to rounding", "not separated"):
        print(f"  sets left out, {word}: {c[word]}")
    print(f"  groups: {c['groups']}, the largest of {c['largest group']} candidates")
    print(f"  groups without a training point: {c['groups without a training point']}")
    print(f"  of these without any candidate: {c['empty groups']}")
    print("  claims                 number   precision: mean   least   support points met")
    rows = (("S", "union S of groups"), ("strict", "strict S"), ("all", "all crossings"))
    for key, words in rows:
        print(
            f"  {words:22} {c[f'{key} claims']:6} {c[f'{key} precision'] / sets:17.3f} "
            f"{c[f'{key} least']:7.2f} {c[f'{key} recall'] / support:20.3f}"
        )
    print(f"  defect, least and largest: {c['least defect']:.1e}, {c['largest defect']:.1e}")
    for kind in ("proven", "likely"):
        print(f"  {kind} points: {c[kind]}, false ones: {c[f'false {kind}']}")
    print(f"  support points proven or likely: {c['support needed']} of {c['support']} "
          f"({c['support needed'] / support:.1%})")  # fmt: skip
    print(f"  sets too far from a KKT point to call anything likely: {c['left alone']}")
    print(f"  mean seconds of one certified attack: {c['seconds'] / sets:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--exact", type=int, default=300)
    parser.add_argument("--trained", type=int, default=36)
    parser.add_argument("--quick", action="store_true", help="30 exact sets, 4 trained ones")
    parser.add_argument("--each", action="store_true", help="a line for each trained set")
    args = parser.parse_args()
    torch.set_num_threads(1)
    sizes = (30, 4) if args.quick else (args.exact, args.trained)
    if sizes[0]:
        exact(range(args.start, args.start + sizes[0]))
    if sizes[1]:
        trained(range(args.start, args.start + sizes[1]), args.each)


if __name__ == "__main__":
    main()
