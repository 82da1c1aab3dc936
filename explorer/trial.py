"""One row of a sweep: which points, which training, which defence, which attack; and its run.

A row is plain data, so that it can be sent to another process or machine, and everything random in
it comes from its seeds. What a run gives back is plain data too: it is a line of JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field, is_dataclass, replace
from functools import lru_cache
from itertools import product
from time import perf_counter
from typing import Annotated, Any, Literal

import torch

from explorer import headless
from explorer.bout import Refused, Ring, bout, flipped, otherwise
from explorer.engine.attacks.target import Target
from explorer.engine.controls import control_sets
from explorer.engine.data import Dataset, preset
from explorer.engine.roster import ROSTER
from explorer.engine.settings import config_of, setting, settings
from explorer.engine.training import TrainConfig, TrainState
from explorer.headless import Trained

OWN = ("widths", "steps", "method", "weight_decay")  # of a row, though settings of a training
KEPT_NETWORKS = 4  # per worker; arbitrary: attacks on one network follow each other
KEY_LENGTH = 16  # hex digits: two of a million rows agree by chance once in 10^7 sweeps


@settings
class Trial:
    """A configuration of a sweep. Numbers stay as they are given: a row is named by them."""

    # fmt: off
    preset: Annotated[str, setting("Points to draw")] = "alternating-circle"
    n: Annotated[int | None, setting("Number of points; None for the preset's own")] = None
    noise: Annotated[int | float | None, setting(
        "Jitter of the points; None for the preset's own",
    )] = None
    seed: Annotated[int, setting(
        "Of points, first weights, flipped labels and first candidates",
    )] = 0
    data_seed: Annotated[int | None, setting("Of the points alone; None takes the seed")] = None
    widths: Annotated[tuple[int, ...], setting(
        "Neurons in each hidden layer", strict=False, unit="neurons",
    )] = TrainConfig.widths
    steps: Annotated[int, setting("Planned training steps")] = TrainConfig.steps
    method: Annotated[Literal["gradient", "ascent", "exact"], setting(
        "Gradient descent, normalised ascent, or the exact solution without training",
    )] = "gradient"
    train: Annotated[Mapping[str, Any], setting(
        "Other settings of the training, by name",
    )] = field(default_factory=dict)
    early_stop: Annotated[int | None, setting(
        "A defence: training ends so many steps after it first separates the points", ge=0,
    )] = None
    weight_decay: Annotated[int | float, setting(
        "A defence: mu of mean loss + mu/2 |theta|^2",
    )] = 0.0
    label_noise: Annotated[int | float, setting(
        "A defence: share of labels flipped before training", ge=0, lt=1,
    )] = 0.0
    attack: Annotated[str, setting("Key of the attack; an empty word trains alone")] = "kkt"
    attack_config: Annotated[Mapping[str, Any], setting(
        "Settings of the attack other than its defaults, by name",
    )] = field(default_factory=dict)
    determine: Annotated[bool, setting(
        "Whether to say which points the weights determine",
    )] = False
    # fmt: on

    def __post_init__(self) -> None:
        """Refuse an attack that there is not."""
        if self.attack and self.attack not in ROSTER:
            raise ValueError(f"no attack {self.attack!r}; there are: {', '.join(ROSTER)}")

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Trial:
        """From a mapping. ValueError with the fields there are, for an unknown one."""
        widths = row.get("widths")
        one = isinstance(widths, int)  # a table names the width of one layer as a number
        return config_of(cls, {**row, "widths": (widths,)} if one else row, "a row")


def key_of(row: Any) -> str:  # noqa: ANN401 - a frozen dataclass of plain data
    """The name of a configuration: the same on every machine, another for any other value."""
    if not is_dataclass(row) or isinstance(row, type):
        raise TypeError(f"a row must be a dataclass or a mapping; got {type(row).__name__}")
    try:
        text = json.dumps(asdict(row), sort_keys=True, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"a row is made of words, finite numbers, and lists and tables of them ({error}); "
            f"got {row}"
        ) from error
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]


def trials(table: Mapping[str, Any]) -> Iterator[Trial]:
    """Every combination of a table: a list is an axis, anything else is the same in all rows.

    `widths` takes a list of widths or of lists of widths. The settings in `train` and
    `attack_config` may be lists too. Attacks vary fastest, so that they meet the same network.

    Raises:
        ValueError: for a field that there is not, a value of a wrong type, or an empty axis.
    """
    for k in ("train", "attack_config"):
        if not isinstance(table.get(k, {}), Mapping):
            raise ValueError(f"{k} must be settings by name, such as {k}.steps; got {table[k]!r}")
    flat = [(k, v) for k, v in table.items() if k not in ("train", "attack_config", "attack")]
    nested = [((k, n), v) for k in ("train", "attack_config") for n, v in table.get(k, {}).items()]
    axes: list[tuple[Any, Any]] = [*flat, *nested]
    if "attack" in table:
        axes.append(("attack", table["attack"]))
    names = [name for name, _ in axes]
    for name, values in axes:
        if values == []:
            raise ValueError(
                f"the axis {'.'.join(name) if isinstance(name, tuple) else name} is empty. Give it "
                "a value, or leave it away."
            )
    for values in product(*(v if isinstance(v, list) else [v] for _, v in axes)):
        row: dict[str, Any] = {}
        for name, value in zip(names, values, strict=True):
            if isinstance(name, tuple):
                row.setdefault(name[0], {})[name[1]] = value
            else:
                row[name] = value
        yield Trial.of(row)


def run_trial(row: Trial) -> dict[str, Any]:
    """Train, attack and judge. -> the result of the row; see `bout`.

    Raises:
        Refused: where the attack or a defence does not fit.
        RunFailed: where training or attack fails.
    """
    _check_defences(row)
    begun = perf_counter()
    text = json.dumps(asdict(replace(row, attack="", attack_config={})), sort_keys=True)
    ring = _ring(text)
    trained_s = perf_counter() - begun
    result: dict[str, Any] = {
        "d": ring.truth.d, "n": ring.truth.n, "gamma_bar": ring.gamma_bar,
        "train_residual": None if ring.certificate is None else ring.certificate.residual,
    }  # fmt: skip
    seconds = {"train": trained_s}
    if row.attack:
        begun = perf_counter()
        result |= bout(ring, row.attack, row.attack_config, row.seed)
        seconds["attack"] = perf_counter() - begun
    if row.determine:
        result |= _determined(text)
    return {**result, "seconds": seconds}


def _check_defences(row: Trial) -> None:
    """Refused for a defence that the row's method would pass over."""
    given = {"early_stop": row.early_stop is not None, "weight_decay": row.weight_decay != 0}
    named = [name for name, there in given.items() if there]
    if row.method == "exact" and named:
        raise Refused(
            f"{' and '.join(named)} change a training, and method='exact' trains nothing. Take "
            "method='gradient', or leave them away."
        )


