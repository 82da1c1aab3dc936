"""The grid of starts: its cells, their runs, and the maps that are drawn of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.attacks.target import Target
from explorer.engine.classes import fair_labels
from explorer.engine.data import PRESETS, Dataset, heldout, preset
from explorer.engine.data.images import PARITY, Kind, parity_digits
from explorer.engine.energy.starts import (
    NAMES,
    SIDE,
    Parts,
    Pictures,
    partner_points,
    start_of,
    starts,
    steps_of,
)
from explorer.engine.files import safe_name
from explorer.engine.roster import ROSTER, by_key
from explorer.engine.store import Run
from explorer.engine.threads import limit_threads
from explorer.engine.training import TrainConfig
from explorer.research.devices import target_on, to_cpu
from explorer.research.runs import (
    aim,
    fingerprint,
    granted_target,
    points_and_weights,
    points_in,
    train,
)


@dataclass(frozen=True, eq=False)
class Maps:
    """The grid as arrays; unfinished cells are nan. s = side, k = seeds.

    Attributes:
        values: lambda_1 and lambda_2 of the columns and rows (s,).
        end: distances after the run, (k, 3, s, s): seed, NAMES, row lambda_2, column lambda_1.
        start: the same before the run.
        seeds: which seeds (k,).
    """

    values: Array
    end: Array
    start: Array
    seeds: tuple[int, ...]

    @property
    def mean(self) -> Array:
        """Return the mean distances after the run over the finished seeds (3, s, s)."""
        return _mean(self.end)

    @property
    def done_count(self) -> int:
        """Return the number of cells known for at least one seed."""
        return int(np.isfinite(self.end[:, 0]).any(0).sum())

    @property
    def nearest(self) -> NDArray[np.int64]:
        """Return the index in NAMES of the nearest set per cell (s, s), -1 if not known."""
        mean = self.mean
        known = np.isfinite(mean[0])
        return np.where(known, np.argmin(np.where(known, mean, np.inf), 0), -1)

    def edge(self, which: str) -> tuple[Array, Array]:
        """Return distances along an edge after the run, and at the start: two arrays (k, 3, s).

        "data": lambda_2 = 1, over lambda_1; from held-out data to the truth.
        "noise": lambda_1 = 1, over lambda_2; from noise to the truth.
        """
        if which == "data":
            return self.end[:, :, -1, :], self.start[:, :, -1, :]
        if which == "noise":
            return self.end[:, :, :, -1], self.start[:, :, :, -1]
        raise ValueError(f"an edge is 'data' or 'noise'; got {which!r}")


def maps(side: int, rows: Iterable[Mapping[str, Any]]) -> Maps:
    """Return arrays of finished rows {"mix_truth", "mix_data", "seed", "result"} of one grid."""
    values = steps_of(side)
    found: dict[tuple[int, float, float], Mapping[str, Any]] = {}
    for row in rows:
        key = (int(row["seed"]), round(row["mix_truth"], 9), round(row["mix_data"], 9))
        found[key] = row["result"]
    seeds = tuple(sorted({key[0] for key in found})) or (0,)
    end = np.full((len(seeds), 3, side, side), np.nan)
    start = end.copy()
    for k, seed in enumerate(seeds):
        for i, b in enumerate(values):
            for j, a in enumerate(values):
                a0, b0 = start_of(a, b)
                result = found.get((seed, round(a0, 9), round(b0, 9)))
                if result is not None:
                    end[k, :, i, j] = [result[name] for name in NAMES]
                    start[k, :, i, j] = [result["start"][name] for name in NAMES]
    return Maps(np.asarray(values), end, start, seeds)


def of_sweep(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of `sweep` that are done, as `maps` takes them."""
    return [
        {**{k: row["trial"][k] for k in ("mix_truth", "mix_data", "seed")}, "result": row["result"]}
        for row in rows
        if row["status"] == "done"
    ]


def band(curves: Array) -> tuple[Array, Array, Array]:
    """Return mean, lowest and highest over seeds. (k, s) -> three (s,), nan where unknown."""
    known = np.isfinite(curves)
    none = ~known.any(0)
    low = np.where(known, curves, np.inf).min(0)
    high = np.where(known, curves, -np.inf).max(0)
    return _mean(curves), np.where(none, np.nan, low), np.where(none, np.nan, high)


