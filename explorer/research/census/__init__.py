"""The census of an attack's landscape: its basins, by descents from many starts.

    made = census(problem, CensusConfig(starts=1000))
    print(len(made.basins), made.unseen.count)

Starts are uniform on the triangle of truth, unseen points and noise, half of them moved off it.
Each descends to the level end of its valley (`descent`), without an optimiser's leaps, so that a
basin is a property of the loss. Ends are the same up to the order of the points and to splits
(`basins`). What is said of an end's kind is said of the smooth loss; with hard slopes the energy
jumps at a neuron's line, and where a candidate lies on one nothing is decided of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Index
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.confidence import Share, share
from explorer.engine.data import Dataset
from explorer.engine.energy.starts import Parts
from explorer.engine.explanations.splitting import USED
from explorer.engine.known import Knowledge
from explorer.engine.progress import Progress, no_progress, part_progress
from explorer.engine.settings import setting, settings
from explorer.research.census.basins import (
    ALIKE,
    Basin,
    Conditions,
    Kind,
    Unseen,
    WeightedSet,
    conditions,
    merged_points,
    same_ends,
    unseen_basins,
)
from explorer.research.census.descent import (
    Ends,
    Loss,
    PutBack,
    Watch,
    descend,
    descend_with_returns,
    watch_nothing,
)
from explorer.research.census.losses import OF_PAGE, Surface, kkt_surface, victim_surface
from explorer.research.grid import Grid, Problem, even
from explorer.research.runs import RADIUS

Look = Callable[[Tensor, Index], None]
"""Hears of a census under way: places of all starts (b, m, d), and the basin so far of each, -1
where its descent goes on (b,)."""

TOGETHER = 500  # descents side by side; arbitrary: their arrays stay near the processor


@settings
class CensusConfig:
    """The settings of a census."""

    # fmt: off
    starts: Annotated[int, setting("How many descents", ge=1, page=(1, 100_000))] = 1000
    loss: Annotated[Literal["kkt", "decoreco", "bilevel", "surrogate"], setting(
        "KKT, of the network's weights; or of weights that decay trains on the same points: "
        "DecoReco, bilevel, or its surrogate",
    )] = "kkt"
    alpha: Annotated[float, setting(
        "Steepness α of the slopes sigmoid(αz), of KKT", gt=0,
        note="Arbitrary: the attack's own goes from 5 to 200. At 200 a descent takes three times "
        "the steps, and hardly two ends are the same.",
    )] = 20.0
    around: Annotated[float, setting(
        "Standard deviation by which every other start is moved off the triangle", ge=0,
        unit="of the data",
    )] = 0.1
    steps: Annotated[int, setting("Most steps of a descent", ge=1)] = 5000
    seed: Annotated[int, setting("Of the starts", ge=0)] = 0
    # fmt: on


@dataclass(frozen=True, eq=False)
class Census:
    """What was counted.

    Attributes:
        config: how.
        basins: the distinct ends, the largest first.
        mixes: weights of truth, unseen points and noise of each start (b, 3).
        basin: the number of each start's basin (b,).
        unseen: an estimate of what was not seen.
        level: how many descents are level.
        steps: of a descent, median and most.
        truth: the residual of the truth's own end, and how far that is from the truth.
        home: the share of starts that end there, wherever that is.
    """

    config: CensusConfig
    basins: tuple[Basin, ...]
    mixes: Tensor
    basin: Index
    unseen: Unseen
    level: int
    steps: tuple[int, int]
    truth: tuple[float, float]
    home: Share

    def of_kind(self, kind: Kind) -> Share:
        """Return the share of the starts that end at this kind, with its interval."""
        found = sum(len(one.starts) for one in self.basins if one.kind == kind)
        return share([found], [len(self.basin)])

    def distinct(self, kind: Kind) -> int:
        """Return how many distinct ends are of this kind."""
        return sum(one.kind == kind for one in self.basins)


def page_problem(
    target: Target | None, truth: Dataset, control: Dataset | None, seed: int,
    knows: Knowledge = "nothing", curve: tuple[float, ...] = (),
) -> Problem:  # fmt: skip
    """Return the problem of the energy of the page: KKT, with a candidate for each point.

    Args:
        target: the weights at margin 1.
        truth: the points that they were trained on.
        control: unseen points.
        seed: of the noise.
        knows: what the attacker is granted of the points.
        curve: the drawn one, if that is it.
    """
    config = KKTConfig(m=even(truth.n), knows=knows, curve=curve)
    return Grid(target, truth, control, OF_PAGE, config, seed, 2).problem()


def surface_of(problem: Problem, config: CensusConfig) -> Surface:
    """Return the loss of a problem that `config` names. ValueError for weights without it."""
    if config.loss == OF_PAGE:
        return kkt_surface(problem.target, problem.parts.y, config.alpha)
    return victim_surface(config.loss, problem.target, problem.of.config, problem.parts.y)


def census_starts(parts: Parts, config: CensusConfig) -> tuple[Tensor, Tensor]:
    """Return weights of the starts, uniform on the triangle (b, 3), and their points (b, m, d)."""
    generator = torch.Generator().manual_seed(config.seed)
    drawn = torch.rand(config.starts, 3, generator=generator, dtype=torch.float64)
    mixes = -drawn.clamp_min(1e-300).log()
    mixes = mixes / mixes.sum(1, keepdim=True)
    sets = torch.stack((parts.truth, parts.heldout, parts.noise)).double()
    x = torch.einsum("bk,kmd->bmd", mixes, sets)
    off = torch.randn(x.shape, generator=generator, dtype=torch.float64)
    off[::2] = 0
    return mixes, x + config.around * off


def census(
    problem: Problem, config: CensusConfig, progress: Progress = no_progress,
    look: Look | None = None,
) -> Census:  # fmt: skip
    """Return the basins that descents from many starts find.

    Args:
        problem: the weights, and the three sets that starts are mixed of (`Grid.problem`).
        config: the settings.
        progress: hears the share done.
        look: hears several times which starts have come to an end, and to which.

    Raises:
        ValueError: for weights without this loss.
    """
    parts, surface = problem.parts, surface_of(problem, config)
    mixes, x = census_starts(parts, config)
    first = torch.cat([parts.truth.double()[None], x]).flatten(1)  # the truth's own end beside them
    put_back = _put_back(problem)
    part = part_progress(progress, 0.0, 0.8)
    watch = watch_nothing if look is None else _watch(surface, parts.truth.shape, look)
    ends = _ends(surface.loss, first, config.steps, part, put_back, watch)
    places = ends.x.view(len(first), *parts.truth.shape)
    sets = [_points(surface, place) for place in places]
    group = same_ends(ends.value, sets)
    at_truth = group[0] if parts.distances(places[0])[0] <= RADIUS else -1
    numbers = [k for k in range(int(group.max()) + 1) if (group[1:] == k).any()]
    best = [_lowest(ends.value, group, k) for k in numbers]
    orders = conditions(surface.loss, ends.x[best], part_progress(progress, 0.8, 1.0))
    basins = []
    for k, i, order in zip(numbers, best, orders, strict=True):
        kind = "truth" if k == at_truth else _kind(ends, i, order)
        inside = np.flatnonzero(group[1:] == k)
        basins.append(_basin(surface, sets[i], places[i], float(ends.value[i]), kind, order, inside,
                             len(x), parts.distances(places[i])[0]))  # fmt: skip
    basin = np.searchsorted(np.array(numbers), group[1:])
    steps = ends.steps[1:].double()
    return Census(
        config, tuple(basins), mixes, basin, unseen_basins(np.bincount(basin).tolist()),
        int(ends.level[1:].sum()), (int(steps.median()), int(steps.max())),
        (float(ends.value[0]), parts.distances(places[0])[0]),
        share([int((group[1:] == group[0]).sum())], [len(x)]),
    )  # fmt: skip


def _points(surface: Surface, x: Tensor) -> WeightedSet:
    pull = surface.pull(x)
    cells = None if surface.cells is None else surface.cells(x)
    return merged_points(x, pull.sign(), pull.abs(), cells)


def _watch(surface: Surface, shape: torch.Size, look: Look) -> Watch:
    """Return what tells `look` to which basins starts have come; the first place is no start."""
    sets: dict[int, WeightedSet] = {}

    def watch(x: Tensor, value: Tensor, level: Tensor) -> None:
        places, ended = x[1:].view(-1, *shape), level[1:].nonzero()[:, 0]
        for i in ended.tolist():
            if i not in sets:
                sets[i] = _points(surface, places[i])
        basin = np.full(len(places), -1)
        if len(ended):
            basin[ended.numpy()] = same_ends(value[1:][ended], [sets[i] for i in ended.tolist()])
        look(places, basin)

    return watch


def _lowest(value: Tensor, group: Index, k: int) -> int:
    """Return the lowest end of a group, the truth's own left out."""
    return min((np.flatnonzero(group[1:] == k) + 1).tolist(), key=lambda i: float(value[i]))


