"""Weights that others trained: the state_dict of a plain PyTorch MLP as a Network.

Nothing in a file is ever executed (`store_pickle`), and the kind and the size of every tensor are
checked before a number of it is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise, permutations

import torch
from torch import Tensor

from explorer.engine.files import MAX_BYTES, named
from explorer.engine.network import Network
from explorer.engine.store_codec import StoreError
from explorer.engine.store_pickle import REMEDY

MOST_NUMBERS = MAX_BYTES // 16  # arbitrary: a page takes some 100 bytes a weight beside the file
MOST_TENSORS = 4096  # arbitrary: a page takes a millisecond a layer
_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_MOST_LAYERS = 6  # arbitrary: for more, trying every order takes too long


def from_state_dict(state: Mapping[str, object], ordered: bool = True) -> Network:
    """The network whose layers are the pairs NAME.weight (k, k'), NAME.bias (k,) of `state`.

    Any names do. Layers follow one another in the order of `state` if it is `ordered`, in that of
    the numbers in their names, or in the only order in which their shapes chain.
    """
    if len(state) > MOST_TENSORS:
        raise StoreError(f"{len(state)} tensors; at most {MOST_TENSORS} are read. {REMEDY}")
    layers: dict[str, dict[str, Tensor]] = {}
    for key, value in state.items():
        name, _, part = key.rpartition(".")
        wanted = {"weight": 2, "bias": 1}.get(part)
        if not isinstance(value, Tensor) or wanted is None or value.ndim != wanted:
            shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise StoreError(
                f"expected NAME.weight (k, k') and NAME.bias (k,) of linear layers only; "
                f"got {named(key)} {shape}. Only fully connected ReLU networks can be imported."
            )
        layers.setdefault(name, {})[part] = value
    lonely = [name for name, parts in layers.items() if "weight" not in parts]
    if lonely or not layers:
        raise StoreError(
            f"no weight for the biases {named(lonely)}" if lonely else "no layers in the file"
        )
    _check_numbers({key: value for key, value in state.items() if isinstance(value, Tensor)})
    names = _chained(layers, ordered)
    dtype = torch.promote_types(layers[names[0]]["weight"].dtype, torch.float32)

    def taken(value: Tensor) -> Tensor:
        return value.detach().to(dtype).clone(memory_format=torch.contiguous_format)

    weights = tuple(taken(layers[name]["weight"]) for name in names)
    biases = tuple(
        taken(layers[name]["bias"]) if "bias" in layers[name] else None for name in names
    )
    try:
        return Network(weights, biases, assumed_relu=True)  # a state_dict does not say
    except ValueError as error:
        raise StoreError(f"{error}. Check the shapes of the layers.") from error


def _check_numbers(tensors: Mapping[str, Tensor]) -> None:
    """StoreError for tensors that are no plain, finite numbers, each with its own place in memory.

    The kind and the size of all come first: a tensor of steps of 0 is small until it is read.
    """
    for key, value in tensors.items():
        plain = value.layout is torch.strided and value.device.type == "cpu"
        if not plain or value.is_nested or value.is_quantized or value.dtype not in _DTYPES:
            raise StoreError(
                f"{named(key)} must hold floating numbers of 16, 32 or 64 bits, dense and on the "
                f"CPU; got {value.dtype}, {value.layout} on {value.device}. {REMEDY}"
            )
        held = value.untyped_storage().nbytes()
        if not 0 < value.numel() * value.element_size() <= held:
            raise StoreError(
                f"{named(key)} {tuple(value.shape)} names {value.numel()} numbers; the file holds "
                f"{held // value.element_size()}. {REMEDY}"
            )
    count = sum(value.numel() for value in tensors.values())
    if count > MOST_NUMBERS:
        raise StoreError(
            f"the network has {count} weights; at most {MOST_NUMBERS} are read. "
            "Import a smaller one."
        )
    for key, value in tensors.items():
        if not bool(torch.isfinite(value).all()):
            raise StoreError(f"{named(key)} must hold finite floating numbers; got nan or inf.")


def _chained(layers: Mapping[str, Mapping[str, Tensor]], ordered: bool) -> Sequence[str]:
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
    shapes = ", ".join(f"{named(n)} {tuple(layers[n]['weight'].shape)}" for n in counted)
    raise StoreError(
        f"the layers do not follow one another in {'one' if fitting else 'any'} order: {shapes}. "
        "Number the layers in their names."
    )


def _numbers(name: str) -> list[tuple[int, str]]:
    """Text and numbers apart, so that layer 10 comes after layer 2."""
    pieces = re.split(r"(\d+)", name)
    return [(int(p), "") if p.isdigit() else (-1, p) for p in pieces]
