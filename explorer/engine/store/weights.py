"""The tensors of a `.pt` file: what `torch.save` writes, and nothing else.

Nothing in the file is run (`pickles`), and a tensor is taken only where the file holds its numbers.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Any

import torch
from torch import Tensor

from explorer.engine.files import MAX_BYTES, is_archive, members, reading, safe_name
from explorer.engine.network import Network
from explorer.engine.pickles import Name, Pickle
from explorer.engine.store.codec import StoreError

REMEDY = "Export the weights with torch.save(model.state_dict(), 'weights.pt') or as .safetensors."
_MAGIC = 0x1950A86A20F9469CFC6C  # what files of torch before 1.6 begin with
HOLDERS = ("state_dict", "model_state_dict", "model")  # where checkpoints keep the weights
_DTYPES = {
    "FloatStorage": torch.float32, "DoubleStorage": torch.float64, "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16, "LongStorage": torch.int64, "IntStorage": torch.int32,
    "ShortStorage": torch.int16, "CharStorage": torch.int8, "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}  # fmt: skip


@dataclass(frozen=True)
class _Storage:
    """Numbers that the file promises to hold under `key`."""

    key: str
    dtype: torch.dtype


@dataclass(frozen=True)
class _Stored:
    """A tensor of the file, whose numbers were not looked at yet."""

    storage: _Storage
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]


def state_in(data: bytes) -> dict[str, object]:
    """Return the state_dict of a `.pt` file: tensors by name, and what else has a name there.

    The tensors share the memory of the file's numbers, and are no larger than these.

    Raises:
        StoreError: for a file without one, a damaged one, or one that holds more than weights.
    """
    with reading("the file", REMEDY, StoreError):
        content, records = _new(data) if is_archive(data) else _old(data)
        for holder in HOLDERS:
            if isinstance(content, dict) and isinstance(content.get(holder), dict):
                content = content[holder]
        if not isinstance(content, dict) or not all(isinstance(k, str) for k in content):
            raise StoreError(f"expected a state_dict; got a {type(content).__name__}. {REMEDY}")
        held = _Numbers(records)
        return {k: held.of(v) if isinstance(v, _Stored) else v for k, v in content.items()}


class _Numbers:
    """The numbers of a file, and tensors made of them."""

    def __init__(self, records: dict[str, bytes]) -> None:
        self._records = records
        self._taken: dict[tuple[str, torch.dtype], Tensor] = {}

    def of(self, stored: _Stored) -> Tensor:
        """Return the tensor. StoreError where the file holds fewer numbers than it names."""
        storage, count = stored.storage, math.prod(stored.size)
        ends = zip(stored.size, stored.stride, strict=True)
        reach = stored.offset + sum((size - 1) * stride for size, stride in ends) + 1
        record = self._records.get(storage.key, b"")
        there = len(record) // storage.dtype.itemsize
        if not 0 < count <= there or reach > there:
            raise StoreError(
                f"a tensor {stored.size} needs {count} numbers; the file holds {there} for it. "
                f"{REMEDY}"
            )
        place = storage.key, storage.dtype
        if place not in self._taken:
            whole = there * storage.dtype.itemsize
            self._taken[place] = torch.frombuffer(bytearray(record[:whole]), dtype=storage.dtype)
        return self._taken[place].as_strided(stored.size, stored.stride, stored.offset)


def _new(data: bytes) -> tuple[object, dict[str, bytes]]:
    """Return the value and the numbers of a file as torch writes it today: an archive."""
    found = members(data, MAX_BYTES, StoreError, REMEDY)
    places = [name for name in found if name.endswith("/data.pkl") and name.count("/") == 1]
    if len(places) != 1:
        raise StoreError(f"no PyTorch file: the archive has no data.pkl. {REMEDY}")
    folder = places[0].removesuffix("data.pkl")
    if found.get(f"{folder}byteorder", b"little") != b"little":
        raise StoreError(f"the numbers of the file stand in big-endian order. {REMEDY}")
    start = f"{folder}data/"
    records = {k.removeprefix(start): v for k, v in found.items() if k.startswith(start)}
    return _Weights().value(io.BytesIO(found[places[0]])), records


def _old(data: bytes) -> tuple[object, dict[str, bytes]]:
    """Return those of a file of torch before 1.6: five pickles, then counted numbers."""
    stream, reader = io.BytesIO(data), _Weights()
    if data[:1] != b"\x80":
        raise StoreError(f"no PyTorch file, and no file of Margin Explorer. {REMEDY}")
    first = reader.value(stream)
    if first != _MAGIC:
        raise StoreError(f"expected a state_dict; got a bare {type(first).__name__}. {REMEDY}")
    _, _, content, keys = (reader.value(stream) for _ in range(4))
    records = {}
    for key in keys if isinstance(keys, list) else []:
        count = int.from_bytes(stream.read(8), "little")
        size = count * reader.storages[key].dtype.itemsize
        if size > len(data) - stream.tell():
            raise StoreError(f"the file is cut short: {count} numbers are not there. {REMEDY}")
        records[key] = stream.read(size)
    return content, records


class _Weights(Pickle):
    """The calls that torch writes for tensors, and the containers around them.

    Attributes:
        storages: those that the file refers to, by their keys.
    """

    kind = StoreError
    remedy = REMEDY

    def __init__(self) -> None:
        self.storages: dict[str, _Storage] = {}

    def call(self, name: str, given: tuple[Any, ...]) -> object:
        """Return tables, tensors and what goes with them."""
        if name == "collections.OrderedDict" and not given:
            return {}
        if name == "torch._utils._rebuild_tensor_v2" and len(given) in (6, 7):
            return self._tensor(*given[:4])
        if name == "torch._utils._rebuild_parameter" and given:
            return given[0]
        if name == "torch.Size" and len(given) == 1:
            return given[0]
        if name == "torch.device":
            return None
        self.refuse(name)

    def _tensor(self, storage: object, offset: Any, size: Any, stride: Any) -> _Stored:  # noqa: ANN401
        shaped = isinstance(size, tuple) and isinstance(stride, tuple) and len(size) == len(stride)
        if not shaped or not isinstance(storage, _Storage):
            self.refuse_damage("a tensor without numbers or shape")
        places = (offset, *size, *stride)
        if not all(isinstance(v, int) and 0 <= v < 2**62 for v in places):
            self.refuse_damage("a tensor of negative size")
        return _Stored(storage, offset, size, stride)

    def reference(self, given: object) -> object:
        """Return numbers of a known kind under a key."""
        if not (isinstance(given, tuple) and len(given) in (5, 6) and given[0] == "storage"):
            self.refuse("a reference to something outside")
        _, kind, key, _, _, *view = given
        dtype = _DTYPES.get(kind.words.removeprefix("torch.")) if isinstance(kind, Name) else None
        if dtype is None or not isinstance(key, str) or view not in ([], [None]):
            self.refuse(f"numbers of the kind {kind.words if isinstance(kind, Name) else kind}")
        return self.storages.setdefault(key, _Storage(key, dtype))


# --- Weights that others trained: the state_dict of a plain PyTorch MLP as a Network ------------
# Nothing in a file is ever executed (`store_pickle`), and the kind and the size of every tensor are
# checked before a number of it is read.

MOST_NUMBERS = MAX_BYTES // 16  # arbitrary: a page takes some 100 bytes a weight beside the file
MOST_TENSORS = 4096  # arbitrary: a page takes a millisecond a layer
_KEPT_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_MOST_LAYERS = 6  # arbitrary: for more, trying every order takes too long


def from_state_dict(state: Mapping[str, object], ordered: bool = True) -> Network:
    """Return the network whose layers are the pairs NAME.weight (k, k'), NAME.bias (k,) of `state`.

    Any names do. Layers follow one another in the order of `state` if it is `ordered`, in that of
    the numbers in their names, or in the only order in which their shapes chain.
    """
    if len(state) > MOST_TENSORS:
        raise StoreError(f"{len(state)} tensors; at most {MOST_TENSORS} are read. {REMEDY}")
    state = {key: _here(value) for key, value in state.items()}
    layers: dict[str, dict[str, Tensor]] = {}
    for key, value in state.items():
        name, _, part = key.rpartition(".")
        wanted = {"weight": 2, "bias": 1}.get(part)
        if not isinstance(value, Tensor) or wanted is None or value.ndim != wanted:
            shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise StoreError(
                f"expected NAME.weight (k, k') and NAME.bias (k,) of linear layers only; "
                f"got {safe_name(key)} {shape}. Only fully connected ReLU networks can be imported."
            )
        layers.setdefault(name, {})[part] = value
    lonely = [name for name, parts in layers.items() if "weight" not in parts]
    if lonely or not layers:
        raise StoreError(
            f"no weight for the biases {safe_name(lonely)}" if lonely else "no layers in the file"
        )
    _check_numbers({key: value for key, value in state.items() if isinstance(value, Tensor)})
    names = _layer_names(layers, ordered)
    dtype = torch.promote_types(layers[names[0]]["weight"].dtype, torch.float32)

    def own_copy(value: Tensor) -> Tensor:
        return value.detach().to(dtype).clone(memory_format=torch.contiguous_format)

    weights = tuple(own_copy(layers[name]["weight"]) for name in names)
    biases = tuple(
        own_copy(layers[name]["bias"]) if "bias" in layers[name] else None for name in names
    )
    try:
        return Network(weights, biases, assumed_relu=True)  # a state_dict does not say
    except ValueError as error:
        raise StoreError(f"{error}. Check the shapes of the layers.") from error


def _here(value: object) -> object:
    """Return a tensor of another device on the CPU; anything else as it is."""
    away = isinstance(value, Tensor) and value.device.type not in ("cpu", "meta")
    return value.detach().cpu() if isinstance(value, Tensor) and away else value


def _check_numbers(tensors: Mapping[str, Tensor]) -> None:
    """Raise StoreError for tensors of no plain, finite numbers, each with its own place.

    The kind and the size of all come first: a tensor of steps of 0 is small until it is read.
    """
    for key, value in tensors.items():
        plain = value.layout is torch.strided and value.device.type == "cpu"
        if not plain or value.is_nested or value.is_quantized or value.dtype not in _KEPT_DTYPES:
            raise StoreError(
                f"{safe_name(key)} must hold floating numbers of 16, 32 or 64 bits, dense and on "
                f"the CPU; got {value.dtype}, {value.layout} on {value.device}. {REMEDY}"
            )
        held = value.untyped_storage().nbytes()
        if not 0 < value.numel() * value.element_size() <= held:
            raise StoreError(
                f"{safe_name(key)} {tuple(value.shape)} names {value.numel()} numbers; the file "
                f"holds {held // value.element_size()}. {REMEDY}"
            )
    count = sum(value.numel() for value in tensors.values())
    if count > MOST_NUMBERS:
        raise StoreError(
            f"the network has {count} weights; at most {MOST_NUMBERS} are read. "
            "Import a smaller one."
        )
    for key, value in tensors.items():
        if not bool(torch.isfinite(value).all()):
            raise StoreError(f"{safe_name(key)} must hold finite floating numbers; got nan or inf.")


def _layer_names(layers: Mapping[str, Mapping[str, Tensor]], ordered: bool) -> Sequence[str]:
    def chains(names: Sequence[str]) -> bool:
        shapes = [layers[name]["weight"].shape for name in names]
        return all(a[0] == b[1] for a, b in pairwise(shapes))

    given, counted = list(layers), sorted(layers, key=_numbers)
    # An order that a file does not keep, or an alphabet, says nothing about layers.
    numbered = all(re.search(r"\d", name) for name in given)
    for names, told in ((given, ordered), (counted, numbered)):
        if told and chains(names):
            return names
    fitting = []
    if len(layers) <= _MOST_LAYERS:
        fitting = [names for names in permutations(given) if chains(names)]
    if len(fitting) == 1:
        return fitting[0]
    shapes = ", ".join(f"{safe_name(n)} {tuple(layers[n]['weight'].shape)}" for n in counted)
    raise StoreError(
        f"the layers do not follow one another in {'one' if fitting else 'any'} order: {shapes}. "
        "Number the layers in their names."
    )


def _numbers(name: str) -> list[tuple[int, str]]:
    """Return text and numbers apart, so that layer 10 comes after layer 2."""
    pieces = re.split(r"(\d+)", name)
    return [(int(p), "") if p.isdigit() else (-1, p) for p in pieces]