def _put_back(problem: Problem) -> PutBack | None:
    """Return what puts sets (b, p) back to what is known of the points; None for nothing."""
    known, y = getattr(problem.target, "known", None), problem.parts.y
    if known is None:
        return None

    def back(x: Tensor) -> Tensor:
        made: Tensor = known.put_back(x.view(len(x), len(y), -1), y).view(x.shape)
        return made

    return back


def _ends(
    loss: Loss, x: Tensor, most: int, progress: Progress, put_back: PutBack | None, watch: Watch
) -> Ends:
    """Return the ends of all descents, some of them side by side."""
    made = []
    whole = x.clone(), x.new_zeros(len(x)), torch.zeros(len(x), dtype=torch.bool)
    for low in range(0, len(x), TOGETHER):
        some = slice(low, low + TOGETHER)
        part = part_progress(progress, low / len(x), min(1.0, (low + TOGETHER) / len(x)))

        def hear(*now: Tensor, some: slice = some) -> None:
            for kept, new in zip(whole, now, strict=True):
                kept[some] = new
            watch(*whole)

        one = descend if put_back is None else partial(descend_with_returns, put_back)
        made.append(one(loss, x[some], most, part, hear))
    names = ("x", "value", "gradient", "level", "steps")
    return Ends(*(torch.cat([getattr(one, name) for one in made]) for name in names))


def _kind(ends: Ends, i: int, order: Conditions) -> Kind:
    """Return what an end is that is not the truth's own."""
    if float(ends.value[i]) <= float(ends.value[0]) + ALIKE:
        return "explanation"
    return order.kind if bool(ends.level[i]) else "open"


def _basin(
    surface: Surface, points: WeightedSet, x: Tensor, value: float, kind: Kind, order: Conditions,
    inside: Index, total: int, away: float,
) -> Basin:  # fmt: skip
    pull = surface.pull(x).abs()
    judged = surface.hard(x, pull > USED * pull.sum())
    volume = share([len(inside)], [total])
    starts = tuple(inside.tolist())
    return Basin(starts, volume, kind, value, x, len(points.x), away, order, *judged)
