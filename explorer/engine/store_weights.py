"""Weights that others trained: the state_dict of a plain PyTorch MLP as a Network.

Nothing in a file is ever executed: `.pt` files are read by torch's weights-only unpickler, which
knows tensors and containers and refuses every other name.
"""

from __future__ import annotations

import io
import pickle
import re
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from itertools import pairwise, permutations

import torch
from torch import Tensor

from explorer.engine.network import Network
from explorer.engine.store_codec import StoreError

MAX_BYTES = 64 * 2**20  # arbitrary: 500 states of a width of 1000 fit
_MOST_LAYERS = 6  # arbitrary: for more, trying every order takes too long
_HOLDERS = ("state_dict", "model_state_dict", "model")  # where checkpoints keep the weights
_REMEDY = "Export the weights with torch.save(model.state_dict(), 'weights.pt') or as .safetensors."


def from_pickle(data: bytes) -> Network:
    """The network of a `.pt` or `.pth` file."""
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > MAX_BYTES:
            raise StoreError(
                f"the file unpacks to {size / 2**20:.0f} MB; "
                f"at most {MAX_BYTES // 2**20} MB are read. Import a smaller network."
            )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about old formats; the answer below says enough
            found = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise StoreError(
            "the file holds more than weights (or is no PyTorch file), and code in files is never "
            f"run. {_REMEDY}"
        ) from error
    except Exception as error:  # torch raises many kinds on damaged files
        raise StoreError(
            f"not a PyTorch file, or a damaged one ({type(error).__name__}). {_REMEDY}"
        ) from error
    for holder in _HOLDERS:
        if isinstance(found, Mapping) and isinstance(found.get(holder), Mapping):
            found = found[holder]
    if not isinstance(found, Mapping) or not all(isinstance(k, str) for k in found):
        raise StoreError(f"expected a state_dict; got a {type(found).__name__}. {_REMEDY}")
    return from_state_dict(found)


def from_state_dict(state: Mapping[str, object], ordered: bool = True) -> Network:
    """The network whose layers are the pairs NAME.weight (k, k'), NAME.bias (k,) of `state`.

    Any names do. Layers follow one another in the order of `state` if it is `ordered`, in that of
    the numbers in their names, or in the only order in which their shapes chain.
    """
    layers: dict[str, dict[str, Tensor]] = {}
    for key, value in state.items():
        name, _, part = key.rpartition(".")
        wanted = {"weight": 2, "bias": 1}.get(part)
        if not isinstance(value, Tensor) or wanted is None or value.ndim != wanted:
            shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise StoreError(
                f"expected NAME.weight (k, k') and NAME.bias (k,) of linear layers only; "
                f"got {key} {shape}. Only fully connected ReLU networks can be imported."
            )
        if not value.is_floating_point() or not bool(torch.isfinite(value).all()):
            raise StoreError(f"{key} must hold finite floating numbers; got {value.dtype}")
        layers.setdefault(name, {})[part] = value
    lonely = [name for name, parts in layers.items() if "weight" not in parts]
    if lonely or not layers:
        raise StoreError(
            f"no weight for the biases {lonely}" if lonely else "no layers in the file"
        )
    names = _chained(layers, ordered)
    dtype = torch.promote_types(layers[names[0]]["weight"].dtype, torch.float32)
    weights = tuple(layers[name]["weight"].detach().to(dtype).clone() for name in names)
    biases = tuple(
        layers[name]["bias"].detach().to(dtype).clone() if "bias" in layers[name] else None
        for name in names
    )
    try:
        return Network(weights, biases, assumed_relu=True)  # a state_dict does not say
    except ValueError as error:
        raise StoreError(f"{error}. Check the shapes of the layers.") from error


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
    shapes = ", ".join(f"{n} {tuple(layers[n]['weight'].shape)}" for n in counted)
    raise StoreError(
        f"the layers do not follow one another in {'one' if fitting else 'any'} order: {shapes}. "
        "Number the layers in their names."
    )


def _numbers(name: str) -> list[tuple[int, str]]:
    """Text and numbers apart, so that layer 10 comes after layer 2."""
    pieces = re.split(r"(\d+)", name)
    return [(int(p), "") if p.isdigit() else (-1, p) for p in pieces]
