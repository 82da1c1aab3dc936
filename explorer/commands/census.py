"""The verb `census`: the basins of an attack's landscape, counted by descents from many starts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import numpy as np

from explorer.commands import base, options
from explorer.commands.options import option
from explorer.engine.attacks.bilevel import BilevelConfig
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.data import Dataset, heldout
from explorer.engine.energy.starts import SIDE
from explorer.engine.explanations.splitting import flat_directions, training_explanation
from explorer.engine.number_words import digits
from explorer.research import report, runs
from explorer.research.census import Census, CensusConfig, census, surface_of
from explorer.research.census.basins import KINDS
from explorer.research.census.losses import OF_PAGE
from explorer.research.census.passes import ends_to_join, lowest_pass, split_profile
from explorer.research.grid import Grid, Problem, even
from explorer.research.report import Summary

TRAINED = options.TrainingOptions()
CIRCLE = options.Weights(points=options.Points("alternating-circle"), training=TRAINED)
CONFIG = CensusConfig()
How = Annotated[CensusConfig, options.fields("starts", "loss", "alpha", "around", steps=option(
    "--descent", "Most steps of a descent.", min=1
))]  # fmt: skip
Ways = Annotated[
    bool,
    option("--passes", "The lowest passes from the truth, and what splits of its points leave."),
]
Decay = Annotated[
    list[str] | None,
    option("--set", "A setting of the training with weight decay, such as mu=0.001; see bilevel."),
]
GOALS = {"unseen": "that below unseen points", "other": "the farthest end as good"}
TABLE = 10  # basins in the table, the largest; all are in the JSON; arbitrary


@options.expand_groups
def count_basins(
    weights: options.Weights = CIRCLE, config: How = CONFIG, settings: Decay = None,
    passes: Ways = False, as_json: options.Json = False,
) -> None:  # fmt: skip
    """Count the basins of a landscape of starts: distinct ends, volumes, what they are."""
    grid = _grid(weights, config, settings)
    problem = grid.problem()
    with base.progress_bar("descents") as progress:
        made = census(problem, config, progress)
    found = _summary(made, grid.truth) + (_passes(made, problem) if passes else Summary())
    base.show(as_json, "Census", found)
    if not as_json:
        _table(made)


def _grid(weights: options.Weights, config: CensusConfig, settings: list[str] | None) -> Grid:
    """Return the weights with truth, unseen points and noise."""
    seed = weights.points.seed
    if config.loss == OF_PAGE:
        if settings:
            raise ValueError("--set is of weights that decay trains; leave it away with kkt")
        points, net = weights.open()
        target = runs.aim(net, points, None)[0]
        hit = KKTConfig(m=even(points.n))
        return Grid(target, points, heldout(points, 1), "kkt", hit, seed, SIDE)  # of any side
    file, trained = weights.file, {"model": "hidden"}
    points = weights.points.draw() if file is None else runs.points_and_weights(file)[0]
    decay: Any = base.attack_config("bilevel", settings, **trained)
    assert isinstance(decay, BilevelConfig)
    return Grid(None, points, heldout(points, 1), "bilevel", decay, seed, SIDE)


def _summary(made: Census, truth: Dataset | None) -> Summary:
    """Return the counts as rows, and every basin as data."""
    n, distinct = len(made.basin), len(made.basins)
    value, away = made.truth
    rows = [
        ("loss", made.config.loss),
        ("starts", f"{n}, {made.level} end level"),
        ("steps of a descent", f"{made.steps[0]} in the middle, {made.steps[1]} at most"),
        ("distinct ends", f"{distinct}"),
        ("unseen basins", f"{made.unseen.count:.0f} or more, of volume {made.unseen.volume}"),
        ("descent from the truth", f"leaves {digits(value)}, ends {digits(away)} off"),
        ("starts that end where it does", f"{made.home}"),
        *((f"starts that end at {name}", f"{made.of_kind(kind)}, {made.distinct(kind)} distinct")
          for kind, name in KINDS.items()),
    ]  # fmt: skip
    kinked = sum(one.kinked for one in made.basins)
    if made.config.loss == OF_PAGE:
        undecided = "with hard slopes it is not decided whether these are minima"
        rows.append(("ends on a neuron's line", f"{kinked} of {distinct}: {undecided}"))
    content = {
        "config": asdict(made.config), "points": None if truth is None else truth.n,
        "distinct": distinct, "level": made.level, "unseen": asdict(made.unseen),
        "kinked": kinked,
        "truth": {"residual": value, "away": away, "home": asdict(made.home)},
        "kinds": {
            kind: {"share": asdict(made.of_kind(kind)), "distinct": made.distinct(kind)}
            for kind in KINDS
        },
        "basins": [
            report.values(one, "kind", "value", "points", "away", "hard", "kinked", "x")
            | {"starts": len(one.starts), "volume": asdict(one.volume)} | asdict(one.conditions)
            for one in made.basins
        ],
    }  # fmt: skip
    return Summary(rows, content)


def _passes(made: Census, problem: Problem) -> Summary:
    """Return the passes from the truth's end to that of unseen points, and to the farthest one."""
    loss = surface_of(problem, made.config).loss
    first, goals = ends_to_join(made, problem, loss)
    found = Summary()
    for key, goal in goals.items():
        name = GOALS[key]
        with base.progress_bar(f"pass to {name}") as progress:
            way = lowest_pass(loss, first, goal, progress=progress)
        words = f"{digits(way.barrier)} of the weights, {digits(way.straight_barrier)} straight"
        content = report.values(way, "barrier", "straight_barrier", "at", "straight", "lowest")
        row = f"pass from the end below the truth to {name}"
        found += Summary([(row, words)], {f"pass to {name}": content})
    return found + (_splits(problem) if made.config.loss == OF_PAGE else Summary())


def _splits(problem: Problem) -> Summary:
    """Return by what the residual differs on the ways on which points of the truth split."""
    assert problem.of.truth is not None
    x, y = problem.of.truth.x, problem.of.truth.y
    net, e, exact = training_explanation(problem.target, x, y)
    ways = [split_profile(net, e, i) for i in range(e.n)]
    apart = [float(np.abs(way).max()) for way in ways if way is not None]
    words = f"{len(apart)} of {e.n} can be split"
    words += f", by which the residual differs by {max(apart):.1e} at most" if apart else ""
    flat = flat_directions(net, e)
    rows = [
        ("points of the truth", words),
        ("directions in which they move, residual the same", f"{flat}"),
    ]
    return Summary(rows, {"splits": apart, "exact": exact, "flat": flat})


def _table(made: Census) -> None:
    heads = ("starts", "volume", "kind", "residual", "hard slopes", "points", "from the truth")
    base.print_table("", heads, (
        (
            str(len(one.starts)), str(one.volume), one.kind, f"{one.value:.4f}",
            f"{one.hard:.4f}", str(one.points), f"{one.away:.3f}",
        )
        for one in made.basins[:TABLE]
    ))  # fmt: skip


VERBS = {"census": count_basins}
