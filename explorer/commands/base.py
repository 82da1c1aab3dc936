"""What the verbs of the command line share: options, the guard, progress and printing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import torch
import typer
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from explorer import __version__
from explorer.commands import READER_LEFT
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.data import PRESETS, Dataset, in_unit, preset, unit_of
from explorer.engine.files import one_line, safe_name
from explorer.engine.network import Network
from explorer.engine.progress import Progress
from explorer.engine.roster import ROSTER, AttackConfig, by_key
from explorer.engine.settings import config_of, setting_of, value_of
from explorer.engine.training import TrainConfig
from explorer.research import report, runs
from explorer.research.experiment import Experiment
from explorer.research.runs import RunFailed, State, Trained
from explorer.research.scenarios import SCENARIOS
from explorer.research.words import weights

MOST_SEED = 2**63 - 1  # what a generator takes
PIPE_WIDTH = 10_000  # arbitrary: no row is as wide, and a table takes what it needs
MOST_WORDS = 1000  # arbitrary: a list of all settings fits; what a file says is shorter
P = ParamSpec("P")


class Device(StrEnum):
    """Where to train and to attack."""

    cpu = "cpu"
    cuda = "cuda"
    mps = "mps"


class Dtype(StrEnum):
    """Floating type of the training."""

    float64 = "float64"
    float32 = "float32"


class Method(StrEnum):
    """How to reach the margin."""

    gradient = "gradient"
    ascent = "ascent"
    finish = "finish"
    exact = "exact"


def option(name: str, text: str, **more: Any) -> Any:  # noqa: ANN401
    """Return an option of a verb with its help."""
    return typer.Option(name, help=text, **more)


def setting_option(name: str, kind: type[Any], field: str, more: str = "", **options: Any) -> Any:  # noqa: ANN401
    """Return an option that is a setting: its help and least value come from the declaration."""
    row = setting_of(kind, field)
    if row.low is not None and not row.open_low and row.multiple is None:
        options["min"] = int(row.low) if row.kind == "whole" else row.low
    return option(name, f"{row.help}{more}", **options)


LAYERS = " Such as 100 or 100,100."
WIDTHS = ",".join(map(str, TrainConfig.widths))
STEPS = TrainConfig.steps
Preset = Annotated[str, option("--preset", f"Points to draw: {', '.join(PRESETS)}.")]
Count = Annotated[int | None, option("--n", "Number of points.", min=1)]
Noise = Annotated[float | None, option("--noise", "Jitter of the points.", min=0)]
Seed = Annotated[
    int, option("--seed", "Of the points, the weights and the candidates.", min=0, max=MOST_SEED)
]
_SEEDS = "Of all that is drawn, such as 0-4 or 0,3,7-9."
Seeds = Annotated[str, option("--seed", _SEEDS)]
AnySeeds = Annotated[str | None, option("--seed", _SEEDS)]
File = Annotated[Path | None, typer.Argument(help="A saved run instead of a preset.")]
Data = Annotated[
    str | None,
    option("--data", "CSV with the header x1,x2,y, or a link of the page, instead of a preset."),
]
Widths = Annotated[str, setting_option("--widths", TrainConfig, "widths", LAYERS)]
Steps = Annotated[int, setting_option("--steps", TrainConfig, "steps", " Of the training.")]
How = Annotated[
    Method,
    option(
        "--method",
        "Gradient descent; ascent; finish: descent, then the best network over the cells of its "
        "neurons; or the exact solution.",
    ),
]
_DEVICE = f"{setting_of(Experiment, 'device').description}; see the page “Speed”."
Where = Annotated[Device, option("--device", _DEVICE)]
AnyWhere = Annotated[Device | None, option("--device", _DEVICE)]
Type = Annotated[Dtype, option("--dtype", "Floating type of the training.")]
AttackType = Annotated[
    Dtype | None,
    option("--dtype", "Floating type of the attack, in place of float64, where it has a choice."),
]
Json = Annotated[bool, option("--json", "Print JSON, and nothing else, on stdout.")]
Candidates = Annotated[int | None, setting_option("--m", KKTConfig, "m")]
Row = Annotated[str | None, option("--scenario", f"One of: {'; '.join(SCENARIOS)}.")]
Truth = Annotated[Path | None, option("--truth", "CSV of the points it was trained on.")]
Length = Annotated[int | None, setting_option("--steps", KKTConfig, "steps", min=1)]
AttackSteps = Annotated[int | None, setting_option("--attack-steps", KKTConfig, "steps", min=1)]
Margin = Annotated[float | None, option("--margin", "Smallest y Phi(x), if known.")]
Which = Annotated[str, option("--attack", f"One of: {', '.join(ROSTER)}.")]
Starts = Annotated[int, setting_option("--starts", Experiment, "starts")]
TrainSet = Annotated[
    list[str] | None,
    option("--train-set", "A setting of the training, such as all_biases=True; see `settings`."),
]
Set = Annotated[
    list[str] | None, option("--set", "A setting of the attack, such as lr_x=0.01; see `settings`.")
]


def guard(command: Callable[P, None]) -> Callable[P, None]:
    """Print an error as one line on stderr, never as a traceback."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except BrokenPipeError:  # an OSError, but no mistake of the user
            raise typer.Exit(READER_LEFT) from None
        except KeyboardInterrupt:
            fail("stopped", 130)
        except RunFailed as error:
            fail(error, 1)
        except (ValueError, OSError, ImportError) as error:
            fail(error, 2)

    return run


