"""What an attacker finds by what it is granted of the points, and what else explains the weights.

python benchmarks/bench_prior.py --seeds 3 --starts 40 --picture docs/pictures/prior.png

One row a set and a prior: KKT from noise, with 100 candidates, against as many unseen points; the
census of the same weights with the same prior; and, of boxes, what is certified.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.confidence import Share, share
from explorer.engine.data import Dataset, heldout, preset
from explorer.engine.explanations.assumptions import cone_of
from explorer.engine.explanations.certainty import certainty
from explorer.engine.explanations.masses import allowed_residual, farthest
from explorer.engine.known import known_of
from explorer.engine.store import Run
from explorer.engine.threads import limit_threads
from explorer.engine.training import TrainConfig
from explorer.research import runs
from explorer.research.census import CensusConfig, census, page_problem

SETS, N, WIDTH, STEPS = ("alternating-circle", "random-circle", "moons"), 12, 100, 6000
BOX = 1.6  # half width of the box that pulls: that of all presets
PRIORS = {
    "nothing": ("nothing", None), "a box": ("nothing", BOX), "the exact box": ("range", None),
    "the circle": ("curve", None), "a drawn curve": ("drawn", None),
    "public points": ("public", None), "all but one": ("others", None),
}  # fmt: skip
CORNERS, HAND = 24, 0.02  # of a drawn curve, and how far each is off the shape; arbitrary
LEFT_OUT = 4  # points that are left out in turn, of each seed; arbitrary
HEADS = (
    "", "points recovered", "unseen points hit", "false claims an attack", "distinct ends a start",
    "as good as the truth's end", "farthest end as good", "certified", "farthest, at most",
    "CPU s",
)  # fmt: skip


@dataclass
class Row:
    """Counts of one set and prior, over seeds."""

    found: list[int] = field(default_factory=list)
    total: list[int] = field(default_factory=list)
    chance: list[int] = field(default_factory=list)
    unseen: list[int] = field(default_factory=list)
    false: list[int] = field(default_factory=list)
    distinct: list[int] = field(default_factory=list)
    good: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    far: list[float] = field(default_factory=list)
    certified: list[int] = field(default_factory=list)
    most: list[float] = field(default_factory=list)

    @property
    def recall(self) -> tuple[Share, Share]:
        """Return the share of points found, and that of unseen points."""
        return share(self.found, self.total), share(self.chance, self.unseen)


def drawn(data: str, seed: int) -> tuple[float, ...]:
    """Return a curve as a hand draws it after the shape of a set, in one stroke.

    Its corners lie on the shape without noise, each off it by a draw of the normal law.
    """
    shape = preset(data, 192, 0.0, seed)
    moons = [shape.x[shape.y == label] for label in (1, -1)] if data == "moons" else [shape.x]
    along = [x[:, 0] if data == "moons" else torch.atan2(x[:, 1], x[:, 0]) for x in moons]
    path = torch.cat([x[order.argsort()] for x, order in zip(moons, along, strict=True)])
    corners = path[torch.linspace(0, len(path) - 1, CORNERS).round().long()]
    hand = torch.Generator().manual_seed(seed)
    corners = corners + HAND * torch.randn(corners.shape, generator=hand, dtype=corners.dtype)
    if data != "moons":
        corners = torch.cat([corners, corners[:1]])
    return tuple(corners.flatten().tolist())


def hits(claims: Dataset, points: Dataset) -> int:
    """Return how many points have a claim of their label within `RADIUS`."""
    if not claims.n:
        return 0
    near = torch.cdist(points.x.double(), claims.x.double()) <= runs.RADIUS
    return int((near & (points.y[:, None] == claims.y)).any(1).sum())


def add_attacks(
    row: Row, target: Target, points: Dataset, prior: str, seed: int, curve: tuple[float, ...]
) -> None:
    """Attack from noise, and count; of all but one, each of some points is left out in turn."""
    knows, box = PRIORS[prior]
    config = KKTConfig(knows=knows, prior=box, curve=curve)  # type: ignore[arg-type]
    control = heldout(points, 1)
    for k in range(LEFT_OUT if knows == "others" else 1):
        made = runs.attack(target, config, seed * LEFT_OUT + k, truth=points).claims
        claims = Dataset(made.x, made.y)
        wanted, far = points, control
        if knows == "others":
            one = (seed * LEFT_OUT + k) % points.n
            wanted = Dataset(points.x[one : one + 1], points.y[one : one + 1])
        row.found.append(hits(claims, wanted))
        row.total.append(wanted.n)
        row.chance.append(hits(claims, far))
        row.unseen.append(far.n)
        row.false.append(claims.n - hits(wanted, claims))


def add_census(
    row: Row, target: Target, points: Dataset, prior: str, starts: int, seed: int,
    curve: tuple[float, ...],
) -> None:  # fmt: skip
    """Count the basins with the same prior."""
    knows, _ = PRIORS[prior]
    problem = page_problem(target, points, heldout(points, 1), seed, knows, curve)  # type: ignore[arg-type]
    made = census(problem, CensusConfig(starts=starts))
    good = [one for one in made.basins if one.kind in ("truth", "explanation")]
    row.distinct.append(len(made.basins))
    row.good.append(sum(len(one.starts) for one in good))
    row.starts.append(starts)
    row.far.append(max((one.away for one in good), default=0.0))


def add_certified(row: Row, target: Target, points: Dataset, prior: str) -> None:
    """Certify the points in the box that the prior says; of other priors nothing is known."""
    wide = float(points.x.abs().max()) * (1 + 1e-9)
    box = {"a box": BOX, "the exact box": wide}.get(prior)
    if prior != "nothing" and box is None:
        return
    try:
        cone = runs.cone_around(target, points) if box is None else cone_of(target, box=box)
        known = certainty(cone, points.x, points.y, runs.RADIUS, points)
        most = farthest(cone, points.x, allowed_residual(cone, known.truth)).at_most
    except ValueError:
        return
    row.certified.append(int(known.certain.sum()))
    row.most.append(most)


def rows(
    sets: tuple[str, ...], seeds: int, starts: int, priors: tuple[str, ...]
) -> Iterator[tuple[str, str, Row, float]]:
    """Yield set, prior, counts and CPU seconds."""
    targets = {}
    for data in sets:
        for seed in range(seeds):
            points = preset(data, N, None, seed)
            config = TrainConfig(widths=(WIDTH,), steps=STEPS)
            targets[data, seed] = points, runs.train(Run(points, config, seed=seed), keep=1).target
    for data in sets:
        for prior in priors:
            row, begun = Row(), time.process_time()
            try:
                known_of(PRIORS[prior][0], targets[data, 0][0].x, targets[data, 0][0].y,  # type: ignore[arg-type]
                         torch.zeros(2, 2), curve=drawn(data, 0))  # fmt: skip
            except ValueError:
                continue  # no circle
            for seed in range(seeds):
                points, target = targets[data, seed]
                curve = drawn(data, seed) if prior == "a drawn curve" else ()
                add_attacks(row, target, points, prior, seed, curve)
                if starts and prior != "a box":  # the census has its own
                    add_census(row, target, points, prior, starts, seed, curve)
                add_certified(row, target, points, prior)
            yield data, prior, row, time.process_time() - begun


def line(data: str, prior: str, row: Row, seconds: float) -> str:
    """Return a row of the table."""
    found, chance = row.recall
    mean = lambda v, how: how.format(sum(v) / len(v)) if v else "–"  # noqa: E731
    counted = [share(v, row.starts) if row.starts else "–" for v in (row.distinct, row.good)]
    certified = f"{sum(row.certified)} of {len(row.certified) * N}" if row.certified else "–"
    cells = [f"{data}, {prior}", found, chance, mean(row.false, "{:.1f}"), *counted,
             f"{max(row.far):.2f}" if any(row.good) else "–", certified, mean(row.most, "{:.2f}"),
             f"{seconds:.0f}"]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def draw(made: list[tuple[str, str, Row, float]], file: str) -> None:
    """Draw the shares found with each prior, unseen points in grey."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(SETS), figsize=(9, 3), sharey=True, layout="constrained")
    for plot, data in zip(axes, SETS, strict=True):
        for prior, row in ((prior, row) for name, prior, row, _ in made if name == data):
            at = list(PRIORS).index(prior)
            both = zip(row.recall, ("#0072B2", "#8b93a1"), (-0.1, 0.1), strict=True)
            for one, colour, aside in both:
                plot.plot([at + aside] * 2, [one.low, one.high], color=colour, lw=2)
                plot.plot(at + aside, one.value, "o", color=colour)
        plot.set_xticks(range(len(PRIORS)), list(PRIORS), rotation=35, ha="right", fontsize=8)
        plot.set_title(data, fontsize=10)
        plot.set_ylim(-0.02, 1.02)
    axes[0].set_ylabel("share recovered within 0.03")
    figure.savefig(file, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--starts", type=int, default=40, help="of each census; 0: no census")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--priors", nargs="+", default=list(PRIORS), choices=list(PRIORS))
    parser.add_argument("--picture", default="", help="file of the picture")
    options = parser.parse_args()
    limit_threads()
    print("| " + " | ".join(HEADS) + " |\n" + "|---" * len(HEADS) + "|", flush=True)
    made = []
    for each in rows(tuple(options.sets), options.seeds, options.starts, tuple(options.priors)):
        print(line(*each), flush=True)
        made.append(each)
    if options.picture:
        draw(made, options.picture)


if __name__ == "__main__":
    main()