@lru_cache(maxsize=KEPT_NETWORKS)
def _ring(text: str) -> Ring:
    """The trained network of a row, with its truth and its controls."""
    row = Trial.of(json.loads(text))
    seed = row.seed if row.data_seed is None else row.data_seed
    clean = preset(row.preset, row.n, row.noise, seed)
    truth = flipped(clean, row.label_noise, row.seed)
    done = _trained(row, truth)
    drawn = control_sets(clean)
    controls = replace(
        drawn,
        sets=tuple(
            flipped(one, row.label_noise, row.seed + k) for k, one in enumerate(drawn.sets, 1)
        ),
    )
    target = Target.of(done.net, done.q_min)
    return Ring(target, truth, controls, done.certificate, done.states[-1].gamma_bar)


@lru_cache(maxsize=KEPT_NETWORKS)
def _determined(text: str) -> dict[str, Any]:
    """Which points the network of a row determines, and another set; None where unknown."""
    ring = _ring(text)
    found = otherwise(ring)
    if found is None:
        return {"determined": None, "other": None}
    other = {
        "x": found.other.x.tolist(), "y": found.other.y.tolist(),
        "truth_x": ring.truth.x.tolist(), "truth_y": ring.truth.y.tolist(),
        "sentence": found.other_sentence,
    }  # fmt: skip
    return {"determined": found.determined.tolist(), "other": other}


def _trained(row: Trial, truth: Dataset) -> Trained:
    own = [name for name in OWN if name in row.train]
    if own:
        raise ValueError(f"train.{own[0]} is a field of the row itself: say {own[0]}.")
    said = {
        "widths": row.widths, "steps": row.steps, "weight_decay": row.weight_decay,
        "method": "ascent" if row.method == "ascent" else "gradient",
    }  # fmt: skip
    config = config_of(TrainConfig, {**said, **row.train}, "train")

    def stopped(states: Iterable[TrainState], total: int, label: str) -> Iterator[TrainState]:
        left = row.early_stop
        for state in states:
            yield state
            if left is not None and (left < (row.early_stop or 0) or state.q_min > 0):
                if left == 0:
                    return
                left -= 1

    exact = row.method == "exact"
    return headless.train(truth, config, row.seed, exact=exact, watch=stopped)


def seeds_of(text: str) -> list[int]:
    """Seeds from words such as "0-4" or "0,3,7-9"; ValueError for other words, or none."""
    found: list[int] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdigit() or (dash and not high.isdigit()):
            raise ValueError(f"seeds are numbers and ranges such as 0-4 or 0,3,7-9; got {text!r}")
        if int(high or low) < int(low):
            raise ValueError(f"a range of seeds rises, such as 0-4; got {part.strip()!r}")
        found += range(int(low), int(high or low) + 1)
    return found


def plain(value: Any) -> Any:  # noqa: ANN401 - anything a run may give back
    """JSON's own types: tensors and tuples become lists, what is not finite becomes None."""
    if isinstance(value, torch.Tensor):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(v) for v in value]
    if isinstance(value, float) and value - value != 0:
        return None
    return value