def _mean(values: Array) -> Array:
    known = np.isfinite(values)
    count = known.sum(0)
    total = np.where(known, values, 0.0).sum(0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


# --- One cell of the grid of starts as a row of a sweep: data, victim, start, attack, three
# distances
# A row is plain data, so a grid runs on any executor and goes on where its file ends (`sweep`):
#
#     rows = grid_rows("digits", "bilevel", side=5, seeds=(0, 1, 2))
#     for row in sweep(rows, processes(2), path=Path("grid.jsonl"), run=run_cell): ...
#
# The seed is that of everything: points, partition, victim and noise. Bands over seeds are bands
# over repeated experiments.

STEPS = 300  # arbitrary: steps per cell; both attacks have left their start by then
TRAIL = 20  # arbitrary: places kept of a trajectory


@dataclass(frozen=True)
class GridCell:
    """A start of the grid, and all that determines its run.

    Attributes:
        data: name of a preset, a kind of digits (`PARITY`) for odd against even, or the path of a
            saved run or a CSV.
        attack: key of an attack in the roster that takes a start.
        mix_truth: lambda_1.
        mix_data: lambda_2.
        n: training points; None for the preset's own number, 20 digits.
        noise: jitter of a preset; None for its own.
        seed: of points, partition, victim and noise.
        width: hidden neurons of the trained victim of roster attacks, where there is no exact one.
        settings: of the attack, other than its defaults, by name.
        file: `fingerprint` of the file at `data`; "" for a preset or digits.
        csv: whether that file holds points alone, rather than a saved run.
        device: where to attack, where the attack can.
    """

    data: str
    attack: str
    mix_truth: float
    mix_data: float
    n: int | None = None
    noise: float | None = None
    seed: int = 0
    width: int = 100
    settings: Mapping[str, Any] = field(default_factory=dict)
    file: str = ""
    csv: bool = False
    device: str = "cpu"

    def __post_init__(self) -> None:
        """Refuse unknown names."""
        if not self.file and self.data not in PARITY and self.data not in PRESETS:
            names = ", ".join([*PARITY, *PRESETS])
            raise ValueError(f"data is one of {names}; got {self.data!r}")
        known = grid_attacks()
        if self.attack not in known:
            raise ValueError(
                f"the grid takes attacks with a start: {', '.join(known)}; got {self.attack!r}"
            )

    def run_on(self, truth: Dataset) -> Run:
        """Return the run of this cell on its points: an exact network where inputs are one or two.

        Of the attack, settings and start; how it is measured is in `Grid` and `Trace`.
        """
        entry = by_key(self.attack)
        settings = entry.config(**{"steps": STEPS, "m": even(truth.n), **self.settings})
        training = TrainConfig(
            widths=(self.width,), method="ascent", steps=TrainConfig.ascent_steps
        )
        return Run(
            truth, training, attack_name=self.attack, attack_config=settings, seed=self.seed,
            mix=(self.mix_truth, self.mix_data), exact=truth.d <= 2,
        )  # fmt: skip


def grid_attacks() -> list[str]:
    """Return keys of the attacks that begin at given candidates."""
    return [key for key, entry in ROSTER.items() if entry.takes_start]


def grid_rows(
    data: str,
    attack: str,
    *,
    side: int = SIDE,
    seeds: Iterable[int] = (0,),
    **more: Any,  # noqa: ANN401
) -> list[GridCell]:
    """Return the distinct starts of a grid, for each seed; the corners of all seeds first."""
    seeds = list(seeds)
    return [
        GridCell(data, attack, a, b, seed=seed, **more) for a, b in starts(side) for seed in seeds
    ]  # fmt: skip


def own_labels(truth: Dataset, m: int) -> Tensor | None:
    """Return the labels of the truth where m fair ones would leave some of its points out.

    The candidates of a page then carry them, so that the corner of the truth is the whole truth; so
    they do where there is but one candidate more than points.
    """
    m = max(m, even(truth.n))
    fair = fair_labels(m, truth.outputs)
    held = all(int((fair == k).sum()) >= int((truth.y == k).sum()) for k in truth.y.unique())
    return None if held and (m == truth.n or m > even(truth.n)) else truth.y


@dataclass(frozen=True)
class Grid:
    """A grid of starts to run: equal settings on the very same weights and points are the same one.

    Attributes:
        target: the attacked weights; None where there are none, or the attack trains its own.
        truth: the points they were trained on.
        heldout: points of the same kind.
        attack: key of the attack.
        config: its settings.
        seed: of the noise, and of the next seeds' after it.
        side: cells along an axis.
        pictures: how points are pictures, or None.
        device: where to attack, where the attack can.
        fair: whether candidates have as many labels of each class, whatever the truth has.
        drawn: whether every run begins as from noise, with drawn multipliers; else one that begins
            at data has them fitted.
    """

    target: Target | None
    truth: Dataset | None
    heldout: Dataset | None
    attack: str
    config: Any
    seed: int
    side: int
    pictures: Pictures | None = None
    device: str = "cpu"
    fair: bool = False
    drawn: bool = False

    def settings_at(self, mix_data: float) -> Any:  # noqa: ANN401 - settings of any attack
        """Return the settings of a run from a start with this share of data."""
        if self.is_drawn(mix_data):
            return self.config
        return by_key(self.attack).suit(self.config, mix_data)

    def is_drawn(self, mix_data: float) -> bool:
        """Return whether a run from a start with this share of data begins as one from noise."""
        return self.drawn or not mix_data

    @property
    def ready(self) -> bool:
        """Return whether there is something to attack: weights, or a victim of the attack's own."""
        known = self.target is not None or by_key(self.attack).own is not None
        return known and self.truth is not None and self.heldout is not None

    def problem(self, k: int = 0) -> Problem:
        """Return what the cells of seed number `k` share.

        Raises:
            ValueError: where there is nothing to attack, or the attack cannot be used on it.
        """
        truth, control, entry = self.truth, self.heldout, by_key(self.attack)
        if not self.ready or truth is None or control is None:
            raise ValueError("No weights to attack: train a network first.")
        # Where training itself is seen through, labels and their number are known.
        y = truth.y if entry.own else None if self.fair else own_labels(truth, self.config.m)
        y = fair_labels(self.config.m, truth.outputs) if y is None else y
        generator, size = torch.Generator().manual_seed(self.seed + k), (len(y), truth.d)
        if self.pictures is not None:  # pixels U(0, 1), as published for images
            noise = torch.rand(size, generator=generator, dtype=torch.float64) - self.pictures.mean
        else:
            noise = torch.randn(size, generator=generator, dtype=torch.float64)
            noise = self.config.sigma_x * noise
        sets = (truth.x, truth.y), (control.x, control.y)
        near = partner_points(truth, y), partner_points(control, y)
        held = granted_target(self.target, truth, self.config, self.seed + k)
        aimed = entry.target_for(held, truth.x, truth.y, self.config, self.seed + k)
        return Problem(
            self, target_on(aimed, entry, self.device), Parts(y, *near, noise, self.pictures, sets),
            self.seed + k,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Problem:
    """What the cells of one seed share: the target, the parts of a start, a way to run."""

    of: Grid
    target: Any  # Target, or one of the attack's own
    parts: Parts
    seed: int

    def states(
        self, mix_truth: float, mix_data: float, stride: int = 1, config: Any = None,  # noqa: ANN401
    ) -> Iterator[Any]:  # fmt: skip
        """Return the run from a start; states that `stride` does not divide may be left out.

        With `config` it has these settings; else those of the problem, made fit for the start.
        """
        config = self.of.settings_at(mix_data) if config is None else config
        return self.states_from(self.parts.start(mix_truth, mix_data), config, stride)

    def states_from(self, start: Tensor, config: Any, stride: int = 1) -> Iterator[Any]:  # noqa: ANN401
        """Yield the run from candidates (m, d) with these settings."""
        entry = by_key(self.of.attack)
        drawn = torch.Generator().manual_seed(self.seed)
        states = entry.states(self.target, config, drawn, (start, self.parts.y), stride)
        return states if self.of.device == "cpu" else map(to_cpu, states)


def run_cell(cell: GridCell) -> dict[str, Any]:
    """Run one cell. -> its distances at the start and at the end, its loss and its trajectory."""
    limit_threads()
    shared = replace(cell, mix_truth=0.0, mix_data=0.0)
    problem = _problem(json.dumps(asdict(shared), sort_keys=True))
    stride = max(1, problem.of.config.steps // (2 * TRAIL))
    trace = Trace(problem.parts)
    for state in problem.states(cell.mix_truth, cell.mix_data, stride):
        trace.add(state)
    return trace.result()


class Trace:
    """A run as it goes: where on the triangle it is, and at its end the result as plain data.

    Attributes:
        places: about TRAIL places so far, weights of truth, held-out data and noise.
        last: the newest state, or None.
    """

    def __init__(self, parts: Parts) -> None:
        """Begin without a state."""
        self._parts = parts
        self._first: Any = None
        self.places: list[list[float]] = []
        self.last: Any = None

    def add(self, state: Any) -> None:  # noqa: ANN401 - of any attack
        """Note a state."""
        self._first, self.last = self._first or state, state
        places = [*self.places, list(self._parts.weights(state.x))]
        if len(places) > 2 * TRAIL:
            places = [*places[:-1:2], places[-1]] if len(places) % 2 == 0 else places[::2]
        self.places = places

    def result(self) -> dict[str, Any]:
        """Return distances at the start and at the end, numbers and trajectory.

        Raises:
            ValueError: for a run without a state.
        """
        first, last, parts = self._first, self.last, self._parts
        if first is None or last is None:
            raise ValueError("a run has at least its first state; got none")
        return {
            "start": dict(zip(NAMES, parts.distances(first.x), strict=True)),
            **dict(zip(NAMES, parts.distances(last.x), strict=True)),
            "steps": last.t, "numbers": last.numbers(), "first_numbers": first.numbers(),
            "trail": self.places,
        }  # fmt: skip


@lru_cache(maxsize=8)  # arbitrary: seeds that follow each other in one worker
def _problem(text: str) -> Problem:
    cell = GridCell(**json.loads(text))
    truth, control, own = sets_of(cell)
    run = cell.run_on(truth)
    given = None if by_key(cell.attack).own else own or train(run, keep=1).target
    seen = None if (size := PARITY.get(cell.data)) is None else Pictures((1, *size))
    made = Grid(
        given, truth, control, cell.attack, run.attack_config, cell.seed, SIDE, seen, cell.device,
        fair=True,
    )  # fmt: skip
    return made.problem()


def even(n: int) -> int:
    """Return as many candidates as points, or one more: all sets of the grid are equally dense."""
    return n + n % 2


def open_cell(cell: GridCell) -> tuple[Dataset, Target]:
    """Return points and weights of a cell's saved run.

    Raises:
        ValueError: where the file has changed, or lacks points or weights.
        RunFailed: where the network does not separate the points.
    """
    if fingerprint(cell.data) != cell.file:
        raise ValueError(
            f"{safe_name(Path(cell.data).name)} has changed since the grid was begun. "
            "Begin another."
        )
    truth, net = points_and_weights(Path(cell.data))
    truth = truth.to(dtype=torch.float64)
    return truth, aim(net, truth, None)[0]


def sets_of(cell: GridCell) -> tuple[Dataset, Dataset, Target | None]:
    """Return points, held-out points, and the weights of a saved run. ValueError as `open_cell`."""
    if cell.csv:
        truth = points_in(cell.data, cell.file)
        return truth, heldout(truth, 1), None
    if cell.file:
        truth, own = open_cell(cell)
        return truth, heldout(truth, 1), own
    if cell.data in PARITY:
        kind: Kind = "mnist" if cell.data == "mnist" else "digits"
        return *parity_digits(20 if cell.n is None else cell.n, cell.seed, kind), None
    truth = preset(cell.data, cell.n, cell.noise, cell.seed)
    return truth, heldout(truth, 1), None
