"""What two snapshots of a training give away: the points, one that was added, one that was deleted.

python benchmarks/bench_snapshots.py --seeds 10 --sets 20

From the first weights: a network is trained for few steps, and attacked by its change. Added: it is
trained, a point that it gets wrong is added, it is trained on, and the heaviest claim of the change
is compared with that point. Deleted: it is trained, one of its support points is taken away, it is
trained on, and the point whose margin fell most is named.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator

import torch
from scipy.optimize import nnls

from explorer.engine import training
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.snapshots import Change, SnapshotsConfig, kept_margins
from explorer.engine.attacks.target import Target
from explorer.engine.confidence import share
from explorer.engine.data import Dataset, preset
from explorer.engine.network import Network, phi
from explorer.engine.store import Run
from explorer.engine.threads import limit_threads
from explorer.engine.training import TrainConfig, TrainState
from explorer.research import runs

SUPPORT = 1.05  # of the smallest margin: up to it a point is on the margin; arbitrary
N = 10  # points of a drawn set


def true_net(state: TrainState) -> Network:
    """Return the weights at their own scale, as a program that trains them would save them."""
    return state.net.with_theta(state.net.theta * math.exp(state.log_scale))


def from_first(name: str, n: int, width: int, steps: int, seed: int, kkt: bool) -> list[int]:
    """Return points found, claims, unseen points met, points found by KKT."""
    data, config = preset(name, n, None, seed), TrainConfig(widths=(width,), steps=steps)
    done = runs.train(Run(data, config, seed=seed), keep=1, separated=False)
    made = runs.attack(done.target, SnapshotsConfig(), seed, name="snapshots", truth=data)
    assert made.verdict is not None and made.scores is not None
    at = runs.RADII.index(runs.RADIUS)
    row = [made.verdict.found, len(made.claims.x), int(made.scores[1].found[at])]
    if kkt:  # it needs a margin: that of the worst point counts, or 1 where there is none
        target = Target.of(done.net, done.q_min if done.q_min > 0 else 1.0)
        row.append(runs.attack(target, KKTConfig(m=40, steps=500), seed, truth=data).verdict.found)  # type: ignore[union-attr]
    return row


def drawn(seed: int, n: int) -> Dataset:
    """Return points anywhere in the square, of either class at random."""
    generator = torch.Generator().manual_seed(seed)
    x = 2 * torch.rand(n, 2, generator=generator, dtype=torch.float64) - 1
    y = torch.where(torch.rand(n, generator=generator) < 0.5, -1.0, 1.0).double()
    return Dataset(x, y)


def trained(data: Dataset, width: int, steps: int, seed: int) -> TrainState | None:
    """Return the state after so many steps; None where the points are not separated then."""
    config = TrainConfig(widths=(width,), steps=steps)
    state = training.init(data, config, torch.Generator().manual_seed(seed))
    state = training.advance(data, state, config, steps)
    return state if state.q_min > 0 else None


def taken_on(data: Dataset, state: TrainState, steps: int) -> tuple[Network, Network]:
    """Return the weights with which training goes on with other points, and those after."""
    config = TrainConfig(widths=state.net.widths, steps=state.t + steps)
    begun = training.refresh(data, state, config)
    last = training.advance(data, begun, config, steps)
    before = training.earlier_weights(begun, last)  # at one scale
    assert before is not None
    return before, last.net


def first_of(data: Dataset, k: int) -> Dataset:
    return Dataset(data.x[:k], data.y[:k])


def added(seed: int, width: int, steps: int, more: int) -> list[float] | None:
    """Return distance of the heaviest claim, and of the nearest of all, to the added point.

    None where the network does not separate the others, or gets the added point right.
    """
    data = drawn(seed, N + 1)
    state = trained(first_of(data, N), width, steps, seed)
    if state is None or float((data.y * phi(state.net, data.x))[N]) >= 0:
        return None
    before, after = taken_on(data, state, more)
    target = Target.of(after, -1.0, before=before)
    made = runs.attack(target, SnapshotsConfig(steps=2 * N), seed, name="snapshots").claims
    away = (made.x - data.x[N]).norm(dim=1) + 9 * (made.y != data.y[N])
    control = (made.x[:1] - drawn(seed + 1000, 1).x).norm(dim=1)
    return [float(away[0]), float(away.min()), float(control[0]), float(len(made.x))]


def deleted(seed: int, width: int, steps: int, more: int) -> list[bool] | None:
    """Return whether the margins name the point that went.

    A second answer is that of a point that stayed, as a control: by its rank before the deletion.
    """
    data = drawn(seed, N)
    state = trained(data, width, steps, seed)
    if state is None:
        return None
    on = (state.q <= SUPPORT * state.q_min).nonzero()[:, 0]
    gone = int(on[seed % len(on)])
    kept = torch.arange(N) != gone
    rest = Dataset(data.x[kept], data.y[kept])
    config = TrainConfig(widths=(width,), steps=more)
    begun = training.init(rest, config, torch.Generator().manual_seed(seed), true_net(state))
    after = training.advance(rest, begun, config, more)
    share = kept_margins(state.net, after.net, data.x, data.y)
    return [int(share.argmin()) == gone, int(state.q.argmin()) == gone,
            left_out(true_net(state), true_net(after), data) == gone]  # fmt: skip


def left_out(before: Network, after: Network, data: Dataset) -> int:
    """Return the point without which the others explain the change of the last layer best."""
    change = Change.of(Target(after, before=before, separated=False), 3)
    h, _ = change.hidden_layer(data.x)
    rows = [torch.arange(data.n) != i for i in range(data.n)]
    left = [float(change.fit(h[:, kept], data.y[kept])[2].norm()) for kept in rows]
    return min(range(data.n), key=left.__getitem__)


def left_at_truth(steps: int, seed: int) -> list[float]:
    """Return the share of the change that the true points leave: of all layers, of the last."""
    data, config = preset("alternating-circle", 20), TrainConfig(widths=(1000,), steps=steps)
    target = runs.train(Run(data, config, seed=seed), keep=1, separated=False).target
    change = Change.of(target, 3)
    assert target.before is not None
    last = (
        change.fit(change.hidden_layer(data.x)[0], data.y)[2].norm()
        / (change.new - change.old).norm()
    )
    pulls = [y * torch.autograd.functional.jacobian(
                lambda theta, net=net, x=x: phi(net.with_theta(theta), x[None])[0], net.theta)
             for net in change.nets for x, y in zip(data.x, data.y, strict=True)]  # fmt: skip
    rows = torch.stack([*pulls, target.before.theta]).numpy()
    whole = nnls(rows.T, target.net.theta.numpy(), maxiter=10_000)[1]
    return [whole / float((target.net.theta - target.before.theta).norm()), float(last)]


def sets(first: int, count: int, make: Callable[[int], list | None]) -> Iterator[tuple[int, list]]:  # type: ignore[type-arg]
    """Yield the results of the first `count` seeds that have one."""
    seed, had = first, 0
    while had < count:
        row = make(seed)
        if row is not None:
            had += 1
            yield seed, row
        seed += 1


def of(found: int, n: int) -> str:
    made = share([found], [n])
    return f"{found} of {n} ({made.low:.2f} to {made.high:.2f})"


def print_first(args: argparse.Namespace) -> None:
    """Print the table of networks attacked by their change since the first weights."""
    print("| points, network, steps | found, in the median (least) | claims | unseen points met | "
          "KKT found | seconds |\n|---|---|---|---|---|---|")  # fmt: skip
    for name, n, width, steps in CASES:
        begun = time.perf_counter()
        rows = [from_first(name, n, width, steps, args.first + k, (width, steps) == (1000, 50))
                for k in range(args.seeds)]  # fmt: skip
        seconds = (time.perf_counter() - begun) / len(rows)
        found, claims, chance, *kkt = (sorted(column) for column in zip(*rows, strict=True))
        mid = len(found) // 2
        by_kkt = f"{min(kkt[0])} to {max(kkt[0])}" if kkt else "–"
        print(f"| {name} {n}, 2-{width}-1, {steps} | {found[mid]} of {n} ({found[0]}) | "
              f"{claims[0]} to {claims[-1]} | {chance[0]} to {chance[-1]} | {by_kkt} | "
              f"{seconds:.0f} |", flush=True)  # fmt: skip


CASES = (
    ("alternating-circle", 20, 1000, 50), ("alternating-circle", 20, 1000, 20),
    ("alternating-circle", 20, 1000, 100), ("alternating-circle", 20, 300, 20),
    ("random-circle", 20, 1000, 50), ("moons", 20, 1000, 50),
)  # fmt: skip


def main() -> None:
    """Print three tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", default="left,first,added,deleted")
    parser.add_argument("--width", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=2000, help="before points change")
    args = parser.parse_args()
    limit_threads()
    for steps in (20, 50, 100) if "left" in args.only else ():
        rows = [left_at_truth(steps, args.first + k) for k in range(args.seeds)]
        whole, last = (sorted(column) for column in zip(*rows, strict=True))
        print(f"left by the true points after {steps} steps: all layers {whole[0]:.2f} to "
              f"{whole[-1]:.2f}, the last {last[0]:.2f} to {last[-1]:.2f}", flush=True)  # fmt: skip
    if "first" in args.only:
        print_first(args)
    for more in (5, 10) if "added" in args.only else ():
        rows = [row for _, row in sets(args.first, args.sets,
                lambda seed, more=more: added(seed, args.width, args.steps, more))]  # fmt: skip
        top, some, chance = (sum(row[k] <= runs.RADIUS for row in rows) for k in range(3))
        print(f"added, {more} steps on: heaviest claim {of(top, len(rows))}, some claim "
              f"{of(some, len(rows))}, unseen {of(chance, len(rows))}", flush=True)  # fmt: skip
    for more in (50, 200) if "deleted" in args.only else ():
        rows = [row for _, row in sets(args.first, args.sets,
                lambda seed, more=more: deleted(seed, args.width, args.steps, more))]  # fmt: skip
        named, before, rest = (sum(row[k] for row in rows) for k in range(3))
        print(f"deleted, {more} steps on: named {of(named, len(rows))}, by margins alone "
              f"{of(before, len(rows))}, by the change {of(rest, len(rows))}",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
