"""Basins against training time, width, number of points, steepness and loss, over seeds.

python benchmarks/bench_census.py training     one part: see `cases`
python benchmarks/bench_census.py losses --starts 40 --seeds 3 --only surrogate bilevel
python benchmarks/bench_census.py truth        runs from the truth of each preset
python benchmarks/bench_census.py runs         the 21 runs of the page on 20 points of the circle
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace

import torch

from explorer.engine.attacks.bilevel import BilevelConfig
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.confidence import share
from explorer.engine.data import heldout, preset
from explorer.engine.energy.starts import mean_nearest
from explorer.engine.explanations.splitting import flat_directions, training_explanation
from explorer.engine.store import Run
from explorer.engine.threads import limit_threads
from explorer.engine.training import TrainConfig
from explorer.research.census import Census, CensusConfig, census, census_starts, surface_of
from explorer.research.census.basins import conditions
from explorer.research.census.losses import OF_PAGE
from explorer.research.grid import Grid, Problem, even
from explorer.research.grid.landscape import SIDES, Runs, landscape_of, level_states
from explorer.research.runs import train

CIRCLE, N, WIDTH, STEPS = "alternating-circle", 12, 100, 6000
LINES, PLACES = 10, 51  # straight lines between two starts, and places on each
MU = 0.01  # weight decay
DIP = 1e-4  # of the weights: shallower ones are not counted
Case = tuple[str, str, dict, CensusConfig]


def cases(part: str, starts: int) -> Iterator[Case]:
    """Yield the name, the preset, how weights are made, and the census of each row."""
    config = CensusConfig(starts=starts)
    if part == "training":
        for data in (CIRCLE, "random-circle", "moons"):
            for steps in (100, 1000, 6000, None):
                name = "exact" if steps is None else f"{steps} steps"
                yield f"{data}, {name}", data, {"steps": steps}, config
    elif part == "width":
        for width in (20, 100, 400):
            yield f"width {width}", CIRCLE, {"width": width}, config
    elif part == "points":
        for n in (6, 12, 20):
            yield f"n = {n}", CIRCLE, {"n": n}, config
    elif part == "alpha":
        for alpha in (5.0, 20.0, 80.0, 200.0):
            yield f"α = {alpha:g}", CIRCLE, {}, CensusConfig(starts=starts, alpha=alpha)
    elif part == "decay":
        for mu in (0.001, 0.01):  # at 0.1 training ends at weights of zero
            for loss in ("decoreco", "surrogate"):
                made = CensusConfig(starts=starts, loss=loss)
                yield f"μ = {mu:g}: {loss}", CIRCLE, {"n": 6, "mu": mu}, made
    elif part == "losses":
        for data, n in ((CIRCLE, 6), ("random-circle", 6)):
            for loss in ("decoreco", "surrogate", "bilevel"):
                made = CensusConfig(starts=starts, loss=loss)
                yield f"{data}, n = {n}: {loss}", data, {"n": n}, made


def problem_of(data: str, loss: str, seed: int, n: int = N, width: int = WIDTH,
               steps: int | None = STEPS, mu: float = MU) -> Problem | None:  # fmt: skip
    """Return what the starts of a seed share; None where no network separates its points."""
    points = preset(data, n, None, seed)
    if loss != OF_PAGE:
        decay = BilevelConfig(model="hidden", mu=mu)
        return Grid(None, points, heldout(points, 1), "bilevel", decay, seed, 5).problem()
    config = TrainConfig(widths=(width,), steps=STEPS if steps is None else steps)
    try:
        target = train(Run(points, config, seed=seed, exact=steps is None), keep=1).target
    except RuntimeError:
        return None
    kkt = KKTConfig(m=even(points.n))
    return Grid(target, points, heldout(points, 1), "kkt", kkt, seed, 5).problem()


def dips(problem: Problem, config: CensusConfig) -> float:
    """Return how many minima of the loss lie on a straight line between two starts, on average."""
    _, x = census_starts(problem.parts, config)
    t = torch.linspace(0, 1, PLACES, dtype=torch.float64)[:, None]
    loss, count = surface_of(problem, config).loss, 0
    pairs = x.flatten(1)[: 2 * LINES].split(2)
    for a, b in (pair for pair in pairs if len(pair) == 2):
        count += _minima(loss((1 - t) * a + t * b)[0].tolist())
    return count / len(pairs)


def _minima(v: list[float]) -> int:
    """Return how many minima are deeper than `DIP` below both hills beside them, ends left out."""
    count, low, high, falling = 0, v[0], v[0], False
    for value in v[1:]:
        if falling:
            low = min(low, value)
            if value > low + DIP:
                count, falling, high = count + 1, False, value
        else:
            high = max(high, value)
            if value < high - DIP:
                falling, low = True, value
    return count


def row(name: str, made: list[Census], lines: list[float], seconds: float) -> str:
    """Return a row of the table, over seeds."""
    total = [len(one.basin) for one in made]

    def ends(*kinds: str) -> str:
        found = [sum(len(b.starts) for b in one.basins if b.kind in kinds) for one in made]
        return str(share(found, total))

    distinct = share([len(one.basins) for one in made], total)
    once = share([sum(len(b.starts) == 1 for b in one.basins) for one in made], total)
    home = share([round(one.home.value * n) for one, n in zip(made, total, strict=True)], total)
    level, away = sum(one.level for one in made), sum(one.truth[1] for one in made) / len(made)
    cells = [
        name, len(made), f"{level} of {sum(total)}", distinct, once, home, f"{away:.3f}",
        ends("truth", "explanation"), ends("minimum"), ends("saddle", "slope", "open"),
        f"{sum(lines) / len(lines):.1f}", f"{seconds / sum(total):.2f}",
    ]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


HEADS = (
    "", "seeds", "level", "distinct ends a start", "unseen volume", "where the truth ends",
    "how far off that is", "as good as that", "local minima", "other", "dips on a line",
    "CPU s a start",
)  # fmt: skip


# --- Runs from the truth

PAIRS = ("moons", "circles", "xor", "blobs", "spiral", "random-circle", CIRCLE)
MOST_CANDIDATES = 100  # as the page takes
TRUTH_HEADS = (
    "", "points with a multiplier", "in how many directions they can move",
    "the truth leaves", "its end leaves", "most on the way", "from these points to candidates",
    "all candidates off", "smooth loss at the truth", "a move of 0.03 gains",
)  # fmt: skip


def truth_row(data: str, exact: bool, seed: int = 0) -> str:
    """Return what a run from 100% truth comes to, and in how many directions the truth is flat."""
    points = preset(data, seed=seed)
    config = TrainConfig(widths=(WIDTH,), steps=STEPS)
    target = train(Run(points, config, seed=seed, exact=exact), keep=1).target
    kkt = KKTConfig(m=MOST_CANDIDATES)
    problem = Grid(target, points, heldout(points, 1), "kkt", kkt, seed, 5).problem()
    measure = landscape_of(problem).measure
    states = [one for one, _ in level_states(problem, (1.0, 1.0), 50, measure)]
    net, e, _ = training_explanation(target, points.x, points.y)
    left, last = [measure(one.x) for one in states], states[-1]
    found, truth = (last.x, last.y.double()), (points.x.double(), points.y.double())
    near = mean_nearest(e.x, e.y, *found)
    off = max(mean_nearest(*found, *truth), mean_nearest(*truth, *found))
    own = replace(problem.of, config=KKTConfig(m=even(points.n))).problem()
    smooth, at = surface_of(own, CensusConfig()).loss, own.parts.truth.double().reshape(1, -1)
    order = conditions(smooth, at)[0]
    cells = [
        f"{data}, {'exact' if exact else f'{STEPS} steps'}", f"{e.n} of {points.n}",
        flat_directions(net, e), f"{left[0]:.2g}", f"{left[-1]:.2g}", f"{max(left):.2g}",
        f"{near:.3f}", f"{off:.3f}", f"{float(smooth(at)[0]):.2g}",
        f"{order.slope:.2g}, {order.bend:.2g}",
    ]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def runs_row(points: int = 20) -> str:
    """Return how the runs of **Attack from 21 starts** end, and how long they take."""
    data, config = preset(CIRCLE, points), KKTConfig(m=MOST_CANDIDATES)
    target = train(Run(data, TrainConfig(widths=(WIDTH,), steps=STEPS)), keep=1).target
    of = Grid(target, data, heldout(data, 1), "kkt", config, 0, SIDES[0])
    runs = Runs(of, measure=landscape_of(of.problem()).measure)
    runs.prepare(1)
    wall, own = time.perf_counter(), time.process_time()
    looks = sum(1 for _ in runs.roll(runs.todo(1)))
    wall, own = time.perf_counter() - wall, time.process_time() - own
    made = runs.arrivals(1, going=False)
    return (
        f"{made.ended} of {made.total} ended, {made.level} level, {made.truth} at the truth, "
        f"{made.other} at another explanation; {wall:.1f} s, {own:.1f} CPU s, drawn {looks} times"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "part",
        choices=("training", "width", "points", "alpha", "losses", "decay", "truth", "runs"),
    )
    parser.add_argument("--starts", type=int, default=100, help="of each seed")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=[""], help="rows with one of these in a name")
    options = parser.parse_args()
    limit_threads()
    if options.part == "runs":
        print(runs_row())
        return
    if options.part == "truth":
        print("| " + " | ".join(TRUTH_HEADS) + " |\n" + "|---" * len(TRUTH_HEADS) + "|", flush=True)
        for exact in (True, False):
            for data in PAIRS:
                print(truth_row(data, exact), flush=True)
        return
    print("| " + " | ".join(HEADS) + " |\n" + "|---" * len(HEADS) + "|", flush=True)
    for name, data, weights, config in cases(options.part, options.starts):
        if not any(part in name for part in options.only):
            continue
        made, lines, begun = [], [], time.process_time()
        for seed in range(options.seeds):
            problem = problem_of(data, config.loss, seed, **weights)
            if problem is not None:
                made.append(census(problem, config))
                lines.append(dips(problem, config))
        if made:
            print(row(name, made, lines, time.process_time() - begun), flush=True)
        else:
            print(f"| {name} | 0 |" + " – |" * (len(HEADS) - 2), flush=True)


if __name__ == "__main__":
    main()
