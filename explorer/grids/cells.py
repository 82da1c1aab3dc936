"""One cell of the grid of starts as a row of a sweep: data, victim, start, attack, three distances.

A row is plain data, so a grid runs on any executor and goes on where its file ends (`sweep`):

    rows = grid_rows("digits", "bilevel", side=5, seeds=(0, 1, 2))
    for row in sweep(rows, processes(2), path=Path("grid.jsonl"), run=run_cell): ...

The seed is that of everything: points, partition, victim and noise. Bands over seeds are bands over
repeated experiments.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from explorer.engine import training
from explorer.engine.attacks.target import Target
from explorer.engine.classes import fair_labels
from explorer.engine.data import PRESETS, Dataset, heldout, preset
from explorer.engine.exact import maximum_margin
from explorer.engine.files import named
from explorer.engine.lambda_grid import SIDE, Parts, Pictures, starts
from explorer.engine.parity import IMAGE, parity_digits
from explorer.engine.roster import ROSTER, Entry, by_key
from explorer.engine.store import read_file
from explorer.engine.training import TrainConfig
from explorer.headless import aim, points_and_weights
from explorer.starts import paired
from explorer.threads import limit_threads

DIGITS = "digits"
STEPS = 300  # arbitrary: steps per cell; both attacks have left their start by then
TRAIL = 20  # arbitrary: places kept of a trajectory


@dataclass(frozen=True)
class Cell:
    """A start of the grid, and all that leads there.

    Attributes:
        data: name of a preset, "digits" for odd against even, or the path of a saved run.
        attack: key of an attack in the roster that takes a start.
        mix_truth: lambda_1.
        mix_data: lambda_2.
        n: training points; None for the preset's own number, 20 digits.
        noise: jitter of a preset; None for its own.
        seed: of points, partition, victim and noise.
        width: hidden neurons of the trained victim of roster attacks, where there is no exact one.
        settings: of the attack, other than its defaults, by name.
        file: `fingerprint` of the saved run; "" for a preset or digits.
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

    def __post_init__(self) -> None:
        """Refuse names that lead nowhere."""
        if not self.file and self.data != DIGITS and self.data not in PRESETS:
            raise ValueError(f"data is digits or one of {', '.join(PRESETS)}; got {self.data!r}")
        known = grid_attacks()
        if self.attack not in known:
            raise ValueError(
                f"the grid takes attacks with a start: {', '.join(known)}; got {self.attack!r}"
            )


def grid_attacks() -> list[str]:
    """Keys of the attacks that begin at given candidates."""
    return [key for key, entry in ROSTER.items() if entry.takes_start]


def grid_rows(
    data: str,
    attack: str,
    *,
    side: int = SIDE,
    seeds: Iterable[int] = (0,),
    **more: Any,  # noqa: ANN401
) -> list[Cell]:
    """The distinct starts of a grid, for each seed; the corners of all seeds first."""
    seeds = list(seeds)
    return [
        Cell(data, attack, a, b, seed=seed, **more) for a, b in starts(side) for seed in seeds
    ]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Problem:
    """What the cells of one seed share: what is attacked, the parts of a start, a way to run."""

    target: Any  # Target, or one of the attack's own
    parts: Parts
    config: Any
    run: Any  # (x, config, stride) -> iterator over states, the first one at t = 0

    def states(self, mix_truth: float, mix_data: float, stride: int = 1) -> Iterator[Any]:
        """The run from a start; states that `stride` does not divide may be left out."""
        config = suited(self.config, mix_data)
        states: Iterator[Any] = self.run(self.parts.start(mix_truth, mix_data), config, stride)
        return states


def suited(config: Any, mix_data: float) -> Any:  # noqa: ANN401 - of any attack
    """Without annealing, unless the start is noise: it first drives candidates apart."""
    if mix_data and getattr(config, "relu_alpha_start", None) is not None:
        return replace(config, relu_alpha_start=None)
    return config


