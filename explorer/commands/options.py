"""The options of the verbs: groups of them, and those that are settings of a class.

A verb takes a group as one argument; `expand_groups` makes an option of each of its fields:

    @expand_groups
    def train(points: Points = Points(), training: TrainingOptions = TrainingOptions()) -> None: ...

A group is a frozen dataclass below `OptionGroup`, whose fields are `Annotated` with an option, or
a class of settings, `Annotated` with `fields`, which says which of them are options. The value
after "=" gives the defaults of the options.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import torch
import typer

from explorer.commands.base import assignments, watch
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.data import PRESETS, Dataset, in_unit, preset, unit_of
from explorer.engine.files import safe_name
from explorer.engine.network import Network
from explorer.engine.roster import ROSTER
from explorer.engine.settings import Setting, setting_of
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.research import runs
from explorer.research.runs import Trained
from explorer.research.scenarios import SCENARIOS
from explorer.research.sweep.experiment import Experiment
from explorer.research.words import weights

MOST_SEED = 2**63 - 1  # what a generator takes
KEYWORD = inspect.Parameter.KEYWORD_ONLY
TYPES: Mapping[str, type] = {"real": float, "whole": int, "flag": bool, "word": str, "wholes": str}


class OptionGroup:
    """Options that go together."""


@dataclasses.dataclass(frozen=True)
class Fields:
    """Which settings of a class are options of a verb: "--name", or an option with its own help."""

    named: Mapping[str, Any]


def fields(*names: str, **renamed: Any) -> Fields:  # noqa: ANN401 - a name, or an option
    """Return which settings are options: `names` as they are, the others as FIELD="--option".

    An option that is given, FIELD=option("--option", help), has its own help and bounds.
    """
    return Fields({name: f"--{name.replace('_', '-')}" for name in names} | renamed)


def option(name: str, text: str, **more: Any) -> Any:  # noqa: ANN401
    """Return an option of a verb with its help."""
    return typer.Option(name, help=text, **more)


def setting_option(name: str, kind: type[Any], field: str, more: str = "", **options: Any) -> Any:  # noqa: ANN401
    """Return an option that is a setting: its help and least value come from the declaration."""
    row = setting_of(kind, field)
    if row.low is not None and not row.open_low and row.multiple is None:
        options["min"] = int(row.low) if row.kind == "whole" else row.low
    return option(name, f"{row.help}{more}", **options)


def numbers_of(text: str, name: str = "--widths") -> tuple[int, ...]:
    """Return whole numbers, such as hidden widths, from text such as 100 or 100,100."""
    try:
        return tuple(int(w) for w in text.split(","))
    except ValueError as error:
        raise ValueError(
            f"{name} takes numbers such as 100,100; got {safe_name(repr(text))}"
        ) from error


# --- one argument of a verb as several options -----------------------------------------------
Make = Callable[[Mapping[str, Any]], Any]  # the value of an argument, from those of the options


def expand_groups(verb: Callable[..., None]) -> Callable[..., None]:
    """Return the verb with one argument for each option of its groups, as typer reads it."""
    hints = get_type_hints(verb, include_extras=True)
    made: dict[str, Make] = {}
    options: list[inspect.Parameter] = []
    for name, given in inspect.signature(verb).parameters.items():
        parts, made[name] = _parts(name, hints[name], given.default)
        options += parts

    @wraps(verb)
    def run(**values: Any) -> None:  # noqa: ANN401
        verb(**{name: make(values) for name, make in made.items()})

    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in options}
    return run


def _parts(name: str, hint: Any, default: Any) -> tuple[list[inspect.Parameter], Make]:  # noqa: ANN401
    """Return the options of one argument of a verb, and how its value is made of theirs."""
    kind, *beside = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if isinstance(kind, type) and issubclass(kind, OptionGroup):
        hints = get_type_hints(kind, include_extras=True)
        found = {
            each.name: _parts(each.name, hints[each.name], getattr(default, each.name))
            for each in dataclasses.fields(kind)  # type: ignore[arg-type]
        }
        parts = [part for some, _ in found.values() for part in some]
        return parts, lambda values: kind(**{k: make(values) for k, (_, make) in found.items()})
    if beside and isinstance(beside[0], Fields):
        rows = [(setting_of(kind, field), shown) for field, shown in beside[0].named.items()]
        parts = [_part(kind, row, shown, getattr(default, row.name)) for row, shown in rows]
        taken = {part.name: row for part, (row, _) in zip(parts, rows, strict=True)}
        return parts, lambda values: dataclasses.replace(
            default, **{row.name: _value(name, row, values[name]) for name, row in taken.items()}
        )
    return [
        inspect.Parameter(name, KEYWORD, default=default, annotation=hint)
    ], lambda values: values[name]


def _part(kind: type[Any], row: Setting, shown: Any, default: Any) -> inspect.Parameter:  # noqa: ANN401
    """Return a setting as an option."""
    if isinstance(shown, str):
        shown = setting_option(shown, kind, row.name)
    name = shown.default.lstrip("-").partition("/")[0].replace("-", "_")
    taken: Any = TYPES.get(row.kind, str)
    if row.kind == "wholes":
        default = ",".join(map(str, default))
    if row.choices and row.kind != "flag":
        taken = StrEnum(name, {value: value for _, value in row.choices})  # type: ignore[misc, no-redef]
        default = taken(default)
    taken = taken | None if row.optional else taken
    return inspect.Parameter(name, KEYWORD, default=default, annotation=Annotated[taken, shown])


def _value(name: str, row: Setting, given: Any) -> Any:  # noqa: ANN401
    """Return the value of a setting that stands on the command line."""
    if row.kind == "wholes":
        return numbers_of(given, f"--{name}")
    return given.value if isinstance(given, StrEnum) else given


# --- options of many verbs -------------------------------------------------------------------
Device = StrEnum("Device", ["cpu", "cuda", "mps"])  # where to train and to attack
Dtype = StrEnum("Dtype", ["float64", "float32"])  # floating type of the training
Method = StrEnum("Method", ["gradient", "ascent", "finish", "exact"])  # to reach the margin
LAYERS = " Such as 100 or 100,100."
WIDTHS = ",".join(map(str, TrainConfig.widths))
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
    option(
        "--dtype",
        "Floating type of the attack, where it has a choice. Left away: float32 of images, else "
        "float64.",
    ),
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


@dataclasses.dataclass(frozen=True)
class PointSource(OptionGroup):
    """Where points come from: a preset, a file or a link."""

    preset: Preset = Experiment.preset
    n: Count = None
    noise: Noise = None
    data: Data = None


@dataclasses.dataclass(frozen=True)
class Points(PointSource):
    """Points, and the seed of all that is drawn."""

    seed: Seed = 0

    def draw(self) -> Dataset:
        """Return the points; of a link its settings are not taken.

        Points of a file are divided by their unit (`unit_of`), and a line on stderr says so.
        """
        points = self.preset_points() if self.data is None else runs.points_at(self.data)
        if not points.n:
            name = safe_name(Path(self.data).name if self.data else self.preset)
            raise ValueError(f"{name} holds no points. Add some to it.")
        if (unit := unit_of(points)) != 1:
            print(f"margin-explorer: {weights.unit_note(unit)}", file=sys.stderr)
        return in_unit(points)

    def preset_points(self) -> Dataset:
        """Return the points of the preset."""
        return preset(self.preset, self.n, self.noise, self.seed)


@dataclasses.dataclass(frozen=True)
class TrainingOptions(OptionGroup):
    """How a network is trained."""

    widths: Widths = WIDTHS
    steps: Steps = TrainConfig.steps
    method: How = Method.gradient

    def run_on(
        self,
        points: Dataset,
        seed: int,
        settings: list[str] | None = None,
        **attack: Any,  # noqa: ANN401
    ) -> Run:
        """Return the run to make of these points, with the settings of --train-set NAME=VALUE.

        `attack`: fields of `Run` on the attack, where there is one.
        """
        kind = "ascent" if self.method is Method.ascent else "gradient"
        said = {"widths": numbers_of(self.widths), "steps": self.steps, "method": kind}
        config = TrainConfig(**{**said, **assignments(TrainConfig, settings, "the training")})
        return Run(
            points, config, seed=seed, exact=self.method is Method.exact,
            finish=0 if self.method is Method.finish else None, **attack,
        )  # fmt: skip


def train(
    run: Run, device: Device = Device.cpu, dtype: Dtype = Dtype.float64, separated: bool = True
) -> Trained:
    """Train on a device. DeviceError where there is no such one here, or it is too small.

    RunFailed where it has to be `separated` and is not.
    """
    kind = getattr(torch, dtype.value)
    return runs.train(run, device=device.value, dtype=kind, watch=watch, separated=separated)


@dataclasses.dataclass(frozen=True)
class Weights(OptionGroup):
    """A saved run, or without one a network that is trained for this."""

    file: File = None
    points: Points = Points("moons")
    training: TrainingOptions = TrainingOptions(method=Method.exact)
    device: Where = Device.cpu

    @property
    def trained(self) -> TrainConfig | None:
        """Return how the weights of a saved run were trained; None without one."""
        run = None if self.file is None else runs.open_run(self.file)[0]
        return None if run is None else run.train_config

    def open(self) -> tuple[Dataset, Network]:
        """Return points and weights (float64)."""
        if self.file is not None:
            return runs.points_and_weights(self.file)
        done = train(self.training.run_on(self.points.draw(), self.points.seed), self.device)
        return done.data, done.net