def fail(error: Exception | str, code: int) -> None:
    """Print an error as one line on stderr, and end with this exit code."""
    print(f"margin-explorer: {one_line(error, MOST_WORDS)}", file=sys.stderr)
    raise typer.Exit(code)


class Printer(Console):
    """Prints tables: as wide as the terminal, and in full if stdout is no terminal."""

    def __init__(self) -> None:
        super().__init__(width=None if sys.stdout.isatty() else PIPE_WIDTH)

    def on_broken_pipe(self) -> None:
        """Let `guarded` handle it; rich's own exit code means something else here."""
        raise BrokenPipeError


def watch(states: Iterable[State], total: int, label: str) -> Iterable[State]:
    """Show a progress bar on stderr, if that is a terminal."""
    return tqdm(states, total=total, desc=label, file=sys.stderr, disable=None, leave=False)


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """Yield what hears of the share done and shows it on stderr, if that is a terminal."""
    with tqdm(
        total=100, desc=label, unit="%", file=sys.stderr, disable=None, leave=False,
        bar_format="{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}]",
    ) as bar:  # fmt: skip
        yield lambda share: bar.update(100 * share - bar.n)


def points_of(
    name: str, n: int | None, noise: float | None, seed: int, data: str | None
) -> Dataset:
    """Return the points of a preset, of a CSV file or of a link, whose settings are not taken.

    Points of a file are divided by their unit (`unit_of`), and a line on stderr says so.
    """
    points = preset(name, n, noise, seed) if data is None else runs.points_at(data)
    if not points.n:
        raise ValueError(
            f"{safe_name(Path(data).name if data else name)} holds no points. Add some to it."
        )
    if (unit := unit_of(points)) != 1:
        print(f"margin-explorer: {weights.divided(unit)}", file=sys.stderr)
    return in_unit(points)


def widths_of(text: str) -> tuple[int, ...]:
    """Return hidden widths from text such as 100 or 100,100."""
    try:
        return tuple(int(w) for w in text.split(","))
    except ValueError as error:
        raise ValueError(
            f"--widths takes numbers such as 100,100; got {safe_name(repr(text))}"
        ) from error


def train_config(
    widths: str, steps: int, method: Method, settings: list[str] | None = None
) -> TrainConfig:
    """Return settings of a training from the command line, then --train-set NAME=VALUE."""
    sizes = widths_of(widths)
    kind = "ascent" if method is Method.ascent else "gradient"
    given = assignments(TrainConfig, settings, "the training")
    return TrainConfig(**{"widths": sizes, "steps": steps, "method": kind, **given})


def train_network(
    points: Dataset, config: TrainConfig, seed: int, method: Method,
    device: Device = Device.cpu, dtype: Dtype = Dtype.float64,
) -> Trained:  # fmt: skip
    """Train on a device. DeviceError where this machine does not have it, or it is too small."""
    return runs.train(
        points, config, seed, exact=method is Method.exact, finish=method is Method.finish,
        device=device.value, dtype=getattr(torch, dtype.value), watch=watch,
    )  # fmt: skip


def open_or_train(
    file: Path | None, preset: str, n: int | None, noise: float | None, seed: int,
    data: str | None, widths: str, steps: int, method: Method, device: Device,
) -> tuple[Dataset, Network]:  # fmt: skip
    """Points and weights (float64) of a saved run, or without one of a network trained for this."""
    if file is None:
        points = points_of(preset, n, noise, seed, data)
        config = train_config(widths, steps, method)
        return points, train_network(points, config, seed, method, device).net
    return runs.points_and_weights(file)


def show_result(
    as_json: bool, content: dict[str, Any], title: str, rows: list[tuple[str, str]]
) -> None:
    """Print JSON alone, or a table."""
    if as_json:
        content = {"version": __version__, **content}
        print(json.dumps(report.jsonable(content), indent=1, allow_nan=False))
        return
    table = Table(title=title, show_header=False)
    for row in rows:
        table.add_row(row[0].replace("_", " "), *row[1:])
    Printer().print(table)


def attack_config(name: str, settings: list[str] | None, **given: Any) -> AttackConfig:  # noqa: ANN401
    """Return settings of the attack `name`: defaults, the options given, then --set NAME=VALUE.

    Raises:
        ValueError: for an unknown attack or setting, or a value that it refuses.
    """
    kind = by_key(name).config
    chosen = {key: value for key, value in given.items() if value is not None}
    return config_of(kind, chosen | assignments(kind, settings, name), name)


def assignments(kind: type[Any], settings: list[str] | None, who: str) -> dict[str, Any]:
    """Return values by name from NAME=VALUE, each read as this class of settings declares it.

    Raises:
        ValueError: for an unknown setting of `who`, or a text that is not a value of it.
    """
    chosen: dict[str, Any] = {}
    for pair in settings or []:
        key, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(
                f"--set takes NAME=VALUE, such as lr_x=0.01; got {safe_name(repr(pair))}"
            )
        chosen[key] = value_of(setting_of(kind, key, who), text)
    return chosen
