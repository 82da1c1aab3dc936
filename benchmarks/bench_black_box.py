"""The black box attack on the line: queries, breakpoints, and claims on exact networks.

    python benchmarks/bench_black_box.py            300 exact sets, 50 at each number of digits
    python benchmarks/bench_black_box.py --sets 30

Set s has 3 to 10 points, uniform on [-1, 1], labels at random with both classes there; s seeds all.
Only places within a ten-thousandth of a training point count as right. The graphs are networks with
random neurons, whose 10 breakpoints lie in [-2, 2].

    python benchmarks/bench_black_box.py --plane    lines of neurons, 2-h-1, 100 networks a width

There first weights and output weights are normal, and each neuron's line goes through a place drawn
from [-1, 1]^2. A line is found if normal and offset are within 1e-4.
"""

from __future__ import annotations

import argparse
from itertools import repeat

import numpy as np
import torch

from explorer.engine.attacks.black_box import ATTACK, BlackBoxConfig, shown_graph
from explorer.engine.attacks.black_box.plane import found_lines
from explorer.engine.attacks.target import Target
from explorer.engine.exact import maximum_margin
from explorer.engine.network import Network
from explorer.engine.piecewise import describe
from explorer.engine.roster import by_key

RIGHT = 1e-4
FEWER = (12, 9, 7, 5)


def exact_set(seed):
    """Return the target of an exact network, and its points (n,)."""
    g = np.random.default_rng(seed)
    n = int(g.integers(3, 11))
    x, y = np.sort(g.uniform(-1, 1, n)), g.choice([-1.0, 1.0], n)
    y[:2] = 1.0, -1.0
    net = maximum_margin(torch.from_numpy(x)[:, None], torch.from_numpy(y)).net
    return Target.of(net, 1.0), x


def random_graph(seed, neurons=10):
    """Return the target of a network with so many breakpoints in [-2, 2]."""
    g = torch.Generator().manual_seed(seed)
    w, v = (torch.randn(neurons, generator=g, dtype=torch.float64) for _ in range(2))
    beta = 4 * torch.rand(neurons, generator=g, dtype=torch.float64) - 2
    return Target(Network((w[:, None], v[None]), (-w * beta, None)))


def last(target, **settings):
    *_, state = ATTACK.states(target, BlackBoxConfig(**settings), torch.Generator())
    return state


def on_sets(sets, digits):
    """Print what is claimed of exact networks whose outputs have so many digits."""
    claimed = false = white = support = silent = 0
    queries = []
    provable = by_key("univariate")
    for target, x in map(exact_set, sets):
        state = last(target, digits=digits)
        queries.append(len(state.asked))
        claims = state.x[state.lam > 0, 0].numpy()
        off = np.abs(claims[:, None] - x).min(1) > RIGHT if len(claims) else np.zeros(0, bool)
        *_, known = provable.states(target, provable.config(), torch.Generator())
        claimed, false, white = (
            claimed + len(claims),
            false + off.sum(),
            white + int(known.proven.sum()),
        )
        line = describe(target.net)
        support += sum(abs(abs(line.value(v)) - 1) < 1e-6 for v in x)
        silent += not len(claims)
    print(
        f"{digits:2d} digits  {len(queries)} sets: claims {claimed}, false {false}; proven "
        f"from the weights {white}; on the margin {support}; no claim on {silent} "
        f"sets; queries median {np.median(queries):.0f}, most {max(queries)}"
    )


def on_graphs(graphs):
    """Print how many queries find 10 breakpoints, and how far off they are at most."""
    queries, errors = [], []
    for target, claims in zip(map(random_graph, graphs), repeat("all places")):
        state, truth = last(target, claims=claims, queries=5000), describe(target.net)
        line = shown_graph(state)
        queries.append(len(state.asked))
        same = len(line) == len(truth)
        errors.append(np.abs(line.breaks - truth.breaks).max() if same else np.inf)
    print(
        f"{len(queries)} graphs of 10 breakpoints: queries median {np.median(queries):.0f}, most "
        f"{max(queries)}; {np.isfinite(errors).sum()} found whole, the largest error of a "
        f"breakpoint there {max(e for e in errors if np.isfinite(e)):.1e}"
    )


def on_planes(seeds, neurons, probes):
    """Print how many lines of random networks are found, by how many queries, and how far off."""
    shares, errors, queries, wrong = [], [], [], 0
    for seed in seeds:
        g = np.random.default_rng(seed)
        w, through, v = (
            g.normal(size=(neurons, 2)),
            g.uniform(-1, 1, (neurons, 2)),
            g.normal(size=neurons),
        )
        b = -(w * through).sum(1)
        found = found_lines(lambda x, w=w, b=b, v=v: np.maximum(x @ w.T + b, 0) @ v, probes=probes)
        size = np.linalg.norm(w, axis=1) * np.where(w[:, 0] < 0, -1, 1)
        away = np.abs((w / size[:, None])[:, None] - found.normal).max(2)
        away += np.abs((-b / size)[:, None] - found.offset)
        best = away.min(1)
        shares.append((best < RIGHT).mean())
        errors.append(best[best < RIGHT].max(initial=0))
        wrong += int((away.min(0) >= RIGHT).sum())
        queries.append(found.queries)
    print(
        f"2-{neurons}-1, {probes} probes, {len(queries)} networks: lines found "
        f"{np.mean(shares):.4f}, least {min(shares):.2f}, wrong {wrong}, the largest error "
        f"{max(errors):.1e}; queries median {np.median(queries):.0f}, most {max(queries)}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=300)
    parser.add_argument("--plane", action="store_true")
    asked = parser.parse_args()
    if asked.plane:
        for probes in (1, 3):
            for neurons in (5, 10, 20, 40):
                on_planes(range(100), neurons, probes)
        raise SystemExit
    on_graphs(range(100))
    for digits in FEWER:
        on_sets(range(min(50, asked.sets)), digits)
    on_sets(range(asked.sets), 15)
