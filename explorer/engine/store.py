"""A run in one file: safetensors for the numbers, JSON in its metadata for the rest.

    Run --dump--> bytes --load--> Run, the same numbers bit for bit

and weights of others come in as a Network. A file is data: no pickle is executed, sizes and fields
are checked before anything is built, and whatever is wrong is said in one StoreError.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType

import numpy as np
import scipy
import torch
from torch import Tensor

from explorer.engine.data import Dataset
from explorer.engine.network import Network
from explorer.engine.roster import AttackConfig, AttackState, by_key
from explorer.engine.store_codec import StoreError, decode, encode
from explorer.engine.store_weights import MAX_BYTES, from_pickle, from_state_dict
from explorer.engine.training import TrainConfig, TrainState

__all__ = [
    "MAX_BYTES",
    "Run",
    "StoreError",
    "dump",
    "import_weights",
    "load",
    "load_run",
    "open_bytes",
    "save_run",
    "thinned",
]

FORMAT = "margin-explorer run"
VERSION = "1"  # raise it when an old file can no longer be read


def _versions() -> dict[str, str]:
    try:
        own = metadata.version("margin-explorer")
    except metadata.PackageNotFoundError:
        own = "not installed"
    return {
        "margin-explorer": own,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


@dataclass(frozen=True, eq=False)
class Run:
    """All that a page or a command knows: enough to show it again and to go on.

    Attributes:
        dataset: the truth.
        train_config: how it was trained.
        train_states: kept training states, oldest first.
        attack_config: how the weights were attacked, or None.
        attack_states: kept attack states, oldest first.
        seed: of the generators of the run.
        mix: (mix_truth, mix_data) of the start of the attack, or None for noise.
        versions: of what wrote it.
        attack_name: key of the attack in the roster.
    """

    dataset: Dataset
    train_config: TrainConfig
    train_states: tuple[TrainState, ...] = ()
    attack_config: AttackConfig | None = None
    attack_states: tuple[AttackState, ...] = ()
    seed: int = 0
    mix: tuple[float, float] | None = None
    versions: dict[str, str] = field(default_factory=_versions)
    attack_name: str = "kkt"

    def __post_init__(self) -> None:
        """Refuse unknown attacks, and states of another dimension than the points."""
        by_key(self.attack_name)
        dims = {state.net.d for state in self.train_states}
        dims |= {state.x.shape[1] for state in self.attack_states}
        if dims - {self.dataset.d}:
            raise ValueError(f"points of dimension {self.dataset.d}, but states of {sorted(dims)}")

    @property
    def net(self) -> Network | None:
        """The last weights, if any."""
        return self.train_states[-1].net if self.train_states else None


def dump(run: Run) -> bytes:
    """The run as the bytes of one `.safetensors` file. StoreError above `MAX_BYTES`."""
    data = _written(run)
    if len(data) > MAX_BYTES:
        raise StoreError(
            f"the run needs {len(data) / 2**20:.0f} MB; at most {MAX_BYTES // 2**20} MB are saved. "
            "Keep fewer states: `thinned(run)` drops every second one until it fits."
        )
    return data


def _written(run: Run) -> bytes:
    tensors: dict[str, Tensor] = {}
    text = json.dumps(encode(run, tensors), allow_nan=False)
    data: bytes = _safetensors().save(
        tensors, metadata={"format": FORMAT, "version": VERSION, "run": text}
    )
    return data


def load(data: bytes) -> Run:
    """The run that `dump` wrote. StoreError for anything else."""
    notes = _notes(data)
    if notes.get("format") != FORMAT:
        raise StoreError(
            "a safetensors file, but not a saved run. If it holds the state_dict of an MLP, "
            "import it as weights."
        )
    if notes.get("version") != VERSION:
        raise StoreError(
            f"the run was saved in format {notes.get('version')}; this version reads format "
            f"{VERSION}. Open it with the version of Margin Explorer that wrote it."
        )
    try:
        run: Run = decode(json.loads(notes.get("run", "")), _tensors(data), Run)
    except (json.JSONDecodeError, RecursionError) as error:
        raise StoreError(f"the description of the run is damaged ({error})") from error
    for state in run.train_states:
        if not bool(torch.isfinite(state.net.theta).all()):
            raise StoreError(f"the weights of step {state.t} are not finite; the file is damaged")
    return run


def import_weights(data: bytes) -> Network:
    """The network of a state_dict, `.safetensors` or `.pt`/`.pth`. StoreError otherwise.

    Linear layers of any names, with or without biases, ReLU in between, one output or one per
    class. Half precision becomes float32; other types stay. The file names no activation: that it
    was taken as ReLU is the network's `note`.
    """
    _check_size(len(data))
    if _is_safetensors(data):
        if _notes(data).get("format") == FORMAT:
            raise StoreError("this is a saved run, not weights alone. Open it as a run.")
        return from_state_dict(_tensors(data), ordered=False)
    return from_pickle(data)


def open_bytes(data: bytes) -> Run | Network:
    """A saved run, or else the weights of others, by what the file says it is."""
    _check_size(len(data))
    if _is_safetensors(data) and _notes(data).get("format") == FORMAT:
        return load(data)
    return import_weights(data)


def save_run(run: Run, path: str | Path) -> None:
    """Write `dump(run)` to `path`."""
    Path(path).write_bytes(dump(run))


def load_run(path: str | Path) -> Run:
    """Read `path` as `load` does; too large a file is refused before it is read."""
    return load(read_file(path))


def read_file(path: str | Path) -> bytes:
    """The bytes of a file of at most `MAX_BYTES`. StoreError where there is none to read."""
    try:
        _check_size(Path(path).stat().st_size)
        return Path(path).read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}. Check the path.") from error


def thinned(run: Run, limit: int = MAX_BYTES) -> Run:
    """The run with every second state dropped, the last ones kept, until it fits `limit` bytes."""
    while max(len(run.train_states), len(run.attack_states)) > 1 and len(_written(run)) > limit:
        # From the end: the last state is what one goes on from.
        run = replace(
            run,
            train_states=run.train_states[::-2][::-1],
            attack_states=run.attack_states[::-2][::-1],
        )
    return run


def _safetensors() -> ModuleType:
    try:
        return import_module("safetensors.torch")
    except ImportError as error:
        raise ImportError(
            "saving and loading needs safetensors: pip install margin-explorer[files]"
        ) from error


def _check_size(size: int) -> None:
    if size > MAX_BYTES:
        raise StoreError(
            f"the file has {size / 2**20:.0f} MB; at most {MAX_BYTES // 2**20} MB are read. "
            "Save fewer states or a smaller network."
        )


def _is_safetensors(data: bytes) -> bool:
    """Eight bytes of length, then a JSON object of that length."""
    return len(data) > 8 and data[8:9] == b"{"


def _notes(data: bytes) -> Mapping[str, str]:
    """The metadata of a safetensors file."""
    _check_size(len(data))
    length = int.from_bytes(data[:8], "little")
    if not _is_safetensors(data):
        raise StoreError("not a safetensors file. Expected a file saved by Margin Explorer.")
    if length > len(data) - 8:
        raise StoreError(
            f"the file is cut short: its header has {length} bytes and {len(data) - 8} are there. "
            "Copy it again."
        )
    try:
        header = json.loads(data[8 : 8 + length])
    except (ValueError, RecursionError) as error:
        raise StoreError(f"the header of the file is damaged ({error})") from error
    notes = header.get("__metadata__", {}) if isinstance(header, dict) else {}
    return notes if isinstance(notes, dict) else {}


def _tensors(data: bytes) -> dict[str, Tensor]:
    library = _safetensors()
    try:
        tensors: dict[str, Tensor] = library.load(data)
    except Exception as error:  # its own error type is not public; torch's come through too
        raise StoreError(
            f"the numbers of the file are damaged or cut short ({error}). Copy it again."
        ) from error
    return tensors