def run_cell(cell: Cell) -> dict[str, Any]:
    """Run one cell. -> its distances at the start and at the end, its loss and its trajectory."""
    limit_threads()
    shared = replace(cell, mix_truth=0.0, mix_data=0.0)
    problem = _problem(json.dumps(asdict(shared), sort_keys=True))
    stride = max(1, problem.config.steps // (2 * TRAIL))
    return outcome(problem.parts, problem.states(cell.mix_truth, cell.mix_data, stride))


def outcome(parts: Parts, states: Iterable[Any]) -> dict[str, Any]:
    """What a run came to: plain data. The trajectory holds about TRAIL places."""
    trail: list[tuple[int, tuple[float, float, float]]] = []
    first = last = None
    for state in states:
        first, last = first or state, state
        trail.append((state.t, parts.weights(state.x)))
        if len(trail) > 2 * TRAIL:
            trail = [*trail[:-1:2], trail[-1]] if len(trail) % 2 == 0 else trail[::2]
    if first is None or last is None:
        raise ValueError("a run has at least its first state; got none")
    return {
        "start": dict(zip(("truth", "heldout", "noise"), parts.distances(first.x), strict=True)),
        **dict(zip(("truth", "heldout", "noise"), parts.distances(last.x), strict=True)),
        "steps": last.t, "numbers": last.numbers(), "first_numbers": first.numbers(),
        "trail": [list(w) for _, w in trail],
    }  # fmt: skip


@lru_cache(maxsize=8)  # arbitrary: seeds that follow each other in one worker
def _problem(text: str) -> Problem:
    cell = Cell(**json.loads(text))
    truth, control, own = _sets(cell)
    entry = by_key(cell.attack)
    config: Any = entry.config(**{"steps": STEPS, "m": even(truth.n), **cell.settings})
    given = None if entry.victim else own or _target(cell, truth)
    seen = Pictures((1, *IMAGE)) if cell.data == DIGITS else None
    return problem_of(entry, config, given, truth, control, cell.seed, seen)


def even(n: int) -> int:
    """As many candidates as points, or one more: every set of the grid then is equally dense."""
    return n + n % 2


def problem_of(
    entry: Entry, config: Any, given: Target | None, truth: Dataset, control: Dataset, seed: int,  # noqa: ANN401
    pictures: Pictures | None = None,
) -> Problem:  # fmt: skip
    """What the cells of one seed share. `given`: the attacked weights, where they are there."""
    # Where training itself is seen through, labels and their number are known.
    y = truth.y if entry.victim else fair_labels(config.m, truth.outputs)
    generator = torch.Generator().manual_seed(seed)
    size = (len(y), truth.d)
    if pictures is not None:  # pixels U(0, 1), as published for images
        noise = torch.rand(size, generator=generator, dtype=torch.float64) - pictures.mean
    else:
        noise = config.sigma_x * torch.randn(size, generator=generator, dtype=torch.float64)
    sets = (truth.x, truth.y), (control.x, control.y)
    parts = Parts(y, paired(truth, y), paired(control, y), noise, pictures, sets)
    target = entry.aimed(given, truth.x, truth.y, config, seed)

    def run(x: Tensor, chosen: Any, stride: int) -> Iterator[Any]:  # noqa: ANN401
        first = entry.init(target, chosen, torch.Generator().manual_seed(seed), (x, y))
        yield first
        yield from entry.iterate(target, first, chosen, entry.stride(chosen, stride))

    return Problem(target, parts, config, run)


def fingerprint(path: str | Path) -> str:
    """Of a file: a cell runs on the very weights and points that it was made for."""
    return hashlib.sha256(read_file(path)).hexdigest()[:16]


def saved(cell: Cell) -> tuple[Dataset, Target]:
    """Points and weights of a cell's saved run.

    Raises:
        ValueError: where the file has changed, or lacks points or weights.
        RunFailed: where the network does not separate the points.
    """
    if fingerprint(cell.data) != cell.file:
        raise ValueError(
            f"{named(Path(cell.data).name)} has changed since the grid was begun. Begin another."
        )
    truth, net = points_and_weights(Path(cell.data))
    truth = truth.to(dtype=torch.float64)
    return truth, aim(net, truth, None)[0]


def _sets(cell: Cell) -> tuple[Dataset, Dataset, Target | None]:
    """Points, held-out points, and the weights of a saved run."""
    if cell.file:
        truth, own = saved(cell)
        return truth, heldout(truth, 1), own
    if cell.data == DIGITS:
        return *parity_digits(20 if cell.n is None else cell.n, cell.seed), None
    truth = preset(cell.data, cell.n, cell.noise, cell.seed)
    return truth, heldout(truth, 1), None


def _target(cell: Cell, truth: Dataset) -> Target:
    if truth.d <= 2:
        return Target.of(maximum_margin(truth.x, truth.y).net, 1.0)
    config = TrainConfig(widths=(cell.width,), method="ascent", steps=TrainConfig.ascent_steps)
    state = training.init(truth, config, torch.Generator().manual_seed(cell.seed))
    while not training.terminate(state, config).over:
        state = training.step(truth, state, config)
    return Target.of(state.net, float(state.q.min()))
