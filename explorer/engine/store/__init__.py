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
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import torch
from torch import Tensor

from explorer.engine import files
from explorer.engine.data import Dataset
from explorer.engine.extras import library
from explorer.engine.files import MAX_BYTES as MAX_BYTES
from explorer.engine.files import check_size, reading, safe_name
from explorer.engine.network import Network
from explorer.engine.roster import DEFAULT, ROSTER, AttackConfig, AttackState, by_key
from explorer.engine.store.check import check_run, check_state
from explorer.engine.store.codec import StoreError as StoreError
from explorer.engine.store.codec import decode, encode
from explorer.engine.store.weights import REMEDY, from_state_dict, state_in
from explorer.engine.training import TrainConfig, TrainState

FORMAT = "margin-explorer run"
VERSION = "1"  # raise it when an old file can no longer be read
MOST_HEADER = 4 * 2**20  # arbitrary: as JSON it takes some hundred MB of memory, and seconds


def own_version() -> str:
    """Return the version of this package, or that it is not installed."""
    try:
        return metadata.version("margin-explorer")
    except metadata.PackageNotFoundError:
        return "not installed"


def _versions() -> dict[str, str]:
    return {
        "margin-explorer": own_version(),
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
        stage: of the page where it was left; empty where no page wrote it.
        steps: taken in training and in the attack, for a run whose states were left out.
        attack_seed: of the first candidates, where it is another one than that of the training.
        exact: whether training began at the exact maximum-margin network.
        finish: the step from which the network was trained to the end; None where it was not.
        repeatable: whether points, settings and seeds alone give these weights again.
        next_config: settings of the next run on a page, where a visitor changed them since.
        next_seed: its seed, likewise.

    Raises:
        ValueError: where states have another dimension than the points, there is no such attack, or
            a number of steps is negative.

    Example:
        >>> from explorer import Run, TrainConfig, preset
        >>> run = Run(preset("moons", n=10), TrainConfig())
        >>> run.dataset.n, run.net, run.attack_name  # nothing is trained yet
        (10, None, 'kkt')
    """

    dataset: Dataset
    train_config: TrainConfig
    train_states: tuple[TrainState, ...] = ()
    attack_config: AttackConfig | None = None
    attack_states: tuple[AttackState, ...] = ()
    seed: int = 0
    mix: tuple[float, float] | None = None
    versions: dict[str, str] = field(default_factory=_versions)
    attack_name: str = DEFAULT
    stage: str = ""
    steps: tuple[int, int] = (0, 0)
    attack_seed: int | None = None
    exact: bool = False
    finish: int | None = None
    repeatable: bool = False
    next_config: TrainConfig | None = None
    next_seed: int | None = None

    def __post_init__(self) -> None:
        """Refuse unknown attacks, and states of another dimension than the points."""
        by_key(self.attack_name)
        if min(self.steps) < 0:
            raise ValueError(f"steps must be 0 or more; got {self.steps}")
        dims = {state.net.d for state in self.train_states}
        dims |= {state.x.shape[1] for state in self.attack_states}
        if dims - {self.dataset.d}:
            raise ValueError(f"points of dimension {self.dataset.d}, but states of {sorted(dims)}")

    @property
    def net(self) -> Network | None:
        """Return the last weights, if any."""
        return self.train_states[-1].net if self.train_states else None


def dump(run: Run) -> bytes:
    """Return the run as the bytes of one `.safetensors` file.

    Args:
        run: the run.

    Returns:
        The bytes.

    Raises:
        StoreError: above `MAX_BYTES`, or for a state that is not as its class declares it, and so
            could not be opened again.
    """
    try:
        for state in run.attack_states[-1:]:
            check_state(state, run.dataset.d)
    except ValueError as error:
        raise StoreError(
            f"a {type(state).__name__} cannot be saved: {error}. Declare the sizes of its tensors "
            "at the fields, see explorer.engine.sizes."
        ) from error
    data = _bytes_of(run)
    if not _fits(data, MAX_BYTES):
        raise StoreError(
            f"the run needs {len(data) / 2**20:.0f} MB; at most {MAX_BYTES // 2**20} MB are saved, "
            f"{MOST_HEADER // 2**20} MB of them as text. "
            "Keep fewer states: `thinned_run(run)` drops every second one until it fits."
        )
    return data


def _bytes_of(run: Run) -> bytes:
    tensors: dict[str, Tensor] = {}
    text = json.dumps(encode(run, tensors), allow_nan=False)
    data: bytes = _safetensors().save(
        tensors, metadata={"format": FORMAT, "version": VERSION, "run": text}
    )
    return data


def _fits(data: bytes, limit: int) -> bool:
    """Return whether a file of a run can be read again, and has at most `limit` bytes."""
    return len(data) <= limit and int.from_bytes(data[:8], "little") <= MOST_HEADER


def load(data: bytes) -> Run:
    """Return the run that `dump` wrote.

    Args:
        data: the bytes of a file.

    Returns:
        The run, the same numbers bit for bit.

    Raises:
        StoreError: where the bytes are anything else.
    """
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
    with reading("the run", "Copy it again, or save it again.", StoreError):
        run = _run_of(json.loads(notes.get("run", "")), _tensors(data))
        check_run(run)
    return run


def _run_of(node: object, tensors: Mapping[str, Tensor]) -> Run:
    """Return the run of its description. StoreError where that is of another form."""
    kinds = _kinds(node)
    try:
        run: Run = decode(node, tensors, Run, kinds)
    except StoreError as error:
        raise StoreError(
            f"the description of the run does not fit: {error}. Copy the file again, or save it "
            "with this version."
        ) from error
    return run


def _kinds(node: object) -> dict[str, Any]:
    """Return the types of settings and states of the run's attack; StoreError without it."""
    given = node.get("fields") if isinstance(node, dict) else None
    name = given.get("attack_name", Run.attack_name) if isinstance(given, dict) else None
    if not isinstance(name, str):
        return {}
    if name not in ROSTER:
        raise StoreError(
            f"the run is of the attack {safe_name(repr(name))}, which is not installed; there are: "
            f"{', '.join(ROSTER)}. Install the package that brings it."
        )
    entry: Any = ROSTER[name]
    return {"attack_config": entry.config | None, "attack_states": tuple[entry.state, ...]}


def import_weights(data: bytes) -> Network:
    """Return the network of a state_dict, from the bytes of a `.safetensors`, `.pt` or `.pth` file.

    Linear layers of any names, with or without biases, ReLU in between, one output or one per
    class. Half precision becomes float32; other types stay. The file names no activation:
    that it was taken as ReLU stands in the network's `assumed_relu`. No pickle is executed.

    Args:
        data: the content of the file, in bytes.

    Returns:
        The network, with `assumed_relu` set.

    Raises:
        StoreError: where the file is too large, a saved run, or no such network.
        ImportError: for a `.safetensors` file, without the extra `files`.

    Example:
        >>> import io
        >>> import torch
        >>> from explorer import import_weights
        >>> file, model = io.BytesIO(), torch.nn.Linear(2, 1, bias=False)
        >>> torch.save(model.state_dict(), file)
        >>> import_weights(file.getvalue())
        Network(2-1, order 1, 1 output, float32)
    """
    check_size(len(data), MAX_BYTES, StoreError)
    with reading("the file", REMEDY, StoreError):
        if not _is_safetensors(data):
            return from_state_dict(state_in(data))
        if _notes(data).get("format") == FORMAT:
            raise StoreError("this is a saved run, not weights alone. Open it as a run.")
        return from_state_dict(_tensors(data), ordered=False)


def open_bytes(data: bytes) -> Run | Network:
    """Return a saved run, or else the weights of others, by what the file says it is."""
    check_size(len(data), MAX_BYTES, StoreError)
    if _is_safetensors(data) and _notes(data).get("format") == FORMAT:
        return load(data)
    return import_weights(data)


def save_run(run: Run, path: str | Path) -> None:
    """Write a run to a file, for `load_run` to read.

    Args:
        run: the run.
        path: where to write, `.safetensors` by custom. A file there is replaced, once the new one
            is whole.

    Raises:
        StoreError: where the run is too large, or a state of it could not be opened again.
        OSError: where the file cannot be written; one that is there stays as it was.
        ImportError: without the extra `files`.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from explorer import Run, TrainConfig, load_run, preset, save_run
        >>> with TemporaryDirectory() as folder:
        ...     save_run(Run(preset("moons", n=10), TrainConfig()), Path(folder, "run.safetensors"))
        ...     load_run(Path(folder, "run.safetensors")).dataset.source.preset
        'moons'
    """
    files.write_file(path, dump(run))


def load_run(path: str | Path) -> Run:
    """Read a run that `save_run` wrote.

    Args:
        path: the file. One that is too large is refused before it is read.

    Returns:
        The run, the same numbers bit for bit.

    Raises:
        StoreError: where there is no such file, or it holds no saved run.
        ImportError: without the extra `files`.

    Example:
        >>> from explorer import load_run
        >>> load_run("no-such-run.safetensors")
        Traceback (most recent call last):
            ...
        explorer.engine.store.codec.StoreError: ...
    """
    return load(read_file(path))


def read_file(path: str | Path) -> bytes:
    """Return the bytes of a file of at most `MAX_BYTES`. StoreError where there is none to read."""
    return files.read_file(path, MAX_BYTES, StoreError)


def thinned_run(run: Run, limit: int = MAX_BYTES) -> Run:
    """Return the run without every second state, again and again, until it fits `limit` bytes.

    The last states are kept.
    """
    while max(len(run.train_states), len(run.attack_states)) > 1:
        if _fits(_bytes_of(run), limit):
            break
        # From the end: the last state is what one goes on from.
        run = replace(
            run,
            train_states=run.train_states[::-2][::-1],
            attack_states=run.attack_states[::-2][::-1],
        )
    return run


def _safetensors() -> Any:  # noqa: ANN401 - a module
    return library("safetensors.torch", "saving and loading needs safetensors", "files")


def _is_safetensors(data: bytes) -> bool:
    """Return whether there are eight bytes of length, then a JSON object."""
    return len(data) > 8 and data[8:9] == b"{"


def _notes(data: bytes) -> Mapping[str, str]:
    """Return the metadata of a safetensors file."""
    check_size(len(data), MAX_BYTES, StoreError)
    if not _is_safetensors(data):
        raise StoreError("not a safetensors file. Expected a file saved by Margin Explorer.")
    length = int.from_bytes(data[:8], "little")
    if length > len(data) - 8:
        raise StoreError(
            f"the file is cut short: its header has {length} bytes and {len(data) - 8} are there. "
            "Copy it again."
        )
    if length > MOST_HEADER:
        raise StoreError(
            f"the header of the file has {length / 2**20:.0f} MB; at most "
            f"{MOST_HEADER // 2**20} MB are read. Save fewer states."
        )
    with reading("the header of the file", "Copy it again.", StoreError):
        header = json.loads(data[8 : 8 + length])
    notes = header.get("__metadata__", {}) if isinstance(header, dict) else {}
    if not isinstance(notes, dict) or not all(isinstance(v, str) for v in notes.values()):
        raise StoreError("the notes in the header of the file are no words. Copy it again.")
    return notes


def _tensors(data: bytes) -> dict[str, Tensor]:
    library = _safetensors()
    with reading("the block of numbers", "Copy it again.", StoreError):
        tensors: dict[str, Tensor] = library.load(data)
    return tensors
